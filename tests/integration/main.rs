//! Tests against a real MongoDB and LibreChat's own data layer.
//!
//! They are one program, since linking the driver many times costs more than running them.
#![expect(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test that cannot go on says why and stops"
)]
#![allow(
    unreachable_pub,
    missing_docs,
    reason = "nothing outside this program sees its parts"
)]

#[path = "../harness/mod.rs"]
mod harness;

mod access;
mod check;
mod deploy;
mod dispatch;
mod faults;
mod frontend;
mod gateway;
mod handoffs;
mod http;
mod librechat;
mod mcp;
mod mongod;
mod orders;
mod page;
mod real_calls;
mod recordings;
mod replay;
mod specs;
mod stream;
mod switches;
mod writes;
