//! A MongoDB that answers and is not what Baton needs, or not what the URI says.

use std::fmt;

use mongodb::options::{ClientOptions, ServerAddress};

use super::probe::Found;

/// What does not fit. The driver alone never tells: to it there is no such server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Misfit {
    /// A server without an oplog.
    Alone(ServerAddress),
    /// A server that waits to become a member of a set.
    NoSetYet(ServerAddress),
    /// A replica set of another name.
    OtherSet {
        /// The name in the URI.
        asked: String,
        /// The set's own.
        named: String,
    },
}

impl Misfit {
    /// Why the server cannot be used with these options; `None` where it can.
    #[must_use]
    pub fn of(options: &ClientOptions, found: &Found) -> Option<Self> {
        if found.is_router() {
            return None;
        }
        match (found.set_name(), &options.repl_set_name) {
            (None, _) if found.hello.get_bool("isreplicaset").unwrap_or(false) => {
                Some(Self::NoSetYet(found.address.clone()))
            }
            (None, _) => Some(Self::Alone(found.address.clone())),
            (Some(named), Some(asked)) if asked != named => Some(Self::OtherSet {
                asked: asked.clone(),
                named: named.to_owned(),
            }),
            _ => None,
        }
    }

    /// Looks for a misfit among the servers of a URI that answer.
    pub async fn find(uri: &str) -> Option<Self> {
        let options = ClientOptions::parse(uri).await.ok()?;
        for address in &options.hosts {
            if let Ok(found) = Found::at(&options, address.clone()).await {
                return Self::of(&options, &found);
            }
        }
        None
    }

    /// Whether it stays until an operator changes Baton's settings or starts MongoDB otherwise.
    #[must_use]
    pub fn is_final(&self) -> bool {
        !matches!(self, Self::NoSetYet(_))
    }

    /// What is wrong.
    #[must_use]
    pub fn problem(&self) -> String {
        match self {
            Self::Alone(_) => ALONE.split(": ").next().unwrap_or(ALONE).to_owned(),
            Self::NoSetYet(_) => {
                "mongod was started with --replSet, but the set does not exist yet".to_owned()
            }
            Self::OtherSet { asked, named } => {
                format!("mongodb.uri says replicaSet={asked}, and the set is called {named}")
            }
        }
    }

    /// What to do about it, in as many lines as it takes.
    #[must_use]
    pub fn remedy(&self) -> String {
        match self {
            Self::Alone(address) => alone(address),
            Self::NoSetYet(address) => {
                format!(
                    "Make it, once:\n     {}{}",
                    initiate(address),
                    note(address)
                )
            }
            Self::OtherSet { named, .. } => format!("Write replicaSet={named} in mongodb.uri."),
        }
    }
}

/// [`Misfit::Alone`] as the server's own refusal of a change stream has it too.
pub(super) const ALONE: &str = "this MongoDB stands alone, and only a replica set can tell what \
    changes in it: make it a replica set (one member is enough); `baton check` says how";

/// For a log: all in one line.
impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let problem = self.problem();
        match self {
            Self::Alone(_) => f.write_str(ALONE),
            Self::NoSetYet(address) => write!(f, "{problem}: make it, once: {}", initiate(address)),
            Self::OtherSet { named, .. } => {
                write!(f, "{problem}: write replicaSet={named} in mongodb.uri")
            }
        }
    }
}

fn alone(address: &ServerAddress) -> String {
    format!(
        "One member is enough, and LibreChat's data stays as it is:\n\
         1. Start mongod with --replSet rs0 beside the options that it has. In LibreChat's\n   \
         docker-compose.override.yml:\n     \
         services:\n       mongodb:\n         command: mongod --noauth --replSet rs0 --bind_ip_all\n   \
         or in mongod.conf:\n     replication:\n       replSetName: rs0\n   \
         Where logins are on, a replica set wants --keyFile too: a file of random text, mode 600.\n\
         2. Restart it, and make the set, once:\n     {}{}\n\
         3. LibreChat's own MONGO_URI may stay as it is.",
        initiate(address),
        note(address)
    )
}

/// The command that makes a set of one. The name of the member is what every client connects to.
fn initiate(address: &ServerAddress) -> String {
    format!(
        "mongosh --eval 'rs.initiate({{_id: \"rs0\", members: [{{_id: 0, host: \"{address}\"}}]}})'"
    )
}

fn note(address: &ServerAddress) -> &'static str {
    let host = address.to_string();
    let local = ["127.", "localhost", "[::1]"]
        .iter()
        .any(|prefix| host.starts_with(prefix));
    if local {
        "\n   The host is the name under which LibreChat and Baton both reach it. With \
         LibreChat's own\n   docker-compose that is mongodb:27017, and mongosh is: docker compose \
         exec mongodb mongosh"
    } else {
        ""
    }
}

#[cfg(test)]
mod tests {
    use mongodb::bson::{Document, doc};

    use super::*;

    fn misfit(set: Option<&str>, hello: Document) -> Option<Misfit> {
        let address = ServerAddress::parse("db:27017").unwrap();
        let mut options = ClientOptions::default();
        options.repl_set_name = set.map(str::to_owned);
        Misfit::of(&options, &Found { address, hello })
    }

    #[test]
    fn what_fits_is_no_misfit() {
        assert_eq!(misfit(Some("rs0"), doc! { "setName": "rs0" }), None);
        assert_eq!(misfit(None, doc! { "setName": "rs0" }), None);
        assert_eq!(misfit(Some("rs0"), doc! { "msg": "isdbgrid" }), None);
    }

    #[test]
    fn each_misfit_is_one_line_with_its_remedy() {
        for (hello, last, word) in [
            (doc! {}, true, "make it a replica set"),
            (doc! { "isreplicaset": true }, false, "rs.initiate("),
            (doc! { "setName": "other" }, true, "write replicaSet=other"),
        ] {
            let misfit = misfit(Some("rs0"), hello).unwrap();
            let line = misfit.to_string();
            assert!(line.contains(word) && !line.contains('\n'), "{line}");
            assert!(line.starts_with(&misfit.problem()), "{line}");
            assert_eq!(misfit.is_final(), last);
        }
    }
}
