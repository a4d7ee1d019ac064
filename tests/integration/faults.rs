//! Baton where MongoDB is wrong, away, slow or new, with a real server.

use std::process::{Command, Output};
use std::time::Duration;

use baton::librechat::tool_call::fingerprint;
use baton::switch::record::{Status, Switch};
use mongodb::bson::oid::ObjectId;
use mongodb::bson::{DateTime, Document, RawDocumentBuf, doc};

use crate::harness::{
    Agent, Baton, LibreChat, Mongod, TestDb, Topology, Turn, User, eventually, free_address, holds,
    parts, uuid,
};

const TRUST: (&str, &str) = ("BATON__SWITCH__SERVERS", "switcher");

/// The exit code and the log of a `baton run` that ends of its own accord.
async fn run(uri: String, state: String) -> (Option<i32>, String) {
    let run = move || {
        // Not for ever, should it go on.
        Command::new("/usr/bin/timeout")
            .args(["60", env!("CARGO_BIN_EXE_baton"), "run"])
            .current_dir(env!("CARGO_TARGET_TMPDIR"))
            .env_clear()
            .env("MONGO_URI", uri)
            .env("BATON__STATE__DATABASE", state)
            .env("BATON__HTTP__LISTEN", free_address().to_string())
            .output()
            .unwrap()
    };
    let output: Output = tokio::task::spawn_blocking(run).await.unwrap();
    let log =
        String::from_utf8(output.stderr).unwrap() + &String::from_utf8(output.stdout).unwrap();
    (output.status.code(), log)
}

#[track_caller]
fn ends_with_a_remedy((code, log): &(Option<i32>, String), remedy: &str) {
    assert_eq!(*code, Some(1), "{log}");
    assert!(log.contains(remedy), "{remedy:?} is not in:\n{log}");
    assert!(!log.contains("only-for-tests"), "a password:\n{log}");
}

#[tokio::test]
async fn a_standalone_server_ends_it_with_what_to_do() {
    let mongod = Mongod::start(Topology::Standalone).await;
    let db = mongod.db().await;
    let ended = run(db.uri.clone(), db.state.clone()).await;
    ends_with_a_remedy(&ended, "make it a replica set");

    // To the driver there is no such server.
    let uri = format!("{}?replicaSet=rs0", db.uri);
    let ended = run(uri, db.state.clone()).await;
    ends_with_a_remedy(&ended, "this MongoDB stands alone");
}

#[tokio::test]
async fn another_name_of_the_set_ends_it_with_what_to_do() {
    let db = Mongod::shared().await.db().await;
    let uri = db.uri.replace("replicaSet=rs0", "replicaSet=other");
    let ended = run(uri, db.state.clone()).await;
    let remedy = "replicaSet=other, and the set is called rs0: write replicaSet=rs0";
    ends_with_a_remedy(&ended, remedy);
}

#[tokio::test]
async fn a_database_that_is_not_librechats_is_doubted_at_the_start() {
    let mongod = Mongod::start(Topology::ReplicaSet).await;
    LibreChat::start(&mongod.uri("Chat")).build_indexes().await;
    let db = mongod.db().await;
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let _baton = Baton::start_logged(&db, &[], &log).await;
    holds("it says where LibreChat's are", async || {
        let log = std::fs::read_to_string(&log).unwrap();
        log.contains("LibreChat's are in Chat: set mongodb.database to it.")
    })
    .await;
}

#[tokio::test]
async fn a_set_that_is_not_made_yet_is_waited_for_with_what_to_do() {
    let mongod = Mongod::start(Topology::Uninitiated).await;
    let db = mongod.db().await;
    let baton = Baton::launch(&db, &[]);
    holds("it says what to do", async || {
        let ready = baton.get("/readyz").await;
        ready.is_some_and(|(status, text)| status == 503 && text.contains("rs.initiate("))
    })
    .await;
    mongod.initiated().await;
    baton.ready().await;
}

#[tokio::test]
async fn wrong_credentials_and_missing_rights_end_it_with_what_to_do() {
    let mongod = Mongod::start(Topology::ReplicaSetWithUsers).await;
    let db = mongod.db().await;
    let uri = mongod.uri_as(Some(("root", "wrong")), &db.librechat);
    let ended = run(uri, db.state.clone()).await;
    ends_with_a_remedy(&ended, "mend user, password or authSource");

    let ended = run(mongod.uri_as(None, &db.librechat), db.state.clone()).await;
    ends_with_a_remedy(&ended, "`baton check` names each one that is missing");

    let role = |role: &str, on: &str| doc! { "role": role, "db": on };
    for (user, roles) in [
        ("no-state", vec![role("readWrite", &db.librechat)]),
        ("no-stream", vec![role("readWrite", &db.state)]),
    ] {
        let create = doc! { "createUser": user, "pwd": "only-for-tests", "roles": roles };
        let admin = db.client.database("admin");
        admin.run_command(create).await.unwrap();
        let uri = mongod.uri_as(Some((user, "only-for-tests")), &db.librechat);
        let ended = run(uri, db.state.clone()).await;
        ends_with_a_remedy(&ended, "`baton check` names each one that is missing");
    }
}

