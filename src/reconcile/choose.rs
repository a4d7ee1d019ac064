//! The user chooses the agent of a conversation (`PATCH /api/convos/:id`).

use std::{collections::BTreeMap, time::Duration};

use mongodb::bson::oid::ObjectId;
use tokio::{sync::oneshot, time::Instant};

use super::{
    context::{Context, Undone},
    guard::After,
    lane::Open,
    target::Unfit,
};
use crate::{
    librechat::{AgentId, Conversation, ConversationKey, Turn, access::Verdict},
    switch::{
        flight::{Flight, in_flight},
        record::{Origin, Status, Switch},
        store::Recorded,
    },
};

/// How long after the deadline the answer may take on its way.
pub(super) const ANSWER: Duration = Duration::from_millis(250);

/// A choice of the user's, and whom to tell what became of it.
#[derive(Debug)]
pub(super) struct Choice {
    pub(super) to: AgentId,
    /// What is not done by then is taken back, since the caller is told that it was not done.
    pub(super) deadline: Instant,
    pub(super) reply: oneshot::Sender<Result<(), NotChosen>>,
}

/// Why a choice was not carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotChosen {
    /// The user has no such conversation.
    #[error("no such conversation")]
    NoSuchConversation,
    /// It is the user's, but one that is left alone: without an agent, or a sub-agent's thread.
    #[error("the conversation is not one with an agent")]
    LeftAlone,
    /// The agent is none that this conversation may be switched to.
    #[error(transparent)]
    Unfit(Unfit),
    /// The database did not answer in time. Nothing has changed.
    #[error("the database did not answer in time")]
    Unavailable,
}

/// What is read before anything is decided.
struct View {
    conversation: Conversation,
    flight: Option<Flight>,
    newest: Option<ObjectId>,
    verdict: Verdict,
}

