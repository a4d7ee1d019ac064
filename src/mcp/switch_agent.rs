//! The tool `switch_agent`: check, make durable, answer; the rest is the conversation's lane's.

use mongodb::bson::DateTime;
use rmcp::model::JsonObject;
use tokio::time::Instant;

use super::agents::{Place, choices, find, not_found};
use super::answer::{Answer, Failure};
use super::arguments::Wish;
use super::board::Board;
use super::headers::{Caller, CallerTurn};
use crate::{
    librechat::{
        AgentId, Conversation, ConversationKey, UserId,
        access::{Agent, Verdict},
    },
    reconcile::{Call, Context, TOO_OFTEN, Undone, Unfit},
    switch::calls::Issued,
};

/// Where a call is from, as far as the headers and the database tell.
pub(super) struct Whereabouts {
    pub(super) user: UserId,
    pub(super) turn: Option<(ConversationKey, CallerTurn)>,
    conversation: Option<Conversation>,
    /// The agent that the conversation is with in this turn, where that is certain.
    pub(super) from: Option<AgentId>,
}

impl Whereabouts {
    pub(super) fn key(&self) -> Option<&ConversationKey> {
        self.turn.as_ref().map(|(key, _)| key)
    }
}

pub(super) async fn run(
    board: &Board,
    caller: Caller,
    arguments: &JsonObject,
    deadline: Instant,
) -> Answer {
    let mut answer = Answer::success();
    let wish = match Wish::read(arguments) {
        Ok(wish) => wish,
        Err(why) => return answer.failed(Failure::new(why)),
    };
    answer.reason.clone_from(&wish.reason);
    if let Some(turn) = &caller.turn {
        answer.conversation_id = Some(turn.conversation.clone());
    }
    match try_run(board, caller, wish, deadline, &mut answer).await {
        Ok(Ok(())) => answer,
        Ok(Err(failure)) => answer.failed(failure),
        Err(undone) => {
            tracing::warn!(%undone, "a call was not carried out");
            answer.failed(Failure::database())
        }
    }
}

async fn try_run(
    board: &Board,
    caller: Caller,
    wish: Wish,
    deadline: Instant,
    answer: &mut Answer,
) -> Result<Result<(), Failure>, Undone> {
    let context = board.context.until(deadline);
    if let (Some(turn), Some(named)) = (&caller.turn, &wish.conversation)
        && turn.conversation.as_str() != named
    {
        let message = "conversation_id is not this conversation; leave it out";
        return Ok(Err(Failure::new(message)));
    }
    let here = match whereabouts(board, &context, caller).await? {
        Ok(here) => here,
        Err(failure) => return Ok(Err(failure)),
    };
    answer.from_agent_id.clone_from(&here.from);
    let place = Place {
        user: &here.user,
        key: here.key(),
        from: here.from.as_ref(),
    };
    let to = match find(board, &context, &place, &wish.agent).await? {
        Ok(to) => to,
        Err(failure) => return Ok(Err(failure)),
    };
    answer.agent_id = Some(to.clone());
    let switch_id = switch_id().map_err(|_| Undone::TooLate)?;
    let call = |turn: &CallerTurn| Call {
        switch_id: switch_id.clone(),
        message: turn.message.clone(),
        user_message: turn.user_message.clone(),
        from: here.from.clone(),
        to: to.clone(),
        reason: wish.reason.clone(),
        answer_now: wish.answer_now,
    };
    let target = match check(&context, &here, &place, &to).await? {
        Ok(target) => target,
        Err((why, failure)) => {
            if let Some((key, turn)) = &here.turn {
                context.record_refused_call(key, &call(turn), &why).await?;
            }
            return Ok(Err(failure));
        }
    };
    let issued = Issued {
        switch_id: switch_id.clone(),
        user: here.user.clone(),
        to: to.clone(),
        place: here
            .turn
            .as_ref()
            .map(|(key, turn)| (key.conversation.clone(), turn.message.clone())),
    };
    let (issued, from_name) = tokio::join!(
        context.patiently("making a call durable", || context.calls.issue(&issued)),
        async {
            match &here.from {
                Some(from) => context.name(from).await,
                None => Ok(None),
            }
        },
    );
    issued?;
    answer.agent_name = target.name;
    // The name is a courtesy: the call is durable without it.
    answer.from_agent_name = from_name.unwrap_or_default();
    if let Some((key, turn)) = &here.turn {
        board.handle.call(key.clone(), call(turn), deadline).await;
    }
    answer.switch_id = Some(switch_id);
    Ok(Ok(()))
}

