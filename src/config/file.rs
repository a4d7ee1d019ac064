//! Where the keys of `config.toml` are: the crate `config` reads their values, but keeps no lines.

use std::path::Path;

use toml::de::{DeTable, DeValue};

use super::problem::{Complaint, ConfigError, Problem};

/// The dotted keys of a TOML text, each with its place. An empty section is `section.`, as long as
/// nothing is in it. `path` only names the text.
///
/// A text that is no TOML has none and fails at once: half a file would only bring complaints
/// about the other half.
pub(super) fn keys(path: &Path, text: &str) -> Result<Vec<(String, String)>, ConfigError> {
    let (document, errors) = DeTable::parse_recoverable(text);
    let at = |offset: usize| {
        let before = text.as_bytes().iter().take(offset);
        let line = before.filter(|byte| **byte == b'\n').count() + 1;
        format!("{}:{line}", path.display())
    };
    // Only the parser's own words: the line itself may hold a secret.
    let problems: Vec<_> = (errors.iter())
        .map(|error| Problem {
            key: String::new(),
            place: Some(at(error.span().map_or(0, |span| span.start))),
            complaint: Complaint::new(
                format!("not TOML: {}", error.message()),
                "see https://toml.io for the syntax",
            ),
        })
        .collect();
    if !problems.is_empty() {
        return Err(ConfigError { problems });
    }
    let mut keys = Vec::new();
    for (section, body) in document.get_ref() {
        let name = section.get_ref();
        let place = at(section.span().start);
        match body.get_ref() {
            DeValue::Table(table) if table.is_empty() => keys.push((format!("{name}."), place)),
            DeValue::Table(table) => keys.extend(
                (table.keys())
                    .map(|key| (format!("{name}.{}", key.get_ref()), at(key.span().start))),
            ),
            _ => keys.push((name.to_string(), place)),
        }
    }
    Ok(keys)
}
