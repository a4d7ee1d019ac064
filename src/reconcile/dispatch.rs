//! The dispatcher: one loop that owns the lanes and hands out their work.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::Arc,
    time::Duration,
};

use mongodb::bson::{DateTime, Timestamp, oid::ObjectId};
use tokio::{
    sync::mpsc,
    task::{JoinError, JoinSet},
    time::{Instant, MissedTickBehavior, interval, sleep_until},
};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use super::{
    context::{Context, Undone},
    guard::After,
    handle::Requests,
    lane::{Lane, Open, Task},
    learn::guard_before,
    timer::Timer,
    watermark::{Seq, Watermark},
};
use crate::{
    feed::{Checkpoints, Delivery, Item},
    librechat::{
        Change, ContentSet, ConversationChange, ConversationKey, Response, TurnRef,
        peek::{Glance, glance},
    },
    metrics::Seen,
    switch::store::OpenSince,
};

/// More than this many deliveries are not worked on at once; the stream waits.
const IN_FLIGHT: usize = 1024;

/// More than this many conversations are not worked on at once.
const WORKERS: usize = 32;

/// A glance takes in at most so many conversations.
const GLANCE: usize = 100;

/// How often the open switches of other instances are looked for, and the position is saved.
const SYNC: Duration = Duration::from_secs(5);
const SAVE: Duration = Duration::from_secs(1);

/// A record may show up this much after its time: it was being written.
const SYNC_OVERLAP: Duration = Duration::from_secs(30);

/// The dispatcher.
pub struct Reconciler {
    context: Arc<Context>,
    checkpoints: Checkpoints,
    deliveries: mpsc::Receiver<Delivery>,
    requests: Requests,
    lanes: HashMap<ConversationKey, Lane>,
    /// The conversations that are guarded, by `_id`: all that an update event names.
    by_id: HashMap<ObjectId, ConversationKey>,
    /// Lanes with work that wait for a worker.
    ready: VecDeque<ConversationKey>,
    workers: usize,
    /// Reads under way of messages whose conversation is not known yet.
    fetching: usize,
    /// Conversations with work under way whose `_id` is not known yet.
    learning: HashSet<ConversationKey>,
    /// Changes of conversations that are not known, while one is being learned of.
    unclaimed: Vec<(Seq, ConversationChange)>,
    watermark: Watermark,
    timer: Timer,
    tasks: JoinSet<Output>,
    glancing: bool,
    syncing: bool,
    saving: bool,
    synced: Option<DateTime>,
}

/// What a task of the dispatcher's brings back.
enum Output {
    Worked {
        key: ConversationKey,
        seq: Option<Seq>,
        open: Option<Box<Open>>,
        outcome: Result<(), Undone>,
    },
    Fetched {
        seq: Seq,
        at: Timestamp,
        response: Result<Option<Response>, Undone>,
    },
    Glanced(Vec<ConversationKey>, Result<Vec<Glance>, Undone>),
    Synced(Result<OpenSince, Undone>),
    Saved(Result<(), Undone>),
}

impl Reconciler {
    /// A dispatcher of what `deliveries` and `requests` bring.
    #[must_use]
    pub fn new(
        context: Arc<Context>,
        checkpoints: Checkpoints,
        deliveries: mpsc::Receiver<Delivery>,
        requests: Requests,
    ) -> Self {
        Self {
            context,
            checkpoints,
            deliveries,
            requests,
            lanes: HashMap::new(),
            by_id: HashMap::new(),
            ready: VecDeque::new(),
            workers: 0,
            fetching: 0,
            learning: HashSet::new(),
            unclaimed: Vec::new(),
            watermark: Watermark::default(),
            timer: Timer::default(),
            tasks: JoinSet::new(),
            glancing: false,
            syncing: false,
            saving: false,
            synced: None,
        }
    }

