//! What the work on a conversation needs, and its patience with MongoDB.

use std::{future::Future, time::Duration};

use mongodb::error::{Error, Result};
use tokio_util::sync::CancellationToken;

use crate::{
    backoff::Backoff,
    health::Health,
    librechat::{
        AgentId, Conversations, Messages, SpecPatch, ToolNames, access::Access, specs::Specs,
    },
    mongo::{Failure, classify, words},
    switch::{policy::AllowList, store::Store},
};

/// An operation that has not answered by then has failed.
const OPERATION: Duration = Duration::from_secs(20);

/// A command that MongoDB refuses is tried so often.
const ATTEMPTS: u32 = 3;

/// What the work on a conversation needs.
pub struct Context {
    /// LibreChat's conversations.
    pub conversations: Conversations,
    /// LibreChat's messages.
    pub messages: Messages,
    /// Who may be switched to which agent.
    pub access: Access,
    /// Which model spec stands for which agent.
    pub specs: Specs,
    /// `switch.allow`.
    pub allow: AllowList,
    /// The tools whose calls count.
    pub tools: ToolNames,
    /// The records.
    pub store: Store,
    /// How long a switch is guarded where no end of its turn is seen (`switch.guard`).
    pub guard: Duration,
    /// Where failures show.
    pub health: Health,
    /// Cancelled when the process is to end at once: nothing is waited for any more.
    pub abandon: CancellationToken,
}

/// Why a piece of work was left undone.
#[derive(Debug, thiserror::Error)]
pub enum Undone {
    /// MongoDB refuses it, and will until an operator acts.
    #[error("{what}: {remedy} (MongoDB: {})", words(.error))]
    Final {
        /// What was tried.
        what: &'static str,
        /// What to do.
        remedy: &'static str,
        /// What MongoDB said.
        error: Error,
    },
    /// MongoDB refuses this one command.
    #[error("{what}: {}", words(.error))]
    Refused {
        /// What was tried.
        what: &'static str,
        /// What MongoDB said.
        error: Error,
    },
    /// The process ends; the next start takes it up.
    #[error("the process ends")]
    Abandoned,
}

impl Context {
    /// Runs an operation until it succeeds, waiting out what passes.
    pub(super) async fn patiently<T, F, Fut>(
        &self,
        what: &'static str,
        run: F,
    ) -> std::result::Result<T, Undone>
    where
        F: Fn() -> Fut,
        Fut: Future<Output = Result<T>>,
    {
        let mut backoff = Backoff::for_mongodb();
        loop {
            let outcome = tokio::select! {
                outcome = tokio::time::timeout(OPERATION, run()) => outcome,
                () = self.abandon.cancelled() => return Err(Undone::Abandoned),
            };
            let error = match outcome {
                Ok(Ok(value)) => {
                    self.health.store_ok();
                    return Ok(value);
                }
                Ok(Err(error)) => error,
                Err(_) => std::io::Error::from(std::io::ErrorKind::TimedOut).into(),
            };
            let sort = classify(&error);
            match sort {
                Failure::Final(remedy) => {
                    return Err(Undone::Final {
                        what,
                        remedy,
                        error,
                    });
                }
                Failure::Command | Failure::TokenLost if backoff.failures() + 1 >= ATTEMPTS => {
                    return Err(Undone::Refused { what, error });
                }
                _ => {}
            }
            if backoff.failures() == 0 {
                let error = words(&error);
                tracing::warn!(error, what, "MongoDB failed; it is tried again");
                // A command that is refused says nothing of others.
                if sort == Failure::Passing {
                    self.health.store_failed(error);
                }
            }
            tokio::select! {
                () = tokio::time::sleep(backoff.next_wait()) => {}
                () = self.abandon.cancelled() => return Err(Undone::Abandoned),
            }
        }
    }

    /// What a switch to `to` writes of the model spec into a conversation.
    pub(super) fn patch(&self, begun_from_spec: bool, to: &AgentId) -> SpecPatch<'_> {
        self.specs.patch(begun_from_spec, to)
    }
}
