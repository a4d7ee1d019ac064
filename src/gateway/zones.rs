//! The time zones of users, as their clients say them when they begin a turn: a prompt may name
//! the time. They are known by the credentials that go with them, and forgotten with the process.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;

use crate::digest;

/// More than this many are not remembered.
const MOST: usize = 4096;

/// The time zones.
#[derive(Default)]
pub(super) struct Zones(Mutex<HashMap<String, String>>);

impl Zones {
    /// A client has begun a turn.
    pub(super) fn note(&self, headers: &HeaderMap, zone: Option<String>) {
        let (Some(who), Some(zone)) = (who(headers), zone) else {
            return;
        };
        let mut zones = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if zones.len() >= MOST && !zones.contains_key(&who) {
            zones.clear();
        }
        zones.insert(who, zone);
    }

    /// The time zone of whoever has these credentials.
    pub(super) fn of(&self, headers: &HeaderMap) -> Option<String> {
        let zones = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        zones.get(&who(headers)?).cloned()
    }
}

/// The credentials themselves are not kept.
fn who(headers: &HeaderMap) -> Option<String> {
    let shown = headers.get(AUTHORIZATION)?;
    Some(digest::hex([shown.as_bytes()], 16))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zone_is_its_users() {
        let headers = |token: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(AUTHORIZATION, token.parse().unwrap());
            headers
        };
        let zones = Zones::default();
        zones.note(&headers("Bearer a"), Some("Europe/Berlin".to_owned()));
        zones.note(&headers("Bearer a"), None);
        zones.note(&HeaderMap::new(), Some("UTC".to_owned()));
        assert_eq!(
            zones.of(&headers("Bearer a")).as_deref(),
            Some("Europe/Berlin")
        );
        assert_eq!(zones.of(&headers("Bearer b")), None);
    }
}
