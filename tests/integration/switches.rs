//! A switch survives LibreChat's own writes; later choices of the user's survive Baton.

use baton::switch::record::{Status, Switch};
use futures::TryStreamExt;
use mongodb::bson::{Bson, doc};

use crate::harness::{
    Agent, Baton, LibreChat, Mongod, TestDb, Turn, User, eventually, holds, parts,
};

struct Scene {
    db: TestDb,
    librechat: LibreChat,
    user: User,
    a: Agent,
    b: Agent,
    c: Agent,
    baton: Baton,
}

async fn scene() -> Scene {
    scene_with(&[]).await
}

async fn scene_with(environment: &[(&str, &str)]) -> Scene {
    let db = Mongod::shared().await.db().await;
    let librechat = LibreChat::on(&db);
    librechat.seed_roles().await;
    let user = librechat.user().await;
    let a = librechat.agent(&user, "A").await;
    let b = librechat.agent(&user, "B").await;
    let c = librechat.agent(&user, "C").await;
    let servers = [("BATON__SWITCH__SERVERS", "switcher")];
    let environment: Vec<_> = servers.iter().chain(environment).copied().collect();
    let baton = Baton::start_with(&db, &environment).await;
    Scene {
        db,
        librechat,
        user,
        a,
        b,
        c,
        baton,
    }
}

impl Scene {
    async fn conversation(&self) -> Turn {
        let first = Turn::first(&self.librechat, &self.user, &self.a);
        first.run_plain().await;
        first
    }

    async fn names(&self, turn: &Turn, agent: &Agent) {
        holds("the conversation names the agent", async || {
            turn.agent_now(&self.db).await.as_deref() == Some(&agent.id)
        })
        .await;
    }

    async fn records(&self, turn: &Turn) -> Vec<Switch> {
        records(&self.db, turn).await
    }

    /// The one record of the turn's response, once it is closed.
    async fn closed(&self, turn: &Turn) -> Switch {
        eventually("the switch is closed", async || {
            let mut records = self.records(turn).await;
            records.retain(|record| is_of(record, turn));
            let record = records.pop()?;
            (record.status != Status::Open).then_some(record)
        })
        .await
    }
}

async fn records(db: &TestDb, turn: &Turn) -> Vec<Switch> {
    db.client
        .database(&db.state)
        .collection::<Switch>("switches")
        .find(doc! { "conversation_id": &turn.conversation })
        .sort(doc! { "created_at": 1 })
        .await
        .unwrap()
        .try_collect()
        .await
        .unwrap()
}

fn is_of(record: &Switch, turn: &Turn) -> bool {
    record
        .message_id
        .as_ref()
        .is_some_and(|id| id.as_str() == turn.response)
}

fn switch_to(agent: &Agent, turn: &Turn) -> [Bson; 1] {
    [parts::switch(&agent.id, &turn.conversation)]
}

#[tokio::test]
async fn a_switch_outlives_the_end_of_its_turn() {
    let s = scene().await;
    let turn = s.conversation().await.next(&s.a);
    turn.run_switching(&s.b).await;
    let record = s.closed(&turn).await;
    assert_eq!(record.status, Status::Settled, "{record:?}");
    assert_eq!(record.from_agent, Some(s.a.id.as_str().into()));
    assert_eq!(record.to_agent, s.b.id.as_str().into());
    s.names(&turn, &s.b).await;
}

#[tokio::test]
async fn a_switch_in_the_first_turn_outlives_it() {
    for appending in [false, true] {
        let s = scene().await;
        let mut turn = Turn::first(&s.librechat, &s.user, &s.a);
        if appending {
            turn = turn.appending();
        }
        turn.save_user_message().await;
        turn.tool_writes(&s.b).await;
        turn.start().await;
        turn.finish(&switch_to(&s.b, &turn)).await;
        turn.title("Title").await;
        assert_eq!(s.closed(&turn).await.status, Status::Settled);
        s.names(&turn, &s.b).await;
    }
}

#[tokio::test]
async fn each_step_of_the_end_is_undone_as_it_comes() {
    let s = scene().await;
    let turn = s.conversation().await.next(&s.a);
    turn.save_user_message().await;
    turn.start().await;
    turn.save_response(&switch_to(&s.b, &turn)).await;
    s.names(&turn, &s.b).await;
    turn.end().await;
    s.names(&turn, &s.b).await;
    assert_eq!(s.records(&turn).await[0].status, Status::Open);
    turn.touch_user_message().await;
    let record = s.closed(&turn).await;
    assert_eq!(record.status, Status::Settled);
    assert_eq!(record.repairs, 1, "{record:?}");
}

