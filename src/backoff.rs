//! Waiting longer after each failure, and a little differently each time.

use std::time::Duration;

/// Exponential, with full jitter, from `first` up to `most`; resets on success.
#[derive(Clone, Debug)]
pub struct Backoff {
    first: Duration,
    most: Duration,
    failures: u32,
}

impl Backoff {
    /// Waits of about `first`, then twice that, and so on up to `most`.
    #[must_use]
    pub fn new(first: Duration, most: Duration) -> Self {
        Self {
            first,
            most,
            failures: 0,
        }
    }

    /// For operations on MongoDB: from 50 ms to 5 s.
    #[must_use]
    pub fn for_mongodb() -> Self {
        Self::new(Duration::from_millis(50), Duration::from_secs(5))
    }

    /// The next wait: between half and all of the doubled one.
    pub fn next_wait(&mut self) -> Duration {
        let doubled = self
            .first
            .saturating_mul(2u32.saturating_pow(self.failures.min(20)));
        self.failures = self.failures.saturating_add(1);
        doubled.min(self.most).mul_f64(0.5 + fastrand::f64() / 2.0)
    }

    /// How often it has failed since the last success.
    #[must_use]
    pub fn failures(&self) -> u32 {
        self.failures
    }

    /// Begins anew.
    pub fn reset(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_limit_and_reset_on_success() {
        let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(1));
        for expected in [100u64, 200, 400, 800, 1000, 1000] {
            let wait = backoff.next_wait();
            assert!(
                wait <= Duration::from_millis(expected),
                "{wait:?} after {expected}"
            );
            assert!(
                wait >= Duration::from_millis(expected / 2),
                "{wait:?} after {expected}"
            );
        }
        backoff.reset();
        assert!(backoff.next_wait() <= Duration::from_millis(100));
    }

    #[test]
    fn never_overflows() {
        let mut backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(60));
        for _ in 0..100 {
            assert!(backoff.next_wait() <= Duration::from_secs(60));
        }
    }
}