struct Scene {
    db: TestDb,
    librechat: LibreChat,
    user: User,
    a: Agent,
    b: Agent,
}

impl Scene {
    async fn on(mongod: &Mongod) -> Self {
        let db = mongod.db().await;
        let librechat = LibreChat::on(&db);
        librechat.seed_roles().await;
        let user = librechat.user().await;
        let a = librechat.agent(&user, "A").await;
        let b = librechat.agent(&user, "B").await;
        Self {
            db,
            librechat,
            user,
            a,
            b,
        }
    }

    async fn conversation(&self) -> Turn {
        let first = Turn::first(&self.librechat, &self.user, &self.a);
        first.run_plain().await;
        first
    }

    /// A turn of a new conversation's that switches to B.
    async fn switched(&self) -> Turn {
        let turn = self.conversation().await.next(&self.a);
        turn.run_switching(&self.b).await;
        turn
    }

    async fn lasts(&self, turn: &Turn, agent: &Agent) {
        let record = eventually("the switch is closed", async || {
            let record = self
                .db
                .state_database()
                .collection::<Switch>("switches")
                .find_one(doc! { "message_id": &turn.response })
                .await
                .ok()??;
            (record.status != Status::Open).then_some(record)
        })
        .await;
        assert_eq!(record.status, Status::Settled, "{record:?}");
        assert_eq!(
            turn.agent_now(&self.db).await.as_deref(),
            Some(agent.id.as_str())
        );
    }
}

#[tokio::test]
async fn a_restart_of_mongodb_is_waited_out() {
    let mongod = Mongod::start(Topology::ReplicaSetWithUsers).await;
    let s = Scene::on(&mongod).await;
    let mut baton = Baton::start_with(&s.db, &[TRUST]).await;
    s.lasts(&s.switched().await, &s.b).await;
    for kill in [false, true] {
        if kill {
            mongod.kill();
        } else {
            mongod.stop();
        }
        holds("baton says that it is not ready", async || {
            matches!(baton.get("/readyz").await, Some((503, _)))
        })
        .await;
        mongod.restart().await;
        baton.ready().await;
        s.lasts(&s.switched().await, &s.b).await;
    }
    mongod.stop();
    assert_eq!(baton.stop().await.code(), Some(0));
}

#[tokio::test]
async fn a_frozen_mongodb_keeps_nobody_from_stopping() {
    let mongod = Mongod::start(Topology::ReplicaSet).await;
    let s = Scene::on(&mongod).await;
    let mut baton = Baton::start_with(&s.db, &[TRUST]).await;
    mongod.pause();
    holds("baton has given the stream up", async || {
        matches!(baton.get("/readyz").await, Some((503, body)) if body.contains("for 15 s"))
    })
    .await;
    // By now it tries to open another.
    assert_eq!(baton.stop().await.code(), Some(0));
    mongod.resume();
    let turn = s.switched().await;
    baton.restart().await;
    s.lasts(&turn, &s.b).await;
}

#[tokio::test]
async fn a_lost_position_loses_no_switch() {
    let s = Scene::on(Mongod::shared().await).await;
    let mut baton = Baton::start_with(&s.db, &[TRUST]).await;
    s.lasts(&s.switched().await, &s.b).await;
    let checkpoints = s.db.state_database().collection::<Document>("checkpoints");
    let ruins = [
        // A token of no server's.
        doc! { "$set": { "token": { "_data": "zz" } } },
        doc! { "$set": { "token": { "_data": "82" } } },
        doc! { "$set": { "token": { "foreign": 1 } } },
        doc! { "$set": { "token": {} } },
        // No checkpoint at all.
        doc! { "$set": { "token": "text" } },
        doc! { "$unset": { "time": "" } },
        // Another pipeline's.
        doc! { "$set": { "pipeline": "another" } },
        // None.
        Document::new(),
    ];
    for ruin in ruins {
        assert_eq!(baton.stop().await.code(), Some(0));
        if ruin.is_empty() {
            checkpoints.drop().await.unwrap();
        } else {
            let ruined = checkpoints.update_one(doc! {}, ruin.clone()).await.unwrap();
            assert_eq!(ruined.modified_count, 1, "{ruin}");
        }
        let turn = s.switched().await;
        baton.restart().await;
        s.lasts(&turn, &s.b).await;
        s.lasts(&s.switched().await, &s.b).await;
    }
}

