//! What the work on a conversation needs, and its patience with MongoDB.

use std::{future::Future, sync::Arc, time::Duration};

use mongodb::error::{Error, Result};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::{bell::Bell, learned::Learned};
use crate::{
    aliases::Aliases,
    backoff::Backoff,
    health::Health,
    librechat::{
        AgentId, Conversations, Messages, SpecPatch, ToolNames, access::Access, specs::Specs,
    },
    metrics::Metrics,
    mongo::{Failure, classify, words},
    switch::{
        calls::Calls,
        policy::{AllowList, Brake},
        store::Store,
    },
};

/// An operation that has not answered by then has failed.
const OPERATION: Duration = Duration::from_secs(20);

/// A command that MongoDB refuses is tried so often.
const ATTEMPTS: u32 = 3;

/// What the work on a conversation needs. Clones share all of it.
#[derive(Clone)]
pub struct Context {
    /// LibreChat's conversations.
    pub conversations: Conversations,
    /// LibreChat's messages.
    pub messages: Messages,
    /// Who may be switched to which agent.
    pub access: Arc<Access>,
    /// Which model spec stands for which agent.
    pub specs: Arc<Specs>,
    /// `switch.allow`.
    pub allow: Arc<AllowList>,
    /// `switch.max_per_conversation`.
    pub brake: Brake,
    /// The operator's names for agents.
    pub aliases: Arc<Aliases>,
    /// The tools whose calls count.
    pub tools: Arc<ToolNames>,
    /// The records.
    pub store: Store,
    /// The calls of Baton's own tool.
    pub calls: Calls,
    /// How long a switch is guarded where no end of its turn is seen (`switch.guard`).
    pub guard: Duration,
    /// Rings when work on a conversation is done.
    pub bell: Bell,
    /// Which responses were looked at.
    pub learned: Learned,
    /// Where failures show.
    pub health: Health,
    /// Where the work is counted.
    pub metrics: Metrics,
    /// Cancelled when the process is to end at once: nothing is waited for any more.
    pub abandon: CancellationToken,
    /// What is not done by then is given up: somebody waits for an answer.
    pub deadline: Option<Instant>,
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
    /// Whoever asked for it has waited for as long as it may take.
    #[error("MongoDB did not answer in time")]
    TooLate,
}

impl Context {
    /// The same with a deadline.
    pub(crate) fn until(&self, deadline: Instant) -> Self {
        Self {
            deadline: Some(deadline),
            ..self.clone()
        }
    }

    async fn out_of_patience(&self) -> Undone {
        let late = async {
            match self.deadline {
                Some(deadline) => sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = self.abandon.cancelled() => Undone::Abandoned,
            () = late => Undone::TooLate,
        }
    }

    /// Runs an operation until it succeeds, waiting out what passes.
    pub(crate) async fn patiently<T, F, Fut>(
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
                undone = self.out_of_patience() => return Err(undone),
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
                undone = self.out_of_patience() => return Err(undone),
            }
        }
    }

    /// What a switch to `to` writes of the model spec into a conversation.
    pub(crate) fn patch(&self, begun_from_spec: bool, to: &AgentId) -> SpecPatch<'_> {
        self.specs.patch(begun_from_spec, to)
    }
}
