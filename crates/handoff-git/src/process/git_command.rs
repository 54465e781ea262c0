//! The `git` command for a repository and working tree, optionally without the programs that the
//! repository's own configuration names.

use std::path::Path;
use std::process::Command;

/// Settings that disable hooks and the file system monitor.
const NO_PROGRAMS: [&str; 2] = ["core.hooksPath=/dev/null", "core.fsmonitor=false"];

/// The git command for this repository and working tree, independent of the environment and of the
/// folder where it runs.
pub(crate) fn git(git_dir: &Path, work_tree: Option<&Path>) -> Command {
    let mut command = Command::new("git");
    command.args(super::pinned());
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

/// Like [`git`], with hooks and the file system monitor disabled.
pub(crate) fn git_alone(git_dir: &Path, work_tree: Option<&Path>) -> Command {
    let mut command = git(git_dir, work_tree);
    for setting in NO_PROGRAMS {
        command.args(["-c", setting]);
    }
    command
}
