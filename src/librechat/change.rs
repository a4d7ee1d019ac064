//! What the change stream is asked for, and what it answers, as types.
//!
//! The server filters and trims: a plain turn in an existing conversation sends nothing, a new
//! conversation one small event. The pipeline itself must not fail on any document, since a
//! resumed stream would meet the same one again; hence `$isArray` before `$filter` (error 28651)
//! and query operators, which tolerate every type, in `$match`.

use mongodb::bson::{
    DateTime, Document, RawDocument, RawDocumentBuf, Timestamp, doc, oid::ObjectId,
};

use super::{
    AgentId, ConversationKey, MessageId, TenantId, ToolNames, handoff,
    raw::Lenient,
    schema::{CONVERSATIONS, MESSAGES},
};

/// A change that may matter.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// A response with a call of a switch tool was inserted.
    Response(Response),
    /// A message's content was set, with a call of a switch tool in it.
    Content(ContentSet),
    /// A conversation was inserted, or its `agent_id` changed.
    Conversation(ConversationChange),
    /// A collection of LibreChat's was dropped or renamed, or the database dropped.
    Structure(String),
}

/// A response that holds calls of switch tools.
#[derive(Clone, Debug, PartialEq)]
pub struct Response {
    /// `_id`.
    pub object_id: ObjectId,
    /// `messageId`.
    pub id: MessageId,
    /// The conversation that it is in.
    pub key: ConversationKey,
    /// U's `messageId`.
    pub parent: Option<MessageId>,
    /// `model`: for an agent's response, the id of the agent that answered.
    pub model: Option<AgentId>,
    /// When the content with the calls was saved, by LibreChat's clock.
    pub saved_at: Option<DateTime>,
    /// The parts of `content` that are calls of switch tools, in the order of the content; where
    /// handoffs count, between them what the other parts say of their agent.
    pub calls: Vec<RawDocumentBuf>,
}

/// The content of a message that was there before was set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContentSet {
    /// The message's `_id`.
    pub message: ObjectId,
    /// `updatedAt` as the same update set it.
    pub saved_at: Option<DateTime>,
}

/// An `agent_id` that was written.
#[derive(Clone, Debug, PartialEq)]
pub struct ConversationChange {
    /// The conversation's `_id`.
    pub object_id: ObjectId,
    /// Known of an inserted or replaced conversation alone.
    pub key: Option<ConversationKey>,
    /// The agent that was written; `None`: the field holds no text.
    pub agent: Option<AgentId>,
    /// `updatedAt` as the same write set it; every save of LibreChat's own sets it.
    pub updated_at: Option<DateTime>,
    /// The newest id among the `messages` that the same write set. Ids are MongoDB's, so the
    /// greatest is the newest, whatever order LibreChat's clocks gave the list.
    pub newest_message: Option<ObjectId>,
}

