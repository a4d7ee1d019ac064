//! `baton switches`: the records, for an operator's eyes or for a program.

use std::io::{self, Write};

use mongodb::bson::DateTime;
use serde::Serialize;

use crate::cli;
use crate::config::Settings;
use crate::librechat::{AgentId, ConversationId, MessageId, UserId};
use crate::mongo::{connect, words};
use crate::switch::record::{Origin, Status, Switch};
use crate::switch::store::Store;

/// Why the switches cannot be listed.
#[derive(Debug, thiserror::Error)]
pub enum ListError {
    /// MongoDB was not reached, or refused.
    #[error("cannot read the switches: {}; `baton check` says what to do", words(.0))]
    MongoDb(mongodb::error::Error),
    /// The output was closed.
    #[error("cannot write: {0}")]
    Output(#[from] io::Error),
}

impl From<mongodb::error::Error> for ListError {
    /// Not as a source: the driver's own words quote the server's whole answer.
    fn from(error: mongodb::error::Error) -> Self {
        Self::MongoDb(error)
    }
}

/// A record as `--json` shows it.
#[derive(Serialize)]
struct Line<'a> {
    id: String,
    conversation_id: &'a ConversationId,
    user: &'a UserId,
    message_id: Option<&'a MessageId>,
    from_agent: Option<&'a AgentId>,
    to_agent: &'a AgentId,
    reason: Option<&'a str>,
    origin: Origin,
    status: Status,
    detail: Option<&'a str>,
    repairs: i64,
    created_at: Option<String>,
    applied_at: Option<String>,
    closed_at: Option<String>,
}

/// Lists the newest switches, newest first.
///
/// # Errors
///
/// Where MongoDB cannot be read or the output not be written.
pub async fn list(
    settings: &Settings,
    which: &cli::Switches,
    mut out: impl Write,
) -> Result<(), ListError> {
    let client = connect(settings.mongodb.uri.expose(), "list").await?;
    let state = client.database(&settings.state.database);
    let found = Store::new(&state, settings.switch.retention)
        .list(
            which.conversation.as_deref(),
            which.user.as_deref(),
            which.limit,
        )
        .await?;
    if which.json {
        for switch in &found {
            serde_json::to_writer(&mut out, &Line::of(switch)).map_err(io::Error::from)?;
            writeln!(out)?;
        }
        return Ok(());
    }
    if found.is_empty() {
        writeln!(out, "No switches on record.")?;
        return Ok(());
    }
    for line in table(&found) {
        writeln!(out, "{line}")?;
    }
    Ok(())
}

impl<'a> Line<'a> {
    fn of(switch: &'a Switch) -> Self {
        Self {
            id: switch.id.to_hex(),
            conversation_id: &switch.conversation_id,
            user: &switch.user,
            message_id: switch.message_id.as_ref(),
            from_agent: switch.from_agent.as_ref(),
            to_agent: &switch.to_agent,
            reason: switch.reason.as_deref(),
            origin: switch.origin,
            status: switch.status,
            detail: switch.detail.as_deref(),
            repairs: switch.repairs,
            created_at: rfc3339(switch.created_at),
            applied_at: rfc3339(switch.applied_at),
            closed_at: rfc3339(switch.closed_at),
        }
    }
}

fn rfc3339(time: Option<DateTime>) -> Option<String> {
    time.and_then(|time| time.try_to_rfc3339_string().ok())
}

fn table(switches: &[Switch]) -> Vec<String> {
    let heads = [
        "LEARNED (UTC)",
        "CONVERSATION",
        "USER",
        "FROM",
        "TO",
        "BY",
        "STATUS",
        "REPAIRS",
    ];
    let mut rows = vec![heads.map(str::to_owned)];
    rows.extend(switches.iter().map(|switch| {
        [
            rfc3339(switch.created_at).map_or_else(String::new, |time| to_the_second(&time)),
            visible(switch.conversation_id.as_str()),
            visible(switch.user.as_str()),
            switch
                .from_agent
                .as_ref()
                .map_or_else(|| "?".to_owned(), |a| visible(a.as_str())),
            visible(switch.to_agent.as_str()),
            switch.origin.to_string(),
            switch.status.to_string(),
            switch.repairs.to_string(),
        ]
    }));
    let widths: Vec<usize> = (0..heads.len())
        .map(|column| {
            rows.iter()
                .map(|row| row[column].chars().count())
                .max()
                .unwrap_or(0)
        })
        .collect();
    let details = std::iter::once("WHY".to_owned()).chain(
        switches
            .iter()
            .map(|s| visible(s.detail.as_deref().unwrap_or_default())),
    );
    rows.iter()
        .zip(details)
        .map(|(row, why)| {
            let cells: Vec<String> = row
                .iter()
                .zip(&widths)
                .map(|(cell, width)| format!("{cell:width$}"))
                .collect();
            format!("{}  {why}", cells.join("  ")).trim_end().to_owned()
        })
        .collect()
}

fn to_the_second(rfc3339: &str) -> String {
    rfc3339
        .chars()
        .take(19)
        .map(|c| if c == 'T' { ' ' } else { c })
        .collect()
}

/// Text out of a database must not steer the terminal.
fn visible(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use mongodb::bson::{doc, oid::ObjectId};

    use super::*;

    fn switch(detail: &str) -> Switch {
        mongodb::bson::deserialize_from_document(doc! {
            "_id": ObjectId::from_bytes([7; 12]),
            "conversation_id": "c1", "user": "u1", "to_agent": "agent_b", "from_agent": "agent_a",
            "origin": "tool", "status": "settled", "detail": detail, "repairs": 1_i64,
            "created_at": DateTime::from_millis(1_700_000_000_123),
        })
        .unwrap()
    }

    #[test]
    fn the_table_lines_up_and_says_why() {
        let lines = table(&[switch("it ended"), switch("\u{1b}[2J")]);
        assert_eq!(
            lines[0],
            "LEARNED (UTC)        CONVERSATION  USER  FROM     TO       BY    STATUS   REPAIRS  WHY"
        );
        assert_eq!(
            lines[1],
            "2023-11-14 22:13:20  c1            u1    agent_a  agent_b  tool  settled  1        it ended"
        );
        assert!(lines[2].ends_with("\u{fffd}[2J"), "{}", lines[2]);
    }

    #[test]
    fn json_has_the_names_and_the_times() {
        let switch = switch("it ended");
        let line = serde_json::to_value(Line::of(&switch)).unwrap();
        assert_eq!(line["created_at"], "2023-11-14T22:13:20.123Z");
        assert_eq!(line["status"], "settled");
        assert_eq!(line["origin"], "tool");
        assert_eq!(line["to_agent"], "agent_b");
    }
}
