//! From library errors to what a user sees: an exit code, a stable code, a
//! message with its causes, and the next safe thing to try.

use handoff_base::finding::Finding;
use handoff_base::ids::IdError;
use handoff_git::{CaptureError, GitError, OpenError, RemoteError};
use handoff_ledger::{DEFAULT_BRANCH, LedgerError};
use handoff_model::{Refusal, ReportError};

use super::refusal::refused;
use super::{ErrorCode, Failure, chain};

impl From<IdError> for Failure {
    fn from(error: IdError) -> Self {
        Self::usage(error.to_string())
    }
}

impl From<ReportError> for Failure {
    fn from(error: ReportError) -> Self {
        Self::new(ErrorCode::ReportRefused, chain(&error))
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
        let failure = Self::new(ErrorCode::Repository, chain(&error));
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
        let at = |code| Self::new(code, message.clone());
        if error.is_left_out() {
            return at(ErrorCode::LeftOut).hint(LEFT_OUT);
        }
        match error {
            LedgerError::NoLedger { branch, seen: Some(seen), .. } => at(ErrorCode::NoLedger).hint(format!(
                "it was here, and is gone: `git branch {branch} {seen}` brings back what this clone saw last"
            )),
            LedgerError::NoLedger { remote: Some(remote), .. } => at(ErrorCode::NoLedger).hint(format!(
                "`git handoff fetch` brings the one that {remote} has; where it has none yet, `git handoff init` starts one there and here"
            )),
            LedgerError::NoLedger { branch, .. } => {
                let option = if branch == DEFAULT_BRANCH {
                    String::new()
                } else {
                    format!(" --branch {branch}")
                };
                at(ErrorCode::NoLedger).hint(format!(
                    "start one with `git handoff init{option}`, or take over a remote's: `git handoff init --remote origin{option}`"
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
                .hint("nothing was written; wait for the git process that holds it, and run the same again. `pgrep -a git` and `ls -l` of the file tell: where none runs, on no machine that shares the disk, and the file is not new, it is left over, and safe to remove"),
            LedgerError::Backdated { .. } => at(ErrorCode::Backdated)
                .hint("nothing was written; leave GIT_AUTHOR_DATE unset, or give it a time after that; see `date` for this machine's clock"),
            LedgerError::Contended { .. } => {
                at(ErrorCode::Contended).hint("nothing was written; run the same command again")
            }
            LedgerError::Remote { remote, source } => remote_refused(&remote, &source, message),
            LedgerError::Unreachable { remote, .. } => at(ErrorCode::RemoteUnreachable).hint(format!(
                "nothing was written; `git ls-remote {remote}` shows whether git reaches it. Run the same again later"
            )),
            LedgerError::RemoteGone { remote, branch } => at(ErrorCode::RemoteGone).hint(format!(
                "find out who removed it; `git push {remote} {branch}` puts back what this clone has of it"
            )),
            LedgerError::Unrelated { .. } => at(ErrorCode::Unrelated).hint(
                "nothing was written; name another branch with --branch, or take the issues over: `git handoff export` here, `git handoff import` in a clone of the other",
            ),
            LedgerError::NoRemote => at(ErrorCode::NoRemote)
                .hint("name it: `git handoff init --remote origin`, or `git config handoff.remote origin`"),
            LedgerError::NoRejected { .. } => at(ErrorCode::NoRejected)
                .hint("`git handoff rejected` lists them"),
            LedgerError::NotTaken { .. } => at(ErrorCode::NotTaken)
                .hint("try that one again first: `git handoff rejected` lists what was refused"),
            LedgerError::OtherHandoff { .. } => at(ErrorCode::OtherHandoff)
                .hint("see where the issue stands, and send the contract anew: `git handoff rejected show NAME` prints it"),
            LedgerError::NoStep { .. } => at(ErrorCode::LedgerDamaged)
                .hint("`git handoff verify` shows what is wrong with it"),
            LedgerError::Contract { findings } => at(ErrorCode::ContractRefused)
                .hint("mend the contract, see `git handoff check FILE`, and send it again")
                .findings(findings),
            LedgerError::Artifact { findings } => at(ErrorCode::ArtifactRefused)
                .hint("mend the file that the contract delivers, and send the contract again")
                .findings(findings),
            LedgerError::Evidence { findings } => at(ErrorCode::EvidenceContradicted)
                .hint("nothing was written: make true what the contract says, or say what is true, and send it again")
                .findings(findings),
            LedgerError::Delivered { findings } => at(ErrorCode::ArtifactChanged)
                .hint("nothing was written: bring back what was delivered, or reject the handoff with `git handoff reject ID --reason WHY`")
                .findings(findings),
            LedgerError::Document { findings } => at(ErrorCode::DocumentRefused)
                .hint("mend the document, and set it again")
                .findings(findings),
            LedgerError::Secret { findings } => at(ErrorCode::SecretFound)
                .hint("nothing was written: take it out and run the command again; what is no secret is allowed by `--allow-secret RULE@PLACE` where the command has it, or by the protocol's `secrets`")
                .findings(findings),
            LedgerError::UnusedAllowance { .. } => at(ErrorCode::UnusedAllowance)
                .hint("leave it out; `git handoff check FILE` names rules and places"),
            LedgerError::Route { findings } => {
                at(ErrorCode::RouteRefused)
                    .hint("`git handoff graph --protocol` draws the routes that there are")
                    .findings(findings)
            }
            LedgerError::Refused(refusal) => refused(&refusal, message),
            LedgerError::Gate { refusal, findings } => refused(&refusal, message).findings(findings),
            LedgerError::Protocol { findings, .. } => {
                at(ErrorCode::ProtocolBroken)
                    .hint(DAMAGED)
                    .findings(findings)
            }
            LedgerError::ProtocolRefused { findings } => at(ErrorCode::ProtocolRefused)
                .hint("mend it until `git handoff protocol check FOLDER` finds nothing")
                .findings(findings),
            LedgerError::ProtocolExists { name, .. } => at(ErrorCode::ProtocolExists)
                .hint(format!("`git handoff protocol update` puts a new version in force; see `git handoff protocol show {name}`")),
            LedgerError::NoProtocol { known, .. } => at(ErrorCode::NoProtocol)
                .hint(format!(
                    "it has: {}; `git handoff protocol add` puts another in force",
                    known.join(", ")
                )),
            LedgerError::Orphans { findings, .. } => at(ErrorCode::ProtocolOrphans)
                .hint("finish what is open first, or keep in the definition what it needs")
                .findings(findings),
            LedgerError::NoDocument { known, .. } => {
                let hint = match &known[..] {
                    [] => "it shares no documents".to_owned(),
                    known => format!("it has: {}", known.join(", ")),
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
                .hint("nothing was written; sign with a key that is listed for who takes the step: `git handoff protocol show` tells who has which")
                .findings(findings),
            LedgerError::Git(error) if error.is_damage() => at(ErrorCode::LedgerDamaged)
                .hint("`git handoff verify` shows what is missing; another clone may have it"),
            LedgerError::Git(_) => {
                let (what, mend) = obstacle(&message).unwrap_or((
                    "git failed",
                    "check permissions and free space",
                ));
                Self::new(ErrorCode::Git, format!("{what}: {message}"))
                    .hint(format!("nothing was acknowledged; {mend}, and run the same again"))
            }
        }
    }
}

/// What a remote's refusal means to the user.
fn remote_refused(remote: &str, source: &RemoteError, message: String) -> Failure {
    let failure = |code| Failure::new(code, message.clone());
    match source {
        RemoteError::NoGit(_) => failure(ErrorCode::NoGit)
            .hint("a remote is reached with the `git` command: put it on the PATH"),
        RemoteError::Denied { .. } => failure(ErrorCode::RemoteDenied).hint(format!(
            "nothing was written; see that this user may push to {remote}. A write with --offline is recorded here alone"
        )),
        RemoteError::Protected { .. } => failure(ErrorCode::RemoteProtected).hint(
            "nothing was written; whoever runs the remote can let this user push to the ledger's branch",
        ),
        RemoteError::Refused { said } => {
            let findings = said.iter().map(|line| Finding::error("remote.hook", "", line.clone()));
            failure(ErrorCode::RemoteRefused)
                .hint("nothing was written; mend what the hook says, and run the same again. Where it speaks of a step that was made offline, `git handoff sync --set-aside` keeps that one aside, and the rest goes on")
                .findings(findings.collect())
        }
        RemoteError::Rewritten => failure(ErrorCode::RemoteRewritten).hint(
            "nothing was written here or there; find out who rewrote it. Where it only went back, `git push REMOTE BRANCH` puts back what this clone has; docs/remotes.md has the rest",
        ),
        RemoteError::Failed { .. }
        | RemoteError::TimedOut
        | RemoteError::Interrupted
        | RemoteError::Answer => failure(ErrorCode::RemoteUnreachable)
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
