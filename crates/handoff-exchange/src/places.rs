//! Where an export has its files: the names that an import looks for.

use std::collections::HashSet;

use handoff::base::ObjectId;
use handoff::protocol::State;

use super::line::STEPS;

/// The extensions of possible contracts.
pub(super) const ENDS: [&str; 3] = [".xml", ".json", ".md"];
/// The folder with the versions of protocols.
pub(super) const PROTOCOLS: &str = "shared/protocols";
/// The folder with the versions of documents.
pub(super) const DOCUMENTS: &str = "shared/documents";

/// The path of an object from a failure's context, by its id: a file, or a tree in git's stored
/// form.
pub(super) fn object_place(id: ObjectId) -> String {
    let name = id.to_string();
    let (start, rest) = name.split_at(2);
    format!("shared/objects/{start}/{rest}")
}
/// The folder for contracts that the layout does not place.
pub(super) const CONTRACTS: &str = "contracts";
/// The folder of handoffs by their state.
pub(super) const HANDOFFS: &str = "handoffs";
/// The folder for answered requests.
pub(super) const REQUESTS: &str = "requests";
/// The folder of documents that all issues share.
pub(super) const CONTEXT: &str = "context";
/// The folders of handoffs by state, in the order of the lifecycle.
pub(super) const STATES: [&str; 4] = ["pending", "in-progress", "completed", "failed"];
/// The log in a single document.
pub(super) const LOG: &str = "handoff_log.json";
/// The log's only member.
pub(super) const ENTRIES: &str = "handoff_log";
/// The file that describes a failed handoff.
pub(super) const FAILED: &str = "handoff-failed.json";
/// The parent of the folders of failed handoffs.
pub(super) const FAILURES: &str = "failures";
/// The log with one entry per line.
pub(super) const LINES: &str = "handoffs.log";

/// The suffix of files with an issue's state.
pub(super) const STATE: &str = "state.json";
pub(super) const ARCHIVE: &str = "handoff_contracts";

/// Whether a file is one that an export puts beside the folders of states.
pub(super) fn is_of_export(file: &str) -> bool {
    let within = |top: &str| {
        file.strip_prefix(top)
            .is_some_and(|rest| rest.starts_with('/'))
    };
    file == STEPS || within(CONTRACTS) || within("shared")
}

/// The names in use, in lower case, because some file systems ignore case.
#[derive(Default)]
pub(super) struct Names(HashSet<String>);

impl Names {
    /// A file name that is unused in the folder: the wanted one if it is valid and unused, else one
    /// based on the other.
    pub(super) fn free(&mut self, folder: &str, wanted: Option<&str>, other: &str) -> String {
        const LONGEST: usize = 100;
        let fits = |name: &&str| {
            let plain = |c: char| c.is_ascii_alphanumeric() || "._-@".contains(c);
            name.len() <= LONGEST && !name.starts_with('.') && name.chars().all(plain)
        };
        let mut key = |name: &str| {
            self.0
                .insert(format!("{folder}/{}", name.to_ascii_lowercase()))
        };
        match wanted
            .filter(fits)
            .filter(|name| !name.is_empty() && key(name))
        {
            Some(name) => name.to_owned(),
            None => {
                let mut name = other.to_owned();
                while !key(&name) {
                    name.push('_');
                }
                name
            }
        }
    }
}

pub(super) fn extension(name: &str) -> &str {
    name.rsplit_once('.').map_or("json", |(_, end)| end)
}

/// The path of a folder of states.
pub(super) fn inside(top: &str, name: &str) -> String {
    match top {
        "" => name.to_owned(),
        _ => format!("{top}/{name}"),
    }
}

pub(super) fn state_folder(state: State) -> &'static str {
    let [pending, in_progress, completed, failed] = STATES;
    match state {
        State::Pending => pending,
        State::InProgress | State::Blocked => in_progress,
        State::Completed => completed,
        State::Failed | State::Dead | State::Rejected | State::Cancelled => failed,
    }
}
