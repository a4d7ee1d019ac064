//! What the tests run against: a real MongoDB, and LibreChat's own data layer on top of it.
//!
//! Everything here listens on 127.0.0.1 and ends with the process that started it, however that
//! process ends.
#![allow(
    dead_code,
    unused_imports,
    reason = "benches include this folder too and use only a part of it"
)]

mod address;
mod baton;
mod before;
mod database;
pub mod events;
mod http;
mod keeper;
mod librechat;
mod mongod;
pub mod parts;
mod people;
pub mod recording;
mod replay;
pub mod tools;
mod turn;
mod upstream;
mod wait;

pub use address::free_address;
pub use baton::Baton;
pub use database::TestDb;
pub use http::{Answer, Request};
pub use librechat::{JWT_SECRET, LibreChat};
pub use mongod::{Mongod, Topology};
pub use people::{Agent, User};
pub use recording::{Effect, Recording, Write};
pub use replay::{Pace, Replay};
pub use turn::{Turn, uuid};
pub use upstream::{Seen, Upstream};
pub use wait::{eventually, holds};
