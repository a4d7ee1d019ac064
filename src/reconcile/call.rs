//! A call of Baton's own tool that names its turn, while the turn still runs.
//!
//! The call is durable and its answer promised by the time that it is here. Should this work be
//! cut short, the response that LibreChat saves brings the call back.

use std::collections::BTreeMap;

use mongodb::bson::oid::ObjectId;
use tokio::sync::oneshot;

use super::{
    context::{Context, Undone},
    lane::Open,
};
use crate::{
    librechat::{
        AgentId, Conversation, ConversationKey, MessageHead, MessageId, Turn,
        tool_call::own_fingerprint,
    },
    switch::{
        record::{Origin, Status, Switch},
        store::Recorded,
    },
};

/// A call, and whom to tell that it has been dealt with.
#[derive(Debug)]
pub struct Call {
    /// The id that the answer has.
    pub switch_id: String,
    /// R's `messageId`.
    pub message: MessageId,
    /// U's `messageId`.
    pub user_message: MessageId,
    /// The agent that the conversation is with, where that is known.
    pub from: Option<AgentId>,
    /// The target.
    pub to: AgentId,
    /// What the model gave as its reason.
    pub reason: Option<String>,
    /// What it gave as `answer_now`.
    pub answer_now: Option<bool>,
}

/// A call in its conversation's lane.
#[derive(Debug)]
pub(super) struct Called {
    pub(super) call: Call,
    pub(super) reply: oneshot::Sender<()>,
}

/// What is read before anything is decided.
struct View {
    conversation: Option<Conversation>,
    turn: Turn,
    /// The newest message: R is none before it.
    newest: Option<ObjectId>,
    existing: Option<Switch>,
    /// What the user chose in the turn of the same U.
    choices: Vec<Switch>,
}

impl Context {
    /// Records the call, and puts its target in force.
    pub(super) async fn call(
        &self,
        open: &mut Option<Box<Open>>,
        key: &ConversationKey,
        called: Called,
    ) -> Result<(), Undone> {
        let outcome = self.try_call(open, key, &called.call).await;
        // Whoever asked may have gone.
        let _ = called.reply.send(());
        outcome
    }

    async fn try_call(
        &self,
        open: &mut Option<Box<Open>>,
        key: &ConversationKey,
        call: &Call,
    ) -> Result<(), Undone> {
        let view = self.look_around(key, call).await?;
        let mut switch = draft(key, call, view.turn.user_message.as_ref(), view.newest);
        if view.choices.iter().any(|choice| view.has(choice, call)) {
            switch.status = Status::Superseded;
            switch.detail = Some("the user chose an agent in the same turn".to_owned());
        }
        let Some(switch) = self.persist(&switch, view.existing.as_ref()).await? else {
            return self.look_again(open).await;
        };
        tracing::info!(origin = %switch.origin, status = %switch.status, "a switch was called for");
        if switch.status != Status::Open {
            return Ok(());
        }
        self.begin(open, switch, view.conversation.as_ref(), &view.turn)
            .await
    }

    /// A call that was refused is on record too.
    pub(crate) async fn record_refused_call(
        &self,
        key: &ConversationKey,
        call: &Call,
        why: &str,
    ) -> Result<(), Undone> {
        tracing::warn!(to = %call.to, why, "a switch was refused");
        let mut switch = draft(key, call, None, None);
        switch.status = Status::Rejected;
        switch.detail = Some(why.to_owned());
        switch.refused_call = switch.calls.pop();
        let recorded = self
            .patiently("recording the refusal", || self.store.record(&switch))
            .await?;
        if let Recorded::New(_) = recorded {
            self.metrics.closed(switch.origin, switch.status);
        }
        Ok(())
    }

    async fn look_around(&self, key: &ConversationKey, call: &Call) -> Result<View, Undone> {
        let (seen, existing, choices) = tokio::join!(
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
            self.patiently("reading the turn's record", || {
                self.store.of_turn(key, &call.message)
            }),
            self.patiently("reading the user's choices", || {
                self.store.choices_in(key, &call.user_message)
            }),
        );
        let (conversation, mut newest) = seen?;
        let last = newest.last().map(|head| head.object_id);
        let at = newest.iter().position(|head| head.id == call.user_message);
        let turn = match at {
            None => Turn::default(),
            Some(at) => {
                let after = newest.split_off(at + 1);
                Turn {
                    response: after.iter().find(|head| head.id == call.message).cloned(),
                    user_message: newest.pop(),
                    after,
                }
            }
        };
        Ok(View {
            conversation,
            turn,
            newest: last,
            existing: existing?,
            choices: choices?,
        })
    }
}

impl View {
    /// Whether the user's choice was made in this turn, whose response may not be saved yet.
    fn has(&self, choice: &Switch, call: &Call) -> bool {
        choice.floor.is_some_and(|floor| {
            self.turn
                .first_response_after(floor)
                .is_none_or(|head| head.id == call.message)
        })
    }
}

fn draft(
    key: &ConversationKey,
    call: &Call,
    user_message: Option<&MessageHead>,
    newest: Option<ObjectId>,
) -> Switch {
    Switch {
        id: ObjectId::new(),
        conversation_id: key.conversation.clone(),
        user: key.user.clone(),
        tenant_id: key.tenant.clone(),
        message_id: Some(call.message.clone()),
        parent_message_id: Some(call.user_message.clone()),
        tool_call_id: None,
        switch_id: Some(call.switch_id.clone()),
        from_agent: call.from.clone(),
        to_agent: call.to.clone(),
        reason: call.reason.clone(),
        answer_now: call.answer_now,
        origin: Origin::Mcp,
        status: Status::Open,
        detail: None,
        repairs: 0,
        put_back: BTreeMap::new(),
        calls: vec![own_fingerprint(&call.switch_id)],
        refused_call: None,
        user_message: user_message.map(|u| u.object_id),
        // R counts as known once its content is: what the model did in the end stands there.
        response: None,
        floor: newest,
        saved_at: None,
        corrected: 0,
        shown_in: None,
        answer: None,
        delivered_at: None,
        created_at: None,
        applied_at: None,
        closed_at: None,
        expires_at: None,
    }
}
