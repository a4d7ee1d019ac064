//! Learning of a switch: from a saved response to a record, and to the target in force.

use std::{collections::BTreeMap, time::Duration};

use mongodb::bson::{Timestamp, oid::ObjectId};

use super::{
    context::{Context, Undone},
    guard::After,
    lane::Open,
    target::TOO_OFTEN,
};
use crate::{
    librechat::{
        AgentId, CallKind, Conversation, Expected, MessageHead, Response, SpecPatch, SwitchCall,
        Turn, TurnRef, access::Verdict,
    },
    switch::{
        decide::{Guard, later_turn},
        guarded::Guarded,
        record::{Origin, Status, Switch},
        store::Recorded,
    },
};

/// What is read once before anything is decided.
struct Scene {
    conversation: Option<Conversation>,
    turn: Turn,
    /// Fingerprints of the calls that older siblings of the response hold.
    copied: Vec<String>,
    existing: Option<Switch>,
    /// What the user chose in the turn of the same U.
    choices: Vec<Switch>,
    /// Whether the user may be switched to the target of the last call.
    verdict: Verdict,
}

impl Scene {
    /// The turn's record, where a call made it before the response was saved, and the response
    /// holds that call: now the response says what counts.
    fn called(&self, calls: &[SwitchCall]) -> Option<&Switch> {
        self.existing
            .as_ref()
            .filter(|switch| switch.awaits_its_response())
            .filter(|switch| calls.iter().any(|call| switch.is_of(call)))
    }

    /// Whether the user's choice was made in the turn of this response.
    fn has(&self, choice: &Switch, response: &Response) -> bool {
        let of_the_choice = (choice.floor).and_then(|floor| self.turn.first_response_after(floor));
        of_the_choice.is_some_and(|head| head.object_id == response.object_id)
    }
}

impl Context {
    /// Learns what a response's calls say. `open` is then the switch to guard: the one that it was,
    /// or the new one.
    pub(super) async fn learn(
        &self,
        open: &mut Option<Box<Open>>,
        response: &Response,
        not_before: Timestamp,
    ) -> Result<(), Undone> {
        let calls = SwitchCall::all_in(&response.calls, &self.tools, &response.key.conversation);
        let seen = calls.len();
        let outcome = if calls.is_empty() || is_too_old(response.object_id, not_before) {
            Ok(())
        } else {
            self.learn_of(open, response, calls).await
        };
        // Also where MongoDB refuses it: no record is going to come.
        self.learned
            .note(&response.key.conversation, &response.id, seen);
        outcome
    }

    async fn learn_of(
        &self,
        open: &mut Option<Box<Open>>,
        response: &Response,
        calls: Vec<SwitchCall>,
    ) -> Result<(), Undone> {
        let calls = self.bound(calls, response).await?;
        let Some(last) = calls.last() else {
            return Ok(());
        };
        let scene = self.survey(response, &last.to).await?;
        if scene.conversation.as_ref().is_some_and(|c| c.exempt) {
            tracing::debug!("a switch in a conversation that is left alone");
            return Ok(());
        }
        let called = scene.called(&calls);
        let known = match &scene.existing {
            Some(switch) if called.is_none() => &switch.calls[..],
            _ => &[],
        };
        let news: Vec<&SwitchCall> = calls
            .iter()
            .filter(|call| !known.contains(&call.fingerprint))
            .filter(|call| !scene.copied.contains(&call.fingerprint))
            .collect();
        if news.is_empty() {
            return self.resume(open, response, &scene).await;
        }
        // The last successful switch of a turn wins.
        for call in news.iter().rev() {
            let is_last = call.to == last.to;
            let Some(why) = self.refusal(call, is_last, response, &scene).await? else {
                return self.accept(open, call, &calls, response, &scene).await;
            };
            if let Some(switch) = called.filter(|switch| switch.is_of(call)) {
                self.revoke(open, switch, &why).await?;
                self.put_back(open.as_deref(), call, response, &scene)
                    .await?;
            } else {
                self.refuse(open.as_deref(), call, response, &scene, &why)
                    .await?;
            }
        }
        Ok(())
    }

