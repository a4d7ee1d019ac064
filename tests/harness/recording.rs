//! A recorded scene: what LibreChat and the tool wrote, in the order in which it took effect.

use mongodb::bson::oid::ObjectId;
use mongodb::bson::{Bson, DateTime, Document};
use serde_json::Value;

use super::events::{events, lines};

/// The agents of the scenes, by the letters that `tests/fixtures/README.md` gives them.
const AGENTS: [(&str, char, &str); 6] = [
    ("v0.8.8-rc1", 'A', "agent_TEiCFUrdcmZmLR89Tdclm"),
    ("v0.8.8-rc1", 'B', "agent_Q3xjI1XRtHcx1pUE5FVlU"),
    ("v0.8.8-rc1", 'C', "agent_2ICIz-Gn1_jPkiFa4RD_h"),
    ("v0.8.8-rc1", 'H', "agent_J5j32hiHqj7_k63Hp_Tx7"),
    ("v0.8.0", 'A', "agent_uP4O6ItnDprpPU7RqLWMd"),
    ("v0.8.0", 'B', "agent_N2X-Z-ePniOjNaRv_CU4u"),
];

/// A scene.
pub struct Recording {
    /// The version of LibreChat.
    pub version: String,
    /// The scene's name.
    pub scene: String,
    /// What was written, in the order in which MongoDB carried it out.
    pub writes: Vec<Write>,
    /// The owner of the conversation.
    pub user: String,
    /// The conversation.
    pub conversation: String,
    pub(super) messages: Vec<RecordedMessage>,
}

/// One write.
#[derive(Clone, Debug)]
pub struct Write {
    /// Milliseconds since the first one.
    pub at: i64,
    /// What it does.
    pub effect: Effect,
}

/// What a write does.
#[derive(Clone, Debug)]
pub enum Effect {
    /// LibreChat's `findOneAndUpdate` with upsert.
    Upsert {
        /// `conversations` or `messages`.
        collection: String,
        /// Which document.
        filter: Document,
        /// Its update; dates, and ids in `messages`, are text.
        update: Document,
    },
    /// LibreChat's `deleteMany`.
    Delete {
        /// `conversations` or `messages`.
        collection: String,
        /// Which documents.
        filter: Document,
    },
    /// The plain tool sets `agent_id`, and leaves `updatedAt` alone.
    Tool {
        /// The target.
        agent: String,
    },
}

/// A message that was inserted in the course of the scene.
pub(super) struct RecordedMessage {
    pub(super) id: ObjectId,
    pub(super) message: String,
}

impl Recording {
    /// Reads a scene.
    pub fn of(version: &str, scene: &str) -> Self {
        let events = events(version, scene);
        let commands: Vec<Value> = lines(version, scene, "commands");
        let (user, conversation) = commands
            .iter()
            .find(|command| command["collection"] == "conversations")
            .map(|command| {
                (
                    &command["filter"]["user"],
                    &command["filter"]["conversationId"],
                )
            })
            .map(|(user, conversation)| (text(user), text(conversation)))
            .expect("a scene writes its conversation");
        Self {
            version: version.to_owned(),
            scene: scene.to_owned(),
            writes: in_order(&commands, &events),
            user,
            conversation,
            messages: events.iter().filter_map(RecordedMessage::of).collect(),
        }
    }

    /// The id of the agent with that letter.
    pub fn agent(&self, letter: char) -> &'static str {
        agent(&self.version, letter)
    }

    /// Every agent that exists in the scene, by letter and id.
    pub fn agents(&self) -> impl Iterator<Item = (char, &'static str)> {
        AGENTS
            .into_iter()
            .filter(|(version, ..)| *version == self.version)
            .map(|(_, letter, id)| (letter, id))
    }

    /// The clock of LibreChat at the first write.
    pub(super) fn began(&self) -> DateTime {
        let Effect::Upsert { update, .. } = &self.writes[0].effect else {
            panic!("a scene begins with a user's message");
        };
        date(update.get_document("$set").expect("$set")).expect("a date")
    }
}

