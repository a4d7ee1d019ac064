//! The answer to Stop waits for the client to take the last event in.

use std::time::Instant;

use serde_json::json;

use super::{Scene, json_of, switch_to};
use crate::harness::{Turn, Upstream, holds};

async fn stopped(s: &Scene) -> Turn {
    let turn = s.conversation().await.next(&s.a);
    turn.save_user_message().await;
    turn.start().await;
    turn.save_unfinished_response(&switch_to(&s.b, &turn)).await;
    turn
}

#[tokio::test]
async fn the_answer_is_held_until_the_status_was_answered() {
    let upstream = Upstream::start(|_| json_of(&json!({ "success": true }))).await;
    let s = Scene::before(&upstream).await;
    let turn = stopped(&s).await;
    let body = json!({ "conversationId": turn.conversation });
    let status = format!("/api/agents/chat/status/{}", turn.conversation);
    let answered = async {
        holds("the answer is held", async || {
            s.passed("stop_held").await == 1
        })
        .await;
        s.get(&status).await;
        Instant::now()
    };
    let abort = async {
        s.post("/api/agents/chat/abort", &body).await;
        Instant::now()
    };
    let (aborted, answered) = tokio::join!(abort, answered);
    assert!(aborted > answered);
    s.record(&turn, |record| record.delivered_at.is_some())
        .await;
}

#[tokio::test]
async fn where_no_status_is_asked_for_the_next_turn_is_corrected() {
    let upstream = Upstream::start(|_| json_of(&json!({ "success": true }))).await;
    let s = Scene::before(&upstream).await;
    let turn = stopped(&s).await;
    s.record(&turn, |_| true).await;
    let body = json!({ "conversationId": turn.conversation });
    s.post("/api/agents/chat/abort", &body).await;
    assert_eq!(s.passed("stop_held").await, 1);
    let next = json!({
        "endpoint": "agents", "agent_id": s.a.id, "conversationId": turn.conversation,
        "parentMessageId": turn.response,
    });
    s.post("/api/agents/chat/agents", &next).await;
    let arrived: serde_json::Value = serde_json::from_slice(&upstream.last().body).unwrap();
    assert_eq!(arrived["agent_id"], s.b.id.as_str());
}

#[tokio::test]
async fn a_turn_without_a_switch_is_not_held_up() {
    let upstream = Upstream::start(|_| json_of(&json!({ "success": true }))).await;
    let s = Scene::before(&upstream).await;
    let turn = s.conversation().await;
    let body = json!({ "conversationId": turn.conversation });
    let answer = s.post("/api/agents/chat/abort", &body).await;
    assert_eq!(answer.text(), r#"{"success":true}"#);
    assert_eq!(s.passed("stop_held").await, 0);
}
