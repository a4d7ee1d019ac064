//! What the tests run against: a real MongoDB, and LibreChat's own data layer on top of it.
//!
//! Everything here listens on 127.0.0.1 and ends with the process that started it, however that
//! process ends.
#![allow(
    dead_code,
    reason = "benches include this folder too and use only a part of it"
)]

mod database;
mod mongod;
mod wait;

pub use database::TestDb;
pub use mongod::{Mongod, Topology};
#[allow(unused_imports, reason = "as above")]
pub use wait::{eventually, holds};
