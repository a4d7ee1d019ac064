//! Responses that hold calls of switch tools, read out of the `messages` collection in the form
//! in which the change stream shows them.

use futures::{Stream, StreamExt, TryStreamExt};
use mongodb::{
    bson::{DateTime, Document, RawDocument, RawDocumentBuf, doc, oid::ObjectId},
    error::Result,
};

use super::{
    ConversationKey, MessageHead, Messages, ToolNames,
    change::{Response, response_filter, response_projection},
    raw::Lenient,
    tool_call::fingerprint,
};

/// So many are read at a time: MongoDB would fill an answer with up to 16 MiB of them.
const RESPONSES_BATCH: u32 = 100;

impl Messages {
    /// The response with this `_id`, whose calls were saved at `saved_at`; `None` where it holds
    /// none, or is gone.
    ///
    /// # Errors
    ///
    /// What MongoDB answers.
    pub async fn response(
        &self,
        tools: &ToolNames,
        id: ObjectId,
        saved_at: Option<DateTime>,
    ) -> Result<Option<Response>> {
        let mut filter = response_filter(tools);
        filter.insert("_id", id);
        let found = self.responses(filter, tools).await?.try_next().await?;
        Ok(found.and_then(|raw| Response::parse_stored(&raw, saved_at)))
    }

    /// Every response with a call whose `_id` is `first` or later, oldest first.
    ///
    /// # Errors
    ///
    /// What MongoDB answers.
    pub async fn with_calls_since(
        &self,
        tools: &ToolNames,
        first: ObjectId,
    ) -> Result<impl Stream<Item = Result<Response>> + Unpin + use<>> {
        let mut filter = response_filter(tools);
        filter.insert("_id", doc! { "$gte": first });
        let found = self.responses(filter, tools).await?;
        Ok(found
            .try_filter_map(|raw| async move { Ok(Response::parse_stored(&raw, None)) })
            .boxed())
    }

    /// The fingerprints of all calls in `siblings`: a call that one of them holds already was
    /// copied, not made.
    ///
    /// # Errors
    ///
    /// What MongoDB answers.
    pub async fn calls_in(
        &self,
        key: &ConversationKey,
        tools: &ToolNames,
        siblings: &[&MessageHead],
    ) -> Result<Vec<String>> {
        if siblings.is_empty() {
            return Ok(Vec::new());
        }
        let mut filter = response_filter(tools);
        filter.insert(
            "_id",
            doc! { "$in": siblings.iter().map(|s| s.object_id).collect::<Vec<_>>() },
        );
        filter.insert("user", &key.user);
        let found: Vec<RawDocumentBuf> = self.responses(filter, tools).await?.try_collect().await?;
        Ok(found
            .iter()
            .filter_map(|raw| raw.array("calls"))
            .flat_map(|calls| calls.into_iter().flatten())
            .filter_map(|part| part.as_document()?.document("tool_call"))
            .map(|call: &RawDocument| fingerprint(call))
            .collect())
    }

    async fn responses(
        &self,
        filter: Document,
        tools: &ToolNames,
    ) -> Result<mongodb::Cursor<RawDocumentBuf>> {
        self.collection()
            .aggregate([
                doc! { "$match": filter },
                doc! { "$sort": { "_id": 1 } },
                doc! { "$project": response_projection(tools) },
            ])
            .batch_size(RESPONSES_BATCH)
            .with_type::<RawDocumentBuf>()
            .await
    }
}
