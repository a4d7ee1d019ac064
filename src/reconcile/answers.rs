//! Bringing the answers of targets to their end: the gateway when it has seen LibreChat's, and
//! whoever finds one that was left.

use std::{collections::HashMap, sync::Arc, time::Duration};

use mongodb::{
    bson::{DateTime, oid::ObjectId},
    error::Result,
};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};
use tokio_util::sync::CancellationToken;

use super::context::Context;
use crate::{
    librechat::{
        MessageId,
        join::{Both, Pair},
    },
    metrics::Passage,
    mongo::words,
    switch::{
        answer::{Answer, Stage},
        guarded::Guarded,
        record::{Status, Switch},
    },
};

/// Answers that were left are looked for so often.
const PACE: Duration = Duration::from_secs(5);

/// An unfinished answer that has not changed for so long was stopped, or goes on unseen.
const QUIET: Duration = Duration::from_secs(60);

/// A message that changes under each attempt is left to the next look.
const ATTEMPTS: usize = 8;

const FAILED: &str = "the target has failed";

/// A switch in the answer is learned of within so long, as a rule.
const LEARNING: Duration = Duration::from_secs(3);
const LOOK: Duration = Duration::from_millis(50);

/// What is known of the end of the target's generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End<'a> {
    /// Nothing but what LibreChat has saved.
    Unknown,
    /// What LibreChat has saved has not changed for long; it may still.
    Quiet,
    /// It has ended.
    Seen,
    /// It has ended, or never begun, with these words of LibreChat's.
    Failed(&'a str),
    /// Nothing more is waited for.
    Overdue,
}

/// What has been seen of an answer that was left.
struct Left {
    since: Instant,
    saved: Option<DateTime>,
}

impl Context {
    /// Brings an answer to its end. `false`: it is still to come.
    ///
    /// # Errors
    ///
    /// What MongoDB answers; it may be tried again.
    pub async fn end_answer(&self, switch: &Switch, end: End<'_>) -> Result<bool> {
        let Some((answer, pair)) = parts(switch) else {
            return Ok(true);
        };
        for _ in 0..ATTEMPTS {
            let both = self.messages.both(&pair).await?;
            if !both.has_response() {
                return self
                    .ended(switch, Stage::Failed, "the response is gone")
                    .await;
            }
            if !both.has_answer() {
                if both.is_joined(&pair) {
                    if end == End::Unknown && both.may_go_on() {
                        return Ok(false);
                    }
                    return self.joined(switch, answer, both.has_failed(&pair)).await;
                }
                match end {
                    End::Unknown | End::Quiet => return Ok(false),
                    End::Seen | End::Overdue => {
                        self.restore_asked(switch, answer).await?;
                        let detail = "the target has answered nothing";
                        return self.ended(switch, Stage::Failed, detail).await;
                    }
                    End::Failed(words) => {
                        self.messages.join_failure(&pair, &both, words).await?;
                    }
                }
                continue;
            }
            if both.is_unfinished() && end == End::Unknown {
                return Ok(false);
            }
            if !self.learned(switch, &pair, &both).await? && end != End::Overdue {
                return Ok(false);
            }
            if self
                .messages
                .join(&self.conversations, &pair, &both)
                .await?
            {
                self.store.shown_in(&pair, both.response_object()).await?;
                if end == End::Quiet {
                    return Ok(false);
                }
                return self.joined(switch, answer, both.has_failed(&pair)).await;
            }
        }
        Ok(false)
    }

    async fn joined(&self, switch: &Switch, answer: &Answer, has_failed: bool) -> Result<bool> {
        self.restore_asked(switch, answer).await?;
        if has_failed {
            return self.ended(switch, Stage::Failed, FAILED).await;
        }
        if self
            .store
            .answer_ended(switch.id, Stage::Done, None)
            .await?
        {
            tracing::info!(conversation = %switch.conversation_id, "the target has answered");
        }
        Ok(true)
    }

