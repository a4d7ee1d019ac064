//! What the routes of the API work on, once the database's hosts are known.

use std::sync::{Arc, OnceLock};

use super::error::ApiError;
use crate::librechat::Conversations;
use crate::librechat::access::Access;
use crate::librechat::users::Users;
use crate::reconcile::Handle;
use crate::switch::store::Store;

/// What the routes of the API work on.
#[derive(Debug)]
pub struct Backend {
    /// LibreChat's users.
    pub users: Users,
    /// LibreChat's conversations.
    pub conversations: Conversations,
    /// Who may see which agent.
    pub access: Arc<Access>,
    /// The records.
    pub store: Store,
    /// The way to the work on conversations.
    pub handle: Handle,
}

/// Where the backend will be. The API is served before: it answers 503 until then.
#[derive(Clone, Debug, Default)]
pub struct Slot(Arc<OnceLock<Backend>>);

impl Slot {
    /// Puts the backend in; only the first one counts.
    pub fn fill(&self, backend: Backend) {
        let _ = self.0.set(backend);
    }

    pub(crate) fn get(&self) -> Result<&Backend, ApiError> {
        let starting = || ApiError::unavailable("starting: the database has not been found yet");
        self.0.get().ok_or_else(starting)
    }
}
