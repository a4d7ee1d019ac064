//! `[log]`: what is written to standard error.

use super::layers::Layers;
use super::parse;
use super::problem::Complaint;
use crate::telemetry;

/// `[log]`: what is written to standard error.
#[derive(Clone, Debug)]
pub struct Log {
    /// For people or for machines.
    pub format: LogFormat,
    /// A level, or tracing's directives; [`telemetry::filter`] takes it.
    pub level: String,
}

/// The form of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

impl Log {
    pub(super) fn read(layers: &mut Layers) -> Self {
        let format = layers.or("log.format", LogFormat::Text, |value| {
            match parse::text(value)?.as_str() {
                "text" => Ok(LogFormat::Text),
                "json" => Ok(LogFormat::Json),
                other => Err(Complaint::new(
                    format!("found {other:?}"),
                    "give \"text\" or \"json\"",
                )),
            }
        });
        let level = layers.or("log.level", "info".to_owned(), |value| {
            let text = parse::text(value)?;
            match telemetry::filter(&text) {
                Ok(_) => Ok(text),
                Err(error) => Err(Complaint::new(
                    error.to_string(),
                    "give error, warn, info, debug or trace, or directives as in \
                     \"info,baton::feed=debug\"",
                )),
            }
        });
        Self { format, level }
    }
}
