//! Baton makes agent handoffs in LibreChat permanent.

pub mod backoff;
pub mod feed;
pub mod health;
pub mod librechat;
pub mod mongo;
pub mod reconcile;
pub mod switch;
