//! Guarding an open switch: see, decide, act.

use tokio::time::Instant;

use super::{
    context::{Context, Undone},
    lane::Open,
};
use crate::{
    librechat::{Conversation, ConversationChange, Expected, Turn},
    switch::{
        decide::{Decision, Later, Sight, Source, decide},
        record::Status,
        store::Repair,
    },
};

/// A conversation that changes under each attempt is left to its next event or look.
const ATTEMPTS: usize = 8;

/// What work on an open switch leaves behind.
pub(super) enum After {
    /// It is still open.
    Open,
    /// It was closed.
    Closed,
}

impl Context {
    /// A write of the conversation's agent was seen.
    pub(super) async fn written(
        &self,
        open: &mut Open,
        change: &ConversationChange,
        since: Instant,
    ) -> Result<After, Undone> {
        let sight = Sight {
            in_force: change.agent.as_ref() == Some(&open.switch.to_agent),
            updated_at: change.updated_at,
            source: Source::Event {
                newest_message: change.newest_message,
            },
        };
        let guard = open.switch.guard;
        let mut decision = decide(&guard, &sight, None);
        if decision == Decision::Read {
            let turn = self.turn(open).await?;
            decision = decide(&guard, &sight, Some(&turn));
        }
        match decision {
            Decision::Apply => {
                let seen = Expected {
                    agent: change.agent.clone(),
                    updated_at: change.updated_at,
                };
                if self.apply(open, &seen).await? {
                    let repair = Repair {
                        overwritten_at: seen.updated_at,
                    };
                    return self.note_applied(open, Some(repair), Some(since)).await;
                }
                // The conversation has moved on since the event.
                self.look(open).await
            }
            Decision::Supersede(later) => self.supersede(open, later).await,
            Decision::Hold | Decision::Read | Decision::Settle => {
                open.look_soon();
                Ok(After::Open)
            }
        }
    }

    /// Looks at the conversation and the turn, and does what is to be done.
    pub(super) async fn look(&self, open: &mut Open) -> Result<After, Undone> {
        for _ in 0..ATTEMPTS {
            // The order matters: whoever wrote the conversation is among the messages read after.
            let Some(conversation) = self.conversation(open).await? else {
                return self.gone(open).await;
            };
            let turn = self.turn(open).await?;
            if let Some(after) = self.act(open, &conversation, &turn).await? {
                return Ok(after);
            }
        }
        if open.is_overdue() {
            let detail = "the target could not be put in force";
            return self.close(open, Status::Superseded, detail).await;
        }
        tracing::warn!("the conversation keeps changing; it is looked at again later");
        Ok(After::Open)
    }

    /// A look where a switch is open; afterwards it may not be.
    pub(super) async fn look_again(&self, open: &mut Option<Box<Open>>) -> Result<(), Undone> {
        if let Some(guarded) = open
            && let After::Closed = self.look(guarded).await?
        {
            *open = None;
        }
        Ok(())
    }

    /// Acts on what was read. `None`: it was no longer so; read again.
    pub(super) async fn act(
        &self,
        open: &mut Open,
        conversation: &Conversation,
        turn: &Turn,
    ) -> Result<Option<After>, Undone> {
        if conversation.exempt {
            return self
                .close(
                    open,
                    Status::Superseded,
                    "the conversation is no longer with an agent",
                )
                .await
                .map(Some);
        }
        open.switch.learn(turn);
        open.read = Some(conversation.object_id);
        open.begun_from_spec |= conversation.spec.is_some();
        let sight = self.sight(open, conversation);
        let overdue = open.is_overdue();
        match decide(&open.switch.guard, &sight, Some(turn)) {
            Decision::Supersede(later) => self.supersede(open, later).await.map(Some),
            Decision::Apply => {
                let repair = open.switch.is_applied.then_some(Repair {
                    overwritten_at: conversation.updated_at,
                });
                if !self.apply(open, &conversation.expected()).await? {
                    return Ok(None);
                }
                match self.note_applied(open, repair, None).await? {
                    After::Open if overdue => self.unended(open).await.map(Some),
                    after => Ok(Some(after)),
                }
            }
            Decision::Settle => {
                // END comes before the touch of U that was just read; so a reading made now shows
                // what END left.
                let Some(again) = self.conversation(open).await? else {
                    return self.gone(open).await.map(Some);
                };
                if !self.sight(open, &again).in_force {
                    return Ok(None);
                }
                self.close(
                    open,
                    Status::Settled,
                    "the turn ended with the target in force",
                )
                .await
                .map(Some)
            }
            Decision::Hold | Decision::Read if !overdue => Ok(Some(After::Open)),
            Decision::Hold | Decision::Read if sight.in_force => self.unended(open).await.map(Some),
            Decision::Hold | Decision::Read => {
                let detail = "what stands cannot be told from a later choice";
                self.close(open, Status::Superseded, detail).await.map(Some)
            }
        }
    }

