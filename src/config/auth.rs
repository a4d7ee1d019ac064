//! `[auth]`: how a user's request shows whose it is.

use super::layers::Layers;
use super::librechat::LibreChat;
use super::parse;
use super::problem::Complaint;
use super::secret::Secret;

/// `[auth]`: how a user's request shows whose it is.
#[derive(Clone, Debug)]
pub struct Auth {
    /// Who checks the token.
    pub mode: AuthMode,
    /// LibreChat's `JWT_SECRET`.
    pub jwt_secret: Option<Secret>,
}

/// Who checks a user's token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthMode {
    /// Baton, with LibreChat's `JWT_SECRET`.
    Jwt,
    /// LibreChat, which is asked.
    LibreChat,
}

impl Auth {
    pub(super) fn read(layers: &mut Layers, librechat: &LibreChat) -> Self {
        let mode = layers.or("auth.mode", AuthMode::Jwt, |value| {
            match parse::text(value)?.as_str() {
                "jwt" => Ok(AuthMode::Jwt),
                "librechat" => Ok(AuthMode::LibreChat),
                other => Err(Complaint::new(
                    format!("found {other:?}"),
                    "give \"jwt\" or \"librechat\"",
                )),
            }
        });
        if mode == AuthMode::LibreChat && librechat.url.is_none() {
            librechat.require_url(layers, "auth.mode = \"librechat\" asks LibreChat");
        }
        Self {
            mode,
            jwt_secret: layers.optional("auth.jwt_secret", parse::secret),
        }
    }
}
