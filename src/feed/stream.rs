//! Opening the stream, and reading it until it breaks; then again.

use std::time::Duration;

use futures::StreamExt;
use mongodb::{
    Database,
    bson::{Document, RawDocument, RawDocumentBuf, Timestamp, doc},
    error::Error,
    raw_batch_cursor::{RawBatch, RawBatchCursor},
};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{
    Checkpoint, Checkpoints, Delivery, Item,
    checkpoint::Last,
    rescan::{before, rescan},
};
use crate::{
    backoff::Backoff,
    config::Secret,
    health::Health,
    librechat::{Change, Messages, ToolNames, change},
    metrics::{Metrics, Seen},
    mongo::{Failure, Misfit, classify, finds_no_server, words},
};

/// How long the server waits for an event before it answers that there is none. Also how long a
/// stop takes at the most.
const IDLE_ANSWER: Duration = Duration::from_secs(1);

/// Events in one answer at the most: what is read ahead of the work is held in memory.
const BATCH: u32 = 1000;

/// No answer for this long means that the connection is dead, whatever TCP thinks.
const DEAD_AFTER: Duration = Duration::from_secs(15);

/// How far back to begin where only a time is known: a position's time is approximate.
const TIME_MARGIN: Duration = Duration::from_secs(60);

/// After so many failures in a row of another kind than passing the position is given up.
const STUBBORN: u32 = 3;

/// What the feed reads from.
#[derive(Clone)]
pub struct Source {
    /// LibreChat's database, of a client that nothing else uses: a waiting stream holds a
    /// connection.
    pub database: Database,
    /// The same database, for a rescan.
    pub messages: Messages,
    /// The tools whose calls count.
    pub tools: ToolNames,
    /// Where the position is kept.
    pub checkpoints: Checkpoints,
    /// How far a rescan looks back beyond what was lost (`switch.guard`).
    pub guard: Duration,
    /// `mongodb.uri`: where the driver finds no server, it is asked once more what is there.
    pub uri: Secret,
}

/// The feed.
pub struct Feed {
    source: Source,
    out: mpsc::Sender<Delivery>,
    health: Health,
    metrics: Metrics,
    start: Start,
    /// Events may be missing: rescan once the stream is open.
    missing: Option<Missing>,
    /// The cluster's time in the last answer.
    time: Option<Timestamp>,
}

/// Where the stream is to begin.
#[derive(Clone, Debug)]
enum Start {
    /// Where the saved position says.
    Saved,
    /// After the last event that this process saw.
    After(Checkpoint),
    /// At a time: the position is of no use, its time is.
    At(Timestamp),
    /// Now: what was before is a matter of a rescan.
    Now,
}

/// From when on events may be missing.
#[derive(Clone, Copy, Debug)]
enum Missing {
    /// Nothing is known of what was before.
    Everything,
    Since(Timestamp),
}

/// How following the stream ended, where it did not fail.
enum Ended {
    Stopped,
    /// The server closed the cursor, as after `invalidate`.
    Closed,
}

/// Why the feed ended: an error that stays until an operator acts.
#[derive(Debug, thiserror::Error)]
pub enum FeedError {
    /// MongoDB refuses.
    #[error("{remedy} (MongoDB: {})", words(.error))]
    Refused {
        /// What to do.
        remedy: &'static str,
        /// What MongoDB said.
        error: Error,
    },
    /// MongoDB is not of the kind that is needed, or that the URI says.
    #[error("{0}")]
    Misfit(Misfit),
}

impl Feed {
    /// A feed from `source` that delivers into `out`.
    #[must_use]
    pub fn new(
        source: Source,
        out: mpsc::Sender<Delivery>,
        health: Health,
        metrics: Metrics,
    ) -> Self {
        Self {
            source,
            out,
            health,
            metrics,
            start: Start::Saved,
            missing: None,
            time: None,
        }
    }

