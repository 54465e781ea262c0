//! Repeats for the audit the checks that can be decided from recorded commits.

use handoff_base::finding::{Finding, FindingCode};
use handoff_base::{ObjectId, digest};
use handoff_git::{FactError, GitError, Repository};
use handoff_model::evidence::{Claimed, Found};
use handoff_model::{Contract, Evidence, Record, Reports, Verdict};
use handoff_protocol::{Check, Protocol};

use super::judge::{Ground, Judge, Merged};

/// Reports each check that was recorded as passed but fails, if this repository has its commits.
/// `held` is the handoff that the sender held; `path` is the record's file.
///
/// # Errors
/// [`GitError`] when the repository is damaged.
pub(crate) fn again(
    repository: &Repository,
    protocol: &Protocol,
    contract: &Contract,
    record: &Record,
    held: Option<&Record>,
    path: &str,
) -> Result<Vec<Finding>, GitError> {
    let passed = record
        .evidence
        .iter()
        .filter(|e| e.result == Verdict::Passed);
    let mut findings = Vec::new();
    for entry in passed {
        let why = match entry.check {
            Check::Artifacts => artifacts(repository, protocol, contract, record)?,
            // A contract without tests needs no report.
            Check::TestsAdded => None,
            Check::Tests | Check::Coverage => {
                let without = entry.files.is_empty();
                without.then(|| "no report is recorded".to_owned())
            }
            _ => match misplaced(entry, record, held) {
                Some(why) => Some(why),
                None => history(repository, protocol, contract, record, held, entry)?,
            },
        };
        if let Some(why) = why {
            let text = format!(
                "the record says that the check {} passed: {why}",
                entry.check.as_str()
            );
            findings.push(Finding::error(FindingCode::EvidenceForged, path, text));
        }
    }
    Ok(findings)
}

/// How the commits of a check differ from those that the ledger recorded.
fn misplaced(entry: &Evidence, record: &Record, held: Option<&Record>) -> Option<String> {
    let code = record.code.as_ref();
    let tip = code.map(|code| &code.commit);
    if entry.check != Check::Merge && entry.tip.as_ref() != tip {
        return Some("it was judged at another commit than the branch's".to_owned());
    }
    let same = |held: &&Record| held.code.as_ref().map(|c| &c.branch) == code.map(|c| &c.branch);
    let since = held.filter(same).and_then(|held| held.code.as_ref());
    let counts = matches!(entry.check, Check::CommitsAdded | Check::Paths);
    if counts && entry.since.as_ref() != since.map(|code| &code.commit) {
        return Some(
            "it was counted from another commit than the one that was handed over".to_owned(),
        );
    }
    None
}

/// How history contradicts a check.
fn history(
    repository: &Repository,
    protocol: &Protocol,
    contract: &Contract,
    record: &Record,
    held: Option<&Record>,
    entry: &Evidence,
) -> Result<Option<String>, GitError> {
    let check = entry.check;
    let id = |text: &Option<String>| text.as_ref().and_then(|t| t.parse::<ObjectId>().ok());
    let ids = [id(&entry.tip), id(&entry.base), id(&entry.since)];
    let here = ids.iter().flatten().all(|id| repository.has(*id));
    let Some(kind) = protocol.contract_type(&contract.kind).filter(|_| here) else {
        return Ok(None);
    };
    let [tip, base, since] = ids;
    let code = record.code.as_ref().or(held.and_then(|h| h.code.as_ref()));
    if let (Check::Merge, Some(tip), Some(code)) =
        (check, tip, code.and_then(|c| c.commit.parse().ok()))
        && older(repository, tip, code)?
    {
        let text = "it was judged at an older commit than the branch's";
        return Ok(Some(text.to_owned()));
    }
    let judge = Judge {
        repository,
        claimed: Claimed::of(protocol, kind, contract),
        ground: Ground {
            branch: record.code.as_ref().map(|code| code.branch.clone()),
            tip,
            merged: tip.map_or(Merged::Unknown, Merged::At),
            base_branch: None,
            base,
            since,
            // The remote's state at the time is not recorded.
            remote: None,
        },
        artifacts: &record.artifacts,
        reports: &Reports::default(),
    };
    Ok(match judge.check(check, &mut judge.ground.tip.clone())? {
        Found::Contradicted(findings) => findings.into_iter().next().map(|f| f.message),
        Found::Passed | Found::Skipped(_) => None,
    })
}

/// Whether a commit is an ancestor of another, as far as this repository knows.
fn older(repository: &Repository, commit: ObjectId, than: ObjectId) -> Result<bool, GitError> {
    if commit == than || !repository.has(than) {
        return Ok(false);
    }
    match repository.has_commit(than, commit) {
        Ok(older) => Ok(older),
        Err(FactError::Unknown(_)) => Ok(false),
        Err(FactError::Git(error)) => Err(error),
    }
}

/// How the recorded files differ from those in the recorded commit.
fn artifacts(
    repository: &Repository,
    protocol: &Protocol,
    contract: &Contract,
    record: &Record,
) -> Result<Option<String>, GitError> {
    let Some(kind) = protocol.contract_type(&contract.kind) else {
        return Ok(None);
    };
    for file in Claimed::of(protocol, kind, contract).files() {
        let known = record.artifacts.iter().find(|a| a.path == file.path);
        let Some((known, wanted)) = known.and_then(|a| Some((a, a.sha256.as_ref()?))) else {
            return Ok(Some(format!("{} is recorded as missing", file.path)));
        };
        let commit = record.code.as_ref().filter(|_| known.committed);
        let commit = commit.and_then(|code| code.commit.parse::<ObjectId>().ok());
        let Some(commit) = commit.filter(|commit| repository.has(*commit)) else {
            continue;
        };
        let held = match repository.file_at(commit, &file.path) {
            Ok(held) => held,
            Err(FactError::Unknown(_)) => continue,
            Err(FactError::Git(error)) => return Err(error),
        };
        if held.is_none_or(|bytes| digest(&bytes) != *wanted) {
            let text = format!("{} is not so in commit {}", file.path, commit.short());
            return Ok(Some(text));
        }
    }
    Ok(None)
}
