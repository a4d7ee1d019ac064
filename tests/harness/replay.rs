//! Performs a recorded scene again, on a database of the test's own.
//!
//! It happens now: dates keep their distances and move to the present, and new messages get their
//! `_id` from the server, as in life. So the `messages` of a conversation name the ids that were
//! given today where the recording names those that were given then.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use mongodb::bson::oid::ObjectId;
use mongodb::bson::{Bson, DateTime, Document, doc};
use mongodb::options::ReturnDocument;

use super::TestDb;
use super::recording::{Effect, Recording, Write};

/// How long the pauses between the writes are.
#[derive(Clone, Copy, Debug)]
pub enum Pace {
    /// As recorded.
    Recorded,
    /// As recorded, but no longer than this: what users and models took is cut short, what
    /// LibreChat took is kept.
    AtMost(Duration),
    /// None at all: all of it has happened by the time anyone looks.
    Elapsed,
}

/// A scene that is being performed.
pub struct Replay<'a> {
    pub(super) db: &'a TestDb,
    pub(super) recording: Recording,
    /// For each write, when it is due, in milliseconds since the first.
    due: Vec<i64>,
    /// For each write, when it says that it was made.
    dated: Vec<i64>,
    next: usize,
    began: i64,
    clock: Option<Instant>,
    ids: HashMap<ObjectId, ObjectId>,
}

impl<'a> Replay<'a> {
    /// Reads a scene and puts into the database what was there before it: the user, the agents,
    /// who may see them, and the conversation so far.
    pub async fn of(db: &'a TestDb, version: &str, scene: &str, pace: Pace) -> Self {
        let recording = Recording::of(version, scene);
        let due = schedule(&recording.writes, pace);
        // What has elapsed took its time all the same, and has just ended; the rest begins now.
        let (dated, lasted) = match pace {
            Pace::Elapsed => {
                let dated = schedule(&recording.writes, Pace::Recorded);
                let lasted = dated.last().copied().unwrap_or_default();
                (dated, lasted)
            }
            Pace::Recorded | Pace::AtMost(_) => (due.clone(), 0),
        };
        let replay = Self {
            db,
            due,
            dated,
            next: 0,
            began: DateTime::now().timestamp_millis() - lasted,
            clock: None,
            ids: HashMap::new(),
            recording,
        };
        replay.seed_people().await;
        replay.seed_conversation().await;
        replay
    }

    /// What is performed.
    pub fn recording(&self) -> &Recording {
        &self.recording
    }

    /// The agent that the conversation names now; none where there is no conversation.
    pub async fn agent_now(&self) -> Option<String> {
        let document = self.conversation().await?;
        document.get_str("agent_id").ok().map(str::to_owned)
    }

    /// The conversation's document as it is now.
    pub async fn conversation(&self) -> Option<Document> {
        let found = self.db.conversations().find_one(self.key()).await;
        found.expect("a read")
    }

    /// Performs all that is left.
    pub async fn run(&mut self) {
        while self.step().await.is_some() {}
    }

    /// Performs the next write when it is due, and tells which it was.
    pub async fn step(&mut self) -> Option<Write> {
        let write = self.recording.writes.get(self.next)?.clone();
        let clock = *self.clock.get_or_insert_with(Instant::now);
        let due = u64::try_from(self.due[self.next]).expect("times grow");
        // The pause is the scene's own: what is under test has to keep up with it.
        tokio::time::sleep_until((clock + Duration::from_millis(due)).into()).await;
        self.perform(&write.effect).await;
        self.next += 1;
        Some(write)
    }

    async fn perform(&mut self, effect: &Effect) {
        match effect {
            Effect::Upsert {
                collection,
                filter,
                update,
            } => {
                let update = self.present(collection, update);
                let before = self.count(collection, filter).await;
                let after = self
                    .db
                    .collection(collection)
                    .find_one_and_update(filter.clone(), update)
                    .upsert(true)
                    .return_document(ReturnDocument::After)
                    .await
                    .expect("a recorded write");
                let id = after.and_then(|document| document.get_object_id("_id").ok());
                if collection == "messages" && before == 0 {
                    self.learn(filter, id.expect("an upsert leaves a document"));
                }
            }
            Effect::Delete { collection, filter } => {
                self.db
                    .collection(collection)
                    .delete_many(filter.clone())
                    .await
                    .expect("a recorded write");
            }
            Effect::Tool { agent } => {
                let set = doc! { "$set": { "agent_id": agent } };
                self.db
                    .conversations()
                    .update_one(self.key(), set)
                    .await
                    .expect("a recorded write");
            }
        }
    }

