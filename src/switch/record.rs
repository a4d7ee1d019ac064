//! The record of a switch, as it stands in the state database.

use std::{collections::BTreeMap, fmt};

use mongodb::bson::{DateTime, oid::ObjectId};
use serde::{Deserialize, Serialize};

use crate::librechat::{
    AgentId, CallKind, ConversationId, ConversationKey, MessageId, SwitchCall, TenantId, UserId,
};

use super::{answer::Answer, decide::Guard};

/// How Baton learned of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// A saved call of a trusted tool.
    Tool,
    /// Baton's own MCP tool.
    Mcp,
    /// LibreChat's own handoff edge.
    Handoff,
    /// `PATCH /api/convos/:id`.
    Api,
}

/// What became of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Guarded: the turn is still to end.
    Open,
    /// The turn ended and the target stood.
    Settled,
    /// A later decision took its place.
    Superseded,
    /// It was refused.
    Rejected,
}

/// A switch. Times are by MongoDB's clock.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Switch {
    /// Identifies the record.
    #[serde(rename = "_id")]
    pub id: ObjectId,
    /// The conversation.
    pub conversation_id: ConversationId,
    /// Its owner.
    pub user: UserId,
    /// The owner's tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant_id: Option<TenantId>,
    /// R's `messageId`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<MessageId>,
    /// U's `messageId`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_message_id: Option<MessageId>,
    /// The provider's id of the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// The id that Baton's own tool gave the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switch_id: Option<String>,
    /// The agent that answered, once it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_agent: Option<AgentId>,
    /// The target.
    pub to_agent: AgentId,
    /// The model's reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Whether the target is to answer the message in which it was switched to, where the model
    /// said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer_now: Option<bool>,
    /// How it was learned.
    pub origin: Origin,
    /// What became of it.
    pub status: Status,
    /// Why it has its status, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Overwrites that were put back.
    #[serde(default)]
    pub repairs: i64,
    /// When each of them was put back. The key is the overwrite's own `updatedAt`, by LibreChat's
    /// clock, in milliseconds since 1970; so an overwrite that does not say its time is not here.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub put_back: BTreeMap<String, DateTime>,
    /// The calls that the record accounts for, by fingerprint: none of them opens it again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<String>,
    /// Present on a refused call's record, which is one of its own: the call's fingerprint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused_call: Option<String>,
    /// U's `_id`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_message: Option<ObjectId>,
    /// R's `_id`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<ObjectId>,
    /// Where R is not known yet: R is the first response to U that is newer than this message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub floor: Option<ObjectId>,
    /// When R was saved with the call, by LibreChat's clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saved_at: Option<DateTime>,
    /// When it was learned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<DateTime>,
    /// When the target was first put in force by Baton.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applied_at: Option<DateTime>,
    /// When a client was first told of the target, by a final with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivered_at: Option<DateTime>,
    /// Turns that a tab without knowledge of the switch began with the old agent, and that were
    /// given to the target.
    #[serde(default)]
    pub corrected: i64,
    /// The response that R was joined to, where R was a target's answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown_in: Option<MessageId>,
    /// How the target answers the message in which it was switched to, where it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Answer>,
    /// When it was closed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed_at: Option<DateTime>,
    /// When MongoDB deletes the record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<DateTime>,
}

impl Switch {
    /// The conversation that it is about.
    #[must_use]
    pub fn key(&self) -> ConversationKey {
        ConversationKey::new(
            self.conversation_id.clone(),
            self.user.clone(),
            self.tenant_id.clone(),
        )
    }

    /// Whether this is the call that the record stands for, and not another one of the same turn.
    #[must_use]
    pub fn is_of(&self, call: &SwitchCall) -> bool {
        self.switch_id.is_some() && call.kind == CallKind::Own && self.switch_id == call.switch_id
    }

    /// Whether a call made the record, and the response that holds it has not been seen.
    ///
    /// It may be settled by then: a response that is continued looks like the end of its turn.
    #[must_use]
    pub fn awaits_its_response(&self) -> bool {
        self.origin == Origin::Mcp
            && self.response.is_none()
            && matches!(self.status, Status::Open | Status::Settled)
    }

    /// What the rules ask of it.
    #[must_use]
    pub fn guard(&self) -> Guard {
        Guard {
            user_message: self.user_message,
            response: self.response,
            floor: self.floor,
            saved_at: self.saved_at,
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tool => "tool",
            Self::Mcp => "mcp",
            Self::Handoff => "handoff",
            Self::Api => "api",
        })
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Open => "open",
            Self::Settled => "settled",
            Self::Superseded => "superseded",
            Self::Rejected => "rejected",
        })
    }
}
