//! Turns library errors into what a user sees: an exit code, a stable code, a
//! message with its causes, and the next safe thing to do.

use handoff_base::finding::{Finding, FindingCode};
use handoff_base::ids::IdError;
use handoff_git::{CaptureError, GitError, OpenError, RemoteError};
use handoff_ledger::{DEFAULT_BRANCH, LedgerError};
use handoff_model::ReportError;

use super::{ErrorCode, Failure, chain};

impl From<IdError> for Failure {
    fn from(error: IdError) -> Self {
        Self::usage(error.to_string())
    }
}

impl From<ReportError> for Failure {
    fn from(error: ReportError) -> Self {
        Self::new(ErrorCode::ReportRefused, chain(&error))
            .hint("nothing was written; pass JUnit XML to --tests, and lcov text or Cobertura XML to --coverage")
    }
}

impl From<GitError> for Failure {
    fn from(error: GitError) -> Self {
        LedgerError::from(error).into()
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        let failure = Self::new(ErrorCode::Repository, chain(&error));
        match error {
            OpenError::NotFound => failure.hint("change to a repository, or name one with -C DIR"),
            OpenError::Owner(_) => {
                failure.hint("if you trust it, add its path to git's safe.directory")
            }
            OpenError::Unsupported(_) => failure.hint(
                "a ledger needs a SHA-1 repository with the files ref format; it can live in a separate clone",
            ),
            OpenError::Git(_) => failure.hint("see what `git status` says"),
        }
    }
}

