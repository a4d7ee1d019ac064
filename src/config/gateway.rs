//! `[gateway]`: Baton in front of LibreChat.

use super::http::Ops;
use super::layers::Layers;
use super::librechat::LibreChat;
use super::parse;

/// `[gateway]`: Baton in front of LibreChat.
#[derive(Clone, Debug)]
pub struct Gateway {
    /// Whether every path that is not Baton's own goes on to `librechat.url`.
    pub enabled: bool,
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
        Self { enabled }
    }
}
