//! A body of JSON, and errors that name the field.

use axum::extract::rejection::JsonRejection;
use axum::extract::{FromRequest, Request};
use axum::http::StatusCode;
use serde::de::DeserializeOwned;

use super::error::ApiError;

/// A body of JSON.
pub(super) struct Body<T>(pub(super) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Body<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        match axum::Json::from_request(request, state).await {
            Ok(axum::Json(value)) => Ok(Self(value)),
            Err(JsonRejection::MissingJsonContentType(_)) => Err(ApiError::new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "the body must be JSON, with Content-Type: application/json",
            )),
            // Both say where it is: `agent_id: invalid type: map, expected a string at …`.
            Err(JsonRejection::JsonDataError(error)) => Err(of_the_body(&error.body_text())),
            Err(JsonRejection::JsonSyntaxError(error)) => Err(of_the_body(&error.body_text())),
            Err(_) => Err(of_the_body("it could not be read")),
        }
    }
}

/// Axum begins with a sentence of its own about Rust's types, which are nothing to the client.
fn of_the_body(text: &str) -> ApiError {
    let why = text.split_once(": ").map_or(text, |(_, why)| why);
    ApiError::new(StatusCode::BAD_REQUEST, format!("the body: {why}"))
}
