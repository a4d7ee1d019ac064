//! Behind nginx, set up as `deploy/gateway/nginx.conf` has it.

use axum::body::{Body, Bytes};
use axum::http::{Request, StatusCode};
use futures::{StreamExt, stream};
use serde_json::Value;
use tokio::sync::mpsc;

use super::streams::{data, recorded};
use super::{Scene, events_of, json_of};
use crate::harness::{Nginx, Upstream};

#[tokio::test]
#[ignore = "needs nginx: make test-full"]
async fn the_chat_goes_through_baton_and_all_else_past_it() {
    let (say, said) = mpsc::channel::<Result<Bytes, std::io::Error>>(1);
    let said = std::sync::Mutex::new(Some(said));
    let said = std::sync::Arc::new(said);
    let upstream = Upstream::start(move |seen| {
        if !seen.uri.path().starts_with("/api/agents/chat/stream/") {
            return json_of(&serde_json::json!({ "length": seen.body.len() }));
        }
        let mut said = said.lock().unwrap().take().unwrap();
        let said = stream::poll_fn(move |cx| said.poll_recv(cx));
        events_of(Body::from_stream(said))
    })
    .await;
    let s = Scene::with(&upstream, &[("BATON__HTTP__TRUSTED_PROXIES", "127.0.0.1")]).await;
    let nginx = Nginx::start(&snippet(&upstream, &s)).await;
    let url = |path: &str| format!("http://{}{path}", nginx.address());

    // An upload that nginx would refuse by its own limit.
    let file = vec![b'x'; 4 << 20];
    let upload = Request::post(url("/api/files")).body(Body::from(file));
    let answer = s.ask(upload.unwrap()).await;
    assert_eq!(answer.status, StatusCode::OK);
    assert_eq!(answer.text(), r#"{"length":4194304}"#);
    assert_eq!(upstream.last().headers["x-forwarded-for"], "127.0.0.1");

    // A turn that switches: its events leave at once, and the last one names the target.
    let turn = s.conversation().await.next(&s.a);
    turn.run_switching(&s.b).await;
    let events = recorded("v0.8.8-rc1", "c", &turn, &s.a, &s.b);
    let path = format!("/api/agents/chat/stream/{}", turn.conversation);
    let request = Request::get(url(&path)).header("host", "chat.example.org");
    say.send(Ok(Bytes::from(events[0].clone()))).await.unwrap();
    let answer = s.send(request.body(Body::empty()).unwrap()).await;
    let mut body = answer.into_body().into_data_stream();
    let mut next = async |length: usize| {
        let mut got = Vec::new();
        while got.len() < length {
            got.extend_from_slice(&body.next().await.unwrap().unwrap());
        }
        String::from_utf8(got).unwrap()
    };
    let (last, before) = events.split_last().unwrap();
    assert_eq!(next(before[0].len()).await, before[0]);
    for event in &before[1..] {
        say.send(Ok(Bytes::from(event.clone()))).await.unwrap();
        assert_eq!(next(event.len()).await, *event);
    }
    say.send(Ok(Bytes::from(last.clone()))).await.unwrap();
    drop(say);
    let named = data(&next(last.len()).await);
    assert_eq!(
        named["conversation"]["agent_id"],
        Value::from(s.b.id.as_str())
    );
    let seen = upstream.last();
    assert_eq!(seen.headers["x-forwarded-for"], "127.0.0.1, 127.0.0.1");
    assert_eq!(seen.headers["host"], "chat.example.org");
}

/// The snippet, with LibreChat and Baton where they are here.
fn snippet(upstream: &Upstream, s: &Scene) -> String {
    let snippet = include_str!("../../../deploy/gateway/nginx.conf");
    let librechat = upstream.url();
    let baton = format!("http://{}", s.baton.address());
    let moved = snippet
        .replace("http://127.0.0.1:3080", &librechat)
        .replace("http://127.0.0.1:8787", &baton);
    assert!(moved.contains(&librechat) && moved.contains(&baton));
    moved
}
