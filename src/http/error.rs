//! Answers that say what went wrong, in the one form that all of them have.

use std::borrow::Cow;
use std::time::Duration;

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;

/// A request that was not carried out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    status: StatusCode,
    message: Cow<'static, str>,
    retry_after: Option<Duration>,
}

impl ApiError {
    /// An answer with this status that says `message`.
    #[must_use]
    pub fn new(status: StatusCode, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            status,
            message: message.into(),
            retry_after: None,
        }
    }

    /// 400: `field` is wrong.
    #[must_use]
    pub fn field(field: &str, wrong: impl std::fmt::Display) -> Self {
        Self::new(StatusCode::BAD_REQUEST, format!("{field}: {wrong}"))
    }

    /// 401: who asks is not known.
    #[must_use]
    pub fn unauthorized(message: &'static str) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, message)
    }

    /// 503: it may be tried again.
    #[must_use]
    pub fn unavailable(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, message).after(Duration::from_secs(1))
    }

    /// 503: MongoDB did not answer in time.
    #[must_use]
    pub fn database() -> Self {
        Self::unavailable("the database did not answer in time; nothing has changed")
    }

    /// Says when it may be tried again.
    #[must_use]
    pub fn after(mut self, wait: Duration) -> Self {
        self.retry_after = Some(wait);
        self
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = error(self.status, &self.message);
        let headers = response.headers_mut();
        if let Some(wait) = self.retry_after {
            // Whole seconds, and never too soon.
            let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
            headers.insert(header::RETRY_AFTER, seconds.max(1).into());
        }
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

/// An answer that says what went wrong.
#[must_use]
pub fn error(status: StatusCode, message: &str) -> Response {
    let body = Json(json!({ "success": false, "error": message }));
    (status, [(header::CACHE_CONTROL, "no-store")], body).into_response()
}
