//! How much is done at once, for whom, and for how long.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tokio::time::{Instant, timeout};

use super::address::{client, told_apart};
use super::api::Api;
use super::error::ApiError;

/// An answer comes within 5 s, whatever the database does; so much of it is for the work.
const WORK: Duration = Duration::from_millis(4500);

/// More requests than this are not worked on at once.
pub(super) const AT_ONCE: usize = 256;

/// So long a request waits for its turn.
const TURN: Duration = Duration::from_secs(2);

/// When the answer is due: what is not done by then is not done.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deadline(pub(super) Instant);

/// Lets a request in: from an address that has not asked too often, when it is its turn.
pub(super) async fn admit(
    State(api): State<Arc<Api>>,
    mut request: Request,
    next: Next,
) -> Response {
    let deadline = Deadline(Instant::now() + WORK);
    let address = client(
        request.extensions(),
        request.headers(),
        &api.trusted_proxies,
    );
    if let Some(limiter) = &api.by_address
        && let Err(wait) = limiter.take(told_apart(address))
    {
        return too_often(wait, "this address").into_response();
    }
    let Ok(Ok(_turn)) = timeout(TURN, api.turns.acquire()).await else {
        let message = "too many requests at once; try again";
        return ApiError::unavailable(message).into_response();
    };
    request.extensions_mut().insert(deadline);
    next.run(request).await
}

/// 429: `whose` requests are too many.
pub(super) fn too_often(wait: Duration, whose: &str) -> ApiError {
    let message = format!("too many requests of {whose}; try again later");
    ApiError::new(StatusCode::TOO_MANY_REQUESTS, message).after(wait)
}
