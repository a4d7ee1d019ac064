//! The tool `list_agents`.

use rmcp::model::{CallToolResult, JsonObject};
use serde::Serialize;
use tokio::time::Instant;

use super::agents::{Place, choices};
use super::answer::{Failure, Listed, result};
use super::arguments::text;
use super::board::Board;
use super::headers::Caller;
use super::switch_agent::whereabouts;
use crate::librechat::access::Agent;
use crate::reconcile::Undone;

/// More agents than this are no help to a model.
const MOST: usize = 100;

/// Longer descriptions are cut, in characters.
const DESCRIPTION: usize = 300;

#[derive(Serialize)]
struct List {
    agents: Vec<Listed>,
    /// How many more there are: a query finds them.
    #[serde(skip_serializing_if = "Option::is_none")]
    more: Option<usize>,
}

#[derive(Serialize)]
struct Refused {
    status: &'static str,
    message: String,
}

pub(super) async fn run(
    board: &Board,
    caller: Caller,
    arguments: &JsonObject,
    deadline: Instant,
) -> CallToolResult {
    let listed = match text(arguments, "query") {
        Ok(query) => list(board, caller, query, deadline).await,
        Err(why) => Ok(Err(Failure::new(why))),
    };
    match listed.unwrap_or_else(|_| Err(Failure::database())) {
        Ok(list) => result(&list, false),
        Err(failure) => {
            let refused = Refused {
                status: "error",
                message: failure.message,
            };
            result(&refused, true)
        }
    }
}

async fn list(
    board: &Board,
    caller: Caller,
    query: Option<String>,
    deadline: Instant,
) -> Result<Result<List, Failure>, Undone> {
    let context = board.context.until(deadline);
    let here = match whereabouts(board, &context, caller).await? {
        Ok(here) => here,
        Err(failure) => return Ok(Err(failure)),
    };
    let place = Place {
        user: &here.user,
        key: here.key(),
        from: here.from.as_ref(),
    };
    let mut agents = choices(&context, &place).await?;
    if let Some(query) = query.map(|query| query.to_lowercase()) {
        agents.retain(|agent| holds(agent, &query));
    }
    let more = agents.len().saturating_sub(MOST);
    agents.truncate(MOST);
    Ok(Ok(List {
        agents: agents.into_iter().map(short).map(Listed::from).collect(),
        more: (more > 0).then_some(more),
    }))
}

fn holds(agent: &Agent, query: &str) -> bool {
    [&agent.name, &agent.description]
        .into_iter()
        .flatten()
        .any(|text| text.to_lowercase().contains(query))
        || agent.id.as_str().to_lowercase() == query
}

fn short(mut agent: Agent) -> Agent {
    if let Some((cut, _)) = agent
        .description
        .as_ref()
        .and_then(|text| text.char_indices().nth(DESCRIPTION))
    {
        agent.description = agent.description.map(|text| format!("{}…", &text[..cut]));
    }
    agent
}
