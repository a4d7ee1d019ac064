//! A crash between any two steps loses nothing and makes nothing twice.

use baton::switch::record::Status;
use mongodb::bson::{Bson, doc};

use super::{Called, Scene, Wiring, to};
use crate::harness::Turn;

/// Everything that LibreChat writes after the call.
async fn step(turn: &Turn, called: &Called, step: usize) -> bool {
    match step {
        0 => turn.start().await,
        1 => turn.save_response(&[called.part()]).await,
        2 => turn.end().await,
        3 => turn.touch_user_message().await,
        4 => turn.touch_response(&[called.part()]).await,
        _ => return false,
    };
    true
}

#[tokio::test]
async fn a_crash_before_any_step_changes_nothing() {
    for wiring in [Wiring::Request, Wiring::User] {
        for crash in 0..5 {
            let mut s = Scene::new().await;
            let turn = s.conversation().await.next(&s.a);
            turn.save_user_message().await;
            let called = s.call(wiring, &turn, to(&s.b)).await.succeeded();
            for at in 0.. {
                if at == crash {
                    s.baton.kill();
                }
                if !step(&turn, &called, at).await {
                    break;
                }
                if at == crash {
                    s.baton.restart().await;
                }
            }
            let record = s.ends(&turn, Status::Settled).await;
            assert_eq!(record.to_agent, s.b.id.as_str().into());
            s.names(&turn, &s.b).await;
            assert_eq!(s.records(&turn).await.len(), 1, "{wiring:?} {crash}");
        }
    }
}

#[tokio::test]
async fn a_call_that_was_answered_needs_no_record_to_come_back() {
    // A crash after the call was made durable, before its record was.
    let mut s = Scene::new().await;
    let turn = s.begun().await;
    let called = s.call(Wiring::Request, &turn, to(&s.b)).await.succeeded();
    s.baton.kill();
    s.db.switches().delete_many(doc! {}).await.unwrap();
    let back = doc! { "$set": { "agent_id": &s.a.id } };
    let key = doc! { "conversationId": &turn.conversation };
    s.db.conversations().update_one(key, back).await.unwrap();
    s.baton.restart().await;
    turn.finish(&[called.part()]).await;
    s.ends(&turn, Status::Settled).await;
    s.names(&turn, &s.b).await;
}

#[tokio::test]
async fn a_call_that_was_bound_before_a_crash_is_bound_to_the_same_message() {
    // A crash after the call was bound, before the switch was recorded.
    let mut s = Scene::new().await;
    let turn = s.begun().await;
    let called = s.call(Wiring::User, &turn, to(&s.b)).await.succeeded();
    s.baton.kill();
    let bound = doc! { "$set": {
        "conversation_id": &turn.conversation, "message_id": &turn.response,
    } };
    let calls = s.db.state_database().collection::<Bson>("calls");
    let id = called.json["switch_id"].as_str().unwrap();
    calls.update_one(doc! { "_id": id }, bound).await.unwrap();
    turn.finish(&[called.part()]).await;
    s.baton.restart().await;
    s.ends(&turn, Status::Settled).await;
    s.names(&turn, &s.b).await;
}
