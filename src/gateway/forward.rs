//! One request to LibreChat, and its answer back.

use std::net::SocketAddr;

use axum::body::{Body, HttpBody};
use axum::http::{Request, Response, StatusCode, Version};

use super::headers;
use super::tunnel::Tunnel;
use super::upstream::UpstreamError;
use super::{Gateway, tunnel};
use crate::http::error;
use crate::librechat::chat::ChatRequest;
use crate::metrics::Passage;

impl Gateway {
    /// Makes a client's request one to LibreChat. Its address stays the client's until it is sent.
    pub(super) fn prepare(&self, mut request: Request<Body>, peer: SocketAddr) -> Request<Body> {
        if let Some(tunnel) = Tunnel::asked_for(&mut request) {
            request.extensions_mut().insert(tunnel);
        }
        headers::to_upstream(&mut request, peer, &self.trusted);
        *request.version_mut() = Version::HTTP_11;
        request
    }

    /// Sends a prepared request on; the answer comes back as LibreChat gives it, or says why
    /// there is none.
    pub(super) async fn forward(&self, request: Request<Body>) -> Response<Body> {
        self.send(request).await.unwrap_or_else(|error| {
            let because = std::error::Error::source(&error)
                .map(std::string::ToString::to_string)
                .unwrap_or_default();
            tracing::warn!(%error, because, "a request was not answered by LibreChat");
            self.metrics.passed(Passage::Unanswered);
            refuse(&error)
        })
    }

    /// The same with the reason.
    pub(super) async fn send(
        &self,
        mut request: Request<Body>,
    ) -> Result<Response<Body>, UpstreamError> {
        let follows = follows(&request);
        *request.uri_mut() = self.upstream.address(request.uri())?;
        let tunnel = request.extensions_mut().remove::<Tunnel>();
        if follows && tunnel.is_none() {
            let mut response = self.upstream.follow(request).await?;
            headers::to_client(response.headers_mut());
            return Ok(response);
        }
        if let Some(tunnel) = &tunnel {
            tunnel.ask(request.headers_mut());
        }
        let mut response = self.upstream.send(request).await?;
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            if let Some(tunnel) = tunnel {
                return Ok(tunnel.open(response));
            }
            tracing::warn!("LibreChat changed the protocol, which nobody had asked for");
            return Ok(tunnel::unasked());
        }
        headers::to_client(response.headers_mut());
        *response.version_mut() = Version::HTTP_11;
        Ok(response.map(Body::new))
    }
}

/// Whether the answer is a turn's events.
fn follows(request: &Request<Body>) -> bool {
    let asked = request.uri();
    let what = ChatRequest::of(request.method().as_str(), asked.path(), asked.query());
    matches!(what, Some(ChatRequest::Stream { .. })) && request.body().is_end_stream()
}

fn refuse(reason: &UpstreamError) -> Response<Body> {
    let (status, words) = match reason {
        UpstreamError::Slow => (StatusCode::GATEWAY_TIMEOUT, "LibreChat does not answer"),
        UpstreamError::Path(_) => (StatusCode::BAD_REQUEST, "this is no path"),
        UpstreamError::Down(_) | UpstreamError::NoAddress => {
            (StatusCode::BAD_GATEWAY, "LibreChat cannot be reached")
        }
    };
    error(status, words)
}
