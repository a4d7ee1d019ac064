//! The layers put over one another, and the way from them to typed settings.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::Path;

use ::config::{Config, Environment, File, FileFormat, Map, Value, ValueKind};

use super::problem::{Complaint, ConfigError, Problem};
use super::{environment, file};

/// All that was given.
///
/// Each section asks for its keys; what no section asked for is unknown. So a key is written down
/// once, where it is read, and problems are collected on the way: the whole of them is reported.
#[derive(Default)]
pub(super) struct Layers {
    /// The values, a later layer's over an earlier one's.
    values: Config,
    /// Each key that was given, with its place, layer by layer.
    pub(super) given: Vec<(String, String)>,
    /// The keys that sections have asked for so far.
    pub(super) known: BTreeSet<&'static str>,
    problems: Vec<Problem>,
    /// Variables that are none of Baton's, by their names, but may be meant to be.
    strangers: Vec<String>,
    /// What can be used, but may not be as it is meant.
    pub(super) doubts: Vec<String>,
}

impl Layers {
    /// Puts an environment over the text of a file.
    pub(super) fn new(
        path: &Path,
        text: &str,
        variables: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Result<Self, ConfigError> {
        let mut layers = Self {
            given: file::keys(path, text)?,
            ..Self::default()
        };
        let variables: Vec<_> = variables.into_iter().collect();
        layers.strangers = environment::strangers(&variables);
        let mut texts = Map::new();
        for setting in environment::settings(variables, &mut layers.problems) {
            layers.given.push((setting.key.clone(), setting.place));
            texts.insert(setting.key, setting.text);
        }
        layers.values = Config::builder()
            .add_source(File::from_str(text, FileFormat::Toml))
            .add_source(Environment::default().source(Some(texts)))
            .build()
            // The text is TOML by now, so this is a number out of range.
            .map_err(|error| Problem {
                key: String::new(),
                place: Some(path.display().to_string()),
                complaint: Complaint::new(error, "give text in quotes, true or false"),
            })?;
        Ok(layers)
    }

    /// Takes a key, where it is given and right. An empty text is as if the key were not there:
    /// Compose and Helm set variables to nothing where there is nothing to say.
    pub(super) fn optional<T>(
        &mut self,
        key: &'static str,
        parse: impl FnOnce(Value) -> Result<T, Complaint>,
    ) -> Option<T> {
        self.known.insert(key);
        // By its table, because `Config::get` would lose the origin.
        let (section, name) = key.split_once('.')?;
        let value = self.values.get_table(section).ok()?.remove(name)?;
        if matches!(&value.kind, ValueKind::String(text) if text.trim().is_empty()) {
            return None;
        }
        match parse(value) {
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
        let given = self.given.iter().rfind(|(given, _)| given == key);
        self.problems.push(Problem {
            key: key.to_owned(),
            place: given.map(|(_, place)| place.clone()),
            complaint,
        });
    }

    /// Reports that `key` is needed and not there; silent where it is there, but wrong.
    pub(super) fn require(&mut self, key: &'static str, why: &str, example: &str) {
        if !self.problems.iter().any(|problem| problem.key == key) {
            let mend = format!(
                "{why}: set it in config.toml or as {}, as in {example}",
                environment::variable(key)
            );
            self.complain(key, Complaint::new("not set", mend));
        }
    }

    /// Doubts each variable that is a slip of the pen for that of a key, unless that is given too:
    /// then it may well be another program's.
    pub(super) fn doubt_strangers(&mut self) {
        for name in std::mem::take(&mut self.strangers) {
            let meant = (self.known.iter()).find(|key| environment::resembles(&name, key));
            match meant {
                Some(key) if self.given.iter().any(|(given, _)| given == key) => {}
                Some(key) => self.doubts.push(format!(
                    "the variable {name} is not read; did you mean {}?",
                    environment::variable(key)
                )),
                None if name.contains("__") => self.doubts.push(format!(
                    "the variable {name} is not read: those of Baton's keys are BATON__SECTION__KEY"
                )),
                None => {}
            }
        }
    }

    /// Ends the reading: what no section asked for is unknown.
    pub(super) fn finish(mut self) -> Result<(), ConfigError> {
        for (key, place) in std::mem::take(&mut self.given) {
            let known =
                |known: &&str| *known == key || key.ends_with('.') && known.starts_with(&key);
            if !self.known.iter().any(known) {
                self.problems.push(Problem {
                    complaint: self.unknown(&key),
                    key: key.trim_end_matches('.').to_owned(),
                    place: Some(place),
                });
            }
        }
        if self.problems.is_empty() {
            Ok(())
        } else {
            Err(ConfigError {
                problems: self.problems,
            })
        }
    }

    fn unknown(&self, key: &str) -> Complaint {
        let (section, name) = key.split_once('.').unwrap_or((key, ""));
        let known = || self.known.iter().filter_map(|known| known.split_once('.'));
        let sections: BTreeSet<_> = known().map(|(section, _)| section).collect();
        let siblings: Vec<_> = known()
            .filter(|(of, _)| *of == section)
            .map(|(_, name)| name)
            .collect();
        let (meant, others) = if siblings.is_empty() {
            let meant = near(section, sections.iter().copied());
            let sections: Vec<_> = sections.into_iter().collect();
            (meant, format!("the sections are {}", sections.join(", ")))
        } else {
            let meant = near(name, siblings.iter().copied());
            (meant, format!("{section} has {}", siblings.join(", ")))
        };
        let mend = match meant {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => "remove it;".to_owned(),
        };
        Complaint::new("no such key", format!("{mend} {others}"))
    }
}

/// The name that was meant, where one is near enough.
fn near<'a>(given: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let given = given.to_ascii_lowercase();
    names
        .map(|name| (strsim::damerau_levenshtein(&given, name), name))
        .filter(|(distance, name)| *distance <= 2.min(name.len() / 3))
        .min()
        .map(|(_, name)| name)
}
