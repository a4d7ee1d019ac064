//! How many requests a client may make: so many in a time, and a burst of more at once.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::config::RateLimit;

/// From this many clients on those are forgotten that have not asked for a while.
const MANY: usize = 10_000;

/// More clients than this are not told apart: memory is worth more than fairness by then.
const TOO_MANY: usize = 200_000;

/// Limits the requests of each client, by the generic cell rate algorithm: a client has one
/// number, the time at which it will have its whole burst again.
#[derive(Debug)]
pub(crate) struct Limiter<K> {
    /// What a request costs.
    cost: Duration,
    /// How far ahead of the present a client may get.
    burst: Duration,
    clients: Mutex<Clients<K>>,
}

#[derive(Debug)]
struct Clients<K> {
    full_at: HashMap<K, Instant>,
    /// From this many on it is time to forget some.
    sweep_at: usize,
}

impl<K: Eq + Hash> Limiter<K> {
    pub(crate) fn new(limit: RateLimit) -> Self {
        let cost = limit.per / limit.requests;
        Self {
            cost,
            burst: cost * limit.burst,
            clients: Mutex::new(Clients {
                full_at: HashMap::new(),
                sweep_at: MANY,
            }),
        }
    }

    /// Takes one request of a client's. `Err`: it may ask again after this time.
    pub(crate) fn take(&self, client: K) -> Result<(), Duration> {
        self.take_at(client, Instant::now())
    }

    fn take_at(&self, client: K, now: Instant) -> Result<(), Duration> {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if clients.full_at.len() >= clients.sweep_at {
            clients.full_at.retain(|_, full_at| *full_at > now);
            clients.sweep_at = (clients.full_at.len() * 2).max(MANY);
        }
        let known = clients.full_at.get(&client).copied();
        if known.is_none() && clients.full_at.len() >= TOO_MANY {
            return Err(self.cost);
        }
        let full_at = known.map_or(now, |at| at.max(now)) + self.cost;
        let ahead = full_at.saturating_duration_since(now);
        if let Some(wait) = ahead.checked_sub(self.burst)
            && !wait.is_zero()
        {
            return Err(wait);
        }
        clients.full_at.insert(client, full_at);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LIMIT: RateLimit = RateLimit {
        requests: 20,
        per: Duration::from_secs(1),
        burst: 200,
    };

    #[test]
    fn a_burst_passes_and_then_the_rate() {
        let (limiter, now) = (Limiter::new(LIMIT), Instant::now());
        for _ in 0..200 {
            assert_eq!(limiter.take_at("one", now), Ok(()));
        }
        assert_eq!(limiter.take_at("one", now), Err(Duration::from_millis(50)));
        assert_eq!(limiter.take_at("another", now), Ok(()));
        let later = now + Duration::from_millis(50);
        assert_eq!(limiter.take_at("one", later), Ok(()));
        assert!(limiter.take_at("one", later).is_err());
    }

    #[test]
    fn those_that_have_not_asked_for_a_while_are_forgotten() {
        let (limiter, now) = (Limiter::new(LIMIT), Instant::now());
        for client in 0..MANY {
            assert_eq!(limiter.take_at(client, now), Ok(()));
        }
        let later = now + Duration::from_secs(1);
        assert_eq!(limiter.take_at(MANY, later), Ok(()));
        assert_eq!(limiter.clients.lock().unwrap().full_at.len(), 1);
    }

    proptest! {
        #[test]
        fn never_more_than_the_burst_and_the_rate(gaps in prop::collection::vec(0u64..100, 1..2000)) {
            let limiter = Limiter::new(RateLimit { burst: 5, ..LIMIT });
            let start = Instant::now();
            let mut passed = 0u64;
            let mut at = Duration::ZERO;
            for gap in gaps {
                at += Duration::from_millis(gap);
                passed += u64::from(limiter.take_at((), start + at).is_ok());
                let most = 5 + u64::try_from(at.as_millis()).unwrap() / 50;
                prop_assert!(passed <= most, "{passed} of {most} after {at:?}");
            }
        }
    }
}
