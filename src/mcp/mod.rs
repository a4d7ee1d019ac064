//! Baton as an MCP server: the tools `switch_agent` and `list_agents` at `POST /mcp`.
//!
//! Whatever LibreChat says of a call is in its headers; what the model says is in the arguments.
//! `initialize` and `tools/list` answer whenever the process runs, since LibreChat blocks a server
//! that fails them, for all users (a circuit breaker, v0.8.7 and v0.8.8-rc1).

mod agents;
mod answer;
mod arguments;
mod board;
mod describe;
mod door;
mod headers;
mod list_agents;
mod server;
mod switch_agent;

pub use board::{Board, Slot};
pub use door::router;
