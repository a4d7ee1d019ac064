//! Every recording of real LibreChat, performed again with Baton beside it, ends with the agent
//! that `tests/fixtures/README.md` names: whether Baton watched, came when all was over, or crashed
//! before every single write.

use std::time::Duration;

use futures::TryStreamExt;
use mongodb::bson::{DateTime, Document, doc};

use crate::harness::{Baton, Mongod, Pace, Recording, Replay, TestDb, holds, parts, uuid};

/// What users and models took is cut short; what LibreChat took is kept.
const PACE: Pace = Pace::AtMost(Duration::from_millis(300));

/// Which tool is trusted: that of the recordings' MCP server.
const TRUST: [(&str, &str); 1] = [("BATON__SWITCH__SERVERS", "switcher")];

/// How a scene ends.
struct End {
    version: &'static str,
    scene: &'static str,
    /// Letter of the agent that must stand.
    agent: char,
    /// The states of the records where Baton watched, in the order of the calls.
    records: &'static [&'static str],
}

impl End {
    async fn when_baton_watches(&self) {
        let db = Mongod::shared().await.db().await;
        let mut replay = Replay::of(&db, self.version, self.scene, PACE).await;
        let _baton = Baton::start_with(&db, &TRUST).await;
        replay.run().await;
        self.comes(&db, &replay).await;
        assert_eq!(states(&db, replay.recording()).await, self.records);
    }

    async fn when_baton_comes_too_late(&self) {
        let db = Mongod::shared().await.db().await;
        let mut replay = Replay::of(&db, self.version, self.scene, Pace::Elapsed).await;
        replay.run().await;
        let _baton = Baton::start_with(&db, &TRUST).await;
        self.comes(&db, &replay).await;
    }

    async fn when_baton_crashes_before_every_write(&self) {
        let db = Mongod::shared().await.db().await;
        let mut replay = Replay::of(&db, self.version, self.scene, PACE).await;
        let mut baton = Baton::start_with(&db, &TRUST).await;
        loop {
            baton.kill();
            if replay.step().await.is_none() {
                break;
            }
            baton.restart().await;
        }
        baton.restart().await;
        self.comes(&db, &replay).await;
    }

    /// Waits until the right agent stands and nothing is under way any more.
    async fn comes(&self, db: &TestDb, replay: &Replay<'_>) {
        let recording = replay.recording();
        let right = recording.agent(self.agent);
        let open = |states: &[String]| states.iter().filter(|state| *state == "open").count();
        let left_open = self
            .records
            .iter()
            .filter(|state| **state == "open")
            .count();
        overtaken(db, recording).await;
        holds(
            "the right agent stands and the rest is closed",
            async || {
                let states = states(db, recording).await;
                states.len() >= self.records.len().min(1)
                    && open(&states) == left_open
                    && replay.agent_now().await.as_deref() == Some(right)
            },
        )
        .await;
    }
}

/// Waits until Baton has seen a switch that was made after all else: it sees things in order.
async fn overtaken(db: &TestDb, recording: &Recording) {
    let (conversation, user, u) = (uuid(), &recording.user, uuid());
    let [a, b] = ['A', 'B'].map(|letter| recording.agent(letter));
    let now = DateTime::now();
    let common = doc! {
        "conversationId": &conversation, "user": user, "createdAt": now, "updatedAt": now,
    };
    let with = |more: Document| {
        let mut document = common.clone();
        document.extend(more);
        document
    };
    let names = with(doc! { "agent_id": a, "endpoint": "agents", "messages": [] });
    db.conversations().insert_one(names).await.unwrap();
    let message = with(doc! { "messageId": &u, "isCreatedByUser": true });
    db.messages().insert_one(message).await.unwrap();
    let answer = with(doc! {
        "messageId": uuid(), "parentMessageId": &u, "isCreatedByUser": false, "unfinished": false,
        "model": a, "content": [parts::switch(b, &conversation)],
    });
    db.messages().insert_one(answer).await.unwrap();
    holds("a later switch has come into force", async || {
        let key = doc! { "conversationId": &conversation, "agent_id": b };
        db.conversations().find_one(key).await.unwrap().is_some()
    })
    .await;
}

