//! What the gateway costs: how much later an event arrives, how fast a large file comes through, and
//! what open streams take in memory; next to a direct connection and to nginx, by turns in one run.
//!
//! `cargo bench --bench gateway -- events` measures one of them alone: `events`, `download`, `idle`.
#![expect(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a benchmark that cannot go on says why and stops"
)]
#![allow(missing_docs, unreachable_pub, reason = "it is a program of its own")]

mod download;
mod events;
#[path = "../../tests/harness/mod.rs"]
mod harness;
mod idle;
mod librechat;

use std::net::SocketAddr;

use harness::{Baton, Mongod, Nginx, TestDb, Topology, free_address};

use librechat::LibreChat;

#[tokio::main]
async fn main() {
    let named: Vec<String> = std::env::args().filter(|it| !it.starts_with('-')).collect();
    let wanted = |it: &str| named.len() < 2 || named.iter().any(|name| name == it);
    let mongod = Mongod::start(Topology::ReplicaSet).await;
    let db = mongod.db().await;
    let librechat = LibreChat::start().await;
    let baton = in_front(&librechat, &db).await;
    let nginx = if Nginx::is_there() {
        Some(Nginx::start(&passing(librechat.address())).await)
    } else {
        println!("no nginx here to compare with (apt-get install nginx)\n");
        None
    };
    let mut ways = vec![
        Way("direct", librechat.address()),
        Way("Baton", baton.address()),
    ];
    ways.extend(nginx.as_ref().map(|nginx| Way("nginx", nginx.address())));

    if wanted("events") {
        events::measure(&librechat, &ways).await;
    }
    if wanted("download") {
        download::measure(&ways).await;
    }
    drop((nginx, baton));
    if wanted("idle") {
        // Of a process that has done nothing else.
        let baton = in_front(&librechat, &db).await;
        idle::measure(&librechat, &baton).await;
    }
}

/// A way to LibreChat.
#[derive(Clone, Copy)]
struct Way(&'static str, SocketAddr);

async fn in_front(librechat: &LibreChat, db: &TestDb) -> Baton {
    let (url, ops) = (
        format!("http://{}", librechat.address()),
        free_address().to_string(),
    );
    let settings = [
        ("JWT_SECRET", harness::JWT_SECRET),
        ("BATON__SWITCH__SERVERS", "switcher"),
        ("BATON__GATEWAY__ENABLED", "true"),
        ("BATON__LIBRECHAT__URL", url.as_str()),
        ("BATON__OPS__LISTEN", ops.as_str()),
        ("BATON__LOG__LEVEL", "error"),
    ];
    Baton::start_with(db, &settings).await
}

/// nginx as a proxy that does as little as it can.
fn passing(to: SocketAddr) -> String {
    format!(
        "location / {{
            proxy_pass http://{to};
            proxy_http_version 1.1;
            proxy_set_header Connection \"\";
            proxy_max_temp_file_size 0;
        }}
        location /api/agents/chat {{
            proxy_pass http://{to};
            proxy_http_version 1.1;
            proxy_set_header Connection \"\";
            proxy_buffering off;
        }}"
    )
}
