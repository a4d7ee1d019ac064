//! `baton check` on deployments that are right, and on those that are wrong in one way.

use std::process::{Command, Output};

use mongodb::bson::{Document, doc};

use crate::harness::{LibreChat, Mongod, Topology};

/// What `baton check` says of a deployment, and whether it is content.
struct Verdict {
    content: bool,
    text: String,
}

impl Verdict {
    async fn of(uri: &str, state: &str) -> Self {
        let (uri, state) = (uri.to_owned(), state.to_owned());
        let run = move || {
            Command::new(env!("CARGO_BIN_EXE_baton"))
                .arg("check")
                .current_dir(std::env::temp_dir())
                .env_clear()
                .envs([("MONGO_URI", &uri), ("BATON__STATE__DATABASE", &state)])
                .env("BATON__SWITCH__SERVERS", "switcher")
                .output()
                .unwrap()
        };
        let output: Output = tokio::task::spawn_blocking(run).await.unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let code = output.status.code();
        assert!(matches!(code, Some(0 | 1)), "{code:?}\n{text}");
        Self {
            content: code == Some(0),
            text,
        }
    }

    #[track_caller]
    fn says(&self, words: &str) -> &Self {
        assert!(
            self.text.contains(words),
            "{words:?} is not in:\n{}",
            self.text
        );
        self
    }

    fn fails(&self) -> Vec<&str> {
        let lines = self.text.lines();
        lines.filter(|line| line.starts_with("FAIL")).collect()
    }
}

/// Makes the collections of LibreChat, and its indexes.
async fn librechat(uri: &str) {
    let librechat = LibreChat::start(uri);
    librechat.build_indexes().await;
}

#[tokio::test]
async fn a_good_deployment_is_all_ok_and_left_as_it_was() {
    let db = Mongod::shared().await.db().await;
    librechat(&db.uri).await;
    let verdict = Verdict::of(&db.uri, &db.state).await;
    assert!(verdict.content, "{}", verdict.text);
    let (lines, last) = verdict.text.trim_end().rsplit_once('\n').unwrap();
    for line in lines.lines() {
        assert!(line.starts_with("ok    "), "{line}");
    }
    assert_eq!(last, "All is in order.");
    verdict
        .says("without a login")
        .says("replica set: rs0, of 1 member")
        .says("index {conversationId, user} of conversations: is there")
        .says("change stream, find in 8 collections, update in conversations")
        .says("takes records and indexes");
    let left = db.state_database().list_collection_names().await.unwrap();
    assert!(left.is_empty(), "{left:?}");
}

