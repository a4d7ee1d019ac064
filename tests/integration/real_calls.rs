//! Only a real call of a trusted tool switches, and only to where the user may go.

use baton::switch::record::{Status, Switch};
use futures::TryStreamExt;
use mongodb::bson::{Bson, Document, doc};
use serde_json::json;

use crate::harness::{Agent, Baton, LibreChat, Mongod, TestDb, Turn, User, holds, parts, uuid};

struct Scene {
    db: TestDb,
    librechat: LibreChat,
    user: User,
    a: Agent,
    b: Agent,
    c: Agent,
    baton: Baton,
}

impl Scene {
    async fn set() -> Self {
        Self::set_with(&[]).await
    }

    async fn set_with(environment: &[(&str, &str)]) -> Self {
        let db = Mongod::shared().await.db().await;
        let librechat = LibreChat::on(&db);
        librechat.seed_roles().await;
        let user = librechat.user().await;
        let a = librechat.agent(&user, "A").await;
        let b = librechat.agent(&user, "B").await;
        let c = librechat.agent(&user, "C").await;
        let mut all = vec![("BATON__SWITCH__SERVERS", "switcher")];
        all.extend(environment);
        let baton = Baton::start_with(&db, &all).await;
        Self {
            db,
            librechat,
            user,
            a,
            b,
            c,
            baton,
        }
    }

    async fn second_turn(&self) -> Turn {
        let first = Turn::first(&self.librechat, &self.user, &self.a);
        first.run_plain().await;
        first.next(&self.a)
    }

    /// Waits until everything written so far has been dealt with.
    async fn caught_up(&self) {
        let turn = Turn::first(&self.librechat, &self.user, &self.a);
        turn.run_switching(&self.b).await;
        holds("a later switch is settled", async || {
            self.records(&turn)
                .await
                .iter()
                .any(|record| record.status == Status::Settled)
        })
        .await;
    }

    async fn records(&self, turn: &Turn) -> Vec<Switch> {
        self.db
            .client
            .database(&self.db.state)
            .collection::<Switch>("switches")
            .find(doc! { "conversation_id": &turn.conversation })
            .sort(doc! { "created_at": 1 })
            .await
            .unwrap()
            .try_collect()
            .await
            .unwrap()
    }

    /// A turn of A's with this content leaves the conversation with A, and no record.
    async fn is_nothing(&self, what: &str, content: &[Bson]) {
        let turn = self.second_turn().await;
        self.turn_is_nothing(what, &turn, content).await;
    }

    async fn turn_is_nothing(&self, what: &str, turn: &Turn, content: &[Bson]) {
        turn.save_user_message().await;
        turn.start().await;
        turn.finish(content).await;
        self.caught_up().await;
        assert_eq!(
            turn.agent_now(&self.db).await.as_deref(),
            Some(self.a.id.as_str()),
            "{what}"
        );
        assert!(
            self.records(turn).await.is_empty(),
            "{what}: {:?}",
            self.records(turn).await
        );
    }

    /// A turn of A's with this content ends with `agent`.
    async fn switches_to(&self, agent: &Agent, turn: &Turn, content: &[Bson]) {
        turn.save_user_message().await;
        turn.start().await;
        turn.finish(content).await;
        holds("the switch is in force", async || {
            turn.agent_now(&self.db).await.as_deref() == Some(&agent.id)
        })
        .await;
    }

    /// A turn of A's that switches to `agent` by a tool that writes it, ends with A and a refusal.
    async fn is_refused(&self, agent: &str, why: &str) {
        let turn = self.second_turn().await;
        turn.save_user_message().await;
        turn.start().await;
        let target = Agent {
            id: agent.to_owned(),
            object_id: self.b.object_id,
            name: String::new(),
        };
        turn.tool_writes(&target).await;
        turn.save_unfinished_response(&[parts::switch(agent, &turn.conversation)])
            .await;
        holds("the refused target is taken back", async || {
            turn.agent_now(&self.db).await.as_deref() == Some(&self.a.id)
        })
        .await;
        let records = self.records(&turn).await;
        assert_eq!(records.len(), 1, "{records:?}");
        assert_eq!(records[0].status, Status::Rejected);
        assert_eq!(records[0].to_agent.as_str(), agent);
        let detail = records[0].detail.as_deref().unwrap();
        assert!(detail.contains(why), "{detail}");
    }
}

#[tokio::test]
async fn the_output_may_have_the_shapes_of_all_versions() {
    let s = Scene::set().await;
    let turn = s.second_turn().await;
    let listed = parts::switch_in_a_list(&s.b.id, &turn.conversation);
    s.switches_to(&s.b, &turn, &[Bson::Null, listed, parts::text("done")])
        .await;
    let mut turn = turn.next(&s.b);
    for (to, tool, output) in [
        (
            &s.c,
            "switch_agent",
            parts::success(&s.c.id, &turn.conversation),
        ),
        (
            &s.b,
            parts::TOOL,
            json!({ "agent_id": s.b.id, "success": true }).to_string(),
        ),
        (
            &s.c,
            parts::TOOL,
            json!({ "agent_id": s.c.id, "status": "success", "conversation_id": null }).to_string(),
        ),
    ] {
        s.switches_to(to, &turn, &[parts::call(tool, &to.id, &output)])
            .await;
        turn = turn.next(to);
    }
}

