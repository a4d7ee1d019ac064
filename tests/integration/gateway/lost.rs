//! A last event that was lost is made anew.

use axum::body::Body;
use axum::http::{Response, StatusCode};
use serde_json::json;

use super::streams::data;
use super::{Scene, json_of};
use crate::harness::Upstream;

const REFUSAL: &str = r#"{"error":"Stream not found","generationProtocolVersion":2}"#;

async fn upstream() -> Upstream {
    Upstream::start(|seen| {
        let message = |id: &str, parent: &str, by_user: bool, second: u8| {
            let at = format!("2026-11-30T19:00:{second:02}.000Z");
            json!({
                "messageId": id, "parentMessageId": parent, "isCreatedByUser": by_user,
                "createdAt": at, "updatedAt": at,
            })
        };
        match seen.uri.path() {
            "/api/convos/known" => {
                assert_eq!(seen.headers["authorization"], "Bearer t");
                json_of(&json!({ "conversationId": "known", "agent_id": "A", "title": "T" }))
            }
            "/api/messages/known" => json_of(&json!([
                message("u", "0", true, 1),
                message("r", "u", false, 2),
            ])),
            _ => Response::builder()
                .status(StatusCode::NOT_FOUND)
                .header("content-type", "application/json")
                .body(Body::from(REFUSAL))
                .unwrap(),
        }
    })
    .await
}

#[tokio::test]
async fn a_client_that_came_too_late_gets_the_last_event() {
    let upstream = upstream().await;
    let s = Scene::before(&upstream).await;
    let ask = async |path: &str| {
        let request = axum::http::Request::get(s.url(path))
            .header("authorization", "Bearer t")
            .body(Body::empty());
        s.ask(request.unwrap()).await
    };
    let answer = ask("/api/agents/chat/stream/known?generationCreatedAt=1").await;
    assert_eq!(answer.status, StatusCode::OK);
    assert_eq!(answer.headers["content-type"], "text/event-stream");
    let event = data(&answer.text());
    assert_eq!(event["final"], true);
    assert_eq!(event["conversation"]["agent_id"], "A");
    assert_eq!(event["responseMessage"]["messageId"], "r");
    assert_eq!(event["runMessages"].as_array().unwrap().len(), 2);
    // A turn that was begun after all that left nothing; nor did one of nobody's.
    for path in [
        "/api/agents/chat/stream/known?generationCreatedAt=4102444800000",
        "/api/agents/chat/stream/unknown",
    ] {
        let answer = ask(path).await;
        assert_eq!(answer.status, StatusCode::NOT_FOUND, "{path}");
        assert_eq!(answer.text(), REFUSAL);
    }
}
