//! The driver's errors in a few words.

use mongodb::error::{Error, ErrorKind, WriteFailure};

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
        ErrorKind::ServerSelection { message, .. } => cause(message).to_owned(),
        ErrorKind::Command(error) => format!("{} ({})", error.message, error.code_name),
        ErrorKind::Write(WriteFailure::WriteError(error)) => error.message.clone(),
        ErrorKind::Io(error) => error.to_string(),
        kind => kind.to_string(),
    }
}

/// The first server's own error in the driver's account of its search, which is the whole topology
/// in `Debug` form; the account itself, where it holds none.
fn cause(search: &str) -> &str {
    let error = search.split_once("Error: Kind: ").map(|(_, error)| error);
    let error = error.and_then(|error| error.split_once(", labels: "));
    error.map_or(search, |(error, _)| error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cause_is_found_in_the_account_of_the_search() {
        let search = "Server selection timeout: No available servers. Topology: { Type: Single, \
                      Servers: [ { Address: a:1, Type: Unknown, Error: Kind: I/O error: tls \
                      handshake eof, labels: {}, source: None } ] }";
        assert_eq!(cause(search), "I/O error: tls handshake eof");
        assert_eq!(cause("anything else"), "anything else");
    }
}
