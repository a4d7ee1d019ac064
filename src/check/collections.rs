//! Whether the database is LibreChat's.

use std::fmt;

use mongodb::bson::Document;
use mongodb::{Client, Database};

use super::reason::{is_refusal, reason};
use super::report::Report;
use crate::config::Settings;
use crate::librechat::schema;

const WHAT: &str = "LibreChat";

/// Gives the rights that were refused.
pub(super) async fn check(
    settings: &Settings,
    client: &Client,
    report: &mut Report,
) -> Vec<String> {
    let name = &settings.mongodb.database;
    let database = client.database(name);
    let there = match database.list_collection_names().await {
        Ok(there) => there,
        Err(error) if is_refusal(&error) => return vec![format!("list collections of {name}")],
        Err(error) => {
            report.fail(WHAT, reason(&error), "See MongoDB's log.");
            return Vec::new();
        }
    };
    match Lacking::of(client, name, &there).await {
        None => report.ok(WHAT, format!("its collections are in {name}")),
        Some(lacking) => report.fail(WHAT, lacking.problem, lacking.remedy),
    }
    for (collection, fields) in schema::INDEXES {
        if there.iter().any(|name| name == collection) {
            index(&database, collection, fields, report).await;
        }
    }
    Vec::new()
}

/// What a database lacks to be LibreChat's, and what to do about it.
pub struct Lacking {
    problem: String,
    remedy: String,
}

/// For a log: all in one line.
impl fmt::Display for Lacking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.problem, self.remedy.replace('\n', " "))
    }
}

/// What the database `name` lacks to be LibreChat's.
///
/// # Errors
///
/// The database could not be asked.
pub async fn lacking(client: &Client, name: &str) -> mongodb::error::Result<Option<Lacking>> {
    let there = client.database(name).list_collection_names().await?;
    Ok(Lacking::of(client, name, &there).await)
}

impl Lacking {
    async fn of(client: &Client, name: &str, there: &[String]) -> Option<Self> {
        let missing: Vec<_> = (schema::REQUIRED.iter())
            .filter(|wanted| !there.iter().any(|name| name == *wanted))
            .copied()
            .collect();
        if missing.is_empty() {
            return None;
        }
        Some(Self {
            problem: format!("{name} has no {}", missing.join(", ")),
            remedy: elsewhere(client).await,
        })
    }
}

/// What to do where the database is not LibreChat's.
async fn elsewhere(client: &Client) -> String {
    let mut found = Vec::new();
    for name in client.list_database_names().await.unwrap_or_default() {
        let names = client.database(&name).list_collection_names().await;
        let names = names.unwrap_or_default();
        if schema::REQUIRED
            .iter()
            .all(|wanted| names.iter().any(|name| name == wanted))
        {
            found.push(name);
        }
    }
    if found.is_empty() {
        "Start LibreChat once, so that it makes them, or set mongodb.database to the name of \
         its database:\nthe one at the end of its MONGO_URI, or test, where that names none."
            .to_owned()
    } else {
        format!(
            "LibreChat's are in {}: set mongodb.database to it.",
            found.join(" and ")
        )
    }
}

async fn index(database: &Database, collection: &str, fields: &[&str], report: &mut Report) {
    let what = format!("index {{{}}} of {collection}", fields.join(", "));
    let listed = database
        .collection::<Document>(collection)
        .list_indexes()
        .await;
    let indexes = match listed {
        Ok(cursor) => futures::TryStreamExt::try_collect::<Vec<_>>(cursor).await,
        Err(error) => Err(error),
    };
    match indexes {
        Ok(indexes) if indexes.iter().any(|index| begins(&index.keys, fields)) => {
            report.ok(&what, "is there");
        }
        Ok(_) => {
            let keys: Vec<_> = fields.iter().map(|field| format!("{field}: 1")).collect();
            report.warn(
                &what,
                "is not there, so every look-up reads the whole collection",
                format!(
                    "LibreChat makes it at its start, unless {} is false. In mongosh:\n  \
                     db.getSiblingDB(\"{}\").{collection}.createIndex({{{}}})",
                    schema::AUTO_INDEX,
                    database.name(),
                    keys.join(", ")
                ),
            );
        }
        Err(error) => report.warn(&what, reason(&error), ""),
    }
}

/// Whether an index serves a look-up by `fields`, in whatever order.
fn begins(keys: &Document, fields: &[&str]) -> bool {
    let first: Vec<_> = keys.keys().take(fields.len()).map(String::as_str).collect();
    fields.iter().all(|field| first.contains(field))
}

#[cfg(test)]
mod tests {
    use super::*;
    use mongodb::bson::doc;

    #[test]
    fn a_longer_index_serves_as_well_and_a_later_field_does_not() {
        let keys = doc! { "user": 1, "conversationId": 1, "tenantId": 1 };
        assert!(begins(&keys, &["conversationId", "user"]));
        assert!(!begins(&keys, &["conversationId"]));
    }
}
