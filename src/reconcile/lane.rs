//! One conversation's share of the work: what is to be done, in order, and the switch it guards.

use std::{collections::VecDeque, time::Duration};

use mongodb::bson::{Timestamp, oid::ObjectId};
use tokio::time::Instant;

use super::{call::Called, choose::Choice, watermark::Seq};
use crate::{
    backoff::Backoff,
    librechat::{ConversationChange, Response},
    switch::guarded::Guarded,
};

/// The first timed look at a turn: LibreChat touches U about 10 ms after it saved R.
const FIRST_LOOK: Duration = Duration::from_millis(25);

/// Timed looks come no rarer than this.
const RAREST_LOOK: Duration = Duration::from_secs(60);

/// A piece of work on a conversation.
#[derive(Debug)]
pub(super) enum Task {
    /// A response with calls of switch tools; if it was made before `not_before`, it is too old.
    Learn {
        response: Response,
        not_before: Timestamp,
    },
    /// The conversation's agent was written.
    Written {
        change: ConversationChange,
        since: Instant,
    },
    /// Look at the open switch.
    Look,
    /// Another instance, or this one before a restart, left this switch open.
    Adopt(Box<Guarded>),
    /// The user chooses an agent.
    Choose(Choice),
    /// An agent calls Baton's own tool.
    Call(Box<Called>),
}

/// A switch that is guarded.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) switch: Guarded,
    /// Whether the conversation was begun from a model spec.
    pub(super) begun_from_spec: bool,
    /// The conversation's `_id`, where the last piece of work read it.
    pub(super) read: Option<ObjectId>,
    /// No end of the turn is waited for after this.
    pub(super) deadline: Instant,
    /// When to look next.
    pub(super) next_look: Instant,
    pace: Backoff,
}

impl Open {
    pub(super) fn new(switch: Guarded, begun_from_spec: bool, left: Duration) -> Box<Self> {
        let mut open = Box::new(Self {
            switch,
            begun_from_spec,
            read: None,
            deadline: Instant::now() + left,
            next_look: Instant::now(),
            pace: Backoff::new(FIRST_LOOK, RAREST_LOOK),
        });
        open.look_later();
        open
    }

    /// Takes over what the record says by now.
    pub(super) fn renew(&mut self, switch: Guarded) {
        self.switch = switch;
    }

    /// Looks later, and later each time.
    ///
    /// At the deadline for once, and after it at the same pace as before: what MongoDB refuses
    /// then is not to be tried without a pause.
    pub(super) fn look_later(&mut self) {
        let paced = Instant::now() + self.pace.next_wait();
        self.next_look = if self.is_overdue() {
            paced
        } else {
            paced.min(self.deadline)
        };
    }

    /// Something has happened: looks soon again.
    pub(super) fn look_soon(&mut self) {
        self.pace.reset();
        self.look_later();
    }

    pub(super) fn is_overdue(&self) -> bool {
        Instant::now() >= self.deadline
    }
}

/// A conversation's queue and state. While work is done on it, the state is with the worker.
#[derive(Debug, Default)]
pub(super) struct Lane {
    pub(super) queue: VecDeque<(Option<Seq>, Task)>,
    pub(super) busy: bool,
    pub(super) open: Option<Box<Open>>,
    /// Whether `open` counts among the switches that this process guards.
    pub(super) counted: bool,
    /// The conversation's `_id`, by which changes of it are recognised.
    pub(super) conversation: Option<ObjectId>,
}

#[cfg(test)]
mod tests {
    use mongodb::bson::doc;

    use super::*;
    use crate::switch::record::Switch;

    fn open(left: Duration) -> Box<Open> {
        let switch = doc! {
            "conversation_id": "c", "user": "u", "to_agent": "b", "origin": "tool",
            "status": "open", "_id": ObjectId::new(),
        };
        let switch: Switch = mongodb::bson::deserialize_from_document(switch).unwrap();
        Open::new((&switch).into(), false, left)
    }

    #[tokio::test(start_paused = true)]
    async fn the_deadline_is_not_slept_through() {
        let mut open = open(Duration::from_secs(70));
        for _ in 0..20 {
            open.look_later();
        }
        tokio::time::advance(Duration::from_secs(30)).await;
        open.look_later();
        assert!(open.next_look <= open.deadline);
    }

    #[tokio::test(start_paused = true)]
    async fn an_overdue_look_that_fails_is_repeated_ever_later() {
        let mut open = open(Duration::ZERO);
        for _ in 0..20 {
            open.look_later();
        }
        assert!(open.next_look >= Instant::now() + RAREST_LOOK / 2);
    }
}
