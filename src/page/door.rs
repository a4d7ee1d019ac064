//! The way in and out.

use std::net::IpAddr;
use std::sync::Arc;

use axum::Form;
use axum::extract::rejection::FormRejection;
use axum::extract::{FromRequestParts, RawQuery, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use serde::Deserialize;
use tokio::time::{Duration, Instant};

use super::Page;
use super::session::Sessions;
use crate::http::ApiError;
use crate::http::address::{client, told_apart};

const PAGE: &str = include_str!("web/page.html");
const LOGIN: &str = include_str!("web/login.html");

/// Where the login says what went wrong.
const PROBLEM: &str = "<!-- what went wrong -->";

/// A request of one who has shown the token, and until when that is good.
pub(super) struct Operator {
    pub(super) until: Instant,
}

impl FromRequestParts<Arc<Page>> for Operator {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, page: &Arc<Page>) -> Result<Self, ApiError> {
        let left = page.sessions.left(&parts.headers);
        let left = left.ok_or(ApiError::new(StatusCode::FORBIDDEN, "log in at /ops"))?;
        Ok(Self {
            until: Instant::now() + left,
        })
    }
}

/// `GET /ops`: the page, or the way in, from where it leads back to what was asked for.
pub(super) async fn page(
    operator: Result<Operator, ApiError>,
    RawQuery(query): RawQuery,
) -> Response {
    match operator {
        Ok(_) => Html(PAGE).into_response(),
        Err(_) => to("ops/login", query).into_response(),
    }
}

/// `GET /ops/`: the page's files are told relative to `/ops`.
pub(super) async fn without_slash(RawQuery(query): RawQuery) -> Response {
    to("../ops", query).into_response()
}

/// `GET /ops/login`.
pub(super) async fn form() -> Html<&'static str> {
    Html(LOGIN)
}

/// `GET /ops/session`: whether there is one. A browser that comes from another site's link shows
/// its cookie only to what the page itself asks for.
pub(super) async fn session(_: Operator) -> StatusCode {
    StatusCode::NO_CONTENT
}

/// What the form of the login sends.
#[derive(Deserialize)]
pub(super) struct Shown {
    token: String,
}

/// The address that a request comes from.
pub(super) struct Address(IpAddr);

impl FromRequestParts<Arc<Page>> for Address {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, page: &Arc<Page>) -> Result<Self, ApiError> {
        let proxies = &page.trusted_proxies;
        Ok(Self(client(&parts.extensions, &parts.headers, proxies)))
    }
}

/// `POST /ops/login`.
pub(super) async fn login(
    State(page): State<Arc<Page>>,
    Address(address): Address,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    shown: Result<Form<Shown>, FormRejection>,
) -> Response {
    if let Err(wait) = page.tries.take(told_apart(address)) {
        tracing::warn!(%address, "too many tries to log in at /ops");
        let seconds = whole_seconds(wait);
        let problem = format!("Too many tries. Try again in {seconds} s.");
        let refused = again(StatusCode::TOO_MANY_REQUESTS, &problem);
        return ([(header::RETRY_AFTER, seconds)], refused).into_response();
    }
    let Ok(Form(shown)) = shown else {
        return again(StatusCode::BAD_REQUEST, "The form did not arrive whole.");
    };
    let Some(cookie) = page.sessions.open(shown.token.trim(), &headers) else {
        tracing::warn!(%address, "a wrong token at /ops");
        return again(StatusCode::FORBIDDEN, "This is not the token.");
    };
    tracing::info!(%address, "an operator has logged in at /ops");
    ([(header::SET_COOKIE, cookie)], to("../ops", query)).into_response()
}

/// `POST /ops/logout`.
pub(super) async fn logout(headers: HeaderMap) -> Response {
    let cookie = Sessions::close(&headers);
    let cookie = cookie.map(|cookie| [(header::SET_COOKIE, cookie)]);
    (cookie, to("../ops", None)).into_response()
}

/// The login once more.
fn again(status: StatusCode, problem: &str) -> Response {
    (status, Html(LOGIN.replace(PROBLEM, problem))).into_response()
}

/// To a path relative to the one that was asked for: a proxy may have it all under another.
fn to(path: &str, query: Option<String>) -> impl IntoResponse {
    let query = query.map(|query| format!("?{query}"));
    let location = format!("{path}{}", query.unwrap_or_default());
    (StatusCode::SEE_OTHER, [(header::LOCATION, location)])
}

fn whole_seconds(wait: Duration) -> u64 {
    wait.as_secs() + u64::from(wait.subsec_nanos() > 0)
}
