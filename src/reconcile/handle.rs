//! The way in for requests. Each is a task in its conversation's lane, in order with events.

use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, timeout_at},
};

use super::{
    call::{Call, Called},
    choose::{Choice, NotChosen},
    lane::Task,
};
use crate::librechat::{AgentId, ConversationKey};

/// More than this many requests do not wait for the dispatcher; it takes them at once.
const QUEUE: usize = 1024;

/// Asks the dispatcher for work. Clones ask the same one.
#[derive(Clone, Debug)]
pub struct Handle {
    requests: mpsc::Sender<Request>,
}

/// The dispatcher's end of a [`Handle`].
#[derive(Debug)]
pub struct Requests(mpsc::Receiver<Request>);

/// A task for the lane of a conversation.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) key: ConversationKey,
    pub(super) task: Task,
}

/// A handle and the end that the dispatcher takes. They are made before the dispatcher, so that
/// requests may arrive while the database is still being looked for.
#[must_use]
pub fn requests() -> (Handle, Requests) {
    let (sender, receiver) = mpsc::channel(QUEUE);
    (Handle { requests: sender }, Requests(receiver))
}

impl Requests {
    /// The next request; `None` once every handle is gone.
    pub(super) async fn next(&mut self) -> Option<Request> {
        self.0.recv().await
    }
}

impl Handle {
    /// The user chooses the agent of a conversation. What is not done by `deadline` is not done.
    ///
    /// # Errors
    ///
    /// Why it was not done.
    pub async fn choose(
        &self,
        key: ConversationKey,
        to: AgentId,
        deadline: Instant,
    ) -> Result<(), NotChosen> {
        let task = |reply| {
            Task::Choose(Choice {
                to,
                deadline,
                reply,
            })
        };
        self.ask(key, deadline, task)
            .await
            .unwrap_or(Err(NotChosen::Unavailable))
    }

    /// An agent calls Baton's own tool. Returns once the target is in force as far as it can be, or
    /// at `deadline`; the work goes on all the same, since the call is durable.
    pub async fn call(&self, key: ConversationKey, call: Call, deadline: Instant) {
        let task = |reply| Task::Call(Box::new(Called { call, reply }));
        if self.ask(key, deadline, task).await.is_none() {
            tracing::warn!("a call is durable, but not in force in time");
        }
    }

    /// Puts a task into a conversation's lane and waits for its answer. `None`: none came in time.
    async fn ask<T>(
        &self,
        key: ConversationKey,
        deadline: Instant,
        task: impl FnOnce(oneshot::Sender<T>) -> Task,
    ) -> Option<T> {
        let (reply, answer) = oneshot::channel();
        let request = Request {
            key,
            task: task(reply),
        };
        let asked = async {
            self.requests.send(request).await.ok()?;
            answer.await.ok()
        };
        // The worker keeps to the deadline itself; this is for a worker that does not get to run.
        timeout_at(deadline + super::choose::ANSWER, asked)
            .await
            .ok()
            .flatten()
    }
}
