//! `[mongodb]`: where LibreChat's data is.

use ::config::Value;
use mongodb::error::ErrorKind;
use mongodb::options::ConnectionString;

use super::layers::Layers;
use super::parse;
use super::problem::Complaint;
use super::secret::Secret;

/// The database of Node's driver, and so of LibreChat, where the URI names none.
const UNNAMED: &str = "test";

/// `[mongodb]`: where LibreChat's data is.
#[derive(Clone, Debug)]
pub struct Mongodb {
    /// The connection string. LibreChat's own (`MONGO_URI`) will do where its user has the rights.
    pub uri: Secret,
    /// LibreChat's database.
    pub database: String,
}

impl Mongodb {
    pub(super) fn read(layers: &mut Layers) -> Self {
        let uri = layers.optional("mongodb.uri", uri);
        if uri.is_none() {
            layers.require(
                "mongodb.uri",
                "Baton needs LibreChat's MongoDB",
                "\"mongodb://127.0.0.1:27017/LibreChat?replicaSet=rs0\"; \
                 LibreChat's own MONGO_URI will do",
            );
        }
        let (uri, named) = uri.unwrap_or_else(|| (Secret::from(""), None));
        let named = named.unwrap_or_else(|| UNNAMED.to_owned());
        let database = layers.or("mongodb.database", named, parse::database);
        Self { uri, database }
    }
}

/// The URI, and the database that it names.
fn uri(value: Value) -> Result<(Secret, Option<String>), Complaint> {
    let secret = parse::secret(value)?;
    let text = secret.expose().trim();
    match ConnectionString::parse(text) {
        Ok(parsed) => Ok((Secret::from(text), parsed.default_database)),
        Err(error) => Err(complaint(text, &error)),
    }
}

/// Says what is wrong with a URI and nothing of its user and password, which the driver's own
/// message may quote. So the driver is asked again without them.
fn complaint(uri: &str, error: &mongodb::error::Error) -> Complaint {
    const MEND: &str = "give mongodb://[user:password@]host[:port]/database[?options]";
    let Some((credentials, rest)) = uri.rsplit_once('@') else {
        return Complaint::new(message(error), MEND);
    };
    let scheme = credentials.split_once("://").map_or("mongodb", |(s, _)| s);
    match ConnectionString::parse(format!("{scheme}://user:password@{rest}")) {
        Ok(_) => Complaint::new(
            "the user or the password cannot be read",
            "write : / ? # [ ] @ % in them as %3A %2F %3F %23 %5B %5D %40 %25",
        ),
        Err(error) => Complaint::new(message(&error), MEND),
    }
}

/// The driver's message, less what it quotes of the hosts: where the `@` is missing, they are the
/// user and the password.
fn message(error: &mongodb::error::Error) -> String {
    let ErrorKind::InvalidArgument { message, .. } = error.kind.as_ref() else {
        return "not a connection string".to_owned();
    };
    if let Some((option, _)) = message.split_once(" is an invalid option") {
        return format!(
            "the driver knows no option {option:?}, though LibreChat's may; \
             Baton can have a URI of its own, without it"
        );
    }
    match message.strip_prefix("invalid server address ") {
        Some(rest) => {
            let reason = rest.split(", got ").next().unwrap_or_default();
            let reason = reason.rsplit_once(": ").map_or("", |(_, reason)| reason);
            format!("a host cannot be read: {reason}")
        }
        None => message.to_owned(),
    }
}
