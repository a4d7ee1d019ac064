//! Whether Baton may do what it has to, found out by doing it.

use mongodb::bson::oid::ObjectId;
use mongodb::bson::{Document, doc};
use mongodb::{Client, Database};

use super::login::Login;
use super::reason::{is_refusal, reason};
use super::report::Report;
use crate::config::{SameTurn, Settings};
use crate::librechat::schema;

const WHAT: &str = "rights";

/// Gives the rights that were refused.
pub(super) async fn check(
    settings: &Settings,
    client: &Client,
    has_streams: bool,
    report: &mut Report,
) -> Vec<String> {
    let database = client.database(&settings.mongodb.database);
    let name = database.name();
    let mut refused = Vec::new();
    let mut failed = false;
    let mut note = |right: String, outcome: mongodb::error::Result<()>| match outcome {
        Ok(()) => {}
        Err(error) if is_refusal(&error) => refused.push(right),
        Err(error) => {
            failed = true;
            report.fail(WHAT, format!("{right}: {}", reason(&error)), "");
        }
    };
    if has_streams {
        let outcome = database.watch().await.map(drop);
        note(format!("change stream on {name}"), outcome);
    }
    for collection in schema::READ {
        let outcome = find(&database, collection).await;
        note(format!("find in {name}.{collection}"), outcome);
    }
    let written = written(settings);
    for (collection, actions) in &written {
        for action in *actions {
            let outcome = match *action {
                "remove" => remove(&database, collection).await,
                _ => update(&database, collection).await,
            };
            note(format!("{action} in {name}.{collection}"), outcome);
        }
    }
    if refused.is_empty() && !failed {
        let (stream, untried) = if has_streams {
            ("change stream, ", "")
        } else {
            ("", "; a change stream could not be tried")
        };
        let deeds = written.iter().map(|(collection, actions)| {
            let actions = actions.join(" and ");
            format!("{actions} in {collection}")
        });
        let deeds: Vec<_> = deeds.collect();
        report.ok(
            WHAT,
            format!(
                "on {name}: {stream}find in {} collections, {}{untried}",
                schema::READ.len(),
                deeds.join(", ")
            ),
        );
    }
    refused
}

/// What Baton writes of LibreChat's, as it is set.
fn written(settings: &Settings) -> Vec<(&'static str, &'static [&'static str])> {
    let joined: &[_] = match settings.gateway.same_turn {
        SameTurn::Splice => &schema::JOINED,
        SameTurn::Off | SameTurn::Resend => &[],
    };
    [&schema::WRITTEN, joined].concat()
}

async fn find(database: &Database, collection: &str) -> mongodb::error::Result<()> {
    database
        .collection::<Document>(collection)
        .find_one(doc! {})
        .projection(doc! { "_id": 1 })
        .await
        .map(drop)
}

/// Updates nothing: no document has this id.
async fn update(database: &Database, collection: &str) -> mongodb::error::Result<()> {
    database
        .collection::<Document>(collection)
        .update_one(
            doc! { "_id": ObjectId::new() },
            doc! { "$unset": { "baton_check": "" } },
        )
        .await
        .map(drop)
}

/// Removes nothing, likewise.
async fn remove(database: &Database, collection: &str) -> mongodb::error::Result<()> {
    database
        .collection::<Document>(collection)
        .delete_one(doc! { "_id": ObjectId::new() })
        .await
        .map(drop)
}

/// Tells what is refused, and the commands that grant it.
pub(super) fn explain(settings: &Settings, login: &Login, refused: &[String], report: &mut Report) {
    if refused.is_empty() {
        return;
    }
    let database = &settings.mongodb.database;
    let state = &settings.state.database;
    let written: Vec<_> = (written(settings).iter())
        .map(|(collection, actions)| {
            format!(
                "{{resource: {{db: \"{database}\", collection: \"{collection}\"}}, actions: \
                 [\"{}\"]}}",
                actions.join("\", \"")
            )
        })
        .collect();
    let role = format!(
        "  db.getSiblingDB(\"admin\").createRole({{role: \"baton\",\n    \
         roles: [{{role: \"read\", db: \"{database}\"}}, {{role: \"readWrite\", db: \
         \"{state}\"}}],\n    privileges: [{}]}})",
        written.join(", ")
    );
    let mend = match &login.user {
        Some((user, of)) => format!(
            "As an administrator, in mongosh:\n{role}\n  \
             db.getSiblingDB(\"{of}\").grantRolesToUser(\"{user}\", [{{role: \"baton\", db: \
             \"admin\"}}])"
        ),
        None => format!(
            "The server wants a login. As an administrator, in mongosh:\n{role}\n  \
             db.getSiblingDB(\"admin\").createUser({{user: \"baton\", pwd: passwordPrompt(), \
             roles: [\"baton\"]}})\nand set mongodb.uri to \
             mongodb://baton:PASSWORD@{}/{database}?authSource=admin",
            login.server
        ),
    };
    report.fail(WHAT, format!("refused: {}", refused.join(", ")), mend);
}
