//! Baton makes agent handoffs in LibreChat permanent.

pub mod aliases;
pub mod backoff;
pub mod check;
pub mod cli;
pub mod config;
mod digest;
pub mod feed;
pub mod gateway;
pub mod health;
pub mod http;
pub mod librechat;
pub mod lifecycle;
pub mod mcp;
pub mod metrics;
pub mod mongo;
pub mod page;
pub mod reconcile;
pub mod run;
pub mod switch;
pub mod switches;
pub mod telemetry;
