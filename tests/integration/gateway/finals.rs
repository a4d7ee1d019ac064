//! The last event of a turn names the agent that is in force.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use axum::http::Request;
use baton::switch::record::Status;
use futures::{StreamExt, stream};
use mongodb::bson::doc;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::same_turn::bson_as_json;
use super::streams::{data, recorded};
use super::{Scene, events_of, switch_to};
use crate::harness::{Baton, Mongod, Upstream, free_address, parts};

/// An upstream whose streams say what a test puts into it.
async fn telling() -> (Upstream, Arc<Mutex<String>>) {
    let said = Arc::new(Mutex::new(String::new()));
    let says = Arc::clone(&said);
    let upstream = Upstream::start(move |_| events_of(says.lock().unwrap().clone())).await;
    (upstream, said)
}

#[tokio::test]
async fn the_last_event_names_the_target_and_all_else_passes() {
    let (upstream, said) = telling().await;
    let s = Scene::before(&upstream).await;
    let turn = s.conversation().await.next(&s.a);
    turn.run_switching(&s.b).await;
    let events = recorded("v0.8.8-rc1", "c", &turn, &s.a, &s.b);
    *said.lock().unwrap() = events.concat();
    let path = format!(
        "/api/agents/chat/stream/{}?generationCreatedAt=1",
        turn.conversation
    );
    let answer = s.get(&path).await;
    let (last, before) = events.split_last().unwrap();
    let text = answer.text();
    let named = text.strip_prefix(&before.concat()).expect("the same bytes");
    let mut expected = data(last);
    expected["conversation"]["agent_id"] = Value::from(s.b.id.as_str());
    assert_eq!(data(named), expected);
    assert_eq!(
        turn.agent_now(&s.db).await.as_deref(),
        Some(s.b.id.as_str())
    );
    s.record(&turn, |record| record.delivered_at.is_some())
        .await;
    let asked = upstream.last();
    assert_eq!(asked.headers["accept-encoding"], "identity");
}

#[tokio::test]
async fn before_v0_8_2_the_answer_to_the_post_is_the_stream() {
    let (upstream, said) = telling().await;
    let s = Scene::before(&upstream).await;
    let turn = s.conversation().await.next(&s.a);
    turn.run_switching(&s.b).await;
    *said.lock().unwrap() = recorded("v0.8.0", "c", &turn, &s.a, &s.b).concat();
    let answer = s
        .post("/api/agents/chat/agents", &json!({ "text": "x" }))
        .await;
    let text = answer.text();
    let last = text.rsplit("event: message\n").next().unwrap();
    assert_eq!(data(last)["conversation"]["agent_id"], s.b.id.as_str());
}

#[tokio::test]
async fn the_last_event_waits_for_the_repair() {
    let (upstream, said) = telling().await;
    let s = Scene::before(&upstream).await;
    let turn = s.conversation().await.next(&s.a);
    *said.lock().unwrap() = recorded("v0.8.8-rc1", "c", &turn, &s.a, &s.b).concat();
    turn.save_user_message().await;
    turn.start().await;
    let path = format!("/api/agents/chat/stream/{}", turn.conversation);
    let (answer, ()) = tokio::join!(s.get(&path), async {
        upstream.asked(&path).await;
        turn.finish(&switch_to(&s.b, &turn)).await;
    });
    let text = answer.text();
    let last = text.rsplit("event: message\n").next().unwrap();
    assert_eq!(data(last)["conversation"]["agent_id"], s.b.id.as_str());
}

#[tokio::test]
async fn the_last_event_waits_for_a_handoff_that_is_to_last() {
    let (upstream, said) = telling().await;
    let s = Scene::with(&upstream, &[("BATON__SWITCH__NATIVE_HANDOFFS", "true")]).await;
    let turn = s.conversation().await.next(&s.a);
    let events = recorded("v0.8.8-rc1", "e", &turn, &s.a, &s.b);
    *said.lock().unwrap() = events.concat();
    turn.save_user_message().await;
    turn.start().await;
    let path = format!("/api/agents/chat/stream/{}", turn.conversation);
    let saving = async {
        upstream.asked(&path).await;
        let by_target = doc! { "type": "text", "text": "Here I am.", "agentId": &s.b.id };
        let content = [parts::handoff(&s.a.id, &s.b.id), by_target.into()];
        turn.finish(&content).await;
    };
    let (answer, ()) = tokio::join!(s.get(&path), saving);
    let text = answer.text();
    let last = text.rsplit("event: message\n").next().unwrap();
    assert_eq!(data(last)["conversation"]["agent_id"], s.b.id.as_str());
}

