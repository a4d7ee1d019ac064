//! What operators and their machines ask: `/livez`, `/readyz`, `/health`, `/metrics`.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use serde_json::json;

use super::auth::bearer;
use super::error::ApiError;
use crate::config::Secret;
use crate::health::Health;
use crate::metrics::{CONTENT_TYPE, Metrics};

struct Ops {
    health: Health,
    metrics: Metrics,
    token: Option<Secret>,
}

/// The routes. `/health` is the name that LibreChat and most container checks use for `/readyz`.
/// `token` is what a scraper of `/metrics` has to show; without one it is closed, as LibreChat's.
pub fn router(health: Health, metrics: Metrics, token: Option<Secret>) -> Router {
    let ops = Ops {
        health,
        metrics,
        token,
    };
    Router::new()
        .route("/livez", get(live))
        .route("/readyz", get(ready))
        .route("/health", get(ready))
        .route("/metrics", get(numbers))
        .with_state(Arc::new(ops))
}

/// Whether a restart would help.
async fn live(State(ops): State<Arc<Ops>>) -> Response {
    if ops.health.alive() {
        answer(StatusCode::OK, json!({ "status": "alive" }))
    } else {
        answer(
            StatusCode::SERVICE_UNAVAILABLE,
            json!({ "status": "stalled" }),
        )
    }
}

/// Whether switches are seen and kept at this moment.
async fn ready(State(ops): State<Arc<Ops>>) -> Response {
    let report = ops.health.report();
    let (code, status) = if report.ready {
        (StatusCode::OK, "ready")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "unready")
    };
    answer(code, json!({ "status": status, "checks": report.checks }))
}

async fn numbers(State(ops): State<Arc<Ops>>, headers: HeaderMap) -> Response {
    let Some(token) = &ops.token else {
        return ApiError::unauthorized("metrics.token is not set").into_response();
    };
    match bearer(&headers) {
        Ok(shown) if token.is(shown) => {
            let kind = [
                (header::CONTENT_TYPE, CONTENT_TYPE),
                (header::CACHE_CONTROL, "no-store"),
            ];
            (kind, ops.metrics.text()).into_response()
        }
        _ => {
            ApiError::unauthorized("send Authorization: Bearer with metrics.token").into_response()
        }
    }
}

fn answer(code: StatusCode, body: serde_json::Value) -> Response {
    (code, [(header::CACHE_CONTROL, "no-store")], Json(body)).into_response()
}
