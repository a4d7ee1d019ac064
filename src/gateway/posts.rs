//! A POST that begins a turn: a tab that cannot know of a switch is given to the target.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, Request, Response};
use mongodb::error::{Error, Result};

use super::headers::set_length;
use super::ledger::{PATIENCE, within};
use super::lost::is_json;
use super::stale::{Suspicion, Trail};
use super::take::{Taken, take};
use super::{Gateway, events};
use crate::config::SameTurn;
use crate::librechat::asked::{queued, unqueued};
use crate::librechat::chat::{Post, timezone};
use crate::librechat::lineage::Since;
use crate::librechat::{SpecPatch, UserId};
use crate::metrics::Passage;
use crate::reconcile::Context;
use crate::switch::answer::Stage;
use crate::switch::record::Switch;

/// LibreChat takes bodies of up to 3 MB (`express.json` in `api/server/index.js`).
const LIMIT: usize = 4 << 20;

impl Gateway {
    /// Begins a turn. Up to v0.8.1 the answer is the turn's events.
    pub(super) async fn start(&self, request: Request<Body>) -> Response<Body> {
        let request = self.corrected(request).await;
        events::watch(self.forward(request).await, &self.ledger, None)
    }

    async fn corrected(&self, request: Request<Body>) -> Request<Body> {
        if !is_json(request.headers()) {
            return request;
        }
        let (mut parts, body) = request.into_parts();
        let body = match take(body, LIMIT).await {
            Taken::Whole(body) => body,
            Taken::Rest(body) => return Request::from_parts(parts, body),
        };
        if self.splices() {
            self.zones.note(&parts.headers, timezone(&body));
        }
        let other = match self.unqueued(&body).await {
            Some(unqueued) => Some(unqueued),
            None => self.other_generation(&body).await,
        };
        let is_other = other.is_some();
        let body = other.unwrap_or(body);
        let corrected = self.correction(&parts.headers, &body).await;
        let is_corrected = corrected.is_some();
        let body = corrected.map_or(body, Bytes::from);
        if is_other || is_corrected {
            set_length(&mut parts.headers, body.len());
        }
        Request::from_parts(parts, body.into())
    }

    /// The body of a message that the client was made to send once more, as one that LibreChat
    /// takes for any other.
    async fn unqueued(&self, body: &Bytes) -> Option<Bytes> {
        if self.same_turn != SameTurn::Resend {
            return None;
        }
        let (conversation, message) = queued(body)?;
        let context = self.ledger.get()?;
        let work = async move {
            let switch = context.store.sent_again(&conversation, &message).await?;
            if let Some(switch) = &switch {
                context
                    .store
                    .answer_ended(switch.id, Stage::Done, None)
                    .await?;
            }
            Ok::<_, Error>(switch)
        };
        match within(PATIENCE, work).await? {
            Ok(switch) => {
                switch?;
                unqueued(body).map(Bytes::from)
            }
            Err(error) => {
                let error = crate::mongo::words(&error);
                tracing::warn!(error, "a queued message passes as it is");
                None
            }
        }
    }

    /// The body with the target in it, where the tab cannot know of it.
    async fn correction(&self, headers: &HeaderMap, body: &Bytes) -> Option<Vec<u8>> {
        let post = Post::read(body)?;
        let context = self.ledger.get()?;
        let (headers, auth) = (headers.clone(), Arc::clone(&self.auth));
        let (asked, with) = (post.clone(), Arc::clone(&context));
        let work = async move {
            // Most conversations have no switches, and need no more than this.
            let mut history = with.store.past(&asked.conversation).await?;
            let target = history.first().map(|switch| &switch.to_agent);
            if target.is_none_or(|target| *target == asked.agent) {
                return Ok(None);
            }
            let user = match auth.identify(&headers).await {
                Ok(user) => UserId::from(user.to_hex()),
                Err(reason) => {
                    let conversation = &asked.conversation;
                    tracing::warn!(%conversation, %reason, "a turn passes: whose is it?");
                    with.metrics.passed(Passage::TurnOfNobody);
                    return Ok(None);
                }
            };
            history.retain(|switch| switch.user == user);
            missed(&with, &asked, &user, &history).await
        };
        let missed = match within(PATIENCE, work).await? {
            Ok(missed) => missed?,
            Err(error) => {
                let error = crate::mongo::words(&error);
                tracing::warn!(error, "a turn passes as it is: MongoDB does not answer");
                return None;
            }
        };
        let patch = context.specs.patch(post.has_spec, &missed.to_agent);
        if patch == SpecPatch::Refuse {
            return None;
        }
        let corrected = Post::name(body, &missed.to_agent, patch)?;
        tracing::info!(
            conversation = %post.conversation, from = %post.agent, to = %missed.to_agent,
            "a turn of a tab that cannot know of the switch was given to the target"
        );
        context.metrics.passed(Passage::TurnCorrected);
        tokio::spawn(async move {
            if let Err(error) = context.store.corrected(missed.id).await {
                let error = crate::mongo::words(&error);
                tracing::warn!(
                    error,
                    "that a turn was given to the target was not recorded"
                );
            }
        });
        Some(corrected)
    }
}

/// The switch in force, where the tab cannot know that it, or one before it, came about.
async fn missed(
    context: &Context,
    post: &Post,
    user: &UserId,
    history: &[Switch],
) -> Result<Option<Switch>> {
    let Some(key) = history.first().map(Switch::key) else {
        return Ok(None);
    };
    debug_assert_eq!(key.user, *user);
    let Some(conversation) = context.conversations.read(&key).await? else {
        return Ok(None);
    };
    if conversation.exempt {
        return Ok(None);
    }
    let trail = Trail::to(history, conversation.agent.as_ref());
    let missed = match trail.suspect(post) {
        Suspicion::None => false,
        Suspicion::Certain => true,
        Suspicion::UnlessDescended(switch) => {
            let object = switch.response.or(switch.floor);
            match (&post.parent, object) {
                (Some(parent), Some(object)) => {
                    let since = Since {
                        object,
                        response: switch.shown_in.as_ref().or(switch.message_id.as_ref()),
                        to: &switch.to_agent,
                    };
                    !context.messages.descends(&key, parent, since).await?
                }
                _ => false,
            }
        }
    };
    Ok(trail.target().filter(|_| missed).cloned())
}
