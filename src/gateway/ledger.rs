//! What the gateway knows of switches: nothing, until MongoDB has been reached.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::time::timeout;

use crate::reconcile::Context;

/// Nothing waits longer for MongoDB than this.
pub(super) const PATIENCE: Duration = Duration::from_secs(1);

/// The records and LibreChat's documents.
#[derive(Clone, Default)]
pub struct Ledger {
    context: Arc<OnceLock<Arc<Context>>>,
}

impl Ledger {
    /// MongoDB has been reached.
    pub fn open(&self, context: Arc<Context>) {
        // It is opened once.
        let _ = self.context.set(context);
    }

    /// What there is to ask.
    pub(super) fn get(&self) -> Option<Arc<Context>> {
        self.context.get().cloned()
    }
}

/// Runs something with MongoDB for as long as there is patience. It goes on behind the scenes when
/// that is over: an operation of the driver's is better not dropped half-way.
pub(super) async fn within<T: Send + 'static>(
    patience: Duration,
    work: impl Future<Output = T> + Send + 'static,
) -> Option<T> {
    timeout(patience, tokio::spawn(work)).await.ok()?.ok()
}
