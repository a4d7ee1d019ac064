//! The records of switches, in the state database.
//!
//! Every record is durable (majority) when a call returns. Times are the server's
//! (`$currentDate`). No pipeline updates: they fail on DocumentDB.

use std::{collections::HashSet, time::Duration};

use futures::TryStreamExt;
use mongodb::{
    Collection, Database, IndexModel,
    bson::{Bson, DateTime, Document, RawDocument, RawDocumentBuf, doc, oid::ObjectId},
    error::{ErrorKind, Result, WriteFailure},
    options::{IndexOptions, ReturnDocument},
};

use super::{
    guarded::Guarded,
    record::{Status, Switch},
};
use crate::librechat::{ConversationKey, MessageId};

const SWITCHES: &str = "switches";
const DUPLICATE_KEY: i32 = 11000;

/// So many open switches are read at a time.
const OPEN_BATCH: u32 = 500;

/// What became of an attempt to record a switch.
#[derive(Debug)]
pub enum Recorded {
    /// The record is new.
    New(Switch),
    /// The turn (or the refused call) has a record already: this one.
    Existing(Switch),
}

/// Open switches, as other instances or earlier runs have left them.
#[derive(Debug)]
pub struct OpenSince {
    /// Those that were not known.
    pub switches: Vec<Guarded>,
    /// When the newest of all was recorded, the known ones included.
    pub newest: Option<DateTime>,
}

/// An overwrite that was put back.
#[derive(Clone, Copy, Debug)]
pub struct Repair {
    /// `updatedAt` as the overwrite set it, by LibreChat's clock.
    pub overwritten_at: Option<DateTime>,
}

/// The `switches` collection.
#[derive(Clone, Debug)]
pub struct Store {
    pub(super) switches: Collection<Switch>,
    retention: Duration,
}

impl Store {
    /// The records in `database`, kept for `retention` after they are closed.
    #[must_use]
    pub fn new(database: &Database, retention: Duration) -> Self {
        Self {
            switches: database.collection(SWITCHES),
            retention,
        }
    }

    /// Makes the indexes that the rules rely on: one record a turn, and the expiry.
    ///
    /// # Errors
    ///
    /// What MongoDB answers.
    pub async fn prepare(&self) -> Result<()> {
        let one_a_turn = IndexModel::builder()
            .keys(doc! { "user": 1, "conversation_id": 1, "message_id": 1, "refused_call": 1 })
            .options(
                IndexOptions::builder()
                    .name("one_a_turn".to_owned())
                    .unique(true)
                    .partial_filter_expression(doc! { "message_id": { "$exists": true } })
                    .build(),
            )
            .build();
        let history = IndexModel::builder()
            .keys(doc! { "conversation_id": 1, "user": 1, "created_at": -1 })
            .options(IndexOptions::builder().name("history".to_owned()).build())
            .build();
        let by_status = IndexModel::builder()
            .keys(doc! { "status": 1, "created_at": 1 })
            .options(IndexOptions::builder().name("by_status".to_owned()).build())
            .build();
        let expiry = IndexModel::builder()
            .keys(doc! { "expires_at": 1 })
            .options(
                IndexOptions::builder()
                    .name("expiry".to_owned())
                    .expire_after(Duration::ZERO)
                    .build(),
            )
            .build();
        let open_answers = IndexModel::builder()
            .keys(doc! { "answer.stage": 1 })
            .options(
                IndexOptions::builder()
                    .name("open_answers".to_owned())
                    .sparse(true)
                    .build(),
            )
            .build();
        self.switches
            .create_indexes([one_a_turn, history, by_status, expiry, open_answers])
            .await?;
        Ok(())
    }

    /// Records a switch, once for each turn (and once for each refused call).
    ///
    /// # Errors
    ///
    /// What MongoDB answers; where the write did happen all the same, another attempt finds it.
    pub async fn record(&self, switch: &Switch) -> Result<Recorded> {
        let mut fields = mongodb::bson::serialize_to_document(switch)?;
        fields.remove("_id");
        let mut now = doc! { "created_at": true };
        if switch.status != Status::Open {
            now.insert("closed_at", true);
            fields.insert("expires_at", self.expiry());
        }
        let inserted = self
            .switches
            .find_one_and_update(
                doc! { "_id": switch.id },
                doc! { "$setOnInsert": fields, "$currentDate": now },
            )
            .upsert(true)
            .return_document(ReturnDocument::After)
            .await;
        match inserted {
            Ok(Some(record)) => Ok(Recorded::New(record)),
            Err(error) if !is_duplicate(&error) => Err(error),
            Ok(None) | Err(_) => {
                let refused = switch.refused_call.clone().map_or(Bson::Null, Bson::String);
                let mut filter = turn_filter(&switch.key(), switch.message_id.as_ref());
                filter.insert("refused_call", refused);
                match self.switches.find_one(filter).await? {
                    Some(record) => Ok(Recorded::Existing(record)),
                    None => Err(ErrorKind::Custom(std::sync::Arc::new(
                        "the record of the same turn vanished while it was read",
                    ))
                    .into()),
                }
            }
        }
    }

