//! The program as an operator meets it: its words, its exit codes, its signals.
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on says why and stops"
)]

mod daemon;
mod health;
mod words;
