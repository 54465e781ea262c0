//! Runs the checks of a contract against the user's commits and files.

use handoff_base::ObjectId;
use handoff_base::finding::{Finding, Severity};
use handoff_base::text::quoted;
use handoff_git::{FactError, GitError, Named, Repository, Unknown};
use handoff_model::evidence::{Claimed, Found, check_coverage, check_tests, count};
use handoff_model::value::scalar;
use handoff_model::{Artifact, Evidence, Reports, Verdict};
use handoff_protocol::{Check, PathPattern, Policy};
use serde_json::Value;

/// The commit a branch was at when it was merged.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum Merged {
    /// Not known.
    #[default]
    Unknown,
    /// Its tip; for a deleted branch, the last commit that the ledger recorded.
    At(ObjectId),
    /// A commit that this repository does not have.
    Elsewhere(ObjectId),
}

/// The commits that claims are checked against.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ground {
    /// The code branch's name, if known.
    pub(crate) branch: Option<String>,
    /// Whether it is the branch of this ledger.
    pub(crate) is_ledger: bool,
    pub(crate) tip: Option<ObjectId>,
    /// The commit it was at when it was merged, as far as known.
    pub(crate) merged: Merged,
    pub(crate) base_branch: Option<String>,
    pub(crate) base: Option<ObjectId>,
    /// The code branch's commit when the sender received the work.
    pub(crate) since: Option<ObjectId>,
}

/// The results of all checks of a contract.
#[derive(Clone, Debug, Default)]
pub(crate) struct Judged {
    /// The evidence to record.
    pub(crate) evidence: Vec<Evidence>,
    /// Every contradiction: an error if it is enforced, else a warning.
    pub(crate) findings: Vec<Finding>,
}

impl Judged {
    /// Whether the contract is refused.
    pub(crate) fn refuses(&self) -> bool {
        self.findings.iter().any(Finding::is_error)
    }
}

/// A contract to check.
pub(crate) struct Judge<'a> {
    pub(crate) repository: &'a Repository,
    pub(crate) claimed: Claimed<'a>,
    pub(crate) ground: Ground,
    /// The files that it delivers, in their current state.
    pub(crate) artifacts: &'a [Artifact],
    pub(crate) reports: &'a Reports,
}

