//! Finds a remote with a ledger for a clone without one, and the command that takes it over.

use std::ffi::OsString;
use std::time::Duration;

use handoff::base::ids::IssueKey;
use handoff::base::text::{continued, word};
use handoff::git::{Repository, masked};
use handoff::ledger::{BranchError, DEFAULT_BRANCH, Ledger, LedgerError, Snapshot};

use super::{Context, configured_remote};
use crate::environment;
use crate::failure::{ErrorCode, Failure};

/// The time limit for asking a remote whether it has a ledger.
const PATIENCE: Duration = Duration::from_secs(2);

/// The default remote of a clone.
const ORIGIN: &str = "origin";

impl Context {
    /// If a command failed for lack of a ledger here, and a remote has one: sets the hint to the
    /// command that takes it over. Returns whether a remote has one.
    pub fn may_be_elsewhere(&self, failure: &mut Failure, offline: bool) -> bool {
        let is_missing = matches!(
            failure.code,
            Some(ErrorCode::NoLedger | ErrorCode::NoRemote)
        );
        let found = is_missing.then(|| {
            let repository = self.repository().ok()?;
            let mut ledger = self.ledger(&repository).ok()?;
            taken_over(&repository, &mut ledger, offline)
        });
        let found = found.flatten();
        let is_found = found.is_some();
        if let Some((remote, command)) = found {
            let remote = continued(&remote);
            failure.hint = Some(format!("{remote} has one: `{command}` takes it over").into());
        }
        is_found
    }

    /// If a command failed because there is no issue with a key in its arguments: sets the hint to
    /// the key that differs in case only, or to the list of issues.
    pub fn may_have_other_case(&self, failure: &mut Failure, arguments: &[OsString]) {
        if !matches!(
            failure.code,
            Some(ErrorCode::NoIssue | ErrorCode::NoHandoff)
        ) {
            return;
        }
        let is_offline = arguments.iter().any(|word| word == "--offline");
        let found = || {
            let repository = self.repository().ok()?;
            let is_shared = is_offline && configured_remote(&repository).is_some();
            let keys = self
                .tip(&repository)
                .ok()?
                .issues_within(MOST_ISSUES)
                .ok()?;
            let mut named = arguments.iter().skip(2).filter_map(|word| word.to_str());
            named.find_map(|word| {
                let (key, number) = word.split_once('.').unwrap_or((word, ""));
                let is_named = |one: &&IssueKey| one.as_str() == key;
                let is_alike = |one: &&IssueKey| one.as_str().eq_ignore_ascii_case(key);
                if keys.iter().any(|one| is_named(&one)) {
                    return None;
                }
                let Some(one) = keys.iter().find(is_alike) else {
                    let is_id = number.parse::<u32>().is_ok();
                    let list = "`git handoff list` shows every issue";
                    return is_id.then(|| {
                        let others = " here; `git handoff fetch` brings those of other clones";
                        list.to_owned() + if is_shared { others } else { "" }
                    });
                };
                let dot = if number.is_empty() { "" } else { "." };
                Some(format!("case counts in keys: write {one}{dot}{number}; `git handoff status {one}` shows it"))
            })
        };
        if let Some(text) = found() {
            failure.hint = Some(text.into());
        }
    }
}

/// How many issues are searched for a key.
const MOST_ISSUES: usize = 10_000;

/// The remote with a ledger, and the command that takes it over, if there is none here. The remote
/// is only asked in that case.
pub fn taken_over(
    repository: &Repository,
    ledger: &mut Ledger<'_>,
    offline: bool,
) -> Option<(String, String)> {
    let missing = ledger.tip().err();
    let Some(LedgerError::Branch(BranchError::NoLedger { seen: None, .. })) = missing else {
        return None;
    };
    match configured_remote(repository) {
        Some(remote) => {
            let is_there = may_ask(offline) && ledger.is_on_remote(PATIENCE) == Some(true);
            is_there.then(|| (masked(&remote), "git handoff fetch".to_owned()))
        }
        None => match elsewhere(repository, ledger, offline) {
            Elsewhere::There(remote) => {
                let command = takeover(&remote, ledger.branch());
                Some((remote, command))
            }
            Elsewhere::Unknown(_) | Elsewhere::Nowhere => None,
        },
    }
}

/// Whether a remote may be asked: git's hooks must not wait for one.
fn may_ask(offline: bool) -> bool {
    !offline && !environment::is_within_git()
}

/// The command that takes over the ledger of a remote that is not configured yet.
pub fn takeover(remote: &str, branch: &str) -> String {
    let option = if branch == DEFAULT_BRANCH {
        String::new()
    } else {
        format!(" --branch {}", word(branch))
    };
    format!("git handoff init --remote {}{option}", word(remote))
}

/// The remote of which this clone has an unshared copy of the ledger: its branch was fetched, or a
/// bare clone copied it. Branches are copied once, or overwritten at each fetch (`git clone
/// --mirror`).
pub fn copied_from(repository: &Repository, branch: &str) -> Option<String> {
    let is_set = |key: &str| matches!(repository.config_bool(key), Ok(Some(true)));
    if configured_remote(repository).is_some() {
        return None;
    }
    if !is_set("core.bare") {
        let is_known = |remote: &String| {
            let name = format!("refs/remotes/{remote}/{branch}");
            matches!(repository.resolve(&name), Ok(Some(_)))
        };
        return repository.remotes().into_iter().find(is_known);
    }
    let is_copied = |remote: &String| {
        repository
            .config(&format!("remote.{remote}.fetch"))
            .is_none()
            || is_set(&format!("remote.{remote}.mirror"))
    };
    repository.remotes().into_iter().find(is_copied)
}

/// What is known about a ledger on a remote, if there is none here.
pub enum Elsewhere {
    /// This remote has one.
    There(String),
    /// This remote could not be asked.
    Unknown(String),
    /// No remote is known to have one.
    Nowhere,
}

/// The remote with a ledger on the ledger's branch: by the remote-tracking branches, else by asking
/// it within the time limit.
pub fn elsewhere(repository: &Repository, ledger: &Ledger<'_>, offline: bool) -> Elsewhere {
    let mut remotes = repository.remotes();
    remotes.sort_by_key(|name| name != ORIGIN);
    let branch = ledger.branch();
    let fetched = |remote: &String| {
        let name = format!("refs/remotes/{remote}/{branch}");
        repository.resolve(&name).ok().flatten()
    };
    let is_ledger = |remote: &&String| {
        fetched(remote).is_some_and(|id| Snapshot::at(repository, id, branch).is_ok())
    };
    if let Some(remote) = remotes.iter().find(is_ledger) {
        return Elsewhere::There(remote.clone());
    }
    let Some(remote) = remotes.first() else {
        return Elsewhere::Nowhere;
    };
    let is_likely = remote == ORIGIN || remotes.len() == 1;
    // A fetched branch of that name was not a ledger.
    if !is_likely || fetched(remote).is_some() || !may_ask(offline) {
        return Elsewhere::Nowhere;
    }
    match ledger.alone().shared_through(remote).is_on_remote(PATIENCE) {
        Some(true) => Elsewhere::There(remote.clone()),
        Some(false) => Elsewhere::Nowhere,
        None => Elsewhere::Unknown(remote.clone()),
    }
}
