//! `GET /api/convos/{conversationId}/switches`: what happened to the conversation's agent.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use axum::Json;
use axum::extract::{RawQuery, State};
use futures::{StreamExt, TryStreamExt, stream};
use mongodb::bson::DateTime;
use serde::Serialize;
use tokio::time::timeout_at;
use utoipa::ToSchema;

use super::api::Api;
use super::backend::Backend;
use super::error::ApiError;
use super::openapi::Failures;
use super::paging::{Asked, cursor};
use super::path::{ConversationPath, no_such_conversation};
use super::user::User;
use crate::librechat::access::Verdict;
use crate::librechat::{AgentId, ConversationKey, UserId};
use crate::switch::record::{Origin, Status, Switch};

/// So many agents' names are looked up side by side.
const NAMES_AT_ONCE: usize = 4;

/// A page of the history.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Page {
    /// Always true.
    success: bool,
    /// Newest first.
    switches: Vec<Entry>,
    /// Where the next page begins; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// A switch, as its owner sees it.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Entry {
    /// Identifies the switch.
    id: String,
    /// The agent before, where it is known.
    from: Option<Named>,
    /// The agent after.
    to: Named,
    /// The model's reason.
    reason: Option<String>,
    /// `tool`, `mcp`, `handoff` or `api`.
    #[schema(value_type = String, example = "api")]
    origin: Origin,
    /// `open`, `settled`, `superseded` or `rejected`.
    #[schema(value_type = String, example = "settled")]
    status: Status,
    /// Why it has its status.
    detail: Option<String>,
    /// The agent that answered the message in which the switch was made, where it was the new one.
    answered_by: Option<Named>,
    /// When it was learned of. Times are by MongoDB's clock, in UTC.
    #[schema(format = DateTime)]
    created_at: Option<String>,
    /// When the agent was first put in force by Baton.
    #[schema(format = DateTime)]
    applied_at: Option<String>,
    /// When it came to its end.
    #[schema(format = DateTime)]
    closed_at: Option<String>,
}

/// An agent; without a name where the user may not view it (any more).
#[derive(Clone, Debug, Serialize, ToSchema)]
struct Named {
    /// As LibreChat names it.
    #[schema(value_type = String, example = "agent_TEiCFUrdcmZmLR89Tdclm")]
    id: AgentId,
    /// As the agent is called now.
    name: Option<String>,
}

/// What happened to the agent of a conversation
///
/// Newest first.
#[utoipa::path(
    get,
    path = "/api/convos/{conversationId}/switches",
    operation_id = "listSwitches",
    params(
        ("conversationId" = String, Path, description = "A conversation of the user's"),
        ("limit" = Option<u32>, Query, minimum = 1, maximum = 100, description = "20 unless given"),
        (
            "cursor" = Option<String>, Query, pattern = "^[0-9]{1,15}-[0-9a-f]{24}$",
            description = "A page's next_cursor, for the next page",
        ),
    ),
    responses((status = 200, description = "A page of it", body = Page), Failures),
    security(("token" = []))
)]
pub(super) async fn history(
    State(api): State<Arc<Api>>,
    user: User,
    ConversationPath(conversation): ConversationPath,
    RawQuery(query): RawQuery,
) -> Result<Json<Page>, ApiError> {
    let asked = Asked::parse(query.as_deref().unwrap_or_default())?;
    let backend = api.slot.get()?;
    let key = user.account.conversation(conversation);
    let page = page(backend, &key, &asked);
    match timeout_at(user.deadline.0, page).await {
        Ok(Ok(page)) => page.map(Json).ok_or_else(no_such_conversation),
        Ok(Err(error)) => {
            tracing::warn!(%error, "a history could not be read");
            Err(ApiError::database())
        }
        Err(_) => Err(ApiError::database()),
    }
}

async fn page(
    backend: &Backend,
    key: &ConversationKey,
    asked: &Asked,
) -> mongodb::error::Result<Option<Page>> {
    if backend.conversations.read(key).await?.is_none() {
        return Ok(None);
    }
    // One more than asked for shows whether there is another page.
    let more = i64::from(asked.limit) + 1;
    let mut switches = backend.store.history(key, asked.after, more).await?;
    let limit = usize::try_from(asked.limit).unwrap_or(usize::MAX);
    let has_more = switches.len() > limit;
    switches.truncate(limit);
    let names = names(backend, &key.user, &switches).await?;
    Ok(Some(Page {
        success: true,
        next_cursor: switches.last().filter(|_| has_more).and_then(cursor),
        switches: switches
            .into_iter()
            .map(|switch| Entry::of(switch, &names))
            .collect(),
    }))
}

/// The names of those agents that the user may view: a refused target's is none of its business.
async fn names(
    backend: &Backend,
    user: &UserId,
    switches: &[Switch],
) -> mongodb::error::Result<HashMap<AgentId, Option<String>>> {
    let ids: BTreeSet<AgentId> = switches
        .iter()
        .flat_map(|switch| switch.from_agent.iter().chain([&switch.to_agent]))
        .cloned()
        .collect();
    stream::iter(ids)
        .map(async |id| {
            let name = match backend.access.check(user, &id).await? {
                Verdict::Allowed(agent) => agent.name,
                Verdict::Refused(_) => None,
            };
            Ok((id, name))
        })
        .buffer_unordered(NAMES_AT_ONCE)
        .try_collect()
        .await
}

impl Entry {
    fn of(switch: Switch, names: &HashMap<AgentId, Option<String>>) -> Self {
        let with_name = |id: AgentId| Named {
            name: names.get(&id).cloned().flatten(),
            id,
        };
        let answered_by = switch.answered_by().cloned().map(&with_name);
        let text = |at: Option<DateTime>| at.and_then(|at| at.try_to_rfc3339_string().ok());
        Self {
            id: switch.id.to_hex(),
            answered_by,
            from: switch.from_agent.map(&with_name),
            to: with_name(switch.to_agent),
            reason: switch.reason,
            origin: switch.origin,
            status: switch.status,
            detail: switch.detail,
            created_at: text(switch.created_at),
            applied_at: text(switch.applied_at),
            closed_at: text(switch.closed_at),
        }
    }
}
