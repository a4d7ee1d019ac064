//! How far everything has been dealt with, where things are dealt with side by side.

use std::collections::VecDeque;

use crate::feed::Checkpoint;

/// The number of a delivery.
pub(super) type Seq = u64;

/// The position that may be saved: the last one of which everything before is dealt with.
#[derive(Debug, Default)]
pub(super) struct Watermark {
    /// The number of the first entry.
    base: Seq,
    entries: VecDeque<Entry>,
    reached: Option<Checkpoint>,
}

#[derive(Debug)]
struct Entry {
    position: Option<Checkpoint>,
    done: bool,
}

impl Watermark {
    /// Takes note of a delivery.
    pub(super) fn begin(&mut self, position: Option<Checkpoint>) -> Seq {
        self.entries.push_back(Entry {
            position,
            done: false,
        });
        self.base + self.entries.len() as Seq - 1
    }

    /// The delivery is dealt with.
    pub(super) fn done(&mut self, seq: Seq) {
        let entry = seq
            .checked_sub(self.base)
            .and_then(|index| self.entries.get_mut(usize::try_from(index).ok()?));
        if let Some(entry) = entry {
            entry.done = true;
        }
        while self.entries.front().is_some_and(|entry| entry.done) {
            let position = self.entries.pop_front().and_then(|entry| entry.position);
            self.base += 1;
            if position.is_some() {
                self.reached = position;
            }
        }
    }

    /// How many deliveries are not dealt with, or wait for one before them.
    pub(super) fn pending(&self) -> usize {
        self.entries.len()
    }

    /// The position to save, if there is a new one since the last call.
    pub(super) fn take(&mut self) -> Option<Checkpoint> {
        self.reached.take()
    }
}

#[cfg(test)]
mod tests {
    use mongodb::bson::{RawDocumentBuf, Timestamp};

    use super::*;

    fn at(time: u32) -> Checkpoint {
        Checkpoint {
            token: RawDocumentBuf::new(),
            time: Timestamp { time, increment: 0 },
        }
    }

    fn reached(watermark: &mut Watermark) -> Option<u32> {
        watermark.take().map(|checkpoint| checkpoint.time.time)
    }

    #[test]
    fn a_position_is_reached_when_all_before_it_is_done() {
        let mut watermark = Watermark::default();
        let [a, b, c] = [1, 2, 3].map(|time| watermark.begin(Some(at(time))));
        watermark.done(b);
        assert_eq!(reached(&mut watermark), None);
        watermark.done(a);
        assert_eq!(reached(&mut watermark), Some(2));
        assert_eq!(reached(&mut watermark), None);
        watermark.done(c);
        assert_eq!(reached(&mut watermark), Some(3));
        assert_eq!(watermark.pending(), 0);
    }

    #[test]
    fn what_has_no_position_holds_back_those_that_have() {
        let mut watermark = Watermark::default();
        let rescanned = watermark.begin(None);
        let event = watermark.begin(Some(at(1)));
        watermark.done(event);
        assert_eq!(reached(&mut watermark), None);
        watermark.done(rescanned);
        assert_eq!(reached(&mut watermark), Some(1));
    }
}
