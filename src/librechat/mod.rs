//! All that is known of LibreChat: its documents, its access rules, its files.
//!
//! Nothing outside this folder names a field or a collection of LibreChat's.

pub mod access;
pub mod asked;
pub mod change;
pub mod chat;
pub mod conversation;
pub mod final_event;
mod handoff;
mod ids;
pub mod join;
mod json;
pub mod lineage;
pub mod lost_final;
pub mod peek;
mod raw;
mod responses;
pub mod schema;
pub mod specs;
pub mod splice;
pub mod sse;
pub mod tool_call;
pub mod turn;
mod untrusted;
pub mod users;

pub use change::{Change, ContentSet, ConversationChange, Response};
pub use conversation::{Conversation, Conversations, Expected};
pub use ids::{AgentId, ConversationId, ConversationKey, MessageId, TenantId, UserId};
pub use specs::SpecPatch;
pub use tool_call::{CallKind, NoSwitch, SwitchCall, ToolNames};
pub use turn::{MessageHead, Messages, Turn, TurnRef};
