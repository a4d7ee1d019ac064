//! A value as it was found, before its key gives it a type.

use std::collections::BTreeMap;

use super::problem::Complaint;

/// A value from any layer.
#[derive(Clone, Debug)]
pub(super) enum Value {
    /// Text that has no type of its own: an environment variable or a secret's file.
    Untyped(String),
    /// A TOML string.
    String(String),
    /// A TOML boolean.
    Boolean(bool),
    /// A TOML array.
    List(Vec<Value>),
    /// A TOML table.
    Table(BTreeMap<String, Value>),
    /// Any other TOML type; no key has it.
    Other(&'static str),
}

impl Value {
    /// An empty text is as if the key were not there: Compose and Helm set variables to nothing
    /// where there is nothing to say.
    pub(super) fn is_blank(&self) -> bool {
        matches!(self, Self::Untyped(text) | Self::String(text) if text.trim().is_empty())
    }

    pub(super) fn string(self) -> Result<String, Complaint> {
        match self {
            Self::Untyped(text) | Self::String(text) => Ok(text),
            other => Err(other.is_not("a string in quotes")),
        }
    }

    pub(super) fn boolean(self) -> Result<bool, Complaint> {
        match self {
            Self::Boolean(value) => Ok(value),
            Self::Untyped(text) => match text.trim() {
                "true" => Ok(true),
                "false" => Ok(false),
                other => Err(Complaint::new(
                    format!("found {other:?}"),
                    "give true or false",
                )),
            },
            other => Err(other.is_not("true or false, without quotes")),
        }
    }

    /// A list of strings; in the environment separated by commas.
    pub(super) fn strings(self) -> Result<Vec<String>, Complaint> {
        match self {
            Self::Untyped(text) => Ok(text
                .split(',')
                .map(str::trim)
                .filter(|item| !item.is_empty())
                .map(str::to_owned)
                .collect()),
            Self::List(items) => items
                .into_iter()
                .map(|item| match item {
                    Self::String(text) => Ok(text),
                    other => Err(other.is_not("strings alone in the list")),
                })
                .collect(),
            other => Err(other.is_not("a list, as in [\"one\", \"two\"]")),
        }
    }

    /// Pairs of a name and a value; in the environment `name=value`, separated by commas.
    pub(super) fn pairs(self) -> Result<Vec<(String, Value)>, Complaint> {
        match self {
            Self::Untyped(_) => self
                .strings()?
                .into_iter()
                .map(|pair| match pair.split_once('=') {
                    Some((name, value)) => Ok((
                        name.trim().to_owned(),
                        Self::String(value.trim().to_owned()),
                    )),
                    None => Err(Complaint::new(
                        format!("found {pair:?}"),
                        "give pairs separated by commas, as in one=two,one=three",
                    )),
                })
                .collect(),
            Self::Table(table) => Ok(table.into_iter().collect()),
            other => Err(other.is_not("a table, as in { one = \"two\" }")),
        }
    }

    /// The complaint that this has another type. It names the type and not the value, which may
    /// be a secret.
    pub(super) fn is_not(&self, wanted: &str) -> Complaint {
        let found = match self {
            Self::Untyped(_) | Self::String(_) => "a string",
            Self::Boolean(_) => "a boolean",
            Self::List(_) => "a list",
            Self::Table(_) => "a table",
            Self::Other(kind) => kind,
        };
        Complaint::new(format!("found {found}"), format!("give {wanted}"))
    }
}
