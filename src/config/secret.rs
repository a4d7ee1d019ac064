//! A value that is never shown.

use std::fmt;

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// A password, a token or a URI that holds one. Neither `Debug` nor `Display` shows it, so that it
/// cannot reach a log by accident; [`Secret::expose`] is the one way to it.
#[derive(Clone)]
pub struct Secret(Box<str>);

impl Secret {
    /// The value itself, for the call that needs it.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Whether `shown` is the value. Digests are compared, so that neither content nor length shows
    /// in the time that it takes.
    #[must_use]
    pub fn is(&self, shown: &str) -> bool {
        Sha256::digest(shown)
            .ct_eq(&Sha256::digest(self.expose()))
            .into()
    }
}

impl From<String> for Secret {
    fn from(value: String) -> Self {
        Self(value.into())
    }
}

impl From<&str> for Secret {
    fn from(value: &str) -> Self {
        Self(value.into())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_never_shown() {
        let secret = Secret::from("hunter2");
        assert_eq!(
            format!("{secret} {secret:?} {secret:#?}"),
            "[secret] [secret] [secret]"
        );
        assert_eq!(secret.expose(), "hunter2");
        assert!(secret.is("hunter2"));
        assert!(!secret.is("hunter") && !secret.is("hunter2 ") && !secret.is(""));
    }
}