#[tokio::test]
async fn nothing_but_the_agent_is_changed() {
    let s = scene().await;
    let turn = s.conversation().await.next(&s.a);
    turn.save_user_message().await;
    turn.start().await;
    turn.save_response(&switch_to(&s.b, &turn)).await;
    s.names(&turn, &s.b).await;
    turn.end().await;
    s.names(&turn, &s.b).await;
    turn.touch_user_message().await;
    s.closed(&turn).await;
    let after = turn.document(&s.db).await.unwrap();
    turn.end().await;
    let mut saved = turn.document(&s.db).await.unwrap();
    let mut mine = after.clone();
    for document in [&mut mine, &mut saved] {
        document.remove("agent_id");
        document.remove("updatedAt");
    }
    assert_eq!(mine, saved);
}

#[tokio::test]
async fn a_later_choice_of_the_user_wins() {
    let s = scene().await;
    let first = s.conversation().await;
    let switching = first.next(&s.a);
    switching.run_switching(&s.b).await;
    s.closed(&switching).await;
    let chosen = switching.next(&s.c);
    chosen.run_plain().await;
    let back = chosen.next(&s.a);
    back.run_plain().await;
    let marker = back.next(&s.a);
    marker.run_switching(&s.b).await;
    s.closed(&marker).await;
    // Events come in order: had Baton undone anything, it would show in the records by now.
    let repairs: Vec<_> = s
        .records(&back)
        .await
        .iter()
        .map(|record| record.repairs)
        .collect();
    assert_eq!(repairs.len(), 2);
    assert_eq!(s.closed(&switching).await.status, Status::Settled);
}

#[tokio::test]
async fn a_later_turn_supersedes_a_switch_whose_turn_never_ended() {
    let s = scene().await;
    let stopped = s.conversation().await.next(&s.a);
    stopped.save_user_message().await;
    stopped.start().await;
    stopped.tool_writes(&s.b).await;
    stopped
        .save_unfinished_response(&switch_to(&s.b, &stopped))
        .await;
    s.names(&stopped, &s.b).await;
    let later = stopped.next(&s.c);
    later.save_user_message().await;
    later.start().await;
    let record = s.closed(&stopped).await;
    assert_eq!(record.status, Status::Superseded, "{record:?}");
    later.finish(&[parts::text("hello")]).await;
    s.names(&later, &s.c).await;
}

#[tokio::test]
async fn a_rename_in_mid_turn_hides_nothing() {
    let s = scene().await;
    let turn = s.conversation().await.next(&s.a);
    turn.save_user_message().await;
    turn.start().await;
    turn.tool_writes(&s.b).await;
    turn.save_unfinished_response(&switch_to(&s.b, &turn)).await;
    turn.rename("Mid").await;
    s.names(&turn, &s.b).await;
    turn.finish(&switch_to(&s.b, &turn)).await;
    assert_eq!(s.closed(&turn).await.status, Status::Settled);
    s.names(&turn, &s.b).await;
}

#[tokio::test]
async fn the_last_of_two_switches_in_a_turn_wins() {
    let s = scene().await;
    let turn = s.conversation().await.next(&s.a);
    turn.save_user_message().await;
    turn.start().await;
    let content = [
        switch_to(&s.b, &turn)[0].clone(),
        parts::text("and"),
        switch_to(&s.c, &turn)[0].clone(),
    ];
    turn.finish(&content).await;
    let record = s.closed(&turn).await;
    assert_eq!(record.to_agent, s.c.id.as_str().into());
    s.names(&turn, &s.c).await;
    assert_eq!(s.records(&turn).await.len(), 1);
}

#[tokio::test]
async fn a_switch_made_while_baton_was_down_is_found() {
    let mut s = scene().await;
    let first = s.conversation().await;
    let before = first.next(&s.a);
    before.run_switching(&s.b).await;
    s.closed(&before).await;
    s.baton.kill();
    let turn = before.next(&s.b);
    turn.run_switching(&s.c).await;
    turn.rename("While Baton was down").await;
    assert_eq!(
        turn.agent_now(&s.db).await.as_deref(),
        Some(s.b.id.as_str())
    );
    s.baton.restart().await;
    assert_eq!(s.closed(&turn).await.status, Status::Settled);
    s.names(&turn, &s.c).await;
}

