//! `/ops`: a page that shows operators what happens to whom, as it happens.
//!
//! It is there where `ops.token` is set, and shows nothing to those who have not shown it. All of it
//! is in the program; the page asks for nothing from anywhere else.

mod asked;
mod door;
mod files;
mod live;
mod overview;
mod session;
mod shown;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::{HeaderName, HeaderValue, header};
use axum::middleware::{from_fn, map_response};
use axum::response::Response;
use axum::routing::{get, post};
use ipnet::IpNet;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::config::{RateLimit, Settings};
use crate::health::Health;
use crate::http::rate::Limiter;
use crate::http::{Slot, buffered};
use crate::metrics::Metrics;

use self::overview::Overviews;
use self::session::Sessions;

/// Tries of the token that one address has.
const TRIES: RateLimit = RateLimit {
    requests: 10,
    per: Duration::from_secs(60),
    burst: 10,
};

/// More pages than this are not kept up to date at once.
const VIEWERS: usize = 32;

/// On every answer. Scripts and styles are files of this page alone, and no text becomes markup.
const HEADERS: [(HeaderName, HeaderValue); 6] = [
    (
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static(
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
             connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; \
             require-trusted-types-for 'script'; trusted-types 'none'",
        ),
    ),
    (
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    ),
    (header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
    (
        header::REFERRER_POLICY,
        HeaderValue::from_static("no-referrer"),
    ),
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        HeaderValue::from_static("same-origin"),
    ),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        HeaderValue::from_static("same-origin"),
    ),
];

/// What the routes share.
struct Page {
    sessions: Sessions,
    tries: Limiter<IpAddr>,
    trusted_proxies: Vec<IpNet>,
    slot: Slot,
    health: Health,
    metrics: Metrics,
    overviews: Overviews,
    viewers: Arc<Semaphore>,
    stop: CancellationToken,
}

/// The routes; none where there is no `ops.token`. Pages that are open end when `stop` is cancelled.
pub fn router(
    settings: &Settings,
    slot: Slot,
    health: Health,
    metrics: Metrics,
    stop: CancellationToken,
) -> Router {
    let Some(token) = &settings.ops.token else {
        return Router::new();
    };
    let page = Arc::new(Page {
        sessions: Sessions::new(token.clone()),
        tries: Limiter::new(TRIES),
        trusted_proxies: settings.http.trusted_proxies.clone(),
        slot,
        health,
        metrics,
        overviews: Overviews::default(),
        viewers: Arc::new(Semaphore::new(VIEWERS)),
        stop,
    });
    Router::new()
        .route("/ops", get(door::page))
        .route("/ops/", get(door::without_slash))
        .route("/ops/login", get(door::form).post(door::login))
        .route("/ops/logout", post(door::logout))
        .route("/ops/session", get(door::session))
        .route("/ops/events", get(live::events))
        .route("/ops/switches", get(shown::older))
        .route("/ops/{file}", get(files::file))
        .layer(from_fn(buffered))
        .layer(map_response(guarded))
        .with_state(page)
}

async fn guarded(mut response: Response) -> Response {
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(name, value);
    }
    headers
        .entry(header::CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
    response
}
