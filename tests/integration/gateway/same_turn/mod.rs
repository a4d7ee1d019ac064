//! The target of a switch answers the message in which it was switched to.

mod crashes;
mod resend;
mod splice;
mod stage;

pub use self::stage::bson_as_json;

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::harness::{Agent, Turn};

/// What LibreChat sent in a recorded turn, told of a turn of today's.
struct Recording {
    lines: Vec<Value>,
}

impl Recording {
    /// `tests/fixtures/gateway/{name}.jsonl`, whose first turn is the one that switched.
    fn of(name: &str, turn: &Turn, a: &Agent, b: &Agent) -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/fixtures/gateway")
            .join(format!("{name}.jsonl"));
        let text = fs::read_to_string(path).unwrap();
        let lines: Vec<Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let is_final = |line: &&Value| line["ev"] == "up" && line["data"]["final"] == true;
        let end = &lines.iter().find(is_final).unwrap()["data"];
        let said = |pointer: &str| end.pointer(pointer).unwrap().as_str().unwrap().to_owned();
        let target = text.split("SWITCH:").nth(1).unwrap();
        let today = [
            (said("/conversation/conversationId"), &turn.conversation),
            (said("/conversation/user"), &turn.user),
            (said("/responseMessage/messageId"), &turn.response),
            (said("/requestMessage/messageId"), &turn.user_message),
            (said("/responseMessage/model"), &a.id),
            (target.split('"').next().unwrap().to_owned(), &b.id),
        ];
        let mut text = text;
        for (then, now) in &today {
            text = text.replace(then.as_str(), now);
        }
        Self {
            lines: text
                .lines()
                .map(|line| serde_json::from_str(line).unwrap())
                .collect(),
        }
    }

    /// The data of the events of the first stream of this kind (`up`, `upB`), to its final.
    fn events(&self, kind: &str) -> Vec<&Value> {
        let mut ended = false;
        self.lines
            .iter()
            .filter(|line| line["ev"] == kind)
            .map(|line| &line["data"])
            .take_while(|data| !std::mem::replace(&mut ended, data["final"] == true))
            .collect()
    }

    /// The first stream of this kind as it was on the wire.
    fn stream(&self, kind: &str) -> String {
        self.events(kind).into_iter().map(event).collect()
    }
}

/// An event as LibreChat writes it.
fn event(data: &Value) -> String {
    format!("event: message\ndata: {data}\n\n")
}

/// The data of all events of a stream.
fn data(stream: &str) -> Vec<Value> {
    let events = stream.split("\n\n").filter(|event| !event.is_empty());
    events
        .map(|event| serde_json::from_str(event.split_once("data: ").unwrap().1).unwrap())
        .collect()
}

/// The data of the last event of a stream.
fn last(stream: &str) -> Value {
    let data = stream.trim_end().rsplit("data: ").next().unwrap();
    serde_json::from_str(data).unwrap()
}