    /// The calls that count: those of Baton's own tool by the id that Baton gave them.
    async fn bound(
        &self,
        calls: Vec<SwitchCall>,
        response: &Response,
    ) -> Result<Vec<SwitchCall>, Undone> {
        let mut bound = Vec::with_capacity(calls.len());
        for call in calls {
            let counts = match (call.kind, &call.switch_id) {
                (CallKind::Own, None) => false,
                (CallKind::Own, Some(id)) => {
                    self.patiently("binding a call to its message", || {
                        self.calls.bind(id, &response.key, &response.id, &call.to)
                    })
                    .await?
                }
                (CallKind::Tool | CallKind::Handoff, _) => true,
            };
            if counts {
                bound.push(call);
            } else {
                tracing::debug!(message = %response.id, "a copy of a call");
            }
        }
        Ok(bound)
    }

    /// A call was recorded before its turn's agent was known, and may not stand after all.
    async fn revoke(
        &self,
        open: &mut Option<Box<Open>>,
        switch: &Switch,
        why: &str,
    ) -> Result<(), Undone> {
        let id = switch.id;
        let guarded = Guarded::from(switch);
        let closed = self
            .patiently("closing the switch", || {
                self.store.close(&guarded, Status::Rejected, why)
            })
            .await?;
        if closed {
            tracing::warn!(to = %switch.to_agent, why, "a switch was refused");
            self.metrics.closed(switch.origin, Status::Rejected);
        }
        if open.as_ref().is_some_and(|open| open.switch.id == id) {
            *open = None;
        }
        Ok(())
    }

    async fn survey(&self, response: &Response, target: &AgentId) -> Result<Scene, Undone> {
        let key = &response.key;
        let turn = TurnRef {
            user_message: response.parent.clone(),
            user_object: None,
            response: Some(response.id.clone()),
            floor: Some(response.object_id),
        };
        let (seen, existing, choices, verdict) = tokio::join!(
            async {
                // The order matters, as in a look.
                let conversation = self
                    .patiently("reading the conversation", || self.conversations.read(key))
                    .await?;
                let turn = self
                    .patiently("reading the turn", || self.messages.turn(key, &turn))
                    .await?;
                Ok((conversation, turn))
            },
            self.patiently("reading the turn's record", || self
                .store
                .of_turn(key, &response.id)),
            self.choices_in(response),
            self.verdict(&key.user, target),
        );
        let (conversation, turn) = seen?;
        let older: Vec<&MessageHead> = turn
            .after
            .iter()
            .filter(|head| !head.by_user && head.parent == response.parent)
            .filter(|head| head.object_id < response.object_id)
            .collect();
        let copied = self
            .patiently("reading the siblings", || {
                self.messages.calls_in(key, &self.tools, &older)
            })
            .await?;
        Ok(Scene {
            conversation,
            turn,
            copied,
            existing: existing?,
            choices: choices?,
            verdict: verdict?,
        })
    }

    async fn choices_in(&self, response: &Response) -> Result<Vec<Switch>, Undone> {
        let Some(user_message) = &response.parent else {
            return Ok(Vec::new());
        };
        self.patiently("reading the user's choices", || {
            self.store.choices_in(&response.key, user_message)
        })
        .await
    }

    /// The response holds nothing new; its record may still be open, and not guarded here yet.
    async fn resume(
        &self,
        open: &mut Option<Box<Open>>,
        response: &Response,
        scene: &Scene,
    ) -> Result<(), Undone> {
        let Some(switch) = scene
            .existing
            .as_ref()
            .filter(|known| known.status == Status::Open)
        else {
            return Ok(());
        };
        if open.is_none() {
            let begun_from_spec = scene
                .conversation
                .as_ref()
                .is_some_and(|c| c.spec.is_some());
            *open = Some(Open::new(switch.into(), begun_from_spec, self.guard));
        }
        let Some(guarded) = open.as_mut().filter(|open| open.switch.id == switch.id) else {
            return Ok(());
        };
        // Another instance may have given it the target of a later call. And R was saved once
        // more, as when it is finished after all clients had left.
        let saved_at = guarded.switch.guard.saved_at.max(response.saved_at);
        guarded.renew(switch.into());
        guarded.switch.guard.saved_at = saved_at.max(switch.saved_at);
        guarded.look_soon();
        if let After::Closed = self.look(guarded).await? {
            *open = None;
        }
        Ok(())
    }

