//! The ledger's remote.

use handoff_base::finding::{Finding, FindingCode};
use handoff_base::text::word;
use handoff_git::{RemoteError, tells_of_damage};
use handoff_ledger::UpstreamError;

use crate::failure::{ErrorCode, Failure, OLD_GIT, chain};

impl From<UpstreamError> for Failure {
    fn from(error: UpstreamError) -> Self {
        let message = chain(&error);
        let at = |code| Self::new(code, message.clone());
        match error {
            UpstreamError::Refused { remote, source } => refused(&remote, source, message),
            UpstreamError::Unreachable { trouble, .. } if tells_of_damage(&trouble) => at(ErrorCode::RemoteUnreachable).hint(
                "nothing was written; `git handoff fetch --repair` puts right what is damaged here, then run the command again",
            ),
            UpstreamError::Unreachable { remote, .. } => at(ErrorCode::RemoteUnreachable).hint(format!(
                "nothing was written; `git ls-remote {}` shows whether git can reach it; try again later",
                word(&remote)
            )),
            UpstreamError::Gone { remote, branch } => at(ErrorCode::RemoteGone).hint(format!(
                "find out who removed it; `git push {} {}` restores this clone's copy",
                word(&remote),
                word(&branch)
            )),
            UpstreamError::Unrelated { .. } => at(ErrorCode::Unrelated).hint(
                "nothing was written; use another branch with --branch, or move the issues: `git handoff export` here, `git handoff import` in a clone of the other ledger",
            ),
            UpstreamError::NotHere { remote: Some(remote), tree, .. } => at(ErrorCode::LeftOut).hint(format!(
                "run the command again once {remote} can be reached, or get the folder with `git fetch {} {tree}`",
                word(&remote)
            )),
            UpstreamError::NotHere { remote: None, .. } => at(ErrorCode::LeftOut).hint(
                "set the ledger's remote, which has it: `git config handoff.remote NAME`; `git remote -v` lists the remotes",
            ),
            UpstreamError::NoRemote => at(ErrorCode::NoRemote)
                .hint("set one: `git handoff init --remote origin`, or `git config handoff.remote origin`"),
        }
    }
}

/// What a remote's refusal means to the user.
fn refused(remote: &str, source: RemoteError, message: String) -> Failure {
    let at = |code| Failure::new(code, message);
    match source {
        RemoteError::NoGit(_) => at(ErrorCode::NoGit)
            .advice("remotes need the `git` command: put it on the PATH"),
        RemoteError::Denied { .. } => at(ErrorCode::RemoteDenied).advice(format!(
            "nothing was written; make sure this user may push to {remote}. A write with --offline is recorded in this clone only"
        )),
        RemoteError::Protected { .. } => at(ErrorCode::RemoteProtected).advice(
            "nothing was written; ask the remote's administrator to allow this user to push to the ledger's branch",
        ),
        RemoteError::Refused { message: lines } => {
            let findings = lines.into_iter().map(|line| Finding::error(FindingCode::RemoteHook, "", line));
            at(ErrorCode::RemoteRefused)
                .hint("nothing was written; fix what the hook reports, then run the command again. If it refused a step made offline, `git handoff sync --set-aside` sets that step aside and continues with the rest")
                .findings(findings.collect())
        }
        RemoteError::Rewritten => at(ErrorCode::RemoteRewritten).hint(
            "nothing was written here or there; find out who rewrote it. If it was only reset to an older commit, `git push REMOTE BRANCH` restores this clone's copy; docs/remotes.md covers other cases",
        ),
        RemoteError::Shallow => at(ErrorCode::RemoteShallow).hint(
            "nothing was written; complete the remote where it is, with `git fetch --unshallow`, or use the repository that it was cloned from",
        ),
        RemoteError::Format => at(ErrorCode::RemoteFormat).hint(
            "nothing was written; use a remote of this repository's format (`git rev-parse --show-object-format`), or move the issues: `git handoff export` here, `git handoff import` in a clone of the remote",
        ),
        RemoteError::OldGit => at(ErrorCode::Git).advice(OLD_GIT),
        RemoteError::Failed { .. }
        | RemoteError::TimedOut
        | RemoteError::Interrupted
        | RemoteError::Answer => at(ErrorCode::RemoteUnreachable)
            .advice("nothing was written; try again later"),
    }
}
