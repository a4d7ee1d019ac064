//! Debian's nginx, in front of servers of a test's or a benchmark's own.

use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;
use tokio::net::TcpStream;

use super::address::free_address;
use super::wait::holds;

/// A running nginx. It is killed when this value goes.
pub struct Nginx {
    address: SocketAddr,
    child: Child,
    /// Its configuration, and what it writes beside it.
    _folder: TempDir,
}

impl Nginx {
    /// Whether this machine has one.
    pub fn is_there() -> bool {
        Command::new(program())
            .arg("-v")
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
    }

    /// Starts it with one server, of these directives.
    pub async fn start(server: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let address = free_address();
        let file = folder.path().join("nginx.conf");
        std::fs::write(&file, configuration(address, server)).expect("a file");
        // One process: it can be killed without leaving a worker behind.
        let child = Command::new("/usr/bin/setpriv")
            .args(["--pdeathsig", "KILL", &program(), "-e", "stderr", "-p"])
            .arg(folder.path())
            .arg("-c")
            .arg(&file)
            .stdin(Stdio::null())
            .spawn()
            .expect("nginx");
        holds("nginx listens", async || {
            TcpStream::connect(address).await.is_ok()
        })
        .await;
        Self {
            address,
            child,
            _folder: folder,
        }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

fn program() -> String {
    std::env::var("NGINX").unwrap_or_else(|_| "/usr/sbin/nginx".to_owned())
}

fn configuration(address: SocketAddr, server: &str) -> String {
    let folders: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|kind| format!("    {kind}_temp_path {kind};\n"))
        .concat();
    format!(
        "daemon off;
master_process off;
worker_rlimit_nofile 8192;
pid nginx.pid;
events {{ worker_connections 4096; }}
http {{
    access_log off;
{folders}
    server {{
        listen {address};
{server}
    }}
}}
"
    )
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
