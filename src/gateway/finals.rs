//! The last event of a turn names the agent that is in force.
//!
//! LibreChat puts the old agent into it, as END has just saved it. The event is held until the
//! repair is in the database, so that a client that reads the conversation at once finds the same.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use mongodb::bson::oid::ObjectId;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use super::ledger::{Ledger, PATIENCE};
use super::same_turn::{Next, Turn};
use crate::librechat::final_event::FinalEvent;
use crate::librechat::sse::Event;
use crate::librechat::{AgentId, Conversation, ConversationId, MessageId, UserId};
use crate::metrics::Passage;
use crate::reconcile::Context;
use crate::switch::record::{Status, Switch};

/// What the bell does not tell, as another instance's work, is looked for so often.
const LOOK: Duration = Duration::from_millis(50);

/// An event as the client is to get it.
pub(super) struct Settled {
    /// Its bytes.
    pub(super) bytes: Bytes,
    /// What the client knows once it has them.
    pub(super) told: Option<Told>,
    /// What the client reads from then on.
    pub(super) then: Option<Body>,
}

/// What a client was told.
pub(super) enum Told {
    /// A switch.
    Switch(ObjectId, AgentId),
    /// Which agent a conversation has.
    Agent(ConversationId, UserId, AgentId),
}

/// The switch of the final's turn, and the conversation where it is in force already.
#[derive(Clone)]
pub(super) struct Standing {
    pub(super) switch: Switch,
    pub(super) conversation: Option<Conversation>,
}

/// Rewrites an event where it is the final of a turn that switched.
pub(super) async fn settle(ledger: &Ledger, turn: Option<&Turn>, event: Event) -> Settled {
    let unchanged = |told| Settled {
        bytes: event.raw(),
        told,
        then: None,
    };
    let Some(context) = ledger.get() else {
        return unchanged(None);
    };
    let mut data = event.data();
    let Some(said) = FinalEvent::read(&data, &context.tools) else {
        return unchanged(None);
    };
    let Some(standing) = standing(&context, &said).await else {
        return unchanged(told_by(said));
    };
    let switch = standing.switch;
    if let Some(turn) = turn.filter(|_| !said.stopped) {
        match turn.next(&context, &switch, &data).await {
            Next::Nothing => {}
            Next::Again(again) => data = again,
            Next::Follow(body) => {
                return Settled {
                    bytes: Bytes::new(),
                    told: None,
                    then: Some(body),
                };
            }
        }
    }
    context.metrics.passed(if standing.conversation.is_some() {
        Passage::FinalNamed
    } else {
        Passage::FinalNamedEarly
    });
    let named = name(
        &context,
        &said,
        &data,
        &switch,
        standing.conversation.as_ref(),
    );
    tracing::info!(
        conversation = %said.conversation, to = %switch.to_agent, stopped = said.stopped,
        "the turn's last event names the target"
    );
    Settled {
        bytes: named.map_or_else(|| event.raw(), |data| event.with_data(&data)),
        // Whether the client heeds the final of a stopped turn is not certain.
        told: (!said.stopped).then_some(Told::Switch(switch.id, switch.to_agent)),
        then: None,
    }
}

/// The data of a final with the switch's target in it, and the model spec that goes with it.
pub(super) fn name(
    context: &Context,
    said: &FinalEvent,
    data: &[u8],
    switch: &Switch,
    now: Option<&Conversation>,
) -> Option<Vec<u8>> {
    let has_spec = said.has_spec || said.stopped && was_begun_from_spec(context, switch, now);
    let patch = context.specs.patch(has_spec, &switch.to_agent);
    FinalEvent::name(data, &switch.to_agent, patch)
}

/// Records what a client was told.
pub(super) fn note(ledger: &Ledger, told: Told) {
    let Some(context) = ledger.get() else { return };
    tokio::spawn(async move {
        let noted = match &told {
            Told::Switch(id, to) => context.store.delivered(*id, to).await,
            Told::Agent(conversation, user, agent) => {
                context
                    .store
                    .delivered_agent(conversation, user, agent)
                    .await
            }
        };
        if let Err(error) = noted {
            let error = crate::mongo::words(&error);
            tracing::warn!(error, "that a client knows of a switch was not recorded");
        }
    });
}

