//! Stop, while it is being decided whether the target answers.
//!
//! LibreChat has ended the turn by then, and has nothing to stop. So the decision is against an
//! answer; or where it was made before, the request waits until there is something to stop.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;

use crate::librechat::ConversationId;

/// The longest that Stop waits for a decision.
const PATIENCE: Duration = Duration::from_secs(3);

/// The decisions that are being made in this process.
#[derive(Default)]
pub(super) struct Decisions(Mutex<HashMap<ConversationId, Vec<Weak<State>>>>);

struct State {
    is_stopped: AtomicBool,
    /// Closed when it is made.
    made: watch::Sender<()>,
}

/// A decision that is being made; it is made when this goes.
pub(super) struct Decision(Arc<State>);

impl Decision {
    /// Whether the user has stopped the turn meanwhile.
    pub(super) fn is_stopped(&self) -> bool {
        self.0.is_stopped.load(Ordering::SeqCst)
    }
}

impl Decisions {
    /// Begins a decision.
    pub(super) fn begin(&self, conversation: &ConversationId) -> Decision {
        let state = Arc::new(State {
            is_stopped: AtomicBool::new(false),
            made: watch::Sender::new(()),
        });
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|_, states| {
            states.retain(|state| state.strong_count() > 0);
            !states.is_empty()
        });
        known
            .entry(conversation.clone())
            .or_default()
            .push(Arc::downgrade(&state));
        Decision(state)
    }

    /// The user stops the turn: returns when nothing is being decided any more.
    pub(super) async fn stop(&self, conversation: &ConversationId) {
        let waits: Vec<watch::Receiver<()>> = {
            let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let states = known.get(conversation).into_iter().flatten();
            states
                .filter_map(Weak::upgrade)
                .map(|state| {
                    state.is_stopped.store(true, Ordering::SeqCst);
                    state.made.subscribe()
                })
                .collect()
        };
        for mut made in waits {
            // It is an error when the sender goes, which is what is waited for.
            let _ = timeout(PATIENCE, made.changed()).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn stop_waits_for_the_decision_and_tells_it() {
        let decisions = Decisions::default();
        let conversation = "c".into();
        let decision = decisions.begin(&conversation);
        let other = decisions.begin(&"d".into());
        let stopping = decisions.stop(&conversation);
        let deciding = async {
            while !decision.is_stopped() {
                tokio::task::yield_now().await;
            }
            drop(decision);
        };
        tokio::join!(stopping, deciding);
        assert!(!other.is_stopped());
        decisions.stop(&"e".into()).await;
    }
}
