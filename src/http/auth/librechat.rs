//! Asking LibreChat whose request it is, so that whatever it does about sessions holds here too.

use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode, Uri, header};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use mongodb::bson::oid::ObjectId;
use serde::Deserialize;
use tokio::time::timeout;

use super::cache::{Cache, fingerprint};
use super::user_id;
use crate::http::error::ApiError;

/// How long LibreChat may take.
const PATIENCE: Duration = Duration::from_secs(3);

/// A longer answer is none of LibreChat's.
const LONGEST: usize = 256 * 1024;

/// What LibreChat tells users by: the token, and with `OPENID_REUSE_TOKENS` cookies as well
/// (`api/server/middleware/requireJwtAuth.js`, v0.8.8-rc1).
const CREDENTIALS: [HeaderName; 2] = [header::AUTHORIZATION, header::COOKIE];

const NOT_LIBRECHAT: &str = "librechat.url is not LibreChat's API";

/// Asks LibreChat. Redirects are not followed: they would carry the cookies to somebody else.
pub struct AskLibreChat {
    client: Client<HttpsConnector<HttpConnector>, Body>,
    url: String,
    cache: Cache,
}

/// `GET /api/user` (`getUserController`); `id` came after `_id`.
#[derive(Deserialize)]
struct Answer {
    #[serde(rename = "_id")]
    object_id: Option<String>,
    id: Option<String>,
}

impl AskLibreChat {
    pub(super) fn new(url: &Uri) -> Self {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_connect_timeout(Some(PATIENCE));
        let tls = HttpsConnectorBuilder::new()
            .with_webpki_roots()
            .https_or_http()
            .enable_http1()
            .wrap_connector(tcp);
        Self {
            client: Client::builder(TokioExecutor::new())
                .pool_timer(TokioTimer::new())
                .pool_idle_timeout(Duration::from_secs(4))
                .build(tls),
            url: format!("{}/api/user", url.to_string().trim_end_matches('/')),
            cache: Cache::default(),
        }
    }

    pub(super) async fn identify(&self, headers: &HeaderMap) -> Result<ObjectId, ApiError> {
        let shown = || CREDENTIALS.iter().flat_map(|name| headers.get_all(name));
        if shown().next().is_none() {
            return Err(ApiError::unauthorized(
                "send LibreChat's token in Authorization, or its cookies",
            ));
        }
        let credentials = fingerprint(shown().map(HeaderValue::as_bytes));
        self.cache
            .get(credentials, async {
                timeout(PATIENCE, self.ask(headers)).await.map_err(|_| {
                    tracing::warn!(url = %self.url, "LibreChat did not answer in time");
                    ApiError::unavailable("LibreChat did not answer in time")
                })?
            })
            .await
    }

    async fn ask(&self, headers: &HeaderMap) -> Result<ObjectId, ApiError> {
        let away = |error: &dyn std::fmt::Display| {
            tracing::warn!(url = %self.url, %error, "LibreChat cannot be asked whose request it is");
            ApiError::unavailable("LibreChat does not answer")
        };
        let mut request =
            Request::get(self.url.as_str()).header(header::ACCEPT, "application/json");
        for name in CREDENTIALS {
            for value in headers.get_all(&name) {
                request = request.header(&name, value);
            }
        }
        let request = request.body(Body::empty()).map_err(|error| away(&error))?;
        let response = self.client.request(request).await;
        let response = response.map_err(|error| away(&error))?;
        match response.status() {
            StatusCode::OK => self.read(response).await,
            StatusCode::UNAUTHORIZED => Err(ApiError::unauthorized("LibreChat refuses the token")),
            StatusCode::FORBIDDEN => Err(ApiError::new(
                StatusCode::FORBIDDEN,
                "LibreChat takes no requests of this user",
            )),
            status => Err(self.not_librechat(&format!("status {status}"))),
        }
    }

    async fn read(&self, response: Response<Incoming>) -> Result<ObjectId, ApiError> {
        let body = Limited::new(response.into_body(), LONGEST).collect().await;
        let body = body.map_err(|error| self.not_librechat(&error.to_string()))?;
        serde_json::from_slice::<Answer>(&body.to_bytes())
            .ok()
            .and_then(|answer| user_id(&answer.object_id.or(answer.id)?))
            .ok_or_else(|| self.not_librechat("no user in JSON"))
    }

    fn not_librechat(&self, found: &str) -> ApiError {
        tracing::error!(url = %self.url, found, "{NOT_LIBRECHAT}: mend librechat.url");
        ApiError::unavailable(NOT_LIBRECHAT)
    }
}

impl std::fmt::Debug for AskLibreChat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AskLibreChat")
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}
