//! Baton's own tool, as LibreChat calls it.

mod clients;
mod crashes;
mod crowds;
mod door;
mod mistakes;
mod outage;
mod policy;
mod request_scoped;
mod targets;
mod user_scoped;

use baton::switch::record::{Status, Switch};
use futures::TryStreamExt;
use mongodb::bson::{Bson, doc};
use serde_json::{Value, json};

use crate::harness::{
    Agent, Answer, Baton, LibreChat, Mongod, Request, TestDb, Turn, User, eventually, holds, parts,
};

const TOKEN: &str = "a token of more than 32 characters";

/// The name that LibreChat gives the tool.
const TOOL: &str = "switch_agent_mcp_baton";

/// A user with agents A, B and C, and Baton.
struct Scene {
    db: TestDb,
    librechat: LibreChat,
    user: User,
    a: Agent,
    b: Agent,
    c: Agent,
    baton: Baton,
}

impl Scene {
    async fn new() -> Self {
        Self::with(&[]).await
    }

    async fn with(environment: &[(&str, &str)]) -> Self {
        Self::on(Mongod::shared().await, environment).await
    }

    async fn on(mongod: &Mongod, environment: &[(&str, &str)]) -> Self {
        let db = mongod.db().await;
        let librechat = LibreChat::on(&db);
        librechat.seed_roles().await;
        let user = librechat.user().await;
        let a = librechat.agent(&user, "Agent A").await;
        let b = librechat.agent(&user, "Agent B").await;
        let c = librechat.agent(&user, "Agent C").await;
        let baton = Self::start(&db, environment).await;
        Self {
            db,
            librechat,
            user,
            a,
            b,
            c,
            baton,
        }
    }

    /// One more instance on the same databases.
    async fn start(db: &TestDb, environment: &[(&str, &str)]) -> Baton {
        let settings = [
            ("BATON__MCP__TOKEN", TOKEN),
            ("BATON__SWITCH__SERVERS", "switcher"),
        ];
        let environment: Vec<_> = settings.iter().chain(environment).copied().collect();
        Baton::start_with(db, &environment).await
    }

    /// A conversation with A, one turn old.
    async fn conversation(&self) -> Turn {
        let first = Turn::first(&self.librechat, &self.user, &self.a);
        first.run_plain().await;
        first
    }

    /// The next turn with A, begun.
    async fn begun(&self) -> Turn {
        let turn = self.conversation().await.next(&self.a);
        turn.save_user_message().await;
        turn.start().await;
        turn
    }

    async fn call(&self, wiring: Wiring, turn: &Turn, arguments: Value) -> Called {
        call(&self.baton, wiring, turn, "switch_agent", arguments).await
    }

    async fn names(&self, turn: &Turn, agent: &Agent) {
        holds("the conversation names the agent", async || {
            turn.agent_now(&self.db).await.as_deref() == Some(&agent.id)
        })
        .await;
    }

    /// The conversation's records, oldest first.
    async fn records(&self, turn: &Turn) -> Vec<Switch> {
        self.db
            .client
            .database(&self.db.state)
            .collection::<Switch>("switches")
            .find(doc! { "conversation_id": &turn.conversation })
            .sort(doc! { "created_at": 1, "_id": 1 })
            .await
            .unwrap()
            .try_collect()
            .await
            .unwrap()
    }

    /// The one record of the turn, once it has that status.
    async fn ends(&self, turn: &Turn, status: Status) -> Switch {
        eventually(&format!("the turn's one record is {status}"), async || {
            let mut records = self.records(turn).await;
            records.retain(|record| {
                record
                    .message_id
                    .as_ref()
                    .is_some_and(|id| id.as_str() == turn.response)
            });
            assert!(records.len() < 2, "{records:#?}");
            records.pop().filter(|record| record.status == status)
        })
        .await
    }

    /// Waits until Baton has dealt with everything so far: it sees things in order.
    async fn overtaken(&self) {
        let first = Turn::first(&self.librechat, &self.user, &self.a);
        first.run_switching(&self.b).await;
        self.ends(&first, Status::Settled).await;
    }
}

/// How LibreChat is told to call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wiring {
    /// All four headers.
    Request,
    /// The user's header alone.
    User,
}

/// What a call came to.
#[derive(Clone, Debug)]
struct Called {
    /// The text, as LibreChat saves it.
    text: String,
    /// The same, read.
    json: Value,
    is_error: bool,
}

impl Called {
    /// The call as LibreChat saves it in the response, the same each time.
    fn part(&self) -> Bson {
        parts::call_with_id("call_0", TOOL, "{}", &self.text)
    }

    fn succeeded(self) -> Self {
        assert_eq!(self.json["status"], "success", "{self:?}");
        assert!(!self.is_error);
        self
    }

    /// The message, where it failed.
    fn message(&self) -> &str {
        assert_eq!(self.json["status"], "error", "{self:?}");
        assert_eq!(self.json["switch_id"], Value::Null);
        assert!(self.is_error);
        self.json["message"].as_str().unwrap()
    }

    /// The names that an error offers, or a list holds.
    fn offers(&self) -> Vec<&str> {
        let agents = self.json["agents"].as_array();
        let agents = agents.map(Vec::as_slice).unwrap_or_default();
        agents
            .iter()
            .map(|agent| agent["name"].as_str().unwrap())
            .collect()
    }
}

fn headers(wiring: Wiring, turn: &Turn) -> Vec<(&'static str, String)> {
    let mut headers = vec![("X-User-Id", turn.user.clone())];
    if wiring == Wiring::Request {
        headers.push(("X-Conversation-Id", turn.conversation.clone()));
        headers.push(("X-Message-Id", turn.response.clone()));
        headers.push(("X-Parent-Message-Id", turn.user_message.clone()));
    }
    headers
}

/// A request to `/mcp` without a token.
fn rpc(method: &str, params: &Value) -> Request {
    Request::new("POST", "/mcp")
        .header("Accept", "application/json, text/event-stream")
        .json(&json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }))
}

async fn call(baton: &Baton, wiring: Wiring, turn: &Turn, tool: &str, arguments: Value) -> Called {
    let headers = headers(wiring, turn);
    called(&send(baton, &headers, tool, arguments).await)
}

async fn send(
    baton: &Baton,
    headers: &[(&'static str, String)],
    tool: &str,
    arguments: Value,
) -> Answer {
    let mut request = rpc(
        "tools/call",
        &json!({ "name": tool, "arguments": arguments }),
    )
    .token(TOKEN);
    for (name, value) in headers {
        request = request.header(name, value);
    }
    request.send(baton.address()).await
}

fn called(answer: &Answer) -> Called {
    assert_eq!(answer.status, 200, "{answer:?}");
    let result = &answer.json()["result"];
    let content = result["content"].as_array().unwrap();
    assert_eq!(content.len(), 1, "LibreChat joins several texts");
    let text = content[0]["text"].as_str().unwrap().to_owned();
    Called {
        json: serde_json::from_str(&text).unwrap(),
        is_error: result["isError"] == true,
        text,
    }
}

/// The argument that names an agent by its id.
fn to(agent: &Agent) -> Value {
    json!({ "agent": agent.id })
}
