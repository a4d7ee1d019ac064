//! When which conversation is to be looked at.

use std::{cmp::Reverse, collections::BinaryHeap};

use tokio::time::Instant;

use crate::librechat::ConversationKey;

/// Looks that are due, soonest first. An entry whose conversation has another time by now is stale.
#[derive(Debug, Default)]
pub(super) struct Timer {
    heap: BinaryHeap<Reverse<(Instant, ConversationKey)>>,
}

impl Timer {
    pub(super) fn set(&mut self, at: Instant, key: ConversationKey) {
        self.heap.push(Reverse((at, key)));
    }

    /// When the next look is due.
    pub(super) fn next(&self) -> Option<Instant> {
        self.heap.peek().map(|Reverse((at, _))| *at)
    }

    /// Takes the next look that is due by `now`.
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<(Instant, ConversationKey)> {
        if self.next()? > now {
            return None;
        }
        self.heap.pop().map(|Reverse(entry)| entry)
    }
}
