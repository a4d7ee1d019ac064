//! Names that the operator gives to agents: `agents.aliases`, and a file that may change.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use thiserror::Error;

use crate::librechat::AgentId;

type Names = BTreeMap<String, AgentId>;

/// The names.
#[derive(Debug, Default)]
pub struct Aliases {
    fixed: Names,
    file: Option<Watched>,
}

/// A file that is read again when it has changed.
#[derive(Debug)]
struct Watched {
    path: PathBuf,
    read: Mutex<Read>,
}

#[derive(Debug, Default)]
struct Read {
    stamp: Option<Stamp>,
    names: Names,
}

/// What changes with the file. A mounted Kubernetes secret is another file each time.
type Stamp = (SystemTime, u64);

/// Why the file cannot be used.
#[derive(Debug, Error)]
pub enum FileError {
    /// It cannot be read.
    #[error("{0}")]
    Unreadable(#[from] std::io::Error),
    /// It is no JSON object of texts.
    #[error("{0}")]
    NoJson(#[from] serde_json::Error),
    /// A name stands for something that is no agent's id.
    #[error("{0:?} stands for what is no agent's id")]
    NoAgent(String),
}

impl Aliases {
    /// The names of the settings; a name in the settings wins over one in the file.
    #[must_use]
    pub fn new(fixed: Names, file: Option<PathBuf>) -> Self {
        let watch = |path| Watched {
            path,
            read: Mutex::default(),
        };
        Self {
            fixed,
            file: file.map(watch),
        }
    }

    /// The agent that goes by this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<AgentId> {
        self.fixed
            .get(name)
            .cloned()
            .or_else(|| self.file.as_ref()?.get(name))
    }
}

impl Watched {
    /// One `stat` each time, and a small file now and then: less than any read of the database.
    fn get(&self, name: &str) -> Option<AgentId> {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let stamp = fs::metadata(&self.path)
            .and_then(|file| Ok((file.modified()?, file.len())))
            .ok();
        if read.stamp != stamp {
            match read_file(&self.path) {
                Ok(names) => read.names = names,
                Err(error) => {
                    tracing::warn!(%error, file = %self.path.display(), "agents.file cannot be used; its former names stay");
                }
            }
            read.stamp = stamp;
        }
        read.names.get(name).cloned()
    }
}

/// Reads `{"name": "agent_…"}`.
///
/// # Errors
///
/// Where the file is not there or not of that form.
pub fn read_file(path: &Path) -> Result<Names, FileError> {
    let names: BTreeMap<String, String> = serde_json::from_slice(&fs::read(path)?)?;
    names
        .into_iter()
        .map(|(name, id)| match AgentId::stored(&id) {
            Some(id) => Ok((name, id)),
            None => Err(FileError::NoAgent(name)),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_file_is_read_again_when_it_changes() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(br#"{"one": "agent_1"}"#).unwrap();
        let aliases = Aliases::new(BTreeMap::new(), Some(file.path().to_owned()));
        assert_eq!(aliases.get("one"), Some("agent_1".into()));
        file.write_all(b" nonsense").unwrap();
        assert_eq!(
            aliases.get("one"),
            Some("agent_1".into()),
            "the former names stay"
        );
        fs::write(file.path(), r#"{"two": "agent_2"}"#).unwrap();
        assert_eq!(aliases.get("two"), Some("agent_2".into()));
        assert_eq!(aliases.get("one"), None);
    }

    #[test]
    fn the_settings_win_over_the_file() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(br#"{"one": "agent_1", "two": "agent_2"}"#)
            .unwrap();
        let fixed = [("one".to_owned(), "agent_9".into())].into();
        let aliases = Aliases::new(fixed, Some(file.path().to_owned()));
        assert_eq!(aliases.get("one"), Some("agent_9".into()));
        assert_eq!(aliases.get("two"), Some("agent_2".into()));
        assert_eq!(aliases.get("three"), None);
    }

    #[test]
    fn a_file_of_another_form_is_refused() {
        for text in ["", "[]", r#"{"a": 1}"#, r#"{"a": "Billing"}"#] {
            let mut file = tempfile::NamedTempFile::new().unwrap();
            file.write_all(text.as_bytes()).unwrap();
            assert!(read_file(file.path()).is_err(), "{text}");
        }
    }
}
