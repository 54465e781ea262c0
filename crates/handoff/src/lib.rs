//! The library of `git-handoff`: the only dependency of a program that reads or writes ledgers.
//!
//! A ledger is a branch of a Git repository. Each handoff is a contract that an agent sends to another; each step, from
//! the sending to the end, is one commit. The working tree, the index, `HEAD` and other local branches are never
//! touched.
//!
//! The repository is the current folder's, as for git itself: [`open`] finds it, and an audit opens
//! it again for each thread. Steps are recorded only in this repository, unless the ledger is
//! [shared](Ledger::shared_through) through a remote.
//!
//! ```standalone_crate
//! use handoff::{AuditScope, DEFAULT_BRANCH, Event, EventArgs, Input, Ledger, Offer, SendOptions, Target, Update};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let scratch = test_support::TestEnvironment::with_repository();
//! # std::env::set_current_dir(scratch.repo())?;
//! // Start a ledger.
//! let repository = handoff::open()?;
//! let session = handoff::session("Ada", "ada@example.com", "desk".parse()?);
//! let mut ledger = Ledger::new(&repository, DEFAULT_BRANCH)?;
//! ledger.init(&session, &handoff::founding("issue-to-pr").ok_or("no such protocol")?)?;
//!
//! // Send a contract: it is refused, with findings, unless it is complete and the protocol allows it.
//! let contract = br#"{
//!     "from": "issue-manager", "to": "prep-agent", "issue_number": 12,
//!     "issue_url": "https://github.com/octo/parcels/issues/12",
//!     "issue_title": "Export the history as CSV", "type": "feature", "priority": "high",
//!     "summary": "Dispatchers want their history as a file",
//!     "requirements": ["The history page offers a download as CSV"]
//! }"#;
//! let (input, options) = (Input::read(contract), SendOptions::default());
//! let sent = ledger.send(&session, &Offer::new(&input, &options))?;
//! assert_eq!(sent.receipt.record.id.to_string(), "12.1");
//!
//! // Its receiver claims it, and reports the outcome.
//! let agent = "prep-agent".parse()?;
//! let none = EventArgs::default();
//! let claimed = ledger.claim(&session, &agent, &Target::Next, Event::Claim, &none)?;
//! let id = claimed.receipt.record.id;
//! let completed = Update::change(id.number(), Event::Complete, none);
//! ledger.update(&session, &agent, id.issue(), &completed)?;
//!
//! // The audit derives every step again from the one before.
//! let audit = ledger.audit(AuditScope::whole(session.now()), 2, false)?;
//! assert!(audit.is_clean());
//! assert_eq!(audit.commits, 4);
//! # Ok(())
//! # }
//! ```
//!
//! A program follows a ledger by its commits:
//!
//! ```standalone_crate
//! # use handoff::{DEFAULT_BRANCH, Ledger};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let scratch = test_support::TestEnvironment::with_repository();
//! # std::env::set_current_dir(scratch.repo())?;
//! # let repository = handoff::open()?;
//! # let mut ledger = Ledger::new(&repository, DEFAULT_BRANCH)?;
//! # let session = handoff::session("Ada", "ada@example.com", "desk".parse()?);
//! # ledger.init(&session, &handoff::founding("delegation").unwrap())?;
//! let seen = None; // the commit up to which it was followed before
//! let tip = ledger.tip()?.commit();
//! for commit in handoff::commits_after(&repository, seen, tip)? {
//!     for happening in handoff::happenings(&repository, &repository.commit(commit)?)? {
//!         assert_eq!(happening.subject, "Start the ledger");
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Each item has one path, at this crate's root. The modules are internals of the program
//! `git-handoff`: hidden, and subject to change without notice.

#![warn(clippy::disallowed_methods, clippy::disallowed_types)]

#[doc(hidden)]
pub use handoff_base as base;
#[doc(hidden)]
pub use handoff_contract as contract;
#[doc(hidden)]
pub use handoff_git as git;
#[doc(hidden)]
pub use handoff_ledger as ledger;
#[doc(hidden)]
pub use handoff_model as model;
#[doc(hidden)]
pub use handoff_protocol as protocol;
#[doc(hidden)]
pub use handoff_templates as templates;

pub use handoff_base::finding::{Finding, FindingCode, Severity};
pub use handoff_base::ids::{AgentName, HandoffId, IssueKey, WorkerId};
pub use handoff_base::{Moment, ObjectId};
pub use handoff_contract::Input;
pub use handoff_git::{OpenError, Repository};
pub use handoff_ledger::{
    Audit, AuditScope, Clock, ContractError, DEFAULT_BRANCH, Done, FollowError, Founding,
    Happening, IssueFolder, Kind, Ledger, LedgerError, Offer, Rules, Session, Snapshot, Target,
    commits_after, happenings,
};
pub use handoff_model::{
    EventArgs, Failure, Issue, IssueStatus, Receipt, Record, Refusal, SendOptions, Transition,
    Update, View,
};
pub use handoff_protocol::{Event, Policy, Protocol, State};
pub use handoff_templates::BUILT_IN;

#[allow(clippy::disallowed_types, reason = "the one place that draws")]
use std::hash::{BuildHasher, RandomState};
use std::rc::Rc;
use std::time::SystemTime;

use chrono::{DateTime, FixedOffset, Local};

/// Opens the repository of the current folder as git does: by `GIT_DIR` or by search, with the user's configuration.
/// Files of built-in protocols are read from the program itself.
///
/// # Errors
/// [`OpenError`], by what the user can do about it.
pub fn open() -> Result<Repository, OpenError> {
    Ok(Repository::open_here()?.shipping(handoff_templates::shipped))
}

/// The initial content of a ledger with a built-in protocol ([`BUILT_IN`] lists them), with
/// evidence policy `warn`. `None` if there is no such protocol.
pub fn founding(protocol: &str) -> Option<Founding> {
    let folder = handoff_templates::built_in(protocol)?;
    Some(Founding {
        protocol: protocol.parse().ok()?,
        evidence: Policy::Warn,
        files: folder.into_files(),
        readme: format!("This branch is a ledger of handoffs by the protocol {protocol}.\n"),
    })
}

/// The session of a person or program, with the system's clock and unsigned commits. The worker
/// holds its claims: claiming again changes nothing, and other workers are refused.
pub fn session(name: &str, email: &str, worker: WorkerId) -> Session {
    Session {
        worker: Some(worker),
        ..Session::new(Rc::new(SystemClock), (name, email), now, drawn)
    }
}

struct SystemClock;

impl Clock for SystemClock {
    fn author(&self) -> DateTime<FixedOffset> {
        DateTime::<Local>::from(now()).fixed_offset()
    }

    fn committer(&self) -> DateTime<FixedOffset> {
        self.author()
    }
}

/// The system's time; below this crate, the time is an argument.
#[allow(
    clippy::disallowed_methods,
    reason = "the one place that reads the clock"
)]
fn now() -> SystemTime {
    SystemTime::now()
}

#[allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the one place that draws"
)]
fn drawn(below: u64) -> u64 {
    RandomState::new().hash_one(below) % below.max(1)
}
