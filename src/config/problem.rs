//! What is wrong with a configuration, where, and how to mend it.

use std::fmt;

use thiserror::Error;

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The dotted key, as in `switch.guard`; empty where it is the file as a whole.
    pub key: String,
    /// Where the value comes from: a line of the file, a variable, or the file that a variable
    /// names; `None` where there is none.
    pub place: Option<String>,
    /// What was found, and how to mend it.
    pub complaint: Complaint,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = &self.place {
            write!(f, "{place}: ")?;
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

impl From<Problem> for ConfigError {
    fn from(problem: Problem) -> Self {
        Self {
            problems: vec![problem],
        }
    }
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
