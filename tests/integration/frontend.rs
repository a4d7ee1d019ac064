//! `deploy/frontend/baton.js` in Debian's Chromium, against the real program.

use std::path::Path;
use std::process::Command;

use axum::body::Body;
use axum::http::Response;
use baton::switch::record::Origin;
use mongodb::bson::doc;
use serde_json::{Value, json};

use crate::harness::{Baton, JWT_SECRET, LibreChat, Mongod, Turn, Upstream, parts, tools};

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Chromium: make test-full"]
async fn a_page_of_ones_own_follows_a_switch() {
    let db = Mongod::shared().await.db().await;
    let librechat = LibreChat::on(&db);
    librechat.seed_roles().await;
    let user = librechat.user().await;
    let (a, b) = (
        librechat.agent(&user, "A").await,
        librechat.agent(&user, "B").await,
    );
    let strangers = librechat.agent(&librechat.user().await, "Strange").await;
    let turn = Turn::first(&librechat, &user, &a);
    turn.run_plain().await;

    let streams = [
        ("/plain", stream(&turn, &[])),
        (
            "/refused",
            stream(&turn, &[call(&strangers.id, &turn.conversation)]),
        ),
        (
            "/other",
            stream(&turn, &[call(&b.id, "another conversation")]),
        ),
        ("/switch", stream(&turn, &[call(&b.id, &turn.conversation)])),
    ];
    let paths: Vec<&str> = streams.iter().map(|(path, _)| *path).collect();
    let served = streams.clone();
    let page = Upstream::start(move |seen| {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let (kind, body) = match seen.uri.path() {
            "/" => ("text/html", read(&root.join("tests/frontend/page.html"))),
            "/baton.js" => (
                "text/javascript",
                read(&root.join("deploy/frontend/baton.js")),
            ),
            path => {
                let stream = served.iter().find(|(served, _)| *served == path);
                let body = stream.map(|(_, body)| body.clone()).unwrap_or_default();
                ("text/event-stream", body)
            }
        };
        Response::builder()
            .header("content-type", kind)
            .body(Body::from(body))
            .unwrap()
    })
    .await;
    let origin = page.url();
    let settings = [
        ("JWT_SECRET", JWT_SECRET),
        ("BATON__HTTP__CORS_ORIGINS", origin.as_str()),
    ];
    let baton = Baton::start_with(&db, &settings).await;
    let address = format!(
        "{origin}/?baton=http://{}&token={}&conversation={}&agent={}",
        baton.address(),
        librechat.token(&user).await,
        turn.conversation,
        a.id
    );
    let turns = tokio::task::spawn_blocking({
        let paths: Vec<String> = paths.iter().map(|path| (*path).to_owned()).collect();
        move || drive(&address, &paths)
    })
    .await
    .unwrap();
    let active: Vec<&Value> = turns.iter().map(|turn| &turn["shown"]).collect();
    assert_eq!(active, [&a.id, &a.id, &a.id, &b.id], "{turns:?}");
    assert_eq!(turns[1]["status"], 422, "{turns:?}");
    assert!(turns.iter().all(|turn| turn["events"] == 3), "{turns:?}");
    assert_eq!(turn.agent_now(&db).await.as_deref(), Some(b.id.as_str()));
    let record = db.switches().find_one(doc! { "to_agent": &b.id }).await;
    let record = record.unwrap().unwrap();
    assert_eq!(record.get_str("origin").unwrap(), Origin::Api.to_string());
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

/// A tool call as the event of a finished step has it.
fn call(agent: &str, conversation: &str) -> Value {
    json!({
        "id": "call_1", "name": parts::TOOL, "args": "{}", "type": "tool_call",
        "output": parts::success(agent, conversation),
    })
}

/// A turn's events, in every way to end a line.
fn stream(turn: &Turn, calls: &[Value]) -> String {
    let step = json!({
        "event": "on_run_step_completed",
        "data": { "result": { "tool_call": calls.first() } },
    });
    let content: Vec<Value> = calls
        .iter()
        .map(|call| json!({ "type": "tool_call", "tool_call": call }))
        .collect();
    let end = json!({
        "final": true, "conversation": { "conversationId": turn.conversation },
        "responseMessage": { "content": content },
    });
    let created = json!({ "created": true, "message": { "conversationId": turn.conversation } });
    format!(
        ": hello\n\nevent: message\ndata: {created}\n\nevent: message\r\ndata: {step}\r\n\r\nevent: message\rdata: {end}\r\r"
    )
}

fn drive(address: &str, paths: &[String]) -> Vec<Value> {
    let folder = tools::npm("frontend");
    let driven = Command::new("node")
        .arg("drive.mjs")
        .arg(address)
        .args(paths)
        .current_dir(&folder)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&driven.stderr);
    assert!(driven.status.success(), "{errors}");
    serde_json::from_slice(&driven.stdout).unwrap()
}
