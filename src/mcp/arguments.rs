//! What the model says: the arguments of a call, taken for what they can only mean.

use rmcp::model::JsonObject;
use serde_json::Value;

use crate::librechat::tool_call::yes_or_no;

/// Longer than this no reason is kept, in characters.
const REASON: usize = 1000;

/// Longer than this no name is looked up, in bytes.
const NAME: usize = 512;

/// The arguments of `switch_agent`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Wish {
    /// An agent's id, name or alias, or `previous`.
    pub(super) agent: String,
    pub(super) reason: Option<String>,
    pub(super) conversation: Option<String>,
    /// Whether that agent is to answer the message that is being answered.
    pub(super) answer_now: Option<bool>,
}

impl Wish {
    /// `agent` and `agent_id` are the same; models send either, or both.
    pub(super) fn read(arguments: &JsonObject) -> Result<Self, String> {
        let agent = match (text(arguments, "agent")?, text(arguments, "agent_id")?) {
            (Some(agent), Some(id)) if agent != id => {
                return Err("agent and agent_id differ; give one of them".to_owned());
            }
            (Some(agent), _) | (None, Some(agent)) => agent,
            (None, None) => return Err("agent: missing; give an agent's id or name".to_owned()),
        };
        if agent.len() > NAME {
            return Err("agent: too long for an id or a name".to_owned());
        }
        let reason = text(arguments, "reason")?;
        Ok(Self {
            agent,
            reason: reason.map(|reason| reason.chars().take(REASON).collect()),
            conversation: text(arguments, "conversation_id")?,
            answer_now: answer_now(arguments)?,
        })
    }
}

fn answer_now(arguments: &JsonObject) -> Result<Option<bool>, String> {
    match arguments.get("answer_now") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if text.trim().is_empty() => Ok(None),
        Some(value) => yes_or_no(value)
            .map(Some)
            .ok_or_else(|| "answer_now: give true or false".to_owned()),
    }
}

/// A text; null and blanks are as good as nothing.
pub(super) fn text(arguments: &JsonObject, name: &str) -> Result<Option<String>, String> {
    match arguments.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => {
            let trimmed = text.trim();
            Ok((!trimmed.is_empty()).then(|| trimmed.to_owned()))
        }
        Some(_) => Err(format!("{name}: give a text")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[expect(clippy::needless_pass_by_value, reason = "callers make it on the spot")]
    fn read(arguments: Value) -> Result<Wish, String> {
        Wish::read(arguments.as_object().unwrap())
    }

    #[test]
    fn both_names_of_the_agent_are_one() {
        for arguments in [
            json!({ "agent": "Billing" }),
            json!({ "agent_id": " Billing " }),
            json!({ "agent": "Billing", "agent_id": "Billing", "more": 1 }),
            json!({ "agent": "Billing", "agent_id": null, "reason": " ", "conversation_id": "" }),
        ] {
            let wish = read(arguments).unwrap();
            assert_eq!(
                (wish.agent.as_str(), &wish.reason, &wish.conversation),
                ("Billing", &None, &None)
            );
        }
    }

    #[test]
    fn whether_to_answer_now_may_be_left_open() {
        for (said, meant) in [
            (json!(null), None),
            (json!(""), None),
            (json!(true), Some(true)),
            (json!("False"), Some(false)),
        ] {
            let wish = read(json!({ "agent": "a", "answer_now": said })).unwrap();
            assert_eq!(wish.answer_now, meant);
        }
    }

    #[test]
    fn what_cannot_be_meant_is_named() {
        for (arguments, words) in [
            (json!({}), "agent: missing"),
            (json!({ "agent": "" }), "agent: missing"),
            (json!({ "agent": 5 }), "agent: give a text"),
            (json!({ "agent": "a", "agent_id": "b" }), "differ"),
            (
                json!({ "agent": "a", "reason": ["b"] }),
                "reason: give a text",
            ),
            (json!({ "agent": "a".repeat(600) }), "too long"),
            (
                json!({ "agent": "a", "answer_now": "later" }),
                "answer_now: give true or false",
            ),
        ] {
            let error = read(arguments).unwrap_err();
            assert!(error.contains(words), "{error}");
        }
    }
}