/// The states of the scene's records, in the order in which they were made.
async fn states(db: &TestDb, recording: &Recording) -> Vec<String> {
    let by_age = doc! { "_id": 1 };
    let scene = doc! { "conversation_id": &recording.conversation };
    let records = db.switches().find(scene).sort(by_age).await.unwrap();
    let records: Vec<_> = records.try_collect().await.unwrap();
    let state = |record: &Document| record.get_str("status").unwrap().to_owned();
    records.iter().map(state).collect()
}

macro_rules! scenes {
    ($($name:ident: $version:literal $scene:literal ends with $agent:literal and $records:expr;)*) => {
        $(mod $name {
            const END: super::End = super::End {
                version: $version,
                scene: $scene,
                agent: $agent,
                records: &$records,
            };

            #[tokio::test]
            async fn ends_right_when_baton_watches() {
                END.when_baton_watches().await;
            }

            #[tokio::test]
            async fn ends_right_when_baton_comes_too_late() {
                END.when_baton_comes_too_late().await;
            }

            #[tokio::test]
            async fn ends_right_when_baton_crashes_before_every_write() {
                END.when_baton_crashes_before_every_write().await;
            }
        })*
    };
}

scenes! {
    a_first_turn: "v0.8.8-rc1" "a" ends with 'A' and [];
    a_second_turn: "v0.8.8-rc1" "b" ends with 'A' and [];
    a_switch: "v0.8.8-rc1" "c" ends with 'B' and ["settled"];
    a_switch_in_the_oldest_version: "v0.8.0" "c" ends with 'B' and ["settled"];
    // The tool says that it found no conversation, so there is no successful call.
    a_tool_that_comes_before_the_conversation: "v0.8.8-rc1" "d" ends with 'A' and [];
    a_switch_in_a_first_turn: "v0.8.8-rc1" "d2" ends with 'B' and ["settled"];
    // Native handoffs do not count unless they are made to.
    a_native_handoff: "v0.8.8-rc1" "e" ends with 'H' and [];
    a_switch_and_a_native_handoff: "v0.8.8-rc1" "f" ends with 'C' and ["settled"];
    // No end of the turn ever comes: the record stays open until its deadline.
    a_stopped_turn: "v0.8.8-rc1" "g" ends with 'B' and ["open"];
    a_model_that_fails: "v0.8.8-rc1" "h2" ends with 'B' and ["settled"];
    regenerated_and_edited: "v0.8.8-rc1" "i" ends with 'A' and ["settled", "settled"];
    a_later_choice: "v0.8.8-rc1" "j" ends with 'C' and ["settled"];
    a_later_turn_with_the_old_agent: "v0.8.8-rc1" "k" ends with 'A' and ["settled"];
    a_temporary_chat: "v0.8.8-rc1" "m" ends with 'B' and ["settled"];
    // The cancelled turn never saved its answer, so nothing tells of the plain tool's call.
    a_turn_cancelled_by_another_tab: "v0.8.8-rc1" "n" ends with 'C' and [];
    clients_that_leave: "v0.8.8-rc1" "q" ends with 'B' and ["open"];
    two_switches_in_a_turn: "v0.8.8-rc1" "s" ends with 'C' and ["settled"];
    a_target_that_does_not_exist: "v0.8.8-rc1" "u" ends with 'A' and ["rejected"];
    clients_that_leave_and_a_rename: "v0.8.8-rc1" "y" ends with 'B' and ["settled"];
    a_deleted_conversation_that_comes_back: "v0.8.8-rc1" "z" ends with 'B' and ["settled"];
}
