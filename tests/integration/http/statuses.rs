//! Every status, and that each error is JSON which says what is wrong.

use serde_json::{Value, json};

use super::{Scene, claims};
use crate::harness::{Answer, Request, uuid};

impl Scene {
    fn somewhere() -> String {
        format!("/api/convos/{}", uuid())
    }

    async fn patch_with(&self, token: &str) -> Answer {
        let body = json!({ "agent_id": self.b.id });
        self.send(
            Request::new("PATCH", &Self::somewhere())
                .token(token)
                .json(&body),
        )
        .await
    }

    async fn sign(&self, more: Value) -> String {
        let payload = serde_json::from_value(claims(&self.user, more)).unwrap();
        self.librechat.signed(payload).await
    }
}

#[tokio::test]
async fn a_body_that_is_not_what_it_should_be_is_400_and_names_the_field() {
    let s = Scene::new().await;
    for (body, says) in [
        ("", "the body"),
        ("{", "the body"),
        ("[]", "the body"),
        ("null", "the body"),
        ("{}", "agent_id"),
        (r#"{"agent_id":""}"#, "agent_id"),
        (r#"{"agent_id":null}"#, "agent_id"),
        (r#"{"agent_id":5}"#, "agent_id"),
        (r#"{"agent_id":["agent_a"]}"#, "agent_id"),
        (r#"{"agent_id":{"$ne":null}}"#, "agent_id"),
        (r#"{"agent_id":"agent_a","agent_id":"agent_b"}"#, "agent_id"),
        (r#"{"agent_id":"agent_a","title":"x"}"#, "title"),
        (r#"{"agent_id":"agent_a"} {}"#, "the body"),
    ] {
        let request = Request::new("PATCH", &Scene::somewhere())
            .token(&s.token)
            .header("Content-Type", "application/json")
            .body(body);
        let answer = s.send(request).await;
        assert_eq!(answer.status, 400, "{body}: {answer:?}");
        assert!(answer.error().contains(says), "{body}: {}", answer.error());
    }
    let long = "a".repeat(300);
    let answer = s.send(s.patch(&uuid(), &long)).await;
    assert_eq!(answer.status, 400);
    assert!(answer.error().starts_with("agent_id: "));
}

#[tokio::test]
async fn what_does_not_show_whose_it_is_is_401() {
    let s = Scene::new().await;
    let body = json!({ "agent_id": s.b.id });
    let bare = || Request::new("PATCH", &Scene::somewhere()).json(&body);
    for request in [
        bare(),
        bare().header("Authorization", ""),
        bare().header("Authorization", &s.token),
        bare().header("Authorization", "Basic dXNlcjpwYXNz"),
        bare().header("Authorization", "Bearer"),
        bare()
            .token("")
            .header("Cookie", &format!("token={}", s.token)),
        bare().token(&s.token).token(&s.token),
    ] {
        let answer = s.send(request.clone()).await;
        assert_eq!(answer.status, 401, "{request:?}");
        assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
        answer.error();
    }
    let lower = bare().header("Authorization", &format!("bearer  {}", s.token));
    assert_eq!(
        s.send(lower).await.status,
        404,
        "the scheme's case does not matter"
    );
}

#[tokio::test]
async fn a_token_that_is_not_a_sessions_is_401() {
    let s = Scene::new().await;
    let now = super::now();
    let gone = mongodb::bson::oid::ObjectId::new().to_hex();
    for (more, says) in [
        (json!({ "exp": now - 31 }), "expired"),
        (json!({ "exp": null }), "no expiry"),
        (json!({ "nbf": now + 100 }), "not valid yet"),
        (
            json!({ "id": null, "userId": s.user.hex(), "twoFAPending": true }),
            "not valid",
        ),
        (json!({ "twoFAPending": true }), "not one of a session"),
        (json!({ "id": null, "user": s.user.hex() }), "not valid"),
        (json!({ "scope": "agent_trigger" }), "not one of a session"),
        (json!({ "id": "me" }), "names no user"),
        (json!({ "id": { "$ne": null } }), "not valid"),
        (json!({ "id": [s.user.hex()] }), "not valid"),
        (json!({ "id": gone }), "does not exist"),
    ] {
        let answer = s.patch_with(&s.sign(more.clone()).await).await;
        assert_eq!(answer.status, 401, "{more}: {answer:?}");
        assert!(answer.error().contains(says), "{more}: {}", answer.error());
    }
    for more in [
        json!({}),
        json!({ "exp": now - 20 }),
        json!({ "id": s.user.hex().to_uppercase() }),
    ] {
        let answer = s.patch_with(&s.sign(more.clone()).await).await;
        assert_eq!(answer.status, 404, "{more}: {answer:?}");
    }
}

#[tokio::test]
async fn the_system_tenant_is_403() {
    let s = Scene::new().await;
    let filter = mongodb::bson::doc! { "_id": s.user.id };
    let set = mongodb::bson::doc! { "$set": { "tenantId": "__SYSTEM__" } };
    s.db.collection("users")
        .update_one(filter, set)
        .await
        .unwrap();
    let answer = s.patch_with(&s.token).await;
    assert_eq!(answer.status, 403, "{answer:?}");
    answer.error();
}

#[tokio::test]
async fn paths_and_methods_that_are_not_there_are_404_and_405() {
    let s = Scene::new().await;
    for (method, path, status) in [
        ("GET", "/", 404),
        ("GET", "/api", 404),
        ("PATCH", "/api/convos", 404),
        ("PATCH", "/api/convos/", 404),
        ("PATCH", "/api/convos/a/b", 404),
        ("GET", "/api/convos/a", 405),
        ("POST", "/api/convos/a", 405),
        ("DELETE", "/api/convos/a", 405),
        ("BREW", "/api/convos/a", 405),
        ("OPTIONS", "/api/convos/a", 405),
        ("PATCH", "/api/convos/a/switches", 405),
        ("POST", "/metrics", 405),
    ] {
        let answer = s.send(Request::new(method, path).token(&s.token)).await;
        assert_eq!(answer.status, status, "{method} {path}");
        answer.error();
    }
}

#[tokio::test]
async fn a_body_that_is_too_long_is_413_and_the_client_can_read_it() {
    let s = Scene::new().await;
    for length in [16 * 1024 + 1, 100_000, 900_000] {
        for token in [s.token.as_str(), "no token at all"] {
            let request = Request::new("PATCH", &Scene::somewhere())
                .token(token)
                .header("Content-Type", "application/json")
                .body(" ".repeat(length));
            let answer = s.send(request).await;
            assert_eq!(answer.status, 413, "{length}: {answer:?}");
            answer.error();
        }
    }
    let padded = format!("{{\"agent_id\":\"agent_a\"}}{}", " ".repeat(16 * 1024 - 30));
    let request = Request::new("PATCH", &Scene::somewhere())
        .token(&s.token)
        .header("Content-Type", "application/json")
        .body(padded);
    assert_eq!(s.send(request).await.status, 404);
}

#[tokio::test]
async fn a_client_that_asks_before_it_sends_too_much_is_told_at_once() {
    let s = Scene::new().await;
    let request = Request::new("PATCH", &Scene::somewhere())
        .token(&s.token)
        .header("Content-Type", "application/json")
        .header("Content-Length", "1000000")
        .header("Expect", "100-continue");
    let answer = s.send(request).await;
    assert_eq!(answer.status, 413, "{answer:?}");
}

#[tokio::test]
async fn a_body_without_a_length_is_bounded_too() {
    let s = Scene::new().await;
    let chunk = format!("{:x}\r\n{}\r\n", 10_000, " ".repeat(10_000));
    let request = Request::new("PATCH", &Scene::somewhere())
        .token(&s.token)
        .header("Content-Type", "application/json")
        .header("Transfer-Encoding", "chunked")
        .body(chunk.repeat(5) + "0\r\n\r\n");
    assert_eq!(s.send(request).await.status, 413);
}

#[tokio::test]
async fn a_body_that_is_not_json_is_415() {
    let s = Scene::new().await;
    let body = json!({ "agent_id": s.b.id }).to_string();
    for kind in ["text/plain", "application/x-www-form-urlencoded", ""] {
        let request = Request::new("PATCH", &Scene::somewhere())
            .token(&s.token)
            .header("Content-Type", kind)
            .body(body.clone());
        let answer = s.send(request).await;
        assert_eq!(answer.status, 415, "{kind:?}");
        answer.error();
    }
    let none = Request::new("PATCH", &Scene::somewhere())
        .token(&s.token)
        .body(body);
    assert_eq!(s.send(none).await.status, 415);
}

#[tokio::test]
async fn without_the_secret_nobody_is_let_in() {
    let s = Scene::with(&[("JWT_SECRET", "")]).await;
    let answer = s.patch_with(&s.token).await;
    assert_eq!(answer.status, 503, "{answer:?}");
    assert!(answer.error().contains("auth.jwt_secret"));
}
