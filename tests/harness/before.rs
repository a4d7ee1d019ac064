//! What was in the database before a recorded scene began.

use mongodb::bson::oid::ObjectId;
use mongodb::bson::{Bson, Document, doc};

use super::Replay;
use super::recording::Effect;

impl Replay<'_> {
    pub(super) async fn seed_people(&self) {
        let user = ObjectId::parse_str(&self.recording.user).expect("an id");
        self.insert(
            "users",
            doc! { "_id": user, "name": "Replay", "role": "USER" },
        )
        .await;
        for (letter, id) in self.recording.agents() {
            let agent = ObjectId::new();
            let name = format!("Agent {letter}");
            self.insert(
                "agents",
                doc! { "_id": agent, "id": id, "name": name, "author": user },
            )
            .await;
            let entry = doc! {
                "resourceType": "agent", "resourceId": agent, "permBits": 1,
                "principalType": "user", "principalModel": "User", "principalId": user,
            };
            self.insert("aclentries", entry).await;
        }
    }

    /// The conversation as it was before the scene, unless the scene begins it: its document and
    /// the messages that START counts, of which the last is the one that the user answers.
    pub(super) async fn seed_conversation(&self) {
        let Some(start) = self.first_update("conversations") else {
            return;
        };
        let set = start.get_document("$set").expect("$set");
        let new: Vec<ObjectId> = self
            .recording
            .messages
            .iter()
            .map(|recorded| recorded.id)
            .collect();
        let earlier: Vec<ObjectId> = set
            .get_array("messages")
            .expect("START counts the messages")
            .iter()
            .map(|id| ObjectId::parse_str(id.as_str().expect("an id")).expect("an id"))
            .filter(|id| !new.contains(id))
            .map(|id| self.aged(id))
            .collect();
        let Some(first) = earlier.first() else {
            return;
        };
        let mut document = self.key();
        document.extend(dates(*first));
        document.extend(doc! {
            "agent_id": set.get_str("agent_id").expect("an agent"),
            "endpoint": "agents",
            "messages": earlier.clone(),
            "title": "Before the scene",
        });
        self.insert("conversations", document).await;
        self.seed_messages(&earlier, set.get_str("agent_id").expect("an agent"))
            .await;
    }

    async fn seed_messages(&self, ids: &[ObjectId], agent: &str) {
        let u = self.first_update("messages").expect("a user's message");
        let answered = u
            .get_document("$set")
            .and_then(|set| set.get_str("parentMessageId"));
        let mut parent = "00000000-0000-0000-0000-000000000000".to_owned();
        for (index, id) in ids.iter().enumerate() {
            let by_user = index % 2 == 0;
            let message = if index + 1 == ids.len() {
                answered.clone().expect("a parent").to_owned()
            } else {
                super::uuid()
            };
            let mut document = dates(*id);
            document.extend(doc! {
                "_id": id, "messageId": &message, "parentMessageId": &parent,
                "conversationId": &self.recording.conversation, "user": &self.recording.user,
                "isCreatedByUser": by_user, "unfinished": false, "endpoint": "agents",
                "model": if by_user { Bson::Null } else { agent.into() },
                "text": "Before the scene",
            });
            if !by_user {
                document.insert("content", vec![super::parts::text("Before the scene")]);
            }
            self.insert("messages", document).await;
            parent = message;
        }
    }

    fn first_update(&self, wanted: &str) -> Option<&Document> {
        self.recording
            .writes
            .iter()
            .find_map(|write| match &write.effect {
                Effect::Upsert {
                    collection, update, ..
                } if collection == wanted => Some(update),
                _ => None,
            })
    }

    async fn insert(&self, collection: &str, document: Document) {
        self.db
            .collection(collection)
            .insert_one(document)
            .await
            .expect("a seed");
    }
}

fn dates(id: ObjectId) -> Document {
    doc! { "createdAt": id.timestamp(), "updatedAt": id.timestamp() }
}
