//! `deploy/compose/docker-compose.override.yml`: merged by Docker Compose itself, and its steps run.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use mongodb::bson::{Document, doc};
use serde_json::{Value, json};
use tokio::task::block_in_place;

use crate::harness::{Baton, Mongod, Topology, free_address, holds, tools};

const VARIABLES: &str = "PORT=3333\nUID=1000\nGID=1000\nJWT_SECRET=a-secret\n\
    BATON_MCP_TOKEN=0123456789abcdef0123456789abcdef\n\
    BATON_OPS_TOKEN=fedcba9876543210fedcba9876543210\n";

/// What Compose makes of both files, with a profile or none.
fn merged(profiles: &[&str]) -> Value {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = tempfile::tempdir().unwrap();
    let put = |from: &str| {
        let name = Path::new(from).file_name().unwrap();
        fs::copy(root.join(from), folder.path().join(name)).unwrap();
    };
    // Side by side, as in LibreChat's folder: Compose finds both by their names.
    put("tests/deploy/compose/docker-compose.yml");
    put("deploy/compose/docker-compose.override.yml");
    fs::write(folder.path().join(".env"), VARIABLES).unwrap();
    let flags = profiles.iter().flat_map(|profile| ["--profile", profile]);
    let answer = Command::new(tools::tool("docker-compose"))
        .args(flags)
        .args(["config", "--format", "json"])
        .current_dir(&folder)
        .env_remove("COMPOSE_FILE")
        .env_remove("COMPOSE_PROFILES")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&answer.stderr);
    assert!(answer.status.success() && said.is_empty(), "{said}");
    serde_json::from_slice(&answer.stdout).unwrap()
}

#[test]
fn what_librechat_has_stays_and_what_baton_needs_comes_to_it() {
    let all = merged(&[]);
    let services = &all["services"];
    let mongodb = &services["mongodb"];
    assert_eq!(
        mongodb["command"],
        json!(["mongod", "--noauth", "--replSet", "rs0", "--bind_ip_all"])
    );
    assert_eq!(mongodb["volumes"][0]["target"], "/data/db");
    assert_eq!(mongodb["user"], "1000:1000");
    let api = &services["api"];
    assert_eq!(api["environment"]["HOST"], "0.0.0.0");
    assert_eq!(
        api["environment"]["MONGO_URI"],
        "mongodb://mongodb:27017/LibreChat?replicaSet=rs0"
    );
    assert_eq!(api["ports"][0]["published"], "3333");
    let waits = |of: &str, on: &str| services[of]["depends_on"][on]["condition"].clone();
    assert_eq!(waits("api", "mongodb"), "service_healthy");
    assert_eq!(waits("api", "other"), "service_started");
    assert_eq!(waits("baton", "mongodb"), "service_healthy");
    // The port can act for any user, with the MCP token.
    assert_eq!(services["baton"]["ports"][0]["host_ip"], "127.0.0.1");
    assert_eq!(services["gateway"], Value::Null);
    let gateway = &merged(&["gateway"])["services"]["gateway"];
    assert_eq!(
        gateway["environment"]["BATON__LIBRECHAT__URL"],
        "http://api:3333"
    );
    for service in [&services["baton"], gateway] {
        assert_eq!(service["read_only"], true);
        assert_eq!(service["cap_drop"], json!(["ALL"]));
    }
}

/// Runs a health check as Docker would; whether the service is well.
fn is_well(check: &Value, shell: &Path, port: u16) -> bool {
    let words: Vec<&str> = check["test"].as_array().unwrap().iter().map(word).collect();
    let ["CMD", "mongosh", arguments @ ..] = words.as_slice() else {
        panic!("{check}");
    };
    let here = format!("127.0.0.1:{port}");
    // The shell is told where, and the member's name: in the container both are the defaults.
    let arguments = arguments
        .iter()
        .map(|word| word.replace("mongodb:27017", &here));
    let home = tempfile::tempdir().unwrap();
    let run = Command::new(shell)
        .arg(format!("mongodb://{here}/?directConnection=true"))
        .args(arguments)
        .env("HOME", home.path())
        .output()
        .unwrap();
    println!("{}", String::from_utf8_lossy(&run.stderr));
    run.status.success()
}

fn word(value: &Value) -> &str {
    value.as_str().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_health_check_makes_a_set_of_a_server_with_data() {
    let all = merged(&["gateway"]);
    let services = &all["services"];
    let mongod = Mongod::start(Topology::Standalone).await;
    let db = mongod.db().await;
    let saved = doc! { "_id": 1, "conversationId": "from before", "user": "somebody" };
    db.conversations().insert_one(&saved).await.unwrap();

    let command = services["mongodb"]["command"].as_array().unwrap();
    let arguments: Vec<&str> = command.iter().map(word).collect();
    // All but where it listens, which is this test's affair.
    let arguments = &arguments[1..arguments.len() - 1];
    mongod.restart_with(arguments).await;
    let shell = tools::npm("deploy").join("node_modules/.bin/mongosh");
    let check = || is_well(&services["mongodb"]["healthcheck"], &shell, mongod.port());
    holds("the server is well", async || block_in_place(check)).await;
    let config = version(&mongod).await;
    assert!(check(), "once more");
    assert_eq!(version(&mongod).await, config);
    let found = db.conversations().find_one(doc! {}).await.unwrap();
    assert_eq!(found, Some(saved));

    // Baton, as the file sets it up, works on it.
    for (service, path) in [("baton", "/ops/login"), ("gateway", "/ops/login")] {
        let environment = environment(&services[service]["environment"]);
        let environment: Vec<_> = (environment.iter())
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        let baton = Baton::start_with(&db, &environment).await;
        assert_eq!(baton.get(path).await.unwrap().0, 200, "{service}");
    }
}

/// The replica set's configuration has a version, which each change makes greater.
async fn version(mongod: &Mongod) -> Document {
    let admin = mongod.client().await.database("admin");
    let answer = admin.run_command(doc! { "replSetGetConfig": 1 }).await;
    answer.unwrap().get_document("config").unwrap().clone()
}

/// A service's environment, less the addresses, which are those of its network.
fn environment(of: &Value) -> HashMap<String, String> {
    let mut all: HashMap<String, String> = serde_json::from_value(of.clone()).unwrap();
    all.remove("MONGO_URI").unwrap();
    all.remove("BATON__HTTP__LISTEN").unwrap();
    if let Some(ops) = all.get_mut("BATON__OPS__LISTEN") {
        *ops = free_address().to_string();
    }
    all
}
