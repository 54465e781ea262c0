//! Exit codes. They are public: scripts branch on them.

/// Done; a report exits with this however bad its news.
pub const DONE: u8 = 0;
/// The answer is no: a check found faults, a predicate is false.
pub const NO: u8 = 1;
/// Wrong usage.
pub const USAGE: u8 = 2;
/// The contract was refused: unparseable, incomplete, or contradicted.
pub const CONTRACT: u8 = 3;
/// The protocol refuses: route, state, limit, cycle, role.
pub const PROTOCOL: u8 = 4;
/// Conflict: someone else was first.
pub const CONFLICT: u8 = 5;
/// Not found, or nothing to do.
pub const NOT_FOUND: u8 = 6;
/// Timed out.
pub const TIMED_OUT: u8 = 7;
/// Recorded here, but not on the remote.
pub const NOT_PUBLISHED: u8 = 8;
/// The environment: no repository, no ledger, an unsupported format.
pub const ENVIRONMENT: u8 = 9;
/// The ledger's integrity is broken.
pub const INTEGRITY: u8 = 10;