    /// Runs until `stop` is cancelled and what is under way is done, or the feed has ended.
    ///
    /// # Errors
    ///
    /// What an operator must mend.
    pub async fn run(mut self, stop: CancellationToken) -> Result<(), Undone> {
        let store = Arc::clone(&self.context);
        store
            .patiently("preparing the state database", || store.store.prepare())
            .await?;
        store
            .patiently("preparing the state database", || store.calls.prepare())
            .await?;
        let none = HashSet::new();
        let open = store
            .patiently("reading the open switches", || {
                store.store.open_since(None, &none)
            })
            .await?;
        tracing::info!(open = open.switches.len(), "guarding the open switches");
        self.adopt(open);

        let mut sync = interval(SYNC);
        let mut save = interval(SAVE);
        sync.set_missed_tick_behavior(MissedTickBehavior::Delay);
        save.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut feeding = true;
        while feeding || self.is_working() {
            self.context.health.beat();
            let due = self.timer.next();
            tokio::select! {
                biased;
                Some(output) = self.tasks.join_next() => self.finished(output)?,
                () = stop.cancelled(), if feeding => {
                    // What was delivered and not taken comes again after the next start.
                    self.deliveries.close();
                    feeding = false;
                }
                _ = save.tick(), if !self.saving => self.save(),
                _ = sync.tick(), if feeding && !self.syncing => self.sync(),
                () = sleep_until(due.unwrap_or_else(Instant::now)),
                    if feeding && due.is_some() && self.may_glance() => self.look_at_due(),
                Some(request) = self.requests.next(), if feeding => {
                    self.enqueue(request.key, None, request.task);
                }
                delivery = self.deliveries.recv(),
                    if feeding && self.watermark.pending() < IN_FLIGHT => match delivery {
                        Some(delivery) => self.take(delivery),
                        None => feeding = false,
                    },
            }
            self.hand_out();
        }
        self.save();
        while let Some(output) = self.tasks.join_next().await {
            self.finished(output)?;
        }
        Ok(())
    }

    fn is_working(&self) -> bool {
        self.workers > 0 || self.fetching > 0 || !self.ready.is_empty()
    }

    /// Whether the work that a glance may find is not there already.
    fn may_glance(&self) -> bool {
        !self.glancing && self.ready.len() < GLANCE
    }

    fn take(&mut self, delivery: Delivery) {
        let seq = self.watermark.begin(delivery.position);
        match delivery.item {
            Item::Idle => self.watermark.done(seq),
            Item::Resync => {
                self.look_at_all();
                self.watermark.done(seq);
            }
            Item::Found { change, not_before } => self.change(seq, change, not_before),
            Item::Change { change, at } => {
                self.change(seq, change, guard_before(at, self.context.guard));
            }
        }
    }

    /// Makes every look due now. A lane at work has its own look, after that.
    fn look_at_all(&mut self) {
        let now = Instant::now();
        let mut at_work = Vec::new();
        for (key, lane) in &mut self.lanes {
            match &mut lane.open {
                Some(open) if lane.queue.is_empty() => {
                    open.next_look = now;
                    self.timer.set(now, key.clone());
                }
                _ => at_work.push(key.clone()),
            }
        }
        for key in at_work {
            self.enqueue(key, None, Task::Look);
        }
    }

    fn change(&mut self, seq: Seq, change: Change, not_before: Timestamp) {
        match change {
            Change::Response(response) => {
                self.context.metrics.event(Seen::Taken);
                let key = response.key.clone();
                self.enqueue(
                    key,
                    Some(seq),
                    Task::Learn {
                        response,
                        not_before,
                    },
                );
            }
            Change::Content(content) => self.fetch(seq, content, not_before),
            Change::Conversation(change) => self.conversation(seq, change),
            Change::Structure(_) => self.watermark.done(seq),
        }
    }

    /// Reads a message of which the stream gave the `_id` alone.
    fn fetch(&mut self, seq: Seq, set: ContentSet, at: Timestamp) {
        self.fetching += 1;
        let context = Arc::clone(&self.context);
        self.tasks.spawn(async move {
            let read = || {
                context
                    .messages
                    .response(&context.tools, set.message, set.saved_at)
            };
            let response = context.patiently("reading a response", read).await;
            Output::Fetched { seq, at, response }
        });
    }

