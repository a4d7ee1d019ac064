//! A conversation's id in a path.

use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::StatusCode;
use axum::http::request::Parts;

use super::error::ApiError;
use crate::librechat::ConversationId;

/// LibreChat's ids are UUIDs of 36 characters. A longer text than this is nobody's conversation.
const LONGEST: usize = 128;

/// The id that a path names. Any text is one; whether there is such a conversation is for the
/// database to say, which is asked for exactly this text.
pub(super) struct ConversationPath(pub(super) ConversationId);

/// What the user is told about a conversation that is not there, or not the user's.
pub(super) fn no_such_conversation() -> ApiError {
    ApiError::new(StatusCode::NOT_FOUND, "no such conversation")
}

impl<S: Send + Sync> FromRequestParts<S> for ConversationPath {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let parameters = RawPathParams::from_request_parts(parts, state)
            .await
            .map_err(|_| no_such_conversation())?;
        let id = parameters
            .iter()
            .find_map(|(name, value)| (name == "conversation").then_some(value))
            .filter(|id| id.len() <= LONGEST)
            .ok_or_else(no_such_conversation)?;
        Ok(Self(id.into()))
    }
}
