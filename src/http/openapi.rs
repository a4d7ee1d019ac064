//! The API, described for machines. It is made from the code that serves it.

use axum::Json;
use axum::response::IntoResponse;
use serde::Serialize;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::{IntoResponses, Modify, OpenApi, ToSchema};

use super::{choose, history};

/// What went wrong.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Failure {
    /// Always false.
    success: bool,
    /// In words. Where a field of the request is wrong, it is named.
    error: String,
}

/// Every answer that is no success.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "it is there for its description")]
pub(super) enum Failures {
    /// The body or a parameter is not what it should be
    #[response(status = 400)]
    BadRequest(Failure),
    /// No token of a session, or one that has expired
    #[response(status = 401)]
    Unauthorized(Failure),
    /// The operator's rules forbid it, or LibreChat takes no requests of this user
    #[response(status = 403)]
    Forbidden(Failure),
    /// The user has no such conversation
    #[response(status = 404)]
    NotFound(Failure),
    /// The body took too long
    #[response(status = 408)]
    RequestTimeout(Failure),
    /// The body is longer than 16 KiB
    #[response(status = 413)]
    PayloadTooLarge(Failure),
    /// The body is not JSON
    #[response(status = 415)]
    UnsupportedMediaType(Failure),
    /// The user has no such agent, or the conversation is not one with an agent
    #[response(status = 422)]
    UnprocessableEntity(Failure),
    /// Too many requests; Retry-After says when to come back
    #[response(status = 429)]
    TooManyRequests(Failure),
    /// The database did not answer in time; nothing has changed
    #[response(status = 503)]
    ServiceUnavailable(Failure),
}

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Baton",
        description = "Makes agent handoffs in LibreChat permanent.",
        license(name = "MIT", identifier = "MIT"),
    ),
    paths(choose::choose, history::history),
    components(schemas(Failure)),
    modifiers(&Token)
)]
struct Document;

struct Token;

impl Modify for Token {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let scheme = HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .bearer_format("JWT")
            .description(Some("The session token that LibreChat gave the user"))
            .build();
        let components = document.components.get_or_insert_default();
        components.add_security_scheme("token", SecurityScheme::Http(scheme));
    }
}

/// The document.
pub(super) async fn document() -> impl IntoResponse {
    Json(Document::openapi())
}
