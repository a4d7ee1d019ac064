//! What Baton serves.

pub(crate) mod address;
pub mod api;
pub mod auth;
mod backend;
mod body;
mod choose;
mod error;
mod history;
mod json;
mod limits;
mod observe;
mod openapi;
pub mod ops;
mod paging;
mod path;
pub(crate) mod rate;
mod serve;
mod user;

pub use backend::{Backend, Slot};
pub(crate) use body::buffered;
pub use error::{ApiError, error};
pub use observe::{in_front, observed};
pub use serve::serve;
