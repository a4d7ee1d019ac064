//! Upgraded connections, such as a WebSocket's: bytes both ways, whatever they are.

use axum::body::Body;
use axum::http::header::{CONNECTION, HeaderMap, HeaderValue, UPGRADE};
use axum::http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::upgrade::{OnUpgrade, on};
use hyper_util::rt::TokioIo;
use tokio::io::copy_bidirectional;

use crate::http::error;

/// A client's wish to speak another protocol.
#[derive(Clone)]
pub(super) struct Tunnel {
    protocol: HeaderValue,
    client: OnUpgrade,
}

impl Tunnel {
    /// Takes the wish out of a request, where it has one.
    pub(super) fn asked_for(request: &mut Request<Body>) -> Option<Self> {
        let asks = request.headers().get_all(CONNECTION).iter().any(|value| {
            value.to_str().is_ok_and(|value| {
                value
                    .split(',')
                    .any(|option| option.trim().eq_ignore_ascii_case("upgrade"))
            })
        });
        let protocol = request.headers().get(UPGRADE).filter(|_| asks)?.clone();
        Some(Self {
            protocol,
            client: on(request),
        })
    }

    /// Hands the wish on.
    pub(super) fn ask(&self, headers: &mut HeaderMap) {
        headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(UPGRADE, self.protocol.clone());
    }

    /// LibreChat has granted it: joins both connections, and tells the client.
    pub(super) fn open(self, mut response: Response<Incoming>) -> Response<Body> {
        let upstream = on(&mut response);
        let client = self.client;
        tokio::spawn(async move {
            match tokio::try_join!(client, upstream) {
                Ok((client, upstream)) => {
                    let (mut client, mut upstream) = (TokioIo::new(client), TokioIo::new(upstream));
                    // Either side may break off at any time.
                    let _ = copy_bidirectional(&mut client, &mut upstream).await;
                }
                Err(error) => tracing::debug!(%error, "a connection was not upgraded"),
            }
        });
        let (mut parts, _) = response.into_parts();
        let protocol = parts.headers.get(UPGRADE).cloned();
        super::headers::to_client(&mut parts.headers);
        parts
            .headers
            .insert(CONNECTION, HeaderValue::from_static("upgrade"));
        parts
            .headers
            .insert(UPGRADE, protocol.unwrap_or(self.protocol));
        Response::from_parts(parts, Body::empty())
    }
}

/// The answer where LibreChat upgraded a connection that was not to be.
pub(super) fn unasked() -> Response<Body> {
    error(
        StatusCode::BAD_GATEWAY,
        "LibreChat changed the protocol without being asked",
    )
}
