//! The answer to Stop waits until the client has taken in the turn's last event.
//!
//! LibreChat's web client gives its turn up as soon as Stop is answered, and then ignores the last
//! event, which arrives at the same time. It asks for the conversation's status when it has taken
//! that event in (v0.8.7, v0.8.8; `client/src/hooks/SSE/useResumableSSE.ts`).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use axum::body::Body;
use axum::http::{Request, Response};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout_at};

use super::Gateway;
use super::finals::{Told, note};
use super::headers::set_length;
use super::ledger::within;
use super::take::{Taken, take};
use crate::librechat::ConversationId;
use crate::librechat::chat::aborted;
use crate::metrics::Passage;
use crate::switch::record::{Status, Switch};

/// Bodies of this request are a few ids.
const LIMIT: usize = 64 << 10;

/// The longest that the answer is held.
const PATIENCE: Duration = Duration::from_secs(2);

/// A turn without a switch holds nothing up for longer than it takes to see that it has none.
const UNSWITCHED: Duration = Duration::from_millis(300);

/// What the client still has to do with the last event, after it has asked for the status.
const AFTERWARDS: Duration = Duration::from_millis(200);

const LOOK: Duration = Duration::from_millis(50);

/// The conversations whose status is waited for.
#[derive(Default)]
pub(super) struct Stops(Mutex<HashMap<ConversationId, Weak<Notify>>>);

impl Stops {
    /// The conversation's status was answered.
    pub(super) fn answered(&self, conversation: &ConversationId) {
        let waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(notify) = waiting.get(conversation).and_then(Weak::upgrade) {
            notify.notify_one();
        }
    }

    fn expect(&self, conversation: &ConversationId) -> Arc<Notify> {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.retain(|_, notify| notify.strong_count() > 0);
        let known = waiting.get(conversation).and_then(Weak::upgrade);
        known.unwrap_or_else(|| {
            let notify = Arc::new(Notify::new());
            waiting.insert(conversation.clone(), Arc::downgrade(&notify));
            notify
        })
    }
}

impl Gateway {
    /// Stops a turn.
    pub(super) async fn abort(&self, request: Request<Body>) -> Response<Body> {
        let (parts, body) = request.into_parts();
        let body = match take(body, LIMIT).await {
            Taken::Whole(body) => body,
            Taken::Rest(body) => return self.forward(Request::from_parts(parts, body)).await,
        };
        let conversation = aborted(&body);
        let (mut parts, mut body) = (parts, body);
        if let Some(conversation) = &conversation {
            self.decisions.stop(conversation).await;
            if let Some(other) = self.other_generation(&body).await {
                set_length(&mut parts.headers, other.len());
                body = other;
            }
        }
        let request = Request::from_parts(parts, body.into());
        let Some(conversation) = conversation else {
            return self.forward(request).await;
        };
        // Before the request: the status may be asked for before this is answered.
        let status = self.stops.expect(&conversation);
        let response = self.forward(request).await;
        if response.status().is_success() {
            self.hold(&conversation, &status).await;
        }
        response
    }

    async fn hold(&self, conversation: &ConversationId, status: &Notify) {
        let now = Instant::now();
        let mut answered = false;
        let switch = loop {
            let switch = self.stopped(conversation).await;
            if switch.is_some() || answered || now.elapsed() >= UNSWITCHED {
                break switch;
            }
            // The last event comes after the switch is known, and the status after that event.
            answered = timeout_at(Instant::now() + LOOK, status.notified())
                .await
                .is_ok();
        };
        let Some(switch) = switch else { return };
        self.metrics.passed(Passage::StopHeld);
        if !answered {
            answered = timeout_at(now + PATIENCE, status.notified()).await.is_ok();
        }
        if answered {
            sleep(AFTERWARDS).await;
            note(&self.ledger, Told::Switch(switch.id, switch.to_agent));
        }
    }

    /// The switch of the turn that was stopped.
    async fn stopped(&self, conversation: &ConversationId) -> Option<Switch> {
        let context = self.ledger.get()?;
        let conversation = conversation.clone();
        let work = async move { context.store.past(&conversation).await };
        let history = within(UNSWITCHED, work).await?.ok()?;
        let newest = history.into_iter().next()?;
        // The end of a stopped turn never comes (v0.8.8), or has just come.
        let in_force = matches!(newest.status, Status::Open | Status::Settled);
        (in_force && newest.delivered_at.is_none()).then_some(newest)
    }
}
