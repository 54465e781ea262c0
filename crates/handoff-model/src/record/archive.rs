//! The archive: an index in the ledger's tree of issues whose folders were removed from it.
//!
//! Archived issues are in history: an issue's line in the index names the last commit with its
//! folder, and the folder's tree. An index file ([`crate::layout::archived_file`]) is JSON lines,
//! one per issue, sorted by key, with canonical bytes.

use handoff_base::codes::ErrorCode;
use handoff_base::explained::{Explained, Explanation};
use handoff_base::ids::{AgentName, IssueKey};
use handoff_base::{Moment, ObjectId, hint};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::record::stored_form::stored;
use crate::record::{self, Issue, IssueStatus, StoredError, VERSION};

/// An archived issue, as the index lists it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ArchivedIssue {
    /// The version of the stored form: 4.
    pub version: u32,
    /// Its key.
    pub issue: IssueKey,
    /// Its title.
    pub title: String,
    /// The protocol it is bound to.
    pub protocol: AgentName,
    /// Its status: completed or cancelled.
    pub status: IssueStatus,
    /// When its first contract was sent.
    pub opened_at: Moment,
    /// When its last step was made.
    pub updated_at: Moment,
    /// The number of its handoffs.
    pub handoffs: u32,
    /// The parent of the step that archived it: the last commit with its folder.
    pub commit: ObjectId,
    /// Its folder's tree.
    pub tree: ObjectId,
}

impl ArchivedIssue {
    /// The index line for an issue whose folder is this tree in this commit.
    pub fn new(issue: Issue, commit: ObjectId, tree: ObjectId) -> Self {
        Self {
            version: VERSION,
            issue: issue.issue,
            title: issue.title,
            protocol: issue.protocol,
            status: issue.status,
            opened_at: issue.opened_at,
            updated_at: issue.updated_at,
            handoffs: issue.handoffs,
            commit,
            tree,
        }
    }

    fn line(&self) -> String {
        serde_json::to_string(self)
            .expect("stored types have string keys and no failing serializers")
    }
}

/// Why an issue cannot be archived.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotArchivable {
    /// Work continues in it.
    #[error("issue {0} is open")]
    Open(IssueKey),
    /// Its last step is too recent.
    #[error("issue {issue} was last written to at {at}, which is not before {before}")]
    TooRecent {
        /// The issue.
        issue: IssueKey,
        /// When its last step was made.
        at: Moment,
        /// Only issues whose last step is earlier are archived.
        before: Moment,
    },
}

impl Explained for NotArchivable {
    fn explanation(&self) -> Explanation {
        let explanation = ErrorCode::NotArchivable.hint(match self {
            Self::Open(key) => hint!(
                "nothing was written; `git handoff status {}` shows what it waits for",
                key
            ),
            Self::TooRecent { .. } => {
                hint!("nothing was written; leave out the time to archive it all the same")
            }
        });
        explanation.because("cannot archive")
    }
}

/// Refuses to archive an issue that has not ended, or whose last step was not before this moment.
/// Unread notices do not matter, since they may stay unread forever.
///
/// # Errors
/// [`NotArchivable`].
pub fn ensure_archivable(issue: &Issue, before: Moment) -> Result<(), NotArchivable> {
    let key = issue.issue.clone();
    let moves = !issue.open.is_empty() || !issue.awaiting.is_empty();
    if issue.status == IssueStatus::Open || moves {
        return Err(NotArchivable::Open(key));
    }
    if issue.updated_at >= before {
        let at = issue.updated_at;
        return Err(NotArchivable::TooRecent {
            issue: key,
            at,
            before,
        });
    }
    Ok(())
}

/// All issues in an index file.
///
/// # Errors
/// [`StoredError`] if a line is malformed or has another version.
pub fn read_index(bytes: &[u8]) -> Result<Vec<ArchivedIssue>, StoredError> {
    lines(bytes).map(record::read).collect()
}

/// Finds an issue in an index file.
///
/// # Errors
/// [`StoredError`] if its line is malformed or has another version.
pub fn find_in_index(bytes: &[u8], key: &IssueKey) -> Result<Option<ArchivedIssue>, StoredError> {
    // Only matching lines are parsed. They may match in another member, so the key is compared too.
    let quoted = format!("\"{key}\"");
    for line in lines(bytes) {
        if line
            .windows(quoted.len())
            .any(|part| part == quoted.as_bytes())
        {
            let found: ArchivedIssue = record::read(line)?;
            if found.issue == *key {
                return Ok(Some(found));
            }
        }
    }
    Ok(None)
}

