//! Whether Baton can keep its own records.

use mongodb::bson::{Document, doc};
use mongodb::error::Result;
use mongodb::{Client, Collection, IndexModel};

use super::reason::{is_refusal, reason};
use super::report::Report;
use crate::config::Settings;

const WHAT: &str = "state database";

/// A collection for this check alone.
const COLLECTION: &str = "check";

/// Gives the rights that were refused.
pub(super) async fn check(
    settings: &Settings,
    client: &Client,
    report: &mut Report,
) -> Vec<String> {
    let name = &settings.state.database;
    let collection = client.database(name).collection::<Document>(COLLECTION);
    let outcome = try_all(&collection).await;
    // Where this is refused, an empty collection stays behind, which harms nobody.
    let _ = collection.drop().await;
    match outcome {
        Ok(()) => {
            report.ok(WHAT, format!("{name} takes records and indexes"));
            Vec::new()
        }
        Err(error) if is_refusal(&error) => vec![format!("write to {name}")],
        Err(error) => {
            report.fail(
                WHAT,
                format!("{name}: {}", reason(&error)),
                "See MongoDB's log; a disk that is full or a set without a primary takes no \
                 writes.",
            );
            Vec::new()
        }
    }
}

async fn try_all(collection: &Collection<Document>) -> Result<()> {
    let index = IndexModel::builder().keys(doc! { "at": 1 }).build();
    collection.create_index(index).await?;
    let id = collection.insert_one(doc! {}).await?.inserted_id;
    let this = doc! { "_id": id };
    let now = doc! { "$currentDate": { "at": true } };
    collection.update_one(this.clone(), now).await?;
    collection.find_one(this.clone()).await?;
    collection.delete_one(this).await?;
    Ok(())
}
