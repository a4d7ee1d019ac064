//! Two instances side by side, with clients at either.

use serde_json::{Value, json};

use super::streams::{data, recorded};
use super::{Scene, events_of, json_of, switch_to};
use crate::harness::Upstream;

#[tokio::test]
async fn what_a_client_was_told_by_one_the_other_knows() {
    let says = std::sync::Arc::new(std::sync::Mutex::new(String::new()));
    let said = std::sync::Arc::clone(&says);
    let upstream = Upstream::start(move |seen| {
        if seen.uri.path().starts_with("/api/agents/chat/stream/") {
            return events_of(said.lock().unwrap().clone());
        }
        json_of(&json!({ "status": "started" }))
    })
    .await;
    let mut s = Scene::before(&upstream).await;
    let mut other = s.instance(&upstream, &[]).await;
    let turn = s.conversation().await.next(&s.a);
    turn.save_user_message().await;
    turn.start().await;
    turn.finish(&switch_to(&s.b, &turn)).await;
    let body = json!({
        "text": "hello", "endpoint": "agents", "agent_id": s.a.id,
        "conversationId": turn.conversation, "parentMessageId": turn.response,
    });
    let arrives = async |s: &Scene| {
        s.post("/api/agents/chat/agents", &body).await;
        let arrived: Value = serde_json::from_slice(&upstream.last().body).unwrap();
        arrived["agent_id"].as_str().unwrap().to_owned()
    };
    s.record(&turn, |_| true).await;
    assert_eq!(arrives(&s).await, s.b.id);

    // Each of them may have put the target in force; a tab at either is told.
    let events = recorded("v0.8.8-rc1", "c", &turn, &s.a, &s.b);
    *says.lock().unwrap() = events.last().unwrap().clone();
    let path = format!("/api/agents/chat/stream/{}", turn.conversation);
    for _ in 0..2 {
        let last = data(&s.get(&path).await.text());
        assert_eq!(last["conversation"]["agent_id"], s.b.id.as_str());
        std::mem::swap(&mut s.baton, &mut other);
    }

    // So it is the user's choice, at either.
    s.record(&turn, |record| record.delivered_at.is_some())
        .await;
    for _ in 0..2 {
        assert_eq!(arrives(&s).await, s.a.id);
        std::mem::swap(&mut s.baton, &mut other);
    }
    let record = s.record(&turn, |_| true).await;
    assert_eq!(record.corrected, 1);
}
