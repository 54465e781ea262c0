//! The `git-handoff` binary.

fn main() {}