/// A change that cannot be understood.
#[derive(Debug, thiserror::Error)]
#[error("a change event that cannot be understood: {0}")]
pub struct Malformed(&'static str);

/// The stages after `$changeStream`.
#[must_use]
pub fn pipeline(tools: &ToolNames) -> Vec<Document> {
    let call = doc! { "$elemMatch": { "tool_call.name": { "$in": tools.to_query() } } };
    let inserted = doc! { "$in": ["insert", "replace"] };
    vec![
        doc! { "$match": { "$or": [
            {
                "ns.coll": MESSAGES, "operationType": &inserted,
                "fullDocument.isCreatedByUser": { "$ne": true }, "fullDocument.content": &call,
            },
            {
                "ns.coll": MESSAGES, "operationType": "update",
                "updateDescription.updatedFields.content": &call,
            },
            {
                "ns.coll": CONVERSATIONS, "operationType": &inserted,
                "fullDocument.agent_id": { "$exists": true },
            },
            {
                "ns.coll": CONVERSATIONS, "operationType": "update",
                "updateDescription.updatedFields.agent_id": { "$exists": true },
            },
            {
                "ns.coll": { "$in": [MESSAGES, CONVERSATIONS] },
                "operationType": { "$in": ["drop", "rename"] },
            },
            { "operationType": { "$in": ["dropDatabase", "invalidate"] } },
        ] } },
        doc! { "$project": {
            "operationType": 1,
            "clusterTime": 1,
            "collection": "$ns.coll",
            "id": "$documentKey._id",
            "document": {
                "messageId": "$fullDocument.messageId",
                "conversationId": "$fullDocument.conversationId",
                "user": "$fullDocument.user",
                "tenantId": "$fullDocument.tenantId",
                "parentMessageId": "$fullDocument.parentMessageId",
                "model": "$fullDocument.model",
                "createdAt": "$fullDocument.createdAt",
                "calls": calls_in("$fullDocument.content", tools),
            },
            "agent_id": written("agent_id"),
            "updatedAt": written("updatedAt"),
            "newest": newest_message(),
        } },
    ]
}

/// The stages that bring a stored response into the form that the stream gives an inserted one.
pub(crate) fn response_projection(tools: &ToolNames) -> Document {
    doc! {
        "messageId": 1, "conversationId": 1, "user": 1, "tenantId": 1, "parentMessageId": 1,
        "model": 1, "createdAt": 1, "isCreatedByUser": 1, "calls": calls_in("$content", tools),
    }
}

/// The condition on a stored message that it is a response with a call of a switch tool.
pub(crate) fn response_filter(tools: &ToolNames) -> Document {
    doc! {
        "isCreatedByUser": { "$ne": true },
        "content": { "$elemMatch": { "tool_call.name": { "$in": tools.to_query() } } },
    }
}

/// The calls, whole. Where handoffs count, of every other part what tells who wrote it: whether a
/// handoff happened shows in what comes after it.
fn calls_in(content: &str, tools: &ToolNames) -> Document {
    let named = doc! { "$in": ["$$part.tool_call.name", { "$literal": tools.to_bson() }] };
    let calls = if tools.with_native() {
        // `$indexOfBytes` takes nothing but text (error 40091), and the name may be anything.
        let handoff = doc! { "$cond": [
            { "$eq": [{ "$type": "$$part.tool_call.name" }, "string"] },
            { "$eq": [{ "$indexOfBytes": ["$$part.tool_call.name", handoff::PREFIX] }, 0] },
            false,
        ] };
        doc! { "$map": { "input": content, "as": "part", "in": { "$cond": [
            { "$or": [named, handoff] },
            "$$part",
            { "agentId": "$$part.agentId", "groupId": "$$part.groupId" },
        ] } } }
    } else {
        doc! { "$filter": { "input": content, "as": "part", "cond": named } }
    };
    doc! { "$cond": [{ "$isArray": content }, calls, "$$REMOVE"] }
}

fn written(field: &str) -> Document {
    doc! { "$ifNull": [
        format!("$updateDescription.updatedFields.{field}"),
        format!("$fullDocument.{field}"),
    ] }
}

/// The greatest of the ids that the write put into `messages`: the whole array, or, where
/// MongoDB logged an append, dotted paths (`messages.12`), which only `$objectToArray` can name.
fn newest_message() -> Document {
    let whole = |path: &str| doc! { "$cond": [{ "$isArray": path }, { "$max": path }, null] };
    doc! { "$max": [
        whole("$fullDocument.messages"),
        { "$max": { "$map": {
            "input": { "$cond": [
                { "$eq": [{ "$type": "$updateDescription.updatedFields" }, "object"] },
                { "$objectToArray": "$updateDescription.updatedFields" },
                [],
            ] },
            "as": "field",
            "in": { "$cond": [
                { "$eq": [{ "$substrCP": ["$$field.k", 0, 8] }, "messages"] },
                { "$cond": [{ "$isArray": "$$field.v" }, { "$max": "$$field.v" }, "$$field.v"] },
                null,
            ] },
        } } },
    ] }
}

impl Change {
    /// Reads an event of the stream that [`pipeline`] asks for.
    ///
    /// # Errors
    ///
    /// [`Malformed`], where LibreChat's fields hold what LibreChat never writes. Such an event is
    /// to be counted and skipped.
    pub fn parse(event: &RawDocument) -> Result<Self, Malformed> {
        let operation = event
            .text("operationType")
            .ok_or(Malformed("no operationType"))?;
        let collection = event.text("collection");
        match (collection, operation) {
            (Some(MESSAGES), "insert" | "replace") => {
                let document = event.document("document").ok_or(Malformed("no document"))?;
                Response::parse(event.object_id("id"), document, document.date("createdAt"))
                    .map(Self::Response)
                    .ok_or(Malformed("a message without its identifiers"))
            }
            (Some(MESSAGES), "update") => Ok(Self::Content(ContentSet {
                message: event
                    .object_id("id")
                    .ok_or(Malformed("a message with a foreign _id"))?,
                saved_at: event.date("updatedAt"),
            })),
            (Some(CONVERSATIONS), "insert" | "replace" | "update") => {
                Ok(Self::Conversation(ConversationChange {
                    object_id: event
                        .object_id("id")
                        .ok_or(Malformed("a conversation with a foreign _id"))?,
                    key: event.document("document").and_then(key),
                    agent: event.text("agent_id").map(AgentId::from),
                    updated_at: event.date("updatedAt"),
                    newest_message: event.object_id("newest"),
                }))
            }
            _ => Ok(Self::Structure(format!(
                "{operation} {}",
                collection.unwrap_or_default()
            ))),
        }
    }
}

impl Response {
    /// Reads a stored response in the form of [`response_projection`].
    pub(crate) fn parse_stored(raw: &RawDocument, saved_at: Option<DateTime>) -> Option<Self> {
        if raw.flag("isCreatedByUser") == Some(true) {
            return None;
        }
        Self::parse(
            raw.object_id("_id"),
            raw,
            saved_at.or_else(|| raw.date("createdAt")),
        )
    }

    fn parse(
        object_id: Option<ObjectId>,
        raw: &RawDocument,
        saved_at: Option<DateTime>,
    ) -> Option<Self> {
        Some(Self {
            object_id: object_id?,
            id: raw.text("messageId")?.into(),
            key: key(raw)?,
            parent: raw.text("parentMessageId").map(MessageId::from),
            model: raw.text("model").map(AgentId::from),
            saved_at,
            calls: raw
                .array("calls")?
                .into_iter()
                .flatten()
                .filter_map(|part| part.as_document().map(RawDocument::to_owned))
                .collect(),
        })
    }
}

fn key(raw: &RawDocument) -> Option<ConversationKey> {
    Some(ConversationKey::new(
        raw.text("conversationId")?.into(),
        raw.text("user")?.into(),
        raw.text("tenantId").map(TenantId::from),
    ))
}

/// When the event happened, by the cluster's clock.
#[must_use]
pub fn cluster_time(event: &RawDocument) -> Option<Timestamp> {
    event
        .value("clusterTime")
        .and_then(mongodb::bson::RawBsonRef::as_timestamp)
}

/// A pipeline's identity: a token of one pipeline does not resume another (error 280).
#[must_use]
pub fn fingerprint(pipeline: &[Document]) -> String {
    let stages: Vec<String> = pipeline.iter().map(Document::to_string).collect();
    crate::digest::hex(stages.iter().map(String::as_bytes), 8)
}