/// Finds out where a call is from.
pub(super) async fn whereabouts(
    board: &Board,
    context: &Context,
    caller: Caller,
) -> Result<Result<Whereabouts, Failure>, Undone> {
    let account = context
        .patiently("reading the user", || board.users.find(caller.user))
        .await?;
    let Some(account) = account else {
        let message = "the header X-User-Id names no user of this LibreChat's";
        return Ok(Err(Failure::new(message)));
    };
    let Some(turn) = caller.turn else {
        return Ok(Ok(Whereabouts {
            user: account.user,
            turn: None,
            conversation: None,
            from: None,
        }));
    };
    let key = account.conversation(turn.conversation.clone());
    let (conversation, record, user_message) = tokio::join!(
        context.patiently("reading the conversation", || context
            .conversations
            .read(&key)),
        context.patiently("reading the turn's record", || {
            context.store.of_turn(&key, &turn.message)
        }),
        context.patiently("reading the user's message", || {
            context.messages.head(&key, &turn.user_message)
        }),
    );
    let (conversation, record, user_message) = (conversation?, record?, user_message?);
    match &conversation {
        Some(conversation) if conversation.exempt => {
            let message = "this conversation is not one with an agent, so it cannot be switched";
            return Ok(Err(Failure::new(message)));
        }
        Some(_) => {}
        None => {
            let taken = context
                .patiently("looking for the conversation", || {
                    context.conversations.is_of_another(&key)
                })
                .await?;
            if taken {
                let message = "this conversation is another user's";
                return Ok(Err(Failure::new(message)));
            }
        }
    }
    // START may still be on its way: before it the document names the agent of an earlier turn.
    let begun = user_message.and_then(|u| u.created_at);
    let started =
        |conversation: &&Conversation| begun.is_some() && conversation.updated_at >= begun;
    let from = match record {
        Some(record) => record.from_agent,
        None => conversation
            .as_ref()
            .filter(started)
            .and_then(|conversation| conversation.agent.clone()),
    };
    Ok(Ok(Whereabouts {
        user: account.user,
        turn: Some((key, turn)),
        conversation,
        from,
    }))
}

/// Whether the conversation may be switched; where not, why, for the record and for the model.
async fn check(
    context: &Context,
    here: &Whereabouts,
    place: &Place<'_>,
    to: &AgentId,
) -> Result<Result<Agent, (String, Failure)>, Undone> {
    let target = match context.verdict(&here.user, to).await? {
        Verdict::Allowed(target) => target,
        Verdict::Refused(why) => {
            return Ok(Err((why.to_string(), not_found(context, place).await?)));
        }
    };
    let begun_from_spec = here.conversation.as_ref().is_some_and(|c| c.spec.is_some());
    let verdict = Verdict::Allowed(target.clone());
    let unfit = context
        .unfit(place.from, to, begun_from_spec, &verdict)
        .await?
        // Where it is not known who calls, the list is asked once the response names its agent.
        .filter(|unfit| place.from.is_some() || *unfit != Unfit::NotAllowed);
    if let Some(unfit) = unfit {
        let message = match unfit {
            Unfit::Enforced => "this LibreChat enforces its model specs, and none has that agent",
            _ => "the operator does not allow a switch to that agent from here",
        };
        let agents = choices(context, place).await?;
        let failure = Failure {
            message: message.to_owned(),
            agents,
        };
        return Ok(Err((unfit.to_string(), failure)));
    }
    if let Some((key, turn)) = &here.turn {
        let now = DateTime::now();
        if context.is_braked(key, &turn.message, now).await? {
            let message = "this conversation was switched too often of late; stay with the agent \
                that it has and answer the user";
            return Ok(Err((TOO_OFTEN.to_owned(), Failure::new(message))));
        }
    }
    Ok(Ok(target))
}

/// 128 random bits: whoever has not seen the answer cannot name it.
fn switch_id() -> Result<String, getrandom::Error> {
    let mut bits = [0; 16];
    getrandom::fill(&mut bits)?;
    Ok(format!("{:032x}", u128::from_be_bytes(bits)))
}