    async fn ended(&self, switch: &Switch, stage: Stage, detail: &str) -> Result<bool> {
        if self
            .store
            .answer_ended(switch.id, stage, Some(detail))
            .await?
        {
            tracing::warn!(conversation = %switch.conversation_id, "{detail}");
            self.metrics.passed(Passage::AnswerFailed);
        }
        Ok(true)
    }

    async fn restore_asked(&self, switch: &Switch, answer: &Answer) -> Result<()> {
        let (Some(note), Some(user_message)) = (&answer.note, &switch.parent_message_id) else {
            return Ok(());
        };
        self.messages
            .take_back(&switch.key(), user_message, note)
            .await
    }

    /// The answer may hold a switch of its own, which has to be on record before its message goes;
    /// it comes to its end with the answer. And the response is to hold no news once it has taken
    /// the calls over.
    async fn learned(&self, switch: &Switch, pair: &Pair, both: &Both) -> Result<bool> {
        let calls = both.calls(pair, &self.tools);
        if calls.is_empty() {
            return Ok(true);
        }
        let fingerprints: Vec<String> = calls.into_iter().map(|call| call.fingerprint).collect();
        self.store.calls_seen(switch.id, &fingerprints).await?;
        let until = Instant::now() + LEARNING;
        loop {
            let key = &pair.key;
            let records = self
                .store
                .of_response(&key.conversation, Some(&key.user), &pair.answer)
                .await?;
            let mut is_open = records.is_empty();
            for record in records.iter().filter(|it| it.status == Status::Open) {
                let named = self.conversations.read(key).await?;
                let in_force = named.is_some_and(|it| it.agent.as_ref() == Some(&record.to_agent));
                let detail = "the target's answer ended with it in force";
                if in_force
                    && self
                        .store
                        .close(&Guarded::from(record), Status::Settled, detail)
                        .await?
                {
                    self.metrics.closed(record.origin, Status::Settled);
                }
                is_open |= !in_force;
            }
            if !is_open {
                return Ok(true);
            }
            if Instant::now() >= until {
                return Ok(!records.is_empty());
            }
            sleep(LOOK).await;
        }
    }
}

/// Ends the answers that somebody has left, until `stop`.
pub async fn end_answers(context: Arc<Context>, stop: CancellationToken) {
    let mut left: HashMap<ObjectId, Left> = HashMap::new();
    let mut pace = interval(PACE);
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = pace.tick() => {}
        }
        // An operation of the driver's is better not dropped half-way.
        if let Err(error) = end_those_left(&context, &mut left).await {
            let error = words(&error);
            tracing::debug!(error, "the open answers could not be looked at");
        }
    }
}

async fn end_those_left(context: &Context, left: &mut HashMap<ObjectId, Left>) -> Result<()> {
    let open = context.store.open_answers().await?;
    left.retain(|id, _| open.iter().any(|switch| switch.id == *id));
    for switch in open {
        let Some((_, pair)) = parts(&switch) else {
            continue;
        };
        let saved = context.messages.both(&pair).await?.answered_at();
        let now = Instant::now();
        let seen = left.entry(switch.id).or_insert(Left { since: now, saved });
        if seen.saved != saved {
            *seen = Left { since: now, saved };
        }
        let end = match now.duration_since(seen.since) {
            quiet if quiet >= context.guard => End::Overdue,
            quiet if quiet >= QUIET && saved.is_some() => End::Quiet,
            _ => End::Unknown,
        };
        context.end_answer(&switch, end).await?;
    }
    Ok(())
}

/// The answer of a record that is the gateway's to end, and its messages.
fn parts(switch: &Switch) -> Option<(&Answer, Pair)> {
    let answer = switch.answer.as_ref()?;
    let response: MessageId = switch.message_id.clone()?;
    let pair = Pair {
        key: switch.key(),
        response,
        answer: answer.message_id.clone(),
        by: answer.by.clone(),
    };
    Some((answer, pair))
}
