//! The API's own description, and that the API is as it says.

use std::path::Path;
use std::process::{Command, ExitStatus};

use serde_json::Value;

use super::Scene;
use crate::harness::Request;

#[tokio::test]
async fn it_describes_what_is_there() {
    let s = Scene::new().await;
    let answer = s
        .send(Request::new("GET", "/api/convos/openapi.json"))
        .await;
    assert_eq!(answer.status, 200);
    let document = answer.json();
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1"));
    for (path, method) in [
        ("/api/convos/{conversationId}", "patch"),
        ("/api/convos/{conversationId}/switches", "get"),
    ] {
        let operation = &document["paths"][path][method];
        let responses = operation["responses"].as_object().unwrap();
        for status in [200, 400, 401, 403, 404, 408, 413, 415, 422, 429, 503] {
            assert!(
                responses.contains_key(&status.to_string()),
                "{method} {status}"
            );
        }
        assert_ne!(operation["security"], Value::Null);
    }
}

#[tokio::test]
#[ignore = "fetches schemathesis; `make openapi` runs it"]
async fn it_is_as_schemathesis_finds_it() {
    let s = Scene::with(&[("BATON__HTTP__RATE_LIMIT", "off")]).await;
    let turn = s.conversation().await;
    for agent in [&s.b, &s.c, &s.a] {
        s.chosen(&turn, agent).await;
    }
    // What the schema allows may still be no agent of the user's, or no conversation.
    let checks = "[checks.positive_data_acceptance]\nexpected-statuses = [200, 404, 422]\n";
    let known = format!("[parameters]\nconversationId = \"{}\"\n", turn.conversation);
    for settings in [known + checks, checks.to_owned()] {
        let run = schemathesis(&s, &settings);
        let status = tokio::task::spawn_blocking(run).await.unwrap();
        assert!(status.success());
    }
}

fn schemathesis(s: &Scene, settings: &str) -> impl FnOnce() -> ExitStatus + use<> {
    let url = format!("http://{}", s.baton.address());
    let token = format!("Authorization: Bearer {}", s.token);
    let settings = settings.to_owned();
    move || {
        // What it remembers of a run is none of the next one's business.
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("schemathesis.toml"), settings).unwrap();
        Command::new(program())
            .current_dir(folder.path())
            .args(["run", &format!("{url}/api/convos/openapi.json")])
            .args(["--url", &url, "--header", &token, "--no-color"])
            .args(["--checks", "all", "--max-examples", "100", "--seed", "1"])
            .args(["--phases", "examples,coverage,fuzzing"])
            .status()
            .unwrap()
    }
}

fn program() -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tools/schemathesis");
    let output = Command::new(script).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}
