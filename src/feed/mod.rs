//! The change stream: opened, resumed, and read into typed changes, each with its position.
//!
//! The driver's own change stream resumes by itself without a pause and without an end, and moves
//! its token before an event is understood. So the stream is an aggregation here, read batch by
//! batch as raw BSON, and the token is held by whoever has dealt with the event.

mod checkpoint;
mod rescan;
mod stream;

pub use checkpoint::{Checkpoint, Checkpoints, Token};
pub(crate) use rescan::before;
pub use stream::{Feed, FeedError, Source};

use mongodb::bson::Timestamp;

use crate::librechat::Change;

/// What the feed delivers, in the order of the oplog.
#[derive(Clone, Debug)]
pub struct Delivery {
    /// What happened.
    pub item: Item,
    /// Where the stream is to go on once this and all before it are dealt with.
    /// `None` for what a rescan found.
    pub position: Option<Checkpoint>,
}

/// What happened.
#[derive(Clone, Debug)]
pub enum Item {
    /// A change in the stream.
    Change {
        /// The change.
        change: Change,
        /// When it happened, by the cluster's clock.
        at: Timestamp,
    },
    /// A response that a rescan found; made after `not_before`, or it is too old to be a switch.
    Found {
        /// The response, as the stream would have shown its insertion.
        change: Change,
        /// Older responses are no new switches, by the cluster's clock.
        not_before: Timestamp,
    },
    /// Events were lost: look at every open switch.
    Resync,
    /// Nothing happened up to here.
    Idle,
}
