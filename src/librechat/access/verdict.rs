//! The answer to a question about access.

use std::fmt;

use super::Agent;

/// Whether a user may be switched to an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It may, to this one.
    Allowed(Agent),
    /// It may not. Users are told the same words whatever the reason, so that nobody learns which
    /// agents exist; the reason is for the operator.
    Refused(Refusal),
}

/// Why a user may not be switched to an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// No agent of the user's tenant has this id, or it is the id of one made up for one request.
    NoSuchAgent,
    /// The user does not exist (any more).
    NoSuchUser,
    /// The user's role may not use agents (`roles.permissions.AGENTS.USE`).
    NoAgentsForRole,
    /// The agent is not shared with the user.
    NotShared,
}

impl From<Refusal> for Verdict {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoSuchAgent => "no agent of the user's tenant has this id",
            Self::NoSuchUser => "the user does not exist",
            Self::NoAgentsForRole => "the user's role may not use agents",
            Self::NotShared => "the agent is not shared with the user",
        })
    }
}
