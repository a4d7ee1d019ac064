//! How often one may ask, from where, and from which pages.

use serde_json::json;

use super::Scene;
use crate::harness::{Request, uuid};

#[tokio::test]
async fn who_asks_too_often_is_told_when_to_come_back() {
    let s = Scene::with(&[("BATON__HTTP__RATE_LIMIT", "1/m burst 5")]).await;
    for _ in 0..5 {
        assert_eq!(s.send(s.patch(&uuid(), &s.b.id)).await.status, 404);
    }
    let answer = s.send(s.patch(&uuid(), &s.b.id)).await;
    assert_eq!(answer.status, 429, "{answer:?}");
    let wait: u64 = answer.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=60).contains(&wait), "{wait}");
    answer.error();
    let history = Request::new("GET", &format!("/api/convos/{}/switches", uuid()));
    assert_eq!(s.send(history.token(&s.token)).await.status, 429);
    assert_eq!(
        s.baton.get("/readyz").await.unwrap().0,
        200,
        "not for operators"
    );
}

#[tokio::test]
async fn behind_a_trusted_proxy_each_address_has_its_own_limit() {
    let s = Scene::with(&[
        ("BATON__HTTP__RATE_LIMIT", "1/m burst 2"),
        ("BATON__HTTP__TRUSTED_PROXIES", "127.0.0.0/8"),
    ])
    .await;
    let from = async |address: &str| {
        let request = Request::new("PATCH", "/api/convos/x").header("X-Forwarded-For", address);
        s.send(request.json(&json!({}))).await.status
    };
    for address in ["192.0.2.1", "192.0.2.2", "6.6.6.6, 192.0.2.3"] {
        assert_eq!(from(address).await, 401, "{address}");
        assert_eq!(from(address).await, 401, "{address}");
        assert_eq!(from(address).await, 429, "{address}");
    }
    // The user has a limit of its own, wherever it asks from.
    for (address, status) in [("192.0.2.4", 404), ("192.0.2.5", 404), ("192.0.2.6", 429)] {
        let request = s.patch(&uuid(), &s.b.id).header("X-Forwarded-For", address);
        let answer = s.send(request).await;
        assert_eq!(answer.status, status, "{answer:?}");
    }
}

#[tokio::test]
async fn an_address_cannot_be_made_up_without_a_proxy() {
    let s = Scene::with(&[("BATON__HTTP__RATE_LIMIT", "1/m burst 2")]).await;
    let mut statuses = Vec::new();
    for n in 0..3 {
        let request = Request::new("PATCH", "/api/convos/x");
        let request = request.header("X-Forwarded-For", &format!("192.0.2.{n}"));
        statuses.push(s.send(request).await.status);
    }
    assert_eq!(statuses, [401, 401, 429]);
}

#[tokio::test]
async fn pages_of_the_listed_origins_may_call_and_no_others() {
    let s = Scene::with(&[("BATON__HTTP__CORS_ORIGINS", "https://chat.example.org")]).await;
    let preflight = async |origin: &str| {
        let request = Request::new("OPTIONS", "/api/convos/x")
            .header("Origin", origin)
            .header("Access-Control-Request-Method", "PATCH")
            .header(
                "Access-Control-Request-Headers",
                "authorization,content-type",
            );
        s.send(request).await
    };
    let answer = preflight("https://chat.example.org").await;
    assert_eq!(answer.status, 200);
    let allowed = |name: &str| answer.header(name).unwrap().to_ascii_lowercase();
    assert_eq!(
        allowed("access-control-allow-origin"),
        "https://chat.example.org"
    );
    assert!(allowed("access-control-allow-methods").contains("patch"));
    assert!(allowed("access-control-allow-headers").contains("authorization"));
    for origin in [
        "https://evil.example.org",
        "null",
        "https://chat.example.org.evil",
    ] {
        let answer = preflight(origin).await;
        assert_eq!(
            answer.header("access-control-allow-origin"),
            None,
            "{origin}"
        );
    }
    let error = Request::new("PATCH", "/api/convos/x").header("Origin", "https://chat.example.org");
    let answer = s.send(error).await;
    assert_eq!(answer.status, 401);
    assert_eq!(
        answer.header("access-control-allow-origin"),
        Some("https://chat.example.org")
    );
}

#[tokio::test]
async fn without_origins_no_page_may_call() {
    let s = Scene::new().await;
    let request = s
        .patch(&uuid(), &s.b.id)
        .header("Origin", "https://chat.example.org");
    let answer = s.send(request).await;
    assert_eq!(answer.status, 404);
    assert_eq!(answer.header("access-control-allow-origin"), None);
}