/// The id of the agent with that letter.
pub fn agent(version: &str, letter: char) -> &'static str {
    AGENTS
        .into_iter()
        .find(|known| (known.0, known.1) == (version, letter))
        .map(|(.., id)| id)
        .expect("a recorded agent")
}

impl RecordedMessage {
    fn of(event: &Document) -> Option<Self> {
        let inserted = event.get_str("operationType").ok() == Some("insert");
        let document = event.get_document("fullDocument").ok()?;
        let message = document.get_str("messageId").ok()?.to_owned();
        let id = document.get_object_id("_id").ok()?;
        inserted.then_some(Self { id, message })
    }
}

/// The commands were noted when they were sent, the events when they took effect; a tool's write
/// and a START that nobody awaits may change places on the way.
fn in_order(commands: &[Value], events: &[Document]) -> Vec<Write> {
    let writes: Vec<Write> = commands.iter().filter_map(Write::of).collect();
    let began = writes.first().and_then(Write::date).expect("a date");
    let mut ranks = Vec::with_capacity(writes.len());
    let mut last = 0;
    for write in &writes {
        last = events
            .iter()
            .position(|event| write.caused(event, began))
            .unwrap_or(last);
        ranks.push(last);
    }
    let mut order: Vec<usize> = (0..writes.len()).collect();
    order.sort_by_key(|index| ranks[*index]);
    let mut latest = 0;
    order
        .into_iter()
        .map(|index| {
            let mut write = writes[index].clone();
            latest = latest.max(write.at);
            write.at = latest;
            write
        })
        .collect()
}

impl Write {
    /// None for what writes nothing, such as the tool's own HTTP request.
    fn of(command: &Value) -> Option<Self> {
        let part = |key: &str| serde_json::from_value(command[key].clone()).expect("a document");
        let collection = || text(&command["collection"]);
        let effect = match (command["op"].as_str(), command["ev"].as_str()) {
            (Some("findOneAndUpdate"), _) => Effect::Upsert {
                collection: collection(),
                filter: part("filter"),
                update: part("update"),
            },
            (Some("deleteMany"), _) => Effect::Delete {
                collection: collection(),
                filter: part("filter"),
            },
            (None, Some("switch_agent")) => Effect::Tool {
                agent: text(&command["agent_id"]),
            },
            (None, Some("http")) => return None,
            other => panic!("a recorded command of no known kind: {other:?}"),
        };
        let at = command["at"].as_i64().expect("a time");
        Some(Self { at, effect })
    }

    /// When LibreChat wrote it, by its own clock.
    fn date(&self) -> Option<DateTime> {
        match &self.effect {
            Effect::Upsert { update, .. } => date(update.get_document("$set").ok()?),
            Effect::Delete { .. } | Effect::Tool { .. } => None,
        }
    }

    /// Whether `event` is this write's.
    fn caused(&self, event: &Document, began: DateTime) -> bool {
        let updated = changed(event).and_then(|changed| changed.get("updatedAt"));
        match &self.effect {
            Effect::Upsert { collection, .. } => {
                let namespace = event.get_document("ns").ok();
                namespace.and_then(|ns| ns.get_str("coll").ok()) == Some(collection)
                    && updated.and_then(Bson::as_datetime) == self.date().as_ref()
            }
            Effect::Tool { agent } => {
                let named = changed(event).and_then(|changed| changed.get_str("agent_id").ok());
                // A person may have written the same by hand a second later.
                let wall = event.get_datetime("wallTime").expect("a time");
                let apart = wall.timestamp_millis() - began.timestamp_millis() - self.at;
                named == Some(agent) && updated.is_none() && apart.abs() < 100
            }
            Effect::Delete { .. } => false,
        }
    }
}

fn changed(event: &Document) -> Option<&Document> {
    match event.get_str("operationType").ok()? {
        "insert" => event.get_document("fullDocument").ok(),
        "update" => event
            .get_document("updateDescription")
            .ok()?
            .get_document("updatedFields")
            .ok(),
        _ => None,
    }
}

fn date(set: &Document) -> Option<DateTime> {
    DateTime::parse_rfc3339_str(set.get_str("updatedAt").ok()?).ok()
}

fn text(value: &Value) -> String {
    value.as_str().expect("a text").to_owned()
}
