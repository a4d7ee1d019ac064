//! The layers put over one another, and the way from them to typed settings.

use std::collections::{BTreeMap, BTreeSet};

use super::environment;
use super::problem::{Complaint, ConfigError, Origin, Problem};
use super::value::Value;

/// A value and where it is from.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) value: Value,
    pub(super) origin: Origin,
}

/// All that was given, by dotted key. A later layer replaces an earlier one's entry.
///
/// Each section takes its keys out; what is left in the end is unknown. So a key is written down
/// once, where it is read, and problems are collected on the way: the whole of them is reported.
#[derive(Debug, Default)]
pub(super) struct Layers {
    pub(super) entries: BTreeMap<String, Entry>,
    /// The sections of the file, empty ones included.
    pub(super) sections: Vec<(String, Origin)>,
    /// Keys that were given, but could not be read: a problem says so already.
    pub(super) broken: Vec<String>,
    pub(super) problems: Vec<Problem>,
    /// The keys that sections have asked for so far.
    pub(super) known: BTreeSet<&'static str>,
    origins: BTreeMap<&'static str, Origin>,
}

impl Layers {
    /// Takes a key, where it is given and right.
    pub(super) fn optional<T>(
        &mut self,
        key: &'static str,
        parse: impl FnOnce(Value) -> Result<T, Complaint>,
    ) -> Option<T> {
        self.known.insert(key);
        let entry = self.entries.remove(key)?;
        self.origins.insert(key, entry.origin);
        if entry.value.is_blank() {
            self.origins.remove(key);
            return None;
        }
        match parse(entry.value) {
            Ok(value) => Some(value),
            Err(complaint) => {
                self.complain(key, complaint);
                None
            }
        }
    }

    /// Takes a key that has a default.
    pub(super) fn or<T>(
        &mut self,
        key: &'static str,
        default: T,
        parse: impl FnOnce(Value) -> Result<T, Complaint>,
    ) -> T {
        self.optional(key, parse).unwrap_or(default)
    }

    /// Reports a problem with a key, at the place where its value is from.
    pub(super) fn complain(&mut self, key: &'static str, complaint: Complaint) {
        self.problems.push(Problem {
            key: key.to_owned(),
            origin: self.origins.get(key).cloned(),
            complaint,
        });
    }

    /// Reports that `key` is needed and not there; silent where it is there, but wrong.
    pub(super) fn require(&mut self, key: &'static str, why: &str, example: &str) {
        let reported = self.problems.iter().any(|problem| problem.key == key);
        if !reported && !self.broken.iter().any(|broken| broken == key) {
            let mend = format!(
                "{why}: set it in config.toml or as {}, as in {example}",
                environment::variable(key)
            );
            self.complain(key, Complaint::new("not set", mend));
        }
    }

    /// Ends the reading: what no section took is unknown.
    pub(super) fn finish(mut self) -> Result<(), ConfigError> {
        for (name, origin) in std::mem::take(&mut self.sections) {
            let prefix = format!("{name}.");
            let known = self.known.iter().any(|key| key.starts_with(&prefix));
            let reported = self.entries.keys().any(|key| key.starts_with(&prefix));
            if !known && !reported {
                self.unknown(name, origin);
            }
        }
        for (key, entry) in std::mem::take(&mut self.entries) {
            self.unknown(key, entry.origin);
        }
        if self.problems.is_empty() {
            Ok(())
        } else {
            Err(ConfigError {
                problems: self.problems,
            })
        }
    }

    fn unknown(&mut self, key: String, origin: Origin) {
        let section = key.split_once('.').map_or("", |(section, _)| section);
        let siblings: Vec<_> = (self.known.iter())
            .filter_map(|known| known.split_once('.'))
            .filter(|(of, _)| *of == section)
            .map(|(_, name)| name)
            .collect();
        let mend = if siblings.is_empty() {
            let sections: BTreeSet<_> = (self.known.iter())
                .filter_map(|known| known.split_once('.'))
                .map(|(section, _)| section)
                .collect();
            let sections: Vec<_> = sections.into_iter().collect();
            format!("remove it; the sections are {}", sections.join(", "))
        } else {
            format!("remove it; {section} has {}", siblings.join(", "))
        };
        self.problems.push(Problem {
            key,
            origin: Some(origin),
            complaint: Complaint::new("no such key", mend),
        });
    }
}
