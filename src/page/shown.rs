//! The switches as the page has them.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use axum::Json;
use axum::extract::{Query, State};
use mongodb::bson::DateTime;
use serde::Serialize;
use tokio::time::{Duration, timeout};

use super::Page;
use super::asked::Asked;
use super::door::Operator;
use crate::http::{ApiError, Backend};
use crate::librechat::AgentId;
use crate::mongo::words;
use crate::switch::answer::{Stage, Way};
use crate::switch::record::{Origin, Status, Switch};

/// So many switches are shown at a time.
pub(super) const PAGE: i64 = 50;

/// Of the overwrites that were put back, so many are shown.
const OVERWRITES: usize = 20;

/// How long an answer of MongoDB's may take.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// A page of switches, newest first.
#[derive(Debug, Serialize)]
pub(super) struct Switches {
    switches: Vec<Shown>,
    /// Whether there are older ones.
    more: bool,
}

/// An agent; without a name where there is no such agent (any more).
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Named {
    pub(super) id: AgentId,
    pub(super) name: Option<String>,
}

/// A switch. Times are in milliseconds since 1970, by MongoDB's clock unless it says otherwise.
#[derive(Debug, Serialize)]
struct Shown {
    id: String,
    conversation: String,
    user: String,
    from: Option<Named>,
    to: Named,
    origin: Origin,
    status: Status,
    detail: Option<String>,
    reason: Option<String>,
    repairs: i64,
    corrected: i64,
    learned: Option<i64>,
    applied: Option<i64>,
    told: Option<i64>,
    closed: Option<i64>,
    /// The last overwrites that were put back.
    overwrites: Vec<Overwrite>,
    /// How the new agent answers the message in which the switch was made, where it does.
    answer: Option<Answered>,
}

#[derive(Debug, Serialize)]
struct Answered {
    way: Way,
    stage: Stage,
    /// The response of the agent that handed over.
    response: Option<String>,
    /// The new agent's message, or the user's that it was sent again as.
    message: String,
    began: Option<i64>,
    detail: Option<String>,
}

#[derive(Debug, Serialize)]
struct Overwrite {
    /// By LibreChat's clock.
    at: i64,
    put_back: i64,
}

/// `GET /ops/switches`: older ones.
pub(super) async fn older(
    _: Operator,
    State(page): State<Arc<Page>>,
    Query(asked): Query<Asked>,
) -> Result<Json<Switches>, ApiError> {
    let backend = page.slot.get()?;
    let read = async {
        let wanted = asked.wanted(backend).await?;
        let until = asked.until.map(DateTime::from_millis);
        let found = backend.store.newest(&wanted, until, PAGE + 1).await?;
        Switches::of(found, backend).await
    };
    match timeout(PATIENCE, read).await {
        Ok(Ok(switches)) => Ok(Json(switches)),
        Ok(Err(error)) => Err(ApiError::unavailable(words(&error))),
        Err(_) => Err(ApiError::database()),
    }
}

impl Switches {
    /// Of what was found, which is one more than a page where there are older ones.
    ///
    /// # Errors
    ///
    /// What MongoDB answers when it is asked for the agents' names.
    pub(super) async fn of(
        mut found: Vec<Switch>,
        backend: &Backend,
    ) -> mongodb::error::Result<Self> {
        let size = usize::try_from(PAGE).unwrap_or(usize::MAX);
        let more = found.len() > size;
        found.truncate(size);
        let agents = (found.iter())
            .flat_map(|switch| switch.from_agent.iter().chain([&switch.to_agent]))
            .collect();
        let names = Names::of(agents, backend).await?;
        let switches = found.into_iter().map(|switch| Shown::of(switch, &names));
        Ok(Self {
            switches: switches.collect(),
            more,
        })
    }
}

/// What agents are called.
pub(super) struct Names(HashMap<AgentId, String>);

impl Names {
    /// # Errors
    ///
    /// What MongoDB answers.
    pub(super) async fn of(
        agents: BTreeSet<&AgentId>,
        backend: &Backend,
    ) -> mongodb::error::Result<Self> {
        if agents.is_empty() {
            return Ok(Self(HashMap::new()));
        }
        backend.access.names(agents).await.map(Self)
    }

    pub(super) fn give(&self, id: AgentId) -> Named {
        Named {
            name: self.0.get(&id).cloned(),
            id,
        }
    }
}

impl Shown {
    fn of(switch: Switch, names: &Names) -> Self {
        let millis = |at: Option<DateTime>| at.map(DateTime::timestamp_millis);
        let overwrite = |(at, put_back): (&String, &DateTime)| {
            Some(Overwrite {
                at: at.parse().ok()?,
                put_back: put_back.timestamp_millis(),
            })
        };
        let mut overwrites: Vec<_> = switch.put_back.iter().filter_map(overwrite).collect();
        overwrites.sort_unstable_by_key(|overwrite| overwrite.put_back);
        let surplus = overwrites.len().saturating_sub(OVERWRITES);
        overwrites.drain(..surplus);
        Self {
            id: switch.id.to_hex(),
            conversation: switch.conversation_id.to_string(),
            user: switch.user.to_string(),
            from: switch.from_agent.map(|id| names.give(id)),
            to: names.give(switch.to_agent),
            origin: switch.origin,
            status: switch.status,
            detail: switch.detail,
            reason: switch.reason,
            repairs: switch.repairs,
            corrected: switch.corrected,
            learned: millis(switch.created_at),
            applied: millis(switch.applied_at),
            told: millis(switch.delivered_at),
            closed: millis(switch.closed_at),
            answer: switch.answer.map(|answer| Answered {
                way: answer.way,
                stage: answer.stage,
                response: switch.message_id.map(|id| id.to_string()),
                message: answer.message_id.to_string(),
                began: millis(answer.claimed_at),
                detail: answer.detail,
            }),
            overwrites,
        }
    }
}