/// An index file with these issues added.
///
/// # Errors
/// [`StoredError`] if a line is malformed or has another version.
pub fn with_archived(bytes: &[u8], new: Vec<ArchivedIssue>) -> Result<Vec<u8>, StoredError> {
    let mut all = read_index(bytes)?;
    all.retain(|one| !new.iter().any(|new| new.issue == one.issue));
    all.extend(new);
    Ok(written(all))
}

/// An index file with an issue removed; empty if it was the only one.
///
/// # Errors
/// [`StoredError`] if a line is malformed or has another version.
pub fn without_archived(bytes: &[u8], key: &IssueKey) -> Result<Vec<u8>, StoredError> {
    let mut all = read_index(bytes)?;
    all.retain(|one| one.issue != *key);
    Ok(written(all))
}

fn written(mut all: Vec<ArchivedIssue>) -> Vec<u8> {
    all.sort_by(|one, other| one.issue.as_str().cmp(other.issue.as_str()));
    let mut text = String::new();
    for one in all {
        text += &one.line();
        text.push('\n');
    }
    text.into_bytes()
}

fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let lines = bytes.split(|&byte| byte == b'\n');
    lines.filter(|line| !line.is_empty())
}

stored!(ArchivedIssue);

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn archived(key: &str, title: &str) -> ArchivedIssue {
        let at = |text: &str| text.parse().unwrap();
        ArchivedIssue {
            version: VERSION,
            issue: key.parse().unwrap(),
            title: title.to_owned(),
            protocol: "issue-to-pr".parse().unwrap(),
            status: IssueStatus::Completed,
            opened_at: at("2026-03-02T09:00:00Z"),
            updated_at: at("2026-03-02T09:30:00.250Z"),
            handoffs: 7,
            commit: ObjectId::from_bytes(&[1; 20]).unwrap(),
            tree: ObjectId::from_bytes(&[2; 20]).unwrap(),
        }
    }

    #[test]
    fn an_index_has_a_line_for_each_issue_in_the_order_of_keys() {
        let first = with_archived(b"", vec![archived("7", "Seven")]).unwrap();
        let line = concat!(
            r#"{"version":4,"issue":"7","title":"Seven","protocol":"issue-to-pr","status":"completed","#,
            r#""opened_at":"2026-03-02T09:00:00Z","updated_at":"2026-03-02T09:30:00.250Z","handoffs":7,"#,
            r#""commit":"0101010101010101010101010101010101010101","#,
            r#""tree":"0202020202020202020202020202020202020202"}"#,
            "\n"
        );
        assert_eq!(String::from_utf8(first.clone()).unwrap(), line);
        let both = vec![archived("70007", "\"7\" again"), archived("10007", "Ten\n")];
        let all = with_archived(&first, both).unwrap();
        let keys: Vec<String> = read_index(&all)
            .unwrap()
            .into_iter()
            .map(|one| one.issue.to_string())
            .collect();
        assert_eq!(keys, ["10007", "7", "70007"]);
        assert_eq!(all.iter().filter(|&&b| b == b'\n').count(), 3);
        let seven = find_in_index(&all, &"7".parse().unwrap()).unwrap();
        assert_eq!(seven, Some(archived("7", "Seven")));
        assert_eq!(find_in_index(&all, &"8".parse().unwrap()).unwrap(), None);
        let left = without_archived(&all, &"10007".parse().unwrap()).unwrap();
        let left = without_archived(&left, &"70007".parse().unwrap()).unwrap();
        assert_eq!(left, first);
        assert_eq!(without_archived(&left, &"7".parse().unwrap()).unwrap(), b"");
    }

    #[test]
    fn a_line_of_another_form_or_version_is_an_error() {
        let line = archived("7", "Seven").line();
        let newer = line.replace("\"version\":4", "\"version\":5");
        assert!(matches!(
            read_index(newer.as_bytes()),
            Err(StoredError::Version { version: 5 })
        ));
        for bad in [
            line.replace("\"handoffs\":7,", ""),
            line.replace("0202", "02"),
            line.replace("\"title\"", "\"more\":1,\"title\""),
            "7".to_owned(),
        ] {
            assert!(read_index(bad.as_bytes()).is_err(), "{bad}");
            assert!(
                with_archived(bad.as_bytes(), vec![archived("8", "")]).is_err(),
                "{bad}"
            );
        }
    }
}
