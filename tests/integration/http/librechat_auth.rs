//! `auth.mode = "librechat"`, against a server that behaves as LibreChat's does.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::Scene;
use crate::harness::{Baton, Request};

/// A server that answers every request with the same bytes, and keeps the heads that it saw.
struct Fake {
    url: String,
    asked: Arc<AtomicUsize>,
    heads: Arc<std::sync::Mutex<Vec<String>>>,
}

impl Fake {
    /// Without an answer it is silent.
    async fn start(answer: Option<String>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let fake = Self {
            url: format!("http://{}", listener.local_addr().unwrap()),
            asked: Arc::default(),
            heads: Arc::default(),
        };
        let (asked, heads) = (Arc::clone(&fake.asked), Arc::clone(&fake.heads));
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let (answer, asked, heads) = (answer.clone(), asked.clone(), heads.clone());
                tokio::spawn(async move {
                    let mut head = Vec::new();
                    while !head.ends_with(b"\r\n\r\n") {
                        match stream.read_u8().await {
                            Ok(byte) => head.push(byte),
                            Err(_) => return,
                        }
                    }
                    asked.fetch_add(1, Ordering::SeqCst);
                    heads.lock().unwrap().push(String::from_utf8(head).unwrap());
                    match answer {
                        Some(answer) => stream.write_all(answer.as_bytes()).await.unwrap(),
                        None => std::future::pending().await,
                    }
                });
            }
        });
        fake
    }

    async fn answering(status: &str, kind: &str, body: &str) -> Self {
        let head = format!("HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nConnection: close\r\n");
        let length = body.len();
        Self::start(Some(format!(
            "{head}Content-Length: {length}\r\n\r\n{body}"
        )))
        .await
    }

    async fn baton(&self, s: &Scene) -> Baton {
        asking(s, &self.url).await
    }
}

async fn asking(s: &Scene, url: &str) -> Baton {
    let settings = [
        ("BATON__AUTH__MODE", "librechat"),
        ("BATON__LIBRECHAT__URL", url),
    ];
    Baton::start_with(&s.db, &settings).await
}

fn choice(s: &Scene, conversation: &str) -> Request {
    let path = format!("/api/convos/{conversation}");
    Request::new("PATCH", &path).json(&json!({ "agent_id": s.b.id }))
}

#[tokio::test]
async fn whom_librechat_knows_is_known() {
    let s = Scene::new().await;
    let turn = s.conversation().await;
    let user = json!({ "_id": s.user.hex(), "email": "u@example.org" }).to_string();
    let fake = Fake::answering("200 OK", "application/json; charset=utf-8", &user).await;
    let baton = fake.baton(&s).await;
    let request = choice(&s, &turn.conversation)
        .token("opaque")
        .header("Cookie", "token_provider=openid; openid_user_id=x")
        .header("X-Other", "not forwarded");
    for _ in 0..3 {
        assert_eq!(request.send(baton.address()).await.status, 200);
    }
    assert_eq!(
        fake.asked.load(Ordering::SeqCst),
        1,
        "a success is remembered"
    );
    let other = choice(&s, &turn.conversation).token("another");
    assert_eq!(other.send(baton.address()).await.status, 200);
    assert_eq!(
        fake.asked.load(Ordering::SeqCst),
        2,
        "for these credentials alone"
    );
    let head = fake.heads.lock().unwrap()[0].to_ascii_lowercase();
    assert!(head.starts_with("get /api/user http/1.1\r\n"), "{head}");
    assert!(head.contains("authorization: bearer opaque\r\n"));
    assert!(head.contains("cookie: token_provider=openid; openid_user_id=x\r\n"));
    assert!(!head.contains("x-other"));
    let bare = choice(&s, &turn.conversation);
    assert_eq!(bare.send(baton.address()).await.status, 401);
    assert_eq!(
        fake.asked.load(Ordering::SeqCst),
        2,
        "without credentials there is no question"
    );
}

#[tokio::test]
async fn many_requests_at_once_are_one_question() {
    let s = Scene::new().await;
    let turn = s.conversation().await;
    let user = json!({ "id": s.user.hex() }).to_string();
    let fake = Fake::answering("200 OK", "application/json", &user).await;
    let baton = fake.baton(&s).await;
    let request = choice(&s, &turn.conversation).token("opaque");
    let all = (0..100).map(|_| request.send(baton.address()));
    for answer in futures::future::join_all(all).await {
        assert_eq!(answer.status, 200, "{answer:?}");
    }
    assert_eq!(fake.asked.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn what_librechat_answers_decides() {
    let s = Scene::new().await;
    let html = "<!doctype html><title>LibreChat</title>";
    let moved = "302 Found\r\nLocation: http://127.0.0.1:9/elsewhere";
    for (status, kind, body, expected, says) in [
        (
            "401 Unauthorized",
            "application/json",
            r#"{"message":"jwt expired"}"#,
            401,
            "LibreChat refuses",
        ),
        (
            "401 Unauthorized",
            "text/plain",
            "Unauthorized",
            401,
            "LibreChat refuses",
        ),
        (
            "403 Forbidden",
            "application/json",
            "{}",
            403,
            "takes no requests",
        ),
        (
            "200 OK",
            "text/html",
            html,
            503,
            "librechat.url is not LibreChat's API",
        ),
        (
            "200 OK",
            "application/json",
            "{}",
            503,
            "librechat.url is not LibreChat's API",
        ),
        (
            "200 OK",
            "application/json",
            r#"{"_id":{"$oid":"x"}}"#,
            503,
            "is not LibreChat's API",
        ),
        (
            "404 Not Found",
            "application/json",
            "{}",
            503,
            "is not LibreChat's API",
        ),
        (
            "500 Internal Server Error",
            "text/plain",
            "oops",
            503,
            "LibreChat",
        ),
        ("502 Bad Gateway", "text/html", html, 503, "LibreChat"),
        (moved, "text/plain", "", 503, "LibreChat"),
    ] {
        let fake = Fake::answering(status, kind, body).await;
        let baton = fake.baton(&s).await;
        let request = choice(&s, "x").token("opaque");
        for _ in 0..2 {
            let answer = request.send(baton.address()).await;
            assert_eq!(answer.status, expected, "{status} {body}: {answer:?}");
            assert!(answer.error().contains(says), "{}", answer.error());
        }
        assert_eq!(
            fake.asked.load(Ordering::SeqCst),
            2,
            "a failure is not remembered"
        );
    }
}

#[tokio::test]
async fn a_librechat_that_does_not_answer_is_503_in_time() {
    let s = Scene::new().await;
    let silent = Fake::start(None).await;
    for url in [silent.url.as_str(), "http://127.0.0.1:9"] {
        let baton = asking(&s, url).await;
        let started = Instant::now();
        let answer = choice(&s, "x").token("opaque").send(baton.address()).await;
        assert_eq!(answer.status, 503, "{url}: {answer:?}");
        assert!(answer.error().contains("LibreChat"), "{answer:?}");
        assert!(started.elapsed() < Duration::from_secs(5));
    }
}

#[tokio::test]
async fn a_user_that_is_gone_from_the_database_is_401() {
    let s = Scene::new().await;
    let gone = mongodb::bson::oid::ObjectId::new().to_hex();
    let user = json!({ "_id": gone }).to_string();
    let fake = Fake::answering("200 OK", "application/json", &user).await;
    let baton = fake.baton(&s).await;
    let answer = choice(&s, "x").token("opaque").send(baton.address()).await;
    assert_eq!(answer.status, 401, "{answer:?}");
}
