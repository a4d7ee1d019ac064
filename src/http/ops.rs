//! What operators and their machines ask: `/livez`, `/readyz`, `/health`.

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use serde_json::json;

use crate::health::Health;

/// The routes. `/health` is the name that LibreChat and most container checks use for `/readyz`.
pub fn router(health: Health) -> Router {
    Router::new()
        .route("/livez", get(live))
        .route("/readyz", get(ready))
        .route("/health", get(ready))
        .with_state(health)
}

/// Whether a restart would help.
async fn live(State(health): State<Health>) -> Response {
    if health.alive() {
        answer(StatusCode::OK, json!({ "status": "alive" }))
    } else {
        answer(
            StatusCode::SERVICE_UNAVAILABLE,
            json!({ "status": "stalled" }),
        )
    }
}

/// Whether switches are seen and kept at this moment.
async fn ready(State(health): State<Health>) -> Response {
    let report = health.report();
    let (code, status) = if report.ready {
        (StatusCode::OK, "ready")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "unready")
    };
    answer(code, json!({ "status": status, "checks": report.checks }))
}

fn answer(code: StatusCode, body: serde_json::Value) -> Response {
    (code, [(header::CACHE_CONTROL, "no-store")], Json(body)).into_response()
}
