//! From the start of the process to its exit code: signals, tasks, and the service manager.

use std::convert::Infallible;
use std::fmt::Display;
use std::future::pending;
use std::io;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sd_notify::NotifyState;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::spawn_blocking;
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{error, info, warn};

use crate::health::Health;

/// How long tasks have to save what they hold. Less than the least that Docker gives (10 s) would
/// leave it unused; more would end in a `SIGKILL`.
pub const DRAIN: Duration = Duration::from_secs(9);

/// How long the service manager may take to listen at the end.
const TOLD: Duration = Duration::from_secs(1);

/// How often the service manager is told, where there is news.
const STATUS_EVERY: Duration = Duration::from_secs(1);

/// What a shell gives a process that a signal ended, less the signal's number.
const KILLED: u8 = 128;

/// Owns the signals and the tasks of the process.
///
/// Tasks get [`Lifecycle::token`] and end soon after it is cancelled, having saved what they hold.
/// A task that fails, panics or ends by itself takes the process with it, since half of it is of
/// no use to anyone: the service manager starts it again.
#[derive(Debug)]
pub struct Lifecycle {
    token: CancellationToken,
    tasks: TaskTracker,
    failed: Arc<AtomicBool>,
    signals: Signals,
    drain: Duration,
}

impl Lifecycle {
    /// Takes over the signals of the process. Needs a Tokio runtime.
    ///
    /// # Errors
    ///
    /// Where the signals cannot be taken over.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            token: CancellationToken::new(),
            tasks: TaskTracker::new(),
            failed: Arc::default(),
            signals: Signals::new()?,
            drain: DRAIN,
        })
    }

    /// Cancelled when it is time to finish. Whoever cancels it asks the process to end well.
    #[must_use]
    pub fn token(&self) -> CancellationToken {
        self.token.clone()
    }

    /// Starts a task that belongs to the process.
    pub fn spawn<E: Display>(
        &self,
        name: &'static str,
        task: impl Future<Output = Result<(), E>> + Send + 'static,
    ) {
        let end = End {
            token: self.token.clone(),
            failed: Arc::clone(&self.failed),
            well: false,
        };
        self.tasks.spawn(async move {
            match task.await {
                Ok(()) if end.token.is_cancelled() => end.well(),
                Ok(()) => error!(task = name, "task ended by itself"),
                Err(error) => error!(task = name, %error, "task failed"),
            }
        });
    }

    /// Waits for the end, tells the service manager on the way, and returns the exit code: 0
    /// after a signal and a clean end, 1 after a failure or where tasks did not end in time, and
    /// 128 plus its number after a second signal.
    pub async fn run(mut self, health: &Health) -> ExitCode {
        let watch = watch(health);
        tokio::pin!(watch);

        tokio::select! {
            never = &mut watch => match never {},
            () = self.token.cancelled() => {}
            (name, _) = self.signals.next() => info!(signal = name, "shutting down"),
        }
        health.drain();
        self.token.cancel();
        self.tasks.close();
        let stopping = tell(|| sd_notify::notify(&[NotifyState::Stopping]));
        let ended = async { tokio::join!(timeout(TOLD, stopping), self.tasks.wait()) };

        tokio::select! {
            never = &mut watch => match never {},
            drained = timeout(self.drain, ended) => if drained.is_err() {
                error!(tasks = self.tasks.len(), "tasks did not end in time");
                self.failed.store(true, Ordering::Relaxed);
            },
            (name, number) = self.signals.next() => {
                warn!(signal = name, "second signal, not waiting any longer");
                return ExitCode::from(KILLED + number);
            }
        }
        if self.failed.load(Ordering::Relaxed) {
            return ExitCode::FAILURE;
        }
        info!("done");
        ExitCode::SUCCESS
    }
}

/// The end of a task: that of the process too, unless it is well. Dropped, as by a panic, it is not.
struct End {
    token: CancellationToken,
    failed: Arc<AtomicBool>,
    well: bool,
}