#[tokio::test]
async fn the_same_json_elsewhere_is_nothing() {
    let s = Scene::set().await;
    let turn = s.second_turn().await;
    let success = parts::success(&s.b.id, &turn.conversation);
    for tool in [
        "search",
        "switch_agent_mcp_stranger",
        "switch_agent_mcp_",
        "switch_agents",
        "lc_transfer_to_x",
        "switch_agent_mcp_baton",
    ] {
        s.is_nothing(tool, &[parts::call(tool, &s.b.id, &success)])
            .await;
    }
    s.is_nothing("a text", &[parts::text(&success)]).await;
    let mut of_another_type = parts::switch(&s.b.id, &turn.conversation);
    if let Bson::Document(part) = &mut of_another_type {
        part.insert("type", "text");
    }
    s.is_nothing("a part of another type", &[of_another_type])
        .await;
}

#[tokio::test]
async fn an_output_that_does_not_say_success_is_nothing() {
    let s = Scene::set().await;
    for output in [
        String::new(),
        "Error: [MCP][switcher] fetch failed".to_owned(),
        "{".to_owned(),
        "null".to_owned(),
        "[]".to_owned(),
        "[[[".to_owned(),
        json!({ "agent_id": s.b.id }).to_string(),
        json!({ "agent_id": s.b.id, "status": "error" }).to_string(),
        json!({ "agent_id": s.b.id, "status": 1 }).to_string(),
        json!({ "agent_id": "", "status": "success" }).to_string(),
        json!({ "agent_id": [s.b.id], "status": "success" }).to_string(),
        json!({ "action": "delete", "agent_id": s.b.id, "status": "success" }).to_string(),
        json!({ "status": "success" }).to_string(),
        format!(
            "{}{}",
            json!({ "agent_id": s.b.id, "status": "success" }),
            " ".repeat(100_000)
        ),
    ] {
        let what = output.chars().take(60).collect::<String>();
        s.is_nothing(&what, &[parts::call(parts::TOOL, &s.b.id, &output)])
            .await;
    }
}

#[tokio::test]
async fn an_output_that_names_another_conversation_is_nothing() {
    let s = Scene::set().await;
    let content = [parts::switch(
        &s.b.id,
        "00000000-0000-4000-8000-000000000000",
    )];
    s.is_nothing("forked", &content).await;
}

#[tokio::test]
async fn a_message_of_the_users_is_nothing() {
    let s = Scene::set().await;
    let turn = s.second_turn().await;
    turn.save_user_message().await;
    let content = [parts::switch(&s.b.id, &turn.conversation)];
    let set = doc! { "$set": { "content": &content[..] } };
    s.db.messages()
        .update_one(doc! { "messageId": &turn.user_message }, set)
        .await
        .unwrap();
    turn.start().await;
    turn.finish(&[parts::text("hello")]).await;
    // And one that held it from the start.
    let inserted = doc! {
        "messageId": uuid(), "parentMessageId": &turn.response, "user": &turn.user,
        "conversationId": &turn.conversation, "isCreatedByUser": true, "content": &content[..],
    };
    s.db.messages().insert_one(inserted).await.unwrap();
    s.caught_up().await;
    assert_eq!(
        turn.agent_now(&s.db).await.as_deref(),
        Some(s.a.id.as_str())
    );
    assert!(s.records(&turn).await.is_empty());
}

#[tokio::test]
async fn a_part_that_an_older_sibling_holds_is_a_copy() {
    let s = Scene::set().await;
    let turn = s.second_turn().await;
    let content = [parts::switch(&s.b.id, &turn.conversation)];
    s.switches_to(&s.b, &turn, &content).await;
    holds("it is settled", async || {
        s.records(&turn).await[0].status == Status::Settled
    })
    .await;
    // "Edit the answer and resubmit" as A: a new response with the old call in it, no tool ran.
    let edited = turn.regenerated(&s.a);
    edited
        .finish(&[content[0].clone(), parts::text("more")])
        .await;
    s.caught_up().await;
    assert_eq!(
        turn.agent_now(&s.db).await.as_deref(),
        Some(s.a.id.as_str())
    );
    assert_eq!(s.records(&turn).await.len(), 1);
}

