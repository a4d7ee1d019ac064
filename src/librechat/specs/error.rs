//! What can be wrong with the specs that an operator names.

use thiserror::Error;

use super::ConfigFileError;
use crate::librechat::AgentId;

/// Why agents and model specs do not go together.
#[derive(Debug, Error)]
pub enum SpecsError {
    /// LibreChat's configuration file is of no use.
    #[error(transparent)]
    ConfigFile(#[from] ConfigFileError),
    /// LibreChat has no spec of this name.
    #[error(
        "switch.specs: {agent} = {spec:?}: librechat.yaml has no such model spec; it has {known}"
    )]
    Unknown {
        /// The agent it is for.
        agent: AgentId,
        /// The name.
        spec: String,
        /// The names that there are.
        known: String,
    },
    /// The spec is for a model, not for an agent: LibreChat refuses a turn with it and an agent
    /// ("Model spec mismatch").
    #[error(
        "switch.specs: {agent} = {spec:?}: this model spec is for the endpoint {endpoint:?}; \
         an agent needs one whose preset has the endpoint \"agents\""
    )]
    NotForAgents {
        /// The agent it is for.
        agent: AgentId,
        /// The name.
        spec: String,
        /// The spec's endpoint.
        endpoint: String,
    },
    /// The spec runs another agent, and is enforced.
    #[error(
        "switch.specs: {agent} = {spec:?}: modelSpecs.enforce is on, and this model spec runs \
         {runs}; name one whose preset has the agent_id {agent}"
    )]
    RunsAnother {
        /// The agent it is for.
        agent: AgentId,
        /// The name.
        spec: String,
        /// What the spec runs.
        runs: String,
    },
}
