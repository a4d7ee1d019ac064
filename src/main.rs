//! The `baton` program.

fn main() {}
