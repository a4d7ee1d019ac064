//! Connecting to MongoDB, and what its errors ask for.

mod misfit;
mod probe;

use std::time::Duration;

pub use misfit::Misfit;
pub use probe::{Found, PATIENCE};

use mongodb::{
    Client,
    error::{Error, ErrorKind, WriteFailure},
    options::{Acknowledgment, ClientOptions, WriteConcern},
};

/// How long to look for a usable server before an operation fails.
const SERVER_SELECTION: Duration = Duration::from_secs(5);

/// How long a write may wait for the majority.
const MAJORITY_WAIT: Duration = Duration::from_secs(10);

/// How many connections there may be. The driver's own 10 are too few where many conversations are
/// worked on at once, each with several reads side by side.
const POOL: u32 = 64;

/// What an error of MongoDB's asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// It passes: a network fault, an election, an overload. Try again, with patience.
    Passing,
    /// It stays until an operator acts; the sentence says how.
    Final(&'static str),
    /// The change stream cannot go on from its token.
    TokenLost,
    /// This command fails; others may not.
    Command,
}

/// A client for `uri`: majority write concern, a short server selection.
///
/// # Errors
///
/// A URI that cannot be understood or resolved.
pub async fn connect(uri: &str, purpose: &str) -> Result<Client, Error> {
    let mut options = ClientOptions::parse(uri).await?;
    options
        .app_name
        .get_or_insert_with(|| format!("baton ({purpose})"));
    options
        .server_selection_timeout
        .get_or_insert(SERVER_SELECTION);
    options.max_pool_size.get_or_insert(POOL);
    options.write_concern = Some(
        WriteConcern::builder()
            .w(Acknowledgment::Majority)
            .w_timeout(MAJORITY_WAIT)
            .build(),
    );
    // Reads go to the primary: what Baton decides on must be the newest there is.
    options.selection_criteria = None;
    options.read_concern = None;
    Client::with_options(options)
}

/// Sorts an error by what is to be done about it.
#[must_use]
pub fn classify(error: &Error) -> Failure {
    if let ErrorKind::Authentication { .. } = error.kind.as_ref() {
        return Failure::Final(
            "MongoDB refuses the credentials: mend user, password or authSource in mongodb.uri",
        );
    }
    match code(error) {
        Some(18) => Failure::Final(
            "MongoDB refuses the credentials: mend user, password or authSource in mongodb.uri",
        ),
        Some(13) => {
            Failure::Final("MongoDB denies a right: `baton check` names each one that is missing")
        }
        Some(40573) => Failure::Final(misfit::ALONE),
        // ChangeStreamHistoryLost, ChangeStreamFatalError, InvalidResumeToken, CappedPositionLost,
        // BSONObjectTooLarge, and a token whose text is not one (KeyString and version checks).
        Some(286 | 280 | 260 | 136 | 10334 | 50811 | 40647 | 40649 | 50795 | 50796) => {
            Failure::TokenLost
        }
        // Interrupted, elections, shutdowns, unreachable hosts, time-outs, lost cursors.
        Some(
            6 | 7 | 43 | 50 | 63 | 64 | 89 | 91 | 112 | 133 | 150 | 189 | 202 | 216 | 234 | 237
            | 262 | 290 | 317 | 358 | 384 | 9001 | 10058 | 10107 | 11600 | 11601 | 11602 | 13388
            | 13435 | 13436 | 14031,
        ) => Failure::Passing,
        Some(_) => Failure::Command,
        None => match error.kind.as_ref() {
            ErrorKind::Io(_)
            | ErrorKind::ConnectionPoolCleared { .. }
            | ErrorKind::ServerSelection { .. }
            | ErrorKind::DnsResolve { .. }
            | ErrorKind::InvalidResponse { .. } => Failure::Passing,
            _ if error.contains_label("RetryableWriteError")
                || error.contains_label("TransientTransactionError") =>
            {
                Failure::Passing
            }
            _ => Failure::Command,
        },
    }
}

/// The server's error code.
#[must_use]
pub fn code(error: &Error) -> Option<i32> {
    match error.kind.as_ref() {
        ErrorKind::Command(command) => Some(command.code),
        ErrorKind::Write(WriteFailure::WriteError(write)) => Some(write.code),
        ErrorKind::Write(WriteFailure::WriteConcernError(concern)) => Some(concern.code),
        _ => None,
    }
}

/// An error in one line, without the server's whole answer, which the driver's own words include
/// and which may quote a document.
#[must_use]
pub fn words(error: &Error) -> String {
    match error.kind.as_ref() {
        ErrorKind::Command(command) => {
            format!(
                "{} ({} {})",
                command.message, command.code, command.code_name
            )
        }
        ErrorKind::Write(WriteFailure::WriteError(write)) => {
            format!("a write failed with code {}", write.code)
        }
        ErrorKind::Write(WriteFailure::WriteConcernError(concern)) => {
            format!(
                "{} ({} {})",
                concern.message, concern.code, concern.code_name
            )
        }
        ErrorKind::ServerSelection { message, .. } => no_server(message),
        kind => kind.to_string(),
    }
}

/// Whether no server was there to ask, or one that is no member of a set that works: then it is
/// worth a look whether there is a [`Misfit`].
#[must_use]
pub fn finds_no_server(error: &Error) -> bool {
    // NotYetInitialized, NotPrimaryOrSecondary.
    matches!(error.kind.as_ref(), ErrorKind::ServerSelection { .. })
        || matches!(code(error), Some(94 | 13436))
}

/// The driver's account of its search for a server in one sentence. The account is the whole
/// topology in `Debug` form, and differs from one time to the next.
fn no_server(search: &str) -> String {
    let mut silent = Vec::new();
    for server in search.split("{ Address: ").skip(1) {
        let address = server.split(", Type: ").next().unwrap_or_default();
        let error = server.split_once("Error: Kind: ").map(|(_, error)| error);
        let error = error.and_then(|error| error.split_once(", labels: "));
        if let Some((error, _)) = error {
            silent.push(format!("{address}: {error}"));
        }
    }
    if !silent.is_empty() {
        return format!("MongoDB does not answer: {}", silent.join("; "));
    }
    if search.contains("No available servers") {
        return "no server of mongodb.uri can be used".to_owned();
    }
    if search.contains("Topology: ") {
        return "the replica set has no primary at the moment".to_owned();
    }
    search.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_for_a_server_is_told_in_one_sentence() {
        let search = "Server selection timeout: No available servers. Topology: { Type: \
                      ReplicaSetNoPrimary, Set Name: rs0, Servers: [ { Address: a:1, Type: \
                      Unknown, Error: Kind: I/O error: tls handshake eof, labels: {}, source: \
                      None }, { Address: b:1, Type: Unknown } ] }";
        assert_eq!(
            no_server(search),
            "MongoDB does not answer: a:1: I/O error: tls handshake eof"
        );
        let search = "Server selection timeout: No available servers. Topology: { Type: \
                      ReplicaSetNoPrimary, Set Name: rs0, Servers: [  ] }";
        assert_eq!(no_server(search), "no server of mongodb.uri can be used");
        let search = "Server selection timeout: None of the available servers suitable for \
                      criteria ReadPreference(Primary). Topology: { Type: ReplicaSetNoPrimary, \
                      Servers: [ { Address: a:1, Type: RsSecondary } ] }";
        assert_eq!(
            no_server(search),
            "the replica set has no primary at the moment"
        );
        assert_eq!(no_server("anything else"), "anything else");
    }
}
