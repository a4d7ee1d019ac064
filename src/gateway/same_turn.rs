//! Whether the target of a switch answers the message in which it was switched to, and how it
//! comes to it. It is decided where a turn's last event is about to reach a client.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::body::Body;
use axum::http::{HeaderMap, StatusCode};
use mongodb::error::Error;
use thiserror::Error;
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::Gateway;
use super::follow::Follower;
use super::ledger::PATIENCE;
use super::upstream::UpstreamError;
use crate::config::SameTurn;
use crate::librechat::asked::{Asked, Unasked, response_of};
use crate::librechat::splice::Splice;
use crate::librechat::{MessageId, SpecPatch};
use crate::metrics::Passage;
use crate::reconcile::Context;
use crate::switch::answer::{Answer, Stage, Way, note};
use crate::switch::record::{Origin, Status, Switch};

/// What the bell does not tell, as another instance's work, is looked for so often.
const LOOK: Duration = Duration::from_millis(50);

/// The stream of a turn that a client reads.
#[derive(Clone)]
pub(super) struct Turn {
    /// The gateway.
    pub(super) gateway: Arc<Gateway>,
    /// All that the client says of itself.
    pub(super) credentials: HeaderMap,
    /// `generationCreatedAt`: which generation it reads, where LibreChat tells (v0.8.8).
    pub(super) begun: Option<i64>,
}

/// What follows the response of the agent that switched.
pub(super) enum Next {
    /// Nothing: the target answers the next message.
    Nothing,
    /// The client sends the message once more, since the turn's last event asks it to.
    Again(Vec<u8>),
    /// The target's answer, in the same stream.
    Follow(Body),
}

