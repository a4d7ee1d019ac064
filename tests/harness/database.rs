//! The two databases of one test.

use std::sync::atomic::{AtomicU32, Ordering};

use mongodb::bson::Document;
use mongodb::{Client, Collection, Database};

use super::Mongod;

/// A database for LibreChat and one for Baton, which no other test uses.
pub struct TestDb {
    /// Name of LibreChat's database.
    pub librechat: String,
    /// Name of Baton's own database.
    pub state: String,
    /// Connection string that names LibreChat's database, as in LibreChat's `MONGO_URI`.
    pub uri: String,
    /// A client of this test's: a driver's client belongs to one async runtime, and each test has
    /// its own.
    pub client: Client,
}

impl TestDb {
    pub(super) async fn on(mongod: &Mongod) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(1);
        let n = COUNT.fetch_add(1, Ordering::Relaxed);
        let librechat = format!("LibreChat_{n}");
        Self {
            uri: mongod.uri(&librechat),
            state: format!("baton_{n}"),
            librechat,
            client: mongod.client().await,
        }
    }

    /// LibreChat's database.
    pub fn database(&self) -> Database {
        self.client.database(&self.librechat)
    }

    /// Baton's own database.
    pub fn state_database(&self) -> Database {
        self.client.database(&self.state)
    }

    /// One of LibreChat's collections, raw.
    pub fn collection(&self, name: &str) -> Collection<Document> {
        self.database().collection(name)
    }

    /// LibreChat's `conversations`, raw.
    pub fn conversations(&self) -> Collection<Document> {
        self.collection("conversations")
    }

    /// LibreChat's `messages`, raw.
    pub fn messages(&self) -> Collection<Document> {
        self.collection("messages")
    }

    /// Baton's `switches`, raw.
    pub fn switches(&self) -> Collection<Document> {
        self.state_database().collection("switches")
    }
}
