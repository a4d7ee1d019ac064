//! Turns that tabs begin: who cannot know of a switch is given to the target.

use axum::http::StatusCode;
use serde_json::{Value, json};

use super::{Scene, json_of};
use crate::harness::{Agent, Turn, Upstream};

async fn scene() -> (Upstream, Scene) {
    let upstream = Upstream::start(|_| json_of(&json!({ "status": "started" }))).await;
    let scene = Scene::before(&upstream).await;
    (upstream, scene)
}

/// What the web client sends.
fn body(turn: &Turn, agent: &Agent, parent: Option<&str>, more: &Value) -> Value {
    let mut body = json!({
        "text": "hello", "endpoint": "agents", "agent_id": agent.id, "isContinued": false,
        "isRegenerate": false, "conversationId": turn.conversation, "parentMessageId": parent,
        "timezone": "UTC",
    });
    for (name, value) in more.as_object().unwrap() {
        body[name] = value.clone();
    }
    body
}

/// Sends it, and says which agent arrives; all else has to be the same.
async fn arrives(upstream: &Upstream, s: &Scene, body: &Value) -> String {
    let answer = s.post("/api/agents/chat/agents", body).await;
    assert_eq!(answer.status, StatusCode::OK);
    let arrived: Value = serde_json::from_slice(&upstream.last().body).unwrap();
    let agent = arrived["agent_id"].as_str().unwrap().to_owned();
    let mut expected = body.clone();
    expected["agent_id"] = json!(agent);
    assert_eq!(arrived, expected);
    agent
}

async fn delivered(s: &Scene, turn: &Turn) {
    s.db.switches()
        .update_one(
            mongodb::bson::doc! { "message_id": &turn.response },
            mongodb::bson::doc! { "$currentDate": { "delivered_at": true } },
        )
        .await
        .unwrap();
}

#[tokio::test]
async fn a_tab_that_was_never_told_is_given_to_the_target() {
    let (upstream, s) = scene().await;
    let turn = s.switched().await;
    for more in [
        json!({}),
        json!({ "isRegenerate": true }),
        json!({ "addedConvo": { "agent_id": s.a.id } }),
        json!({ "editedContent": { "index": 0, "type": "text", "text": "x" } }),
        // A message that was queued while the turn ran (v0.8.8).
        json!({ "recoverySteerId": "s", "expectedPredecessorCreatedAt": 17 }),
    ] {
        let body = body(&turn, &s.a, Some(&turn.response), &more);
        assert_eq!(arrives(&upstream, &s, &body).await, s.b.id, "{more}");
    }
    s.record(&turn, |record| record.corrected == 5).await;
}

#[tokio::test]
async fn a_tab_from_before_the_switch_is_given_to_the_target() {
    let (upstream, s) = scene().await;
    let turn = s.switched().await;
    delivered(&s, &turn).await;
    let stale = body(&turn, &s.a, turn.parent.as_deref(), &json!({}));
    assert_eq!(arrives(&upstream, &s, &stale).await, s.b.id);
    // The branch that this began is the target's; a choice in it is the user's own.
    let mut sibling = turn.next(&s.b);
    sibling.parent.clone_from(&turn.parent);
    sibling.run_plain().await;
    let chosen = body(&turn, &s.a, Some(&sibling.response), &json!({}));
    assert_eq!(arrives(&upstream, &s, &chosen).await, s.a.id);
}

#[tokio::test]
async fn the_users_own_choice_passes() {
    let (upstream, s) = scene().await;
    let turn = s.switched().await;
    let untold = [
        (&s.b, json!({})),
        (&s.c, json!({})),
        (&s.a, json!({ "isContinued": true })),
        (&s.a, json!({ "conversationId": null })),
        (&s.a, json!({ "endpoint": "openAI" })),
    ];
    for (agent, more) in untold {
        let body = body(&turn, agent, Some(&turn.response), &more);
        assert_eq!(arrives(&upstream, &s, &body).await, agent.id, "{more}");
    }
    delivered(&s, &turn).await;
    let told = [
        (Some(turn.response.as_str()), json!({})),
        (
            turn.parent.as_deref(),
            json!({ "isRegenerate": true, "overrideParentMessageId": turn.user_message }),
        ),
        (
            turn.parent.as_deref(),
            json!({ "editedContent": { "index": 0, "type": "text", "text": "x" } }),
        ),
    ];
    for (parent, more) in told {
        let body = body(&turn, &s.a, parent, &more);
        assert_eq!(arrives(&upstream, &s, &body).await, s.a.id, "{more}");
    }
    // A descendant of the switch.
    let next = turn.next(&s.b);
    next.run_plain().await;
    let body = body(&turn, &s.a, Some(&next.response), &json!({}));
    assert_eq!(arrives(&upstream, &s, &body).await, s.a.id);
}

#[tokio::test]
async fn what_the_user_chose_since_stands() {
    let (upstream, s) = scene().await;
    let turn = s.switched().await;
    let chosen = turn.next(&s.c);
    chosen.run_plain().await;
    let body = body(&turn, &s.a, turn.parent.as_deref(), &json!({}));
    assert_eq!(arrives(&upstream, &s, &body).await, s.a.id);
}

#[tokio::test]
async fn nobodys_turn_and_a_strangers_pass() {
    let (upstream, mut s) = scene().await;
    let turn = s.switched().await;
    let body = body(&turn, &s.a, Some(&turn.response), &json!({}));
    s.token = "nonsense".to_owned();
    assert_eq!(arrives(&upstream, &s, &body).await, s.a.id);
    let stranger = s.librechat.user().await;
    s.token = s.librechat.token(&stranger).await;
    assert_eq!(arrives(&upstream, &s, &body).await, s.a.id);
}

#[tokio::test]
async fn steering_and_resuming_pass() {
    let (upstream, s) = scene().await;
    let turn = s.switched().await;
    for what in ["resume", "steer", "steer/cancel"] {
        let path = format!("/api/agents/chat/{what}");
        let body = body(&turn, &s.a, Some(&turn.response), &json!({}));
        s.post(&path, &body).await;
        let arrived: Value = serde_json::from_slice(&upstream.last().body).unwrap();
        assert_eq!(arrived, body, "{path}");
    }
}
