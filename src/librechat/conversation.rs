//! The conversation document: what is read of it, and the one write that Baton makes to LibreChat.

use mongodb::{
    Collection, Database,
    bson::{Bson, DateTime, Document, RawDocument, RawDocumentBuf, doc, oid::ObjectId},
};

use super::{AgentId, ConversationKey, raw::Lenient, schema::CONVERSATIONS, specs::SpecPatch};

/// `endpoint` of a conversation with an agent.
const AGENTS: &str = "agents";

/// What a conversation document says at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Conversation {
    /// `_id`; another one after the conversation was deleted and saved again.
    pub object_id: ObjectId,
    /// The active agent.
    pub agent: Option<AgentId>,
    /// When LibreChat last saved it, by LibreChat's clock.
    pub updated_at: Option<DateTime>,
    /// The model spec that it was begun from.
    pub spec: Option<String>,
    /// Whether Baton leaves it alone: not a conversation with an agent, or a sub-agent's thread.
    pub exempt: bool,
}

/// The state that a write of Baton's is conditional on.
#[derive(Clone, Debug, PartialEq)]
pub struct Expected {
    /// `agent_id` as read or as an event said.
    pub agent: Option<AgentId>,
    /// `updatedAt` likewise: with it, no later save of LibreChat's is ever overwritten.
    pub updated_at: Option<DateTime>,
}

impl Conversation {
    pub(crate) fn parse(raw: &RawDocument) -> Option<Self> {
        Some(Self {
            object_id: raw.object_id("_id")?,
            agent: raw.text("agent_id").map(AgentId::from),
            updated_at: raw.date("updatedAt"),
            spec: raw.text("spec").map(str::to_owned),
            exempt: raw.text("endpoint") != Some(AGENTS)
                || raw
                    .value("subagentThread")
                    .is_some_and(|v| v.as_null().is_none()),
        })
    }

    /// What a write based on this reading is conditional on.
    #[must_use]
    pub fn expected(&self) -> Expected {
        Expected {
            agent: self.agent.clone(),
            updated_at: self.updated_at,
        }
    }

    /// Whether the document already says all that `to` with `patch` would write.
    #[must_use]
    pub fn names(&self, to: &AgentId, patch: SpecPatch<'_>) -> bool {
        self.agent.as_ref() == Some(to)
            && match patch {
                SpecPatch::Set(spec) => self.spec.as_ref() == Some(&spec.name),
                SpecPatch::Clear => self.spec.is_none(),
                SpecPatch::Keep | SpecPatch::Refuse => true,
            }
    }
}

/// The `conversations` collection.
#[derive(Clone, Debug)]
pub struct Conversations {
    collection: Collection<RawDocumentBuf>,
}

impl Conversations {
    /// The conversations of LibreChat's database.
    #[must_use]
    pub fn new(database: &Database) -> Self {
        Self {
            collection: database.collection(CONVERSATIONS),
        }
    }

    pub(super) fn collection(&self) -> &Collection<RawDocumentBuf> {
        &self.collection
    }

    pub(super) fn projection() -> Document {
        doc! {
            "agent_id": 1, "updatedAt": 1, "spec": 1, "endpoint": 1,
            "subagentThread": 1,
        }
    }

    /// Reads a conversation; `None` where there is none, or none that can be understood.
    ///
    /// # Errors
    ///
    /// What MongoDB answers.
    pub async fn read(
        &self,
        key: &ConversationKey,
    ) -> mongodb::error::Result<Option<Conversation>> {
        let found = self
            .collection
            .find_one(filter(key))
            .projection(Self::projection())
            .await?;
        Ok(found.as_deref().and_then(Conversation::parse))
    }

    /// Whether another user has a conversation with this id. The user's own does not count: it may
    /// be made at any moment.
    ///
    /// # Errors
    ///
    /// What MongoDB answers.
    pub async fn is_of_another(&self, key: &ConversationKey) -> mongodb::error::Result<bool> {
        let found = self
            .collection
            .find_one(doc! { "conversationId": &key.conversation, "user": { "$ne": &key.user } })
            .projection(doc! { "_id": 1 })
            .await?;
        Ok(found.is_some())
    }

    /// Sets `agent_id` to `to`, and the model spec with it, if the document still is as `expected`
    /// and is none that Baton leaves alone.
    ///
    /// Touches nothing else, `updatedAt` included, and never inserts. `false`: it no longer is.
    ///
    /// # Errors
    ///
    /// What MongoDB answers; the write may or may not have happened.
    pub async fn set_agent(
        &self,
        key: &ConversationKey,
        expected: &Expected,
        to: &AgentId,
        patch: SpecPatch<'_>,
    ) -> mongodb::error::Result<bool> {
        let mut filter = filter(key);
        filter.insert(
            "agent_id",
            expected.agent.clone().map_or(Bson::Null, Bson::from),
        );
        filter.insert(
            "updatedAt",
            expected.updated_at.map_or(Bson::Null, Bson::from),
        );
        // Of what is exempt an event says nothing.
        filter.insert("endpoint", AGENTS);
        filter.insert("subagentThread", Bson::Null);
        let mut set = doc! { "agent_id": to };
        let mut unset = Document::new();
        match patch {
            SpecPatch::Set(spec) => {
                set.insert("spec", &spec.name);
                match &spec.icon_url {
                    Some(url) => set.insert("iconURL", url),
                    None => unset.insert("iconURL", ""),
                };
            }
            SpecPatch::Clear => unset = doc! { "spec": "", "iconURL": "" },
            SpecPatch::Keep | SpecPatch::Refuse => {}
        }
        let mut update = doc! { "$set": set };
        if !unset.is_empty() {
            update.insert("$unset", unset);
        }
        Ok(self
            .collection
            .update_one(filter, update)
            .await?
            .matched_count
            == 1)
    }
}

/// `null` matches a missing tenant: that of a LibreChat without tenants.
pub(super) fn filter(key: &ConversationKey) -> Document {
    doc! {
        "conversationId": &key.conversation,
        "user": &key.user,
        "tenantId": key.tenant.clone().map_or(Bson::Null, Bson::from),
    }
}
