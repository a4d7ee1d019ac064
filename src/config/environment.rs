//! The layer of environment variables.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;

use super::layers::{Entry, Layers};
use super::problem::{Complaint, Origin, Problem};
use super::value::Value;

const PREFIX: &str = "BATON__";
const FILE: &str = "_FILE";

/// The keys that are secrets, with the name that LibreChat's own `.env` has for them, if any.
/// Each may also be given as a file, since that is how Docker and Kubernetes hand over secrets.
const SECRETS: [(&str, Option<&str>); 4] = [
    ("mongodb.uri", Some("MONGO_URI")),
    ("auth.jwt_secret", Some("JWT_SECRET")),
    ("mcp.token", None),
    ("metrics.token", None),
];

/// Adds the settings of an environment.
pub(super) fn read(layers: &mut Layers, variables: impl IntoIterator<Item = (OsString, OsString)>) {
    let mut ours = ours(layers, variables);
    for (key, alias) in SECRETS {
        let own = variable(key);
        let theirs = alias.and_then(|alias| secret(layers, &mut ours, key, alias));
        // Baton's own form wins, and then LibreChat's file is not even opened.
        let chosen = secret(layers, &mut ours, key, &own).or(theirs);
        if let Some(source) = chosen.and_then(|source| source.read(layers, key)) {
            layers.entries.insert(key.to_owned(), source);
        }
    }
    for (name, value) in ours {
        let Some(key) = name.strip_prefix(PREFIX) else {
            continue;
        };
        let entry = Entry {
            value: Value::Untyped(value),
            origin: Origin::Variable(name.clone()),
        };
        // A name in lower case is no key: it stays as it is and is reported as unknown.
        let key = if key.chars().any(|c| c.is_ascii_lowercase()) {
            name
        } else {
            key.replace("__", ".").to_ascii_lowercase()
        };
        layers.entries.insert(key, entry);
    }
}

/// The variable of a key: `BATON__SWITCH__GUARD` for `switch.guard`.
pub(super) fn variable(key: &str) -> String {
    format!("{PREFIX}{}", key.replace('.', "__").to_ascii_uppercase())
}

/// The variables that concern Baton, by name. An empty one is as if it were not set.
fn ours(
    layers: &mut Layers,
    variables: impl IntoIterator<Item = (OsString, OsString)>,
) -> BTreeMap<String, String> {
    let concerns = |name: &str| {
        let stem = name.strip_suffix(FILE).unwrap_or(name);
        name.starts_with(PREFIX) || SECRETS.iter().any(|(_, alias)| *alias == Some(stem))
    };
    let mut found = BTreeMap::new();
    for (name, value) in variables {
        let Some(name) = name.to_str().filter(|name| concerns(name)) else {
            continue;
        };
        match value.into_string() {
            Ok(value) if value.trim().is_empty() => {}
            Ok(value) => {
                found.insert(name.to_owned(), value);
            }
            Err(_) => layers.problems.push(Problem {
                key: String::new(),
                origin: Some(Origin::Variable(name.to_owned())),
                complaint: Complaint::new("not UTF-8", "give text in UTF-8"),
            }),
        }
    }
    found
}

enum Source {
    Value { variable: String, value: String },
    File { variable: String, path: PathBuf },
}

/// Takes the variable `name` or `name_FILE`.
fn secret(
    layers: &mut Layers,
    ours: &mut BTreeMap<String, String>,
    key: &str,
    name: &str,
) -> Option<Source> {
    let file_name = format!("{name}{FILE}");
    match (ours.remove(name), ours.remove(&file_name)) {
        (Some(_), Some(_)) => {
            layers.problems.push(Problem {
                key: key.to_owned(),
                origin: Some(Origin::Variable(name.to_owned())),
                complaint: Complaint::new(
                    format!("{file_name} is set too"),
                    "unset one of the two",
                ),
            });
            layers.broken.push(key.to_owned());
            None
        }
        (Some(value), None) => Some(Source::Value {
            variable: name.to_owned(),
            value,
        }),
        (None, Some(path)) => Some(Source::File {
            variable: file_name,
            path: path.into(),
        }),
        (None, None) => None,
    }
}

impl Source {
    fn read(self, layers: &mut Layers, key: &str) -> Option<Entry> {
        let (variable, path) = match self {
            Self::Value { variable, value } => {
                return Some(Entry {
                    value: Value::Untyped(value),
                    origin: Origin::Variable(variable),
                });
            }
            Self::File { variable, path } => (variable, path),
        };
        let text = fs::read_to_string(&path);
        let origin = Origin::SecretFile { variable, path };
        let complaint = match text {
            Ok(text) if text.trim().is_empty() => {
                Complaint::new("the file is empty", "write the secret to it")
            }
            Ok(text) => {
                // Editors and `echo` end a file with a newline that is no part of the secret.
                let value = text.trim_end_matches(['\r', '\n']).to_owned();
                return Some(Entry {
                    value: Value::Untyped(value),
                    origin,
                });
            }
            Err(error) => Complaint::new(
                format!("cannot read the file: {error}"),
                "name a file of text that this user may read",
            ),
        };
        layers.problems.push(Problem {
            key: key.to_owned(),
            origin: Some(origin),
            complaint,
        });
        layers.broken.push(key.to_owned());
        None
    }
}
