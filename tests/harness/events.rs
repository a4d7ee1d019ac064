//! Recorded change events, as the server sent them.

use std::fs;
use std::path::PathBuf;

use mongodb::bson::Document;
use serde::de::DeserializeOwned;

/// The scenes that were recorded with v0.8.8-rc1, see `tests/fixtures/README.md`.
pub const SCENES: [&str; 19] = [
    "a", "b", "c", "d", "d2", "e", "f", "g", "h2", "i", "j", "k", "m", "n", "q", "s", "u", "y", "z",
];

/// The events of a scene, in order, with `recvMs`, the recorder's clock, in each.
pub fn events(version: &str, scene: &str) -> Vec<Document> {
    lines(version, scene, "events")
}

pub(super) fn lines<T: DeserializeOwned>(version: &str, scene: &str, kind: &str) -> Vec<T> {
    let name = format!("{scene}.{kind}.jsonl");
    let path: PathBuf = [
        env!("CARGO_MANIFEST_DIR"),
        "tests",
        "fixtures",
        version,
        &name,
    ]
    .iter()
    .collect();
    fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
        .lines()
        // BSON reads itself from text as extended JSON.
        .map(|line| serde_json::from_str(line).expect("a recorded line"))
        .collect()
}
