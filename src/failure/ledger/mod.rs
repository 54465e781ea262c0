//! What a user sees of an error of the ledger: its exit code, a stable code, and what can be done
//! next.

mod archive;
mod branch;
mod contract;
mod damage;
mod git;
mod protocol;
mod rerun;
mod upstream;
mod write;

pub(crate) use git::{DEEPEN, LEFT_OUT, OLD_GIT, REPAIR};

use handoff_ledger::LedgerError;

use super::Failure;

impl From<LedgerError> for Failure {
    fn from(error: LedgerError) -> Self {
        match error {
            LedgerError::Branch(error) => error.into(),
            LedgerError::Write(error) => error.into(),
            LedgerError::Upstream(error) => error.into(),
            LedgerError::Rerun(error) => error.into(),
            LedgerError::Contract(error) => error.into(),
            LedgerError::Protocol(error) => error.into(),
            LedgerError::Damage(error) => error.into(),
            LedgerError::NotArchivable(why) => (*why).into(),
            LedgerError::Refused(refusal) => refusal.into(),
            LedgerError::Git(error) => error.into(),
        }
    }
}
