//! What every router of Baton's has: counted requests, and errors in JSON for what is not there.

use axum::extract::{MatchedPath, Request, State};
use axum::http::{Method, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use axum::{Router, body};
use tokio::time::Instant;

use super::body::drain;
use super::error::error;
use crate::metrics::Metrics;

/// `router` with counted requests, and with JSON where a path or a method is not there.
pub fn observed(router: Router, metrics: Metrics) -> Router {
    router
        .fallback(not_found)
        .method_not_allowed_fallback(not_allowed)
        .layer(from_fn_with_state(metrics, count))
}

async fn not_found(body: body::Body) -> Response {
    drain(body).await;
    error(StatusCode::NOT_FOUND, "no such path")
}

async fn not_allowed(body: body::Body) -> Response {
    drain(body).await;
    error(
        StatusCode::METHOD_NOT_ALLOWED,
        "this path has no such method",
    )
}

async fn count(State(metrics): State<Metrics>, request: Request, next: Next) -> Response {
    let started = Instant::now();
    let route = request.extensions().get::<MatchedPath>().cloned();
    let method = known(request.method());
    let response = next.run(request).await;
    // A path that is nobody's may be anything, and must not become a label.
    let route = route.as_ref().map_or("none", MatchedPath::as_str);
    metrics.request(route, method, response.status().as_u16(), started.elapsed());
    response
}

/// A method may be any word, too.
fn known(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PATCH => "PATCH",
        Method::PUT => "PUT",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}