#[tokio::test]
async fn stops_well_while_mongodb_is_away() {
    let mongod = Mongod::start(Topology::ReplicaSet).await;
    let s = Scene::on(&mongod).await;
    let mut baton = Baton::start_with(&s.db, &[TRUST]).await;
    let turn = s.conversation().await.next(&s.a);
    turn.save_user_message().await;
    turn.start().await;
    let call = parts::switch(&s.b.id, &turn.conversation);
    turn.save_unfinished_response(&[call]).await;
    holds("the switch is in force", async || {
        turn.agent_now(&s.db).await.as_deref() == Some(&s.b.id)
    })
    .await;
    mongod.kill();
    assert_eq!(baton.stop().await.code(), Some(0));

    // And where it was never there.
    let mut baton = Baton::launch(&s.db, &[TRUST]);
    holds("baton answers", async || {
        baton.get("/livez").await.is_some()
    })
    .await;
    assert_eq!(baton.stop().await.code(), Some(0));
}

/// Rows of an open switch: the record, the conversation, U and R.
struct Rows {
    records: Vec<Document>,
    conversations: Vec<Document>,
    messages: Vec<Document>,
}

impl Rows {
    /// Of so many turns that A's tool switched to B, of which the odd ones have ended.
    fn of(s: &Scene, count: usize) -> Self {
        let mut rows = Self {
            records: Vec::new(),
            conversations: Vec::new(),
            messages: Vec::new(),
        };
        for n in 0..count {
            rows.add(s, n % 2 == 1);
        }
        rows
    }

    fn add(&mut self, s: &Scene, ended: bool) {
        let (conversation, user) = (uuid(), s.user.hex());
        let (u, r) = (uuid(), uuid());
        let (u_id, r_id) = (ObjectId::new(), ObjectId::new());
        let now = DateTime::now();
        let part = parts::switch(&s.b.id, &conversation);
        let call = part.as_document().unwrap().get_document("tool_call");
        let known = fingerprint(&RawDocumentBuf::try_from(call.unwrap()).unwrap());
        let at = |ms: i64| DateTime::from_millis(now.timestamp_millis() - 1000 + ms);
        self.messages.push(doc! {
            "_id": u_id, "messageId": &u, "conversationId": &conversation, "user": &user,
            "isCreatedByUser": true, "createdAt": at(0),
            "updatedAt": if ended { at(100) } else { at(0) },
        });
        self.messages.push(doc! {
            "_id": r_id, "messageId": &r, "parentMessageId": &u, "conversationId": &conversation,
            "user": &user, "isCreatedByUser": false, "unfinished": !ended, "model": &s.a.id,
            "createdAt": at(80), "updatedAt": at(80),
            "content": [part],
        });
        self.conversations.push(doc! {
            "conversationId": &conversation, "user": &user, "endpoint": "agents",
            "agent_id": &s.a.id, "updatedAt": at(90), "messages": [u_id, r_id],
        });
        self.records.push(doc! {
            "conversation_id": &conversation, "user": &user, "message_id": &r,
            "parent_message_id": &u, "tool_call_id": "call_0", "from_agent": &s.a.id,
            "to_agent": &s.b.id, "reason": "x".repeat(200), "origin": "tool", "status": "open",
            "repairs": 0_i64, "calls": [known],
            "user_message": u_id, "response": r_id, "saved_at": at(80), "created_at": now,
        });
    }
}

/// Prints what it measures. `BATON_UNDER_TEST=target/release/baton` has it measure the release
/// build.
#[tokio::test]
async fn ten_thousand_open_switches_are_taken_up_at_the_start() {
    const COUNT: usize = 10_000;
    let mongod = Mongod::start(Topology::ReplicaSet).await;
    let s = Scene::on(&mongod).await;
    s.librechat.build_indexes().await;
    let rows = Rows::of(&s, COUNT);
    s.db.messages().insert_many(rows.messages).await.unwrap();
    let conversations = s.db.conversations();
    conversations.insert_many(rows.conversations).await.unwrap();
    s.db.switches().insert_many(rows.records).await.unwrap();

    let started = std::time::Instant::now();
    let mut baton = Baton::start_with(&s.db, &[TRUST]).await;
    let ready = started.elapsed();
    assert!(ready < Duration::from_secs(5), "{ready:?}");
    let count = async |filter: Document| s.db.switches().count_documents(filter).await.unwrap();
    // A part at a time: the whole may take a slow machine longer than a test waits for one thing.
    for part in (0..=COUNT as u64).step_by(COUNT / 10) {
        holds("targets are put in force", async || {
            let in_force = doc! { "agent_id": &s.b.id };
            conversations.count_documents(in_force).await.unwrap() >= part
        })
        .await;
    }
    holds("every turn that has ended is settled", async || {
        count(doc! { "status": "settled" }).await == (COUNT / 2) as u64
    })
    .await;
    let done = started.elapsed();
    assert_eq!(count(doc! { "status": "open" }).await, (COUNT / 2) as u64);
    eprintln!(
        "{COUNT} open switches: ready in {ready:?}, all in force in {done:?}, {} kB resident, \
         {} kB of it the program's own, {} kB at the most",
        baton.memory("VmRSS"),
        baton.memory("RssAnon"),
        baton.memory("VmHWM")
    );
    assert_eq!(baton.stop().await.code(), Some(0));
}
