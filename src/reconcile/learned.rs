//! What this process has learned of lately, so that nobody waits for what will not come.
//!
//! A call that is a copy, of a conversation that is left alone or too old leaves no record. Whoever
//! waits for one is told here that it was looked at. It is a hint, of this process alone.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};

use crate::librechat::{ConversationId, MessageId};

/// Whoever waits does so for a second: of what is older nothing is asked.
const KEPT: usize = 1024;

/// The responses that were learned of last, with the number of their calls.
#[derive(Clone, Debug, Default)]
pub struct Learned(Arc<Mutex<VecDeque<Known>>>);

#[derive(Debug)]
struct Known {
    conversation: ConversationId,
    response: MessageId,
    calls: usize,
}

impl Learned {
    /// So many calls of the response were looked at, and recorded where they count.
    pub(super) fn note(&self, conversation: &ConversationId, response: &MessageId, calls: usize) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() == KEPT {
            known.pop_front();
        }
        known.push_back(Known {
            conversation: conversation.clone(),
            response: response.clone(),
            calls,
        });
    }

    /// Whether the response was looked at with as many calls as this.
    #[must_use]
    pub fn knows(&self, conversation: &ConversationId, response: &MessageId, calls: usize) -> bool {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.iter().rev().any(|it| {
            it.response == *response && it.conversation == *conversation && it.calls >= calls
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_may_get_more_calls() {
        let learned = Learned::default();
        let (c, r) = ("c".into(), "r".into());
        assert!(!learned.knows(&c, &r, 1));
        learned.note(&c, &r, 1);
        assert!(learned.knows(&c, &r, 1));
        assert!(!learned.knows(&c, &r, 2));
        learned.note(&c, &r, 2);
        assert!(learned.knows(&c, &r, 2));
        assert!(!learned.knows(&"other".into(), &r, 1));
    }

    #[test]
    fn what_is_long_ago_is_forgotten() {
        let learned = Learned::default();
        let c = "c".into();
        for at in 0..=KEPT {
            learned.note(&c, &at.to_string().into(), 1);
        }
        assert!(!learned.knows(&c, &"0".into(), 1));
        assert!(learned.knows(&c, &"1".into(), 1));
    }
}
