//! Finds open issues that change the same files, to warn an agent that begins an issue.

use std::collections::BTreeSet;

use handoff_base::ObjectId;
use handoff_base::finding::{Finding, FindingCode};
use handoff_base::ids::IssueKey;
use handoff_base::text::quoted;
use handoff_model::{Record, Update, View};

use super::base_branch::base_branch;
use super::error::LedgerError;
use super::snapshot::Snapshot;

/// The maximum number of other open issues that are read.
const ISSUES: usize = 50;

/// The maximum number of words in a contract that are tried as paths.
const WORDS: usize = 100;

/// The maximum number of files named per issue.
const NAMED: usize = 3;

/// The maximum number of issues whose agents are told.
const TOLD: usize = 5;

/// An open issue that changes the same files.
pub(crate) struct SameFiles {
    issue: IssueKey,
    files: String,
    is_held: bool,
}

/// The finding that other open issues change files of the issue that a claim begins.
pub(crate) fn finding(record: &Record, found: &[SameFiles]) -> Option<Finding> {
    let told = found
        .iter()
        .map(|one| format!("issue {} ({})", one.issue, one.files));
    let told = told.collect::<Vec<_>>().join(", ");
    let (id, key) = (record.id.to_string(), record.id.issue());
    let text = format!("the same files are touched by {told}");
    let finding = Finding::warning(FindingCode::ClaimSameFiles, id, text).fix(format!(
        "say so in what you hand on; work that has to wait: `git handoff set {key} after=ISSUE --as AGENT`"
    ));
    Some(finding).filter(|_| !found.is_empty())
}

/// The notes for agents that are at work in the other issues, which reach them as news.
pub(crate) fn notes(
    key: &IssueKey,
    found: Vec<SameFiles>,
) -> impl Iterator<Item = (IssueKey, Update)> {
    let held = found.into_iter().filter(|one| one.is_held).take(TOLD);
    held.map(move |one| {
        let note = format!(
            "issue {key} begins, and touches the same files: {}",
            one.files
        );
        (one.issue, Update::note(note))
    })
}

impl Snapshot<'_> {
    /// Other open issues that change files of the issue that a claim begins.
    pub(crate) fn same_files(&self, record: &Record) -> Result<Vec<SameFiles>, LedgerError> {
        let key = record.id.issue();
        let base = base_branch(self.repository(), None, None, None);
        let base = base.and_then(|base| self.repository().base_code(&base).ok()?);
        let Some(base) = base.filter(|_| record.id.number() == 1) else {
            return Ok(Vec::new());
        };
        let Ok(base) = base.commit.parse() else {
            return Ok(Vec::new());
        };
        let own = self.files_of(key, base)?;
        if own.is_empty() {
            return Ok(Vec::new());
        }
        let open = self.open()?;
        let others: BTreeSet<&IssueKey> = { open.iter().rev() }
            .map(|entry| entry.id.issue())
            .filter(|other| *other != key)
            .take(ISSUES)
            .collect();
        let mut found = Vec::new();
        for other in others {
            let theirs = self.files_of(other, base)?;
            let same = own.intersection(&theirs).take(NAMED);
            let same: Vec<String> = same.map(|path| quoted(path)).collect();
            if same.is_empty() {
                continue;
            }
            let mut is_held = false;
            for entry in open.iter().filter(|entry| entry.id.issue() == other) {
                is_held |= self.open_record(entry)?.lease.is_some();
            }
            found.push(SameFiles {
                issue: other.clone(),
                files: same.join(", "),
                is_held,
            });
        }
        Ok(found)
    }

    /// The files that an issue concerns, as far as is known: those named by its first contract, and
    /// those changed on its branch.
    fn files_of(&self, key: &IssueKey, base: ObjectId) -> Result<BTreeSet<String>, LedgerError> {
        let folder = self.issue(key)?;
        let (Some(first), Some(issue)) = (folder.record(1)?, folder.issue()?) else {
            return Ok(BTreeSet::new());
        };
        let contract = folder.contract(&first)?;
        let text = String::from_utf8_lossy(&contract);
        let words = text.split(|c: char| c.is_whitespace() || "<>\"'`,;:()[]{}=".contains(c));
        let words = words.map(|word| word.trim_matches('.'));
        let words = words.filter(|word| word.contains(['.', '/']) && !word.starts_with('/'));
        let words: BTreeSet<&str> = words.take(WORDS).collect();
        let is_file = |path: &&str| matches!(self.repository().file_at(base, path), Ok(Some(_)));
        let named = words.into_iter().filter(is_file);
        let mut files: BTreeSet<String> = named.map(str::to_owned).collect();
        let branch = issue.facts.get("branch").and_then(|branch| branch.as_str());
        let code = branch.and_then(|branch| self.repository().base_code(branch).ok()?);
        if let Some(tip) = code.and_then(|code| code.commit.parse().ok())
            // Without its history here, only the names are known.
            && let Ok(changed) = self.repository().paths_changed(base, None, tip)
        {
            files.extend(changed);
        }
        Ok(files)
    }
}
