//! The detail view of a handoff: history, contract, failures, and the diff of its branch. It is
//! read on a separate thread.

use std::fmt::Write as _;
use std::io::Read;
use std::process::{Command, Stdio};

use handoff::base::ObjectId;
use handoff::base::ids::HandoffId;
use handoff::base::text::{continued, plain};
use handoff::ledger::{changes_of, past_work_in_full};
use handoff::model::Record;

use handoff_cli::context::{Context, Global};
use handoff_cli::failure::Failure;
use handoff_cli::render::headline;
use handoff_cli::render::kept::kept_text;
use handoff_cli::render::stored::Stored;
use handoff_cli::view::Look;

/// The maximum size of a diff shown, in bytes.
const MOST: u64 = 256 * 1024;

/// The names of the tabs.
pub(super) const TABS: [&str; 4] = ["handoff", "contract", "failure", "diff"];

/// The content of a detail view.
#[derive(Debug)]
pub(super) struct Detail {
    pub(super) id: HandoffId,
    /// A one-line summary.
    pub(super) headline: String,
    pub(super) record: Option<Record>,
    /// The text of each tab, escaped.
    pub(super) texts: [String; TABS.len()],
}

impl Detail {
    /// The placeholder while it is read.
    pub(super) fn loading(id: HandoffId) -> Self {
        Self {
            headline: format!("{id}"),
            id,
            record: None,
            texts: std::array::from_fn(|_| "reading ...".to_owned()),
        }
    }

    /// Reads a handoff's detail view.
    pub(super) fn read(global: Global, id: HandoffId, look: Look) -> Self {
        match read(global, &id, look) {
            Ok(detail) => detail,
            Err(failure) => Self {
                texts: std::array::from_fn(|_| continued(&failure.message)),
                ..Self::loading(id)
            },
        }
    }
}

fn read(global: Global, id: &HandoffId, look: Look) -> Result<Detail, Failure> {
    let context = Context::new(global);
    let repository = context.repository()?;
    let ledger = context.ledger(&repository)?;
    let tip = ledger.newest()?;
    let stored = Stored::read(&tip, id)?;
    let record = stored.record.clone();
    let folder = tip.issue(id.issue())?;
    let failures = kept_text(&past_work_in_full(&repository, &folder, &record)?);
    let rules = tip.rules(record.protocol.as_str())?;
    let definition = rules.protocol().definition();
    let branch = stored.issue.fact(definition, "branch");
    let branch = branch.and_then(|known| known.value.as_str());
    let here = || branch.and_then(|branch| repository.code(branch));
    let diff = match record.code.clone().or_else(here) {
        Some(code) => difference(changes_of(&repository, (&stored.issue, definition), &code)?),
        None => "no code is known".to_owned(),
    };
    let view = stored.view(&ledger, &tip)?;
    let failures = match failures.trim_start_matches('\n') {
        "" => "nothing failed",
        failures => failures,
    };
    let bare = |text: &str| anstream::adapter::strip_str(text).to_string();
    Ok(Detail {
        id: id.clone(),
        headline: bare(&headline(&record)),
        texts: [
            bare(&view.about(&look)),
            view.contract_text(),
            failures.to_owned(),
            plain(&diff),
        ],
        record: Some(record),
    })
}

/// The diff of the recorded code from its fork point, by git.
fn difference(range: Result<(ObjectId, ObjectId), String>) -> String {
    let (from, to) = match range {
        Ok(range) => range,
        Err(why) => return why,
    };
    let options = [
        "--no-color",
        "--no-ext-diff",
        "--no-textconv",
        "--stat",
        "--patch",
    ];
    let mut command = Command::new("git");
    command.arg("diff").args(options);
    command.args([from.to_string(), to.to_string()]);
    command.stdin(Stdio::null()).stderr(Stdio::null());
    let text = output(command.stdout(Stdio::piped()));
    let (text, is_cut) =
        text.unwrap_or_else(|error| (format!("git cannot be run: {error}"), false));
    let (from, to) = (from.short(), to.short());
    let mut shown = format!("git diff {from} {to}\n\n{text}");
    if text.is_empty() {
        shown += "no difference";
    }
    if is_cut {
        // Writing to a `String` can't fail.
        let _ = write!(shown, "\n... the rest is not shown: git diff {from} {to}");
    }
    shown
}

/// The start of a command's output, and whether it was truncated.
fn output(command: &mut Command) -> std::io::Result<(String, bool)> {
    let mut child = command.spawn()?;
    let mut bytes = Vec::new();
    if let Some(stdout) = child.stdout.take() {
        // Closing the pipe ends a command with more output.
        stdout.take(MOST).read_to_end(&mut bytes)?;
    }
    child.wait()?;
    let is_cut = bytes.len() as u64 == MOST;
    Ok((String::from_utf8_lossy(&bytes).into_owned(), is_cut))
}
