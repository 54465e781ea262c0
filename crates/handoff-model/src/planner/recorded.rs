//! The way back: which update a step carried out, read from what it recorded. The audit plans it
//! again, an export writes it down, and a `sync` asks for it once more.

use handoff_base::ids::AgentName;

use crate::planner::{annotate, change, decide, reopen};
use crate::record::{Issue, Record};
use crate::request::Update;

/// The update of a step that changed its issue and no handoff, and by whom.
pub fn recorded_update(was: Option<&Issue>, is: &Issue) -> Option<(AgentName, Update)> {
    reopen::recorded(was, is)
        .or_else(|| decide::recorded(was, is))
        .or_else(|| annotate::recorded(was, is))
}

/// The update of a step that changed one handoff. `before` and `after` are its records, `was` and
/// `is` its issue.
pub fn recorded_change(
    before: Option<&Record>,
    after: &Record,
    was: Option<&Issue>,
    is: &Issue,
) -> Update {
    let decision = decide::new_decision(was, is);
    let (event, args) = change::recorded(before, after, decision);
    Update::change(after.id.number(), event, args)
}
