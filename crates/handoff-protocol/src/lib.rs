//! Protocols as data: agents, contract types, routes and the lifecycle.
//!
//! A [`Protocol`] is loaded from a `protocol.json` and answers questions about
//! itself: which type a contract is, whether a route exists, who may do what.
//! Everything here is pure: no Git, no clock, no environment, and no protocol's
//! name. `definition` and `contract_type` hold the stored form, `loaded` what it
//! says about itself, `lifecycle` the states that every protocol shares,
//! `resolve` the choice of a contract's type, `tasks` what contracts say of
//! tasks, `facts` what is gathered from them; `timing` says how long work may
//! take and when it is tried again, `limits` how much may be handed over,
//! `evidence` what contracts claim about the repository,
//! `decision` what to do about what stands still, `requirement` what an issue must
//! show before a merge, `alerts` of what someone is told, `signers` whose key is whose, `github` what follows from GitHub's events; `faults`, `time_faults` and
//! `ways` check a definition.

mod alerts;
mod contract_type;
mod decision;
mod definition;
mod evidence;
mod facts;
mod faults;
mod github;
mod lifecycle;
mod limits;
mod loaded;
mod pointers;
mod requirement;
mod resolve;
mod signers;
mod tasks;
mod time_faults;
mod timing;
mod traces;
mod ways;

pub use alerts::{Alert, Level, Measure, Metric, Side, Threshold};
pub use contract_type::{
    ArtifactFields, ContractType, CriticalInputs, ExpectedFields, FailureFields, InputFields,
    NamedSchema, Outcome, Words,
};
pub use decision::{Action, Circumstances, DecisionRule};
pub use definition::{
    Agent, AgentKind, Definition, Document, ErrorCode, FactRule, Fields, Forbidden, Gate, Loops,
    Route, Style,
};
pub use evidence::{
    Check, ClaimedPlace, Claims, CommitsClaim, EvidenceRules, MergeClaim, PathPattern,
    PatternError, Policy, Strategy, TestsClaim,
};
pub use github::{
    Condition, ContractRule, Effect, EventKind, EventRule, Github, Source, SourceRule, Take, select,
};
pub use lifecycle::{Event, IllegalEvent, State};
pub use limits::{CycleLimit, ItemLimit, Limits, RoundLimit};
pub use loaded::Protocol;
pub use pointers::{schema_has, schema_types, schema_values};
pub use requirement::{COMPLETED, Requirement};
pub use resolve::{Envelope, Resolved, Unresolved};
pub use signers::{Signer, Signers, SigningKey, Verdict};
pub use tasks::{TaskFields, TaskPlan, TaskState};
pub use timing::{Jitter, LONGEST, Leases, OwnRetry, Retry, TimeField, Unit};
pub use traces::{Told, TraceEvent, Traces};

/// The file that lists who may sign.
pub const SIGNERS: &str = "allowed_signers";
