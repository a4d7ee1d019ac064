//! Types that more than one key has.

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::time::Duration;

use super::problem::Complaint;
use super::secret::Secret;
use super::value::Value;
use crate::librechat::AgentId;

pub(super) fn text(value: Value) -> Result<String, Complaint> {
    Ok(value.string()?.trim().to_owned())
}

pub(super) fn secret(value: Value) -> Result<Secret, Complaint> {
    value.string().map(Secret::from)
}

pub(super) fn duration(
    limits: RangeInclusive<Duration>,
) -> impl FnOnce(Value) -> Result<Duration, Complaint> {
    move |value| {
        let text = text(value)?;
        let (least, most) = (limits.start(), limits.end());
        let mend = format!(
            "give a time from {} to {}, as in \"90m\", \"12h\" or \"7d\"",
            humantime::format_duration(*least),
            humantime::format_duration(*most)
        );
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

/// An address to listen on. Names are not taken: they would have to be looked up first.
pub(super) fn address(value: Value) -> Result<SocketAddr, Complaint> {
    let text = text(value)?;
    text.parse().map_err(|_| {
        Complaint::new(
            format!("{text:?} is no address with a port"),
            "give an IP address and a port, as in \"127.0.0.1:8787\", \"0.0.0.0:8787\" or \"[::]:8787\"",
        )
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
