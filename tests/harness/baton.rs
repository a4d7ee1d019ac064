//! The `baton` program itself, as an operator runs it.

use std::fs::File;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::TestDb;
use super::address::free_address;
use super::wait::{eventually, holds};

/// A running `baton run`. It is killed when this value goes.
pub struct Baton {
    command: Command,
    address: SocketAddr,
    /// Where health is: `ops.listen`, where it has an address of its own.
    ops: SocketAddr,
    child: Child,
    /// Holds the configuration file, where there is one.
    folder: Option<TempDir>,
}

impl Baton {
    /// Starts it on the databases of a test and waits until it is ready.
    pub async fn start(db: &TestDb) -> Self {
        Self::start_with(db, &[]).await
    }

    /// The same with more of its environment set.
    pub async fn start_with(db: &TestDb, environment: &[(&str, &str)]) -> Self {
        let baton = Self::launch(db, environment);
        baton.ready().await;
        baton
    }

    /// The same with a configuration file of this text.
    pub async fn start_configured(db: &TestDb, config: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join("config.toml");
        std::fs::write(&file, config).expect("a file in a temporary folder");
        let file = file.to_str().expect("a plain path").to_owned();
        let mut baton = Self::launch_with(db, &["--config", &file], &[]);
        baton.folder = Some(folder);
        baton.ready().await;
        baton
    }

    /// The same with everything that it can log in a file.
    pub async fn start_logged(db: &TestDb, environment: &[(&str, &str)], log: &Path) -> Self {
        let mut all = vec![("BATON__LOG__LEVEL", "trace")];
        all.extend(environment);
        let mut baton = Self::launch(db, &all);
        baton.kill();
        let file = File::create(log).expect("a file in a temporary folder");
        baton.command.stderr(file);
        baton.restart().await;
        baton
    }

    /// Starts it and does not wait.
    pub fn launch(db: &TestDb, environment: &[(&str, &str)]) -> Self {
        Self::launch_with(db, &[], environment)
    }

    fn launch_with(db: &TestDb, arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        let address = free_address();
        let ops = environment
            .iter()
            .find(|(name, _)| *name == "BATON__OPS__LISTEN")
            .map_or(address, |(_, ops)| ops.parse().expect("an address"));
        // The system ends it should the tests be killed; `setpriv` itself becomes the program.
        let mut command = Command::new("/usr/bin/setpriv");
        command
            .args(["--pdeathsig", "KILL", &program(), "run"])
            .args(arguments)
            .env_clear()
            .env("MONGO_URI", &db.uri)
            .env("BATON__STATE__DATABASE", &db.state)
            .env("BATON__HTTP__LISTEN", address.to_string())
            .envs(environment.iter().copied())
            // A folder without a configuration file.
            .current_dir(env!("CARGO_TARGET_TMPDIR"))
            .stdin(Stdio::null());
        let child = command.spawn().expect("the baton program");
        Self {
            command,
            address,
            ops,
            child,
            folder: None,
        }
    }

    /// Waits until `/readyz` says 200.
    pub async fn ready(&self) {
        holds("baton is ready", async || {
            self.get("/readyz")
                .await
                .is_some_and(|(status, _)| status == 200)
        })
        .await;
    }

    /// Kills it, as a crash or a power cut does.
    pub fn kill(&mut self) {
        self.child.kill().expect("a child of ours");
        self.child.wait().expect("a child of ours");
    }

    /// Tells it to stop and waits until it has.
    pub async fn stop(&mut self) -> ExitStatus {
        let pid = self.child.id().to_string();
        let told = Command::new("kill").args(["-TERM", &pid]).status();
        assert!(told.expect("kill").success(), "baton had already ended");
        self.exit().await
    }

    /// Waits until it has ended of its own accord.
    pub async fn exit(&mut self) -> ExitStatus {
        eventually("baton ends", async || {
            self.child.try_wait().expect("a child of ours")
        })
        .await
    }

    /// Starts it again, after [`kill`](Self::kill) or [`stop`](Self::stop), and waits until it is
    /// ready.
    pub async fn restart(&mut self) {
        self.child = self.command.spawn().expect("the baton program");
        self.ready().await;
    }

    /// What the system says of its memory (`VmRSS`, `VmHWM`), in kB.
    pub fn memory(&self, what: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()));
        status
            .expect("a running child")
            .lines()
            .find_map(|line| line.strip_prefix(what)?.strip_prefix(':'))
            .and_then(|value| value.trim().strip_suffix("kB")?.trim().parse().ok())
            .expect("a size in kB")
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where the probes and the numbers are.
    pub fn ops(&self) -> SocketAddr {
        self.ops
    }

    /// Status and body of a GET; none while it does not answer.
    pub async fn get(&self, path: &str) -> Option<(u16, String)> {
        let mut stream = TcpStream::connect(self.ops).await.ok()?;
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n",
            self.address
        );
        stream.write_all(request.as_bytes()).await.ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.ok()?;
        let (head, body) = answer.split_once("\r\n\r\n")?;
        let status = head.split(' ').nth(1)?.parse().ok()?;
        Some((status, body.to_owned()))
    }
}

/// The program; another build of it where the environment names one, to be measured.
fn program() -> String {
    std::env::var("BATON_UNDER_TEST").unwrap_or_else(|_| env!("CARGO_BIN_EXE_baton").to_owned())
}

impl Drop for Baton {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
