//! The reverse direction: reads from a recorded step which update it carried out. The audit plans
//! that update again, an export writes it down, and a `sync` requests it again.

use handoff_base::ids::AgentName;

use crate::planner::{annotate, change, decide, give_up, pause, refuse, reopen};
use crate::record::{Issue, Record};
use crate::request::Update;

/// The update of a step that changed its issue but no handoff, and the agent that made it.
pub fn recorded_update(was: Option<&Issue>, is: &Issue) -> Option<(AgentName, Update)> {
    reopen::recorded(was, is)
        .or_else(|| pause::recorded(was, is))
        .or_else(|| give_up::recorded(was, is))
        .or_else(|| decide::recorded(was, is))
        .or_else(|| annotate::recorded(was, is))
        .or_else(|| refuse::recorded(was, is))
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
