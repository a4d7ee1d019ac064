//! `[gateway]`: Baton in front of LibreChat.

use std::time::Duration;

use super::http::Ops;
use super::layers::Layers;
use super::librechat::LibreChat;
use super::parse;

const SECOND: Duration = Duration::from_secs(1);

/// LibreChat answers an upload when it has worked on the file.
const TIMEOUT: Duration = Duration::from_secs(5 * 60);

/// `[gateway]`: Baton in front of LibreChat.
#[derive(Clone, Debug)]
pub struct Gateway {
    /// Whether every path that is not Baton's own goes on to `librechat.url`.
    pub enabled: bool,
    /// How long LibreChat has to begin an answer.
    pub timeout: Duration,
}

impl Gateway {
    pub(super) fn read(layers: &mut Layers, librechat: &LibreChat, ops: &Ops) -> Self {
        let enabled = layers.or("gateway.enabled", false, parse::boolean);
        if enabled {
            librechat.require_url(layers, "the gateway has to know where to go");
            if ops.listen.is_none() {
                layers.require(
                    "ops.listen",
                    "with the gateway http.listen is public, and health is not",
                    "\"127.0.0.1:8788\"",
                );
            }
        }
        Self {
            enabled,
            timeout: layers.or(
                "gateway.timeout",
                TIMEOUT,
                parse::duration(SECOND..=60 * 60 * SECOND),
            ),
        }
    }
}
