//! A client that reads the target's answer believes to be in the turn that switched. What it asks
//! for in that turn is asked of the target's.
//!
//! LibreChat tells turns of a conversation apart by `generationCreatedAt`, from v0.8.8 on, and
//! refuses what names another one than runs.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::http::header::ETAG;
use axum::http::{HeaderMap, Request, Response, StatusCode};
use tokio::time::{Duration, Instant, sleep};

use super::Gateway;
use super::follow::Follower;
use super::headers::set_length;
use super::ledger::{PATIENCE, within};
use super::lost::{credentials, is_json};
use super::take::{Taken, take};
use crate::config::SameTurn;
use crate::librechat::ConversationId;
use crate::librechat::chat::{generation, query_with_generation, with_generation};
use crate::librechat::lost_final::sources;
use crate::librechat::splice::Splice;
use crate::reconcile::Context;
use crate::switch::answer::Stage;
use crate::switch::record::Switch;

/// Bodies of these requests are a message at most.
const LIMIT: usize = 4 << 20;

/// A conversation with more is left to the client.
const STATUS_LIMIT: usize = 64 << 20;

/// How long a request waits for a target that is just being set to work.
const BEGINNING: Duration = Duration::from_secs(3);
const LOOK: Duration = Duration::from_millis(50);

impl Gateway {
    /// Whether targets answer in the same stream.
    pub(super) fn splices(&self) -> bool {
        self.same_turn == SameTurn::Splice
    }

    /// A request within a turn, about the generation that runs.
    pub(super) async fn aliased(&self, request: Request<Body>) -> Request<Body> {
        if !self.splices() || !is_json(request.headers()) {
            return request;
        }
        let (mut parts, body) = request.into_parts();
        let body = match take(body, LIMIT).await {
            Taken::Whole(body) => body,
            Taken::Rest(body) => return Request::from_parts(parts, body),
        };
        match self.other_generation(&body).await {
            Some(other) => {
                set_length(&mut parts.headers, other.len());
                Request::from_parts(parts, other.into())
            }
            None => Request::from_parts(parts, body.into()),
        }
    }

    /// The body about the target's generation, where it is about the one that switched.
    pub(super) async fn other_generation(&self, body: &Bytes) -> Option<Bytes> {
        if !self.splices() {
            return None;
        }
        let (conversation, asked) = generation(body)?;
        let switch = self.answered_after(&conversation, asked).await?;
        let other = switch.answer?.generation?;
        with_generation(body, other).map(Bytes::from)
    }

    /// The switch made in a generation, once its target's answer has begun.
    async fn answered_after(&self, conversation: &ConversationId, asked: i64) -> Option<Switch> {
        let until = Instant::now() + BEGINNING;
        loop {
            let switch = self
                .look_up(conversation, move |context, conversation| async move {
                    context.store.answered_after(&conversation, asked).await
                })
                .await?;
            let stage = switch.answer.as_ref()?.stage;
            if stage != Stage::Claimed || Instant::now() >= until {
                return Some(switch);
            }
            sleep(LOOK).await;
        }
    }

    /// The switch whose target is answering in this conversation.
    pub(super) async fn being_answered(&self, conversation: &ConversationId) -> Option<Switch> {
        if !self.splices() {
            return None;
        }
        self.look_up(conversation, |context, conversation| async move {
            context.store.being_answered(&conversation).await
        })
        .await
    }

    async fn look_up<F, Fut>(&self, conversation: &ConversationId, ask: F) -> Option<Switch>
    where
        F: FnOnce(Arc<Context>, ConversationId) -> Fut + Send + 'static,
        Fut: Future<Output = mongodb::error::Result<Option<Switch>>> + Send + 'static,
    {
        let context = self.ledger.get()?;
        within(PATIENCE, ask(context, conversation.clone()))
            .await?
            .ok()?
    }

    /// A request for a stream, which is to be the target's where that goes on with what the client
    /// has read; and the switch, where it is.
    pub(super) async fn of_generation(
        &self,
        mut request: Request<Body>,
        conversation: &ConversationId,
        begun: Option<i64>,
    ) -> (Request<Body>, Option<Switch>) {
        if !self.splices() {
            return (request, None);
        }
        let Some(begun) = begun else {
            // Before v0.8.8 there is nothing to tell generations by. Only who comes back asks for
            // the beginning.
            let resumes = (request.uri().query())
                .is_some_and(|query| query.split('&').any(|pair| pair == "resume=true"));
            let switch = if resumes {
                self.being_answered(conversation).await
            } else {
                None
            };
            return (request, switch);
        };
        let switch = self
            .look_up(conversation, move |context, conversation| async move {
                context.store.answered_in(&conversation, begun).await
            })
            .await;
        let other = switch
            .as_ref()
            .and_then(|it| it.answer.as_ref()?.generation);
        if let Some(other) = other.filter(|other| *other != begun) {
            let query = request.uri().query().unwrap_or_default();
            let query = query_with_generation(query, other);
            // Only who comes back gets what was said meanwhile.
            let query = if query.contains("resume=") {
                query
            } else {
                format!("{query}&resume=true")
            };
            let path = format!("{}?{query}", request.uri().path());
            if let Ok(uri) = path.parse() {
                *request.uri_mut() = uri;
            }
        }
        let has_begun = |switch: &Switch| {
            let stage = switch.answer.as_ref().map(|answer| answer.stage);
            stage.is_some_and(|stage| stage != Stage::Claimed)
        };
        (request, switch.filter(has_begun))
    }

    /// What a client needs to follow the target's stream.
    pub(super) async fn follower(
        self: &Arc<Self>,
        switch: Switch,
        credentials: HeaderMap,
    ) -> Option<Follower> {
        let context = self.ledger.get()?;
        let splice = self.splice(&switch, &credentials).await?;
        Some(Follower {
            gateway: Arc::clone(self),
            context,
            switch,
            splice,
            credentials,
        })
    }

    async fn splice(&self, switch: &Switch, with: &HeaderMap) -> Option<Splice> {
        let answer = switch.answer.as_ref()?;
        let response = switch.message_id.as_ref()?;
        let [_, messages] = sources(&switch.conversation_id);
        let messages = self.read(&format!("{messages}/{response}"), with).await?;
        Splice::new(
            answer.by.clone(),
            answer.message_id.clone(),
            response.clone(),
            answer.note.clone(),
            &messages,
        )
    }

    /// LibreChat's answer to a request for a conversation's status.
    pub(super) async fn status(
        &self,
        request: Request<Body>,
        conversation: &ConversationId,
    ) -> Response<Body> {
        let credentials = credentials(request.headers());
        let response = self.forward(request).await;
        let is_readable = response.status() == StatusCode::OK && is_json(response.headers());
        if !self.splices() || !is_readable {
            return response;
        }
        let Some(switch) = self.being_answered(conversation).await else {
            return response;
        };
        let (mut parts, body) = response.into_parts();
        let body = match take(body, STATUS_LIMIT).await {
            Taken::Whole(body) => body,
            Taken::Rest(body) => return Response::from_parts(parts, body),
        };
        let is_about = (switch.answer.as_ref())
            .is_some_and(|answer| Splice::is_about(&body, &answer.message_id));
        let splice = if is_about {
            self.splice(&switch, &credentials).await
        } else {
            None
        };
        let changed = splice.and_then(|splice| splice.status(&body));
        match changed {
            Some(changed) => {
                set_length(&mut parts.headers, changed.len());
                parts.headers.remove(ETAG);
                Response::from_parts(parts, changed.into())
            }
            None => Response::from_parts(parts, body.into()),
        }
    }
}
