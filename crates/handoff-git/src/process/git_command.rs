//! How `git` is run: in which repository and working tree, and without the programs that a
//! repository's own configuration names, where none of them is needed.

use std::path::Path;
use std::process::Command;

/// Settings under which git runs no hook and no monitor of files.
const NO_PROGRAMS: [&str; 2] = ["core.hooksPath=/dev/null", "core.fsmonitor=false"];

/// The git command for this repository and working tree, independent of the environment and the folder in
/// which it runs say.
pub(crate) fn git(git_dir: &Path, work_tree: Option<&Path>) -> Command {
    let mut command = Command::new("git");
    command.arg("--git-dir").arg(git_dir);
    for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_PREFIX"] {
        command.env_remove(name);
    }
    if let Some(work_tree) = work_tree {
        command.arg("--work-tree").arg(work_tree);
        command.current_dir(work_tree);
    }
    command
}

/// The same, where it runs neither hooks nor a monitor of files.
pub(crate) fn git_alone(git_dir: &Path, work_tree: Option<&Path>) -> Command {
    let mut command = git(git_dir, work_tree);
    for setting in NO_PROGRAMS {
        command.args(["-c", setting]);
    }
    command
}
