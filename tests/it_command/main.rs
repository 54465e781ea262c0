//! The command line, git's hooks, and what else runs the program.
#![allow(clippy::unwrap_used)]
#![allow(
    clippy::too_many_lines,
    reason = "a test tells one story, or is one table"
)]

#[cfg(unix)]
mod agents;
mod answers;
mod architecture;
#[cfg(unix)]
mod board;
mod calls;
#[cfg(unix)]
mod configuration;
mod documentation;
mod environment;
#[cfg(unix)]
mod first_minute;
#[cfg(unix)]
mod followed;
#[cfg(unix)]
mod help_examples;
#[cfg(unix)]
mod hooks_install;
#[cfg(unix)]
mod hooks_local;
#[cfg(unix)]
mod hooks_refs;
#[cfg(unix)]
mod hooks_server;
#[cfg(unix)]
mod plain_git;
#[cfg(unix)]
mod planted;
mod shipped;
#[cfg(unix)]
mod untouched;
#[cfg(unix)]
mod views;