    /// The record of a turn.
    ///
    /// # Errors
    ///
    /// What MongoDB answers.
    pub async fn of_turn(
        &self,
        key: &ConversationKey,
        message: &MessageId,
    ) -> Result<Option<Switch>> {
        let mut filter = turn_filter(key, Some(message));
        filter.insert("refused_call", Bson::Null);
        self.switches.find_one(filter).await
    }

    /// A record, as it stands.
    ///
    /// # Errors
    ///
    /// What MongoDB answers.
    pub async fn get(&self, id: ObjectId) -> Result<Option<Switch>> {
        self.switches.find_one(doc! { "_id": id }).await
    }

    /// The conversation's open switch; of several the newest.
    ///
    /// # Errors
    ///
    /// What MongoDB answers.
    pub async fn open_of(&self, key: &ConversationKey) -> Result<Option<Switch>> {
        self.switches
            .find_one(doc! {
                "conversation_id": &key.conversation, "user": &key.user, "status": "open",
            })
            .sort(doc! { "created_at": -1 })
            .await
    }

    /// The choices that the user made in the turn of U.
    ///
    /// # Errors
    ///
    /// What MongoDB answers.
    pub async fn choices_in(
        &self,
        key: &ConversationKey,
        user_message: &MessageId,
    ) -> Result<Vec<Switch>> {
        self.switches
            .find(doc! {
                "conversation_id": &key.conversation, "user": &key.user,
                "parent_message_id": user_message,
                "origin": "api", "status": { "$in": ["open", "settled"] },
            })
            .await?
            .try_collect()
            .await
    }

    /// The conversation's last switch that no later decision has taken the place of.
    ///
    /// # Errors
    ///
    /// What MongoDB answers.
    pub async fn last_standing(&self, key: &ConversationKey) -> Result<Option<Switch>> {
        self.switches
            .find_one(doc! {
                "conversation_id": &key.conversation, "user": &key.user,
                "status": { "$in": ["open", "settled"] },
            })
            .sort(doc! { "created_at": -1 })
            .await
    }

    /// How many other turns switched the conversation in the time up to `at`. What is learned late
    /// counts when its response was made.
    ///
    /// # Errors
    ///
    /// What MongoDB answers.
    pub async fn recent(
        &self,
        key: &ConversationKey,
        turn: &MessageId,
        at: DateTime,
        within: Duration,
    ) -> Result<u64> {
        let window = i64::try_from(within.as_millis()).unwrap_or(i64::MAX);
        let since = DateTime::from_millis(at.timestamp_millis().saturating_sub(window));
        let made_in_time = doc! { "$gte": first_id_at(since), "$lt": first_id_after(at) };
        self.switches
            .count_documents(doc! {
                "conversation_id": &key.conversation, "user": &key.user,
                "status": { "$ne": "rejected" }, "message_id": { "$ne": turn },
                "$or": [
                    { "response": made_in_time },
                    { "response": null, "created_at": { "$gte": since, "$lte": at } },
                ],
            })
            .await
    }