    fn conversation(&mut self, seq: Seq, change: ConversationChange) {
        let known = self.by_id.get(&change.object_id).cloned();
        let key = known.or_else(|| {
            change
                .key
                .clone()
                .filter(|key| self.lanes.contains_key(key))
        });
        match key {
            Some(key) => {
                self.bind(&key, change.object_id);
                self.written(key, seq, change);
            }
            None if self.is_learning() => self.unclaimed.push((seq, change)),
            None => self.skip(seq),
        }
    }

    fn written(&mut self, key: ConversationKey, seq: Seq, change: ConversationChange) {
        self.context.metrics.event(Seen::Taken);
        let since = Instant::now();
        self.enqueue(key, Some(seq), Task::Written { change, since });
    }

    fn skip(&mut self, seq: Seq) {
        self.context.metrics.event(Seen::Skipped);
        self.watermark.done(seq);
    }

    /// Whether a conversation is being learned of whose `_id` is not known yet.
    fn is_learning(&self) -> bool {
        self.fetching > 0 || !self.learning.is_empty()
    }

    fn bind(&mut self, key: &ConversationKey, conversation: ObjectId) {
        let Some(lane) = self.lanes.get_mut(key) else {
            return;
        };
        if lane.conversation == Some(conversation) {
            return;
        }
        if let Some(former) = lane.conversation.replace(conversation) {
            self.by_id.remove(&former);
        }
        self.by_id.insert(conversation, key.clone());
        self.learning.remove(key);
        let claimed: Vec<_> = self
            .unclaimed
            .extract_if(.., |(_, change)| change.object_id == conversation)
            .collect();
        for (seq, change) in claimed {
            self.written(key.clone(), seq, change);
        }
    }

    fn enqueue(&mut self, key: ConversationKey, seq: Option<Seq>, task: Task) {
        let lane = self.lanes.entry(key.clone()).or_default();
        if lane.conversation.is_none() {
            self.learning.insert(key.clone());
        }
        if !lane.busy && lane.queue.is_empty() {
            self.ready.push_back(key);
        }
        lane.queue.push_back((seq, task));
    }

    fn hand_out(&mut self) {
        while self.workers < WORKERS {
            let Some(key) = self.ready.pop_front() else {
                break;
            };
            let Some(lane) = self.lanes.get_mut(&key) else {
                continue;
            };
            let Some((seq, task)) = lane.queue.pop_front() else {
                continue;
            };
            lane.busy = true;
            let open = lane.open.take();
            let context = Arc::clone(&self.context);
            let span =
                tracing::info_span!("switch", conversation = %key.conversation, user = %key.user);
            self.workers += 1;
            self.tasks
                .spawn(async move { work(&context, key, seq, task, open).await }.instrument(span));
        }
        if !self.unclaimed.is_empty() && !self.is_learning() {
            for (seq, _) in std::mem::take(&mut self.unclaimed) {
                self.skip(seq);
            }
        }
    }

    fn finished(&mut self, output: Result<Output, JoinError>) -> Result<(), Undone> {
        match output {
            Ok(Output::Worked {
                key,
                seq,
                open,
                outcome,
            }) => {
                self.workers -= 1;
                self.context.bell.ring(&key.conversation);
                self.worked(key, open);
                let abandoned = matches!(outcome, Err(Undone::Abandoned));
                settle(outcome)?;
                if let Some(seq) = seq.filter(|_| !abandoned) {
                    self.watermark.done(seq);
                }
            }
            Ok(Output::Fetched { seq, at, response }) => {
                let abandoned = matches!(response, Err(Undone::Abandoned));
                match settle(response)?.flatten() {
                    Some(response) => self.change(seq, Change::Response(response), at),
                    None if abandoned => {}
                    None => self.watermark.done(seq),
                }
                self.fetching -= 1;
            }
            Ok(Output::Glanced(keys, glances)) => {
                self.glancing = false;
                let glances = settle(glances)?;
                self.glanced(keys, glances);
            }
            Ok(Output::Synced(open)) => {
                self.syncing = false;
                if let Some(open) = settle(open)? {
                    self.adopt(open);
                }
            }
            Ok(Output::Saved(outcome)) => {
                self.saving = false;
                if settle(outcome)?.is_some() {
                    self.context.metrics.saved();
                }
            }
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        }
        Ok(())
    }

