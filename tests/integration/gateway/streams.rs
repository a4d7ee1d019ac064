//! LibreChat's recorded streams, told of a turn of today's.

use std::fs;
use std::path::Path;

use crate::harness::{Agent, Turn};

/// The events that the client got in the last turn of a recorded scene, as they were on the wire.
pub fn recorded(version: &str, scene: &str, turn: &Turn, a: &Agent, b: &Agent) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures")
        .join(version)
        .join(format!("{scene}.sse.txt"));
    let text = fs::read_to_string(path).unwrap();
    let data: Vec<&str> = text
        .lines()
        .filter_map(|line| {
            line.split_once("] event: message data: ")
                .map(|(_, data)| data)
        })
        .collect();
    let end: serde_json::Value = serde_json::from_str(data.last().unwrap()).unwrap();
    let said = |pointer: &str| end.pointer(pointer).unwrap().as_str().unwrap().to_owned();
    let from = said("/responseMessage/model");
    let to = data
        .iter()
        .find_map(|data| {
            let mut named = ["\\\"agent_id\\\":\\\"", "\"lc_transfer_to_"].into_iter();
            named.find_map(|before| data.split(before).nth(1))
        })
        .map_or(from.clone(), |rest| {
            rest.split(['\\', '"']).next().unwrap().to_owned()
        });
    let today = [
        (said("/conversation/conversationId"), &turn.conversation),
        (said("/responseMessage/messageId"), &turn.response),
        (said("/requestMessage/messageId"), &turn.user_message),
        (from, &a.id),
        (to, &b.id),
    ];
    data.iter()
        .map(|data| {
            let mut data = (*data).to_owned();
            for (then, now) in &today {
                data = data.replace(then.as_str(), now);
            }
            let data = match end.pointer("/conversation/user").and_then(|u| u.as_str()) {
                Some(user) => data.replace(user, &turn.user),
                None => data,
            };
            format!("event: message\ndata: {data}\n\n")
        })
        .collect()
}

/// The data of an event as it was on the wire.
pub fn data(event: &str) -> serde_json::Value {
    let data = event.split_once("data: ").unwrap().1;
    serde_json::from_str(data).unwrap()
}
