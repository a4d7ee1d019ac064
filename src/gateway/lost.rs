//! A client that came too late for its turn's last event gets it all the same.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::header::{
    ACCEPT, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, ETAG, HeaderName,
    HeaderValue, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED, RANGE,
};
use axum::http::{HeaderMap, Method, Request, Response, StatusCode};
use tokio::time::timeout;

use super::events::is_events;
use super::same_turn::Turn;
use super::take::{Taken, take};
use super::{Gateway, events};
use crate::config::SameTurn;
use crate::librechat::ConversationId;
use crate::librechat::lost_final::{lost_final, sources};
use crate::metrics::Passage;
use crate::reconcile::End;

/// A refusal is a sentence.
const REFUSAL_LIMIT: usize = 64 << 10;

/// A conversation with more is left to the client.
const LIMIT: usize = 64 << 20;

const PATIENCE: Duration = Duration::from_secs(10);

/// As LibreChat's own streams have it: nginx is not to buffer it.
const ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

impl Gateway {
    /// Answers with a turn's events.
    pub(super) async fn stream(
        self: &Arc<Self>,
        request: Request<Body>,
        conversation: ConversationId,
        begun: Option<i64>,
    ) -> Response<Body> {
        let credentials = credentials(request.headers());
        let (request, answered) = self.of_generation(request, &conversation, begun).await;
        let mut response = self.forward(request).await;
        let mut begun = begun;
        if let Some(switch) = answered {
            if is_events(response.headers()) {
                let Some(follower) = self.follower(switch, credentials).await else {
                    return response;
                };
                response.headers_mut().remove(CONTENT_LENGTH); // it may become another
                return response.map(|body| follower.into_body(Some(body)));
            }
            if let Some(context) = self.ledger.get()
                && let Err(error) = context.end_answer(&switch, End::Unknown).await
            {
                let error = crate::mongo::words(&error);
                tracing::warn!(error, "an answer is still to be ended");
            }
            begun = switch.answer.and_then(|answer| answer.generation);
        }
        if response.status() != StatusCode::NOT_FOUND {
            let turn = (self.same_turn != SameTurn::Off).then(|| Turn {
                gateway: Arc::clone(self),
                credentials,
                begun,
            });
            return events::watch(response, &self.ledger, turn);
        }
        let (parts, body) = response.into_parts();
        let refusal = match take(body, REFUSAL_LIMIT).await {
            Taken::Whole(refusal) => refusal,
            Taken::Rest(body) => return Response::from_parts(parts, body),
        };
        let lost = self.lost(&conversation, &credentials, &refusal, begun);
        match timeout(PATIENCE, lost).await {
            Ok(Some(data)) => {
                self.metrics.passed(Passage::FinalMadeAnew);
                tracing::info!(%conversation, "a last event that had been lost was made anew");
                let event = [b"event: message\ndata: ", &data[..], b"\n\n"].concat();
                events::watch(answer(parts.headers, event), &self.ledger, None)
            }
            _ => Response::from_parts(parts, refusal.into()),
        }
    }

    async fn lost(
        &self,
        conversation: &ConversationId,
        credentials: &HeaderMap,
        refusal: &[u8],
        begun: Option<i64>,
    ) -> Option<Vec<u8>> {
        let [conversation, messages] = sources(conversation);
        let (conversation, messages) = tokio::join!(
            self.read(&conversation, credentials),
            self.read(&messages, credentials),
        );
        lost_final(&conversation?, &messages?, refusal, begun)
    }

    /// Reads something of LibreChat's in the client's place.
    pub(super) async fn read(&self, path: &str, credentials: &HeaderMap) -> Option<Bytes> {
        let mut request = Request::new(Body::empty());
        *request.method_mut() = Method::GET;
        *request.uri_mut() = path.parse().ok()?;
        *request.headers_mut() = credentials.clone();
        let response = self.send(request).await.ok()?;
        if response.status() != StatusCode::OK {
            return None;
        }
        match take(response.into_body(), LIMIT).await {
            Taken::Whole(bytes) => Some(bytes),
            Taken::Rest(_) => None,
        }
    }
}

/// All that the client says of itself, for another request.
pub(super) fn credentials(headers: &HeaderMap) -> HeaderMap {
    let mut headers = headers.clone();
    for name in [
        CONTENT_LENGTH,
        CONTENT_TYPE,
        IF_MATCH,
        IF_MODIFIED_SINCE,
        IF_NONE_MATCH,
        RANGE,
    ] {
        headers.remove(name);
    }
    headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
    headers
}

/// Whether a body is JSON that can be read.
pub(super) fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE);
    let kind = kind.and_then(|value| value.to_str().ok());
    let is_json = kind.is_some_and(|kind| kind.starts_with("application/json"));
    is_json && !headers.contains_key(CONTENT_ENCODING)
}

fn answer(mut headers: HeaderMap, event: Vec<u8>) -> Response<Body> {
    for name in [CONTENT_LENGTH, ETAG, LAST_MODIFIED] {
        headers.remove(name);
    }
    for (name, value) in [
        (CONTENT_TYPE, "text/event-stream"),
        (CACHE_CONTROL, "no-cache, no-transform"),
        (ACCEL_BUFFERING, "no"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    let mut response = Response::new(Body::from(event));
    *response.headers_mut() = headers;
    response
}