    /// The open switches recorded at `since` or later, by MongoDB's clock, less those that are
    /// `known`. A record that cannot be understood is skipped: it may be that of a later version.
    ///
    /// Thousands may be open, and this is asked every few seconds: what is known is not read, the
    /// reasons are left out, and no large batch is held.
    ///
    /// # Errors
    ///
    /// What MongoDB answers.
    pub async fn open_since(
        &self,
        since: Option<DateTime>,
        known: &HashSet<ObjectId>,
    ) -> Result<OpenSince> {
        let mut filter = doc! { "status": "open" };
        if let Some(since) = since {
            filter.insert("created_at", doc! { "$gte": since });
        }
        let mut newest = None;
        let mut unknown = Vec::new();
        let mut heads = self
            .raw()
            .find(filter)
            .projection(doc! { "created_at": 1 })
            .batch_size(OPEN_BATCH)
            .await?;
        while let Some(head) = heads.try_next().await? {
            newest = newest.max(head.get_datetime("created_at").ok());
            let id = head.get_object_id("_id").ok();
            unknown.extend(id.filter(|id| !known.contains(id)));
        }
        let mut switches = Vec::new();
        if !unknown.is_empty() {
            switches = self
                .raw()
                .find(doc! { "_id": { "$in": unknown }, "status": "open" })
                .projection(doc! {
                    "reason": 0, "from_agent": 0, "tool_call_id": 0, "switch_id": 0,
                    "detail": 0, "calls": 0, "answer": 0, "put_back": 0,
                })
                .batch_size(OPEN_BATCH)
                .await?
                .try_filter_map(
                    |raw| async move { Ok(understood(&raw).as_ref().map(Guarded::from)) },
                )
                .try_collect()
                .await?;
        }
        Ok(OpenSince { switches, newest })
    }

    pub(super) fn raw(&self) -> Collection<RawDocumentBuf> {
        self.switches.clone_with_type()
    }

    /// Gives the turn's record the target of a later call of the same turn, and opens it (again).
    ///
    /// `None`: the record says otherwise by now; read it anew.
    ///
    /// # Errors
    ///
    /// What MongoDB answers.
    pub async fn retarget(&self, known: &Switch, next: &Switch) -> Result<Option<Switch>> {
        let mut set = doc! { "to_agent": &next.to_agent, "status": "open", "calls": &next.calls };
        let mut unset =
            doc! { "closed_at": "", "expires_at": "", "detail": "", "delivered_at": "" };
        for (field, value) in [
            ("origin", Some(next.origin.to_string().into())),
            ("tool_call_id", next.tool_call_id.clone().map(Bson::String)),
            ("switch_id", next.switch_id.clone().map(Bson::String)),
            ("reason", next.reason.clone().map(Bson::String)),
            ("answer_now", next.answer_now.map(Bson::Boolean)),
            ("from_agent", next.from_agent.clone().map(Bson::from)),
            ("message_id", next.message_id.clone().map(Bson::from)),
            (
                "parent_message_id",
                next.parent_message_id.clone().map(Bson::from),
            ),
            ("user_message", next.user_message.map(Bson::from)),
            ("response", next.response.map(Bson::from)),
            ("saved_at", next.saved_at.map(Bson::from)),
        ] {
            match value {
                Some(value) => set.insert(field, value),
                None => unset.insert(field, ""),
            };
        }
        self.switches
            .find_one_and_update(
                doc! { "_id": known.id, "calls": calls_filter(known), "status": known.status.to_string() },
                doc! { "$set": set, "$unset": unset },
            )
            .return_document(ReturnDocument::After)
            .await
    }

    /// Notes that the target was put in force, and whether that undid an overwrite.
    ///
    /// `false`: the switch is no longer open, or has another target by now; read it anew.
    ///
    /// # Errors
    ///
    /// What MongoDB answers.
    pub async fn applied(
        &self,
        switch: &Guarded,
        first: bool,
        repair: Option<Repair>,
    ) -> Result<bool> {
        let mut update = doc! { "$inc": { "repairs": i64::from(repair.is_some()) } };
        let mut now = Document::new();
        if first {
            now.insert("applied_at", true);
        }
        if let Some(overwritten) = repair.and_then(|repair| repair.overwritten_at) {
            now.insert(format!("put_back.{}", overwritten.timestamp_millis()), true);
        }
        if !now.is_empty() {
            update.insert("$currentDate", now);
        }
        let result = self.switches.update_one(still_open(switch), update).await?;
        Ok(result.matched_count == 1)
    }

    /// Closes an open switch. `false`: it was closed already, or has another target by now.
    ///
    /// # Errors
    ///
    /// What MongoDB answers.
    pub async fn close(&self, switch: &Guarded, status: Status, detail: &str) -> Result<bool> {
        let result = self
            .switches
            .update_one(
                still_open(switch),
                doc! {
                    "$set": {
                        "status": status.to_string(), "detail": detail, "expires_at": self.expiry(),
                    },
                    "$currentDate": { "closed_at": true },
                },
            )
            .await?;
        Ok(result.matched_count == 1)
    }