/// Why the target does not answer the message in which it was switched to.
#[derive(Debug, Error)]
pub(super) enum Refusal {
    #[error(transparent)]
    Unasked(#[from] Unasked),
    #[error("the switch was not settled in time")]
    Unsettled,
    #[error("LibreChat is older than v0.8.8, and its client cannot send a message once more")]
    TooOld,
    #[error("the target has no model spec, and model specs are enforced")]
    Enforced,
    #[error("the target cannot read what the user has uploaded")]
    Unreadable,
    #[error("it is answered for another tab already")]
    Taken,
    #[error("the user has stopped the turn")]
    Stopped,
    #[error("LibreChat refuses it ({0})")]
    Refused(StatusCode),
    #[error("LibreChat did not answer ({0})")]
    Unanswered(UpstreamError),
    #[error("LibreChat did not answer in time")]
    Unbegun,
    #[error("MongoDB: {}", crate::mongo::words(.0))]
    MongoDb(#[from] Error),
}

impl Turn {
    /// What follows the final of a turn that switched, and was not stopped.
    pub(super) async fn next(&self, context: &Arc<Context>, switch: &Switch, data: &[u8]) -> Next {
        if !is_wanted(switch) {
            return Next::Nothing;
        }
        match self.try_next(context, switch, data).await {
            Ok(next) => next,
            Err(why) => {
                tracing::info!(%why, "the target answers the next message only");
                context.metrics.passed(Passage::AnswerRefused);
                Next::Nothing
            }
        }
    }

    async fn try_next(
        &self,
        context: &Arc<Context>,
        switch: &Switch,
        data: &[u8],
    ) -> Result<Next, Refusal> {
        let asked = Asked::read(data)?;
        if context.patch(true, &switch.to_agent) == SpecPatch::Refuse {
            return Err(Refusal::Enforced);
        }
        if self.gateway.same_turn == SameTurn::Resend && !asked.is_new {
            return Err(Refusal::TooOld);
        }
        let readable = context
            .access
            .can_read(&switch.user, &asked.files, &switch.to_agent);
        if !readable.await? {
            return Err(Refusal::Unreadable);
        }
        let decision = self.gateway.decisions.begin(&switch.conversation_id);
        let switch = settled(context, switch).await?.ok_or(Refusal::Unsettled)?;
        if decision.is_stopped() {
            return Err(Refusal::Stopped);
        }
        match self.gateway.same_turn {
            SameTurn::Off => Ok(Next::Nothing),
            SameTurn::Resend => self.resend(context, &switch, &asked, data).await,
            SameTurn::Splice => self.splice(context, switch, asked, data).await,
        }
    }

    async fn resend(
        &self,
        context: &Context,
        switch: &Switch,
        asked: &Asked,
        data: &[u8],
    ) -> Result<Next, Refusal> {
        let answer = self.answer(switch, Way::Resend, None);
        let claimed = context
            .store
            .claim_answer(switch.id, &switch.to_agent, &answer);
        claimed.await?.ok_or(Refusal::Taken)?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.map_or(0, |since| since.as_millis());
        let now = i64::try_from(now).unwrap_or_default();
        let again = asked.again(data, &answer.message_id, now);
        let again = again.ok_or(Refusal::Unasked(Unasked::Unknown))?;
        tracing::info!(
            conversation = %switch.conversation_id,
            "the client sends the message once more, to the target"
        );
        context.metrics.passed(Passage::AnswerResent);
        Ok(Next::Again(again))
    }

    async fn splice(
        &self,
        context: &Arc<Context>,
        switch: Switch,
        asked: Asked,
        data: &[u8],
    ) -> Result<Next, Refusal> {
        let from = match &switch.from_agent {
            Some(from) => context.access.name(from).await?,
            None => None,
        };
        let note = note(from.as_deref(), switch.reason.as_deref());
        let answer = self.answer(&switch, Way::Splice, Some(note));
        let claimed = context
            .store
            .claim_answer(switch.id, &switch.to_agent, &answer)
            .await?;
        let begun = if let Some(claimed) = claimed {
            let begun = self.gateway.begin(context, claimed, asked, self.clone());
            begun.await?
        } else {
            let begun = self.gateway.begun_by_another(context, &switch);
            begun.await?.ok_or(Refusal::Taken)?
        };
        let response = response_of(data).ok_or(Refusal::Unasked(Unasked::Unknown))?;
        let answer = begun.answer.as_ref().ok_or(Refusal::Taken)?;
        let splice = Splice::new(
            answer.by.clone(),
            answer.message_id.clone(),
            begun.message_id.clone().ok_or(Refusal::Taken)?,
            answer.note.clone(),
            &response,
        );
        let follower = Follower {
            gateway: Arc::clone(&self.gateway),
            context: Arc::clone(context),
            splice: splice
                .ok_or(Refusal::Unasked(Unasked::Unknown))?
                .after(data),
            switch: begun,
            credentials: self.credentials.clone(),
        };
        Ok(Next::Follow(follower.into_body(None)))
    }

    /// A claim, under a fresh id.
    fn answer(&self, switch: &Switch, way: Way, note: Option<String>) -> Answer {
        Answer {
            way,
            stage: Stage::Claimed,
            by: switch.to_agent.clone(),
            message_id: MessageId::from(Uuid::new_v4().to_string()),
            note,
            predecessor: self.begun,
            generation: None,
            detail: None,
            claimed_at: None,
        }
    }
}

/// Whether the message is to be answered by the target too. Where LibreChat's own handoff made the
/// switch, the target has answered it; a user's choice has nothing to do with the message.
fn is_wanted(switch: &Switch) -> bool {
    matches!(switch.origin, Origin::Tool | Origin::Mcp)
        && switch.answer_now != Some(false)
        && switch.from_agent.as_ref() != Some(&switch.to_agent)
}

/// The switch once its turn has ended with the target in force: what the target writes from then
/// on is not taken for a decision against it. `None`: not in time, or otherwise.
async fn settled(context: &Arc<Context>, switch: &Switch) -> Result<Option<Switch>, Error> {
    let until = Instant::now() + PATIENCE;
    let mut bell = context.bell.listen();
    loop {
        match context.store.get(switch.id).await? {
            Some(now) if now.to_agent != switch.to_agent => return Ok(None),
            Some(now) if now.status == Status::Settled => return Ok(Some(now)),
            Some(now) if now.status == Status::Open => {}
            _ => return Ok(None),
        }
        if Instant::now() >= until {
            return Ok(None);
        }
        tokio::select! {
            () = bell.heard(&switch.conversation_id) => {}
            () = sleep(LOOK) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use mongodb::bson::{doc, oid::ObjectId};

    use super::*;

    fn switch(origin: &str, from: &str, answer_now: Option<bool>) -> Switch {
        let mut switch: Switch = mongodb::bson::deserialize_from_document(doc! {
            "_id": ObjectId::new(), "conversation_id": "c", "user": "u", "from_agent": from,
            "to_agent": "B", "origin": origin, "status": "settled",
        })
        .unwrap();
        switch.answer_now = answer_now;
        switch
    }

    #[test]
    fn only_a_tools_switch_is_answered_and_unless_the_model_says_no() {
        assert!(is_wanted(&switch("tool", "A", None)));
        assert!(is_wanted(&switch("mcp", "A", Some(true))));
        assert!(!is_wanted(&switch("mcp", "A", Some(false))));
        assert!(!is_wanted(&switch("handoff", "A", None)));
        assert!(!is_wanted(&switch("api", "A", None)));
        assert!(!is_wanted(&switch("mcp", "B", None)));
    }
}
