//! Connecting to MongoDB, and what its errors ask for.

use std::time::Duration;

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
        Some(40573) => Failure::Final(
            "MongoDB runs as a standalone server, which has no change streams: make it a \
             replica set (one member is enough); the README says how",
        ),
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
        kind => kind.to_string(),
    }
}
