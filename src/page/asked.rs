//! What a page asks to see.

use std::time::Duration;

use serde::{Deserialize, Deserializer};

use crate::http::Backend;
use crate::librechat::AgentId;
use crate::switch::overview::Wanted;
use crate::switch::record::Status;

/// No name and no id is longer than this; what is, finds nothing.
const LONGEST: usize = 512;

/// The query of a request. What is empty or unknown is as if it were not there.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Asked {
    #[serde(deserialize_with = "text")]
    conversation: Option<String>,
    #[serde(deserialize_with = "text")]
    user: Option<String>,
    /// An id or a name.
    #[serde(deserialize_with = "text")]
    agent: Option<String>,
    #[serde(deserialize_with = "text")]
    outcome: Option<String>,
    #[serde(deserialize_with = "text")]
    time: Option<String>,
    /// Milliseconds since 1970: the switches that were learned then or before.
    pub(super) until: Option<i64>,
}

/// The time that sums are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Range {
    Day,
    Week,
    Month,
}

impl Asked {
    pub(super) fn range(&self) -> Range {
        match self.time.as_deref() {
            Some("7d") => Range::Week,
            Some("30d") => Range::Month,
            _ => Range::Day,
        }
    }

    /// Which switches are wanted. An agent's name is looked up; several may have it.
    ///
    /// # Errors
    ///
    /// What MongoDB answers.
    pub(super) async fn wanted(&self, backend: &Backend) -> mongodb::error::Result<Wanted> {
        let agents = match &self.agent {
            None => None,
            Some(agent) if AgentId::stored(agent).is_some() => Some(vec![agent.as_str().into()]),
            Some(name) => {
                let named = backend.access.with_name(name).await?;
                Some(named.into_iter().map(|agent| agent.id).collect())
            }
        };
        Ok(Wanted {
            conversation: self.conversation.clone(),
            user: self.user.clone(),
            agents,
            status: self.outcome.as_deref().and_then(status),
        })
    }
}

impl Range {
    /// How long it is, in how many parts.
    pub(super) fn parts(self) -> (Duration, u32) {
        const HOUR: Duration = Duration::from_secs(60 * 60);
        match self {
            Self::Day => (HOUR, 24),
            Self::Week => (6 * HOUR, 28),
            Self::Month => (24 * HOUR, 30),
        }
    }

    /// How old sums may be: the longer the time, the more there is to read and the less changes.
    pub(super) fn holds(self) -> Duration {
        Duration::from_secs(match self {
            Self::Day => 3,
            Self::Week => 30,
            Self::Month => 120,
        })
    }
}

fn status(text: &str) -> Option<Status> {
    match text {
        "open" => Some(Status::Open),
        "settled" => Some(Status::Settled),
        "superseded" => Some(Status::Superseded),
        "rejected" => Some(Status::Rejected),
        _ => None,
    }
}

fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let text: String = text.trim().chars().take(LONGEST).collect();
    Ok((!text.is_empty()).then_some(text))
}

#[cfg(test)]
mod tests {
    use axum::extract::Query;
    use axum::http::Uri;

    use super::*;

    fn asked(query: &str) -> Asked {
        let uri: Uri = format!("/ops/events?{query}").parse().unwrap();
        Query::try_from_uri(&uri).unwrap().0
    }

    #[test]
    fn what_is_empty_is_as_if_it_were_not_there() {
        let asked = asked("user=&agent=%20&conversation=%24ne&utm=x&outcome=nonsense");
        assert_eq!(asked.user, None);
        assert_eq!(asked.agent, None);
        assert_eq!(asked.conversation.as_deref(), Some("$ne"));
        assert_eq!(asked.outcome.as_deref().and_then(status), None);
        assert_eq!(asked.range(), Range::Day);
    }

    #[test]
    fn a_time_has_its_parts() {
        for (query, parts, hours) in [("", 24, 1), ("time=7d", 28, 6), ("time=30d", 30, 24)] {
            let (part, count) = asked(query).range().parts();
            assert_eq!((count, part.as_secs() / 3600), (parts, hours), "{query}");
        }
    }
}
