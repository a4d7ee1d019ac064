//! The layer of `config.toml`.

use std::collections::BTreeMap;
use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::layers::{Entry, Layers};
use super::problem::{Complaint, ConfigError, Origin, Problem};
use super::value::Value;

/// Adds the settings of a TOML text. `path` only names it in errors.
///
/// A text that is no TOML adds nothing and fails at once: half a file would only bring complaints
/// about the other half.
pub(super) fn read(layers: &mut Layers, path: &Path, text: &str) -> Result<(), ConfigError> {
    let (document, errors) = DeTable::parse_recoverable(text);
    let at = |offset: usize| Origin::File {
        path: path.to_owned(),
        line: line_of(text, offset),
    };
    // Only the parser's own words: the line itself may hold a secret.
    let problems: Vec<_> = (errors.iter())
        .map(|error| Problem {
            key: String::new(),
            origin: Some(at(error.span().map_or(0, |span| span.start))),
            complaint: Complaint::new(
                format!("not TOML: {}", error.message()),
                "see https://toml.io for the syntax",
            ),
        })
        .collect();
    if !problems.is_empty() {
        return Err(ConfigError { problems });
    }
    for (section, body) in document.get_ref() {
        let name = section.get_ref();
        let origin = at(section.span().start);
        let DeValue::Table(table) = body.get_ref() else {
            let value = convert(body);
            layers
                .entries
                .insert(name.to_string(), Entry { value, origin });
            continue;
        };
        layers.sections.push((name.to_string(), origin));
        for (key, value) in table {
            let entry = Entry {
                value: convert(value),
                origin: at(key.span().start),
            };
            layers
                .entries
                .insert(format!("{name}.{}", key.get_ref()), entry);
        }
    }
    Ok(())
}

fn convert(value: &Spanned<DeValue<'_>>) -> Value {
    match value.get_ref() {
        DeValue::String(text) => Value::String(text.to_string()),
        DeValue::Boolean(value) => Value::Boolean(*value),
        DeValue::Integer(_) => Value::Other("an integer"),
        DeValue::Float(_) => Value::Other("a float"),
        DeValue::Datetime(_) => Value::Other("a date"),
        DeValue::Array(items) => Value::List(items.iter().map(convert).collect()),
        DeValue::Table(table) => Value::Table(
            table
                .iter()
                .map(|(key, value)| (key.get_ref().to_string(), convert(value)))
                .collect::<BTreeMap<_, _>>(),
        ),
    }
}

fn line_of(text: &str, offset: usize) -> usize {
    let before = text.as_bytes().iter().take(offset);
    before.filter(|byte| **byte == b'\n').count() + 1
}
