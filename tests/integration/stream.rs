//! Every recording of real LibreChat: what the stream would show of it, and how it ends with
//! Baton running.

use std::time::Duration;

use baton::librechat::{Change, ToolNames, change};
use futures::TryStreamExt;
use mongodb::bson::{Bson, Document, RawDocumentBuf, doc};

use crate::harness::events::{SCENES, events};
use crate::harness::recording::agent;
use crate::harness::{Baton, LibreChat, Mongod, Pace, Replay, TestDb, Turn, holds};

const V088: &str = "v0.8.8-rc1";
const SERVERS: &[(&str, &str)] = &[("BATON__SWITCH__SERVERS", "switcher")];

fn tools() -> ToolNames {
    ToolNames::new(
        &["switch_agent".to_owned()],
        &["switcher".to_owned()],
        "baton",
    )
}

/// What the stream shows of recorded events: the real pipeline, run over them by a real server.
async fn shown(db: &TestDb, version: &str, scene: &str) -> Vec<Change> {
    let recorded: Vec<Bson> = events(version, scene)
        .into_iter()
        .map(|mut event| {
            // What a stream without `updateLookup` would not have.
            if event
                .get_str("operationType")
                .is_ok_and(|operation| operation == "update")
            {
                event.remove("fullDocument");
            }
            Bson::Document(event)
        })
        .collect();
    let mut pipeline = vec![doc! { "$documents": recorded }];
    pipeline.extend(change::pipeline(&tools()));
    let shown: Vec<RawDocumentBuf> = db
        .client
        .database(&db.librechat)
        .aggregate(pipeline)
        .with_type::<RawDocumentBuf>()
        .await
        .unwrap()
        .try_collect()
        .await
        .unwrap();
    shown
        .iter()
        .map(|event| Change::parse(event).unwrap())
        .collect()
}

fn summary(changes: &[Change]) -> String {
    changes
        .iter()
        .map(|change| match change {
            Change::Response(response) => format!("R{} ", response.calls.len()),
            Change::Content(_) => "content ".to_owned(),
            Change::Conversation(written) if written.key.is_some() => "new ".to_owned(),
            Change::Conversation(written) => match (written.updated_at, written.newest_message) {
                (None, _) => "tool ".to_owned(),
                (Some(_), None) => "saved ".to_owned(),
                (Some(_), Some(_)) => "saved+ ".to_owned(),
            },
            Change::Structure(what) => format!("{what} "),
        })
        .collect::<String>()
        .trim_end()
        .to_owned()
}

#[tokio::test]
async fn the_stream_shows_no_more_of_the_recordings_than_it_must() {
    let db = Mongod::shared().await.db().await;
    for (scene, expected) in [
        ("a", "new"),
        ("b", ""),
        ("c", "tool R1 saved+"),
        ("d", "new R1"),
        ("d2", "new tool R1 saved+"),
        ("e", ""),
        ("f", "tool R1 saved+"),
        ("g", "tool R1"),
        ("q", "tool saved+ R1"),
        ("y", "tool R1 content saved"),
    ] {
        let changes = shown(&db, V088, scene).await;
        assert_eq!(summary(&changes), expected, "{scene}");
    }
    assert_eq!(summary(&shown(&db, "v0.8.0", "c").await), "tool R1 saved+");
    for scene in SCENES {
        // All of it can be understood.
        shown(&db, V088, scene).await;
    }
}

/// A switch in another conversation, after which all that was written before has been dealt with.
async fn barrier(db: &TestDb) {
    let librechat = LibreChat::on(db);
    let user = librechat.user().await;
    let [a, b] = [
        librechat.agent(&user, "A").await,
        librechat.agent(&user, "B").await,
    ];
    let turn = Turn::first(&librechat, &user, &a);
    turn.run_switching(&b).await;
    holds("the last switch is in force and settled", async || {
        let filter = doc! { "conversation_id": &turn.conversation, "status": "settled" };
        let state = db.client.database(&db.state);
        let settled = state
            .collection::<Document>("switches")
            .count_documents(filter)
            .await;
        settled.unwrap() == 1 && turn.agent_now(db).await.as_deref() == Some(&b.id)
    })
    .await;
}

async fn ends(version: &str, scene: &str, stands: char, environment: &[(&str, &str)]) {
    let db = Mongod::shared().await.db().await;
    let librechat = LibreChat::on(&db);
    librechat.seed_roles().await;
    let _baton = Baton::start_with(&db, environment).await;
    let mut replay = Replay::of(&db, version, scene, Pace::AtMost(Duration::from_millis(60))).await;
    replay.run().await;
    barrier(&db).await;
    let stands = agent(version, stands);
    holds(&format!("{scene} ends with {stands}"), async || {
        replay.agent_now().await.as_deref() == Some(stands)
    })
    .await;
    barrier(&db).await;
    assert_eq!(replay.agent_now().await.as_deref(), Some(stands), "{scene}");
}

macro_rules! recordings {
    ($($name:ident: $version:expr, $scene:literal ends $stands:literal;)*) => {$(
        #[tokio::test]
        async fn $name() {
            ends($version, $scene, $stands, SERVERS).await;
        }
    )*};
}

recordings! {
    a_plain_first_turn_is_left_alone: V088, "a" ends 'A';
    a_plain_turn_is_left_alone: V088, "b" ends 'A';
    a_switch_in_an_existing_conversation_lasts: V088, "c" ends 'B';
    a_switch_in_v080_lasts: "v0.8.0", "c" ends 'B';
    a_tool_that_found_no_conversation_has_not_switched: V088, "d" ends 'A';
    a_switch_in_the_first_turn_lasts: V088, "d2" ends 'B';
    a_native_handoff_is_not_a_switch: V088, "e" ends 'H';
    a_switch_before_a_native_handoff_lasts: V088, "f" ends 'C';
    a_switch_in_a_stopped_turn_lasts: V088, "g" ends 'B';
    a_switch_before_the_model_fails_lasts: V088, "h2" ends 'B';
    regenerating_and_editing_is_the_users_choice: V088, "i" ends 'A';
    picking_another_agent_is_the_users_choice: V088, "j" ends 'C';
    picking_the_old_agent_is_the_users_choice: V088, "k" ends 'A';
    a_switch_in_a_temporary_chat_lasts: V088, "m" ends 'B';
    the_turn_of_a_second_tab_is_the_users_choice: V088, "n" ends 'C';
    a_switch_lasts_when_every_client_leaves: V088, "q" ends 'B';
    the_last_of_two_switches_lasts: V088, "s" ends 'C';
    a_switch_to_an_agent_that_does_not_exist_is_refused: V088, "u" ends 'A';
    a_switch_lasts_when_every_client_leaves_and_a_rename_comes_between: V088, "y" ends 'B';
}

#[tokio::test]
async fn a_conversation_deleted_in_mid_turn_ends_with_the_target_or_is_gone() {
    let db = Mongod::shared().await.db().await;
    let librechat = LibreChat::on(&db);
    librechat.seed_roles().await;
    let _baton = Baton::start_with(&db, SERVERS).await;
    let mut replay = Replay::of(&db, V088, "z", Pace::AtMost(Duration::from_millis(60))).await;
    replay.run().await;
    barrier(&db).await;
    holds("z ends with B", async || {
        replay
            .agent_now()
            .await
            .is_none_or(|stands| stands == agent(V088, 'B'))
    })
    .await;
}
