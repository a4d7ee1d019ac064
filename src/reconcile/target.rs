//! Whether a conversation may be switched to an agent: one check, whoever asks for the switch.

use super::context::{Context, Undone};
use crate::librechat::{
    AgentId, SpecPatch, UserId,
    access::{Refusal, Verdict},
};

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
    pub(super) async fn verdict(&self, user: &UserId, to: &AgentId) -> Result<Verdict, Undone> {
        self.patiently("checking the target", || self.access.check(user, to))
            .await
    }

    /// Why a conversation with `from` may not be switched to `to`; `None`: it may.
    pub(super) fn unfit(
        &self,
        from: Option<&AgentId>,
        to: &AgentId,
        begun_from_spec: bool,
        verdict: &Verdict,
    ) -> Option<Unfit> {
        if !self.allow.allows(from, to) {
            return Some(Unfit::NotAllowed);
        }
        if self.patch(begun_from_spec, to) == SpecPatch::Refuse {
            return Some(Unfit::Enforced);
        }
        match verdict {
            Verdict::Allowed(_) => None,
            Verdict::Refused(refusal) => Some(Unfit::Refused(*refusal)),
        }
    }
}