#[tokio::test]
async fn a_server_that_stands_alone_is_told_how_to_become_a_set() {
    let mongod = Mongod::start(Topology::Standalone).await;
    let uri = mongod.uri("LibreChat");
    librechat(&uri).await;
    for uri in [uri.clone(), format!("{uri}?replicaSet=rs0")] {
        let verdict = Verdict::of(&uri, "baton").await;
        assert_eq!(verdict.fails().len(), 1, "{}", verdict.text);
        verdict
            .says("FAIL  replica set: this MongoDB stands alone")
            .says("--replSet rs0")
            .says("rs.initiate(")
            .says("ok    rights: on LibreChat: find in 8 collections")
            .says("a change stream could not be tried")
            .says("\n1 thing to mend.\n");
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_is_named_without_the_password() {
    let uri = "mongodb://user:hunter2@127.0.0.1:9/LibreChat?replicaSet=rs0";
    let verdict = Verdict::of(uri, "baton").await;
    assert_eq!(verdict.fails().len(), 1, "{}", verdict.text);
    verdict.says("FAIL  MongoDB: no answer from 127.0.0.1:9: Connection refused");
    assert!(!verdict.text.contains("hunter2"), "{}", verdict.text);
}

#[tokio::test]
async fn another_name_of_the_set_is_told() {
    let db = Mongod::shared().await.db().await;
    librechat(&db.uri).await;
    let uri = db.uri.replace("replicaSet=rs0", "replicaSet=other");
    let verdict = Verdict::of(&uri, &db.state).await;
    assert_eq!(verdict.fails().len(), 1, "{}", verdict.text);
    verdict.says("mongodb.uri says replicaSet=other, and the set is called rs0");
}

#[tokio::test]
async fn a_database_that_is_not_librechats_is_told_and_its_own_named() {
    let mongod = Mongod::start(Topology::ReplicaSet).await;
    let verdict = Verdict::of(&mongod.uri("test"), "baton").await;
    verdict
        .says("FAIL  LibreChat: test has no conversations, messages, agents, users")
        .says("Start LibreChat once");
    librechat(&mongod.uri("Chat")).await;
    let verdict = Verdict::of(&mongod.uri("test"), "baton").await;
    assert_eq!(verdict.fails().len(), 1, "{}", verdict.text);
    verdict.says("LibreChat's are in Chat: set mongodb.database to it.");
}

#[tokio::test]
async fn a_missing_index_is_a_warning_with_the_command_that_makes_it() {
    let db = Mongod::shared().await.db().await;
    for name in ["conversations", "messages", "agents", "users"] {
        db.database().create_collection(name).await.unwrap();
    }
    let verdict = Verdict::of(&db.uri, &db.state).await;
    assert!(verdict.content, "{}", verdict.text);
    verdict
        .says("warn  index {messageId} of messages: is not there")
        .says(".messages.createIndex({messageId: 1})");
}

#[tokio::test]
async fn calls_of_a_server_that_is_not_trusted_are_told() {
    let db = Mongod::shared().await.db().await;
    librechat(&db.uri).await;
    let call = |name: &str| doc! { "type": "tool_call", "tool_call": { "name": name } };
    let response = doc! {
        "messageId": "m", "content": [
            call("switch_agent_mcp_switcher"), call("switch_agent_mcp_stranger"), call("other"),
        ],
    };
    let messages = db.database().collection::<Document>("messages");
    messages.insert_one(response).await.unwrap();
    let verdict = Verdict::of(&db.uri, &db.state).await;
    assert!(verdict.content, "{}", verdict.text);
    verdict
        .says("calls of switch_agent by MCP server `stranger` were seen")
        .says("BATON__SWITCH__SERVERS=switcher,stranger")
        .says("\nNothing to mend, 1 warning.\n");
}

#[tokio::test]
async fn rights_are_tried_and_the_commands_that_are_told_grant_them() {
    let mongod = Mongod::start(Topology::ReplicaSetWithUsers).await;
    librechat(&mongod.uri("LibreChat")).await;
    let admin = mongod.client().await.database("admin");
    let run = async |command: Document| admin.run_command(command).await.unwrap();
    run(doc! { "createUser": "baton", "pwd": "hunter2", "roles": [] }).await;

    let wrong = mongod.uri_as(Some(("baton", "hunter3")), "LibreChat");
    let verdict = Verdict::of(&wrong, "baton").await;
    assert_eq!(verdict.fails().len(), 1, "{}", verdict.text);
    verdict.says("does not let baton in").says("authSource");
    assert!(!verdict.text.contains("hunter"), "{}", verdict.text);

    let anonymous = Verdict::of(&mongod.uri_as(None, "LibreChat"), "baton").await;
    assert_eq!(anonymous.fails().len(), 1, "{}", anonymous.text);
    anonymous
        .says("The server wants a login")
        .says("createUser");

    let uri = mongod.uri_as(Some(("baton", "hunter2")), "LibreChat");
    let verdict = Verdict::of(&uri, "baton").await;
    assert_eq!(verdict.fails().len(), 1, "{}", verdict.text);
    verdict
        .says("change stream on LibreChat")
        .says("update in LibreChat.conversations")
        .says("write to baton")
        .says("grantRolesToUser(\"baton\", [{role: \"baton\", db: \"admin\"}])");

    // As the verdict says, less the shell.
    run(doc! {
        "createRole": "baton",
        "roles": [
            { "role": "read", "db": "LibreChat" },
            { "role": "readWrite", "db": "baton" },
        ],
        "privileges": [{
            "resource": { "db": "LibreChat", "collection": "conversations" },
            "actions": ["update"],
        }],
    })
    .await;
    run(doc! { "grantRolesToUser": "baton", "roles": [{ "role": "baton", "db": "admin" }] }).await;
    let verdict = Verdict::of(&uri, "baton").await;
    assert!(verdict.content, "{}", verdict.text);
    verdict
        .says("lets Baton in, as baton of admin")
        .says("oplog: not readable for this user, which is fine");
}
