//! Whose credentials these are, remembered for a moment.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mongodb::bson::oid::ObjectId;
use sha2::{Digest, Sha256};
use tokio::sync::OnceCell;
use tokio::time::Instant;

/// How long an answer of LibreChat's holds: a session that is ended there ends here soon after.
const HOLDS: Duration = Duration::from_secs(10);

/// More than this many are not remembered.
const MOST: usize = 10_000;

/// Credentials, of which nothing can be told from this.
pub(super) type Fingerprint = [u8; 32];

/// An answer that may still be awaited.
type Answer = Arc<OnceCell<ObjectId>>;

/// One question for many requests with the same credentials, and its answer for some seconds.
/// Only a success is remembered.
#[derive(Debug, Default)]
pub(super) struct Cache {
    known: Mutex<HashMap<Fingerprint, (Instant, Answer)>>,
}

impl Cache {
    /// The answer for these credentials; `ask` is awaited where there is none.
    pub(super) async fn get<E>(
        &self,
        credentials: Fingerprint,
        ask: impl Future<Output = Result<ObjectId, E>>,
    ) -> Result<ObjectId, E> {
        let cell = self.cell(credentials, Instant::now());
        cell.get_or_try_init(|| ask).await.copied()
    }

    fn cell(&self, credentials: Fingerprint, now: Instant) -> Answer {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((until, cell)) = known.get(&credentials)
            && *until > now
        {
            return Arc::clone(cell);
        }
        if known.len() >= MOST {
            known.retain(|_, (until, _)| *until > now);
        }
        let cell = Answer::default();
        if known.len() < MOST {
            known.insert(credentials, (now + HOLDS, Arc::clone(&cell)));
        }
        cell
    }
}

/// The fingerprint of headers' values, in their order.
pub(super) fn fingerprint<'a>(values: impl Iterator<Item = &'a [u8]>) -> Fingerprint {
    let mut hash = Sha256::new();
    for value in values {
        // The length before the value: what one header ends with is not what the next begins with.
        hash.update((value.len() as u64).to_be_bytes());
        hash.update(value);
    }
    hash.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_success_holds_for_a_while_and_a_failure_does_not() {
        let (cache, id) = (Cache::default(), ObjectId::new());
        let failed: Result<_, &str> = cache.get([0; 32], async { Err("away") }).await;
        assert_eq!(failed, Err("away"));
        let asked: Result<_, &str> = cache.get([0; 32], async { Ok(id) }).await;
        assert_eq!(asked, Ok(id));
        let known: Result<_, &str> = cache.get([0; 32], async { Err("asked again") }).await;
        assert_eq!(known, Ok(id));
        tokio::time::advance(HOLDS).await;
        let again: Result<_, &str> = cache.get([0; 32], async { Err("asked again") }).await;
        assert_eq!(again, Err("asked again"));
    }

    #[test]
    fn credentials_are_told_apart_wherever_they_stand() {
        let of = |values: &[&str]| fingerprint(values.iter().map(|value| value.as_bytes()));
        assert_ne!(of(&["ab", "c"]), of(&["a", "bc"]));
        assert_ne!(of(&["a"]), of(&["a", ""]));
    }
}
