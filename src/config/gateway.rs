//! `[gateway]`: Baton in front of LibreChat.

use std::time::Duration;

use super::http::Ops;
use super::layers::Layers;
use super::librechat::LibreChat;
use super::parse;
use super::problem::Complaint;

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
    /// Whether the target answers the message in which it was switched to.
    pub same_turn: SameTurn,
}

/// Whether the target answers the message in which it was switched to, and how it gets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SameTurn {
    /// It answers the next one.
    Off,
    /// LibreChat's own web client sends the message once more, to the target.
    Resend,
    /// The gateway has the target answer it in the same stream.
    Splice,
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
        let same_turn = layers.or(
            "gateway.same_turn",
            SameTurn::Off,
            |value| match parse::text(value)?.as_str() {
                "off" => Ok(SameTurn::Off),
                "resend" => Ok(SameTurn::Resend),
                "splice" => Ok(SameTurn::Splice),
                other => Err(Complaint::new(
                    format!("found {other:?}"),
                    "give \"off\", \"resend\" or \"splice\"",
                )),
            },
        );
        if same_turn != SameTurn::Off && !enabled {
            let needs = Complaint::new("the gateway is off", "set gateway.enabled = true as well");
            layers.complain("gateway.same_turn", needs);
        }
        Self {
            enabled,
            same_turn,
            timeout: layers.or(
                "gateway.timeout",
                TIMEOUT,
                parse::duration(SECOND..=60 * 60 * SECOND),
            ),
        }
    }
}