    /// Why the call may not switch the conversation.
    async fn refusal(
        &self,
        call: &SwitchCall,
        is_last: bool,
        response: &Response,
        scene: &Scene,
    ) -> Result<Option<String>, Undone> {
        let begun_from_spec = scene
            .conversation
            .as_ref()
            .is_some_and(|c| c.spec.is_some());
        let verdict = if is_last {
            scene.verdict.clone()
        } else {
            self.verdict(&response.key.user, &call.to).await?
        };
        let from = response.model.as_ref();
        let unfit = self
            .unfit(from, &call.to, begun_from_spec, &verdict)
            .await?;
        if let Some(unfit) = unfit {
            return Ok(Some(unfit.to_string()));
        }
        let at = response.object_id.timestamp();
        Ok(self
            .is_braked(&response.key, &response.id, at)
            .await?
            .then(|| TOO_OFTEN.to_owned()))
    }

    async fn accept(
        &self,
        open: &mut Option<Box<Open>>,
        call: &SwitchCall,
        calls: &[SwitchCall],
        response: &Response,
        scene: &Scene,
    ) -> Result<(), Undone> {
        let mut switch = draft(call, response);
        switch.calls = calls.iter().map(|call| call.fingerprint.clone()).collect();
        switch.user_message = scene.turn.user_message.as_ref().map(|u| u.object_id);
        switch.response = Some(response.object_id);
        switch.saved_at = response.saved_at;
        let later = later_turn(&switch.guard(), &scene.turn);
        if let Some(later) = later {
            switch.status = Status::Superseded;
            switch.detail = Some(later.words().to_owned());
        } else if scene
            .choices
            .iter()
            .any(|choice| scene.has(choice, response))
        {
            switch.status = Status::Superseded;
            switch.detail = Some("the user chose an agent in the same turn".to_owned());
        }
        let Some(switch) = self.persist(&switch, scene.existing.as_ref()).await? else {
            return self.look_again(open).await;
        };
        tracing::info!(origin = %switch.origin, status = %switch.status, "a switch was learned of");
        if switch.status != Status::Open {
            self.metrics.closed(switch.origin, switch.status);
            // The tool itself may have written what does not count.
            return self.look_again(open).await;
        }
        self.begin(open, switch, scene.conversation.as_ref(), &scene.turn)
            .await
    }

    /// Guards a switch from now on, and puts its target in force, given what was read last.
    pub(super) async fn begin(
        &self,
        open: &mut Option<Box<Open>>,
        switch: Switch,
        conversation: Option<&Conversation>,
        turn: &Turn,
    ) -> Result<(), Undone> {
        let begun_from_spec = conversation.is_some_and(|c| c.spec.is_some());
        let next = Open::new((&switch).into(), begun_from_spec, self.guard);
        self.take_up(open, next).await?;
        let Some(guarded) = open else { return Ok(()) };
        let acted = match conversation {
            Some(conversation) => self.act(guarded, conversation, turn).await?,
            None => Some(After::Open),
        };
        let after = match acted {
            Some(after) => after,
            None => self.look(guarded).await?,
        };
        if let After::Closed = after {
            *open = None;
        }
        Ok(())
    }