    /// Makes a record void whose writing was given up, whether it was written or not. Where the
    /// write is still on its way, it finds this and changes nothing.
    ///
    /// # Errors
    ///
    /// What MongoDB answers.
    pub async fn withdraw(&self, switch: &Switch) -> Result<()> {
        let mut fields = mongodb::bson::serialize_to_document(switch)?;
        for field in ["_id", "status", "detail"] {
            fields.remove(field);
        }
        self.switches
            .update_one(
                doc! { "_id": switch.id },
                doc! {
                    "$setOnInsert": fields,
                    "$set": {
                        "status": "rejected", "detail": "MongoDB did not answer in time",
                        "expires_at": self.expiry(),
                    },
                    "$currentDate": { "created_at": true, "closed_at": true },
                },
            )
            .upsert(true)
            .await?;
        Ok(())
    }

    /// The newest switches, of a conversation or a user where they are given.
    ///
    /// # Errors
    ///
    /// What MongoDB answers.
    pub async fn list(
        &self,
        conversation: Option<&str>,
        user: Option<&str>,
        limit: i64,
    ) -> Result<Vec<Switch>> {
        let mut filter = Document::new();
        if let Some(conversation) = conversation {
            filter.insert("conversation_id", conversation);
        }
        if let Some(user) = user {
            filter.insert("user", user);
        }
        self.switches
            .find(filter)
            .sort(doc! { "created_at": -1 })
            .limit(limit)
            .await?
            .try_collect()
            .await
    }

    /// A conversation's switches, newest first; where `after` is given, those that come after it.
    ///
    /// # Errors
    ///
    /// What MongoDB answers.
    pub async fn history(
        &self,
        key: &ConversationKey,
        after: Option<(DateTime, ObjectId)>,
        limit: i64,
    ) -> Result<Vec<Switch>> {
        let mut filter = doc! {
            "conversation_id": &key.conversation, "user": &key.user,
            "tenant_id": key.tenant.clone().map_or(Bson::Null, Bson::from),
        };
        if let Some((at, id)) = after {
            filter.insert(
                "$or",
                [
                    doc! { "created_at": { "$lt": at } },
                    doc! { "created_at": at, "_id": { "$lt": id } },
                ],
            );
        }
        self.switches
            .find(filter)
            .sort(doc! { "created_at": -1, "_id": -1 })
            .limit(limit)
            .await?
            .try_collect()
            .await
    }

    /// The retention is days, so that a skew between this clock and the server's does not matter.
    fn expiry(&self) -> DateTime {
        DateTime::from_system_time(std::time::SystemTime::now() + self.retention)
    }
}

fn turn_filter(key: &ConversationKey, message: Option<&MessageId>) -> Document {
    doc! {
        "user": &key.user,
        "conversation_id": &key.conversation,
        "message_id": message.cloned().map_or(Bson::Null, Bson::from),
    }
}

/// The least `_id` that MongoDB can have given at this time.
fn first_id_at(time: DateTime) -> ObjectId {
    let seconds = u32::try_from(time.timestamp_millis() / 1000).unwrap_or(0);
    let mut bytes = [0; 12];
    bytes[..4].copy_from_slice(&seconds.to_be_bytes());
    ObjectId::from_bytes(bytes)
}

fn first_id_after(time: DateTime) -> ObjectId {
    first_id_at(DateTime::from_millis(
        time.timestamp_millis().saturating_add(1000),
    ))
}

fn understood(raw: &RawDocument) -> Option<Switch> {
    let record = mongodb::bson::deserialize_from_slice(raw.as_bytes());
    if record.is_err() {
        // What is wrong with it may quote it.
        let id = raw.get_object_id("_id").ok();
        tracing::warn!(
            record = id.map(tracing::field::display),
            "a record that cannot be understood"
        );
    }
    record.ok()
}

/// The record while it is open and says what this instance knows: another one may have given it
/// a later call's target.
fn still_open(switch: &Guarded) -> Document {
    doc! { "_id": switch.id, "status": "open", "to_agent": &switch.to_agent }
}

/// An empty list is not stored.
fn calls_filter(known: &Switch) -> Bson {
    if known.calls.is_empty() {
        Bson::Null
    } else {
        Bson::from(known.calls.clone())
    }
}

fn is_duplicate(error: &mongodb::error::Error) -> bool {
    match error.kind.as_ref() {
        ErrorKind::Command(command) => command.code == DUPLICATE_KEY,
        ErrorKind::Write(WriteFailure::WriteError(write)) => write.code == DUPLICATE_KEY,
        _ => false,
    }
}
