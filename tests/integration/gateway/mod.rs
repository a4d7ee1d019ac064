//! Baton in front of a stand-in for LibreChat, whose data layer is LibreChat's own.

mod finals;
mod lost;
mod nginx;
mod posts;
mod proxy;
mod same_turn;
mod stops;
mod streams;

use axum::body::{Body, Bytes, to_bytes};
use axum::http::{HeaderMap, Request, Response, StatusCode};
use baton::switch::record::{Status, Switch};
use futures::TryStreamExt;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use mongodb::bson::{Bson, doc};

use crate::harness::{
    Agent, Baton, JWT_SECRET, LibreChat, Mongod, TestDb, Turn, Upstream, User, eventually,
    free_address, parts,
};

/// Opens the numbers.
const METRICS: &str = "a token for the numbers";

/// A user with agents A, B and C, and Baton in front of an upstream.
struct Scene {
    db: TestDb,
    librechat: LibreChat,
    user: User,
    token: String,
    a: Agent,
    b: Agent,
    c: Agent,
    baton: Baton,
    client: Client<HttpConnector, Body>,
}

/// An answer, all of it.
#[derive(Debug)]
struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
}

impl Answer {
    fn text(&self) -> String {
        String::from_utf8(self.body.to_vec()).unwrap()
    }
}

impl Scene {
    async fn before(upstream: &Upstream) -> Self {
        Self::with(upstream, &[]).await
    }

    async fn with(upstream: &Upstream, more: &[(&str, &str)]) -> Self {
        let db = Mongod::shared().await.db().await;
        let librechat = LibreChat::on(&db);
        librechat.seed_roles().await;
        let user = librechat.user().await;
        let a = librechat.agent(&user, "A").await;
        let b = librechat.agent(&user, "B").await;
        let c = librechat.agent(&user, "C").await;
        let (url, ops) = (upstream.url(), free_address().to_string());
        let settings = [
            ("JWT_SECRET", JWT_SECRET),
            ("BATON__SWITCH__SERVERS", "switcher"),
            ("BATON__GATEWAY__ENABLED", "true"),
            ("BATON__LIBRECHAT__URL", &url),
            ("BATON__OPS__LISTEN", &ops),
            ("BATON__METRICS__TOKEN", METRICS),
        ];
        let settings: Vec<_> = settings.iter().chain(more).copied().collect();
        let baton = Baton::start_with(&db, &settings).await;
        Self {
            token: librechat.token(&user).await,
            db,
            librechat,
            user,
            a,
            b,
            c,
            baton,
            client: Client::builder(TokioExecutor::new()).build_http(),
        }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.baton.address())
    }

    async fn send(&self, request: Request<Body>) -> Response<Body> {
        self.client.request(request).await.unwrap().map(Body::new)
    }

    async fn ask(&self, request: Request<Body>) -> Answer {
        let (parts, body) = self.send(request).await.into_parts();
        Answer {
            status: parts.status,
            headers: parts.headers,
            body: to_bytes(body, usize::MAX).await.unwrap(),
        }
    }

    async fn get(&self, path: &str) -> Answer {
        self.ask(Request::get(self.url(path)).body(Body::empty()).unwrap())
            .await
    }

    async fn post(&self, path: &str, body: &serde_json::Value) -> Answer {
        let request = Request::post(self.url(path))
            .header("content-type", "application/json")
            .header("authorization", format!("Bearer {}", self.token))
            .body(Body::from(body.to_string()))
            .unwrap();
        self.ask(request).await
    }

    /// How often the gateway did this.
    async fn passed(&self, what: &str) -> u64 {
        let request = crate::harness::Request::new("GET", "/metrics").token(METRICS);
        let answer = request.send(self.baton.ops()).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let name = format!("baton_gateway_total{{what=\"{what}\"}} ");
        let count = |line: &str| Some(line.strip_prefix(&name)?.parse().unwrap());
        answer.text.lines().find_map(count).unwrap_or(0)
    }

    async fn conversation(&self) -> Turn {
        let first = Turn::first(&self.librechat, &self.user, &self.a);
        first.run_plain().await;
        first
    }

    /// A turn in which A has switched to B, to its end.
    async fn switched(&self) -> Turn {
        let turn = self.conversation().await.next(&self.a);
        turn.run_switching(&self.b).await;
        self.record(&turn, |record| record.status == Status::Settled)
            .await;
        turn
    }

    /// The turn's record, once it is as wanted.
    async fn record(&self, turn: &Turn, wanted: impl Fn(&Switch) -> bool) -> Switch {
        eventually("the record is as wanted", async || {
            let records: Vec<Switch> = self
                .db
                .state_database()
                .collection("switches")
                .find(doc! { "conversation_id": &turn.conversation, "message_id": &turn.response })
                .await
                .unwrap()
                .try_collect()
                .await
                .unwrap();
            records.into_iter().find(|record| wanted(record))
        })
        .await
    }
}

fn switch_to(agent: &Agent, turn: &Turn) -> [Bson; 1] {
    [parts::switch(&agent.id, &turn.conversation)]
}

fn events_of(body: impl Into<Body>) -> Response<Body> {
    Response::builder()
        .header("content-type", "text/event-stream")
        .header("content-encoding", "identity")
        .body(body.into())
        .unwrap()
}

fn json_of(body: &serde_json::Value) -> Response<Body> {
    Response::builder()
        .header("content-type", "application/json")
        .body(Body::from(body.to_string()))
        .unwrap()
}
