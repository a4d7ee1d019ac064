//! A turn: a user's message U, the response R to it, and what came after.

use futures::TryStreamExt;
use mongodb::{
    Collection, Database,
    bson::{Bson, DateTime, Document, RawDocument, RawDocumentBuf, doc, oid::ObjectId},
};

use super::{ConversationKey, MessageId, raw::Lenient, schema::MESSAGES};

/// More messages than this after U are not read: one that is later is enough.
const HEADS_LIMIT: i64 = 64;

/// Which turn is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TurnRef {
    /// U: the response's `parentMessageId`.
    pub user_message: Option<MessageId>,
    /// U's `_id`, where it is known; it spares a look-up.
    pub user_object: Option<ObjectId>,
    /// R, where it is known. Where it is not, it is the first response to U newer than the floor.
    pub response: Option<MessageId>,
    /// Only a newer message can be R where R is not known; stands in for U's `_id` where U cannot
    /// be found.
    pub floor: Option<ObjectId>,
}

/// A message without its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageHead {
    /// `_id`, assigned by MongoDB: messages are ordered by it.
    pub object_id: ObjectId,
    /// `messageId`.
    pub id: MessageId,
    /// `parentMessageId`.
    pub parent: Option<MessageId>,
    /// Whether a user wrote it.
    pub by_user: bool,
    /// Whether the response is still being written, or was stopped.
    pub unfinished: bool,
    /// `createdAt`, by LibreChat's clock.
    pub created_at: Option<DateTime>,
    /// `updatedAt`, by LibreChat's clock.
    pub updated_at: Option<DateTime>,
}

/// What is known of a turn at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Turn {
    /// U.
    pub user_message: Option<MessageHead>,
    /// R, once it is saved.
    pub response: Option<MessageHead>,
    /// The conversation's messages newer than U (or than the floor), oldest first, R among them.
    pub after: Vec<MessageHead>,
}

impl Turn {
    /// The first response to U that is newer than `floor`.
    #[must_use]
    pub fn first_response_after(&self, floor: ObjectId) -> Option<&MessageHead> {
        let u = self.user_message.as_ref()?;
        self.after
            .iter()
            .filter(|head| !head.by_user && head.parent.as_ref() == Some(&u.id))
            .find(|head| head.object_id > floor)
    }

    /// Whether a message id that LibreChat saved with the conversation is one that this turn
    /// explains: U itself, anything older, or a message among those read after U.
    #[must_use]
    pub fn accounts_for(&self, message: ObjectId) -> bool {
        self.user_message
            .as_ref()
            .is_some_and(|u| message <= u.object_id)
            || self
                .response
                .as_ref()
                .is_some_and(|r| message <= r.object_id)
            || self.after.iter().any(|head| head.object_id == message)
    }
}

impl MessageHead {
    pub(crate) fn parse(raw: &RawDocument) -> Option<Self> {
        Some(Self {
            object_id: raw.object_id("_id")?,
            id: raw.text("messageId")?.into(),
            parent: raw.text("parentMessageId").map(MessageId::from),
            by_user: raw.flag("isCreatedByUser").unwrap_or(false),
            unfinished: raw.flag("unfinished").unwrap_or(false),
            created_at: raw.date("createdAt"),
            updated_at: raw.date("updatedAt"),
        })
    }
}

/// The `messages` collection.
#[derive(Clone, Debug)]
pub struct Messages {
    collection: Collection<RawDocumentBuf>,
}

impl Messages {
    /// The messages of LibreChat's database.
    #[must_use]
    pub fn new(database: &Database) -> Self {
        Self {
            collection: database.collection(MESSAGES),
        }
    }

    pub(super) fn collection(&self) -> &Collection<RawDocumentBuf> {
        &self.collection
    }

    pub(super) fn head_projection() -> Document {
        doc! {
            "messageId": 1, "parentMessageId": 1, "isCreatedByUser": 1, "unfinished": 1,
            "createdAt": 1, "updatedAt": 1,
        }
    }

    /// Reads one message's head.
    ///
    /// # Errors
    ///
    /// What MongoDB answers.
    pub async fn head(
        &self,
        key: &ConversationKey,
        id: &MessageId,
    ) -> mongodb::error::Result<Option<MessageHead>> {
        let mut filter = scope(key);
        filter.insert("messageId", id);
        let found = self
            .collection
            .find_one(filter)
            .projection(Self::head_projection())
            .await?;
        Ok(found.as_deref().and_then(MessageHead::parse))
    }

    /// Reads a turn: U, R, and whatever else of the conversation is newer than U.
    ///
    /// By `_id` that costs as much as was inserted since, by conversation as much as it holds:
    /// MongoDB tries both and chooses.
    ///
    /// # Errors
    ///
    /// What MongoDB answers.
    pub async fn turn(
        &self,
        key: &ConversationKey,
        turn: &TurnRef,
    ) -> mongodb::error::Result<Turn> {
        let user_object = match (turn.user_object, &turn.user_message) {
            (Some(object), _) => Some(object),
            (None, Some(id)) => self.head(key, id).await?.map(|head| head.object_id),
            (None, None) => None,
        };
        let Some(first) = user_object.or(turn.floor) else {
            return Ok(Turn::default());
        };
        let mut after = self.from(key, first).await?;
        let at_first = after.first().is_some_and(|head| head.object_id == first);
        let user_message = match (at_first, user_object) {
            (true, Some(_)) => Some(after.remove(0)),
            (true, None) => {
                after.remove(0);
                None
            }
            (false, _) => None,
        };
        let response = match &turn.response {
            None => None,
            Some(id) => match after.iter().find(|head| head.id == *id) {
                Some(head) => Some(head.clone()),
                None => self.head(key, id).await?,
            },
        };
        let mut read = Turn {
            user_message,
            response,
            after,
        };
        if let (None, Some(floor)) = (&turn.response, turn.floor) {
            read.response = read.first_response_after(floor).cloned();
        }
        Ok(read)
    }

    /// The newest messages of a conversation, oldest first.
    ///
    /// # Errors
    ///
    /// What MongoDB answers.
    pub async fn newest(&self, key: &ConversationKey) -> mongodb::error::Result<Vec<MessageHead>> {
        let found: Vec<RawDocumentBuf> = self
            .collection
            .find(scope(key))
            .sort(doc! { "_id": -1 })
            .limit(HEADS_LIMIT)
            .projection(Self::head_projection())
            .await?
            .try_collect()
            .await?;
        Ok(found
            .iter()
            .rev()
            .filter_map(|raw| MessageHead::parse(raw))
            .collect())
    }

    /// The conversation's messages from `first` on, oldest first.
    async fn from(
        &self,
        key: &ConversationKey,
        first: ObjectId,
    ) -> mongodb::error::Result<Vec<MessageHead>> {
        let mut filter = scope(key);
        filter.insert("_id", doc! { "$gte": first });
        self.collection
            .find(filter)
            .sort(doc! { "_id": 1 })
            .limit(HEADS_LIMIT)
            .projection(Self::head_projection())
            .await?
            .try_filter_map(|raw| async move { Ok(MessageHead::parse(&raw)) })
            .try_collect()
            .await
    }
}

/// `tenantId` is not part of it: `{conversationId, user}` is what LibreChat itself queries messages by.
fn scope(key: &ConversationKey) -> Document {
    let mut scope = doc! { "conversationId": &key.conversation, "user": &key.user };
    if let Some(tenant) = &key.tenant {
        scope.insert("tenantId", Bson::from(tenant.clone()));
    }
    scope
}
