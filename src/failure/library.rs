//! From library errors to what a user sees: an exit code, a stable code, a
//! message with its causes, and the next safe thing to try.

use handoff_base::finding::Finding;
use handoff_base::ids::IdError;
use handoff_git::{CaptureError, GitError, OpenError, RemoteError};
use handoff_ledger::{DEFAULT_BRANCH, LedgerError};
use handoff_model::{Refusal, ReportError};

use super::refusal::refused;
use super::{Failure, chain};
use crate::exit;

impl From<IdError> for Failure {
    fn from(error: IdError) -> Self {
        Self::usage(error.to_string())
    }
}

impl From<ReportError> for Failure {
    fn from(error: ReportError) -> Self {
        Self::new(exit::CONTRACT, "report_refused", chain(&error))
            .hint("nothing was written; give JUnit's XML with --tests, lcov's text or Cobertura's XML with --coverage")
    }
}

impl From<GitError> for Failure {
    fn from(error: GitError) -> Self {
        LedgerError::from(error).into()
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        LedgerError::from(refusal).into()
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        let failure = Self::new(exit::ENVIRONMENT, "repository", chain(&error));
        match error {
            OpenError::NotFound => failure.hint("go to a repository, or name one with -C DIR"),
            OpenError::Owner(_) => {
                failure.hint("if you trust it, add its path to git's safe.directory")
            }
            OpenError::Unsupported(_) => failure.hint(
                "a ledger needs a SHA-1 repository with the files ref format; it can live in a clone of its own",
            ),
            OpenError::Git(_) => failure.hint("see what `git status` says about it"),
        }
    }
}