    /// Guards `next` in place of an older switch, which it supersedes.
    async fn take_up(&self, open: &mut Option<Box<Open>>, next: Box<Open>) -> Result<(), Undone> {
        let older = open.replace(next);
        match (older, &open) {
            (Some(mut older), Some(next)) if older.switch.id != next.switch.id => {
                self.close(&mut older, Status::Superseded, "a later switch")
                    .await?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Guards a switch that was left open, unless a newer one is guarded.
    pub(super) async fn adopt(
        &self,
        open: &mut Option<Box<Open>>,
        switch: Guarded,
    ) -> Result<(), Undone> {
        let mut next = Open::new(switch, false, self.guard);
        match open.as_ref().map(|open| &open.switch) {
            Some(known) if known.id == next.switch.id => Ok(()),
            Some(known) if known.position() > next.switch.position() => self
                .close(&mut next, Status::Superseded, "a later switch")
                .await
                .map(|_| ()),
            _ => self.take_up(open, next).await,
        }
    }

    /// Makes the record durable. `None`: another call of the turn was recorded meanwhile, by
    /// another instance, which knows at least as much.
    pub(super) async fn persist(
        &self,
        switch: &Switch,
        existing: Option<&Switch>,
    ) -> Result<Option<Switch>, Undone> {
        let mut existing = existing.cloned();
        loop {
            let Some(known) = existing else {
                let recorded = self
                    .patiently("recording the switch", || self.store.record(switch))
                    .await?;
                match recorded {
                    Recorded::New(switch) => return Ok(Some(switch)),
                    Recorded::Existing(known) => existing = Some(known),
                }
                continue;
            };
            // A call's record takes over what the saved response says.
            let is_complete = switch.response.is_none() || !known.awaits_its_response();
            if is_complete && switch.calls.iter().all(|call| known.calls.contains(call)) {
                return Ok(Some(known));
            }
            if switch.status != Status::Open {
                return Ok(None);
            }
            let mut next = switch.clone();
            for call in &known.calls {
                if !next.calls.contains(call) {
                    next.calls.push(call.clone());
                }
            }
            let retargeted = self
                .patiently("recording the switch", || {
                    self.store.retarget(&known, &next)
                })
                .await?;
            if retargeted.is_some() {
                return Ok(retargeted);
            }
            let key = switch.key();
            existing = match &switch.message_id {
                Some(id) => {
                    self.patiently("reading the turn's record", || self.store.of_turn(&key, id))
                        .await?
                }
                None => return Ok(None),
            };
        }
    }

    async fn refuse(
        &self,
        open: Option<&Open>,
        call: &SwitchCall,
        response: &Response,
        scene: &Scene,
        why: &str,
    ) -> Result<(), Undone> {
        let mut switch = draft(call, response);
        switch.status = Status::Rejected;
        switch.detail = Some(why.to_owned());
        switch.refused_call = Some(call.fingerprint.clone());
        let recorded = self
            .patiently("recording the refusal", || self.store.record(&switch))
            .await?;
        if let Recorded::New(_) = recorded {
            tracing::warn!(to = %call.to, why, "a switch was refused");
            self.metrics.closed(switch.origin, switch.status);
        }
        self.put_back(open, call, response, scene).await
    }

    /// The tool wrote the refused target into the conversation before anybody could check it.
    async fn put_back(
        &self,
        open: Option<&Open>,
        call: &SwitchCall,
        response: &Response,
        scene: &Scene,
    ) -> Result<(), Undone> {
        if call.kind == CallKind::Handoff {
            // LibreChat's own handoff writes nothing.
            return Ok(());
        }
        let guard = Guard {
            user_message: scene.turn.user_message.as_ref().map(|u| u.object_id),
            response: Some(response.object_id),
            floor: None,
            saved_at: response.saved_at,
        };
        let standing: Option<&AgentId> = match open {
            Some(open) => Some(&open.switch.to_agent),
            None => response.model.as_ref(),
        };
        let (Some(conversation), Some(standing)) = (&scene.conversation, standing) else {
            return Ok(());
        };
        let written = conversation.agent.as_ref() == Some(&call.to);
        if !written || *standing == call.to || later_turn(&guard, &scene.turn).is_some() {
            return Ok(());
        }
        let seen: Expected = conversation.expected();
        let put_back = self
            .patiently("putting the agent back", || {
                self.conversations
                    .set_agent(&response.key, &seen, standing, SpecPatch::Keep)
            })
            .await?;
        if put_back {
            tracing::info!(agent = %standing, "the refused target was taken back");
        }
        Ok(())
    }
}

fn draft(call: &SwitchCall, response: &Response) -> Switch {
    Switch {
        id: ObjectId::new(),
        conversation_id: response.key.conversation.clone(),
        user: response.key.user.clone(),
        tenant_id: response.key.tenant.clone(),
        message_id: Some(response.id.clone()),
        parent_message_id: response.parent.clone(),
        tool_call_id: call.tool_call_id.clone(),
        switch_id: call.switch_id.clone(),
        from_agent: response.model.clone(),
        to_agent: call.to.clone(),
        reason: call.reason.clone(),
        answer_now: call.answer_now,
        origin: match call.kind {
            CallKind::Tool => Origin::Tool,
            CallKind::Own => Origin::Mcp,
            CallKind::Handoff => Origin::Handoff,
        },
        status: Status::Open,
        detail: None,
        repairs: 0,
        put_back: BTreeMap::new(),
        calls: Vec::new(),
        refused_call: None,
        user_message: None,
        response: None,
        floor: None,
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

/// By MongoDB's clock on both sides: the id that it gave, and the time that the event has.
fn is_too_old(response: ObjectId, not_before: Timestamp) -> bool {
    let made = response.timestamp().timestamp_millis() / 1000;
    made < i64::from(not_before.time)
}

/// `switch.guard` before the event.
pub(super) fn guard_before(at: Timestamp, guard: Duration) -> Timestamp {
    crate::feed::before(at, guard)
}
