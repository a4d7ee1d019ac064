//! What the tests run against: a real MongoDB, and LibreChat's own data layer on top of it.
//!
//! Everything here listens on 127.0.0.1 and ends with the process that started it, however that
//! process ends.
#![allow(
    dead_code,
    unused_imports,
    reason = "benches include this folder too and use only a part of it"
)]

mod database;
mod keeper;
mod librechat;
mod mongod;
pub mod parts;
mod people;
mod turn;
mod wait;

pub use database::TestDb;
pub use librechat::LibreChat;
pub use mongod::{Mongod, Topology};
pub use people::{Agent, User};
pub use turn::{Turn, uuid};
pub use wait::{eventually, holds};
