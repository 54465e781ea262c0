//! Findings about hooks.

use std::path::Path;

use handoff::base::finding::{Finding, FindingCode};

use super::Hook;
use super::block::{BlockFault, Foreign};
use super::hooks_folder::HooksFolder;
use super::manager::Manager;

pub(super) fn at(code: FindingCode, path: &Path, message: impl Into<String>) -> Finding {
    Finding::error(code, path.display().to_string(), message)
}

/// A block with missing or duplicate markers.
pub(super) fn unclear(path: &Path, fault: &BlockFault) -> Finding {
    let (code, line) = match fault {
        BlockFault::Unclosed { line } => (FindingCode::HookUnclosedBlock, *line),
        BlockFault::Unopened { line } => (FindingCode::HookUnopenedBlock, *line),
        BlockFault::Second { line } => (FindingCode::HookSecondBlock, *line),
    };
    let fix = "fix the markers in an editor, so that they enclose the block's lines and nothing of yours, and run the same again";
    at(code, path, fault.to_string()).at(line, 1).fix(fix)
}

/// A link, which is never written through.
pub(super) fn linked(path: &Path, target: &Path, hook: Hook) -> Finding {
    let text = format!(
        "it is a link to {}, which others may share",
        target.display()
    );
    at(FindingCode::HookSymlink, path, text).fix(format!(
        "have that script call `git handoff hook {hook} \"$@\"`, or put a file of its own in the link's place"
    ))
}

/// A hooks folder that is shared, under version control, or not a folder.
pub(super) fn elsewhere(hooks_folder: &HooksFolder, path: &Path) -> Finding {
    let fix = if hooks_folder.is_unusable() {
        format!(
            "no hook can be there: `{}` has git use this repository's own folder",
            hooks_folder.to_own_folder()
        )
    } else {
        "if that folder may be changed, say so with --into-hooks-path".to_owned()
    };
    at(FindingCode::HookElsewhere, path, hooks_folder.why_shared()).fix(fix)
}

/// A file that another tool overwrites.
pub(super) fn managed(manager: Manager, hook: Hook, path: &Path) -> Finding {
    let name = manager.name();
    let text = format!("the file is {name}'s, which writes it anew and would drop a block in it");
    at(FindingCode::HookManaged, path, text).fix(format!(
        "have {name} call `git handoff hook {hook}`: `git handoff help hooks.md` has the lines for {}",
        manager.own_file(hook)
    ))
}

/// A script that ends before the call.
pub(super) fn early_exit(path: &Path, line: u32, what: &str) -> Finding {
    let text = format!("the script ends here, before {what}");
    at(FindingCode::HookEarlyExit, path, text)
        .at(line, 1)
        .fix(format!("move {what} to right below the first line"))
}

/// A hook that is no script for a shell.
pub(super) fn not_shell(path: &Path, foreign: &Foreign, hook: Hook) -> Finding {
    at(FindingCode::HookNotShell, path, foreign.to_string()).fix(format!(
        "have it call `git handoff hook {hook}` with its arguments and its standard input, and refuse when that fails"
    ))
}

pub(super) fn not_executable(path: &Path) -> Finding {
    let text = "it is not executable, so that git passes it by";
    at(FindingCode::HookNotExecutable, path, text)
        .fix("make it executable if all of it should run, or move it away, and run the same again")
}

pub(super) fn read_only(path: &Path) -> Finding {
    at(
        FindingCode::HookReadOnly,
        path,
        "the file may not be written to",
    )
    .fix("find out who made it read-only, and make it writable if that may be")
}
