//! The identifiers of LibreChat, each with a type of its own so that none is taken for another.
//!
//! They are shared, not copied: a guarded conversation is named by its key in several places.

use std::{fmt, ops::Deref, sync::Arc};

use serde::{Deserialize, Serialize, Serializer};

macro_rules! identifier {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize)]
        #[serde(from = "String")]
        pub struct $name(Arc<str>);

        impl $name {
            /// The identifier as LibreChat writes it.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl From<&str> for $name {
            fn from(value: &str) -> Self {
                Self(value.into())
            }
        }

        impl From<String> for $name {
            fn from(value: String) -> Self {
                Self(value.into())
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl From<$name> for mongodb::bson::Bson {
            fn from(id: $name) -> Self {
                Self::String(id.as_str().to_owned())
            }
        }
    };
}

identifier! {
    /// `agents.id`, as in `agent_TEiCFUrdcmZmLR89Tdclm`.
    AgentId
}
identifier! {
    /// `conversations.conversationId`, a UUID that the server or the client chose.
    ConversationId
}
identifier! {
    /// `messages.messageId`, a UUID; regenerated responses may carry suffixes.
    MessageId
}
identifier! {
    /// `users._id` in hex, as conversations and messages hold it.
    UserId
}
identifier! {
    /// `tenantId`, where LibreChat serves several tenants (v0.8.5 on).
    TenantId
}

impl AgentId {
    /// The id of an agent in the database. LibreChat takes any other text for an agent that lives
    /// in the browser alone (`isEphemeralAgentId` in `packages/data-provider`), which nothing can
    /// be switched to.
    #[must_use]
    pub fn stored(text: &str) -> Option<Self> {
        let name = text.strip_prefix("agent_")?;
        (!name.is_empty()).then(|| text.into())
    }
}

/// What identifies a conversation.
///
/// `conversationId` alone does not: LibreChat's unique index is on `{conversationId, user}`,
/// from v0.8.5 on with `tenantId`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConversationKey(Arc<KeyParts>);

/// What a [`ConversationKey`] is made of.
#[derive(Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeyParts {
    /// The conversation.
    pub conversation: ConversationId,
    /// Its owner.
    pub user: UserId,
    /// The owner's tenant, where there are tenants.
    pub tenant: Option<TenantId>,
}

impl ConversationKey {
    /// The key of a conversation of this user's.
    #[must_use]
    pub fn new(conversation: ConversationId, user: UserId, tenant: Option<TenantId>) -> Self {
        Self(Arc::new(KeyParts {
            conversation,
            user,
            tenant,
        }))
    }
}

impl Deref for ConversationKey {
    type Target = KeyParts;

    fn deref(&self) -> &KeyParts {
        &self.0
    }
}
