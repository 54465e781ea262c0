//! Read access to an issue.

use std::rc::Rc;

use handoff_base::ids::{IssueKey, WorkerId};

use crate::record::{DaySpending, Halt, Issue, Record};

/// Read access to a step's issue. `E` is the error of reading.
pub trait View<E> {
    /// The issue, if it was opened.
    fn shared_issue(&self) -> Result<Option<Rc<Issue>>, E>;

    /// The key of an existing issue that differs only in case from this new one: on some file
    /// systems, both would have the same folder.
    fn twin(&self) -> Result<Option<IssueKey>, E> {
        Ok(None)
    }

    /// A handoff's record, if there is one with this number.
    fn shared_record(&self, number: u32) -> Result<Option<Rc<Record>>, E>;

    /// An owned copy of the issue.
    fn issue(&self) -> Result<Option<Issue>, E> {
        Ok(self.shared_issue()?.map(Rc::unwrap_or_clone))
    }

    /// An owned copy of a handoff's record.
    fn record(&self, number: u32) -> Result<Option<Record>, E> {
        Ok(self.shared_record(number)?.map(Rc::unwrap_or_clone))
    }

    /// The numbers of the handoffs whose contracts have exactly these bytes, the newest first.
    fn sent_before(&self, bytes: &[u8]) -> Result<Vec<u32>, E>;

    /// The spending on claims that began on a day, if any.
    fn spent_on(&self, day: &str) -> Result<Option<DaySpending>, E>;

    /// Whether an issue has ended; `None` if there is no such issue.
    fn ended(&self, _: &IssueKey) -> Result<Option<bool>, E> {
        Ok(None)
    }

    /// The pauses of more than one issue.
    fn halts(&self) -> Result<Vec<Halt>, E> {
        Ok(Vec::new())
    }

    /// The worker for whom commands are printed, if it is known. What is recorded must not depend on
    /// it.
    fn reader(&self) -> Option<&WorkerId> {
        None
    }

    /// A handoff's contract, byte for byte.
    ///
    /// # Errors
    /// When it is missing or can't be read.
    fn contract(&self, record: &Record) -> Result<Rc<[u8]>, E>;
}
