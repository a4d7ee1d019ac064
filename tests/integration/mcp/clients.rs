//! Clients that others have written: of the TypeScript SDK, which LibreChat uses, of the Python
//! SDK, and rmcp's.

use std::collections::HashMap;
use std::path::PathBuf;
use std::process::Command;

use baton::switch::record::Status;
use rmcp::ServiceExt;
use rmcp::model::CallToolRequestParams;
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use serde_json::{Value, json};

use super::{Called, Scene, TOKEN, Wiring, headers, to};
use crate::harness::{Turn, parts};

fn folder() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests", "mcp"]
        .iter()
        .collect()
}

fn python() -> String {
    let venv = "/.cache/mcp-client/venv/bin/python";
    format!("{}{venv}", env!("CARGO_MANIFEST_DIR"))
}

/// Lets a program call a tool.
async fn run(s: &Scene, program: &str, script: &str, turn: &Turn, wiring: Wiring) -> Called {
    let mut all: HashMap<_, _> = headers(wiring, turn).into_iter().collect();
    all.insert("Authorization", format!("Bearer {TOKEN}"));
    let asked = json!({
        "url": format!("http://{}/mcp", s.baton.address()),
        "headers": all, "tool": "switch_agent", "arguments": to(&s.b),
    });
    let mut command = Command::new(program);
    command.arg(folder().join(script)).arg(asked.to_string());
    let done = tokio::task::spawn_blocking(move || command.output())
        .await
        .unwrap()
        .unwrap();
    assert!(
        done.status.success(),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
    let said: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(said["tools"], json!(["switch_agent", "list_agents"]));
    read(&said["answer"])
}

fn read(answer: &Value) -> Called {
    let text = answer["content"][0]["text"].as_str().unwrap().to_owned();
    Called {
        json: serde_json::from_str(&text).unwrap(),
        is_error: answer["isError"] == true,
        text,
    }
}

async fn lasts(s: &Scene, turn: &Turn, called: Called) {
    turn.finish(&[called.succeeded().part(), parts::text("Done")])
        .await;
    s.ends(turn, Status::Settled).await;
    s.names(turn, &s.b).await;
}

fn install() {
    let installed = Command::new(folder().join("install")).status().unwrap();
    assert!(
        installed.success(),
        "the MCP clients could not be installed"
    );
}

#[tokio::test]
async fn the_client_of_the_typescript_sdk() {
    install();
    for wiring in [Wiring::Request, Wiring::User] {
        let s = Scene::new().await;
        let turn = s.begun().await;
        let called = run(&s, "node", "client.mjs", &turn, wiring).await;
        lasts(&s, &turn, called).await;
    }
}

#[tokio::test]
async fn the_client_of_the_python_sdk() {
    install();
    let s = Scene::new().await;
    let turn = s.begun().await;
    let called = run(&s, &python(), "client.py", &turn, Wiring::Request).await;
    lasts(&s, &turn, called).await;
}

#[tokio::test]
async fn the_client_of_rmcp() {
    let s = Scene::new().await;
    let turn = s.begun().await;
    let url = format!("http://{}/mcp", s.baton.address());
    let all = headers(Wiring::Request, &turn)
        .into_iter()
        .map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
    let config = StreamableHttpClientTransportConfig::with_uri(url)
        .auth_header(TOKEN)
        .custom_headers(all.collect());
    let client = ().serve(StreamableHttpClientTransport::from_config(config)).await.unwrap();
    assert_eq!(client.list_all_tools().await.unwrap().len(), 2);
    let arguments = to(&s.b).as_object().unwrap().clone();
    let call = CallToolRequestParams::new("switch_agent").with_arguments(arguments);
    let answer = client.call_tool(call).await.unwrap();
    lasts(&s, &turn, read(&serde_json::to_value(answer).unwrap())).await;
    client.cancel().await.unwrap();
}
