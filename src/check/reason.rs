//! The driver's errors in a few words.

use mongodb::error::{Error, ErrorKind, WriteFailure};

use crate::mongo::words;

/// The server's code for a missing right.
const UNAUTHORIZED: i32 = 13;

/// Whether the server refuses a right, be it to this user or to anyone without a login.
pub(super) fn is_refusal(error: &Error) -> bool {
    match error.kind.as_ref() {
        ErrorKind::Command(error) => error.code == UNAUTHORIZED,
        ErrorKind::Write(WriteFailure::WriteError(error)) => error.code == UNAUTHORIZED,
        _ => false,
    }
}

/// Why it failed, without the driver's wrapping. Never holds the password: the driver's errors name
/// hosts and databases alone.
pub(super) fn reason(error: &Error) -> String {
    match error.kind.as_ref() {
        ErrorKind::Authentication { message, .. }
        | ErrorKind::DnsResolve { message, .. }
        | ErrorKind::InvalidArgument { message, .. }
        | ErrorKind::InvalidTlsConfig { message, .. }
        | ErrorKind::IncompatibleServer { message, .. } => message.clone(),
        ErrorKind::ServerSelection { .. } => words(error),
        ErrorKind::Command(error) => format!("{} ({})", error.message, error.code_name),
        ErrorKind::Write(WriteFailure::WriteError(error)) => error.message.clone(),
        ErrorKind::Io(error) => error.to_string(),
        kind => kind.to_string(),
    }
}
