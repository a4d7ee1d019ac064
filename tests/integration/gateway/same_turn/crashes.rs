//! Baton ends at any moment of an answer in the same stream: the next start brings it to its end.

use axum::body::Body;
use axum::http::Request;
use baton::switch::answer::Stage as Come;
use http_body_util::BodyExt;
use mongodb::bson::{Bson, doc};
use serde_json::json;

use super::last;
use super::stage::{FIRST, SECOND, Stage, kinds};
use crate::harness::parts;

const JOINED: [&str; 5] = ["text", "tool_call", "text", "agent_update", "text"];

/// A target at work, and Baton killed.
async fn killed() -> (Stage, String) {
    let mut t = Stage::of("s-m").await;
    let request = Request::get(t.s.url(&t.stream(FIRST, "")));
    let mut stream = t.s.send(request.body(Body::empty()).unwrap()).await;
    let answer = t.answer_id().await;
    t.record(|record| record.answered_by().is_some()).await;
    // The client reads the target's words.
    let mut read = Vec::new();
    while !String::from_utf8_lossy(&read).contains("word3 ") {
        let frame = stream.body_mut().frame().await.unwrap().unwrap();
        read.extend_from_slice(&frame.into_data().unwrap());
    }
    t.s.baton.kill();
    (t, answer)
}

async fn restarted_and_joined(mut t: Stage, answer: &str, asked: &str) {
    t.s.baton.restart().await;
    let done = |record: &baton::switch::record::Switch| {
        let answer = record.answer.as_ref();
        answer.is_some_and(|answer| answer.stage == Come::Done)
    };
    t.record(done).await;
    assert_eq!(t.kinds().await, JOINED);
    let stored = t.message(&t.turn.response).await.unwrap();
    assert_eq!(stored["content"][4]["text"], "Paid.");
    assert_eq!(t.message(answer).await, None);
    assert_eq!(t.asked().await, asked);
    assert_eq!(t.turn.agent_now(&t.s.db).await, Some(t.s.b.id.clone()));
}

#[tokio::test]
async fn while_the_target_is_at_work() {
    let (t, answer) = killed().await;
    let asked = t.asked().await;
    t.answers([parts::text("Paid.")]).await;
    // Without Baton LibreChat shows both, one at a time.
    assert_eq!(t.kinds().await, JOINED[..3]);
    assert!(t.message(&answer).await.is_some());
    restarted_and_joined(t, &answer, &asked).await;
}

#[tokio::test]
async fn a_client_that_comes_back_finds_the_target_at_work() {
    let (mut t, _) = killed().await;
    t.s.baton.restart().await;
    // It is on the address that it was on.
    let path = t.stream(FIRST, "&resume=true");
    let (told, ()) = tokio::join!(t.s.get(&path), t.answers([parts::text("Paid.")]));
    let end = last(&told.text());
    assert_eq!(kinds(&end["responseMessage"]["content"]), JOINED);
    assert_eq!(t.assigned().len(), 1);
}

#[tokio::test]
async fn after_the_response_has_taken_the_answer_over() {
    let (t, answer) = killed().await;
    let asked = t.asked().await;
    t.answers([parts::text("Paid.")]).await;
    let seam = doc! {
        "type": "agent_update",
        "agent_update": { "index": 3, "runId": &answer, "agentId": &t.s.b.id },
    };
    let part = doc! { "type": "text", "text": "Paid.", "agentId": &t.s.b.id };
    let more: [Bson; 2] = [seam.into(), part.into()];
    t.s.db
        .messages()
        .update_one(
            doc! { "messageId": &t.turn.response },
            doc! { "$push": { "content": { "$each": &more[..] } } },
        )
        .await
        .unwrap();
    restarted_and_joined(t, &answer, &asked).await;
}

#[tokio::test]
async fn after_the_answers_own_message_has_gone() {
    let (mut t, answer) = killed().await;
    let asked = t.asked().await;
    t.answers([parts::text("Paid.")]).await;
    t.s.baton.restart().await;
    t.record(|record| {
        record
            .answer
            .as_ref()
            .is_some_and(|it| it.stage == Come::Done)
    })
    .await;
    // All is done, and the record does not say so yet.
    t.s.baton.kill();
    t.s.db
        .switches()
        .update_one(
            doc! { "message_id": &t.turn.response },
            doc! { "$set": { "answer.stage": "begun" } },
        )
        .await
        .unwrap();
    restarted_and_joined(t, &answer, &asked).await;
}

#[tokio::test]
async fn before_the_record_says_that_the_target_has_begun() {
    let (t, answer) = killed().await;
    let asked = t.asked().await;
    t.s.db
        .switches()
        .update_one(
            doc! { "message_id": &t.turn.response },
            doc! { "$set": { "answer.stage": "claimed" }, "$unset": { "answer.generation": "" } },
        )
        .await
        .unwrap();
    t.answers([parts::text("Paid.")]).await;
    restarted_and_joined(t, &answer, &asked).await;
}

#[tokio::test]
async fn between_librechats_stop_and_what_follows_it() {
    let (mut t, answer) = killed().await;
    t.is_stopped([parts::text("Paid.")]).await;
    t.s.baton.restart().await;
    // The client comes back for the last event, and gets it whole.
    let path = t.stream(SECOND, "&resume=true");
    let end = last(&t.s.get(&path).await.text());
    assert_eq!(kinds(&end["responseMessage"]["content"]), JOINED);
    assert_eq!(end["responseMessage"]["unfinished"], true);
    assert!(!t.asked().await.contains("transferred"));
    assert_eq!(t.message(&answer).await, None);
}

#[tokio::test]
async fn a_response_that_the_user_has_deleted_meanwhile_is_not_brought_back() {
    let (mut t, answer) = killed().await;
    t.answers([parts::text("Paid.")]).await;
    t.s.db
        .messages()
        .delete_one(doc! { "messageId": &t.turn.response })
        .await
        .unwrap();
    t.s.baton.restart().await;
    t.record(|record| {
        record
            .answer
            .as_ref()
            .is_some_and(|it| it.stage == Come::Failed)
    })
    .await;
    assert_eq!(t.message(&t.turn.response).await, None);
    assert_eq!(
        t.message(&answer).await.unwrap()["content"],
        json!([{ "type": "text", "text": "Paid." }])
    );
}