impl From<LedgerError> for Failure {
    fn from(error: LedgerError) -> Self {
        let message = chain(&error);
        let at = |code| Self::new(code, message.clone());
        if error.is_left_out() {
            return at(ErrorCode::LeftOut).hint(LEFT_OUT);
        }
        match error {
            LedgerError::NoLedger { branch, seen: Some(seen), .. } => at(ErrorCode::NoLedger).hint(format!(
                "it existed, but is gone: `git branch {branch} {seen}` restores what this clone last saw"
            )),
            LedgerError::NoLedger { remote: Some(remote), .. } => at(ErrorCode::NoLedger).hint(format!(
                "`git handoff fetch` gets the one on {remote}; if there is none yet, `git handoff init` starts one there and here"
            )),
            LedgerError::NoLedger { branch, .. } => {
                let option = if branch == DEFAULT_BRANCH {
                    String::new()
                } else {
                    format!(" --branch {branch}")
                };
                at(ErrorCode::NoLedger).hint(format!(
                    "start one with `git handoff init{option}`, or join a remote's: `git handoff init --remote origin{option}`"
                ))
            }
            LedgerError::NotALedger { .. } => at(ErrorCode::NotALedger)
                .hint("name the ledger's branch with --branch, or start one on another branch"),
            LedgerError::BranchName { .. } => at(ErrorCode::Usage),
            LedgerError::CheckedOut { path, .. } => at(ErrorCode::CheckedOut).hint(format!(
                "the next commit there would undo a step; free the branch: `git -C '{}' checkout --detach`",
                path.display()
            )),
            LedgerError::Symbolic { .. } => at(ErrorCode::SymbolicBranch)
                .hint("name the branch itself with --branch"),
            LedgerError::Quarantine => at(ErrorCode::Quarantine),
            LedgerError::Locked { .. } => at(ErrorCode::Locked)
                .hint("nothing was written; wait for the git process that holds it, then run the command again. Check with `pgrep -a git`, and `ls -l` on the file: if no git runs on any machine that shares the disk, and the file is not new, it is stale and safe to remove"),
            LedgerError::Backdated { .. } => at(ErrorCode::Backdated)
                .hint("nothing was written; unset GIT_AUTHOR_DATE, or set it to a later time; `date` shows this machine's clock"),
            LedgerError::Contended { .. } => {
                at(ErrorCode::Contended).hint("nothing was written; run the same command again")
            }
            LedgerError::Remote { remote, source } => remote_refused(&remote, &source, message),
            LedgerError::Unreachable { remote, .. } => at(ErrorCode::RemoteUnreachable).hint(format!(
                "nothing was written; `git ls-remote {remote}` shows whether git can reach it; try again later"
            )),
            LedgerError::RemoteGone { remote, branch } => at(ErrorCode::RemoteGone).hint(format!(
                "find out who removed it; `git push {remote} {branch}` restores this clone's copy"
            )),
            LedgerError::Unrelated { .. } => at(ErrorCode::Unrelated).hint(
                "nothing was written; use another branch with --branch, or move the issues: `git handoff export` here, `git handoff import` in a clone of the other ledger",
            ),
            LedgerError::NoRemote => at(ErrorCode::NoRemote)
                .hint("set one: `git handoff init --remote origin`, or `git config handoff.remote origin`"),
            LedgerError::NoRejected { .. } => at(ErrorCode::NoRejected)
                .hint("`git handoff rejected` lists them"),
            LedgerError::NotTaken { .. } => at(ErrorCode::NotTaken)
                .hint("retry that step first: `git handoff rejected` lists the refused steps"),
            LedgerError::OtherHandoff { .. } => at(ErrorCode::OtherHandoff)
                .hint("check the state of the issue, and send the contract again: `git handoff rejected show NAME` prints it"),
            LedgerError::NoStep { .. } => at(ErrorCode::LedgerDamaged)
                .hint("`git handoff verify` shows what is wrong with it"),
            LedgerError::Contract { findings } => at(ErrorCode::ContractRefused)
                .hint("fix the contract (see `git handoff check FILE`) and send it again")
                .findings(findings),
            LedgerError::Artifact { findings } => at(ErrorCode::ArtifactRefused)
                .hint("fix the delivered file and send the contract again")
                .findings(findings),
            LedgerError::Evidence { findings } => at(ErrorCode::EvidenceContradicted)
                .hint("nothing was written; make the repository match the contract, or correct the contract, and send it again")
                .findings(findings),
            LedgerError::Delivered { findings } => at(ErrorCode::ArtifactChanged)
                .hint("nothing was written; restore what was delivered, or reject the handoff with `git handoff reject ID --reason WHY`")
                .findings(findings),
            LedgerError::Document { findings } => at(ErrorCode::DocumentRefused)
                .hint("fix the document and set it again")
                .findings(findings),
            LedgerError::Secret { findings } => at(ErrorCode::SecretFound)
                .hint("nothing was written; remove it and run the command again. If it is not a secret, allow it with `--allow-secret RULE@PLACE` if the command has that option, or in the protocol's `secrets`")
                .findings(findings),
            LedgerError::UnusedAllowance { .. } => at(ErrorCode::UnusedAllowance)
                .hint("leave it out; `git handoff check FILE` names rules and places"),
            LedgerError::Route { findings } => {
                at(ErrorCode::RouteRefused)
                    .hint("`git handoff graph --protocol` draws the allowed routes")
                    .findings(findings)
            }
            LedgerError::Refused(refusal) => refusal.into(),
            LedgerError::Gate { refusal, findings } => Self::from(*refusal).findings(findings),
            LedgerError::Protocol { findings, .. } => {
                at(ErrorCode::ProtocolBroken)
                    .hint(DAMAGED)
                    .findings(findings)
            }
            LedgerError::ProtocolRefused { findings } => at(ErrorCode::ProtocolRefused)
                .hint("fix it until `git handoff protocol check FOLDER` finds nothing")
                .findings(findings),
            LedgerError::ProtocolExists { name, .. } => at(ErrorCode::ProtocolExists)
                .hint(format!("`git handoff protocol update` puts a new version in force; see `git handoff protocol show {name}`")),
            LedgerError::NoProtocol { known, .. } => at(ErrorCode::NoProtocol)
                .hint(format!(
                    "the ledger has: {}; `git handoff protocol add` puts another in force",
                    known.join(", ")
                )),
            LedgerError::Orphans { findings, .. } => at(ErrorCode::ProtocolOrphans)
                .hint("finish the open handoffs first, or keep what they need in the definition")
                .findings(findings),
            LedgerError::NoDocument { known, .. } => {
                let hint = match &known[..] {
                    [] => "the protocol shares no documents".to_owned(),
                    known => format!("the protocol has: {}", known.join(", ")),
                };
                at(ErrorCode::NoDocument).hint(hint)
            }
            LedgerError::Schema { .. } => at(ErrorCode::SchemaBroken).hint(DAMAGED),
            LedgerError::Template { .. } => at(ErrorCode::TemplateBroken).hint(DAMAGED),
            LedgerError::Snapshot(error) => at(ErrorCode::SnapshotRefused).hint(unkept(&error)),
            LedgerError::Missing { .. }
            | LedgerError::Stored { .. }
            | LedgerError::Altered { .. }
            | LedgerError::Object { .. } => {
                at(ErrorCode::LedgerDamaged).hint(DAMAGED)
            }
            LedgerError::Signing(_) => at(ErrorCode::SigningFailed).hint(UNSIGNED),
            LedgerError::Signature { findings } => at(ErrorCode::SignatureRefused)
                .hint("nothing was written; sign with a key listed for the step's author: `git handoff protocol show` lists the keys by owner")
                .findings(findings),
            LedgerError::Git(error) if error.is_damage() => at(ErrorCode::LedgerDamaged)
                .hint("`git handoff verify` shows what is missing; another clone may have it"),
            LedgerError::Git(_) => {
                let (what, fix) = obstacle(&message).unwrap_or((
                    "git failed",
                    "check permissions and free space",
                ));
                Self::new(ErrorCode::Git, format!("{what}: {message}"))
                    .hint(format!("nothing was acknowledged; {fix}, then run the command again"))
            }
        }
    }
}