    /// Runs until `stop` is cancelled or nobody receives any more.
    ///
    /// # Errors
    ///
    /// What an operator must mend; all else is waited out.
    pub async fn run(mut self, stop: CancellationToken) -> Result<(), FeedError> {
        let mut backoff = Backoff::for_mongodb();
        loop {
            self.health.beat();
            match self.follow(&stop, &mut backoff).await {
                Ok(Ended::Stopped) => return Ok(()),
                Ok(Ended::Closed) => tracing::info!("MongoDB closed the change stream"),
                Err(error) => tokio::select! {
                    sorted = self.broke(error, backoff.failures()) => sorted?,
                    () = stop.cancelled() => return Ok(()),
                },
            }
            self.metrics.reconnecting();
            let wait = backoff.next_wait();
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = stop.cancelled() => return Ok(()),
            }
        }
    }

    /// Sorts out what a failure means for the next attempt.
    async fn broke(&mut self, error: Error, failures: u32) -> Result<(), FeedError> {
        let misfit = if finds_no_server(&error) {
            Misfit::find(self.source.uri.expose()).await
        } else {
            None
        };
        let said = match misfit {
            Some(misfit) if misfit.is_final() => {
                self.health.stream_lost(misfit.to_string());
                return Err(FeedError::Misfit(misfit));
            }
            Some(misfit) => misfit.to_string(),
            None => words(&error),
        };
        self.health.stream_lost(&*said);
        let sort = match (classify(&error), &self.start) {
            // Not a known complaint about a token; but this one is not to be had.
            (Failure::Command, Start::After(_) | Start::At(_)) if failures >= STUBBORN => {
                Failure::TokenLost
            }
            (sort, _) => sort,
        };
        match sort {
            Failure::Final(remedy) => return Err(FeedError::Refused { remedy, error }),
            Failure::TokenLost => {
                let lost = match &self.start {
                    Start::After(checkpoint) => Missing::Since(checkpoint.time),
                    Start::At(time) => Missing::Since(*time),
                    Start::Saved | Start::Now => Missing::Everything,
                };
                tracing::warn!(
                    error = said,
                    "the change stream cannot go on where it was: it begins \
                    anew, and the recent messages are looked through"
                );
                self.missing.get_or_insert(lost);
                self.start = Start::Now;
            }
            Failure::Passing | Failure::Command => {
                tracing::warn!(
                    error = said,
                    failures,
                    "the change stream broke; it is opened again"
                );
            }
        }
        Ok(())
    }

    async fn follow(
        &mut self,
        stop: &CancellationToken,
        backoff: &mut Backoff,
    ) -> Result<Ended, Error> {
        let opened = tokio::time::timeout(DEAD_AFTER, self.open()).await;
        let mut cursor = opened.map_err(|_| silent())??;
        let mut first = true;
        loop {
            let batch = tokio::select! {
                batch = tokio::time::timeout(DEAD_AFTER, cursor.next()) => batch,
                () = self.out.closed() => return Ok(Ended::Stopped),
            };
            let batch = batch.map_err(|_| silent())?;
            let Some(batch) = batch else {
                return Ok(Ended::Closed);
            };
            let batch = batch?;
            if first {
                first = false;
                self.health.stream_opened();
                tracing::info!("the change stream is open");
            } else {
                self.health.replied();
                backoff.reset();
            }
            if self.deliver(&batch).await?.is_break() || stop.is_cancelled() {
                return Ok(Ended::Stopped);
            }
        }
    }

    async fn open(&mut self) -> Result<RawBatchCursor, Error> {
        if let Start::Saved = self.start {
            self.start = match self.source.checkpoints.load().await? {
                Last::Resumable(checkpoint) => Start::After(checkpoint),
                Last::OtherPipeline(time) => Start::At(before(time, TIME_MARGIN)),
                Last::Never => {
                    self.missing = Some(Missing::Everything);
                    Start::Now
                }
            };
        }
        let stage = match &self.start {
            Start::After(checkpoint) => {
                doc! { "startAfter": Document::try_from(checkpoint.token.as_ref())? }
            }
            Start::At(time) => doc! { "startAtOperationTime": *time },
            Start::Saved | Start::Now => Document::new(),
        };
        let mut pipeline = vec![doc! { "$changeStream": stage }];
        pipeline.extend(change::pipeline(&self.source.tools));
        self.source
            .database
            .aggregate(pipeline)
            .max_await_time(IDLE_ANSWER)
            .batch_size(BATCH)
            .batch()
            .await
    }

    /// Delivers a batch, event by event, and the position after it.
    async fn deliver(&mut self, batch: &RawBatch) -> Result<std::ops::ControlFlow<()>, Error> {
        use std::ops::ControlFlow::{Break, Continue};
        let reply = batch.as_raw_document();
        let before_answer = self.time;
        self.time = reply.get_timestamp("operationTime").ok().or(self.time);
        if self.missing.is_some() {
            self.rescan(reply).await?;
        }
        let mut newest = self.time;
        for event in batch.doc_slices()? {
            let Some(event) = event?.as_document() else {
                continue;
            };
            let delivery = self.delivery(event)?;
            newest = delivery.position.as_ref().map(|at| at.time);
            if self.out.send(delivery).await.is_err() {
                return Ok(Break(()));
            }
        }
        let seconds = |time: Option<Timestamp>| time.map_or(0, |time| time.time);
        let behind = seconds(self.time).saturating_sub(seconds(newest));
        self.metrics.replied(behind);
        if self.missing.is_some() {
            self.rescan(reply).await?;
        }
        let time = match &self.start {
            Start::After(last) => Some(last.time).max(before_answer),
            _ => before_answer.or(self.time),
        };
        if let (Some(token), Some(time)) = (post_batch_token(reply), time) {
            let checkpoint = Checkpoint { token, time };
            self.start = Start::After(checkpoint.clone());
            let idle = Delivery {
                item: Item::Idle,
                position: Some(checkpoint),
            };
            if self.out.send(idle).await.is_err() {
                return Ok(Break(()));
            }
        }
        Ok(Continue(()))
    }

    fn delivery(&mut self, event: &RawDocument) -> Result<Delivery, Error> {
        let token = event.get_document("_id").map(RawDocument::to_owned)?;
        let time = change::cluster_time(event)
            .or(self.time)
            .unwrap_or(Timestamp {
                time: 0,
                increment: 0,
            });
        let checkpoint = Checkpoint { token, time };
        self.start = Start::After(checkpoint.clone());
        let item = match Change::parse(event) {
            Ok(Change::Structure(what)) => {
                tracing::warn!(what, "a collection of LibreChat's changed as a whole");
                self.missing = Some(Missing::Since(time));
                Item::Idle
            }
            Ok(change) => Item::Change { change, at: time },
            Err(error) => {
                tracing::warn!(%error, "a change was skipped");
                self.metrics.event(Seen::Malformed);
                Item::Idle
            }
        };
        Ok(Delivery {
            item,
            position: Some(checkpoint),
        })
    }

    /// Finds what the stream cannot show any more. The stream is open, so nothing falls between.
    async fn rescan(&mut self, reply: &RawDocument) -> Result<(), Error> {
        let Some(missing) = self.missing else {
            return Ok(());
        };
        let from = match missing {
            Missing::Since(time) => time,
            Missing::Everything => match self.time {
                Some(time) => time,
                None => reply.get_timestamp("operationTime")?,
            },
        };
        let since = before(from, self.source.guard);
        rescan(&self.source.messages, &self.source.tools, since, &self.out).await?;
        self.missing = None;
        Ok(())
    }
}

fn post_batch_token(reply: &RawDocument) -> Option<RawDocumentBuf> {
    reply
        .get_document("cursor")
        .and_then(|cursor| cursor.get_document("postBatchResumeToken"))
        .map(RawDocument::to_owned)
        .ok()
}

fn silent() -> Error {
    std::io::Error::new(
        std::io::ErrorKind::TimedOut,
        format!("MongoDB has not answered for {} s", DEAD_AFTER.as_secs()),
    )
    .into()
}