fn told_by(said: FinalEvent) -> Option<Told> {
    Some(Told::Agent(said.conversation, said.user?, said.agent?))
}

/// A stopped turn's final says nothing of the spec.
fn was_begun_from_spec(context: &Context, switch: &Switch, now: Option<&Conversation>) -> bool {
    let from = switch.from_agent.as_ref();
    now.is_some_and(|conversation| conversation.spec.is_some())
        || from.is_some_and(|from| context.specs.for_agent(from).is_some())
}

/// Waits for the switch of the final's turn to be in force, for as long as there is patience.
pub(super) async fn standing(context: &Arc<Context>, said: &FinalEvent) -> Option<Standing> {
    let response = said.response.clone()?;
    // An open record is put in force sooner or later: when patience ends, it counts.
    let (best, known) = watch::channel(None);
    let look = tokio::spawn(look(
        Arc::clone(context),
        said.clone(),
        response,
        best,
        Instant::now() + PATIENCE,
    ));
    match timeout(PATIENCE, look).await {
        Ok(Ok(Some(Sight::InForce(standing)))) => Some(standing),
        Ok(Ok(Some(Sight::Nothing))) => None,
        _ => {
            let standing = known.borrow().clone();
            if standing.is_none() && said.calls > 0 {
                context.metrics.passed(Passage::FinalUnsettled);
            }
            standing
        }
    }
}

/// `None`: it could not be told within the patience; `best` is what is known.
async fn look(
    context: Arc<Context>,
    said: FinalEvent,
    response: MessageId,
    best: watch::Sender<Option<Standing>>,
    until: Instant,
) -> Option<Sight> {
    let mut bell = context.bell.listen();
    while Instant::now() < until {
        match see(&context, &said, &response).await {
            Ok(told @ (Sight::InForce(_) | Sight::Nothing)) => return Some(told),
            Ok(Sight::Open(switch)) => {
                best.send_replace(Some(Standing {
                    switch,
                    conversation: None,
                }));
            }
            Ok(Sight::NotYet) => {
                best.send_replace(None);
            }
            Err(error) => {
                let error = crate::mongo::words(&error);
                tracing::debug!(error, "a switch was not looked up; it is tried again");
            }
        }
        tokio::select! {
            () = bell.heard(&said.conversation) => {}
            () = sleep(LOOK) => {}
        }
    }
    None
}

enum Sight {
    /// The turn switched, and the database says so.
    InForce(Standing),
    /// The turn switched; it is still to be put in force.
    Open(Switch),
    /// The response says that it switched; nobody has looked at it yet.
    NotYet,
    /// The turn did not switch, or a later decision stands.
    Nothing,
}

async fn see(
    context: &Context,
    said: &FinalEvent,
    response: &MessageId,
) -> mongodb::error::Result<Sight> {
    // Before the records are read: what was learned of is among them, or will never be.
    let conversation = &said.conversation;
    let is_learned = context.learned.knows(conversation, response, said.calls);
    let records = context
        .store
        .of_response(&said.conversation, said.user.as_ref(), response)
        .await?;
    let in_force = |record: &&Switch| matches!(record.status, Status::Open | Status::Settled);
    let Some(switch) = records.iter().find(in_force) else {
        let refused = records
            .iter()
            .filter(|record| record.status == Status::Rejected)
            .count();
        let is_open = refused < said.calls && refused == records.len();
        return Ok(if is_open && !is_learned {
            Sight::NotYet
        } else {
            Sight::Nothing
        });
    };
    // END was saved before LibreChat sent the final: what names the target now, names it after END.
    let conversation = context.conversations.read(&switch.key()).await?;
    let names_target = |it: &Conversation| it.agent.as_ref() == Some(&switch.to_agent);
    Ok(if conversation.as_ref().is_some_and(names_target) {
        Sight::InForce(Standing {
            switch: switch.clone(),
            conversation,
        })
    } else if switch.status == Status::Open {
        Sight::Open(switch.clone())
    } else {
        Sight::Nothing
    })
}
