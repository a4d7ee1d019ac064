//! Whether MongoDB is there, and what it is.

use mongodb::options::{ClientOptions, ServerAddress};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::reason::reason;
use super::report::Report;
use crate::config::Settings;
use crate::mongo::{Found, PATIENCE};

pub(super) const WHAT: &str = "MongoDB";

/// The options that the URI stands for. Names of `mongodb+srv` are looked up here.
pub(super) async fn options(settings: &Settings, report: &mut Report) -> Option<ClientOptions> {
    match ClientOptions::parse(settings.mongodb.uri.expose()).await {
        Ok(mut options) => {
            options.app_name = Some("baton check".to_owned());
            options.connect_timeout = Some(PATIENCE);
            options.server_selection_timeout = Some(PATIENCE);
            Some(options)
        }
        Err(error) => {
            report.fail(
                WHAT,
                format!("mongodb.uri leads nowhere: {}", reason(&error)),
                "With mongodb+srv:// the hosts are looked up in the DNS: see that this machine \
                 has it,\nor name the hosts in a mongodb:// URI.",
            );
            None
        }
    }
}

/// Finds a host of the URI that answers, and asks what it is; without a login, so that a wrong
/// password hides nothing.
pub(super) async fn first(options: &ClientOptions, report: &mut Report) -> Option<Found> {
    let mut found = None;
    let mut silent = Vec::new();
    for address in &options.hosts {
        match connect(address).await {
            Ok(()) => found = found.or_else(|| Some(address.clone())),
            Err(why) => silent.push(format!("{address}: {why}")),
        }
    }
    let Some(address) = found else {
        report.fail(
            WHAT,
            format!("no answer from {}", silent.join(", ")),
            "See that MongoDB runs, that host and port in mongodb.uri are right, and that it \
             listens there.\nInside a container 127.0.0.1 is the container itself: name \
             MongoDB's service instead.",
        );
        return None;
    };
    if !silent.is_empty() {
        report.warn(
            WHAT,
            format!("no answer from {}", silent.join(", ")),
            "Others answer, so this may be on purpose.",
        );
    }
    match Found::at(options, address.clone()).await {
        Ok(found) => Some(found),
        Err(error) => {
            report.fail(
                WHAT,
                format!(
                    "{address} does not answer as MongoDB does: {}",
                    reason(&error)
                ),
                "See that the port is MongoDB's, and whether it wants TLS: with it, tls=true has \
                 to be among the\nURI's options, and without it not.",
            );
            None
        }
    }
}

async fn connect(address: &ServerAddress) -> Result<(), String> {
    let ServerAddress::Tcp { host, port } = address else {
        return Ok(());
    };
    match timeout(
        PATIENCE,
        TcpStream::connect((host.as_str(), port.unwrap_or(27017))),
    )
    .await
    {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err(format!("nothing within {} s", PATIENCE.as_secs())),
    }
}
