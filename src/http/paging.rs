//! How a history is read page by page.

use mongodb::bson::{DateTime, oid::ObjectId};

use super::error::ApiError;
use crate::switch::record::Switch;

const DEFAULT: u32 = 20;
const MOST: u32 = 100;

/// What the query asks for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) limit: u32,
    pub(super) after: Option<(DateTime, ObjectId)>,
}

/// The place of a switch in the order of the history: its time in milliseconds and its id.
pub(super) fn cursor(switch: &Switch) -> Option<String> {
    let at = switch.created_at?.timestamp_millis();
    Some(format!("{at}-{}", switch.id.to_hex()))
}

impl Asked {
    /// Other parameters are nobody's concern: proxies and caches add their own.
    pub(super) fn parse(query: &str) -> Result<Self, ApiError> {
        let mut asked = Self {
            limit: DEFAULT,
            after: None,
        };
        for (name, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
            match name {
                "limit" => {
                    let limit = value.parse().ok();
                    asked.limit = limit
                        .filter(|limit| (1..=MOST).contains(limit))
                        .ok_or_else(|| ApiError::field("limit", format!("give 1 to {MOST}")))?;
                }
                "cursor" => {
                    let wrong = || ApiError::field("cursor", "give a next_cursor as it was");
                    asked.after = Some(place(value).ok_or_else(wrong)?);
                }
                _ => {}
            }
        }
        Ok(asked)
    }
}

fn place(cursor: &str) -> Option<(DateTime, ObjectId)> {
    let (at, id) = cursor.split_once('-')?;
    let at = at.parse().ok()?;
    Some((DateTime::from_millis(at), ObjectId::parse_str(id).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_taken_by_its_word() {
        assert_eq!(Asked::parse("").unwrap().limit, 20);
        assert_eq!(Asked::parse("limit=100&utm=x").unwrap().limit, 100);
        let id = "0123456789abcdef01234567";
        let asked = Asked::parse(&format!("cursor=1700000000000-{id}")).unwrap();
        let (at, after) = asked.after.unwrap();
        assert_eq!(at.timestamp_millis(), 1_700_000_000_000);
        assert_eq!(after.to_hex(), id);
    }

    #[test]
    fn what_cannot_be_meant_names_its_field() {
        for (query, field) in [
            ("limit=0", "limit"),
            ("limit=101", "limit"),
            ("limit=-1", "limit"),
            ("limit=", "limit"),
            ("limit=1e1", "limit"),
            ("cursor=", "cursor"),
            ("cursor=1-2", "cursor"),
            ("cursor=%24ne", "cursor"),
        ] {
            let error = Asked::parse(query).unwrap_err().to_string();
            assert!(error.starts_with(&format!("{field}: ")), "{query}: {error}");
        }
    }
}
