//! What clients have been told of switches. It is kept with the record, for all instances.

use futures::TryStreamExt;
use mongodb::{
    bson::{Bson, doc, oid::ObjectId},
    error::Result,
};

use super::{record::Switch, store::Store};
use crate::librechat::{AgentId, ConversationId, MessageId, UserId};

/// Older switches of a conversation do not matter to a tab that is still open.
const HISTORY: i64 = 32;

impl Store {
    /// The records of a response, whatever became of them. The owner is unknown after Stop.
    ///
    /// # Errors
    ///
    /// What MongoDB answers.
    pub async fn of_response(
        &self,
        conversation: &ConversationId,
        user: Option<&UserId>,
        response: &MessageId,
    ) -> Result<Vec<Switch>> {
        let mut filter = doc! { "conversation_id": conversation, "message_id": response };
        if let Some(user) = user {
            filter.insert("user", user);
        }
        self.switches.find(filter).await?.try_collect().await
    }

    /// The conversation's switches that were not refused, newest first.
    ///
    /// # Errors
    ///
    /// What MongoDB answers.
    pub async fn past(&self, conversation: &ConversationId) -> Result<Vec<Switch>> {
        self.switches
            .find(doc! { "conversation_id": conversation, "status": { "$ne": "rejected" } })
            .sort(doc! { "created_at": -1 })
            .limit(HISTORY)
            .await?
            .try_collect()
            .await
    }

    /// A client was told of the switch.
    ///
    /// # Errors
    ///
    /// What MongoDB answers.
    pub async fn delivered(&self, id: ObjectId, to: &AgentId) -> Result<()> {
        self.switches
            .update_one(
                doc! { "_id": id, "to_agent": to, "delivered_at": Bson::Null },
                doc! { "$currentDate": { "delivered_at": true } },
            )
            .await
            .map(|_| ())
    }

    /// A client was told that the conversation is `agent`'s; it knows of the switches to it.
    ///
    /// # Errors
    ///
    /// What MongoDB answers.
    pub async fn delivered_agent(
        &self,
        conversation: &ConversationId,
        user: &UserId,
        agent: &AgentId,
    ) -> Result<()> {
        self.switches
            .update_many(
                doc! {
                    "conversation_id": conversation, "user": user, "to_agent": agent,
                    "status": { "$in": ["open", "settled"] }, "delivered_at": Bson::Null,
                },
                doc! { "$currentDate": { "delivered_at": true } },
            )
            .await
            .map(|_| ())
    }

    /// A turn that was begun with the old agent was given to the target.
    ///
    /// # Errors
    ///
    /// What MongoDB answers.
    pub async fn corrected(&self, id: ObjectId) -> Result<()> {
        self.switches
            .update_one(doc! { "_id": id }, doc! { "$inc": { "corrected": 1 } })
            .await
            .map(|_| ())
    }
}
