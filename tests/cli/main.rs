//! The program as an operator meets it: its words, its exit codes, its signals.

mod daemon;
mod words;
