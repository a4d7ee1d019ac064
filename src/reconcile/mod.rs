//! Feed → decide → apply: who works on which conversation when.
//!
//! Work on one conversation is done in order and by one worker at a time; conversations are worked
//! on side by side. The dispatcher below owns all that is remembered; workers are lent the state
//! of their conversation and give it back. A position in the stream is saved only when everything
//! before it has been dealt with.

mod context;
mod dispatch;
mod guard;
mod lane;
mod learn;
mod timer;
mod watermark;

pub use context::{Context, Undone};
pub use dispatch::Reconciler;
