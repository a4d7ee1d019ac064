//! Which agent is meant, and which there are to choose from.

use super::answer::Failure;
use super::board::Board;
use crate::{
    librechat::{AgentId, ConversationKey, UserId, access::Agent},
    reconcile::{Context, Undone},
    switch::policy::Named,
};

/// What stands for the agent before the last switch.
const PREVIOUS: &str = "previous";

/// Where a call is from, as far as it is known.
pub(super) struct Place<'a> {
    pub(super) user: &'a UserId,
    pub(super) key: Option<&'a ConversationKey>,
    /// The agent that the conversation is with.
    pub(super) from: Option<&'a AgentId>,
}

/// What a look-up comes to.
pub(super) type Found = Result<AgentId, Failure>;

/// Looks an agent up by what a model calls it. Whether the user may use it is another question,
/// which a name answers on the way: names are looked for among what the user may view.
pub(super) async fn find(
    board: &Board,
    context: &Context,
    place: &Place<'_>,
    called: &str,
) -> Result<Found, Undone> {
    if called.eq_ignore_ascii_case(PREVIOUS) {
        return previous(context, place).await;
    }
    if let Some(id) = board.context.aliases.get(called) {
        return Ok(Ok(id));
    }
    if let Some(id) = AgentId::stored(called) {
        return Ok(Ok(id));
    }
    let mut named = viewable(context, place.user).await?;
    named.retain(|agent| agent.is_called(called));
    match named.len() {
        0 => Ok(Err(not_found(context, place).await?)),
        1 => Ok(Ok(named.remove(0).id)),
        _ => Ok(Err(Failure {
            message: format!("several agents are called {called:?}; give the id of one"),
            agents: named,
        })),
    }
}

/// The same words whether there is no such agent or the user may not view it.
pub(super) async fn not_found(context: &Context, place: &Place<'_>) -> Result<Failure, Undone> {
    Ok(Failure {
        message: "agent not found".to_owned(),
        agents: choices(context, place).await?,
    })
}

/// The agents that the user may be switched to, by name.
pub(super) async fn choices(context: &Context, place: &Place<'_>) -> Result<Vec<Agent>, Undone> {
    let mut agents = viewable(context, place.user).await?;
    let name = context.name_for_rules(place.from).await?;
    let from = place.from.map(|id| Named {
        id,
        name: name.as_deref(),
    });
    agents.retain(|agent| {
        let to = Named {
            id: &agent.id,
            name: agent.name.as_deref(),
        };
        place.from != Some(&agent.id) && context.allow.allows(from, to, &context.aliases)
    });
    Ok(agents)
}

async fn viewable(context: &Context, user: &UserId) -> Result<Vec<Agent>, Undone> {
    context
        .patiently("reading the user's agents", || {
            context.access.viewable(user)
        })
        .await
}

async fn previous(context: &Context, place: &Place<'_>) -> Result<Found, Undone> {
    let Some(key) = place.key else {
        let message =
            "\"previous\" needs the headers that name the conversation; give a name or an id";
        return Ok(Err(Failure::new(message)));
    };
    let last = context
        .patiently("reading the conversation's last switch", || {
            context.store.last_standing(key)
        })
        .await?;
    // A later choice of the user's is no switch of Baton's, and shows in the agent alone.
    let standing = last.filter(|last| place.from.is_none_or(|from| *from == last.to_agent));
    Ok(standing.and_then(|last| last.from_agent).ok_or_else(|| {
        Failure::new("there is no previous agent: no switch stands in this conversation")
    }))
}
