//! Whether this process does its work: what the service manager and the load balancer ask.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde::Serialize;
use tokio::sync::watch;
use tokio::time::Instant;

/// How long MongoDB may be silent on an open stream, so that `/readyz` says so within 5 s. It
/// answers at least once a second, also where there is nothing to say (`maxAwaitTimeMS`).
pub const MAX_SILENCE: Duration = Duration::from_secs(4);

/// How long the main loop may go without a sign of life. More than the driver's longest wait for
/// a server (30 s): a database that is away is no reason to restart.
pub const MAX_STALL: Duration = Duration::from_secs(120);

/// The shared state of health. Clones are views of the same.
#[derive(Clone, Debug)]
pub struct Health {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    start: Instant,
    /// Milliseconds after `start`; zero: never.
    replied: AtomicU64,
    beat: AtomicU64,
    state: watch::Sender<State>,
}

#[derive(Clone, Debug)]
struct State {
    stream: Result<(), String>,
    store: Result<(), String>,
    draining: bool,
}

/// One named check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// What was looked at.
    pub name: &'static str,
    /// Whether it is in order.
    pub ok: bool,
    /// What is wrong, where it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// All checks at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Whether every check is in order.
    pub ready: bool,
    /// The checks.
    pub checks: Vec<Check>,
}

impl Default for Health {
    fn default() -> Self {
        Self::new()
    }
}

impl Health {
    /// The health of a process that has just begun: not ready yet.
    #[must_use]
    pub fn new() -> Self {
        let state = State {
            stream: Err("not opened yet".to_owned()),
            store: Err("not reached yet".to_owned()),
            draining: false,
        };
        Self {
            inner: Arc::new(Inner {
                start: Instant::now(),
                replied: AtomicU64::new(0),
                beat: AtomicU64::new(0),
                state: watch::Sender::new(state),
            }),
        }
    }

    /// The main loop lives. To be called at every turn of it, while it waits to try again too.
    pub fn beat(&self) {
        self.inner.beat.store(self.now(), Ordering::Relaxed);
    }

    /// MongoDB has answered on the change stream, be it with nothing. A sign of life as well.
    pub fn replied(&self) {
        self.inner.replied.store(self.now(), Ordering::Relaxed);
        self.beat();
    }

    /// The change stream is open.
    pub fn stream_opened(&self) {
        self.replied();
        self.change(|state| &mut state.stream, Ok(()));
    }

    /// The change stream is not open; `why` is for the operator, and holds no secret.
    pub fn stream_lost(&self, why: impl Into<String>) {
        self.change(|state| &mut state.stream, Err(why.into()));
    }

    /// The state database takes what it is given.
    pub fn store_ok(&self) {
        self.change(|state| &mut state.store, Ok(()));
    }

    /// The state database does not; `why` is for the operator, and holds no secret.
    pub fn store_failed(&self, why: impl Into<String>) {
        self.change(|state| &mut state.store, Err(why.into()));
    }

    /// The process is about to end: it is not ready from now on.
    pub fn drain(&self) {
        self.inner.state.send_modify(|state| state.draining = true);
    }

    /// Whether the main loop has shown a sign of life of late. Before its first one it has.
    #[must_use]
    pub fn alive(&self) -> bool {
        self.since(&self.inner.beat)
            .is_none_or(|silence| silence <= MAX_STALL)
    }

    /// What is in order and what is not.
    #[must_use]
    pub fn report(&self) -> Report {
        let state = self.inner.state.borrow().clone();
        let silence = self.since(&self.inner.replied).filter(|s| *s > MAX_SILENCE);
        let stream = match (state.stream, silence) {
            (Ok(()), Some(silence)) => Err(format!(
                "MongoDB has not answered for {} s",
                silence.as_secs()
            )),
            (stream, _) => stream,
        };
        let mut checks = vec![
            Check::new("change stream", stream),
            Check::new("state database", state.store),
        ];
        if state.draining {
            checks.push(Check::new("process", Err("shutting down".to_owned())));
        }
        Report {
            ready: checks.iter().all(|check| check.ok),
            checks,
        }
    }

    /// Notes `value`, where it is news.
    fn change(
        &self,
        field: impl FnOnce(&mut State) -> &mut Result<(), String>,
        value: Result<(), String>,
    ) {
        self.inner.state.send_if_modified(|state| {
            let field = field(state);
            let news = *field != value;
            *field = value;
            news
        });
    }

    /// Milliseconds after the start, counted from one: zero is never.
    fn now(&self) -> u64 {
        let elapsed = self.inner.start.elapsed().as_millis();
        u64::try_from(elapsed).unwrap_or(u64::MAX).saturating_add(1)
    }

    fn since(&self, mark: &AtomicU64) -> Option<Duration> {
        match mark.load(Ordering::Relaxed) {
            0 => None,
            mark => Some(Duration::from_millis(self.now().saturating_sub(mark))),
        }
    }
}

impl Check {
    fn new(name: &'static str, outcome: Result<(), String>) -> Self {
        Self {
            name,
            ok: outcome.is_ok(),
            detail: outcome.err(),
        }
    }
}

impl Report {
    /// One line for a service manager.
    #[must_use]
    pub fn summary(&self) -> String {
        let wrong: Vec<_> = (self.checks.iter())
            .filter_map(|check| Some(format!("{}: {}", check.name, check.detail.as_ref()?)))
            .collect();
        if wrong.is_empty() {
            "watching".to_owned()
        } else {
            wrong.join("; ")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::advance;

    fn healthy() -> Health {
        let health = Health::new();
        health.stream_opened();
        health.store_ok();
        health
    }

    #[tokio::test(start_paused = true)]
    async fn begins_unready_and_says_what_is_missing() {
        let report = Health::new().report();
        assert!(!report.ready);
        assert_eq!(
            report.summary(),
            "change stream: not opened yet; state database: not reached yet"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn is_ready_while_the_stream_answers() {
        let health = healthy();
        for _ in 0..10 {
            advance(MAX_SILENCE).await;
            assert!(health.report().ready);
            health.replied();
        }
        assert_eq!(health.report().summary(), "watching");
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_stream_is_not_ready() {
        let health = healthy();
        advance(MAX_SILENCE + Duration::from_secs(1)).await;
        assert_eq!(
            health.report().summary(),
            "change stream: MongoDB has not answered for 5 s"
        );
        assert!(health.alive());
    }

    #[tokio::test(start_paused = true)]
    async fn a_lost_stream_or_store_is_not_ready_until_it_is_back() {
        let health = healthy();
        health.stream_lost("no primary");
        assert_eq!(health.report().summary(), "change stream: no primary");
        health.stream_opened();
        health.store_failed("not authorised");
        assert_eq!(health.report().summary(), "state database: not authorised");
        health.store_ok();
        assert!(health.report().ready);
    }

    #[tokio::test(start_paused = true)]
    async fn a_stalled_loop_is_not_alive_and_one_that_has_not_begun_is() {
        let health = Health::new();
        advance(MAX_STALL * 2).await;
        assert!(health.alive());
        health.beat();
        advance(MAX_STALL).await;
        assert!(health.alive());
        advance(Duration::from_secs(1)).await;
        assert!(!health.alive());
    }

    #[tokio::test(start_paused = true)]
    async fn draining_is_not_ready() {
        let health = healthy();
        health.drain();
        assert_eq!(health.report().summary(), "process: shutting down");
    }
}
