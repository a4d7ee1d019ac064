//! The routes that users' front ends call.

use std::net::IpAddr;
use std::sync::Arc;

use axum::Router;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{MethodRouter, get, patch};
use ipnet::IpNet;
use tokio::sync::Semaphore;
use tower_http::cors::CorsLayer;

use super::auth::Authenticator;
use super::backend::Slot;
use super::rate::Limiter;
use super::{body, choose, history, limits, openapi};
use crate::config::Http;
use crate::librechat::UserId;

const CONVERSATION: &str = "/api/convos/{conversation}";
const SWITCHES: &str = "/api/convos/{conversation}/switches";
const DOCUMENT: &str = "/api/convos/openapi.json";

/// What the routes share.
pub struct Api {
    pub(super) slot: Slot,
    pub(super) auth: Arc<Authenticator>,
    pub(super) trusted_proxies: Vec<IpNet>,
    pub(super) by_address: Option<Limiter<IpAddr>>,
    pub(super) by_user: Option<Limiter<UserId>>,
    pub(super) turns: Semaphore,
}

/// The routes, and the same under `http.base_path`.
pub fn router(settings: &Http, auth: Arc<Authenticator>, slot: Slot) -> Router {
    let limit = settings.rate_limit;
    let api = Arc::new(Api {
        slot,
        auth,
        trusted_proxies: settings.trusted_proxies.clone(),
        by_address: limit.map(Limiter::new),
        by_user: limit.map(Limiter::new),
        turns: Semaphore::new(limits::AT_ONCE),
    });
    let cors = cors(&settings.cors_origins);
    // What a browser asks before it calls is answered by the layer; there has to be a route.
    let preflight = |route: MethodRouter<_>| match cors {
        Some(_) => route.options(async || StatusCode::NO_CONTENT),
        None => route,
    };
    let routes = Router::new()
        .route(CONVERSATION, preflight(patch(choose::choose)))
        .route(SWITCHES, preflight(get(history::history)))
        .route(DOCUMENT, preflight(get(openapi::document)))
        .layer(from_fn_with_state(Arc::clone(&api), limits::admit))
        .layer(from_fn(body::buffered))
        .with_state(api);
    let routes = match cors {
        Some(cors) => routes.layer(cors),
        None => routes,
    };
    if settings.base_path.is_empty() {
        routes
    } else {
        routes.clone().nest(&settings.base_path, routes)
    }
}

/// Pages of these origins, and of no others, may call with the user's credentials.
fn cors(origins: &[HeaderValue]) -> Option<CorsLayer> {
    let layer = CorsLayer::new()
        .allow_origin(origins.to_vec())
        .allow_methods([Method::GET, Method::PATCH])
        .allow_headers([header::AUTHORIZATION, header::CONTENT_TYPE])
        .expose_headers([header::RETRY_AFTER])
        .allow_credentials(true);
    (!origins.is_empty()).then_some(layer)
}
