//! `baton run` from its start to its end, without a MongoDB.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixDatagram;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

/// Long enough for any machine: a test that waits so long has failed.
const PATIENCE: Duration = Duration::from_secs(60);

/// Nothing listens there.
pub(crate) const URI: &str = "mongodb://127.0.0.1:9/LibreChat?replicaSet=rs0";

/// A daemon whose log is read line by line.
pub(crate) struct Daemon {
    child: Child,
    log: BufReader<ChildStderr>,
    _folder: TempDir,
}

impl Daemon {
    pub(crate) fn start(variables: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_baton"))
            .arg("run")
            .current_dir(folder.path())
            .env_clear()
            .env("MONGO_URI", URI)
            .env("BATON__HTTP__LISTEN", "127.0.0.1:0")
            .env("BATON__LOG__FORMAT", "json")
            .envs(variables.iter().copied())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let log = BufReader::new(child.stderr.take().unwrap());
        Self {
            child,
            log,
            _folder: folder,
        }
    }

    /// Waits for the line with this message.
    fn wait_for(&mut self, message: &str) -> Value {
        let mut seen = String::new();
        loop {
            let start = seen.len();
            let length = self.log.read_line(&mut seen).unwrap();
            assert_ne!(length, 0, "no {message:?} in:\n{seen}");
            let line: Value = serde_json::from_str(&seen[start..]).unwrap();
            if line["message"] == message {
                return line;
            }
        }
    }

    pub(crate) fn address(&mut self, name: &str) -> String {
        let line = self.wait_for(&format!("{name} listens"));
        line["address"].as_str().unwrap().to_owned()
    }

    fn signal(&self, name: &str) {
        let kill = format!("kill -{name} {}", self.child.id());
        let status = Command::new("sh").args(["-c", &kill]).status().unwrap();
        assert!(status.success());
    }

    /// Reads the log to its end, and gives it and the exit code.
    fn end(mut self) -> (Option<i32>, String) {
        let mut rest = String::new();
        self.log.read_to_string(&mut rest).unwrap();
        (self.child.wait().unwrap().code(), rest)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // It has ended already, but where a test has failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Asks once, and gives the status and the body.
fn ask(address: &str, method: &str, path: &str) -> (u16, Value) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let host = "Host: baton\r\nConnection: close";
    write!(stream, "{method} {path} HTTP/1.1\r\n{host}\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    (status, serde_json::from_str(body).unwrap())
}

#[test]
fn without_mongodb_it_lives_and_is_not_ready_and_says_why() {
    let mut daemon = Daemon::start(&[]);
    let address = daemon.address("http");
    assert_eq!(
        ask(&address, "GET", "/livez"),
        (200, json!({ "status": "alive" }))
    );
    for path in ["/readyz", "/health"] {
        let (status, body) = ask(&address, "GET", path);
        assert_eq!(status, 503);
        assert_eq!(body["status"], "unready");
        assert_eq!(body["checks"][0]["name"], "change stream");
        assert_eq!(body["checks"][0]["ok"], false);
        assert!(body["checks"][0]["detail"].is_string());
        assert_eq!(body["checks"][1]["name"], "state database");
    }
    daemon.signal("TERM");
    assert_eq!(daemon.end().0, Some(0));
}

#[test]
fn what_is_not_there_is_told_in_json() {
    let mut daemon = Daemon::start(&[]);
    let address = daemon.address("http");
    let (status, body) = ask(&address, "GET", "/nowhere");
    assert_eq!(status, 404);
    assert_eq!(body["success"], false);
    assert!(body["error"].is_string());
    let (status, body) = ask(&address, "POST", "/livez");
    assert_eq!(status, 405);
    assert_eq!(body["success"], false);
    daemon.signal("INT");
    assert_eq!(daemon.end().0, Some(0));
}

#[test]
fn with_an_address_of_its_own_health_is_not_public() {
    let mut daemon = Daemon::start(&[("BATON__OPS__LISTEN", "127.0.0.1:0")]);
    let public = daemon.address("http");
    let private = daemon.address("ops");
    assert_eq!(ask(&public, "GET", "/livez").0, 404);
    assert_eq!(ask(&private, "GET", "/livez").0, 200);
    daemon.signal("TERM");
    assert_eq!(daemon.end().0, Some(0));
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let mut daemon = Daemon::start(&[]);
    let address = daemon.address("http");
    // A request that never comes to its end keeps the daemon waiting.
    let mut stream = TcpStream::connect(&address).unwrap();
    write!(stream, "GET /livez HTTP/1.1\r\nHost: ").unwrap();
    assert_eq!(ask(&address, "GET", "/livez").0, 200);
    daemon.signal("TERM");
    daemon.wait_for("shutting down");
    daemon.signal("TERM");
    assert_eq!(daemon.end().0, Some(128 + 15));
}

#[test]
fn the_service_manager_hears_how_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let next = || {
        let mut buffer = [0; 1024];
        let length = socket.recv(&mut buffer).unwrap();
        String::from_utf8_lossy(&buffer[..length]).into_owned()
    };
    let daemon = Daemon::start(&[
        ("NOTIFY_SOCKET", path.to_str().unwrap()),
        ("WATCHDOG_USEC", "400000"),
    ]);
    assert_eq!(next(), "READY=1\n");
    let early = [next(), next(), next()];
    assert!(
        early
            .iter()
            .any(|m| m.starts_with("STATUS=change stream: ")),
        "{early:?}"
    );
    assert!(early.iter().any(|m| m == "WATCHDOG=1\n"), "{early:?}");
    daemon.signal("TERM");
    let asked = Instant::now();
    while next() != "STOPPING=1\n" {
        assert!(asked.elapsed() < PATIENCE, "it does not say that it stops");
    }
    // From here on nobody listens, and that holds nothing up.
    assert_eq!(daemon.end().0, Some(0));
}

#[test]
fn the_log_holds_no_secret() {
    let uri = "mongodb://user:hunter2@127.0.0.1:9/LibreChat?replicaSet=rs0";
    let mut daemon = Daemon::start(&[
        ("MONGO_URI", uri),
        ("JWT_SECRET", "hunter2"),
        ("BATON__LOG__LEVEL", "trace"),
    ]);
    let address = daemon.address("http");
    assert_eq!(ask(&address, "GET", "/readyz").0, 503);
    daemon.signal("TERM");
    let (code, log) = daemon.end();
    assert_eq!(code, Some(0));
    assert!(!log.contains("hunter2"), "{log}");
}