#[tokio::test]
async fn the_same_id_with_another_answer_is_a_call() {
    let s = Scene::set().await;
    let turn = s.second_turn().await;
    let call = |to: &Agent| {
        let arguments = json!({ "agent_id": to.id }).to_string();
        parts::call_with_id(
            "call_0",
            parts::TOOL,
            &arguments,
            &parts::success(&to.id, &turn.conversation),
        )
    };
    s.switches_to(&s.b, &turn, &[call(&s.b)]).await;
    let again = turn.regenerated(&s.b);
    again.finish(&[call(&s.c)]).await;
    holds("the regenerated answer switches", async || {
        again.agent_now(&s.db).await.as_deref() == Some(&s.c.id)
    })
    .await;
}

#[tokio::test]
async fn continuing_a_response_switches_by_a_new_part_alone() {
    let s = Scene::set().await;
    let turn = s.second_turn().await;
    let first = parts::switch(&s.b.id, &turn.conversation);
    s.switches_to(&s.b, &turn, std::slice::from_ref(&first))
        .await;
    holds("it is settled", async || {
        s.records(&turn).await[0].status == Status::Settled
    })
    .await;
    // The user goes on with A, and the response grows.
    turn.finish(&[first.clone(), parts::text("more")]).await;
    s.caught_up().await;
    assert_eq!(
        turn.agent_now(&s.db).await.as_deref(),
        Some(s.a.id.as_str())
    );
    turn.finish(&[
        first,
        parts::text("more"),
        parts::switch(&s.c.id, &turn.conversation),
    ])
    .await;
    holds("the new part switches", async || {
        turn.agent_now(&s.db).await.as_deref() == Some(&s.c.id)
    })
    .await;
    let records = s.records(&turn).await;
    assert_eq!(records.len(), 1, "{records:?}");
    assert_eq!(records[0].to_agent.as_str(), s.c.id);
}

#[tokio::test]
async fn an_old_response_that_is_edited_today_is_nothing() {
    let s = Scene::set_with(&[("BATON__SWITCH__GUARD", "1m")]).await;
    let turn = s.second_turn().await;
    turn.run_plain().await;
    // As if it had been made two hours ago: MongoDB's ids tell the time.
    let messages = s.db.messages();
    let response = messages
        .find_one(doc! { "messageId": &turn.response })
        .await
        .unwrap()
        .unwrap();
    let mut old: Document = response.clone();
    let mut id = response.get_object_id("_id").unwrap().bytes();
    let made = u32::from_be_bytes([id[0], id[1], id[2], id[3]]) - 7200;
    id[..4].copy_from_slice(&made.to_be_bytes());
    old.insert("_id", mongodb::bson::oid::ObjectId::from_bytes(id));
    messages
        .delete_one(doc! { "messageId": &turn.response })
        .await
        .unwrap();
    messages.insert_one(old).await.unwrap();
    let content = [parts::switch(&s.b.id, &turn.conversation)];
    messages
        .update_one(
            doc! { "messageId": &turn.response },
            doc! { "$set": { "content": &content[..] } },
        )
        .await
        .unwrap();
    s.caught_up().await;
    assert_eq!(
        turn.agent_now(&s.db).await.as_deref(),
        Some(s.a.id.as_str())
    );
    assert!(s.records(&turn).await.is_empty());
}

#[tokio::test]
async fn a_target_that_does_not_exist_is_taken_back() {
    let s = Scene::set().await;
    s.is_refused("agent_that_is_not_there", "no agent").await;
}

#[tokio::test]
async fn a_target_that_the_user_may_not_view_is_taken_back() {
    let s = Scene::set().await;
    let stranger = s.librechat.user().await;
    let hidden = s.librechat.agent(&stranger, "Hidden").await;
    s.is_refused(&hidden.id, "not shared").await;
}

#[tokio::test]
async fn a_target_that_the_operator_does_not_allow_is_taken_back() {
    let s = Scene::set().await;
    let allow = format!(
        "[switch]\nservers = [\"switcher\"]\n[switch.allow]\n{} = [\"{}\"]\n",
        s.a.id, s.c.id
    );
    drop(s.baton);
    let baton = Baton::start_configured(&s.db, &allow).await;
    let s = Scene { baton, ..s };
    s.is_refused(&s.b.id, "switch.allow").await;
    let turn = s.second_turn().await;
    s.switches_to(&s.c, &turn, &[parts::switch(&s.c.id, &turn.conversation)])
        .await;
}

#[tokio::test]
async fn the_last_successful_switch_wins_over_a_refused_one_after_it() {
    let s = Scene::set().await;
    let turn = s.second_turn().await;
    let content = [
        parts::switch(&s.b.id, &turn.conversation),
        parts::switch("agent_that_is_not_there", &turn.conversation),
    ];
    s.switches_to(&s.b, &turn, &content).await;
    let records = s.records(&turn).await;
    let mut outcomes: Vec<_> = records
        .iter()
        .map(|record| record.status == Status::Rejected)
        .collect();
    outcomes.sort_unstable();
    assert_eq!(outcomes, [false, true], "{records:?}");
}