    fn sight(&self, open: &Open, conversation: &Conversation) -> Sight {
        let patch = self.patch(open.begun_from_spec, &open.switch.to_agent);
        Sight {
            in_force: conversation.names(&open.switch.to_agent, patch),
            updated_at: conversation.updated_at,
            source: Source::Reading,
        }
    }

    /// Whether a glance shows that a look would change nothing.
    pub(super) fn may_wait(
        &self,
        open: &Open,
        conversation: Option<&Conversation>,
        turn: &Turn,
    ) -> bool {
        // A glance finds R by its id alone.
        if open.is_overdue() || open.switch.message_id.is_none() {
            return false;
        }
        conversation.is_none_or(|conversation| {
            !conversation.exempt
                && decide(
                    &open.switch.guard,
                    &self.sight(open, conversation),
                    Some(turn),
                ) == Decision::Hold
        })
    }

    async fn conversation(&self, open: &Open) -> Result<Option<Conversation>, Undone> {
        let key = &open.switch.key;
        self.patiently("reading the conversation", || self.conversations.read(key))
            .await
    }

    async fn turn(&self, open: &Open) -> Result<Turn, Undone> {
        let (key, turn) = (&open.switch.key, open.switch.turn());
        self.patiently("reading the turn", || self.messages.turn(key, &turn))
            .await
    }

    async fn apply(&self, open: &Open, seen: &Expected) -> Result<bool, Undone> {
        let key = &open.switch.key;
        let to = &open.switch.to_agent;
        let patch = self.patch(open.begun_from_spec, to);
        self.patiently("setting the conversation's agent", || {
            self.conversations.set_agent(key, seen, to, patch)
        })
        .await
    }

    async fn note_applied(
        &self,
        open: &mut Open,
        repair: Option<Repair>,
        since: Option<Instant>,
    ) -> Result<After, Undone> {
        let first = !open.switch.is_applied;
        if repair.is_some() {
            tracing::info!("an overwrite by the same turn was put back");
            self.metrics.repaired(since);
        } else {
            tracing::info!("the target is in force");
        }
        open.switch.is_applied = true;
        open.look_soon();
        let still_open = self
            .patiently("recording what was done", || {
                self.store.applied(&open.switch, first, repair)
            })
            .await?;
        if still_open {
            return Ok(After::Open);
        }
        self.replaced(open).await
    }

    /// The record is no longer open, or has another target: another instance has seen more. Takes
    /// up what stands in its place.
    async fn replaced(&self, open: &mut Open) -> Result<After, Undone> {
        let key = &open.switch.key;
        let newer = self
            .patiently("reading the conversation's switches", || {
                self.store.open_of(key)
            })
            .await?;
        match newer {
            None => Ok(After::Closed),
            Some(switch) => {
                let left = open.deadline.saturating_duration_since(Instant::now());
                *open = *Open::new((&switch).into(), open.begun_from_spec, left);
                open.next_look = Instant::now();
                Ok(After::Open)
            }
        }
    }

    async fn supersede(&self, open: &mut Open, later: Later) -> Result<After, Undone> {
        self.close(open, Status::Superseded, later.words()).await
    }

    async fn unended(&self, open: &mut Open) -> Result<After, Undone> {
        self.close(
            open,
            Status::Settled,
            "no end of the turn was seen; the target is in force",
        )
        .await
    }

    async fn gone(&self, open: &mut Open) -> Result<After, Undone> {
        if open.is_overdue() {
            return self
                .close(open, Status::Superseded, "there is no such conversation")
                .await;
        }
        Ok(After::Open)
    }

    pub(super) async fn close(
        &self,
        open: &mut Open,
        status: Status,
        detail: &str,
    ) -> Result<After, Undone> {
        let closed = self
            .patiently("closing the switch", || {
                self.store.close(&open.switch, status, detail)
            })
            .await?;
        if !closed {
            return self.replaced(open).await;
        }
        tracing::info!(%status, detail, "the switch is closed");
        self.metrics.closed(open.switch.origin, status);
        Ok(After::Closed)
    }
}
