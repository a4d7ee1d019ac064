//! The domain: what a switch is, what is decided about it, and where it is kept.

pub mod answer;
mod answers;
pub mod calls;
pub mod decide;
mod delivery;
pub mod flight;
pub mod guarded;
pub mod overview;
pub mod policy;
pub mod record;
pub mod store;
