//! Read access to an issue.

use std::rc::Rc;

use handoff_base::ids::IssueKey;

use crate::record::{DaySpending, Halt, Issue, Record};

/// Read access to the issue of a step. `E` is the error of reading.
pub trait View<E> {
    /// The issue, if it was opened.
    fn shared_issue(&self) -> Result<Option<Rc<Issue>>, E>;

    /// The key of another issue that differs in upper and lower case only, if the issue was not
    /// opened: on some file systems, the two have one folder.
    fn twin(&self) -> Result<Option<IssueKey>, E> {
        Ok(None)
    }

    /// A handoff's record, if there is one with this number.
    fn shared_record(&self, number: u32) -> Result<Option<Rc<Record>>, E>;

    /// The issue as a value of its own.
    fn issue(&self) -> Result<Option<Issue>, E> {
        Ok(self.shared_issue()?.map(Rc::unwrap_or_clone))
    }

    /// A handoff's record as a value of its own.
    fn record(&self, number: u32) -> Result<Option<Record>, E> {
        Ok(self.shared_record(number)?.map(Rc::unwrap_or_clone))
    }

    /// The handoffs whose contracts have exactly these bytes, the newest first.
    fn sent_before(&self, bytes: &[u8]) -> Result<Vec<u32>, E>;

    /// What was spent on the claims that began on a day, if anything was.
    fn spent_on(&self, day: &str) -> Result<Option<DaySpending>, E>;

    /// Whether an issue has ended; `None` if there is no such issue.
    fn ended(&self, _: &IssueKey) -> Result<Option<bool>, E> {
        Ok(None)
    }

    /// What is paused beyond single issues.
    fn halts(&self) -> Result<Vec<Halt>, E> {
        Ok(Vec::new())
    }

    /// A handoff's contract, byte for byte.
    ///
    /// # Errors
    /// When it is missing or can't be read.
    fn contract(&self, record: &Record) -> Result<Rc<[u8]>, E>;
}
