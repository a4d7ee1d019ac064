//! How long a call of `switch_agent` takes, next to the two writes that a switch cannot do without:
//! its record, and the conversation. Both are made durable on the majority, by turns in one run.
#![expect(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a benchmark that cannot go on says why and stops"
)]
#![allow(missing_docs, unreachable_pub, reason = "it is a program of its own")]

#[path = "../../tests/harness/mod.rs"]
mod harness;

use std::time::{Duration, Instant};

use futures::TryStreamExt;
use http::Request;
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use mongodb::bson::{DateTime, Document, doc, oid::ObjectId};
use mongodb::options::WriteConcern;
use mongodb::{Collection, IndexModel};
use serde_json::{Value, json};
use tokio::net::TcpStream;

use harness::{Agent, Baton, LibreChat, Mongod, TestDb, Topology, Turn, User, parts, uuid};

/// So many of each are measured, after so many that warm everything up.
const ROUNDS: usize = 500;
const WARM_UP: usize = 50;

const TOKEN: &str = "a token of more than 32 characters";

#[tokio::main]
async fn main() {
    let mongod = Mongod::start(Topology::ReplicaSet).await;
    let db = mongod.db().await;
    let librechat = LibreChat::on(&db);
    librechat.seed_roles().await;
    librechat.build_indexes().await;
    let user = librechat.user().await;
    let a = librechat.agent(&user, "A").await;
    let b = librechat.agent(&user, "B").await;
    let settings = [("BATON__MCP__TOKEN", TOKEN), ("BATON__LOG__LEVEL", "warn")];
    let baton = Baton::start_with(&db, &settings).await;
    let mut client = Client::connect(&baton).await;

    // A first switch leaves the record that the bare writes copy.
    let turn = begun(&librechat, &user, &a).await;
    finish(&turn, &client.switch(&turn, &b).await).await;
    let bare = Bare::new(&db, begun(&librechat, &user, &a).await).await;

    let mut calls = Vec::new();
    let mut writes = Vec::new();
    for round in 0..WARM_UP + ROUNDS {
        let turn = begun(&librechat, &user, &a).await;
        let to = [&b, &a][round % 2];
        let mut answer = Value::Null;
        // Neither is always the first.
        for call in [round % 4 < 2, round % 4 >= 2] {
            let started = Instant::now();
            if call {
                answer = client.switch(&turn, &b).await;
            } else {
                bare.write(to).await;
            }
            let took = started.elapsed();
            if round >= WARM_UP {
                [&mut writes, &mut calls][usize::from(call)].push(took);
            }
        }
        assert_eq!(turn.agent_now(&db).await.as_deref(), Some(&*b.id));
        finish(&turn, &answer).await;
    }

    println!("{ROUNDS} of each by turns, one at a time\n");
    println!("{:34}{:>10}{:>10}", "", "50 %", "99 %");
    let [writes, calls] = [writes, calls].map(Times::of);
    println!("{:34}{writes}", "the record and the conversation");
    println!("{:34}{calls}", "switch_agent");
    println!(
        "{:34}{:>9.1}x{:>9.1}x",
        "ratio",
        calls.half.div_duration_f64(writes.half),
        calls.most.div_duration_f64(writes.most),
    );
}

/// The second turn of a new conversation with `agent`, in which the model is at work.
async fn begun(librechat: &LibreChat, user: &User, agent: &Agent) -> Turn {
    let first = Turn::first(librechat, user, agent);
    first.run_plain().await;
    let turn = first.next(agent);
    turn.save_user_message().await;
    turn.start().await;
    turn
}

/// The turn ends with the call in its response.
async fn finish(turn: &Turn, answer: &Value) {
    let text = answer["result"]["content"][0]["text"].as_str().unwrap();
    let part = parts::call_with_id("call_0", "switch_agent_mcp_baton", "{}", text);
    turn.finish(&[part]).await;
}

/// One connection to Baton, which stays.
struct Client {
    host: String,
    connection: http1::SendRequest<Full<Bytes>>,
}

impl Client {
    async fn connect(baton: &Baton) -> Self {
        let stream = TcpStream::connect(baton.address()).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let (requests, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        Self {
            host: baton.address().to_string(),
            connection: requests,
        }
    }

    /// Calls the tool as LibreChat does with all four headers.
    async fn switch(&mut self, turn: &Turn, to: &Agent) -> Value {
        let body = json!({
            "jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": { "name": "switch_agent", "arguments": { "agent": to.id } },
        });
        let request = Request::post("/mcp")
            .header("Host", &self.host)
            .header("Authorization", format!("Bearer {TOKEN}"))
            .header("Accept", "application/json, text/event-stream")
            .header("Content-Type", "application/json")
            .header("X-User-Id", &turn.user)
            .header("X-Conversation-Id", &turn.conversation)
            .header("X-Message-Id", &turn.response)
            .header("X-Parent-Message-Id", &turn.user_message)
            .body(Full::from(body.to_string()))
            .unwrap();
        self.connection.ready().await.expect("the connection stays");
        let answer = self.connection.send_request(request).await.unwrap();
        assert_eq!(answer.status(), 200);
        let answer = answer.into_body().collect().await.unwrap().to_bytes();
        let answer: Value = serde_json::from_slice(&answer).unwrap();
        assert_eq!(answer["result"]["isError"], false, "{answer}");
        answer
    }
}

/// The two writes alone.
struct Bare {
    /// Like `switches`, with the same indexes, and out of Baton's sight.
    records: Collection<Document>,
    record: Document,
    conversations: Collection<Document>,
    turn: Turn,
}

impl Bare {
    async fn new(db: &TestDb, turn: Turn) -> Self {
        let switches = db.switches();
        let records = db.state_database().collection("bare");
        let indexes: Vec<IndexModel> = switches
            .list_indexes()
            .await
            .unwrap()
            .try_collect()
            .await
            .unwrap();
        records.create_indexes(indexes).await.unwrap();
        Self {
            record: switches.find_one(doc! {}).await.unwrap().unwrap(),
            records,
            conversations: db.conversations(),
            turn,
        }
    }

    async fn write(&self, to: &Agent) {
        let mut record = self.record.clone();
        record.insert("_id", ObjectId::new());
        record.insert("message_id", uuid());
        record.insert("created_at", DateTime::now());
        let insert = self.records.insert_one(record);
        insert
            .write_concern(WriteConcern::majority())
            .await
            .unwrap();
        let key = doc! { "conversationId": &self.turn.conversation, "user": &self.turn.user };
        let set = doc! { "$set": { "agent_id": &to.id } };
        let update = self.conversations.update_one(key, set);
        let done = update
            .write_concern(WriteConcern::majority())
            .await
            .unwrap();
        assert_eq!(done.modified_count, 1);
    }
}

/// Half of all took no longer, and 99 in a hundred.
struct Times {
    half: Duration,
    most: Duration,
}

impl Times {
    fn of(mut all: Vec<Duration>) -> Self {
        all.sort_unstable();
        let share = |percent: usize| all[(all.len() - 1) * percent / 100];
        Self {
            half: share(50),
            most: share(99),
        }
    }
}

impl std::fmt::Display for Times {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ms = |time: Duration| time.as_secs_f64() * 1000.0;
        write!(f, "{:>7.2} ms{:>7.2} ms", ms(self.half), ms(self.most))
    }
}