impl Context {
    /// Carries out a choice and answers it. The error, if any, is for the dispatcher.
    pub(super) async fn choose(
        &self,
        open: &mut Option<Box<Open>>,
        key: &ConversationKey,
        choice: Choice,
    ) -> Result<(), Undone> {
        let mut begun = None;
        let outcome = self
            .until(choice.deadline)
            .try_choose(open, key, &choice.to, &mut begun)
            .await;
        let answer = match &outcome {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(why)) => Err(*why),
            Err(_) => Err(NotChosen::Unavailable),
        };
        if let Err(why) = answer {
            tracing::info!(to = %choice.to, %why, "a choice was not carried out");
        }
        // Whoever asked may have gone.
        let _ = choice.reply.send(answer);
        match outcome {
            Ok(Ok(Some(mut older))) => self
                .close(
                    &mut older,
                    Status::Superseded,
                    "the user chose another agent",
                )
                .await
                .map(|_| ()),
            Ok(_) => Ok(()),
            Err(undone) => {
                if let (Undone::TooLate | Undone::Refused { .. }, Some((switch, seen))) =
                    (&undone, &begun)
                {
                    self.take_back(open, switch, seen).await?;
                }
                Err(undone)
            }
        }
    }

    /// `Ok(Ok(older))`: it is done, and the switch that was open before is to be closed.
    async fn try_choose(
        &self,
        open: &mut Option<Box<Open>>,
        key: &ConversationKey,
        to: &AgentId,
        begun: &mut Option<(Switch, Conversation)>,
    ) -> Result<Result<Option<Box<Open>>, NotChosen>, Undone> {
        let view = match self.view(open, key, to).await? {
            Ok(view) => view,
            Err(why) => return Ok(Err(why)),
        };
        let from = view.conversation.agent.as_ref();
        let begun_from_spec = view.conversation.spec.is_some();
        let unfit = self.unfit(from, to, begun_from_spec, &view.verdict).await?;
        if let Some(unfit) = unfit {
            return Ok(Err(NotChosen::Unfit(unfit)));
        }
        // Whether the one before still stands; and where it does, whether it is in force.
        self.look_again(open).await?;
        if open
            .as_ref()
            .is_some_and(|open| open.switch.to_agent == *to)
        {
            return Ok(Ok(None));
        }
        let in_force = view.conversation.names(to, self.patch(begun_from_spec, to));
        if in_force && view.flight.is_none() && open.is_none() {
            return Ok(Ok(None));
        }
        let switch = draft(key, to, &view);
        *begun = Some((switch.clone(), view.conversation.clone()));
        let recorded = self
            .patiently("recording the choice", || self.store.record(&switch))
            .await?;
        let (Recorded::New(switch) | Recorded::Existing(switch)) = recorded;
        tracing::info!(origin = %switch.origin, %to, "the user has chosen an agent");
        let mut next = Open::new((&switch).into(), begun_from_spec, self.guard);
        let turn = view.flight.map_or_else(Turn::default, |flight| flight.turn);
        let acted = match self.act(&mut next, &view.conversation, &turn).await? {
            Some(after) => after,
            None => self.look(&mut next).await?,
        };
        let at_rest = next.switch.guard.user_message.is_none();
        let after = match acted {
            After::Open if at_rest => {
                let detail = "no turn was in flight";
                self.close(&mut next, Status::Settled, detail).await?
            }
            after => after,
        };
        Ok(Ok(match after {
            After::Closed => open.take(),
            After::Open => open.replace(next),
        }))
    }

    /// Reads what there is to decide on, and takes up a switch that another instance guards.
    async fn view(
        &self,
        open: &mut Option<Box<Open>>,
        key: &ConversationKey,
        to: &AgentId,
    ) -> Result<Result<View, NotChosen>, Undone> {
        let (seen, guarded, verdict) = tokio::join!(
            async {
                // The order matters, as in a look.
                let conversation = self
                    .patiently("reading the conversation", || self.conversations.read(key))
                    .await?;
                let newest = self
                    .patiently("reading the newest messages", || self.messages.newest(key))
                    .await?;
                Ok((conversation, newest))
            },
            self.patiently("reading the conversation's switches", || {
                self.store.open_of(key)
            }),
            self.verdict(&key.user, to),
        );
        let (conversation, newest) = seen?;
        let Some(conversation) = conversation else {
            return Ok(Err(NotChosen::NoSuchConversation));
        };
        if conversation.exempt {
            return Ok(Err(NotChosen::LeftAlone));
        }
        if let Some(switch) = guarded? {
            self.adopt(open, (&switch).into()).await?;
        }
        Ok(Ok(View {
            conversation,
            flight: in_flight(&newest),
            newest: newest.last().map(|head| head.object_id),
            verdict: verdict?,
        }))
    }

    /// The caller was told that nothing has changed: makes it so, whatever was written by then.
    async fn take_back(
        &self,
        open: &mut Option<Box<Open>>,
        switch: &Switch,
        seen: &Conversation,
    ) -> Result<(), Undone> {
        self.patiently("taking back the record", || self.store.withdraw(switch))
            .await?;
        self.look_again(open).await?;
        if open.is_some() {
            return Ok(());
        }
        let Some(from) = seen.agent.as_ref().filter(|from| **from != switch.to_agent) else {
            return Ok(());
        };
        let mut written = seen.expected();
        written.agent = Some(switch.to_agent.clone());
        let key = switch.key();
        self.patiently("putting the agent back", || {
            let patch = self.patch(seen.spec.is_some(), from);
            self.conversations.set_agent(&key, &written, from, patch)
        })
        .await?;
        Ok(())
    }
}

fn draft(key: &ConversationKey, to: &AgentId, view: &View) -> Switch {
    let flight = view.flight.as_ref();
    let user_message = flight.and_then(|flight| flight.turn.user_message.as_ref());
    Switch {
        id: ObjectId::new(),
        conversation_id: key.conversation.clone(),
        user: key.user.clone(),
        tenant_id: key.tenant.clone(),
        message_id: None,
        parent_message_id: user_message.map(|u| u.id.clone()),
        tool_call_id: None,
        switch_id: None,
        from_agent: view.conversation.agent.clone(),
        to_agent: to.clone(),
        reason: None,
        answer_now: None,
        origin: Origin::Api,
        status: Status::Open,
        detail: None,
        repairs: 0,
        put_back: BTreeMap::new(),
        calls: Vec::new(),
        refused_call: None,
        user_message: user_message.map(|u| u.object_id),
        response: None,
        floor: flight.map(|flight| flight.floor).or(view.newest),
        saved_at: None,
        created_at: None,
        applied_at: None,
        delivered_at: None,
        corrected: 0,
        shown_in: None,
        answer: None,
        closed_at: None,
        expires_at: None,
    }
}
