//! Feed → decide → apply: who works on which conversation when.
//!
//! Work on one conversation is done in order and by one worker at a time; conversations are worked
//! on side by side. The dispatcher below owns all that is remembered; workers are lent the state
//! of their conversation and give it back. A position in the stream is saved only when everything
//! before it has been dealt with.

mod answers;
mod bell;
mod call;
mod choose;
mod context;
mod dispatch;
mod guard;
mod handle;
mod lane;
mod learn;
mod learned;
mod target;
mod timer;
mod watermark;

pub use answers::{End, end_answers};
pub use bell::{Bell, Listener};
pub use call::Call;
pub use choose::NotChosen;
pub use context::{Context, Undone};
pub use dispatch::Reconciler;
pub use handle::{Handle, Requests, requests};
pub use learned::Learned;
pub(crate) use target::TOO_OFTEN;
pub use target::Unfit;
