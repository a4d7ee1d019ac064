//! What is held of a switch in memory while it is guarded.

use mongodb::bson::{DateTime, oid::ObjectId};

use super::{
    decide::Guard,
    record::{Origin, Switch},
};
use crate::librechat::{AgentId, ConversationKey, MessageId, Turn, TurnRef};

/// An open switch: what the rules ask of it and what is written by it, and no more, for there may
/// be tens of thousands.
#[derive(Clone, Debug, PartialEq)]
pub struct Guarded {
    /// Identifies the record.
    pub id: ObjectId,
    /// The conversation.
    pub key: ConversationKey,
    /// R's `messageId`.
    pub message_id: Option<MessageId>,
    /// U's `messageId`.
    pub parent_message_id: Option<MessageId>,
    /// The target.
    pub to_agent: AgentId,
    /// How it was learned.
    pub origin: Origin,
    /// What the rules ask of it.
    pub guard: Guard,
    /// When it was learned, by MongoDB's clock.
    pub created_at: Option<DateTime>,
    /// Whether Baton has put the target in force.
    pub is_applied: bool,
}

impl From<&Switch> for Guarded {
    fn from(switch: &Switch) -> Self {
        Self {
            id: switch.id,
            key: switch.key(),
            message_id: switch.message_id.clone(),
            parent_message_id: switch.parent_message_id.clone(),
            to_agent: switch.to_agent.clone(),
            origin: switch.origin,
            guard: switch.guard(),
            created_at: switch.created_at,
            is_applied: switch.applied_at.is_some(),
        }
    }
}

impl Guarded {
    /// The turn that it belongs to.
    #[must_use]
    pub fn turn(&self) -> TurnRef {
        TurnRef {
            user_message: self.parent_message_id.clone(),
            user_object: self.guard.user_message,
            response: self.message_id.clone(),
            floor: self.guard.floor.or(self.guard.response),
        }
    }

    /// Takes over the ids that a reading of its turn shows: its messages may have been saved since
    /// the switch was learned of.
    pub fn learn(&mut self, turn: &Turn) {
        let user_message = turn.user_message.as_ref().map(|u| u.object_id);
        let response = turn.response.as_ref();
        self.guard.user_message = self.guard.user_message.or(user_message);
        self.guard.response = self.guard.response.or(response.map(|r| r.object_id));
        if self.message_id.is_none() {
            self.message_id = response.map(|r| r.id.clone());
        }
    }

    /// Of two switches of a conversation the one whose position is greater is the later decision: that
    /// of the later turn, in a turn the user's choice, and of several the one recorded later.
    #[must_use]
    pub fn position(&self) -> (Option<ObjectId>, bool, Option<DateTime>) {
        (
            self.guard.user_message.or(self.guard.floor),
            self.origin == Origin::Api,
            self.created_at,
        )
    }
}
