//! `baton switches`: the records, for an operator's eyes or for a program.

use std::collections::HashMap;
use std::io::{self, Write};

use mongodb::Client;
use mongodb::bson::DateTime;
use serde::Serialize;

use crate::cli;
use crate::config::Settings;
use crate::librechat::access::Access;
use crate::librechat::{AgentId, ConversationId, MessageId, UserId};
use crate::mongo::{Failure, Misfit, classify, connect, finds_no_server, words};
use crate::switch::record::{Origin, Status, Switch};
use crate::switch::store::Store;

/// Why the switches cannot be listed.
#[derive(Debug, thiserror::Error)]
pub enum ListError {
    /// MongoDB was not reached, or refused.
    #[error("cannot read the switches: {}", advice(.0))]
    MongoDb(mongodb::error::Error),
    /// MongoDB is not of the kind that is needed, or that the URI says.
    #[error("cannot read the switches: {0}")]
    Misfit(Misfit),
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

fn advice(error: &mongodb::error::Error) -> String {
    match classify(error) {
        Failure::Final(remedy) => format!("{remedy} (MongoDB: {})", words(error)),
        _ => format!("{}; `baton check` says what to do", words(error)),
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
    answered_by: Option<&'a AgentId>,
    answer_message_id: Option<&'a MessageId>,
    repairs: i64,
    created_at: Option<String>,
    applied_at: Option<String>,
    closed_at: Option<String>,
}

/// Lists the newest switches, newest first; as a table, where `width` columns have room for it.
///
/// # Errors
///
/// Where MongoDB cannot be read or the output not be written.
pub async fn list(
    settings: &Settings,
    which: &cli::Switches,
    width: Option<usize>,
    mut out: impl Write,
) -> Result<(), ListError> {
    let uri = settings.mongodb.uri.expose();
    let client = connect(uri, "list").await?;
    let found = match find(settings, which, &client).await {
        Ok(found) => found,
        Err(error) if finds_no_server(&error) => {
            return Err(match Misfit::find(uri).await {
                Some(misfit) => ListError::Misfit(misfit),
                None => error.into(),
            });
        }
        Err(error) => return Err(error.into()),
    };
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
    let names = names(settings, &client, &found).await;
    let rows: Vec<_> = found.iter().map(|switch| Row::of(switch, &names)).collect();
    for line in layout(&rows, width) {
        writeln!(out, "{line}")?;
    }
    Ok(())
}

async fn find(
    settings: &Settings,
    which: &cli::Switches,
    client: &Client,
) -> mongodb::error::Result<Vec<Switch>> {
    let state = client.database(&settings.state.database);
    Store::new(&state, settings.switch.retention)
        .list(
            which.conversation.as_deref(),
            which.user.as_deref(),
            which.limit,
        )
        .await
}

/// The names of the agents, as far as they can be read: an id says as much, to fewer people.
async fn names(settings: &Settings, client: &Client, found: &[Switch]) -> HashMap<AgentId, String> {
    let agents = found
        .iter()
        .flat_map(|switch| switch.from_agent.iter().chain([&switch.to_agent]))
        .collect();
    let access = Access::new(client.database(&settings.mongodb.database));
    access.names(agents).await.unwrap_or_default()
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
            answered_by: switch.answered_by(),
            answer_message_id: switch.answer_message(),
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

const HEADS: [&str; 8] = [
    "LEARNED (UTC)",
    "CONVERSATION",
    "USER",
    "FROM",
    "TO",
    "BY",
    "STATUS",
    "REPAIRS",
];

/// A switch for people's eyes.
struct Row {
    /// As in [`HEADS`].
    cells: [String; HEADS.len()],
    why: String,
}

impl Row {
    fn of(switch: &Switch, names: &HashMap<AgentId, String>) -> Self {
        let agent = |id: &AgentId| visible(names.get(id).map_or(id.as_str(), String::as_str));
        Self {
            cells: [
                rfc3339(switch.created_at).map_or_else(String::new, |time| to_the_second(&time)),
                visible(switch.conversation_id.as_str()),
                visible(switch.user.as_str()),
                (switch.from_agent.as_ref()).map_or_else(|| "?".to_owned(), agent),
                agent(&switch.to_agent),
                switch.origin.to_string(),
                switch.status.to_string(),
                switch.repairs.to_string(),
            ],
            why: visible(switch.detail.as_deref().unwrap_or_default()),
        }
    }
}

/// The table, or where it is too wide, a few lines for each switch.
fn layout(rows: &[Row], width: Option<usize>) -> Vec<String> {
    let table = table(rows);
    let widest = table.iter().map(|line| line.chars().count()).max();
    match width {
        Some(width) if widest > Some(width) => rows.iter().flat_map(lines).collect(),
        _ => table,
    }
}

fn lines(row: &Row) -> Vec<String> {
    let [learned, conversation, user, from, to, by, status, repairs] = &row.cells;
    let mut lines = vec![
        format!("{learned}  {from} -> {to}"),
        format!("    {status}, by {by}, repairs: {repairs}"),
        format!("    conversation {conversation}"),
        format!("    user {user}"),
    ];
    if !row.why.is_empty() {
        lines.push(format!("    {}", row.why));
    }
    lines
}

fn table(rows: &[Row]) -> Vec<String> {
    let heads = Row {
        cells: HEADS.map(str::to_owned),
        why: "WHY".to_owned(),
    };
    let rows: Vec<_> = std::iter::once(&heads).chain(rows).collect();
    let widths: Vec<usize> = (0..HEADS.len())
        .map(|column| {
            let widths = rows.iter().map(|row| row.cells[column].chars().count());
            widths.max().unwrap_or(0)
        })
        .collect();
    rows.iter()
        .map(|row| {
            let cells = row.cells.iter().zip(&widths);
            let cells: Vec<_> = cells
                .map(|(cell, width)| format!("{cell:width$}"))
                .collect();
            format!("{}  {}", cells.join("  "), row.why)
                .trim_end()
                .to_owned()
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

    fn rows(details: &[&str]) -> Vec<Row> {
        let names = HashMap::from([("agent_b".into(), "Billing".to_owned())]);
        let row = |detail: &&str| Row::of(&switch(detail), &names);
        details.iter().map(row).collect()
    }

    #[test]
    fn a_narrow_terminal_gets_lines_and_a_wide_one_the_table() {
        let rows = rows(&["it ended"]);
        assert_eq!(layout(&rows, Some(200)), layout(&rows, None));
        assert_eq!(
            layout(&rows, Some(60)),
            [
                "2023-11-14 22:13:20  agent_a -> Billing",
                "    settled, by tool, repairs: 1",
                "    conversation c1",
                "    user u1",
                "    it ended",
            ]
        );
    }

    #[test]
    fn the_table_lines_up_and_says_why() {
        let lines = layout(&rows(&["it ended", "\u{1b}[2J"]), None);
        assert_eq!(
            lines[0],
            "LEARNED (UTC)        CONVERSATION  USER  FROM     TO       BY    STATUS   REPAIRS  WHY"
        );
        assert_eq!(
            lines[1],
            "2023-11-14 22:13:20  c1            u1    agent_a  Billing  tool  settled  1        it ended"
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
