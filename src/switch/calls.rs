//! The calls of Baton's own tool that were answered with success, in the state database.
//!
//! A call is here before its answer is given. The answer's `switch_id` comes back in the response
//! that LibreChat saves, and binds the call to that message: once and for all, so that a copy of
//! the same part in another message (edit, continue, fork, import) is nothing.

use std::time::Duration;

use mongodb::{
    Collection, Database, IndexModel,
    bson::{DateTime, Document, doc},
    error::Result,
    options::IndexOptions,
};

use crate::librechat::{AgentId, ConversationId, ConversationKey, MessageId, UserId};

const CALLS: &str = "calls";

/// A call as it is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issued {
    /// Fresh and unguessable.
    pub switch_id: String,
    /// The user.
    pub user: UserId,
    /// The target.
    pub to: AgentId,
    /// The conversation and R's `messageId`, where LibreChat's headers told them.
    pub place: Option<(ConversationId, MessageId)>,
}

/// The `calls` collection.
#[derive(Clone, Debug)]
pub struct Calls {
    calls: Collection<Document>,
    retention: Duration,
}

impl Calls {
    /// The calls in `database`, kept for `retention`; a copy of an older one is unknown, and so
    /// nothing too.
    #[must_use]
    pub fn new(database: &Database, retention: Duration) -> Self {
        Self {
            calls: database.collection(CALLS),
            retention,
        }
    }

    /// Makes the index by which calls expire.
    ///
    /// # Errors
    ///
    /// What MongoDB answers.
    pub async fn prepare(&self) -> Result<()> {
        let expiry = IndexModel::builder()
            .keys(doc! { "expires_at": 1 })
            .options(
                IndexOptions::builder()
                    .name("expiry".to_owned())
                    .expire_after(Duration::ZERO)
                    .build(),
            )
            .build();
        self.calls.create_index(expiry).await?;
        Ok(())
    }

    /// Makes a call durable. Another attempt at the same one changes nothing.
    ///
    /// # Errors
    ///
    /// What MongoDB answers.
    pub async fn issue(&self, call: &Issued) -> Result<()> {
        let expires_at = DateTime::from_system_time(std::time::SystemTime::now() + self.retention);
        let mut fields =
            doc! { "user": &call.user, "to_agent": &call.to, "expires_at": expires_at };
        if let Some((conversation, message)) = &call.place {
            fields.insert("conversation_id", conversation);
            fields.insert("message_id", message);
        }
        self.calls
            .update_one(
                doc! { "_id": &call.switch_id },
                doc! { "$setOnInsert": fields, "$currentDate": { "created_at": true } },
            )
            .upsert(true)
            .await?;
        Ok(())
    }

    /// Binds a call to the message that holds it. `false`: there is no such call of this user's
    /// with this target, or it belongs to another message.
    ///
    /// # Errors
    ///
    /// What MongoDB answers.
    pub async fn bind(
        &self,
        switch_id: &str,
        key: &ConversationKey,
        message: &MessageId,
        to: &AgentId,
    ) -> Result<bool> {
        let bound = self
            .calls
            .update_one(
                doc! {
                    "_id": switch_id, "user": &key.user, "to_agent": to,
                    "conversation_id": { "$in": [null, &key.conversation] },
                    "message_id": { "$in": [null, message] },
                },
                doc! { "$set": { "conversation_id": &key.conversation, "message_id": message } },
            )
            .await?;
        Ok(bound.matched_count == 1)
    }
}
