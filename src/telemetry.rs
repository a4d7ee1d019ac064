//! The log: `tracing` to standard error.

use std::io::{self, IsTerminal};

use thiserror::Error;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::ParseError;
use tracing_subscriber::util::{SubscriberInitExt, TryInitError};

use crate::config::{Log, LogFormat};

/// Crates whose lines below a warning are of use to their own authors alone.
const NOISY: [&str; 7] = [
    "hickory_net",
    "hickory_proto",
    "hickory_resolver",
    "hyper",
    "mongodb",
    "rmcp",
    "rustls",
];

/// A `log.level` that cannot be used.
#[derive(Debug, Error)]
pub enum FilterError {
    /// Neither a level nor a directive.
    #[error("{0:?} is no level")]
    Level(String),
    /// A directive that does not parse.
    #[error("the directives cannot be read ({0})")]
    Directive(#[from] ParseError),
}

/// Starts the log of this process.
///
/// # Errors
///
/// Where a log is there already, or the level cannot be used (which [`Log`] has checked).
pub fn init(log: &Log) -> Result<(), InitError> {
    let filter = filter(&log.level)?;
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr);
    match log.format {
        LogFormat::Text => {
            let colour = io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
            builder.with_ansi(colour).finish().try_init()?;
        }
        LogFormat::Json => builder
            .json()
            .flatten_event(true)
            .with_span_list(false)
            .finish()
            .try_init()?,
    }
    Ok(())
}

/// Why the log could not be started.
#[derive(Debug, Error)]
pub enum InitError {
    /// The level.
    #[error(transparent)]
    Filter(#[from] FilterError),
    /// There is one already.
    #[error("a log is there already: {0}")]
    Twice(#[from] TryInitError),
}

/// The filter for a `log.level`: one level, or `tracing`'s directives separated by commas.
///
/// Other crates are kept quiet unless a directive names them.
///
/// # Errors
///
/// Where it is neither. A bare word that is no level is refused, though `tracing` takes it for a
/// target: it is a slip of the pen, and would turn the log off.
pub fn filter(level: &str) -> Result<EnvFilter, FilterError> {
    let directives = level
        .split(',')
        .map(str::trim)
        .filter(|part| !part.is_empty());
    let mut base = LevelFilter::ERROR;
    for directive in directives.clone().filter(|part| !part.contains(['=', '['])) {
        base = directive
            .parse()
            .map_err(|_| FilterError::Level(directive.to_owned()))?;
    }
    let quiet = NOISY
        .into_iter()
        .filter(|name| {
            base > LevelFilter::WARN && !directives.clone().any(|part| part.starts_with(name))
        })
        .map(|name| format!("{name}=warn"));
    let all: Vec<_> = quiet.chain(directives.clone().map(str::to_owned)).collect();
    Ok(EnvFilter::builder().parse(all.join(","))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_keeps_other_crates_quiet() {
        let filter = filter("debug").unwrap().to_string();
        assert!(filter.contains("mongodb=warn"), "{filter}");
        assert!(filter.contains("debug"), "{filter}");
    }

    #[test]
    fn a_crate_that_is_named_is_heard() {
        let filter = filter("info,mongodb=debug").unwrap().to_string();
        assert!(filter.contains("mongodb=debug"), "{filter}");
        assert!(!filter.contains("mongodb=warn"), "{filter}");
    }

    #[test]
    fn quiet_never_means_louder() {
        assert_eq!(filter("error").unwrap().to_string(), "error");
        assert_eq!(filter("off").unwrap().to_string(), "off");
    }

    #[test]
    fn a_misspelt_level_is_refused() {
        assert!(filter("inof").is_err());
        assert!(filter("info,baton=loud").is_err());
    }
}
