//! Baton makes agent handoffs in LibreChat permanent.

pub mod check;
pub mod cli;
pub mod config;
pub mod health;
pub mod http;
pub mod librechat;
pub mod lifecycle;
pub mod run;
pub mod telemetry;
