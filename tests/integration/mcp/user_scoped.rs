//! With the user's header alone a call takes effect when its message is saved.

use baton::switch::record::{Origin, Status};
use serde_json::json;

use super::{Scene, Wiring, call, to};
use crate::harness::{LibreChat, Turn, parts};

#[tokio::test]
async fn a_call_takes_effect_when_its_message_is_saved() {
    let s = Scene::new().await;
    let turn = s.begun().await;
    let called = s.call(Wiring::User, &turn, to(&s.b)).await.succeeded();
    assert_eq!(called.json["conversation_id"], json!(null));
    assert_eq!(called.json["agent_name"], "Agent B");
    s.names(&turn, &s.a).await;
    assert!(s.records(&turn).await.is_empty());
    turn.save_response(&[called.part()]).await;
    s.names(&turn, &s.b).await;
    turn.end().await;
    turn.touch_user_message().await;
    let record = s.ends(&turn, Status::Settled).await;
    assert_eq!(record.origin, Origin::Mcp);
    assert_eq!(
        record.switch_id.as_deref(),
        called.json["switch_id"].as_str()
    );
    s.names(&turn, &s.b).await;
}

#[tokio::test]
async fn a_first_turn_is_like_any_other() {
    let s = Scene::new().await;
    let turn = Turn::first(&s.librechat, &s.user, &s.a);
    turn.save_user_message().await;
    let called = s.call(Wiring::User, &turn, to(&s.b)).await.succeeded();
    turn.start().await;
    turn.finish(&[called.part()]).await;
    turn.title("Title").await;
    s.ends(&turn, Status::Settled).await;
    s.names(&turn, &s.b).await;
}

#[tokio::test]
async fn a_stopped_turn_keeps_its_switch() {
    let s = Scene::new().await;
    let turn = s.begun().await;
    let called = s.call(Wiring::User, &turn, to(&s.b)).await.succeeded();
    turn.save_unfinished_response(&[called.part()]).await;
    s.names(&turn, &s.b).await;
}

#[tokio::test]
async fn the_last_of_two_calls_in_a_turn_wins() {
    let s = Scene::new().await;
    let turn = s.begun().await;
    let [first, second] = [
        s.call(Wiring::User, &turn, to(&s.b)).await.succeeded(),
        s.call(Wiring::User, &turn, to(&s.c)).await.succeeded(),
    ];
    turn.finish(&[first.part(), second.part()]).await;
    let record = s.ends(&turn, Status::Settled).await;
    assert_eq!(record.to_agent, s.c.id.as_str().into());
    s.names(&turn, &s.c).await;
}

#[tokio::test]
async fn an_id_counts_once_for_its_user_and_its_target() {
    let s = Scene::new().await;
    let turn = s.begun().await;
    let called = s.call(Wiring::User, &turn, to(&s.b)).await.succeeded();

    // Somebody else's message with the same text.
    let stranger = s.librechat.user().await;
    let theirs = Turn::first(&s.librechat, &stranger, &s.a);
    theirs.save_user_message().await;
    theirs.start().await;
    theirs.finish(&[called.part()]).await;
    // The user's own, edited to name another agent; and one that nobody issued.
    let edited = Turn::first(&s.librechat, &s.user, &s.a);
    edited.save_user_message().await;
    edited.start().await;
    let forged = called.text.replace(&s.b.id, &s.c.id);
    let id = called.json["switch_id"].as_str().unwrap();
    let unknown = called.text.replace(id, &"0".repeat(32));
    let without = called.text.replace("switch_id", "id");
    let parts = [&forged, &unknown, &without].map(|text| parts::call(super::TOOL, "any", text));
    edited.finish(&parts).await;
    s.overtaken().await;
    assert!(s.records(&theirs).await.is_empty());
    assert!(s.records(&edited).await.is_empty());
    s.names(&edited, &s.a).await;

    turn.finish(&[called.part()]).await;
    s.ends(&turn, Status::Settled).await;
    s.names(&turn, &s.b).await;

    let copy = Turn::first(&s.librechat, &s.user, &s.a);
    copy.save_user_message().await;
    copy.start().await;
    copy.finish(&[called.part()]).await;
    s.overtaken().await;
    assert!(s.records(&copy).await.is_empty());
    s.names(&copy, &s.a).await;
}

#[tokio::test]
async fn calls_of_two_users_are_told_apart() {
    let s = Scene::new().await;
    let librechat: &LibreChat = &s.librechat;
    let other = librechat.user().await;
    let d = librechat.agent(&other, "Agent B").await;
    let ours = s.begun().await;
    let theirs = Turn::first(librechat, &other, &d);
    theirs.save_user_message().await;
    let by_name = json!({ "agent": "agent b" });
    let called = s
        .call(Wiring::User, &ours, by_name.clone())
        .await
        .succeeded();
    assert_eq!(called.json["agent_id"], s.b.id.as_str());
    let called = call(&s.baton, Wiring::User, &theirs, "switch_agent", by_name).await;
    assert_eq!(called.succeeded().json["agent_id"], d.id.as_str());
}
