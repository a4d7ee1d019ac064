//! The API as front ends call it, the real program behind it.

mod attacks;
mod choose;
mod choose_in_flight;
mod history;
mod librechat_auth;
mod limits;
mod openapi;
mod ops;
mod outage;
mod statuses;

use mongodb::bson::{Document, doc};
use serde_json::{Value, json};

use crate::harness::{
    Agent, Answer, Baton, JWT_SECRET, LibreChat, Mongod, Request, TestDb, Turn, User, eventually,
    holds,
};

/// A user with agents A, B and C, and Baton.
struct Scene {
    db: TestDb,
    librechat: LibreChat,
    user: User,
    token: String,
    a: Agent,
    b: Agent,
    c: Agent,
    baton: Baton,
}

const SETTINGS: [(&str, &str); 3] = [
    ("JWT_SECRET", JWT_SECRET),
    ("BATON__SWITCH__SERVERS", "switcher"),
    ("BATON__METRICS__TOKEN", "for the scraper"),
];

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
        librechat.call("seedSystemGrants", []).await;
        let user = librechat.user().await;
        let a = librechat.agent(&user, "A").await;
        let b = librechat.agent(&user, "B").await;
        let c = librechat.agent(&user, "C").await;
        let environment: Vec<_> = SETTINGS.iter().chain(environment).copied().collect();
        let baton = Baton::start_with(&db, &environment).await;
        Self {
            token: librechat.token(&user).await,
            db,
            librechat,
            user,
            a,
            b,
            c,
            baton,
        }
    }

    /// A conversation with A, one turn old.
    async fn conversation(&self) -> Turn {
        let first = Turn::first(&self.librechat, &self.user, &self.a);
        first.run_plain().await;
        first
    }

    fn patch(&self, conversation: &str, agent: &str) -> Request {
        Request::new("PATCH", &format!("/api/convos/{conversation}"))
            .token(&self.token)
            .json(&json!({ "agent_id": agent }))
    }

    async fn send(&self, request: Request) -> Answer {
        request.send(self.baton.address()).await
    }

    async fn choose(&self, turn: &Turn, agent: &Agent) -> Answer {
        self.send(self.patch(&turn.conversation, &agent.id)).await
    }

    async fn chosen(&self, turn: &Turn, agent: &Agent) {
        let answer = self.choose(turn, agent).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(answer.json(), json!({ "success": true }));
    }

    async fn history(&self, turn: &Turn, query: &str) -> Answer {
        let path = format!("/api/convos/{}/switches{query}", turn.conversation);
        self.send(Request::new("GET", &path).token(&self.token))
            .await
    }

    async fn names(&self, turn: &Turn, agent: &Agent) {
        holds("the conversation names the agent", async || {
            turn.agent_now(&self.db).await.as_deref() == Some(&agent.id)
        })
        .await;
    }

    /// The conversation's records, oldest first.
    async fn records(&self, turn: &Turn) -> Vec<Document> {
        use futures::TryStreamExt;
        self.db
            .switches()
            .find(doc! { "conversation_id": &turn.conversation })
            .sort(doc! { "created_at": 1, "_id": 1 })
            .await
            .unwrap()
            .try_collect()
            .await
            .unwrap()
    }

    /// The one record of this origin, once it is closed.
    async fn closed(&self, turn: &Turn, origin: &str) -> Document {
        eventually("the switch is closed", async || {
            let mut records = self.records(turn).await;
            records.retain(|record| text(record, "origin") == origin);
            assert!(records.len() < 2, "{records:#?}");
            let record = records.pop()?;
            (record.get_str("status").unwrap() != "open").then_some(record)
        })
        .await
    }
}

/// A token with claims of the caller's, signed by LibreChat's own library with its own secret.
fn claims(user: &User, more: Value) -> Value {
    let mut claims = json!({ "id": user.hex(), "exp": now() + 900 });
    let (Some(all), Value::Object(more)) = (claims.as_object_mut(), more) else {
        panic!("claims are an object");
    };
    all.extend(more);
    all.retain(|_, value| !value.is_null());
    claims
}

fn now() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.expect("a clock").as_secs()
}

/// A text of a record's; empty where there is none.
fn text<'a>(record: &'a Document, field: &str) -> &'a str {
    record.get_str(field).unwrap_or_default()
}
