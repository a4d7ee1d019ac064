//! What the stream could not show: recent responses with a call of a switch tool.

use std::time::Duration;

use futures::TryStreamExt;
use mongodb::{
    bson::{Timestamp, oid::ObjectId},
    error::Result,
};
use tokio::sync::mpsc;

use super::{Delivery, Item};
use crate::librechat::{Change, Messages, ToolNames};

/// Delivers every response made since `since`, oldest first, and asks for a look at every
/// open switch.
///
/// # Errors
///
/// What MongoDB answers; what was delivered by then may be delivered again.
pub(super) async fn rescan(
    messages: &Messages,
    tools: &ToolNames,
    since: Timestamp,
    out: &mpsc::Sender<Delivery>,
) -> Result<()> {
    let mut found = messages.with_calls_since(tools, first_id_at(since)).await?;
    let mut count = 0u64;
    while let Some(response) = found.try_next().await? {
        count += 1;
        let item = Item::Found {
            change: Change::Response(response),
            not_before: since,
        };
        if out
            .send(Delivery {
                item,
                position: None,
            })
            .await
            .is_err()
        {
            return Ok(());
        }
    }
    tracing::info!(responses = count, "looked through the recent messages");
    let _ = out
        .send(Delivery {
            item: Item::Resync,
            position: None,
        })
        .await;
    Ok(())
}

/// The least `_id` that MongoDB can have given at `time`.
fn first_id_at(time: Timestamp) -> ObjectId {
    let mut bytes = [0u8; 12];
    bytes[..4].copy_from_slice(&time.time.to_be_bytes());
    ObjectId::from_bytes(bytes)
}

/// `time` less `duration`.
pub(crate) fn before(time: Timestamp, duration: Duration) -> Timestamp {
    let seconds = u32::try_from(duration.as_secs()).unwrap_or(u32::MAX);
    Timestamp {
        time: time.time.saturating_sub(seconds),
        increment: 0,
    }
}
