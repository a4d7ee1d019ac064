//! What a tab has seen of a conversation, by the message that it answers.

use std::collections::HashMap;

use futures::TryStreamExt;
use mongodb::{
    bson::{RawDocumentBuf, doc, oid::ObjectId},
    error::Result,
};

use super::{AgentId, ConversationKey, MessageId, Messages, raw::Lenient, turn::scope};

/// So many messages after a switch are read. A conversation with more is known to whoever has it
/// open.
const LIMIT: usize = 2000;

/// Since when messages show that a tab knows of a switch.
#[derive(Clone, Copy, Debug)]
pub struct Since<'a> {
    /// R's `_id`, or the newest message's when the switch was learned of.
    pub object: ObjectId,
    /// R, where the switch has one.
    pub response: Option<&'a MessageId>,
    /// The target: its responses show that the switch had come about.
    pub to: &'a AgentId,
}

struct Link {
    parent: Option<MessageId>,
    shows: bool,
}

impl Messages {
    /// Whether `leaf` is the switch's response or an answer of its target's, or descends from one.
    ///
    /// # Errors
    ///
    /// What MongoDB answers.
    pub async fn descends(
        &self,
        key: &ConversationKey,
        leaf: &MessageId,
        since: Since<'_>,
    ) -> Result<bool> {
        if since.response == Some(leaf) {
            return Ok(true);
        }
        let mut filter = scope(key);
        filter.insert("_id", doc! { "$gte": since.object });
        let found: Vec<RawDocumentBuf> = self
            .collection()
            .find(filter)
            .projection(
                doc! { "messageId": 1, "parentMessageId": 1, "isCreatedByUser": 1, "model": 1 },
            )
            .limit(i64::try_from(LIMIT).unwrap_or(i64::MAX))
            .await?
            .try_collect()
            .await?;
        if found.len() >= LIMIT {
            return Ok(true);
        }
        let links: HashMap<MessageId, Link> = found
            .iter()
            .filter_map(|raw| {
                let id = MessageId::from(raw.text("messageId")?);
                let by_target = raw.flag("isCreatedByUser") == Some(false)
                    && raw.text("model") == Some(since.to.as_str());
                let shows = by_target || since.response == Some(&id);
                let parent = raw.text("parentMessageId").map(MessageId::from);
                Some((id, Link { parent, shows }))
            })
            .collect();
        let mut at = Some(leaf);
        // A loop in the messages ends it too.
        for _ in 0..=links.len() {
            let Some(link) = at.and_then(|id| links.get(id)) else {
                return Ok(false);
            };
            if link.shows {
                return Ok(true);
            }
            at = link.parent.as_ref();
        }
        Ok(false)
    }
}
