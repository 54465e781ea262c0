//! What a hook does if the program is not on the PATH: it refuses changes of the ledger's branch
//! and allows everything else.

use super::Hook;

/// A shell condition: the program is on the PATH.
pub(super) const FOUND: &str = "command -v git-handoff >/dev/null 2>&1";

/// The ledger's branch, within double quotes of a shell.
const BRANCH: &str = "refs/heads/$(git config handoff.branch || echo handoffs)";

/// The shell lines that decide without the program; the variable `git_handoff_input` has git's
/// input to the hook.
pub(super) fn lines(hook: Hook) -> String {
    let advice = "git-handoff is not on the PATH. Install it, or add its folder to the PATH, and run the same again.";
    let refuse = |why: &str| format!("echo '{hook}: {why}, and {advice}' >&2\nexit 1\n");
    let ledger = refuse("this concerns the branch of the ledger");
    match hook {
        Hook::PreCommit => format!(
            "if [ \"$(git symbolic-ref -q HEAD)\" = \"{BRANCH}\" ]; then\n{ledger}fi\n\
             echo '{hook}: git-handoff is not on the PATH: staged contracts are not checked' >&2\n"
        ),
        Hook::CommitMsg => {
            format!("if [ \"$(git symbolic-ref -q HEAD)\" = \"{BRANCH}\" ]; then\n{ledger}fi\n")
        }
        // Lines of `LOCAL ID REMOTE ID`.
        Hook::PrePush => {
            let guarded = refuse("handoff.pushGuard is on");
            format!(
                "case $git_handoff_input in\n\
                 *\" {BRANCH} \"*) {ledger};;\n\
                 *' refs/heads/'*) if [ \"$(git config --bool handoff.pushGuard)\" = true ]; then\n{guarded}fi ;;\n\
                 esac\n"
            )
        }
        // Lines of `OLD NEW REF`, followed by a line break.
        Hook::ReferenceTransaction => {
            format!("case \"$git_handoff_input\n\" in *\" {BRANCH}\n\"*)\n{ledger};;\nesac\n")
        }
        // A push through a symbolic ref moves the branch too.
        Hook::PreReceive => format!(
            "while read -r git_handoff_old git_handoff_new git_handoff_ref; do\n\
             if [ \"$(git symbolic-ref -q \"$git_handoff_ref\" || echo \"$git_handoff_ref\")\" = \"{BRANCH}\" ]; then\n{ledger}fi\n\
             done <<GIT_HANDOFF_INPUT\n$git_handoff_input\nGIT_HANDOFF_INPUT\n"
        ),
        Hook::Update => format!(
            "if [ \"$(git symbolic-ref -q \"$1\" || echo \"$1\")\" = \"{BRANCH}\" ]; then\n{ledger}fi\n"
        ),
    }
}
