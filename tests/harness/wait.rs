//! Waiting on conditions. No test sleeps for a fixed time in the hope that something has happened.

use std::time::{Duration, Instant};

/// Long enough for a machine under load; a test that passes never waits for it.
const DEADLINE: Duration = Duration::from_secs(30);
const FIRST_PAUSE: Duration = Duration::from_millis(2);
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// Asks `probe` again and again until it answers, and panics where it never does.
pub async fn eventually<T>(what: &str, mut probe: impl AsyncFnMut() -> Option<T>) -> T {
    let started = Instant::now();
    let mut pause = FIRST_PAUSE;
    loop {
        if let Some(answer) = probe().await {
            return answer;
        }
        assert!(
            started.elapsed() < DEADLINE,
            "in {DEADLINE:?} it did not come about: {what}"
        );
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// [`eventually`] for a plain condition.
pub async fn holds(what: &str, mut condition: impl AsyncFnMut() -> bool) {
    eventually(what, async || condition().await.then_some(())).await;
}