/// What a remote's refusal means to the user.
fn remote_refused(remote: &str, source: &RemoteError, message: String) -> Failure {
    let failure = |code| Failure::new(code, message.clone());
    match source {
        RemoteError::NoGit(_) => failure(ErrorCode::NoGit)
            .hint("remotes need the `git` command: put it on the PATH"),
        RemoteError::Denied { .. } => failure(ErrorCode::RemoteDenied).hint(format!(
            "nothing was written; make sure this user may push to {remote}. A write with --offline is recorded in this clone only"
        )),
        RemoteError::Protected { .. } => failure(ErrorCode::RemoteProtected).hint(
            "nothing was written; ask the remote's administrator to allow this user to push to the ledger's branch",
        ),
        RemoteError::Refused { said } => {
            let findings = said.iter().map(|line| Finding::error(FindingCode::RemoteHook, "", line.clone()));
            failure(ErrorCode::RemoteRefused)
                .hint("nothing was written; fix what the hook reports, then run the command again. If it refused a step made offline, `git handoff sync --set-aside` sets that step aside and continues with the rest")
                .findings(findings.collect())
        }
        RemoteError::Rewritten => failure(ErrorCode::RemoteRewritten).hint(
            "nothing was written here or there; find out who rewrote it. If it was only reset to an older commit, `git push REMOTE BRANCH` restores this clone's copy; docs/remotes.md covers other cases",
        ),
        RemoteError::Failed { .. }
        | RemoteError::TimedOut
        | RemoteError::Interrupted
        | RemoteError::Answer => failure(ErrorCode::RemoteUnreachable)
            .hint("nothing was written; try again later"),
    }
}

/// The hint for a ledger whose files are not what a step wrote.
const DAMAGED: &str = "`git handoff verify` shows where the damage began";

/// How to get the history that a shallow clone lacks.
pub(crate) const DEEPEN: &str = "`git handoff fetch --full` gets the rest; if the ledger has no remote (handoff.remote), use `git fetch --unshallow`";

/// How to get the objects that a partial clone lacks.
pub(crate) const LEFT_OUT: &str = "this clone was made without some objects: `git handoff fetch` gets those of the current ledger, `git handoff fetch --full` those of its history; if it has no remote, set one: `git config handoff.remote NAME`";

/// The hint for a commit that could not be signed.
const UNSIGNED: &str = "nothing was written; `git commit-tree -S HEAD^{tree} -m test </dev/null` shows whether git can sign here, without moving a branch. Unlock a key with a passphrase first: `ssh-add`, or gpg's agent";

/// Why a file can't be written, according to the system's message, and what is
/// safe to do.
pub(crate) fn obstacle(said: &str) -> Option<(&'static str, &'static str)> {
    const FULL: (&str, &str) = ("the disk is full", "free some space on it");
    [
        ("No space left on device", FULL),
        ("Disk quota exceeded", FULL),
        (
            "File too large",
            (
                "files this large are not allowed here",
                "see `ulimit -f` and the file system's limits",
            ),
        ),
        (
            "Read-only file system",
            (
                "the file system is mounted read-only",
                "reading works; to write, use a clone on another disk, or remount it read-write",
            ),
        ),
        (
            "Permission denied",
            (
                "this user may not write there",
                "reading works; check `ls -ld` on it, and run the command as the repository's owner or in your own clone",
            ),
        ),
    ]
    .into_iter()
    .find_map(|(text, found)| said.contains(text).then_some(found))
}

/// The hint for a worktree that can't be saved.
fn unkept(error: &CaptureError) -> String {
    let fix = match error {
        CaptureError::Bare => "run it in the worktree that holds the work",
        CaptureError::Index(_) => {
            "`git sparse-checkout reapply --no-sparse-index`, or `git update-index --no-split-index`"
        }
        CaptureError::Nested { .. } => "name it in .git/info/exclude if it is not part of the work",
        CaptureError::Submodule { .. } => "commit what is in it, and the submodule's new commit",
        CaptureError::Special { .. } | CaptureError::Unreadable { .. } => {
            "name it in .git/info/exclude, or move it away"
        }
        CaptureError::Changing { .. } => "stop what writes to it, then run the command again",
        CaptureError::TooLarge { .. }
        | CaptureError::TooMuch { .. }
        | CaptureError::TooMany { .. } => "name in .git/info/exclude what is not part of the work",
        CaptureError::NotAccepted | CaptureError::Git(_) => "see what `git status` says",
    };
    format!(
        "nothing was written; {fix}, or leave out --snapshot and --attach the files that matter"
    )
}
