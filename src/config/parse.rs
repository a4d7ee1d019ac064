//! Types that more than one key has.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::time::Duration;

use ::config::{Value, ValueKind};

use super::problem::Complaint;
use super::secret::Secret;
use crate::librechat::AgentId;

/// Text that has no type of its own, because a variable or a secret's file gave it. Of the
/// sources the environment alone tells an origin; what the file says has the type that it has there.
fn untyped(value: &Value) -> Option<&str> {
    match &value.kind {
        ValueKind::String(text) if value.origin().is_some() => Some(text),
        _ => None,
    }
}

/// The complaint that a value has another type. It names the type and not the value, which may be
/// a secret.
fn is_not(kind: &ValueKind, wanted: &str) -> Complaint {
    let found = match kind {
        ValueKind::String(_) => "a string",
        ValueKind::Boolean(_) => "a boolean",
        ValueKind::Array(_) => "a list",
        ValueKind::Table(_) => "a table",
        ValueKind::Float(_) => "a float",
        _ => "an integer",
    };
    Complaint::new(format!("found {found}"), format!("give {wanted}"))
}

pub(super) fn string(value: Value) -> Result<String, Complaint> {
    match value.kind {
        ValueKind::String(text) => Ok(text),
        other => Err(is_not(&other, "text in quotes, as in \"text\"")),
    }
}

pub(super) fn boolean(value: Value) -> Result<bool, Complaint> {
    if let Some(text) = untyped(&value).map(str::trim) {
        let wrong = |_| Complaint::new(format!("found {text:?}"), "give true or false");
        return text.parse().map_err(wrong);
    }
    match value.kind {
        ValueKind::Boolean(value) => Ok(value),
        other => Err(is_not(&other, "true or false, without quotes")),
    }
}

/// A list of strings; in the environment separated by commas.
pub(super) fn strings(value: Value) -> Result<Vec<String>, Complaint> {
    if let Some(text) = untyped(&value) {
        let items = text.split(',').map(str::trim);
        let items = items.filter(|item| !item.is_empty());
        return Ok(items.map(str::to_owned).collect());
    }
    match value.kind {
        ValueKind::Array(items) => (items.into_iter())
            .map(|item| match item.kind {
                ValueKind::String(text) => Ok(text),
                other => Err(is_not(
                    &other,
                    "strings alone in the list, as in [\"one\", \"two\"]",
                )),
            })
            .collect(),
        other => Err(is_not(&other, "a list, as in [\"one\", \"two\"]")),
    }
}

/// Pairs of a name and a value; in the environment `name=value`, separated by commas.
pub(super) fn pairs(value: Value) -> Result<Vec<(String, Value)>, Complaint> {
    if untyped(&value).is_some() {
        let pair = |pair: String| match pair.split_once('=') {
            Some((name, value)) => Ok((name.trim().to_owned(), value.trim().into())),
            None => Err(Complaint::new(
                format!("found {pair:?}"),
                "give pairs separated by commas, as in one=two,one=three",
            )),
        };
        return strings(value)?.into_iter().map(pair).collect();
    }
    match value.kind {
        // In order, so that the same file brings the same complaint.
        ValueKind::Table(table) => Ok(BTreeMap::from_iter(table).into_iter().collect()),
        other => Err(is_not(&other, "a table, as in { one = \"two\" }")),
    }
}

/// Text without the blanks around it.
pub(super) fn text(value: Value) -> Result<String, Complaint> {
    Ok(string(value)?.trim().to_owned())
}

pub(super) fn secret(value: Value) -> Result<Secret, Complaint> {
    string(value).map(Secret::from)
}

/// The least length of a token that guards a door by itself.
const TOKEN_LENGTH: usize = 32;

/// A secret too long to be guessed.
pub(super) fn token(value: Value) -> Result<Secret, Complaint> {
    let token = secret(value)?;
    let length = token.expose().chars().count();
    if length < TOKEN_LENGTH {
        return Err(Complaint::new(
            format!("{length} characters are too few"),
            format!("give {TOKEN_LENGTH} or more, as from `openssl rand -hex 32`"),
        ));
    }
    Ok(token)
}

pub(super) fn duration(
    limits: RangeInclusive<Duration>,
) -> impl FnOnce(Value) -> Result<Duration, Complaint> {
    move |value| {
        let (least, most) = (limits.start(), limits.end());
        let times = format!(
            "a time from {} to {}, as in \"90m\", \"12h\" or \"7d\"",
            short(*least),
            short(*most)
        );
        let mend = format!("give {times}");
        let text = match value.kind {
            ValueKind::String(text) => text.trim().to_owned(),
            other => return Err(is_not(&other, &times)),
        };
        match humantime::parse_duration(&text) {
            Ok(time) if time < *least => {
                Err(Complaint::new(format!("{text:?} is too short"), mend))
            }
            Ok(time) if time > *most => Err(Complaint::new(format!("{text:?} is too long"), mend)),
            Ok(time) => Ok(time),
            Err(_) => Err(Complaint::new(format!("{text:?} is no time"), mend)),
        }
    }
}

/// As operators write times, in the greatest unit that fits: "7d", and not "7days" or "168h".
fn short(time: Duration) -> String {
    let seconds = time.as_secs();
    let units = [(24 * 60 * 60, 'd'), (60 * 60, 'h'), (60, 'm')];
    let unit = units
        .into_iter()
        .find(|(unit, _)| seconds.is_multiple_of(*unit));
    let (unit, letter) = unit.unwrap_or((1, 's'));
    format!("{}{letter}", seconds / unit)
}

/// An address to listen on. Names are not taken: they would have to be looked up first.
pub(super) fn address(value: Value) -> Result<SocketAddr, Complaint> {
    let wanted = "an IP address and a port, as in \"127.0.0.1:8787\", \"0.0.0.0:8787\" or \
                  \"[::]:8787\"";
    let text = match value.kind {
        ValueKind::String(text) => text.trim().to_owned(),
        other => return Err(is_not(&other, wanted)),
    };
    text.parse().map_err(|_| {
        let found = format!("{text:?} is no address with a port");
        Complaint::new(found, format!("give {wanted}"))
    })
}

/// An agent's id, which is easily taken for its name.
pub(super) fn agent(text: &str) -> Result<AgentId, Complaint> {
    AgentId::stored(text).ok_or_else(|| {
        Complaint::new(
            format!("{text:?} is no agent's id"),
            "give ids, as in \"agent_TEiCFUrdcmZmLR89Tdclm\"; the editor of an agent shows its id",
        )
    })
}

/// The name of a database, by MongoDB's rules for every platform it runs on.
pub(super) fn database(value: Value) -> Result<String, Complaint> {
    let text = text(value)?;
    let mend = "give a name of at most 63 bytes without blanks and without / \\ . \" $ * < > : | ?";
    let bad = |c: char| c.is_whitespace() || c.is_control() || "/\\.\"$*<>:|?".contains(c);
    if text.len() > 63 || text.contains(bad) {
        return Err(Complaint::new(
            format!("{text:?} is no database name"),
            mend,
        ));
    }
    if ["admin", "config", "local"].contains(&text.to_ascii_lowercase().as_str()) {
        return Err(Complaint::new(
            format!("{text:?} is MongoDB's own"),
            "give another name",
        ));
    }
    Ok(text)
}
