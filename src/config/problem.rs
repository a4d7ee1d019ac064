//! What is wrong with a configuration, where, and how to mend it.

use std::fmt;
use std::path::PathBuf;

use thiserror::Error;

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A line of the configuration file, counted from one.
    File {
        /// The file.
        path: PathBuf,
        /// The line.
        line: usize,
    },
    /// An environment variable.
    Variable(String),
    /// The file that an environment variable (`…_FILE`) names.
    SecretFile {
        /// The variable.
        variable: String,
        /// The file.
        path: PathBuf,
    },
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, line } => write!(f, "{}:{line}", path.display()),
            Self::Variable(name) => f.write_str(name),
            Self::SecretFile { variable, path } => write!(f, "{variable} ({})", path.display()),
        }
    }
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The dotted key, as in `switch.guard`; empty where it is the file as a whole.
    pub key: String,
    /// Where the value comes from; `None` where there is none.
    pub origin: Option<Origin>,
    /// What was found, and how to mend it.
    pub complaint: Complaint,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(origin) = &self.origin {
            write!(f, "{origin}: ")?;
        }
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        write!(f, "{}", self.complaint)
    }
}

/// What was found, never the value of a secret, and how to mend it. Says nothing of where: see
/// [`Problem`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complaint(String);

impl Complaint {
    pub(super) fn new(found: impl fmt::Display, mend: impl fmt::Display) -> Self {
        Self(format!("{found}; {mend}"))
    }
}

impl From<String> for Complaint {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A configuration that cannot be used, with all that is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub struct ConfigError {
    /// Never empty.
    pub problems: Vec<Problem>,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the configuration cannot be used:")?;
        for problem in &self.problems {
            write!(f, "\n  {problem}")?;
        }
        Ok(())
    }
}
