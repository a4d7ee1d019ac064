//! How far the stream has been dealt with, kept in the state database.

use mongodb::{
    Collection, Database,
    bson::{DateTime, Document, RawDocumentBuf, Timestamp, doc},
    error::Result,
};
use serde::{Deserialize, Serialize};

const CHECKPOINTS: &str = "checkpoints";

/// A resume token, opaque.
pub type Token = RawDocumentBuf;

/// A position in the stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// Where to go on.
    pub token: Token,
    /// A time not after the position, by the cluster's clock: the fallback where the token
    /// cannot be used.
    pub time: Timestamp,
}

/// The `checkpoints` collection: one position for each database that is watched.
///
/// Instances share it. An event that one has dealt with needs no other to deal with it, and an
/// older position only makes events come again.
#[derive(Clone, Debug)]
pub struct Checkpoints {
    collection: Collection<Stored>,
    id: String,
    pipeline: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Stored {
    #[serde(rename = "_id")]
    id: String,
    pipeline: String,
    #[serde(flatten)]
    checkpoint: Checkpoint,
    saved_at: Option<DateTime>,
}

/// What is known of the last position.
#[derive(Clone, Debug, PartialEq)]
pub enum Last {
    /// None was ever saved.
    Never,
    /// The stream can go on there.
    Resumable(Checkpoint),
    /// It was saved for another pipeline: only its time is of use.
    OtherPipeline(Timestamp),
}

impl Checkpoints {
    /// The position in `watched` of the pipeline that `pipeline` identifies.
    #[must_use]
    pub fn new(state: &Database, watched: &str, pipeline: String) -> Self {
        Self {
            collection: state.collection(CHECKPOINTS),
            id: watched.to_owned(),
            pipeline,
        }
    }

    /// The last position saved.
    ///
    /// # Errors
    ///
    /// What MongoDB answers. A document that cannot be understood counts as none.
    pub async fn load(&self) -> Result<Last> {
        let raw = self
            .collection
            .clone_with_type::<RawDocumentBuf>()
            .find_one(doc! { "_id": &self.id })
            .await?;
        let Some(raw) = raw else {
            return Ok(Last::Never);
        };
        match mongodb::bson::deserialize_from_slice::<Stored>(raw.as_bytes()) {
            Ok(stored) if stored.pipeline == self.pipeline => {
                Ok(Last::Resumable(stored.checkpoint))
            }
            Ok(stored) => Ok(Last::OtherPipeline(stored.checkpoint.time)),
            Err(error) => {
                tracing::warn!(%error, "the saved position of the change stream is unreadable");
                Ok(Last::Never)
            }
        }
    }

    /// Saves a position.
    ///
    /// # Errors
    ///
    /// What MongoDB answers.
    pub async fn save(&self, checkpoint: &Checkpoint) -> Result<()> {
        self.collection
            .update_one(
                doc! { "_id": &self.id },
                doc! {
                    "$set": {
                        "pipeline": &self.pipeline,
                        "token": Document::try_from(checkpoint.token.as_ref())?,
                        "time": checkpoint.time,
                    },
                    "$currentDate": { "saved_at": true },
                },
            )
            .upsert(true)
            .await?;
        Ok(())
    }
}
