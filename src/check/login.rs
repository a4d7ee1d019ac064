//! Whether MongoDB lets Baton in.

use mongodb::Client;
use mongodb::bson::{Document, doc};
use mongodb::error::ErrorKind;
use mongodb::options::ClientOptions;

use super::reach::WHAT;
use super::reason::reason;
use super::report::Report;
use crate::mongo::Found;

/// A client that the server has let in.
pub(super) struct Login {
    pub(super) client: Client,
    /// User and database; `None` where the server asks for no login.
    pub(super) user: Option<(String, String)>,
    pub(super) server: String,
}

/// Logs in as `baton run` will.
pub(super) async fn check(
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
