//! A Git-backed ledger of handoffs between AI agents.
//!
//! The library never prints, exits, or reads the clock or the environment: the
//! binary does, and passes in what it found. Modules depend on one another in
//! one direction: `cli` → `agents` → `hooks`, `templates`, `github` → `insight` → `ledger` → `contract`, `protocol`, `git`
//! → `ids`, `finding`.

pub use handoff_harness::agents;
pub mod cli;
pub use handoff_base::finding;
pub use handoff_base::ids;
pub use handoff_contract as contract;
pub use handoff_git as git;
pub use handoff_github as github;
pub use handoff_harness::hooks;
pub use handoff_insight as insight;
pub use handoff_ledger as ledger;
pub use handoff_protocol as protocol;
pub use handoff_templates as templates;
