//! How long Baton may be away and still find every event.

use std::time::Duration;

use mongodb::Client;
use mongodb::bson::{Document, doc};
use mongodb::error::Result;

use super::report::Report;

const WHAT: &str = "oplog";

/// A night, and who is called has come.
const ENOUGH: Duration = Duration::from_secs(12 * 60 * 60);

/// An oplog that is not yet as full as this goes back to its beginning and says nothing of how far
/// it will.
const FULL: f64 = 0.9;

pub(super) async fn check(client: &Client, report: &mut Report) {
    let Ok(Some(window)) = window(client).await else {
        report.ok(WHAT, "not readable for this user, which is fine");
        return;
    };
    let minutes = Duration::from_secs(window.as_secs() / 60 * 60);
    let text = format!("goes back {}", humantime::format_duration(minutes));
    match filled(client).await {
        Ok(Some(filled)) if filled < FULL => {
            report.ok(WHAT, format!("{text}, and has room left"));
        }
        _ if window >= ENOUGH => report.ok(WHAT, text),
        _ => report.warn(
            WHAT,
            text,
            "When Baton is away for longer, it reads recent messages again instead, which is \
             slower.\nMake it larger, in mongosh: db.adminCommand({replSetResizeOplog: 1, size: \
             4096}) (in MB)",
        ),
    }
}

async fn window(client: &Client) -> Result<Option<Duration>> {
    let oplog = client.database("local").collection::<Document>("oplog.rs");
    let at = async |direction: i32| -> Result<Option<u32>> {
        let entry = oplog
            .find_one(doc! {})
            .sort(doc! { "$natural": direction })
            .projection(doc! { "ts": 1 })
            .await?;
        Ok(entry.and_then(|entry| Some(entry.get_timestamp("ts").ok()?.time)))
    };
    let (first, last) = (at(1).await?, at(-1).await?);
    let seconds = first
        .zip(last)
        .map(|(first, last)| last.saturating_sub(first));
    Ok(seconds.map(|seconds| Duration::from_secs(seconds.into())))
}

async fn filled(client: &Client) -> Result<Option<f64>> {
    let stats = client
        .database("local")
        .run_command(doc! { "collStats": "oplog.rs" })
        .await?;
    let number = |key| {
        let value = stats.get(key)?;
        value
            .as_f64()
            .or_else(|| value.as_i32().map(f64::from))
            .or_else(|| {
                #[expect(clippy::cast_precision_loss, reason = "a share, to a tenth")]
                value.as_i64().map(|value| value as f64)
            })
    };
    Ok(number("size")
        .zip(number("maxSize"))
        .map(|(size, most)| size / most))
}
