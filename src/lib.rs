//! Baton makes agent handoffs in LibreChat permanent.

pub mod librechat;
