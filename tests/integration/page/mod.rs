//! `/ops`: who gets in, and what is told there.

mod door;
mod frontend;
mod live;

use axum::body::Body;
use baton::switch::record::Status;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use mongodb::bson::doc;
use serde_json::Value;

use crate::harness::{
    Agent, Answer, Baton, LibreChat, Mongod, Request, TestDb, Turn, User, holds, parts,
};

const TOKEN: &str = "an operator's token of 32 letters";

/// A user with agents, and Baton with the page.
struct Scene {
    db: TestDb,
    librechat: LibreChat,
    user: User,
    a: Agent,
    b: Agent,
    baton: Baton,
}

impl Scene {
    async fn new() -> Self {
        Self::with(Mongod::shared().await, ["A", "B"]).await
    }

    async fn with(mongod: &Mongod, names: [&str; 2]) -> Self {
        let db = mongod.db().await;
        let librechat = LibreChat::on(&db);
        librechat.seed_roles().await;
        let user = librechat.user().await;
        let [a, b] = names;
        let (a, b) = (
            librechat.agent(&user, a).await,
            librechat.agent(&user, b).await,
        );
        let settings = [
            ("BATON__SWITCH__SERVERS", "switcher"),
            ("BATON__OPS__TOKEN", TOKEN),
        ];
        let baton = Baton::start_with(&db, &settings).await;
        Self {
            db,
            librechat,
            user,
            a,
            b,
            baton,
        }
    }

    async fn send(&self, request: Request) -> Answer {
        request.send(self.baton.address()).await
    }

    async fn login(&self, token: &str) -> Answer {
        let body = format!("token={}", token.replace(' ', "+").replace('\'', "%27"));
        let request = Request::new("POST", "/ops/login")
            .header("Content-Type", "application/x-www-form-urlencoded")
            .body(body);
        self.send(request).await
    }

    /// The session's cookie, as a browser sends it.
    async fn cookie(&self) -> String {
        let answer = self.login(TOKEN).await;
        assert_eq!(answer.status, 303, "{answer:?}");
        let cookie = answer.header("set-cookie").unwrap();
        cookie.split(';').next().unwrap().to_owned()
    }

    /// A turn of A's in a new conversation that is switched to `to` and overwritten once.
    async fn switched(&self, to: &Agent) -> Turn {
        let first = Turn::first(&self.librechat, &self.user, &self.a);
        first.run_plain().await;
        let turn = first.next(&self.a);
        turn.save_user_message().await;
        turn.start().await;
        let call = [parts::switch(&to.id, &turn.conversation)];
        turn.save_response(&call).await;
        self.names(&turn, to).await;
        turn.end().await;
        self.names(&turn, to).await;
        turn
    }

    /// The same with its end.
    async fn settled(&self, to: &Agent) -> Turn {
        let turn = self.switched(to).await;
        turn.touch_user_message().await;
        self.is(&turn, Status::Settled).await;
        turn
    }

    /// A turn whose switch is refused: nobody has such an agent.
    async fn refused(&self, reason: &str) -> Turn {
        let turn = Turn::first(&self.librechat, &self.user, &self.a);
        let answer = serde_json::json!({
            "agent_id": "agent_nobody", "status": "success", "reason": reason,
        });
        let call = parts::call(parts::TOOL, "agent_nobody", &answer.to_string());
        turn.save_user_message().await;
        turn.start().await;
        turn.finish(&[call]).await;
        self.is(&turn, Status::Rejected).await;
        turn
    }

    async fn names(&self, turn: &Turn, agent: &Agent) {
        holds("the conversation names the agent", async || {
            turn.agent_now(&self.db).await.as_deref() == Some(&agent.id)
        })
        .await;
    }

    async fn is(&self, turn: &Turn, status: Status) {
        holds("the switch has its outcome", async || {
            let of_turn = doc! { "message_id": &turn.response, "status": status.to_string() };
            self.db.switches().count_documents(of_turn).await.unwrap() == 1
        })
        .await;
    }

    /// What the page is told, where it asks so.
    async fn events(&self, cookie: &str, query: &str) -> Events {
        let request = axum::http::Request::builder()
            .uri(format!(
                "http://{}/ops/events?{query}",
                self.baton.address()
            ))
            .header("cookie", cookie)
            .body(Body::empty())
            .unwrap();
        let client = Client::builder(TokioExecutor::new()).build_http();
        let answer = client.request(request).await.unwrap();
        assert_eq!(answer.status(), 200);
        assert_eq!(answer.headers()["content-type"], "text/event-stream");
        Events {
            body: answer.into_body(),
            text: String::new(),
        }
    }
}

/// Server-sent events as they come.
struct Events {
    body: Incoming,
    text: String,
}

impl Events {
    /// The next event's name and data; none at the end.
    async fn next(&mut self) -> Option<(String, Value)> {
        loop {
            if let Some((event, rest)) = self.text.split_once("\n\n") {
                let (event, rest) = (event.to_owned(), rest.to_owned());
                self.text = rest;
                let line = |what: &str| {
                    let mut lines = event.lines();
                    lines.find_map(|line| Some(line.strip_prefix(what)?.trim().to_owned()))
                };
                if let (Some(name), Some(data)) = (line("event:"), line("data:")) {
                    return Some((name, serde_json::from_str(&data).unwrap()));
                }
                continue;
            }
            let frame = self.body.frame().await?.ok()?;
            let data = frame.into_data().unwrap();
            self.text.push_str(std::str::from_utf8(&data).unwrap());
        }
    }

    /// The data of the next event of this name for which `wanted` holds.
    async fn until(&mut self, name: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let found = async {
            loop {
                let event = self.next().await;
                let (found, data) = event.unwrap_or_else(|| panic!("an end before {name}"));
                if found == name && wanted(&data) {
                    return data;
                }
            }
        };
        let patience = std::time::Duration::from_secs(30);
        let Ok(data) = tokio::time::timeout(patience, found).await else {
            panic!("no such {name}");
        };
        data
    }
}
