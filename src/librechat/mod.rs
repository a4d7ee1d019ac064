//! All that is known of LibreChat: its documents, its access rules, its files.
//!
//! Nothing outside this folder names a field or a collection of LibreChat's.

pub mod access;
mod ids;
pub mod schema;
pub mod specs;

pub use ids::{AgentId, ConversationId, ConversationKey, MessageId, TenantId, UserId};