impl Judge<'_> {
    /// Runs these checks.
    ///
    /// # Errors
    /// [`GitError`] when the repository is damaged.
    pub(crate) fn judge(&self, demanded: &[(Check, Policy)]) -> Result<Judged, GitError> {
        let mut judged = Judged {
            evidence: Vec::with_capacity(demanded.len()),
            findings: Vec::new(),
        };
        for &(check, policy) in demanded {
            let mut tip = self.ground.tip;
            let found = self.check(check, &mut tip)?;
            let (result, reason) = match &found {
                Found::Passed => (Verdict::Passed, None),
                Found::Skipped(why) => (Verdict::Skipped, Some(why.clone())),
                Found::Contradicted(findings) => {
                    let reasons: Vec<&str> = findings.iter().map(|f| &*f.message).collect();
                    (Verdict::Contradicted, Some(reasons.join("; ")))
                }
            };
            if let Found::Contradicted(findings) = found {
                judged.findings.extend(findings.into_iter().map(|mut f| {
                    if policy != Policy::Enforce {
                        f.severity = Severity::Warning;
                    }
                    f
                }));
            }
            let of_history = !matches!(check, Check::Artifacts | Check::Tests | Check::Coverage);
            let id = |id: Option<ObjectId>| id.filter(|_| of_history).map(|id| id.to_string());
            let counts = matches!(check, Check::CommitsAdded | Check::Paths);
            let ground = &self.ground;
            judged.evidence.push(Evidence {
                check,
                policy,
                result,
                reason,
                tip: id(tip),
                base: id(ground.base.filter(|_| check != Check::Branch)),
                since: id(ground.since.filter(|_| counts)),
                files: self.reports.files_for(check),
            });
        }
        Ok(judged)
    }

    /// Runs one check. `tip` is the commit that the branch was at, and is set to the deciding
    /// commit if there are several.
    pub(super) fn check(
        &self,
        check: Check,
        tip: &mut Option<ObjectId>,
    ) -> Result<Found, GitError> {
        let found = match check {
            Check::Branch => Ok(self.branch()),
            Check::Commits => self.commits(),
            Check::FilesChanged => self.files_changed(),
            Check::CommitsAdded => self.commits_added(),
            Check::Merge => self.merge(tip),
            Check::Artifacts => Ok(self.artifacts()),
            Check::Paths => self.paths(),
            Check::Tests => Ok(check_tests(&self.claimed, self.reports)),
            Check::Coverage => Ok(check_coverage(&self.claimed, self.reports)),
        };
        match found {
            Ok(found) => Ok(found),
            Err(FactError::Unknown(why)) => Ok(Found::Skipped(why.to_string())),
            Err(FactError::Git(error)) => Err(error),
        }
    }

    /// The branch and its base, or why a check can't be made without them.
    fn both(&self) -> Result<(ObjectId, ObjectId), Found> {
        let ground = &self.ground;
        let Some(tip) = ground.tip else {
            return Err(Found::Skipped(match &ground.branch {
                Some(branch) => format!("branch {branch} is not here"),
                None => "no code branch is known".to_owned(),
            }));
        };
        let Some(base) = ground.base else {
            return Err(Found::Skipped(match &ground.base_branch {
                Some(branch) => format!("base branch {branch} is not here"),
                None => "no base branch is known".to_owned(),
            }));
        };
        Ok((tip, base))
    }

    pub(super) fn named_branch(&self) -> &str {
        self.ground.branch.as_deref().unwrap_or("the branch")
    }

    fn named_base(&self) -> &str {
        self.ground.base_branch.as_deref().unwrap_or("its base")
    }

    fn branch(&self) -> Found {
        let Some(branch) = self.claimed.branch() else {
            return Found::Skipped("no code branch is known".to_owned());
        };
        let at = self.claimed.branch_at().unwrap_or_default();
        if self.ground.is_ledger {
            let text = format!("{} is the ledger's own branch", quoted(branch));
            let finding = Finding::error(Check::Branch.code(), at, text);
            return Found::because(finding.fix("name the branch that the work is on"));
        }
        if self.ground.tip.is_some() {
            return Found::Passed;
        }
        if !self.repository.follows(branch) {
            let text = format!("this clone does not follow branch {branch} of origin");
            return Found::Skipped(text);
        }
        let text = format!("there is no branch {}, here or on origin", quoted(branch));
        let finding = Finding::error(Check::Branch.code(), at, text);
        Found::because(finding.fix("create or fetch the branch, or name the right one"))
    }

    fn commits(&self) -> Result<Found, FactError> {
        let claims = self.claimed.kind.claims.as_ref();
        let Some(claim) = claims.and_then(|c| c.commits.as_ref()) else {
            return Ok(Found::Passed);
        };
        let unknown = self.both().err();
        let Some(tip) = self.ground.tip else {
            return Ok(unknown.unwrap_or(Found::Passed));
        };
        // Without a base, every commit of the branch counts as its own.
        let own = match self.ground.base {
            Some(base) => match self.repository.added(base, tip) {
                Ok(added) => {
                    let ids = added.commits.iter().map(|(id, _)| id.to_string());
                    Some((base, ids.collect::<Vec<String>>()))
                }
                Err(FactError::Unknown(Unknown::Unrelated)) => None,
                Err(error) => return Err(error),
            },
            None => None,
        };
        let entries = self
            .claimed
            .value(Some(&claim.list))
            .and_then(Value::as_array);
        let mut findings = Vec::new();
        for (i, entry) in entries.into_iter().flatten().enumerate() {
            let inside = claim.id.as_deref().unwrap_or_default();
            let at = format!("{}/{i}{inside}", claim.list);
            let Some(text) = entry.pointer(inside).and_then(scalar) else {
                continue;
            };
            let id = text.to_ascii_lowercase();
            let named = |known: &&String| id.len() >= 4 && known.starts_with(&id);
            let own = own.as_ref();
            let why = match own.map_or(0, |(_, ids)| ids.iter().filter(named).count()) {
                1 => None,
                0 => self.why_not(&id, own.map(|(base, _)| *base), tip)?,
                _ => Some("may be one of several commits".to_owned()),
            };
            let Some(why) = why else { continue };
            let finding = Finding::error(
                Check::Commits.code(),
                at,
                format!("{} {why}", quoted(&text)),
            );
            let range = match &own {
                Some(_) => format!("{}..{}", self.named_base(), self.named_branch()),
                None => self.named_branch().to_owned(),
            };
            findings.push(finding.fix(format!("list commits that `git log {range}` shows")));
        }
        match unknown {
            // Which of the branch's commits are its own is not known.
            Some(unknown) if findings.is_empty() => Ok(unknown),
            _ => Ok(Found::unless(findings)),
        }
    }

    /// Why a commit is not one that a branch added to its base, or, without a base, not on the
    /// branch at all; `None` if it is.
    fn why_not(
        &self,
        id: &str,
        base: Option<ObjectId>,
        tip: ObjectId,
    ) -> Result<Option<String>, FactError> {
        let (branch, base_branch) = (self.named_branch(), self.named_base());
        let commit = match self.repository.named(id)? {
            Named::Nothing => return Ok(Some("is no commit of this repository".to_owned())),
            Named::Several => return Ok(Some("may be one of several objects".to_owned())),
            Named::Other(object) => return Ok(Some(format!("is {object}, not a commit"))),
            Named::Commit(commit) => commit,
        };
        if let Some(base) = base
            && self.repository.has_commit(base, commit)?
        {
            let text = format!("was on {base_branch} before the work on {branch}");
            return Ok(Some(text));
        }
        let held = self.repository.has_commit(tip, commit)?;
        Ok(match (held, base) {
            (false, _) => Some(format!("is not on {branch}")),
            (true, Some(_)) => Some(format!("is not one that {branch} added to {base_branch}")),
            (true, None) => None,
        })
    }

    fn files_changed(&self) -> Result<Found, FactError> {
        let at = self.claimed.kind.claims.as_ref();
        let at = at
            .and_then(|c| c.files_changed.as_deref())
            .unwrap_or_default();
        let Some(value) = self.claimed.value(Some(at)) else {
            return Ok(Found::Passed);
        };
        let (tip, base) = match self.both() {
            Ok(both) => both,
            Err(found) => return Ok(found),
        };
        let fork = self.repository.added(base, tip)?.fork;
        let changed = self.repository.differences(fork, tip)?;
        let code = Check::FilesChanged.code();
        let range = format!(
            "git diff --name-only {}...{}",
            self.named_base(),
            self.named_branch()
        );
        let fix = format!("see `{range}`");
        if let Value::Array(listed) = value {
            let mut findings = Vec::new();
            let listed: Vec<&str> = listed.iter().filter_map(Value::as_str).collect();
            for (i, path) in listed.iter().enumerate() {
                if !changed.contains_key(*path) {
                    let text = format!("{} is not changed", quoted(path));
                    findings.push(Finding::error(code, format!("{at}/{i}"), text).fix(&*fix));
                }
            }
            // A removed file may have been moved, and is then listed by its new path.
            let kept = changed.iter().filter(|(_, held)| held.is_some());
            let missing = kept
                .map(|(path, _)| path)
                .find(|path| !listed.contains(&path.as_str()));
            if let Some(path) = missing {
                let text = format!("{} is changed too, and not listed", quoted(path));
                findings.push(Finding::error(code, at, text).fix(&*fix));
            }
            return Ok(Found::unless(findings));
        }
        let claimed = count(value);
        let number = changed.len() as u64;
        if claimed == Some(number) {
            return Ok(Found::Passed);
        }
        // git counts a moved file once.
        let moved = changed.values().any(Option::is_none);
        let with_moves = if moved {
            self.repository.differences_with_moves(fork, tip)? as u64
        } else {
            number
        };
        if claimed == Some(with_moves) {
            return Ok(Found::Passed);
        }
        let claim = claimed.map_or_else(|| quoted(&value.to_string()), |n| n.to_string());
        let text = format!("the contract says {claim} files, and {number} are changed");
        Ok(Found::because(Finding::error(code, at, text).fix(fix)))
    }

    fn commits_added(&self) -> Result<Found, FactError> {
        let at = self.claimed.kind.claims.as_ref();
        let at = at
            .and_then(|c| c.commits_added.as_deref())
            .unwrap_or_default();
        let Some(value) = self.claimed.value(Some(at)) else {
            return Ok(Found::Passed);
        };
        let Some(tip) = self.ground.tip else {
            return Ok(self.both().err().unwrap_or(Found::Passed));
        };
        let branch = self.named_branch();
        let Some(since) = self.ground.since else {
            let text = format!(
                "the ledger does not know where {branch} stood when its sender got the work"
            );
            return Ok(Found::Skipped(text));
        };
        if !self.repository.has_commit(tip, since)? {
            let text = format!("{branch} was rewritten since its sender got the work");
            return Ok(Found::Skipped(text));
        }
        let mut counts = Vec::new();
        // Merges and the commits they brought from the base branch may be counted or not.
        for known in [
            &[since][..],
            &[&[since][..], self.ground.base.as_slice()].concat(),
        ] {
            let commits = self.repository.commits_since(tip, known)?;
            counts.push(commits.len() as u64);
            counts.push(commits.iter().filter(|(_, parents)| *parents < 2).count() as u64);
        }
        let claimed = count(value);
        if claimed.is_some_and(|claimed| counts.contains(&claimed)) {
            return Ok(Found::Passed);
        }
        let claim = claimed.map_or_else(|| quoted(&value.to_string()), |n| n.to_string());
        let text = format!(
            "the contract says {claim}, and {branch} has {} more commits than when its sender got the work",
            counts[0]
        );
        let range = format!("git log {}..{branch}", since.short());
        let finding = Finding::error(Check::CommitsAdded.code(), at, text);
        Ok(Found::because(
            finding.fix(format!("count what `{range}` shows")),
        ))
    }

    fn artifacts(&self) -> Found {
        let mut findings = Vec::new();
        for file in self.claimed.files() {
            let mut known = self.artifacts.iter();
            if known.any(|a| a.path == file.path && a.sha256.is_some()) {
                continue;
            }
            let text = format!("there is no file {}", quoted(&file.path));
            let finding = Finding::error(Check::Artifacts.code(), file.at, text);
            findings.push(finding.fix("deliver the file at this path from the repository's root"));
        }
        if !findings.is_empty() && self.repository.workdir().is_none() && self.ground.tip.is_none()
        {
            let text =
                "there is no working tree here, and no branch is known that the files could be on";
            return Found::Skipped(text.to_owned());
        }
        Found::unless(findings)
    }

    fn paths(&self) -> Result<Found, FactError> {
        let (tip, base) = match self.both() {
            Ok(both) => both,
            Err(found) => return Ok(found),
        };
        let patterns = self.claimed.paths();
        // The patterns are valid: the definition was checked.
        let patterns: Vec<PathPattern> = patterns
            .iter()
            .filter_map(|text| PathPattern::new(text).ok())
            .collect();
        let changed = self
            .repository
            .paths_changed(base, self.ground.since, tip)?;
        let foreign = changed
            .iter()
            .filter(|path| !patterns.iter().any(|p| p.matches(path)));
        let sender = self
            .claimed
            .from
            .map(ToString::to_string)
            .unwrap_or_default();
        let findings = foreign.map(|path| {
            let text = format!("{sender} changed {}, which its role may not", quoted(path));
            let fix = format!("its role may change: {}", self.claimed.paths().join(", "));
            Finding::error(Check::Paths.code(), "", text).fix(fix)
        });
        Ok(Found::unless(findings.collect()))
    }
}
