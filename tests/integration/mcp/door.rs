//! Who may ask, and what is answered to everybody else.

use std::time::{Duration, Instant};

use serde_json::json;

use super::{Scene, TOKEN, Wiring, called, headers, rpc, send, to};
use crate::harness::{Baton, LibreChat, Mongod, Request, Turn};

#[tokio::test]
async fn without_a_token_in_the_settings_there_is_no_such_path() {
    let db = Mongod::shared().await.db().await;
    let baton = Baton::start(&db).await;
    let answer = rpc("ping", &json!({}))
        .token(TOKEN)
        .send(baton.address())
        .await;
    assert_eq!(answer.status, 404);
}

#[tokio::test]
async fn only_a_post_with_the_token_is_let_in() {
    let s = Scene::new().await;
    let address = s.baton.address();
    let ping = || rpc("ping", &json!({}));
    for request in [
        ping(),
        ping().token("wrong"),
        ping().header("Authorization", TOKEN),
    ] {
        let answer = request.send(address).await;
        assert_eq!(answer.status, 401);
        // LibreChat takes this header for OAuth.
        assert_eq!(answer.header("www-authenticate"), None);
    }
    for method in ["GET", "HEAD", "DELETE", "PUT", "OPTIONS"] {
        for request in [
            Request::new(method, "/mcp"),
            Request::new(method, "/mcp").token(TOKEN),
        ] {
            assert_eq!(request.send(address).await.status, 405, "{method}");
        }
    }
    assert_eq!(ping().token(TOKEN).send(address).await.status, 200);
    let foreign = ping().token(TOKEN).header("Origin", "https://example.org");
    assert_eq!(foreign.send(address).await.status, 403);
    let probe = Request::new("POST", "/mcp").json(&json!({}));
    assert_eq!(probe.send(address).await.status, 401);
}

#[tokio::test]
async fn what_is_no_call_is_refused_and_harms_nothing() {
    let s = Scene::new().await;
    let address = s.baton.address();
    let post = |body: &str| {
        Request::new("POST", "/mcp")
            .token(TOKEN)
            .header("Accept", "application/json, text/event-stream")
            .header("Content-Type", "application/json")
            .body(body)
    };
    for body in ["", "{", "[]", "null", r#"{"jsonrpc":"2.0"}"#] {
        let answer = post(body).send(address).await;
        assert!((400..500).contains(&answer.status), "{body}: {answer:?}");
    }
    let long = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"{}"}}"#,
        "a".repeat(70_000)
    );
    assert_eq!(post(&long).send(address).await.status, 413);
    let unknown = rpc("tools/call", &json!({ "name": "rm", "arguments": {} })).token(TOKEN);
    assert!(unknown.send(address).await.json()["error"]["message"].is_string());
}

#[tokio::test]
async fn what_the_tools_are_is_told_without_a_database() {
    let db = Mongod::shared().await.db().await;
    let dead = "mongodb://127.0.0.1:9/LibreChat?replicaSet=rs0&serverSelectionTimeoutMS=1000";
    let environment = [("BATON__MCP__TOKEN", TOKEN), ("MONGO_URI", dead)];
    let baton = Baton::launch(&db, &environment);
    crate::harness::holds("baton listens", async || {
        baton.get("/livez").await.is_some()
    })
    .await;
    let initialize = json!({
        "protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": { "name": "test", "version": "1" },
    });
    let begun = Instant::now();
    let answer = rpc("initialize", &initialize)
        .token(TOKEN)
        .send(baton.address())
        .await;
    assert_eq!(answer.json()["result"]["serverInfo"]["name"], "baton");
    let answer = rpc("tools/list", &json!({}))
        .token(TOKEN)
        .send(baton.address())
        .await;
    assert!(begun.elapsed() < Duration::from_secs(1));
    let tools = answer.json()["result"]["tools"].as_array().unwrap().clone();
    let names: Vec<_> = tools
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["switch_agent", "list_agents"]);
    assert!(
        tools[0]["description"]
            .as_str()
            .unwrap()
            .contains("permanently")
    );

    // A call is answered too, if only with a failure.
    let librechat = LibreChat::on(&db);
    let user = librechat.user().await;
    let agent = librechat.agent(&user, "A").await;
    let turn = Turn::first(&librechat, &user, &agent);
    for wiring in [Wiring::Request, Wiring::User] {
        let begun = Instant::now();
        let answer = send(&baton, &headers(wiring, &turn), "switch_agent", to(&agent)).await;
        assert!(begun.elapsed() < Duration::from_secs(5));
        let answer = called(&answer);
        assert!(answer.message().contains("try again"), "{answer:?}");
    }
}