#[tokio::test]
async fn nobody_waits_for_a_copy_of_a_call() {
    let (upstream, said) = telling().await;
    let s = Scene::before(&upstream).await;
    let turn = s.conversation().await.next(&s.a);
    let call = switch_to(&s.b, &turn);
    turn.save_user_message().await;
    turn.start().await;
    turn.finish(&call).await;
    s.record(&turn, |record| record.status == Status::Settled)
        .await;
    // The answer is edited and gone on with: a new one holds the call once more.
    let edited = turn.regenerated(&s.a);
    edited.finish(&call).await;
    let mut last = data(
        recorded("v0.8.8-rc1", "c", &edited, &s.a, &s.b)
            .last()
            .unwrap(),
    );
    let copied = bson_as_json(&call[0]);
    last["responseMessage"]["content"] = json!([copied]);
    let event = format!("event: message\ndata: {last}\n\n");
    *said.lock().unwrap() = event.clone();
    let path = format!("/api/agents/chat/stream/{}", turn.conversation);
    assert_eq!(s.get(&path).await.text(), event);
    assert_eq!(s.passed("final_unsettled").await, 0);
    // A call of which nobody has learned is waited for.
    last["responseMessage"]["messageId"] = json!("unknown");
    *said.lock().unwrap() = format!("event: message\ndata: {last}\n\n");
    s.get(&path).await;
    assert_eq!(s.passed("final_unsettled").await, 1);
}

#[tokio::test]
async fn a_stopped_turns_last_event_gets_the_target_too() {
    let (upstream, said) = telling().await;
    let s = Scene::before(&upstream).await;
    let turn = s.conversation().await.next(&s.a);
    turn.save_user_message().await;
    turn.start().await;
    turn.save_unfinished_response(&switch_to(&s.b, &turn)).await;
    let events = recorded("v0.8.8-rc1", "g", &turn, &s.a, &s.b);
    *said.lock().unwrap() = events.concat();
    let answer = s
        .get(&format!("/api/agents/chat/stream/{}", turn.conversation))
        .await;
    let text = answer.text();
    let last = data(text.rsplit("event: message\n").next().unwrap());
    assert_eq!(
        last["conversation"],
        json!({ "conversationId": turn.conversation, "agent_id": s.b.id })
    );
    // Nobody knows whether the client heeds it.
    let record = s
        .record(&turn, |record| record.status == Status::Open)
        .await;
    assert_eq!(record.delivered_at, None);
}

#[tokio::test]
async fn a_turn_without_a_switch_passes_as_it_is() {
    let (upstream, said) = telling().await;
    let s = Scene::before(&upstream).await;
    let turn = s.conversation().await.next(&s.a);
    turn.run_plain().await;
    let events = recorded("v0.8.8-rc1", "b", &turn, &s.a, &s.a).concat();
    *said.lock().unwrap() = events.clone();
    let answer = s
        .get(&format!("/api/agents/chat/stream/{}", turn.conversation))
        .await;
    assert_eq!(answer.text(), events);
}

#[tokio::test]
async fn events_pass_at_once_and_whatever_their_size() {
    let (give, take) = mpsc::channel::<Result<Bytes, std::io::Error>>(1);
    let take = Arc::new(Mutex::new(Some(take)));
    let upstream = Upstream::start(move |_| {
        let mut chunks = take.lock().unwrap().take().unwrap();
        events_of(Body::from_stream(stream::poll_fn(move |cx| {
            chunks.poll_recv(cx)
        })))
    })
    .await;
    let s = Scene::before(&upstream).await;
    let request = Request::get(s.url("/api/agents/chat/stream/c")).body(Body::empty());
    give.send(Ok(": open\n\n".into())).await.unwrap();
    let mut body = s
        .send(request.unwrap())
        .await
        .into_body()
        .into_data_stream();
    let mut next = async |length: usize| {
        let mut got = Vec::new();
        while got.len() < length {
            got.extend_from_slice(&body.next().await.unwrap().unwrap());
        }
        got
    };
    assert_eq!(next(8).await, b": open\n\n");
    let big = format!(
        "data: {{\"sync\":true,\"x\":\"{}\"}}\n\n",
        "y".repeat(8 << 20)
    );
    for chunk in [
        "event: message\r\ndata: {\"event\":\"on_mes",
        "sage\"}\r\n\r\n",
        &big,
    ] {
        give.send(Ok(chunk.to_owned().into())).await.unwrap();
        assert_eq!(next(chunk.len()).await, chunk.as_bytes());
    }
    // The client leaves: LibreChat is to notice.
    drop(body);
    give.closed().await;
}

#[tokio::test]
async fn without_mongodb_everything_passes_within_a_second() {
    let db = Mongod::shared().await.db().await;
    let (upstream, said) = telling().await;
    let last = "data: {\"final\":true,\"conversation\":{\"conversationId\":\"c\"},\"responseMessage\":{\"messageId\":\"r\"}}\n\n";
    *said.lock().unwrap() = last.to_owned();
    let (url, ops, nobody) = (upstream.url(), free_address(), free_address());
    let baton = Baton::launch(
        &db,
        &[
            (
                "MONGO_URI",
                &format!("mongodb://{nobody}/LibreChat?replicaSet=rs0"),
            ),
            ("BATON__GATEWAY__ENABLED", "true"),
            ("BATON__LIBRECHAT__URL", &url),
            ("BATON__OPS__LISTEN", &ops.to_string()),
        ],
    );
    crate::harness::holds("it is alive", async || {
        baton
            .get("/livez")
            .await
            .is_some_and(|(status, _)| status == 200)
    })
    .await;
    let began = Instant::now();
    let request = crate::harness::Request::new("GET", "/api/agents/chat/stream/c");
    let answer = request.send(baton.address()).await;
    assert!(answer.text.contains(last), "{answer:?}");
    assert!(began.elapsed() < Duration::from_millis(1500));
}
