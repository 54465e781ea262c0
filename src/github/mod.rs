//! At home on GitHub.

pub mod event;
