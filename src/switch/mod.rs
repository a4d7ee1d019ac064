//! The domain: what a switch is, what is decided about it, and where it is kept.

pub mod calls;
pub mod decide;
pub mod flight;
pub mod policy;
pub mod record;
pub mod store;
