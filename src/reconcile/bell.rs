//! Tells whoever waits for the work on a conversation that some of it is done.
//!
//! It is a hint, and only this process hears it: the database is the truth, and another instance
//! may have done the work. So listen first, then read, then wait for the bell or a little while,
//! and read again.

use tokio::sync::broadcast::{
    self,
    error::RecvError::{Closed, Lagged},
};

use crate::librechat::ConversationId;

/// A listener that is further behind just reads again.
const BACKLOG: usize = 256;

/// Rings for a conversation.
#[derive(Clone, Debug)]
pub struct Bell {
    rings: broadcast::Sender<ConversationId>,
}

/// Hears what rings from its beginning on.
#[derive(Debug)]
pub struct Listener {
    rings: broadcast::Receiver<ConversationId>,
}

impl Default for Bell {
    fn default() -> Self {
        Self {
            rings: broadcast::Sender::new(BACKLOG),
        }
    }
}

impl Bell {
    /// Some of the work on the conversation is done.
    pub fn ring(&self, conversation: &ConversationId) {
        if self.rings.receiver_count() > 0 {
            // Whoever listened may have gone meanwhile.
            let _ = self.rings.send(conversation.clone());
        }
    }

    /// Begins to listen.
    #[must_use]
    pub fn listen(&self) -> Listener {
        Listener {
            rings: self.rings.subscribe(),
        }
    }
}

impl Listener {
    /// Waits until it rings for the conversation, or may have.
    pub async fn heard(&mut self, conversation: &ConversationId) {
        loop {
            match self.rings.recv().await {
                Ok(rung) if rung == *conversation => return,
                Ok(_) => {}
                Err(Lagged(_)) => return,
                Err(Closed) => std::future::pending().await,
            }
        }
    }
}
