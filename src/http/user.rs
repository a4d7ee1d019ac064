//! The user that a request is of, as an extractor: no handler runs without knowing.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::StatusCode;
use axum::http::request::Parts;
use tokio::time::timeout_at;

use super::api::Api;
use super::error::ApiError;
use super::limits::{Deadline, too_often};
use crate::librechat::users::Account;

/// The user of a request, and when the answer is due.
pub(super) struct User {
    pub(super) account: Account,
    pub(super) deadline: Deadline,
}

impl FromRequestParts<Arc<Api>> for User {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, api: &Arc<Api>) -> Result<Self, ApiError> {
        let Some(deadline) = parts.extensions.get::<Deadline>().copied() else {
            return Err(ApiError::unavailable("the request was not let in"));
        };
        let known = async {
            let id = api.auth.identify(&parts.headers).await?;
            let users = &api.slot.get()?.users;
            users.find(id).await.map_err(|error| {
                tracing::warn!(%error, "a user could not be looked up");
                ApiError::database()
            })
        };
        let account = timeout_at(deadline.0, known)
            .await
            .map_err(|_| ApiError::database())??
            .ok_or_else(|| ApiError::unauthorized("the token's user does not exist"))?;
        if account.is_of_the_system() {
            let message = "LibreChat's system tenant takes no requests";
            return Err(ApiError::new(StatusCode::FORBIDDEN, message));
        }
        if let Some(limiter) = &api.by_user {
            limiter
                .take(account.user.clone())
                .map_err(|wait| too_often(wait, "this user"))?;
        }
        Ok(Self { account, deadline })
    }
}