impl From<LedgerError> for Failure {
    fn from(error: LedgerError) -> Self {
        let message = chain(&error);
        let at = |exit, code| Self::new(exit, code, message.clone());
        if error.is_left_out() {
            return at(exit::ENVIRONMENT, "left_out").hint(LEFT_OUT);
        }
        match error {
            LedgerError::NoLedger { branch, seen: Some(seen), .. } => at(exit::ENVIRONMENT, "no_ledger").hint(format!(
                "it was here, and is gone: `git branch {branch} {seen}` brings back what this clone saw last"
            )),
            LedgerError::NoLedger { remote: Some(remote), .. } => at(exit::ENVIRONMENT, "no_ledger").hint(format!(
                "`git handoff fetch` brings the one that {remote} has; where it has none yet, `git handoff init` starts one there and here"
            )),
            LedgerError::NoLedger { branch, .. } => {
                let option = if branch == DEFAULT_BRANCH {
                    String::new()
                } else {
                    format!(" --branch {branch}")
                };
                at(exit::ENVIRONMENT, "no_ledger").hint(format!(
                    "start one with `git handoff init{option}`, or take over a remote's: `git handoff init --remote origin{option}`"
                ))
            }
            LedgerError::NotALedger { .. } => at(exit::ENVIRONMENT, "not_a_ledger")
                .hint("name the ledger's branch with --branch, or start one on another branch"),
            LedgerError::BranchName { .. } => at(exit::USAGE, "usage"),
            LedgerError::CheckedOut { path, .. } => at(exit::ENVIRONMENT, "checked_out").hint(format!(
                "the next commit there would undo a step; free the branch: `git -C '{}' checkout --detach`",
                path.display()
            )),
            LedgerError::Symbolic { .. } => at(exit::ENVIRONMENT, "symbolic_branch")
                .hint("name the branch itself with --branch"),
            LedgerError::Quarantine => at(exit::ENVIRONMENT, "quarantine"),
            LedgerError::Locked { .. } => at(exit::TIMED_OUT, "locked")
                .hint("nothing was written; wait for the git process that holds it, and run the same again. `pgrep -a git` and `ls -l` of the file tell: where none runs, on no machine that shares the disk, and the file is not new, it is left over, and safe to remove"),
            LedgerError::Backdated { .. } => at(exit::USAGE, "backdated")
                .hint("nothing was written; leave GIT_AUTHOR_DATE unset, or give it a time after that; see `date` for this machine's clock"),
            LedgerError::Contended { .. } => {
                at(exit::TIMED_OUT, "contended").hint("nothing was written; run the same command again")
            }
            LedgerError::Remote { remote, source } => remote_refused(&remote, &source, message),
            LedgerError::Unreachable { remote, .. } => at(exit::ENVIRONMENT, "remote_unreachable").hint(format!(
                "nothing was written; `git ls-remote {remote}` shows whether git reaches it. Run the same again later"
            )),
            LedgerError::RemoteGone { remote, branch } => at(exit::INTEGRITY, "remote_gone").hint(format!(
                "find out who removed it; `git push {remote} {branch}` puts back what this clone has of it"
            )),
            LedgerError::Unrelated { .. } => at(exit::INTEGRITY, "unrelated").hint(
                "nothing was written; name another branch with --branch, or take the issues over: `git handoff export` here, `git handoff import` in a clone of the other",
            ),
            LedgerError::NoRemote => at(exit::USAGE, "no_remote")
                .hint("name it: `git handoff init --remote origin`, or `git config handoff.remote origin`"),
            LedgerError::NoRejected { .. } => at(exit::NOT_FOUND, "no_rejected")
                .hint("`git handoff rejected` lists them"),
            LedgerError::NotTaken { .. } => at(exit::CONFLICT, "not_taken")
                .hint("try that one again first: `git handoff rejected` lists what was refused"),
            LedgerError::OtherHandoff { .. } => at(exit::CONFLICT, "other_handoff")
                .hint("see where the issue stands, and send the contract anew: `git handoff rejected show NAME` prints it"),
            LedgerError::NoStep { .. } => at(exit::INTEGRITY, "ledger_damaged")
                .hint("`git handoff verify` shows what is wrong with it"),
            LedgerError::Contract { findings } => at(exit::CONTRACT, "contract_refused")
                .hint("mend the contract, see `git handoff check FILE`, and send it again")
                .findings(findings),
            LedgerError::Artifact { findings } => at(exit::CONTRACT, "artifact_refused")
                .hint("mend the file that the contract delivers, and send the contract again")
                .findings(findings),
            LedgerError::Evidence { findings } => at(exit::CONTRACT, "evidence_contradicted")
                .hint("nothing was written: make true what the contract says, or say what is true, and send it again")
                .findings(findings),
            LedgerError::Delivered { findings } => at(exit::CONTRACT, "artifact_changed")
                .hint("nothing was written: bring back what was delivered, or reject the handoff with `git handoff reject ID --reason WHY`")
                .findings(findings),
            LedgerError::Document { findings } => at(exit::CONTRACT, "document_refused")
                .hint("mend the document, and set it again")
                .findings(findings),
            LedgerError::Secret { findings } => at(exit::CONTRACT, "secret_found")
                .hint("nothing was written: take it out and run the command again; what is no secret is allowed by `--allow-secret RULE@PLACE` where the command has it, or by the protocol's `secrets`")
                .findings(findings),
            LedgerError::UnusedAllowance { .. } => at(exit::USAGE, "unused_allowance")
                .hint("leave it out; `git handoff check FILE` names rules and places"),
            LedgerError::Route { findings } => {
                at(exit::PROTOCOL, "route_refused")
                    .hint("`git handoff graph --protocol` draws the routes that there are")
                    .findings(findings)
            }
            LedgerError::Refused(refusal) => refused(&refusal, message),
            LedgerError::Gate { refusal, findings } => refused(&refusal, message).findings(findings),
            LedgerError::Protocol { findings, .. } => {
                at(exit::INTEGRITY, "protocol_broken")
                    .hint(DAMAGED)
                    .findings(findings)
            }
            LedgerError::ProtocolRefused { findings } => at(exit::CONTRACT, "protocol_refused")
                .hint("mend it until `git handoff protocol check FOLDER` finds nothing")
                .findings(findings),
            LedgerError::ProtocolExists { name, .. } => at(exit::PROTOCOL, "protocol_exists")
                .hint(format!("`git handoff protocol update` puts a new version in force; see `git handoff protocol show {name}`")),
            LedgerError::NoProtocol { known, .. } => at(exit::NOT_FOUND, "no_protocol")
                .hint(format!(
                    "it has: {}; `git handoff protocol add` puts another in force",
                    known.join(", ")
                )),
            LedgerError::Orphans { findings, .. } => at(exit::PROTOCOL, "protocol_orphans")
                .hint("finish what is open first, or keep in the definition what it needs")
                .findings(findings),
            LedgerError::NoDocument { known, .. } => {
                let hint = match &known[..] {
                    [] => "it shares no documents".to_owned(),
                    known => format!("it has: {}", known.join(", ")),
                };
                at(exit::NOT_FOUND, "no_document").hint(hint)
            }
            LedgerError::Schema { .. } => at(exit::INTEGRITY, "schema_broken").hint(DAMAGED),
            LedgerError::Template { .. } => at(exit::INTEGRITY, "template_broken").hint(DAMAGED),
            LedgerError::Snapshot(error) => at(exit::CONTRACT, "snapshot_refused").hint(unkept(&error)),
            LedgerError::Missing { .. }
            | LedgerError::Stored { .. }
            | LedgerError::Altered { .. }
            | LedgerError::Object { .. } => {
                at(exit::INTEGRITY, "ledger_damaged").hint(DAMAGED)
            }
            LedgerError::Signing(_) => at(exit::ENVIRONMENT, "signing_failed").hint(UNSIGNED),
            LedgerError::Signature { findings } => at(exit::PROTOCOL, "signature_refused")
                .hint("nothing was written; sign with a key that is listed for who takes the step: `git handoff protocol show` tells who has which")
                .findings(findings),
            LedgerError::Git(error) if error.is_damage() => at(exit::INTEGRITY, "ledger_damaged")
                .hint("`git handoff verify` shows what is missing; another clone may have it"),
            LedgerError::Git(_) => {
                let (what, mend) = obstacle(&message).unwrap_or((
                    "git failed",
                    "check permissions and free space",
                ));
                Self::new(exit::ENVIRONMENT, "git", format!("{what}: {message}"))
                    .hint(format!("nothing was acknowledged; {mend}, and run the same again"))
            }
        }
    }
}

