//! What a call of `switch_agent` is answered: one JSON text, whose status LibreChat saves with it.
//!
//! LibreChat keeps the text of an answer and drops `isError` and `structuredContent` (v0.8.7,
//! v0.8.8-rc1), so that the status has to be in the text.

use rmcp::model::{CallToolResult, ContentBlock};
use serde::Serialize;

use crate::librechat::{AgentId, ConversationId, access::Agent};

/// More agents than this are not listed in an error.
const LISTED: usize = 20;

/// An answer of `switch_agent`.
#[derive(Debug, Serialize)]
pub(super) struct Answer {
    action: &'static str,
    pub(super) agent_id: Option<AgentId>,
    pub(super) agent_name: Option<String>,
    pub(super) from_agent_id: Option<AgentId>,
    pub(super) from_agent_name: Option<String>,
    pub(super) conversation_id: Option<ConversationId>,
    pub(super) reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) switch_id: Option<String>,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    agents: Vec<Listed>,
}

/// An agent in an answer.
#[derive(Debug, Serialize)]
pub(super) struct Listed {
    id: AgentId,
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
}

/// Why a call failed, in words for the model.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) message: String,
    /// What may be chosen instead.
    pub(super) agents: Vec<Agent>,
}

impl Failure {
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            agents: Vec::new(),
        }
    }

    pub(super) fn database() -> Self {
        Self::new("the database did not answer in time; nothing was switched, try again")
    }
}

impl Answer {
    /// A success, of which nothing is said yet.
    pub(super) fn success() -> Self {
        Self {
            action: "switch_agent",
            agent_id: None,
            agent_name: None,
            from_agent_id: None,
            from_agent_name: None,
            conversation_id: None,
            reason: None,
            switch_id: None,
            status: "success",
            message: None,
            agents: Vec::new(),
        }
    }

    /// The same as an error.
    pub(super) fn failed(self, failure: Failure) -> Self {
        let agents = failure.agents.into_iter().take(LISTED);
        Self {
            switch_id: None,
            status: "error",
            message: Some(failure.message),
            agents: agents.map(Listed::without_description).collect(),
            ..self
        }
    }

    pub(super) fn into_result(self) -> CallToolResult {
        result(&self, self.status == "error")
    }
}

impl Listed {
    fn without_description(agent: Agent) -> Self {
        Self {
            id: agent.id,
            name: agent.name,
            description: None,
        }
    }
}

impl From<Agent> for Listed {
    fn from(agent: Agent) -> Self {
        Self {
            id: agent.id,
            name: agent.name,
            description: agent.description.filter(|text| !text.is_empty()),
        }
    }
}

/// One text, as LibreChat saves it unchanged.
pub(super) fn result(answer: &impl Serialize, failed: bool) -> CallToolResult {
    let text = serde_json::to_string(answer).unwrap_or_default();
    let content = vec![ContentBlock::text(text)];
    if failed {
        CallToolResult::error(content)
    } else {
        CallToolResult::success(content)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_gives_no_id_that_a_saved_part_could_be_bound_by() {
        let answer = Answer {
            switch_id: Some("secret".to_owned()),
            ..Answer::success()
        };
        let text = serde_json::to_string(&answer.failed(Failure::new("no"))).unwrap();
        assert!(!text.contains("switch_id"), "{text}");
        assert!(
            text.contains(r#""status":"error","message":"no""#),
            "{text}"
        );
    }
}
