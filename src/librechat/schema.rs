//! The names of LibreChat's collections, as its mongoose models give them.

/// Conversations (`Conversation`).
pub const CONVERSATIONS: &str = "conversations";
/// Messages (`Message`).
pub const MESSAGES: &str = "messages";
/// Agents (`Agent`).
pub const AGENTS: &str = "agents";
/// Users (`User`).
pub const USERS: &str = "users";
/// Who may do what with which resource (`AclEntry`, v0.8.0 on).
pub const ACL_ENTRIES: &str = "aclentries";
/// The named sets of permissions that entries are made from (`AccessRole`, v0.8.0 on); filled at
/// every start of the server.
pub const ACCESS_ROLES: &str = "accessroles";
/// Groups of users (`Group`, v0.8.0 on).
pub const GROUPS: &str = "groups";
/// Roles and the features that each may use (`Role`).
pub const ROLES: &str = "roles";
/// Capabilities, such as `manage:agents` (`SystemGrant`, v0.8.5 on); filled at every start of the
/// server.
pub const SYSTEM_GRANTS: &str = "systemgrants";
/// Projects, by which agents were shared up to v0.7.9 (`Project`).
pub const PROJECTS: &str = "projects";

/// What a user marked as a favourite (`ToolFavorite`, v0.8.8 on); made at every start of the server.
pub const SINCE_V0_8_8: &str = "toolfavorites";

/// What users have uploaded (`File`).
pub const FILES: &str = "files";

/// The collections without which there is no LibreChat with agents.
pub const REQUIRED: [&str; 4] = [CONVERSATIONS, MESSAGES, AGENTS, USERS];
/// The collections that Baton reads; those of later versions may be missing.
pub const READ: [&str; 8] = [
    CONVERSATIONS,
    MESSAGES,
    AGENTS,
    USERS,
    ACL_ENTRIES,
    GROUPS,
    ROLES,
    SYSTEM_GRANTS,
];
/// The collections that Baton changes, and by which of MongoDB's actions.
pub const WRITTEN: [(&str, &[&str]); 1] = [(CONVERSATIONS, &["update"])];
/// Those that it changes as well where the target answers in the same stream.
pub const JOINED: [(&str, &[&str]); 1] = [(MESSAGES, &["update", "remove"])];
/// The indexes of LibreChat's own that Baton's reads and writes rely on, each by the fields that it
/// begins with (`packages/data-schemas/src/schema/{convo,message}.ts`, v0.8.0 on).
pub const INDEXES: [(&str, &[&str]); 3] = [
    (CONVERSATIONS, &["conversationId", "user"]),
    (MESSAGES, &["messageId"]),
    (MESSAGES, &["conversationId"]),
];
/// The variable of LibreChat's that keeps it from making its indexes (`api/db/connect.js`).
pub const AUTO_INDEX: &str = "MONGO_AUTO_INDEX";
