//! The layer of environment variables, and of the files that they name.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;

use super::problem::{Complaint, Problem};

const PREFIX: &str = "BATON__";
const FILE: &str = "_FILE";

/// The keys that are secrets, with the name that LibreChat's own `.env` has for them, if any.
/// Each may also be given as a file, since that is how Docker and Kubernetes hand over secrets.
const SECRETS: [(&str, Option<&str>); 5] = [
    ("mongodb.uri", Some("MONGO_URI")),
    ("auth.jwt_secret", Some("JWT_SECRET")),
    ("mcp.token", None),
    ("metrics.token", None),
    ("ops.token", None),
];

/// What an environment says of a key.
pub(super) struct Setting {
    pub(super) key: String,
    /// The variable, and the file that it names.
    pub(super) place: String,
    pub(super) text: String,
}

/// The settings of an environment.
pub(super) fn settings(
    variables: impl IntoIterator<Item = (OsString, OsString)>,
    problems: &mut Vec<Problem>,
) -> Vec<Setting> {
    let mut ours = ours(variables, problems);
    let mut settings = Vec::new();
    for (key, alias) in SECRETS {
        // Baton's own form wins, and then LibreChat's file is not even opened.
        let names = [Some(variable(key)), alias.map(str::to_owned)];
        settings.extend(
            (names.iter().flatten()).find_map(|name| secret(&mut ours, problems, key, name)),
        );
    }
    settings.extend(ours.into_iter().filter_map(|(name, text)| {
        let key = name.strip_prefix(PREFIX)?;
        // A name in lower case is no key: it stays as it is and is reported as unknown.
        let key = if key.chars().any(|c| c.is_ascii_lowercase()) {
            name.clone()
        } else {
            key.replace("__", ".").to_ascii_lowercase()
        };
        Some(Setting {
            key,
            place: name,
            text,
        })
    }));
    settings
}

/// The variable of a key: `BATON__SWITCH__GUARD` for `switch.guard`.
pub(super) fn variable(key: &str) -> String {
    format!("{PREFIX}{}", key.replace('.', "__").to_ascii_uppercase())
}

/// The names of variables that begin almost as Baton's do.
pub(super) fn strangers(variables: &[(OsString, OsString)]) -> Vec<String> {
    let names = variables.iter().filter_map(|(name, _)| name.to_str());
    let stranger = |name: &&str| {
        let capitals = name.to_ascii_uppercase();
        capitals.starts_with("BATON_") && !name.starts_with(PREFIX)
    };
    let mut names: Vec<_> = names.filter(stranger).map(str::to_owned).collect();
    names.sort_unstable();
    names
}

/// Whether a name is that of a key's variable, but for capitals and the number of underscores.
pub(super) fn resembles(name: &str, key: &str) -> bool {
    let plain = |name: &str| {
        let words = name.split('_').filter(|word| !word.is_empty());
        words.collect::<Vec<_>>().join("_").to_ascii_uppercase()
    };
    let name = plain(name);
    let name = name.strip_suffix(FILE).unwrap_or(&name);
    name == plain(variable(key).as_str())
}

/// The variables that concern Baton, by name. An empty one is as if it were not set.
fn ours(
    variables: impl IntoIterator<Item = (OsString, OsString)>,
    problems: &mut Vec<Problem>,
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
            Err(_) => problems.push(Problem {
                key: String::new(),
                place: Some(name.to_owned()),
                complaint: Complaint::new("not UTF-8", "give text in UTF-8"),
            }),
        }
    }
    found
}

/// Takes the variable `name` or `name_FILE`.
fn secret(
    ours: &mut BTreeMap<String, String>,
    problems: &mut Vec<Problem>,
    key: &str,
    name: &str,
) -> Option<Setting> {
    let file_name = format!("{name}{FILE}");
    let (place, text) = match (ours.remove(name), ours.remove(&file_name)) {
        (None, None) => return None,
        (Some(text), None) => (name.to_owned(), Ok(text)),
        (None, Some(path)) => (format!("{file_name} ({path})"), content(&path)),
        (Some(_), Some(_)) => {
            let found = format!("{file_name} is set too");
            let complaint = Complaint::new(found, "unset one of the two");
            (name.to_owned(), Err(complaint))
        }
    };
    let key = key.to_owned();
    match text {
        Ok(text) => Some(Setting { key, place, text }),
        Err(complaint) => {
            let place = Some(place);
            problems.push(Problem {
                key,
                place,
                complaint,
            });
            None
        }
    }
}

/// The secret in a file.
fn content(path: &str) -> Result<String, Complaint> {
    match fs::read_to_string(path) {
        Ok(text) if text.trim().is_empty() => Err(Complaint::new(
            "the file is empty",
            "write the secret to it",
        )),
        // Editors and `echo` end a file with a newline that is no part of the secret.
        Ok(text) => Ok(text.trim_end_matches(['\r', '\n']).to_owned()),
        Err(error) => Err(Complaint::new(
            format!("cannot read the file: {error}"),
            "name a file of text that this user may read",
        )),
    }
}
