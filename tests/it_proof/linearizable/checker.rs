//! Whether a history is linearizable: the search of Wing and Gong, with the memory of what was tried
//! that Lowe added and Porcupine uses.
//!
//! Calls are put one after the other so that each comes between its start and its end, and each
//! answer is what the register gives then. A call with an unknown outcome has no end: it comes
//! anywhere after its start, or nowhere.

use std::collections::HashSet;

use serde::Serialize;

use super::register::{Answer, Call, Register};

/// One call, with when it started and ended, in microseconds.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Operation {
    pub(crate) clone: u8,
    pub(crate) issue: u32,
    pub(crate) started: u64,
    pub(crate) ended: u64,
    pub(crate) call: Call,
    pub(crate) answer: Answer,
}

impl Operation {
    /// When it had taken effect at the latest.
    fn limit(&self) -> u64 {
        match self.answer {
            Answer::Unknown => u64::MAX,
            _ => self.ended,
        }
    }
}

/// The most calls in one history.
const MOST: usize = 128;

/// An order in which the calls explain all answers, as places in the history; `None` if there is
/// none.
pub(crate) fn linearized(history: &[Operation]) -> Option<Vec<usize>> {
    assert!(history.len() <= MOST, "{} calls", history.len());
    let mut search = Search {
        history,
        tried: HashSet::new(),
        order: Vec::new(),
    };
    search
        .explains(0, Register::default())
        .then_some(search.order)
}

struct Search<'a> {
    history: &'a [Operation],
    /// Which calls were placed, and what that led to, without success.
    tried: HashSet<(u128, Register)>,
    order: Vec<usize>,
}

impl Search<'_> {
    fn explains(&mut self, placed: u128, register: Register) -> bool {
        let is_left = |at: &usize| placed & (1 << at) == 0;
        let left: Vec<usize> = (0..self.history.len()).filter(is_left).collect();
        let limits = left.iter().map(|at| self.history[*at].limit());
        let first_end = limits.min().unwrap_or(u64::MAX);
        // What is left may never have happened.
        if first_end == u64::MAX {
            return true;
        }
        if !self.tried.insert((placed, register)) {
            return false;
        }
        for at in left {
            let next = self.history[at];
            if next.started > first_end {
                continue;
            }
            let (after, answer) = register.apply(next.call);
            let fits = match next.answer {
                Answer::Unknown => after != register,
                given => given == answer,
            };
            if fits {
                self.order.push(at);
                if self.explains(placed | 1 << at, after) {
                    return true;
                }
                self.order.pop();
            }
        }
        false
    }
}