impl End {
    fn well(mut self) {
        self.well = true;
    }
}

impl Drop for End {
    fn drop(&mut self) {
        if !self.well {
            self.failed.store(true, Ordering::Relaxed);
            self.token.cancel();
        }
    }
}

#[derive(Debug)]
struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    async fn next(&mut self) -> (&'static str, u8) {
        tokio::select! {
            Some(()) = self.terminate.recv() => ("SIGTERM", 15),
            Some(()) = self.interrupt.recv() => ("SIGINT", 2),
            else => pending().await,
        }
    }
}

/// Tells the service manager that the process lives, while it does, and how it is.
async fn watch(health: &Health) -> Infallible {
    tell(|| sd_notify::notify(&[NotifyState::Ready])).await;
    tokio::join!(watchdog(health), status(health)).0
}

async fn watchdog(health: &Health) -> Infallible {
    let Some(limit) = sd_notify::watchdog_enabled().filter(|limit| !limit.is_zero()) else {
        return pending().await;
    };
    let mut ticks = interval(limit / 2);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        if health.alive() {
            tell(|| sd_notify::notify(&[NotifyState::Watchdog])).await;
        } else {
            error!("the main loop has stalled, the service manager is to restart this process");
        }
    }
}

async fn status(health: &Health) -> Infallible {
    let mut ticks = interval(STATUS_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut last = String::new();
    loop {
        ticks.tick().await;
        let now = health.report().summary();
        if now != last {
            last.clone_from(&now);
            tell(move || sd_notify::notify(&[NotifyState::Status(&now)])).await;
        }
    }
}

/// Tells the service manager, where there is one (`NOTIFY_SOCKET`). It may be slow to listen, which
/// blocks the caller: so that is another thread, and the end of the process does not wait for it.
async fn tell(notify: impl FnOnce() -> io::Result<()> + Send + 'static) {
    if let Ok(Err(error)) = spawn_blocking(notify).await {
        warn!(%error, "cannot tell the service manager");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn exit_code(lifecycle: Lifecycle) -> ExitCode {
        lifecycle.run(&Health::new()).await
    }

    #[tokio::test(start_paused = true)]
    async fn tasks_that_end_when_asked_end_well() {
        let lifecycle = Lifecycle::new().unwrap();
        let token = lifecycle.token();
        lifecycle.spawn("good", async move {
            token.cancelled().await;
            Ok::<_, Infallible>(())
        });
        lifecycle.token().cancel();
        assert_eq!(exit_code(lifecycle).await, ExitCode::SUCCESS);
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_that_fails_takes_the_others_with_it() {
        let lifecycle = Lifecycle::new().unwrap();
        let token = lifecycle.token();
        lifecycle.spawn("good", async move {
            token.cancelled().await;
            Ok::<_, Infallible>(())
        });
        lifecycle.spawn("bad", async { Err("broken") });
        assert_eq!(exit_code(lifecycle).await, ExitCode::FAILURE);
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_that_ends_by_itself_is_a_failure() {
        let lifecycle = Lifecycle::new().unwrap();
        lifecycle.spawn("hasty", async { Ok::<_, Infallible>(()) });
        assert_eq!(exit_code(lifecycle).await, ExitCode::FAILURE);
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_that_panics_is_a_failure() {
        let lifecycle = Lifecycle::new().unwrap();
        lifecycle.spawn::<Infallible>("clumsy", async { panic!("on purpose") });
        assert_eq!(exit_code(lifecycle).await, ExitCode::FAILURE);
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_that_does_not_end_is_left_behind() {
        let lifecycle = Lifecycle::new().unwrap();
        lifecycle.spawn::<Infallible>("stuck", pending());
        lifecycle.token().cancel();
        assert_eq!(exit_code(lifecycle).await, ExitCode::FAILURE);
    }
}
