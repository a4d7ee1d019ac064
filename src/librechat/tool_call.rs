//! Which saved tool calls are real switches (a response's `content` parts).
//!
//! A part as LibreChat saves it (v0.8.8; `agentId` in multi-agent runs only):
//! `{"type":"tool_call","tool_call":{"id","name","args","output",…},"agentId"}`.
//! v0.8.0 wraps the output as an MCP content list: `[{"type":"text","text":"{…}"}]`.

use std::collections::BTreeSet;

use mongodb::bson::{Bson, RawBsonRef, RawDocument, RawDocumentBuf, Regex};
use serde::Deserialize;

use super::{AgentId, ConversationId, handoff, raw::Lenient};

/// LibreChat joins a tool's name and its MCP server's with this
/// (`Constants.mcp_delimiter` in `packages/data-provider/src/config.ts`).
pub(super) const MCP_DELIMITER: &str = "_mcp_";

/// An output longer than this is no answer of a switch tool, in bytes.
const OUTPUT_LIMIT: usize = 64 * 1024;

/// The tool names whose calls count: each tool alone, and of each trusted MCP server; and, where
/// they are to last, LibreChat's own handoffs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolNames {
    names: BTreeSet<String>,
    own: BTreeSet<String>,
    handoffs: bool,
}

impl ToolNames {
    /// `tools` alone and with each of `servers`; `own_server` is Baton's own MCP server.
    #[must_use]
    pub fn new(tools: &[String], servers: &[String], own_server: &str) -> Self {
        let of = |server: &str| {
            tools
                .iter()
                .map(move |tool| format!("{tool}{MCP_DELIMITER}{server}"))
                .collect::<Vec<_>>()
        };
        let own: BTreeSet<String> = of(own_server).into_iter().collect();
        let names = tools
            .iter()
            .cloned()
            .chain(servers.iter().flat_map(|server| of(server)))
            .chain(own.iter().cloned())
            .collect();
        Self {
            names,
            own,
            handoffs: false,
        }
    }

    /// The same with LibreChat's own handoffs, if they are to last.
    #[must_use]
    pub fn with_handoffs(self, handoffs: bool) -> Self {
        Self { handoffs, ..self }
    }

    /// Whether LibreChat's own handoffs count.
    #[must_use]
    pub fn with_native(&self) -> bool {
        self.handoffs
    }

    /// Whether a call of this name counts.
    #[must_use]
    pub fn contains(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    /// Whether this is the name of Baton's own tool.
    #[must_use]
    pub fn is_own(&self, name: &str) -> bool {
        self.own.contains(name)
    }

    /// All names, for an expression.
    #[must_use]
    pub fn to_bson(&self) -> Bson {
        self.names.iter().cloned().collect::<Vec<_>>().into()
    }

    /// All names, for `$in` in a query, which takes patterns too.
    #[must_use]
    pub fn to_query(&self) -> Bson {
        let names = self.names.iter().cloned().map(Bson::String);
        let pattern = self.handoffs.then(|| format!("^{}", handoff::PREFIX));
        let handoff = pattern.and_then(|pattern| {
            let pattern = pattern.try_into().ok()?;
            let options = String::new().try_into().ok()?;
            Some(Bson::RegularExpression(Regex { pattern, options }))
        });
        Bson::Array(names.chain(handoff).collect())
    }
}

/// What kind of call switched the conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallKind {
    /// Of a trusted tool that is not Baton's.
    Tool,
    /// Of Baton's own tool.
    Own,
    /// LibreChat's own handoff.
    Handoff,
}

/// A tool call that says it switched the conversation's agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwitchCall {
    /// The provider's id of the call; not always unique (`call_0`).
    pub tool_call_id: Option<String>,
    /// The target.
    pub to: AgentId,
    /// What the model gave as its reason; never logged.
    pub reason: Option<String>,
    /// Whether the target is to answer the message that is being answered, where the model said so.
    pub answer_now: Option<bool>,
    /// The id that Baton's own tool gave the call.
    pub switch_id: Option<String>,
    /// What kind of call it is.
    pub kind: CallKind,
    /// Identifies the part: a call of Baton's own tool by its `switch_id`, any other by all that
    /// it says (id, name, arguments and output).
    pub fingerprint: String,
}

/// Why a call is no switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoSwitch {
    /// Not a tool call of a trusted name.
    #[error("not a call of a trusted switch tool")]
    NotATrustedTool,
    /// No output, or none that is the answer of a switch tool.
    #[error("the output is not the answer of a switch tool")]
    NoAnswer,
    /// The tool itself reported a failure.
    #[error("the tool reported a failure")]
    Failed,
    /// The output names another conversation: copied by a fork, a duplicate or an import.
    #[error("the output names another conversation")]
    OtherConversation,
}

#[derive(Deserialize)]
struct Answer {
    action: Option<String>,
    agent_id: Option<String>,
    conversation_id: Option<String>,
    reason: Option<String>,
    switch_id: Option<String>,
    status: Option<String>,
    success: Option<bool>,
}

