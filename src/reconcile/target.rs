//! Whether a conversation may be switched to an agent: one check, whoever asks for the switch.

use mongodb::bson::DateTime;

use super::context::{Context, Undone};
use crate::{
    librechat::{
        AgentId, ConversationKey, MessageId, SpecPatch, UserId,
        access::{Refusal, Verdict},
    },
    switch::policy::Named,
};

/// Why a switch is refused where `switch.max_per_conversation` says so.
pub(crate) const TOO_OFTEN: &str =
    "the conversation was switched too often (switch.max_per_conversation)";

/// Why a conversation may not be switched to an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// The operator's list has no such way.
    #[error("switch.allow does not allow it")]
    NotAllowed,
    /// LibreChat would go on with the agent of the model spec.
    #[error("modelSpecs.enforce is on, and no model spec has this agent")]
    Enforced,
    /// The agent is none that the user may use.
    #[error("{0}")]
    Refused(Refusal),
}

impl Context {
    /// Whether LibreChat lets the user use the agent.
    pub(crate) async fn verdict(&self, user: &UserId, to: &AgentId) -> Result<Verdict, Undone> {
        self.patiently("checking the target", || self.access.check(user, to))
            .await
    }

    /// Why a conversation with `from` may not be switched to `to`; `None`: it may.
    pub(crate) async fn unfit(
        &self,
        from: Option<&AgentId>,
        to: &AgentId,
        begun_from_spec: bool,
        verdict: &Verdict,
    ) -> Result<Option<Unfit>, Undone> {
        if self.patch(begun_from_spec, to) == SpecPatch::Refuse {
            return Ok(Some(Unfit::Enforced));
        }
        if !self.allows(from, to, verdict).await? {
            return Ok(Some(Unfit::NotAllowed));
        }
        Ok(match verdict {
            Verdict::Allowed(_) => None,
            Verdict::Refused(refusal) => Some(Unfit::Refused(*refusal)),
        })
    }

    async fn allows(
        &self,
        from: Option<&AgentId>,
        to: &AgentId,
        verdict: &Verdict,
    ) -> Result<bool, Undone> {
        let name = match verdict {
            Verdict::Allowed(agent) => agent.name.as_deref(),
            Verdict::Refused(_) => None,
        };
        let from_name = self.name_for_rules(from).await?;
        let from = from.map(|id| Named {
            id,
            name: from_name.as_deref(),
        });
        Ok(self
            .allow
            .allows(from, Named { id: to, name }, &self.aliases))
    }

    /// Whether the conversation has been switched too often of late, this turn apart.
    pub(crate) async fn is_braked(
        &self,
        key: &ConversationKey,
        turn: &MessageId,
        at: DateTime,
    ) -> Result<bool, Undone> {
        let recent = self
            .patiently("counting the conversation's switches", || {
                self.store.recent(key, turn, at, self.brake.within)
            })
            .await?;
        Ok(recent >= u64::from(self.brake.most))
    }

    /// The agent's name, where a rule asks for names.
    pub(crate) async fn name_for_rules(
        &self,
        agent: Option<&AgentId>,
    ) -> Result<Option<String>, Undone> {
        match agent {
            Some(agent) if self.allow.asks_for_names(&self.aliases) => self.name(agent).await,
            _ => Ok(None),
        }
    }

    /// An agent's name.
    pub(crate) async fn name(&self, agent: &AgentId) -> Result<Option<String>, Undone> {
        self.patiently("reading an agent's name", || self.access.name(agent))
            .await
    }
}