/// What a remote's refusal means to the user.
fn remote_refused(remote: &str, source: &RemoteError, message: String) -> Failure {
    let failure = |exit, code| Failure::new(exit, code, message.clone());
    match source {
        RemoteError::NoGit(_) => failure(exit::ENVIRONMENT, "no_git")
            .hint("a remote is reached with the `git` command: put it on the PATH"),
        RemoteError::Denied { .. } => failure(exit::ENVIRONMENT, "remote_denied").hint(format!(
            "nothing was written; see that this user may push to {remote}. A write with --offline is recorded here alone"
        )),
        RemoteError::Protected { .. } => failure(exit::ENVIRONMENT, "remote_protected").hint(
            "nothing was written; whoever runs the remote can let this user push to the ledger's branch",
        ),
        RemoteError::Refused { said } => {
            let findings = said.iter().map(|line| Finding::error("remote.hook", "", line.clone()));
            failure(exit::PROTOCOL, "remote_refused")
                .hint("nothing was written; mend what the hook says, and run the same again. Where it speaks of a step that was made offline, `git handoff sync --set-aside` keeps that one aside, and the rest goes on")
                .findings(findings.collect())
        }
        RemoteError::Rewritten => failure(exit::INTEGRITY, "remote_rewritten").hint(
            "nothing was written here or there; find out who rewrote it. Where it only went back, `git push REMOTE BRANCH` puts back what this clone has; docs/remotes.md has the rest",
        ),
        RemoteError::Failed { .. }
        | RemoteError::TimedOut
        | RemoteError::Interrupted
        | RemoteError::Answer => failure(exit::ENVIRONMENT, "remote_unreachable")
            .hint("nothing was written; run the same again later"),
    }
}

/// What to do about a ledger whose files are not what a step wrote.
const DAMAGED: &str = "`git handoff verify` shows where the damage began";

/// What brings the history that a shallow clone lacks.
pub(crate) const DEEPEN: &str = "`git handoff fetch --full` brings the rest; where the ledger has no remote (handoff.remote), `git fetch --unshallow`";

/// What brings the objects that a partial clone lacks.
pub(crate) const LEFT_OUT: &str = "this clone was made without some objects: `git handoff fetch` brings those of the ledger as it is, `git handoff fetch --full` those of its history; where it has no remote, name one: `git config handoff.remote NAME`";

/// What to do where a commit could not be signed.
const UNSIGNED: &str = "nothing was written; `git commit-tree -S HEAD^{tree} -m test </dev/null` shows whether git can sign here, and moves nothing. A key with a passphrase is unlocked beforehand: `ssh-add`, or gpg's agent";

/// What keeps a file from being written, by what the system says of it, and what
/// is safe to do.
pub(crate) fn obstacle(said: &str) -> Option<(&'static str, &'static str)> {
    const FULL: (&str, &str) = ("the disk that it is on is full", "free some space there");
    [
        ("No space left on device", FULL),
        ("Disk quota exceeded", FULL),
        (
            "File too large",
            (
                "files may not be that large here",
                "see `ulimit -f` and the file system's limits",
            ),
        ),
        (
            "Read-only file system",
            (
                "it is on a file system that is mounted read-only",
                "reading works; to write, go to a clone on another disk, or have it mounted for writing",
            ),
        ),
        (
            "Permission denied",
            (
                "this user may not write there",
                "reading works; see `ls -ld` of it, and run it as the repository's owner, or in a clone of your own",
            ),
        ),
    ]
    .into_iter()
    .find_map(|(text, found)| said.contains(text).then_some(found))
}

/// What to do about a worktree that can't be kept.
fn unkept(error: &CaptureError) -> String {
    let mend = match error {
        CaptureError::Bare => "run it in the worktree that the work is in",
        CaptureError::Index(_) => {
            "`git sparse-checkout reapply --no-sparse-index`, or `git update-index --no-split-index`"
        }
        CaptureError::Nested { .. } => "name it in .git/info/exclude if it is not part of the work",
        CaptureError::Submodule { .. } => "commit what is in it, and the submodule's new commit",
        CaptureError::Special { .. } | CaptureError::Unreadable { .. } => {
            "name it in .git/info/exclude, or move it away"
        }
        CaptureError::Changing { .. } => "stop what writes to it, and run the same again",
        CaptureError::TooLarge { .. }
        | CaptureError::TooMuch { .. }
        | CaptureError::TooMany { .. } => "name in .git/info/exclude what is not part of the work",
        CaptureError::NotAccepted | CaptureError::Git(_) => "see what `git status` says",
    };
    format!(
        "nothing was written: {mend}; or leave out --snapshot, and --attach the files that matter"
    )
}
