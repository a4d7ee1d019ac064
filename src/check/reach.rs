//! Whether MongoDB is there and lets Baton in.

use std::time::Duration;

use mongodb::Client;
use mongodb::bson::{Document, doc};
use mongodb::error::ErrorKind;
use mongodb::options::{ClientOptions, ServerAddress};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::reason::reason;
use super::report::Report;
use crate::config::Settings;

const WHAT: &str = "MongoDB";

/// How long a server may take to answer. Between machines of one deployment this is much.
const PATIENCE: Duration = Duration::from_secs(5);

/// A server as it presents itself to anyone who asks.
pub(super) struct Found {
    pub(super) address: ServerAddress,
    pub(super) hello: Document,
}

impl Found {
    pub(super) fn set_name(&self) -> Option<&str> {
        self.hello.get_str("setName").ok()
    }

    pub(super) fn is_replica_set(&self) -> bool {
        self.set_name().is_some()
    }

    pub(super) fn is_router(&self) -> bool {
        self.hello.get_str("msg").is_ok_and(|msg| msg == "isdbgrid")
    }

    /// Whether it has an oplog, which change streams are made from.
    pub(super) fn has_streams(&self) -> bool {
        self.is_replica_set() || self.is_router()
    }
}

/// A client that the server has let in.
pub(super) struct Login {
    pub(super) client: Client,
    /// User and database; `None` where the server asks for no login.
    pub(super) user: Option<(String, String)>,
    pub(super) server: String,
}

/// The options that the URI stands for. Names of `mongodb+srv` are looked up here.
pub(super) async fn options(settings: &Settings, report: &mut Report) -> Option<ClientOptions> {
    match ClientOptions::parse(settings.mongodb.uri.expose()).await {
        Ok(mut options) => {
            options.app_name = Some("baton check".to_owned());
            options.connect_timeout = Some(PATIENCE);
            options.server_selection_timeout = Some(PATIENCE);
            Some(options)
        }
        Err(error) => {
            report.fail(
                WHAT,
                format!("mongodb.uri leads nowhere: {}", reason(&error)),
                "With mongodb+srv:// the hosts are looked up in the DNS: see that this machine \
                 has it,\nor name the hosts in a mongodb:// URI.",
            );
            None
        }
    }
}

/// Finds a host of the URI that answers, and asks what it is; without a login, so that a wrong
/// password hides nothing.
pub(super) async fn first(options: &ClientOptions, report: &mut Report) -> Option<Found> {
    let mut found = None;
    let mut silent = Vec::new();
    for address in &options.hosts {
        match connect(address).await {
            Ok(()) => found = found.or_else(|| Some(address.clone())),
            Err(why) => silent.push(format!("{address}: {why}")),
        }
    }
    let Some(address) = found else {
        report.fail(
            WHAT,
            format!("no answer from {}", silent.join(", ")),
            "See that MongoDB runs, that host and port in mongodb.uri are right, and that it \
             listens there.\nInside a container 127.0.0.1 is the container itself: name \
             MongoDB's service instead.",
        );
        return None;
    };
    if !silent.is_empty() {
        report.warn(
            WHAT,
            format!("no answer from {}", silent.join(", ")),
            "Others answer, so this may be on purpose.",
        );
    }
    match hello(options, &address).await {
        Ok(hello) => Some(Found { address, hello }),
        Err(error) => {
            report.fail(
                WHAT,
                format!(
                    "{address} does not answer as MongoDB does: {}",
                    reason(&error)
                ),
                "See that the port is MongoDB's, and whether it wants TLS: with it, tls=true has \
                 to be among the\nURI's options, and without it not.",
            );
            None
        }
    }
}

async fn connect(address: &ServerAddress) -> Result<(), String> {
    let ServerAddress::Tcp { host, port } = address else {
        return Ok(());
    };
    match timeout(
        PATIENCE,
        TcpStream::connect((host.as_str(), port.unwrap_or(27017))),
    )
    .await
    {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err(format!("nothing within {} s", PATIENCE.as_secs())),
    }
}

async fn hello(
    options: &ClientOptions,
    address: &ServerAddress,
) -> mongodb::error::Result<Document> {
    let mut options = options.clone();
    options.hosts = vec![address.clone()];
    options.direct_connection = Some(true);
    options.repl_set_name = None;
    options.load_balanced = None;
    options.srv_max_hosts = None;
    options.credential = None;
    let client = Client::with_options(options)?;
    client
        .database("admin")
        .run_command(doc! { "hello": 1 })
        .await
}

/// Logs in as `baton run` will.
pub(super) async fn login(
    options: ClientOptions,
    found: &Found,
    report: &mut Report,
) -> Option<Login> {
    let name = (options.credential.as_ref()).and_then(|credential| credential.username.clone());
    let status = async {
        let client = Client::with_options(options)?;
        let command = doc! { "connectionStatus": 1 };
        let status = client.database("admin").run_command(command).await?;
        Ok((client, status))
    };
    match status.await {
        Ok((client, status)) => {
            let user = user(&status);
            let server = found.address.to_string();
            let who = match &user {
                Some((user, database)) => format!("as {user} of {database}"),
                None => "without a login".to_owned(),
            };
            report.ok(WHAT, format!("{server} lets Baton in, {who}"));
            Some(Login {
                client,
                user,
                server,
            })
        }
        Err(error) => {
            let (text, mend) = no_login(&error, name, found);
            report.fail(WHAT, text, mend);
            None
        }
    }
}

fn no_login(
    error: &mongodb::error::Error,
    name: Option<String>,
    found: &Found,
) -> (String, &'static str) {
    if let ErrorKind::Authentication { message, .. } = error.kind.as_ref() {
        let name = name.unwrap_or_else(|| "the user of the URI".to_owned());
        return (
            format!("{} does not let {name} in: {message}", found.address),
            "See user and password in mongodb.uri. A user belongs to a database: where that is \
             not the one that\nthe URI names, add authSource to its options, as in \
             ?authSource=admin.",
        );
    }
    let members = found.hello.get_array("hosts").ok();
    let members: Vec<_> = (members.into_iter().flatten())
        .filter_map(|host| host.as_str())
        .collect();
    if members.is_empty() {
        return (reason(error), "See MongoDB's log.");
    }
    (
        format!(
            "{} answers, but not the members that its replica set names: {}",
            found.address,
            members.join(", ")
        ),
        "Clients connect to the members by the names that the set gives them, so these have to \
         be\nright for LibreChat and for Baton. Make them resolve here, or rename them, in \
         mongosh:\n  c = rs.conf(); c.members[0].host = \"NAME:PORT\"; rs.reconfig(c)\nWith one \
         member, directConnection=true in Baton's URI, in place of replicaSet, does as well.",
    )
}

fn user(status: &Document) -> Option<(String, String)> {
    let info = status.get_document("authInfo").ok()?;
    let user = info.get_array("authenticatedUsers").ok()?.first()?;
    let user = user.as_document()?;
    Some((
        user.get_str("user").ok()?.to_owned(),
        user.get_str("db").ok()?.to_owned(),
    ))
}
