//! The tools as models see them.

use std::sync::Arc;

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::{Value, json};

pub(super) const SWITCH_AGENT: &str = "switch_agent";
pub(super) const LIST_AGENTS: &str = "list_agents";

const SWITCH_DESCRIPTION: &str = "Transfers the user to another agent permanently: from the next \
    message on that agent answers in this conversation. You still finish the present answer; say \
    whom you hand over to. Call it when the other agent is to take over for good, and only once. \
    For a single turn use a handoff tool instead, if you have one.";

const SWITCH_AND_ANSWER_DESCRIPTION: &str = "Transfers the user to another agent permanently: from \
    now on that agent answers in this conversation, and it answers the user's present message as \
    well, right after you. Say in one sentence whom you hand over to, and leave the answer to it. \
    Call it when the other agent is to take over for good, and only once. For a single turn use a \
    handoff tool instead, if you have one.";

const ANSWER_NOW_DESCRIPTION: &str = "Whether that agent answers the user's present message, right \
    after you; true unless given. Give false where you have answered it yourself.";

const LIST_DESCRIPTION: &str = "Lists the agents that this user can be transferred to with \
    switch_agent: id, name and description.";

/// The tools; `same_turn`: the target answers the message in which it is switched to.
pub(super) fn tools(same_turn: bool) -> Vec<Tool> {
    let mut arguments = json!({
        "agent": {
            "type": "string",
            "description": "The agent to transfer to: its id or its exact name, as list_agents \
                gives them; or \"previous\", the agent that had this conversation before.",
        },
        "agent_id": { "type": "string", "description": "The same as agent." },
        "reason": { "type": "string", "description": "Why, in a sentence." },
        "conversation_id": { "type": "string", "description": "Leave it out." },
    });
    if same_turn {
        arguments["answer_now"] =
            json!({ "type": "boolean", "description": ANSWER_NOW_DESCRIPTION });
    }
    let description = if same_turn {
        SWITCH_AND_ANSWER_DESCRIPTION
    } else {
        SWITCH_DESCRIPTION
    };
    let switch = Tool::new(SWITCH_AGENT, description, schema(arguments)).with_annotations(
        ToolAnnotations::with_title("Switch to another agent")
            .read_only(false)
            .destructive(false)
            .idempotent(true)
            .open_world(false),
    );
    let list = Tool::new(
        LIST_AGENTS,
        LIST_DESCRIPTION,
        schema(json!({
            "query": {
                "type": "string",
                "description": "Only agents with this text in their name or description.",
            },
        })),
    )
    .with_annotations(
        ToolAnnotations::with_title("List agents")
            .read_only(true)
            .open_world(false),
    );
    vec![switch, list]
}

/// Nothing is required: which of two names a model uses is not worth a protocol error.
fn schema(properties: Value) -> Arc<JsonObject> {
    let mut schema = JsonObject::new();
    schema.insert("type".to_owned(), "object".into());
    schema.insert("properties".to_owned(), properties);
    Arc::new(schema)
}
