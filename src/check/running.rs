//! `baton check --live` and `--ready`: the same questions as the probes', asked of the process that
//! runs with these settings, for containers that have no program to ask them with.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use axum::body::Body;
use axum::http::{StatusCode, Uri};
use http_body_util::{BodyExt, Limited};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use serde_json::Value;
use tokio::time::timeout;

use super::report::Report;
use crate::config::Settings;

/// A process that takes longer to say that it is well is not.
const PATIENCE: Duration = Duration::from_secs(5);

/// More than any answer of a probe.
const LONGEST: usize = 64 << 10;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// What the process is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Probe {
    /// Whether it works; else a restart would help.
    Live,
    /// Whether it also follows MongoDB and can write its records.
    Ready,
}

impl Probe {
    fn path(self) -> &'static str {
        match self {
            Self::Live => "/livez",
            Self::Ready => "/readyz",
        }
    }
}

/// Asks the process that `settings` describe; one line to the report.
pub async fn running(settings: &Settings, probe: Probe, report: &mut Report) {
    const WHAT: &str = "running";
    let (key, listen) = match settings.ops.listen {
        Some(listen) => ("ops.listen", listen),
        None => ("http.listen", settings.http.listen),
    };
    if listen.port() == 0 {
        let text = format!("{key} leaves the port to the system, so that nobody can know it");
        return report.fail(WHAT, text, "Give it a port.");
    }
    let address = format!("http://{}{}", reachable(listen), probe.path());
    match timeout(PATIENCE, ask(&address)).await {
        Ok(Ok((StatusCode::OK, said))) => {
            report.ok(WHAT, format!("{address} says {}", status(&said)));
        }
        Ok(Ok((code, said))) => {
            let text = format!("{address} says {} ({})", status(&said), code.as_u16());
            report.fail(WHAT, text, wrong(&said));
        }
        Ok(Err(error)) => report.fail(
            WHAT,
            format!("{address} cannot be asked: {}", innermost(&*error)),
            format!("Is `baton run` running here, with these settings ({key})?"),
        ),
        Err(_) => {
            let text = format!("{address} does not answer within {} s", PATIENCE.as_secs());
            report.fail(WHAT, text, "A restart may help.");
        }
    }
}

/// Where a process that listens on `listen` can be reached on its own machine.
fn reachable(listen: SocketAddr) -> SocketAddr {
    let ip = match listen.ip() {
        IpAddr::V4(Ipv4Addr::UNSPECIFIED) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(Ipv6Addr::UNSPECIFIED) => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, listen.port())
}

async fn ask(address: &str) -> Result<(StatusCode, Value), BoxError> {
    let client = Client::builder(TokioExecutor::new()).build_http::<Body>();
    let answer = client.get(address.parse::<Uri>()?).await?;
    let status = answer.status();
    let body = Limited::new(answer.into_body(), LONGEST).collect().await?;
    // What is no JSON is another program's, and its status says enough.
    let said = serde_json::from_slice(&body.to_bytes()).unwrap_or_default();
    Ok((status, said))
}

fn status(said: &Value) -> &str {
    said["status"].as_str().unwrap_or("nothing that is Baton's")
}

/// The checks that failed, a line each.
fn wrong(said: &Value) -> String {
    let checks = said["checks"].as_array().into_iter().flatten();
    let lines: Vec<_> = checks
        .filter_map(|check| {
            let (name, detail) = (check["name"].as_str()?, check["detail"].as_str()?);
            Some(format!("{name}: {detail}"))
        })
        .collect();
    lines.join("\n")
}

/// The cause of all, which is what the system said.
fn innermost(error: &(dyn std::error::Error + 'static)) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}
