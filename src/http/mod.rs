//! What Baton serves.

pub mod ops;

use std::io;
use std::time::Duration;

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::{Json, Router};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::warn;

/// How long requests that are under way have to end once it is time to. Less than
/// [`crate::lifecycle::DRAIN`], so that a stream without an end makes no failure of a clean one.
const GRACE: Duration = Duration::from_secs(5);

/// Serves `router` until `shutdown` is cancelled and the requests under way have ended.
///
/// # Errors
///
/// Where the listener fails for good.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    shutdown: CancellationToken,
) -> io::Result<()> {
    let router = router
        .fallback(async || error(StatusCode::NOT_FOUND, "no such path"))
        .method_not_allowed_fallback(async || {
            error(
                StatusCode::METHOD_NOT_ALLOWED,
                "this path has no such method",
            )
        });
    let late = {
        let shutdown = shutdown.clone();
        async move {
            shutdown.cancelled().await;
            sleep(GRACE).await;
        }
    };
    let server = axum::serve(listener, router).with_graceful_shutdown(shutdown.cancelled_owned());
    tokio::select! {
        outcome = server => outcome,
        () = late => {
            warn!("requests were still under way and are cut off");
            Ok(())
        }
    }
}

/// An answer that says what went wrong, in the one form that all of them have.
#[must_use]
pub fn error(status: StatusCode, message: &str) -> Response {
    (status, Json(json!({ "success": false, "error": message }))).into_response()
}