#[tokio::test]
async fn a_choice_made_while_baton_was_down_wins() {
    let mut s = scene().await;
    let turn = s.conversation().await.next(&s.a);
    turn.save_user_message().await;
    turn.start().await;
    turn.save_response(&switch_to(&s.b, &turn)).await;
    s.names(&turn, &s.b).await;
    s.baton.kill();
    turn.end().await;
    turn.touch_user_message().await;
    let later = turn.next(&s.a);
    later.run_plain().await;
    s.baton.restart().await;
    let record = s.closed(&turn).await;
    assert_eq!(record.status, Status::Superseded, "{record:?}");
    assert_eq!(
        later.agent_now(&s.db).await.as_deref(),
        Some(s.a.id.as_str())
    );
}

#[tokio::test]
async fn a_crash_in_mid_turn_loses_nothing() {
    let mut s = scene().await;
    let turn = s.conversation().await.next(&s.a);
    turn.save_user_message().await;
    turn.start().await;
    turn.save_response(&switch_to(&s.b, &turn)).await;
    s.names(&turn, &s.b).await;
    s.baton.kill();
    turn.end().await;
    s.baton.restart().await;
    s.names(&turn, &s.b).await;
    turn.touch_user_message().await;
    assert_eq!(s.closed(&turn).await.status, Status::Settled);
}

#[tokio::test]
async fn a_conversation_deleted_in_mid_turn_is_never_made_by_baton() {
    let s = scene().await;
    let turn = s.conversation().await.next(&s.a);
    turn.save_user_message().await;
    turn.start().await;
    turn.save_unfinished_response(&switch_to(&s.b, &turn)).await;
    s.names(&turn, &s.b).await;
    turn.delete().await;
    turn.save_response(&switch_to(&s.b, &turn)).await;
    turn.end().await;
    s.names(&turn, &s.b).await;
}

#[tokio::test]
async fn two_instances_do_the_work_of_one() {
    let s = scene().await;
    let _second = Baton::start_with(&s.db, &[("BATON__SWITCH__SERVERS", "switcher")]).await;
    let first = s.conversation().await;
    let mut turn = first.next(&s.a);
    for to in [&s.b, &s.c, &s.b, &s.c] {
        turn.run_switching(to).await;
        assert_eq!(s.closed(&turn).await.status, Status::Settled);
        s.names(&turn, to).await;
        assert_eq!(
            records(&s.db, &turn)
                .await
                .iter()
                .filter(|record| is_of(record, &turn))
                .count(),
            1
        );
        turn = turn.next(to);
    }
}

#[tokio::test]
async fn stops_at_once_and_well() {
    let mut s = scene().await;
    assert_eq!(s.baton.stop().await.code(), Some(0));
}

#[tokio::test]
async fn neither_messages_nor_reasons_nor_secrets_are_logged() {
    let s = scene().await;
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let environment = [
        ("BATON__SWITCH__SERVERS", "switcher"),
        ("BATON__AUTH__JWT_SECRET", "a-secret-that-nobody-may-see"),
    ];
    drop(s.baton);
    let mut baton = Baton::start_logged(&s.db, &environment, &log).await;
    let turn = Turn::first(&s.librechat, &s.user, &s.a);
    let answer = |to: &str| {
        serde_json::json!({
            "agent_id": to, "status": "success", "reason": "the reason of the model",
        })
        .to_string()
    };
    let content = [
        parts::text("the text of a message"),
        parts::call(parts::TOOL, &s.b.id, &answer(&s.b.id)),
        parts::call(parts::TOOL, "agent_nobody", &answer("agent_nobody")),
        parts::call(parts::TOOL, "agent_nobody", "{the broken output"),
    ];
    turn.save_user_message().await;
    turn.start().await;
    turn.finish(&content).await;
    holds("the switch is in force", async || {
        turn.agent_now(&s.db).await.as_deref() == Some(&s.b.id)
    })
    .await;
    let kept = records(&s.db, &turn).await;
    assert!(
        kept.iter()
            .any(|record| record.reason.as_deref() == Some("the reason of the model"))
    );
    baton.stop().await;
    let log = std::fs::read_to_string(log).unwrap();
    assert!(log.contains("a switch was learned of"), "{log}");
    assert!(log.contains("a switch was refused"), "{log}");
    for secret in ["the reason", "the text", "the broken", "a-secret-that"] {
        assert!(!log.contains(secret), "{secret:?} is in the log");
    }
}
