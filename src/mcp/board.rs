//! What the tools work on, once the database's hosts are known.

use std::sync::{Arc, OnceLock};

use crate::{
    librechat::users::Users,
    reconcile::{Context, Handle},
};

/// What the tools work on.
#[derive(Clone)]
pub struct Board {
    /// LibreChat's users.
    pub users: Users,
    /// What the work on conversations needs; the tools read with it.
    pub context: Arc<Context>,
    /// The way to the work on conversations.
    pub handle: Handle,
}

/// Where the board will be. The tools are served before: they say so until then.
#[derive(Clone, Default)]
pub struct Slot(Arc<OnceLock<Board>>);

impl Slot {
    /// Puts the board in; only the first one counts.
    pub fn fill(&self, board: Board) {
        let _ = self.0.set(board);
    }

    pub(super) fn get(&self) -> Option<&Board> {
        self.0.get()
    }
}
