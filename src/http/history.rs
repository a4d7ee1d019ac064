//! `GET /api/convos/{conversationId}/switches`: what happened to the conversation's agent.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use axum::Json;
use axum::extract::{RawQuery, State};
use futures::{StreamExt, TryStreamExt, stream};
use mongodb::bson::{DateTime, oid::ObjectId};
use serde::Serialize;
use tokio::time::timeout_at;

use super::api::Api;
use super::backend::Backend;
use super::error::ApiError;
use super::path::{ConversationPath, no_such_conversation};
use super::user::User;
use crate::librechat::access::Verdict;
use crate::librechat::{AgentId, ConversationKey, UserId};
use crate::switch::record::{Origin, Status, Switch};

const DEFAULT: u32 = 20;
const MOST: u32 = 100;

/// So many agents' names are looked up side by side.
const NAMES_AT_ONCE: usize = 4;

/// A page of the history.
#[derive(Debug, Serialize)]
pub(super) struct Page {
    success: bool,
    /// Newest first.
    switches: Vec<Entry>,
    /// Where the next page begins; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// A switch, as its owner sees it.
#[derive(Debug, Serialize)]
pub(super) struct Entry {
    id: String,
    from: Option<Named>,
    to: Named,
    reason: Option<String>,
    origin: Origin,
    status: Status,
    detail: Option<String>,
    created_at: Option<String>,
    applied_at: Option<String>,
    closed_at: Option<String>,
}

/// An agent; without a name where the user may not view it (any more).
#[derive(Clone, Debug, Serialize)]
struct Named {
    id: AgentId,
    name: Option<String>,
}

/// What the query asks for.
#[derive(Debug, PartialEq, Eq)]
struct Asked {
    limit: u32,
    after: Option<(DateTime, ObjectId)>,
}

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
        let text = |at: Option<DateTime>| at.and_then(|at| at.try_to_rfc3339_string().ok());
        Self {
            id: switch.id.to_hex(),
            from: switch.from_agent.map(with_name),
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

/// The place of a switch in the order of the history: its time in milliseconds and its id.
fn cursor(switch: &Switch) -> Option<String> {
    let at = switch.created_at?.timestamp_millis();
    Some(format!("{at}-{}", switch.id.to_hex()))
}

impl Asked {
    /// Other parameters are nobody's concern: proxies and caches add their own.
    fn parse(query: &str) -> Result<Self, ApiError> {
        let mut asked = Self {
            limit: DEFAULT,
            after: None,
        };
        for (name, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
            match name {
                "limit" => {
                    let limit = value.parse().ok();
                    asked.limit = limit
                        .filter(|limit| (1..=MOST).contains(limit))
                        .ok_or_else(|| ApiError::field("limit", format!("give 1 to {MOST}")))?;
                }
                "cursor" => {
                    let wrong = || ApiError::field("cursor", "give a next_cursor as it was");
                    asked.after = Some(place(value).ok_or_else(wrong)?);
                }
                _ => {}
            }
        }
        Ok(asked)
    }
}

fn place(cursor: &str) -> Option<(DateTime, ObjectId)> {
    let (at, id) = cursor.split_once('-')?;
    let at = at
        .parse::<u32>()
        .map(i64::from)
        .or_else(|_| at.parse())
        .ok()?;
    Some((DateTime::from_millis(at), ObjectId::parse_str(id).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_taken_by_its_word() {
        assert_eq!(Asked::parse("").unwrap().limit, 20);
        assert_eq!(Asked::parse("limit=100&utm=x").unwrap().limit, 100);
        let id = "0123456789abcdef01234567";
        let asked = Asked::parse(&format!("cursor=1700000000000-{id}")).unwrap();
        let (at, after) = asked.after.unwrap();
        assert_eq!(at.timestamp_millis(), 1_700_000_000_000);
        assert_eq!(after.to_hex(), id);
    }

    #[test]
    fn what_cannot_be_meant_names_its_field() {
        for (query, field) in [
            ("limit=0", "limit"),
            ("limit=101", "limit"),
            ("limit=-1", "limit"),
            ("limit=", "limit"),
            ("limit=1e1", "limit"),
            ("cursor=", "cursor"),
            ("cursor=1-2", "cursor"),
            ("cursor=%24ne", "cursor"),
        ] {
            let error = Asked::parse(query).unwrap_err().to_string();
            assert!(error.starts_with(&format!("{field}: ")), "{query}: {error}");
        }
    }
}
