//! Everything goes on to LibreChat as it came, and comes back as LibreChat gives it.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::http::{Method, Request, Response, StatusCode};
use futures::{StreamExt, stream};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Notify;

use super::{Scene, events_of, json_of};
use crate::harness::Upstream;

#[tokio::test]
async fn nothing_of_librechats_is_shadowed_and_nothing_private_is_public() {
    let upstream = Upstream::start(|_| json_of(&json!({ "by": "librechat" }))).await;
    let s = Scene::before(&upstream).await;
    for path in [
        "/",
        "/health",
        "/readyz",
        "/livez",
        "/metrics",
        "/mcp",
        "/ops",
        "/api/convos/c?x=%2F",
    ] {
        let answer = s.get(path).await;
        assert_eq!(answer.text(), r#"{"by":"librechat"}"#, "{path}");
        assert_eq!(upstream.last().uri, path);
    }
    let request = Request::post(s.url("/api/convos/c/switches")).body(Body::empty());
    let answer = s.ask(request.unwrap()).await;
    assert_eq!(answer.text(), r#"{"by":"librechat"}"#);
}

#[tokio::test]
async fn the_address_is_not_the_clients_to_choose() {
    let upstream = Upstream::start(|_| json_of(&json!({}))).await;
    let s = Scene::before(&upstream).await;
    for asked in ["http://elsewhere.example/x?y", "//elsewhere.example/x"] {
        let mut stream = TcpStream::connect(s.baton.address()).await.unwrap();
        let request = format!(
            "GET {asked} HTTP/1.1\r\nHost: chat.example\r\nX-User-Id: someone\r\nConnection: close, X-Odd\r\nX-Odd: 1\r\nCookie: a=b\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        let seen = upstream.last();
        assert_eq!(seen.headers["x-forwarded-for"], "127.0.0.1");
        assert_eq!(seen.headers["cookie"], "a=b");
        for name in ["x-user-id", "x-odd"] {
            assert!(!seen.headers.contains_key(name), "{name}");
        }
    }
}

#[tokio::test]
async fn heads_ranges_redirects_and_refusals_come_back_as_they_are() {
    let upstream = Upstream::start(|seen| {
        let builder = Response::builder();
        match seen.uri.path() {
            "/file" if seen.method == Method::HEAD => builder.header("content-length", "1000"),
            "/file" => {
                assert_eq!(seen.headers["range"], "bytes=0-3");
                let builder = builder
                    .status(206)
                    .header("content-range", "bytes 0-3/1000");
                return builder.body(Body::from("part")).unwrap();
            }
            "/away" => builder
                .status(302)
                .header("location", "https://login.example/"),
            _ => builder
                .status(418)
                .header("set-cookie", "a=1")
                .header("set-cookie", "b=2"),
        }
        .body(Body::empty())
        .unwrap()
    })
    .await;
    let s = Scene::before(&upstream).await;
    let ask = async |method: Method, path: &str| {
        let request = Request::builder().method(method).uri(s.url(path));
        s.ask(
            request
                .header("range", "bytes=0-3")
                .body(Body::empty())
                .unwrap(),
        )
        .await
    };
    let head = ask(Method::HEAD, "/file").await;
    assert_eq!(head.headers["content-length"], "1000");
    let part = ask(Method::GET, "/file").await;
    assert_eq!(
        (part.status, part.text().as_str()),
        (StatusCode::PARTIAL_CONTENT, "part")
    );
    let away = ask(Method::GET, "/away").await;
    assert_eq!(away.status, StatusCode::FOUND);
    assert_eq!(away.headers["location"], "https://login.example/");
    let refused = ask(Method::DELETE, "/x").await;
    assert_eq!(refused.status, StatusCode::IM_A_TEAPOT);
    assert_eq!(refused.headers.get_all("set-cookie").iter().count(), 2);
}

#[tokio::test]
async fn an_upload_of_hundreds_of_megabytes_streams_both_ways() {
    let upstream =
        Upstream::serve(|request: Request<Body>| async { Response::new(request.into_body()) })
            .await;
    let s = Scene::before(&upstream).await;
    let before = s.baton.memory("VmHWM");
    let chunk = Bytes::from(vec![7; 1 << 20]);
    let chunks = stream::iter((0..300).map(move |_| Ok::<_, std::io::Error>(chunk.clone())));
    let request = Request::post(s.url("/api/files")).body(Body::from_stream(chunks));
    let mut body = s
        .send(request.unwrap())
        .await
        .into_body()
        .into_data_stream();
    let mut length = 0;
    while let Some(chunk) = body.next().await {
        length += chunk.unwrap().len();
    }
    assert_eq!(length, 300 << 20);
    let grown = s.baton.memory("VmHWM") - before;
    assert!(grown < 32 << 10, "{grown} kB");
}

#[tokio::test]
async fn a_stream_that_breaks_off_does_not_end() {
    let killed = Arc::new(Notify::new());
    let kill = Arc::clone(&killed);
    let upstream = Upstream::serve(move |_| {
        let killed = Arc::clone(&killed);
        async move {
            let open = stream::once(async { Ok(Bytes::from(": open\n\n")) });
            let cut = stream::once(async move {
                killed.notified().await;
                Err(std::io::Error::other("the process was killed"))
            });
            events_of(Body::from_stream(open.chain(cut)))
        }
    })
    .await;
    let s = Scene::before(&upstream).await;
    for path in ["/api/agents/chat/stream/c", "/api/other/stream"] {
        let request = Request::get(s.url(path)).body(Body::empty());
        let answer = s.send(request.unwrap()).await;
        let mut body = answer.into_body().into_data_stream();
        assert_eq!(body.next().await.unwrap().unwrap(), ": open\n\n");
        kill.notify_one();
        assert!(body.next().await.unwrap().is_err(), "{path}");
    }
}

#[tokio::test]
async fn a_connection_is_upgraded() {
    let upstream = Upstream::serve(|mut request: Request<Body>| async move {
        assert_eq!(request.headers()["upgrade"], "websocket");
        let upgrade = hyper::upgrade::on(&mut request);
        tokio::spawn(async move {
            let mut stream = TokioIo::new(upgrade.await.unwrap());
            let mut word = [0; 4];
            stream.read_exact(&mut word).await.unwrap();
            stream.write_all(&word).await.unwrap();
        });
        Response::builder()
            .status(101)
            .header("connection", "upgrade")
            .header("upgrade", "websocket")
            .body(Body::empty())
            .unwrap()
    })
    .await;
    let s = Scene::before(&upstream).await;
    let mut stream = TcpStream::connect(s.baton.address()).await.unwrap();
    stream
        .write_all(
            b"GET /ws HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
        )
        .await
        .unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    assert!(head.starts_with(b"HTTP/1.1 101 "));
    stream.write_all(b"ping").await.unwrap();
    let mut word = [0; 4];
    stream.read_exact(&mut word).await.unwrap();
    assert_eq!(&word, b"ping");
}

#[tokio::test]
async fn where_librechat_is_away_or_silent_the_client_is_told() {
    let silent = Upstream::serve(|_| std::future::pending()).await;
    let s = Scene::with(&silent, &[("BATON__GATEWAY__TIMEOUT", "1s")]).await;
    let slow = s.get("/").await;
    assert_eq!(slow.status, StatusCode::GATEWAY_TIMEOUT);
    let error: Value = serde_json::from_slice(&slow.body).unwrap();
    assert_eq!(error["success"], false);
    drop(silent);
    let away = s.get("/").await;
    assert_eq!(away.status, StatusCode::BAD_GATEWAY);
}