    /// Takes back what a worker was lent.
    fn worked(&mut self, key: ConversationKey, mut open: Option<Box<Open>>) {
        if let Some(conversation) = open.as_mut().and_then(|open| open.read.take()) {
            self.bind(&key, conversation);
        }
        let Some(lane) = self.lanes.get_mut(&key) else {
            return;
        };
        lane.busy = false;
        lane.open = open;
        if lane.counted != lane.open.is_some() {
            lane.counted = lane.open.is_some();
            let change = if lane.counted { 1 } else { -1 };
            self.context.metrics.guarded(change);
        }
        if let Some(open) = &lane.open {
            self.timer.set(open.next_look, key.clone());
        }
        if !lane.queue.is_empty() {
            self.ready.push_back(key);
            return;
        }
        // Thousands of guarded conversations are idle, and need no room for work.
        lane.queue = VecDeque::new();
        self.learning.remove(&key);
        if lane.open.is_none()
            && let Some(conversation) = self.lanes.remove(&key).and_then(|lane| lane.conversation)
        {
            self.by_id.remove(&conversation);
        }
    }

    /// Glances at the conversations whose look is due, all at once.
    fn look_at_due(&mut self) {
        let now = Instant::now();
        let mut due = Vec::new();
        let mut seen = HashSet::new();
        while due.len() < GLANCE {
            let Some((at, key)) = self.timer.pop_due(now) else {
                break;
            };
            let open = self.lanes.get(&key).and_then(|lane| lane.open.as_ref());
            if let Some(open) = open.filter(|open| open.next_look == at)
                && seen.insert(key.clone())
            {
                due.push((key, open.switch.turn()));
            }
        }
        if due.is_empty() {
            return;
        }
        for (key, _) in &due {
            // Changes of it that come before the glance is taken in are not to be lost.
            if self
                .lanes
                .get(key)
                .is_some_and(|lane| lane.conversation.is_none())
            {
                self.learning.insert(key.clone());
            }
        }
        self.glancing = true;
        let context = Arc::clone(&self.context);
        self.tasks.spawn(async move {
            let look = || glance(&context.conversations, &context.messages, &due);
            let glances = context
                .patiently("looking at the open switches", look)
                .await;
            Output::Glanced(keys(due), glances)
        });
    }

    /// `None`: MongoDB refused to show anything; it is tried again at the next look.
    fn glanced(&mut self, keys: Vec<ConversationKey>, glances: Option<Vec<Glance>>) {
        let glances = glances.map_or_else(
            || keys.iter().map(|_| None).collect(),
            |glances| glances.into_iter().map(Some).collect::<Vec<_>>(),
        );
        for (key, glance) in keys.into_iter().zip(glances) {
            let seen = glance
                .as_ref()
                .and_then(|glance| glance.conversation.as_ref());
            if let Some(conversation) = seen {
                self.bind(&key, conversation.object_id);
            }
            let Some(lane) = self.lanes.get_mut(&key) else {
                continue;
            };
            let waits = lane.busy || !lane.queue.is_empty();
            if !waits {
                self.learning.remove(&key);
            }
            let Some(open) = lane.open.as_mut() else {
                continue;
            };
            open.begun_from_spec |= seen.is_some_and(|conversation| conversation.spec.is_some());
            let may_wait = glance
                .as_ref()
                .is_none_or(|glance| self.context.may_wait(open, seen, &glance.turn));
            if may_wait {
                open.look_later();
                self.timer.set(open.next_look, key);
            } else {
                self.enqueue(key, None, Task::Look);
            }
        }
    }

