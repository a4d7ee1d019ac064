//! `baton run`: the wiring of the daemon.

use std::io;
use std::net::SocketAddr;
use std::process::ExitCode;

use axum::Router;
use thiserror::Error;
use tokio::net::TcpListener;
use tracing::info;

use crate::config::Settings;
use crate::health::Health;
use crate::http::{self, ops};
use crate::lifecycle::Lifecycle;

/// The sockets, bound before anything else begins: an address that is taken is found at once.
#[derive(Debug)]
pub struct Listeners {
    /// `http.listen`.
    pub http: TcpListener,
    /// `ops.listen`, where it has an address of its own.
    pub ops: Option<TcpListener>,
}

/// An address that cannot be listened on.
#[derive(Debug, Error)]
#[error("{key}: cannot listen on {address} ({source}); give another address, or stop what has it")]
pub struct BindError {
    key: &'static str,
    address: SocketAddr,
    source: io::Error,
}

impl Listeners {
    /// Binds the addresses of the settings.
    ///
    /// # Errors
    ///
    /// Where an address is taken or not this machine's.
    pub async fn bind(settings: &Settings) -> Result<Self, BindError> {
        let http = bind("http.listen", settings.http.listen).await?;
        let ops = match settings.ops.listen {
            Some(address) => Some(bind("ops.listen", address).await?),
            None => None,
        };
        Ok(Self { http, ops })
    }
}

async fn bind(key: &'static str, address: SocketAddr) -> Result<TcpListener, BindError> {
    TcpListener::bind(address)
        .await
        .map_err(|source| BindError {
            key,
            address,
            source,
        })
}

/// Runs the daemon until a signal, a failure or the cancelled token of `lifecycle`.
pub async fn run(settings: Settings, listeners: Listeners, lifecycle: Lifecycle) -> ExitCode {
    let health = Health::new();
    info!(
        version = env!("CARGO_PKG_VERSION"),
        database = settings.mongodb.database,
        state = settings.state.database,
        "starting"
    );
    serve(listeners, &health, &lifecycle);
    lifecycle.run(&health).await
}

fn serve(listeners: Listeners, health: &Health, lifecycle: &Lifecycle) {
    let ops = ops::router(health.clone());
    let (public, private) = match listeners.ops {
        Some(listener) => (Router::new(), Some((listener, ops))),
        None => (ops, None),
    };
    spawn("http", listeners.http, public, lifecycle);
    if let Some((listener, router)) = private {
        spawn("ops", listener, router, lifecycle);
    }
}

fn spawn(name: &'static str, listener: TcpListener, router: Router, lifecycle: &Lifecycle) {
    if let Ok(address) = listener.local_addr() {
        info!(%address, "{name} listens");
    }
    lifecycle.spawn(name, http::serve(listener, router, lifecycle.token()));
}