    async fn count(&self, collection: &str, filter: &Document) -> u64 {
        self.db
            .collection(collection)
            .count_documents(filter.clone())
            .await
            .expect("a read")
    }

    /// Notes which `_id` a message has today. One that was deleted and came back has had several.
    fn learn(&mut self, filter: &Document, today: ObjectId) {
        let message = filter
            .get_str("messageId")
            .expect("messages are known by id");
        let then = self
            .recording
            .messages
            .iter()
            .filter(|recorded| recorded.message == message)
            .map(|recorded| recorded.id)
            .find(|id| !self.ids.contains_key(id))
            .expect("the events tell of every new message");
        self.ids.insert(then, today);
    }

    /// An update as LibreChat would send it now.
    fn present(&self, collection: &str, update: &Document) -> Document {
        let mut update = update.clone();
        for (_, fields) in update.iter_mut() {
            let fields = fields.as_document_mut().expect("$set and $setOnInsert");
            for key in ["createdAt", "updatedAt", "expiredAt"] {
                if let Ok(date) = fields.get_str(key) {
                    let date = DateTime::parse_rfc3339_str(date).expect("a date");
                    fields.insert(key, self.date(date));
                }
            }
            if collection == "conversations"
                && let Ok(messages) = fields.get_array("messages")
            {
                let messages: Vec<Bson> = messages.iter().map(|id| self.id(id).into()).collect();
                fields.insert("messages", messages);
            }
        }
        update
    }

    /// A recorded date, moved to the present.
    fn date(&self, recorded: DateTime) -> DateTime {
        let offset = recorded.timestamp_millis() - self.recording.began().timestamp_millis();
        let writes = &self.recording.writes;
        // Between two writes time runs as recorded until the next one is due.
        let index = writes.partition_point(|write| write.at <= offset).max(1);
        let since = offset - writes[index - 1].at;
        let moved = match self.dated.get(index) {
            Some(next) if offset >= 0 => (self.dated[index - 1] + since).min(*next),
            _ => self.dated[index - 1] + since,
        };
        DateTime::from_millis(self.began + moved)
    }

    fn id(&self, recorded: &Bson) -> ObjectId {
        let text = recorded.as_str().expect("an id");
        let recorded = ObjectId::parse_str(text).expect("an id");
        let known = self.ids.get(&recorded).copied();
        known.unwrap_or_else(|| self.aged(recorded))
    }

    /// A recorded id with its age kept: seconds are its first four bytes.
    pub(super) fn aged(&self, recorded: ObjectId) -> ObjectId {
        let age =
            self.recording.began().timestamp_millis() - recorded.timestamp().timestamp_millis();
        let seconds = u32::try_from((self.began - age) / 1000).expect("before 2106");
        let mut bytes = recorded.bytes();
        bytes[..4].copy_from_slice(&seconds.to_be_bytes());
        ObjectId::from_bytes(bytes)
    }

    pub(super) fn key(&self) -> Document {
        doc! { "conversationId": &self.recording.conversation, "user": &self.recording.user }
    }
}

fn schedule(writes: &[Write], pace: Pace) -> Vec<i64> {
    let longest = match pace {
        Pace::Recorded => i64::MAX,
        Pace::AtMost(longest) => i64::try_from(longest.as_millis()).unwrap_or(i64::MAX),
        Pace::Elapsed => 0,
    };
    let mut due = Vec::with_capacity(writes.len());
    let (mut at, mut last) = (0, 0);
    for write in writes {
        at += (write.at - last).min(longest);
        last = write.at;
        due.push(at);
    }
    due
}