impl SwitchCall {
    /// All switches among the parts of a response in `conversation`, in their order.
    #[must_use]
    pub fn all_in(
        parts: &[RawDocumentBuf],
        names: &ToolNames,
        conversation: &ConversationId,
    ) -> Vec<Self> {
        let handoff = |index: usize| {
            let to = names.handoffs.then(|| handoff::target(parts, index))?;
            let call = parts.get(index)?.document("tool_call")?;
            Some(Self {
                tool_call_id: call.text("id").map(str::to_owned),
                to: to?,
                reason: None,
                answer_now: None,
                switch_id: None,
                kind: CallKind::Handoff,
                fingerprint: fingerprint(call),
            })
        };
        let read =
            |(index, part): (usize, &RawDocumentBuf)| match Self::read(part, names, conversation) {
                Ok(call) => Some(call),
                Err(NoSwitch::NotATrustedTool) => handoff(index),
                Err(why) => {
                    tracing::debug!(%why, "no switch");
                    None
                }
            };
        parts.iter().enumerate().filter_map(read).collect()
    }

    /// Reads a content part of a response in `conversation`; a handoff is none by itself.
    ///
    /// # Errors
    ///
    /// Why the part is no switch. That is the rule, not the exception.
    pub fn read(
        part: &RawDocument,
        names: &ToolNames,
        conversation: &ConversationId,
    ) -> Result<Self, NoSwitch> {
        let call = part
            .document("tool_call")
            .filter(|_| part.text("type") == Some("tool_call"))
            .ok_or(NoSwitch::NotATrustedTool)?;
        let name = call
            .text("name")
            .filter(|name| names.contains(name))
            .ok_or(NoSwitch::NotATrustedTool)?;
        let answer = answer(call).ok_or(NoSwitch::NoAnswer)?;
        if answer
            .action
            .as_deref()
            .is_some_and(|action| action != "switch_agent")
        {
            return Err(NoSwitch::NoAnswer);
        }
        let succeeded = match answer.status.as_deref() {
            Some(status) => status == "success",
            None => answer.success == Some(true),
        };
        if !succeeded {
            return Err(NoSwitch::Failed);
        }
        if answer
            .conversation_id
            .as_deref()
            .is_some_and(|named| named != conversation.as_str())
        {
            return Err(NoSwitch::OtherConversation);
        }
        let to = answer
            .agent_id
            .filter(|id| !id.is_empty())
            .ok_or(NoSwitch::NoAnswer)?;
        let own = names.is_own(name);
        Ok(Self {
            tool_call_id: call.text("id").map(str::to_owned),
            to: AgentId::from(to),
            reason: answer.reason,
            answer_now: answer_now(call),
            kind: if own { CallKind::Own } else { CallKind::Tool },
            fingerprint: match answer.switch_id.as_deref().filter(|_| own) {
                Some(id) => own_fingerprint(id),
                None => fingerprint(call),
            },
            switch_id: answer.switch_id,
        })
    }
}

/// Identifies a call of Baton's own tool by the id that Baton gave it.
#[must_use]
pub fn own_fingerprint(switch_id: &str) -> String {
    format!("switch {switch_id}")
}

/// Identifies a saved call by its id, name, arguments and output, whatever their types.
#[must_use]
pub fn fingerprint(call: &RawDocument) -> String {
    let said: Vec<Vec<u8>> = ["id", "name", "args", "output"]
        .iter()
        .map(|key| call.value(key).map_or_else(Vec::new, canonical))
        .collect();
    crate::digest::hex(said.iter().map(Vec::as_slice), 16)
}

fn canonical(value: RawBsonRef<'_>) -> Vec<u8> {
    match value {
        RawBsonRef::String(text) => text.as_bytes().to_vec(),
        RawBsonRef::Document(document) => document.as_bytes().to_vec(),
        RawBsonRef::Array(array) => array.as_bytes().to_vec(),
        other => format!("{other:?}").into_bytes(),
    }
}

/// What the model gave as `answer_now`, whatever tool it is of.
fn answer_now(call: &RawDocument) -> Option<bool> {
    #[derive(Deserialize)]
    struct Args {
        answer_now: Option<serde_json::Value>,
    }
    match call.value("args")? {
        RawBsonRef::Document(args) => args.flag("answer_now"),
        RawBsonRef::String(text) if text.len() <= OUTPUT_LIMIT => {
            let said = serde_json::from_str::<Args>(text).ok()?.answer_now?;
            yes_or_no(&said)
        }
        _ => None,
    }
}

/// Models write a boolean as a text, too. `None`: it is neither.
#[must_use]
pub fn yes_or_no(value: &serde_json::Value) -> Option<bool> {
    match value {
        serde_json::Value::Bool(said) => Some(*said),
        serde_json::Value::String(text) => text.trim().to_ascii_lowercase().parse().ok(),
        _ => None,
    }
}

/// The tool's answer, out of a plain JSON text or out of an MCP content list.
fn answer(call: &RawDocument) -> Option<Answer> {
    match call.value("output")? {
        RawBsonRef::String(text) => answer_in_text(text),
        RawBsonRef::Array(list) => list
            .into_iter()
            .flatten()
            .find_map(|item| answer_in_text(item.as_document()?.text("text")?)),
        RawBsonRef::Document(document) => answer_in_text(document.text("text")?),
        _ => None,
    }
}

fn answer_in_text(text: &str) -> Option<Answer> {
    #[derive(Deserialize)]
    struct Item {
        text: Option<String>,
    }
    if text.len() > OUTPUT_LIMIT {
        return None;
    }
    match text.trim_start().as_bytes().first()? {
        b'{' => serde_json::from_str(text).ok(),
        b'[' => serde_json::from_str::<Vec<Item>>(text)
            .ok()?
            .into_iter()
            .filter_map(|item| item.text)
            .find_map(|inner| serde_json::from_str(&inner).ok()),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
