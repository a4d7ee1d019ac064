//! Conversations that were begun from a model spec: it goes with the agent.

use std::sync::{Arc, Mutex};

use axum::http::StatusCode;
use baton::switch::record::Status;
use mongodb::bson::doc;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::streams::{data, recorded};
use super::{Scene, events_of, json_of, switch_to};
use crate::harness::{Agent, Turn, Upstream};

/// What stands for LibreChat: what its streams say, and the agents and specs that it was asked for.
struct LibreChat {
    upstream: Upstream,
    says: Arc<Mutex<String>>,
}

impl LibreChat {
    async fn start() -> Self {
        let says = Arc::new(Mutex::new(String::new()));
        let said = Arc::clone(&says);
        let upstream = Upstream::start(move |seen| {
            if seen.uri.path().starts_with("/api/agents/chat/stream/") {
                return events_of(said.lock().unwrap().clone());
            }
            json_of(&json!({ "status": "started" }))
        })
        .await;
        Self { upstream, says }
    }
}

/// A scene with the model specs of a `librechat.yaml`: A's always, B's where it is asked for.
async fn scene(librechat: &LibreChat, specs_of_b: bool, enforce: bool) -> (Scene, TempDir) {
    let mut s = Scene::before(&librechat.upstream).await;
    let spec = |name: &str, agent: &Agent| {
        format!(
            "    - name: {name}\n      label: {name}\n      iconURL: /{name}.png\n      \
             preset: {{ endpoint: agents, agent_id: {} }}\n",
            agent.id
        )
    };
    let mut list = spec("of-a", &s.a);
    if specs_of_b {
        list += &spec("of-b", &s.b);
    }
    let yaml = format!("version: 1.3.0\nmodelSpecs:\n  enforce: {enforce}\n  list:\n{list}");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("librechat.yaml");
    std::fs::write(&file, yaml).unwrap();
    let config = ("BATON__LIBRECHAT__CONFIG", file.to_str().unwrap());
    s.baton = s.instance(&librechat.upstream, &[config]).await;
    (s, folder)
}

/// A turn of A's that calls the tool, in a conversation that was begun from A's spec.
async fn calling(s: &Scene) -> Turn {
    let mut first = Turn::first(&s.librechat, &s.user, &s.a);
    first.preset = doc! { "spec": "of-a", "iconURL": "/of-a.png" };
    first.run_plain().await;
    let turn = first.next(&s.a);
    turn.save_user_message().await;
    turn.start().await;
    turn.finish(&switch_to(&s.b, &turn)).await;
    turn
}

/// The last event of the turn, as LibreChat has it.
fn last(s: &Scene, turn: &Turn) -> Value {
    let events = recorded("v0.8.8-rc1", "c", turn, &s.a, &s.b);
    let mut last = data(events.last().unwrap());
    last["conversation"]["spec"] = json!("of-a");
    last["conversation"]["iconURL"] = json!("/of-a.png");
    last
}

/// The last event of the turn, as the client gets it.
async fn told(librechat: &LibreChat, s: &Scene, turn: &Turn) -> Value {
    *librechat.says.lock().unwrap() = format!("event: message\ndata: {}\n\n", last(s, turn));
    let path = format!("/api/agents/chat/stream/{}", turn.conversation);
    data(&s.get(&path).await.text())
}

/// What of the next message arrives, sent by a tab that knows of nothing.
async fn arrives(librechat: &LibreChat, s: &Scene, turn: &Turn) -> Value {
    let body = json!({
        "text": "hello", "endpoint": "agents", "agent_id": s.a.id, "spec": "of-a",
        "iconURL": "/of-a.png", "conversationId": turn.conversation,
        "parentMessageId": turn.parent,
    });
    let answer = s.post("/api/agents/chat/agents", &body).await;
    assert_eq!(answer.status, StatusCode::OK);
    serde_json::from_slice(&librechat.upstream.last().body).unwrap()
}

/// Agent, spec and icon.
fn named(value: &Value) -> [&Value; 3] {
    ["agent_id", "spec", "iconURL"].map(|name| &value[name])
}

#[tokio::test]
async fn the_targets_spec_goes_with_it() {
    for enforce in [false, true] {
        let librechat = LibreChat::start().await;
        let (s, _folder) = scene(&librechat, true, enforce).await;
        let turn = calling(&s).await;
        let expected = [&json!(s.b.id), &json!("of-b"), &json!("/of-b.png")];
        let told = told(&librechat, &s, &turn).await;
        assert_eq!(named(&told["conversation"]), expected);
        assert_eq!(named(&arrives(&librechat, &s, &turn).await), expected);
    }
}

#[tokio::test]
async fn a_target_without_a_spec_has_none() {
    let librechat = LibreChat::start().await;
    let (s, _folder) = scene(&librechat, false, false).await;
    let turn = calling(&s).await;
    let expected = [&json!(s.b.id), &Value::Null, &Value::Null];
    let told = told(&librechat, &s, &turn).await;
    assert_eq!(named(&told["conversation"]), expected);
    // The client takes over what is there: what is to go has to be.
    assert!(
        told["conversation"]
            .as_object()
            .unwrap()
            .contains_key("spec")
    );
    assert_eq!(named(&arrives(&librechat, &s, &turn).await), expected);
}

#[tokio::test]
async fn where_specs_are_enforced_a_target_without_one_is_no_target() {
    let librechat = LibreChat::start().await;
    let (s, _folder) = scene(&librechat, false, true).await;
    let turn = calling(&s).await;
    s.record(&turn, |record| record.status == Status::Rejected)
        .await;
    assert_eq!(told(&librechat, &s, &turn).await, last(&s, &turn));
    let expected = [&json!(s.a.id), &json!("of-a"), &json!("/of-a.png")];
    assert_eq!(named(&arrives(&librechat, &s, &turn).await), expected);
}
