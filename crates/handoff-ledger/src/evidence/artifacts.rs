//! Checks whether delivered files are unchanged.

use handoff_base::finding::{Finding, FindingCode, Severity};
use handoff_base::text::word;
use handoff_base::{ObjectId, digest, short_id};
use handoff_git::{FactError, GitError, Repository};
use handoff_model::{Artifact, Record, Verdict};
use handoff_protocol::{Check, Policy};

use crate::artifacts::digest_of;

/// Findings for a handoff's delivered files that have changed: an error for each if that is
/// enforced, else a warning. Empty if the files were not checked when it was sent.
///
/// # Errors
/// [`GitError`] when the repository is damaged.
pub(crate) fn changed(repository: &Repository, record: &Record) -> Result<Vec<Finding>, GitError> {
    let mut checked = record.evidence.iter();
    let Some(entry) = checked.find(|e| e.check == Check::Artifacts && e.result == Verdict::Passed)
    else {
        return Ok(Vec::new());
    };
    let mut findings = Vec::new();
    for artifact in &record.artifacts {
        let Some(wanted) = &artifact.sha256 else {
            continue;
        };
        let (code, text) = match now(repository, record, artifact)? {
            Now::Unknown => continue,
            Now::Is(sha256) if sha256 == *wanted => continue,
            Now::Is(sha256) => {
                let text = format!(
                    "{} delivered it with the sha256 {wanted}, and now it has {sha256}",
                    record.id
                );
                (FindingCode::ArtifactChanged, text)
            }
            Now::Missing => {
                let text = format!("{} delivered it, and now there is no such file", record.id);
                (FindingCode::ArtifactMissing, text)
            }
        };
        let mut finding = Finding::error(code, artifact.path.clone(), text);
        if entry.policy != Policy::Enforce {
            finding.severity = Severity::Warning;
        }
        let fix = format!(
            "bring back the file that {} delivered, or reject the handoff",
            record.from
        );
        findings.push(finding.fix(match &record.code {
            Some(code) if artifact.committed => {
                let object = format!("{}:{}", short_id(&code.commit), artifact.path);
                format!("see what was delivered: `git show {}`", word(&object))
            }
            _ => fix,
        }));
    }
    Ok(findings)
}

/// The current state of a file.
enum Now {
    /// It has this SHA-256.
    Is(String),
    /// It does not exist.
    Missing,
    /// It can't be determined here.
    Unknown,
}

/// The current state of a file: in the working tree, or on its branch if that is not checked out.
fn now(repository: &Repository, record: &Record, artifact: &Artifact) -> Result<Now, GitError> {
    let code = record.code.as_ref().filter(|_| artifact.committed);
    let here = repository.workdir().is_some();
    let elsewhere =
        code.filter(|c| !here || repository.current_branch().as_ref() != Some(&c.branch));
    if let Some(code) = elsewhere {
        let tip = repository
            .code(&code.branch)
            .map_or_else(|| code.commit.clone(), |c| c.commit);
        let Ok(commit) = tip.parse::<ObjectId>() else {
            return Ok(Now::Unknown);
        };
        if !repository.has(commit) {
            return Ok(Now::Unknown);
        }
        return match repository.file_at(commit, &artifact.path) {
            Ok(Some(bytes)) => Ok(Now::Is(digest(&bytes))),
            Ok(None) => Ok(Now::Missing),
            Err(FactError::Unknown(_)) => Ok(Now::Unknown),
            Err(FactError::Git(error)) => Err(error),
        };
    }
    if !here {
        return Ok(Now::Unknown);
    }
    let Some(mut file) = repository.open_file(&artifact.path) else {
        return Ok(Now::Missing);
    };
    // A file that can't be read completely counts as missing.
    Ok(digest_of(&mut file).map_or(Now::Missing, |(_, sha256)| Now::Is(sha256)))
}