    /// Guards switches that another instance, or this one before a restart, left open.
    fn adopt(&mut self, open: OpenSince) {
        self.synced = self.synced.max(open.newest);
        for switch in open.switches {
            let key = switch.key.clone();
            let lane = self.lanes.entry(key.clone()).or_default();
            match &lane.open {
                Some(open) if open.switch.id == switch.id => {}
                // Its worker may know it, or be about to; the next time will show.
                _ if lane.busy => {}
                None if lane.queue.is_empty() => {
                    let mut adopted = Open::new(switch, false, self.context.guard);
                    adopted.next_look = Instant::now();
                    self.timer.set(adopted.next_look, key);
                    lane.open = Some(adopted);
                }
                _ => self.enqueue(key, None, Task::Adopt(Box::new(switch))),
            }
        }
    }

    fn sync(&mut self) {
        self.syncing = true;
        let since = self.synced.map(|at| {
            let overlap = i64::try_from(SYNC_OVERLAP.as_millis()).unwrap_or(i64::MAX);
            DateTime::from_millis(at.timestamp_millis().saturating_sub(overlap))
        });
        let guarded = self.lanes.values().filter_map(|lane| lane.open.as_ref());
        let known: HashSet<ObjectId> = guarded.map(|open| open.switch.id).collect();
        let context = Arc::clone(&self.context);
        self.tasks.spawn(async move {
            let read = || context.store.open_since(since, &known);
            Output::Synced(context.patiently("reading the open switches", read).await)
        });
    }

    fn save(&mut self) {
        let Some(position) = self.watermark.take() else {
            return;
        };
        self.saving = true;
        let context = Arc::clone(&self.context);
        let checkpoints = self.checkpoints.clone();
        self.tasks.spawn(async move {
            let save = || checkpoints.save(&position);
            Output::Saved(
                context
                    .patiently("saving the position in the stream", save)
                    .await,
            )
        });
    }
}

fn keys(due: Vec<(ConversationKey, TurnRef)>) -> Vec<ConversationKey> {
    due.into_iter().map(|(key, _)| key).collect()
}

/// A refusal of one command costs that command; all else is passed on.
fn settle<T>(outcome: Result<T, Undone>) -> Result<Option<T>, Undone> {
    match outcome {
        Ok(value) => Ok(Some(value)),
        Err(error @ Undone::Refused { .. }) => {
            tracing::error!(%error, "MongoDB refuses it; given up");
            Ok(None)
        }
        Err(Undone::Abandoned | Undone::TooLate) => Ok(None),
        Err(error @ Undone::Final { .. }) => Err(error),
    }
}

async fn work(
    context: &Context,
    key: ConversationKey,
    seq: Option<Seq>,
    task: Task,
    mut open: Option<Box<Open>>,
) -> Output {
    let outcome = match task {
        Task::Learn {
            response,
            not_before,
        } => context.learn(&mut open, &response, not_before).await,
        Task::Written { change, since } => match &mut open {
            Some(guarded) => {
                let after = context.written(guarded, &change, since).await;
                keep(after, &mut open)
            }
            None => Ok(()),
        },
        Task::Look => look(context, &mut open).await,
        Task::Adopt(switch) => match context.adopt(&mut open, *switch).await {
            Ok(()) => look(context, &mut open).await,
            Err(error) => Err(error),
        },
        Task::Call(called) => context.call(&mut open, &key, *called).await,
        Task::Choose(choice) => context.choose(&mut open, &key, choice).await,
    };
    Output::Worked {
        key,
        seq,
        open,
        outcome,
    }
}

async fn look(context: &Context, open: &mut Option<Box<Open>>) -> Result<(), Undone> {
    let Some(guarded) = open else { return Ok(()) };
    guarded.look_later();
    let after = context.look(guarded).await;
    keep(after, open)
}

fn keep(after: Result<After, Undone>, open: &mut Option<Box<Open>>) -> Result<(), Undone> {
    if let After::Closed = after? {
        *open = None;
    }
    Ok(())
}
