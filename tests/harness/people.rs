//! Users and agents as LibreChat has made them.

use mongodb::bson::oid::ObjectId;
use mongodb::bson::{Bson, Document};

/// A user.
#[derive(Clone, Debug)]
pub struct User {
    /// `users._id`.
    pub id: ObjectId,
    /// The whole document.
    pub document: Document,
}

impl User {
    /// The id as conversations and messages hold it.
    pub fn hex(&self) -> String {
        self.id.to_hex()
    }
}

impl From<&Bson> for User {
    fn from(made: &Bson) -> Self {
        let document = made.as_document().expect("a user").clone();
        Self {
            id: document.get_object_id("_id").expect("a user has an _id"),
            document,
        }
    }
}

/// An agent.
#[derive(Clone, Debug)]
pub struct Agent {
    /// `agents.id`, as conversations name it.
    pub id: String,
    /// `agents._id`, as access entries name it.
    pub object_id: ObjectId,
    /// Its name.
    pub name: String,
}

impl From<&Bson> for Agent {
    fn from(made: &Bson) -> Self {
        let document = made.as_document().expect("an agent");
        let text = |key| document.get_str(key).expect("a text").to_owned();
        Self {
            id: text("id"),
            object_id: document.get_object_id("_id").expect("an agent has an _id"),
            name: text("name"),
        }
    }
}
