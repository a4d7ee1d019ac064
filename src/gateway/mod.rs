//! Baton in front of LibreChat: everything goes on to `librechat.url`, and the chat's requests are
//! seen to on the way, so that LibreChat's own web client follows a switch at once.
//!
//! - The last event of a turn names the agent that is in force ([`finals`], [`events`]).
//! - A turn that a tab begins with an agent of which it cannot know that it was left is given to
//!   the agent in force ([`stale`], [`posts`]).
//! - The answer to Stop waits until the client has taken that last event in ([`stops`]).
//! - A client that came too late for the last event gets it all the same ([`lost`]).
//! - Where the operator wants it, the target answers the message in which it was switched to
//!   ([`same_turn`]).
//!
//! Whatever cannot be found out within a second passes as it came.

mod answers;
mod decisions;
mod events;
mod finals;
mod follow;
mod forward;
mod generations;
mod headers;
mod ledger;
mod lost;
mod posts;
mod progress;
mod quiet;
mod same_turn;
mod stale;
mod stops;
mod take;
mod tunnel;
mod upstream;
mod zones;

use std::net::SocketAddr;
use std::sync::Arc;

use axum::body::Body;
use axum::http::{Method, Request, StatusCode};
use axum::response::Response;

pub use self::headers::Trusted;
pub use self::ledger::Ledger;
pub use self::upstream::{Upstream, UpstreamError};

use self::decisions::Decisions;
use self::stops::Stops;
use self::zones::Zones;
use crate::config::SameTurn;
use crate::http::auth::Authenticator;
use crate::http::error;
use crate::librechat::chat::ChatRequest;
use crate::metrics::Metrics;

/// The gateway.
pub struct Gateway {
    upstream: Upstream,
    trusted: Trusted,
    ledger: Ledger,
    auth: Arc<Authenticator>,
    metrics: Metrics,
    same_turn: SameTurn,
    stops: Stops,
    decisions: Decisions,
    zones: Zones,
}

impl Gateway {
    /// A gateway to `upstream`.
    #[must_use]
    pub fn new(
        upstream: Upstream,
        trusted: Trusted,
        ledger: Ledger,
        auth: Arc<Authenticator>,
        metrics: Metrics,
        same_turn: SameTurn,
    ) -> Self {
        Self {
            upstream,
            trusted,
            ledger,
            auth,
            metrics,
            same_turn,
            stops: Stops::default(),
            decisions: Decisions::default(),
            zones: Zones::default(),
        }
    }
}

/// Answers a request: the fallback of the public router.
pub async fn handle(gateway: Arc<Gateway>, peer: SocketAddr, request: Request<Body>) -> Response {
    if request.method() == Method::CONNECT {
        return error(StatusCode::METHOD_NOT_ALLOWED, "this is no forward proxy");
    }
    let chat = ChatRequest::of(
        request.method().as_str(),
        request.uri().path(),
        request.uri().query(),
    );
    let mut request = gateway.prepare(request, peer);
    match chat {
        None => gateway.forward(request).await,
        Some(ChatRequest::Other) => {
            let request = gateway.aliased(request).await;
            gateway.forward(request).await
        }
        Some(ChatRequest::Start) => {
            headers::ask_for_identity(&mut request);
            gateway.start(request).await
        }
        Some(ChatRequest::Stream {
            conversation,
            begun,
        }) => {
            headers::ask_for_identity(&mut request);
            gateway.stream(request, conversation, begun).await
        }
        Some(ChatRequest::Status(conversation)) => {
            if gateway.splices() {
                headers::ask_for_identity(&mut request);
            }
            let response = gateway.status(request, &conversation).await;
            gateway.stops.answered(&conversation);
            response
        }
        Some(ChatRequest::Abort) => gateway.abort(request).await,
    }
}
