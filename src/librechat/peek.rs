//! A glance at many turns at once: two queries, whatever their number.

use std::collections::HashMap;

use futures::TryStreamExt;
use mongodb::{
    bson::{RawDocument, RawDocumentBuf, doc},
    error::Result,
};

use super::{
    Conversation, ConversationId, ConversationKey, Conversations, MessageHead, MessageId, Messages,
    Turn, TurnRef, raw::Lenient,
};

/// What a glance shows. `turn.after` is always empty: later turns are not looked for.
#[derive(Clone, Debug, Default)]
pub struct Glance {
    /// The conversation.
    pub conversation: Option<Conversation>,
    /// U and R.
    pub turn: Turn,
}

/// Glances at the turns, in their order.
///
/// # Errors
///
/// What MongoDB answers.
pub async fn glance(
    conversations: &Conversations,
    messages: &Messages,
    turns: &[(ConversationKey, TurnRef)],
) -> Result<Vec<Glance>> {
    let conversation_ids: Vec<_> = turns.iter().map(|(key, _)| &key.conversation).collect();
    let message_ids: Vec<_> = turns
        .iter()
        .flat_map(|(_, turn)| [turn.user_message.as_ref(), turn.response.as_ref()])
        .flatten()
        .collect();
    let documents = conversations.many(&conversation_ids).await?;
    let heads = messages.many(&message_ids).await?;
    let head = |key: &ConversationKey, id: Option<&MessageId>| {
        id.and_then(|id| heads.get(&(key.user.as_str().to_owned(), id.clone())))
            .cloned()
    };
    Ok(turns
        .iter()
        .map(|(key, turn)| Glance {
            conversation: documents
                .iter()
                .find(|raw| {
                    raw.text("conversationId") == Some(key.conversation.as_str())
                        && raw.text("user") == Some(key.user.as_str())
                        && raw.text("tenantId")
                            == key.tenant.as_ref().map(super::ids::TenantId::as_str)
                })
                .and_then(|raw| Conversation::parse(raw)),
            turn: Turn {
                user_message: head(key, turn.user_message.as_ref()),
                response: head(key, turn.response.as_ref()),
                after: Vec::new(),
            },
        })
        .collect())
}

impl Conversations {
    async fn many(&self, ids: &[&ConversationId]) -> Result<Vec<RawDocumentBuf>> {
        let mut projection = Self::projection();
        projection.extend(doc! { "conversationId": 1, "user": 1, "tenantId": 1 });
        self.collection()
            .find(doc! { "conversationId": { "$in": ids } })
            .projection(projection)
            .await?
            .try_collect()
            .await
    }
}

impl Messages {
    async fn many(&self, ids: &[&MessageId]) -> Result<HashMap<(String, MessageId), MessageHead>> {
        let mut projection = Self::head_projection();
        projection.insert("user", 1);
        let found: Vec<RawDocumentBuf> = self
            .collection()
            .find(doc! { "messageId": { "$in": ids } })
            .projection(projection)
            .await?
            .try_collect()
            .await?;
        let entry = |raw: &RawDocument| {
            let head = MessageHead::parse(raw)?;
            Some(((raw.text("user")?.to_owned(), head.id.clone()), head))
        };
        Ok(found.iter().filter_map(|raw| entry(raw)).collect())
    }
}
