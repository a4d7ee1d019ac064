//! LibreChat's own data layer, in a Node process that the tests of this process share.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;

use mongodb::bson::{Bson, Document, doc};
use serde_json::Value;
use tokio::sync::oneshot;

use super::{Agent, TestDb, User, tools};

/// The secret that LibreChat signs its tokens with in tests.
pub const JWT_SECRET: &str = "only-for-tests-only-for-tests-ab";

/// LibreChat as connected to the database of one test.
///
/// A function that fails fails the test: LibreChat's own writes are what is taken for granted.
#[derive(Clone)]
pub struct LibreChat {
    uri: String,
    tenant: Option<String>,
}

impl LibreChat {
    /// LibreChat on the database that `uri` names.
    pub fn start(uri: &str) -> Self {
        Self {
            uri: uri.to_owned(),
            tenant: None,
        }
    }

    /// LibreChat on the database of a test.
    pub fn on(db: &TestDb) -> Self {
        Self::start(&db.uri)
    }

    /// The same as seen by the users of a tenant.
    pub fn in_tenant(&self, tenant: &str) -> Self {
        Self {
            uri: self.uri.clone(),
            tenant: Some(tenant.to_owned()),
        }
    }

    /// Calls a function of `createMethods` by its name.
    pub async fn call(&self, function: &str, arguments: impl IntoIterator<Item = Bson>) -> Bson {
        self.ask(doc! { "call": function, "args": list(arguments) })
            .await
    }

    /// Builds the indexes that the server has on the collections that Baton reads. It takes
    /// seconds, so only tests that depend on them ask.
    pub async fn build_indexes(&self) {
        self.ask(doc! { "indexes": true }).await;
    }

    /// Makes the roles USER and ADMIN with their permissions.
    pub async fn seed_roles(&self) {
        self.make("seedRoles", []).await;
    }

    /// Makes a user with role USER.
    pub async fn user(&self) -> User {
        self.user_with(doc! {}).await
    }

    /// Makes a user with fields of the caller's, such as `role`.
    pub async fn user_with(&self, fields: Document) -> User {
        User::from(&self.make("user", [fields.into()]).await)
    }

    /// Makes an agent that its author may see, and nobody else.
    pub async fn agent(&self, author: &User, name: &str) -> Agent {
        let agent = self.agent_with(author, name, doc! {}).await;
        self.grant(&agent, doc! { "id": author.id }).await;
        agent
    }

    /// Makes an agent with fields of the caller's that nobody may see yet: no access entry is made.
    pub async fn agent_with(&self, author: &User, name: &str, mut fields: Document) -> Agent {
        fields.insert("name", name);
        fields.insert("author", author.id.to_hex());
        Agent::from(&self.make("agent", [fields.into()]).await)
    }

    /// Lets somebody see an agent: `{id}` of a user, or `{type, id?, bits?}` with `type` being
    /// `user`, `group`, `role` or `public`.
    pub async fn grant(&self, agent: &Agent, mut to: Document) {
        to.insert("agent", agent.id.as_str());
        self.make("grant", [to.into()]).await;
    }

    /// A session's token for a user, good for 15 minutes.
    pub async fn token(&self, user: &User) -> String {
        let document = user.document.clone().into();
        let token = self.call("generateToken", [document, 900_000.into()]).await;
        token.as_str().expect("a token").to_owned()
    }

    /// A token with these claims, signed as LibreChat signs.
    pub async fn signed(&self, claims: Document) -> String {
        self.forged(claims, "HS256", JWT_SECRET).await
    }

    /// A token with these claims, of another algorithm or secret.
    pub async fn forged(&self, claims: Document, algorithm: &str, secret: &str) -> String {
        let what = doc! { "claims": claims, "algorithm": algorithm, "secret": secret };
        let token = self.make("token", [what.into()]).await;
        token.as_str().expect("a token").to_owned()
    }

    pub(super) async fn step(&self, step: &str, arguments: impl IntoIterator<Item = Bson>) -> Bson {
        self.ask(doc! { "step": step, "args": list(arguments) })
            .await
    }

    async fn make(&self, what: &str, arguments: impl IntoIterator<Item = Bson>) -> Bson {
        self.ask(doc! { "make": what, "args": list(arguments) })
            .await
    }

    async fn ask(&self, mut request: Document) -> Bson {
        request.insert("uri", self.uri.as_str());
        if let Some(tenant) = &self.tenant {
            request.insert("tenant", tenant.as_str());
        }
        let described = format!("{request}");
        let answer = Driver::shared().ask(request).await;
        match answer.get("error") {
            None => serde_json::from_value(answer["result"].clone()).expect("EJSON"),
            Some(error) => panic!("LibreChat's data layer failed: {error}\nasked: {described}"),
        }
    }
}

fn list(arguments: impl IntoIterator<Item = Bson>) -> Bson {
    Bson::Array(arguments.into_iter().collect())
}

/// The Node process, see `tests/librechat/driver.mjs`. It ends when this process does, since its
/// input closes then.
struct Driver {
    requests: Mutex<ChildStdin>,
    waiting: Arc<Waiting>,
    last: AtomicU64,
}

type Waiting = Mutex<HashMap<u64, oneshot::Sender<Value>>>;

impl Driver {
    fn shared() -> &'static Self {
        static SHARED: OnceLock<Driver> = OnceLock::new();
        SHARED.get_or_init(Self::start)
    }

    fn start() -> Self {
        let folder = tools::npm("librechat");
        let mut node = Command::new("node")
            .arg(folder.join("driver.mjs"))
            .env("JWT_SECRET", JWT_SECRET)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("Node 20 or later on PATH");
        let requests = node.stdin.take().expect("a pipe");
        let answers = node.stdout.take().expect("a pipe");
        let waiting = Arc::new(Waiting::default());
        // A thread and not a task: the runtime of the test that came first ends before the others.
        let hand_out = Arc::clone(&waiting);
        thread::spawn(move || {
            distribute(answers, &hand_out);
            let _ = node.wait();
        });
        Self {
            requests: Mutex::new(requests),
            waiting,
            last: AtomicU64::new(0),
        }
    }

    async fn ask(&self, mut request: Document) -> Value {
        let id = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        request.insert("id", i64::try_from(id).expect("fewer requests"));
        // To a text format BSON writes itself as EJSON.
        let line = serde_json::to_string(&request).expect("EJSON");
        let (sender, answer) = oneshot::channel();
        lock(&self.waiting).insert(id, sender);
        writeln!(lock(&self.requests), "{line}").expect("tests/librechat/driver.mjs has ended");
        answer.await.expect("tests/librechat/driver.mjs has ended")
    }
}

fn distribute(answers: ChildStdout, waiting: &Waiting) {
    for line in BufReader::new(answers).lines().map_while(Result::ok) {
        let answer: Value = serde_json::from_str(&line).expect("an answer a line");
        let asked = answer["id"]
            .as_u64()
            .and_then(|id| lock(waiting).remove(&id));
        if let Some(sender) = asked {
            // A test that has given up no longer listens.
            let _ = sender.send(answer);
        }
    }
    // Whoever still waits learns that no answer will come.
    lock(waiting).clear();
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
