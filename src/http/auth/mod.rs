//! Whose request it is.

mod cache;
mod hs256;
mod jwt;
mod librechat;

use axum::http::{HeaderMap, header};
use mongodb::bson::oid::ObjectId;

use self::jwt::Tokens;
use self::librechat::AskLibreChat;
use super::error::ApiError;
use crate::config::{AuthMode, Settings};

/// Finds out whose request it is.
#[derive(Debug)]
pub enum Authenticator {
    /// By LibreChat's `JWT_SECRET`.
    Jwt(Tokens),
    /// By asking LibreChat.
    LibreChat(AskLibreChat),
    /// Not at all: no secret was given.
    Nobody,
}

impl Authenticator {
    /// As the settings say.
    #[must_use]
    pub fn new(settings: &Settings) -> Self {
        match (settings.auth.mode, &settings.auth.jwt_secret) {
            (AuthMode::Jwt, Some(secret)) => match Tokens::new(secret) {
                Ok(tokens) => Self::Jwt(tokens),
                Err(error) => {
                    tracing::error!(%error, "auth.jwt_secret cannot be used; the API refuses all");
                    Self::Nobody
                }
            },
            (AuthMode::LibreChat, _) => match &settings.librechat.url {
                Some(url) => Self::LibreChat(AskLibreChat::new(url)),
                None => Self::Nobody,
            },
            (AuthMode::Jwt, None) => {
                tracing::warn!("auth.jwt_secret is not set; PATCH and history are not served");
                Self::Nobody
            }
        }
    }

    /// The user that the request shows to be of. Whether that user exists is another question.
    pub(super) async fn identify(&self, headers: &HeaderMap) -> Result<ObjectId, ApiError> {
        match self {
            Self::Jwt(tokens) => tokens.verify(bearer(headers)?),
            Self::LibreChat(librechat) => librechat.identify(headers).await,
            Self::Nobody => Err(ApiError::unavailable(
                "this server cannot check tokens: auth.jwt_secret is not set",
            )),
        }
    }
}

/// The token of `Authorization: Bearer`, its scheme in any case as HTTP has it.
pub(super) fn bearer(headers: &HeaderMap) -> Result<&str, ApiError> {
    let missing = || ApiError::unauthorized("send Authorization: Bearer with LibreChat's token");
    let mut all = headers.get_all(header::AUTHORIZATION).iter();
    let (Some(value), None) = (all.next(), all.next()) else {
        return Err(missing());
    };
    let (scheme, token) = value
        .to_str()
        .ok()
        .and_then(|value| value.split_once(' '))
        .ok_or_else(missing)?;
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(missing());
    }
    Ok(token.trim())
}

/// An id of a user's, of 24 hex digits.
fn user_id(text: &str) -> Option<ObjectId> {
    ObjectId::parse_str(text).ok()
}
