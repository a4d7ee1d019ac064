//! A MongoDB server of the tests' own.

use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use mongodb::Client;
use mongodb::bson::{Document, doc};
use mongodb::options::ClientOptions;
use tokio::sync::OnceCell;

use super::TestDb;
use super::address::free_address;
use super::keeper::Keeper;
use super::wait::eventually;

/// How a server is set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topology {
    /// A replica set with one member: the least that has change streams.
    ReplicaSet,
    /// The same with users and rights; the tests' own client is root.
    ReplicaSetWithUsers,
    /// A server without an oplog, as LibreChat's own docker-compose starts it.
    Standalone,
    /// A server that waits for `rs.initiate()`.
    Uninitiated,
}

const ROOT: &str = "root";
const PASSWORD: &str = "only-for-tests";

/// A server on a free port, with its data in a folder that goes when the server does.
pub struct Mongod {
    port: u16,
    topology: Topology,
    folder: PathBuf,
    keeper: Mutex<Keeper>,
}

impl Mongod {
    /// The replica set that the tests of this process share; started by the first to ask.
    pub async fn shared() -> &'static Self {
        static SHARED: OnceCell<Mongod> = OnceCell::const_new();
        SHARED
            .get_or_init(|| Self::start(Topology::ReplicaSet))
            .await
    }

    /// A server of the caller's own, to be killed, paused and restarted at will.
    pub async fn start(topology: Topology) -> Self {
        let port = free_address().port();
        let (keeper, folder) = Keeper::of(&arguments(port, topology));
        let mongod = Self {
            port,
            topology,
            keeper: Mutex::new(keeper),
            folder,
        };
        if topology == Topology::ReplicaSetWithUsers {
            write_key(&mongod.folder.join("key"));
        }
        mongod.tell("start");
        mongod.initiate().await;
        mongod
    }

    /// A connection string that names `database`.
    pub fn uri(&self, database: &str) -> String {
        match self.topology {
            Topology::ReplicaSet | Topology::Uninitiated => self.uri_as(None, database),
            Topology::ReplicaSetWithUsers => self.uri_as(Some((ROOT, PASSWORD)), database),
            Topology::Standalone => {
                format!("mongodb://127.0.0.1:{}/{database}", self.port)
            }
        }
    }

    /// The same as another user, or as none.
    pub fn uri_as(&self, user: Option<(&str, &str)>, database: &str) -> String {
        let login = user.map_or(String::new(), |(name, password)| {
            format!("{name}:{password}@")
        });
        let options = user.map_or("", |_| "&authSource=admin");
        format!(
            "mongodb://{login}127.0.0.1:{}/{database}?replicaSet=rs0{options}",
            self.port
        )
    }

    /// A client with every right.
    pub async fn client(&self) -> Client {
        Client::with_uri_str(self.uri("admin"))
            .await
            .expect("a client for the test's MongoDB")
    }

    /// Two databases that no other test uses.
    pub async fn db(&self) -> TestDb {
        TestDb::on(self).await
    }

    /// Ends the server at once, as a power cut does.
    pub fn kill(&self) {
        self.tell("KILL");
    }

    /// Ends the server in good order.
    pub fn stop(&self) {
        self.tell("TERM");
    }

    /// Freezes the server: connections stay, answers do not come.
    pub fn pause(&self) {
        self.tell("STOP");
    }

    /// Ends a [`pause`](Self::pause).
    pub fn resume(&self) {
        self.tell("CONT");
    }

    /// Starts the server again on the same port with the same data, after [`kill`](Self::kill) or
    /// [`stop`](Self::stop), and waits until it takes writes.
    pub async fn restart(&self) {
        self.tell("start");
        self.writable(
            &self
                .direct(self.topology != Topology::ReplicaSetWithUsers)
                .await,
        )
        .await;
    }

    /// Ends the server in good order and starts it again with more arguments, on the same port with
    /// the same data. It may not take writes yet.
    pub async fn restart_with(&self, arguments: &[&str]) {
        self.stop();
        self.tell(&format!("start {}", arguments.join(" ")));
        let admin = self.direct(true).await.database("admin");
        eventually("the server answers", async || {
            admin.run_command(doc! { "ping": 1 }).await.ok().map(drop)
        })
        .await;
    }

    /// Its port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    fn tell(&self, command: &str) {
        self.keeper
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .tell(command);
    }

    async fn initiate(&self) {
        let client = self.direct(true).await;
        if self.topology == Topology::Uninitiated {
            let admin = client.database("admin");
            return eventually("the server answers", async || {
                admin.run_command(doc! { "ping": 1 }).await.ok().map(drop)
            })
            .await;
        }
        self.make_set(&client).await;
        self.writable(&client).await;
        if self.topology == Topology::ReplicaSetWithUsers {
            // The first user may be made without a login, over the loopback interface.
            let create = doc! { "createUser": ROOT, "pwd": PASSWORD, "roles": ["root"] };
            client
                .database("admin")
                .run_command(create)
                .await
                .expect("the first user");
        }
    }

    /// `rs.initiate()`.
    pub async fn initiated(&self) {
        self.make_set(&self.direct(true).await).await;
    }

    async fn make_set(&self, client: &Client) {
        if self.topology != Topology::Standalone {
            let member = format!("127.0.0.1:{}", self.port);
            let initiate = doc! {
                "replSetInitiate": { "_id": "rs0", "members": [{ "_id": 0, "host": member }] }
            };
            // While the server is still starting the connection fails; asking twice is harmless.
            eventually("the replica set is initiated", async || {
                let answer = client.database("admin").run_command(initiate.clone()).await;
                match answer {
                    Ok(_) => Some(()),
                    Err(error) if error.to_string().contains("AlreadyInitialized") => Some(()),
                    Err(_) => None,
                }
            })
            .await;
        }
    }

    /// A client that talks to this server whatever its state.
    async fn direct(&self, anonymous: bool) -> Client {
        let login = if anonymous {
            String::new()
        } else {
            format!("{ROOT}:{PASSWORD}@")
        };
        let uri = format!(
            "mongodb://{login}127.0.0.1:{}/admin?directConnection=true",
            self.port
        );
        let mut options = ClientOptions::parse(uri)
            .await
            .expect("a connection string");
        options.server_selection_timeout = Some(std::time::Duration::from_millis(500));
        Client::with_options(options).expect("a client for the test's MongoDB")
    }

    async fn writable(&self, client: &Client) {
        let what = format!("MongoDB takes writes; its log: {}", self.log().display());
        eventually(&what, async || {
            let hello: Document = client
                .database("admin")
                .run_command(doc! { "hello": 1 })
                .await
                .ok()?;
            hello.get_bool("isWritablePrimary").ok()?.then_some(())
        })
        .await;
    }

    fn log(&self) -> PathBuf {
        self.folder.join("mongod.log")
    }
}

fn arguments(port: u16, topology: Topology) -> Vec<String> {
    let port = port.to_string();
    let mut arguments = vec![
        "--bind_ip=127.0.0.1",
        "--port",
        &port,
        "--nounixsocket",
        "--wiredTigerCacheSizeGB=0.25",
        // Failpoints, so that tests can make single commands fail.
        "--setParameter=enableTestCommands=1",
        "--setParameter=diagnosticDataCollectionEnabled=false",
        // A primary that is told to stop waits 15 s for a successor that there is not.
        "--setParameter=shutdownTimeoutMillisForSignaledShutdown=0",
    ];
    if topology != Topology::Standalone {
        arguments.extend(["--replSet=rs0", "--oplogSize=64"]);
    }
    if topology == Topology::ReplicaSetWithUsers {
        arguments.push("--keyFile=key");
    }
    arguments.into_iter().map(str::to_owned).collect()
}

fn write_key(path: &Path) {
    // MongoDB refuses a key that others may read.
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .expect("a key file");
    file.write_all(b"onlyForTests").expect("a key file");
}
