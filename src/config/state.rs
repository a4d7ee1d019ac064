//! `[state]`: where Baton keeps its own records.

use super::layers::Layers;
use super::mongodb::Mongodb;
use super::parse;
use super::problem::Complaint;

/// `[state]`: where Baton keeps its own records.
#[derive(Clone, Debug)]
pub struct State {
    /// A database on the same MongoDB, for nothing else.
    pub database: String,
}

impl State {
    pub(super) fn read(layers: &mut Layers, mongodb: &Mongodb) -> Self {
        let database = layers.or("state.database", "baton".to_owned(), parse::database);
        // MongoDB has no two databases whose names differ by case alone.
        if database.eq_ignore_ascii_case(&mongodb.database) {
            let found = format!("{database:?} is LibreChat's database");
            layers.complain(
                "state.database",
                Complaint::new(found, "give Baton's records a database of their own"),
            );
        }
        Self { database }
    }
}
