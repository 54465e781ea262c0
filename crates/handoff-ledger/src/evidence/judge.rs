//! Runs the checks of a contract against the user's commits and files.

use handoff_base::ObjectId;
use handoff_base::finding::{Finding, Severity};
use handoff_base::ids::AgentName;
use handoff_base::text::{counted, counted_as, one_line, quoted, word};
use handoff_git::{FactError, GitError, Repository};
use handoff_model::evidence::{
    Claimed, Found, check_coverage, check_tests, check_tests_added, count,
};
use handoff_model::{Artifact, Evidence, Reports, Verdict};
use handoff_protocol::{Check, PathPattern, Policy};
use serde_json::Value;

/// The commit of a branch when it was merged.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum Merged {
    /// Unknown.
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
    pub(crate) tip: Option<ObjectId>,
    pub(crate) merged: Merged,
    pub(crate) base_branch: Option<String>,
    pub(crate) base: Option<ObjectId>,
    /// The code branch's commit when the sender received the work.
    pub(crate) since: Option<ObjectId>,
    /// Set if the claimed commits must be on `origin`.
    pub(crate) remote: Option<OnRemote>,
}

/// The commits of `origin` that this clone knows, if the ledger is shared: other agents continue
/// from there.
#[derive(Clone, Debug)]
pub(crate) struct OnRemote {
    pub(crate) branch: Option<ObjectId>,
    pub(crate) base: Option<ObjectId>,
    /// Whether it can't be pushed to now: the caller is offline, or the remote is unreachable.
    pub(crate) is_out_of_reach: bool,
    /// The commit of the branch that is pushed if nothing refuses the contract, and for whom.
    pub(crate) to_push: Option<(AgentName, ObjectId)>,
    /// Why it refused the push.
    pub(crate) refused: Option<String>,
}

/// Whether `origin` has a commit.
pub(super) enum Pushed {
    Yes,
    /// Unknown, with the reason.
    Unknown(String),
    /// It does not have it: the reason, and the command that pushes it.
    No {
        why: String,
        fix: String,
    },
}

/// The results of all checks of a contract.
#[derive(Clone, Debug, Default)]
pub(crate) struct Judged {
    /// The evidence to record.
    pub(crate) evidence: Vec<Evidence>,
    /// Every contradiction: an error if it is enforced, else a warning.
    pub(crate) findings: Vec<Finding>,
    /// The commit of the branch to push for it, and for whom.
    pub(crate) to_push: Option<(AgentName, ObjectId)>,
    /// The branch that was pushed for it.
    pub(crate) pushed: Option<String>,
}

impl Judged {
    /// Whether the contract is refused.
    pub(crate) fn refuses(&self) -> bool {
        self.findings.iter().any(Finding::is_error)
    }

    /// Adds findings that refuse under any policy, replacing warnings about the same.
    pub(crate) fn refuse(&mut self, refused: Vec<Finding>) {
        let is_said = |one: &Finding| refused.iter().any(|new| new.message == one.message);
        self.findings.retain(|one| !is_said(one));
        self.findings.extend(refused);
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
            ..Judged::default()
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
                    if policy == Policy::Enforce {
                        return f;
                    }
                    f.severity = Severity::Warning;
                    let fix = f.fix.take().map(|fix| format!("{fix}; ")).unwrap_or_default();
                    let (protocol, check) = (self.claimed.protocol(), check.as_str());
                    f.fix(format!(
                        "{fix}`git handoff protocol set {protocol} evidence.{check} enforce` refuses it"
                    ))
                }));
            }
            let of_history = !matches!(
                check,
                Check::Artifacts | Check::Tests | Check::TestsAdded | Check::Coverage
            );
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

    /// Runs one check. `tip` is the commit of the branch, and is set to the deciding commit if
    /// there are several.
    pub(super) fn check(
        &self,
        check: Check,
        tip: &mut Option<ObjectId>,
    ) -> Result<Found, GitError> {
        let found = match check {
            Check::Branch => self.branch(),
            Check::Commits => self.commits(),
            Check::FilesChanged => self.files_changed(),
            Check::CommitsAdded => self.commits_added(),
            Check::Merge => self.merge(tip),
            Check::Artifacts => Ok(self.artifacts()),
            Check::Paths => self.paths(),
            Check::Tests => Ok(check_tests(&self.claimed, self.reports)),
            Check::TestsAdded => Ok(check_tests_added(&self.claimed, self.reports)),
            Check::Coverage => Ok(check_coverage(&self.claimed, self.reports)),
        };
        match found {
            Ok(found) => Ok(found),
            Err(FactError::Unknown(why)) => Ok(Found::Skipped(why.to_string())),
            Err(FactError::Git(error)) => Err(error),
        }
    }

    /// The commits of the branch and its base, or why a check is impossible.
    pub(super) fn both(&self) -> Result<(ObjectId, ObjectId), Found> {
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

    pub(super) fn named_base(&self) -> &str {
        self.ground.base_branch.as_deref().unwrap_or("its base")
    }

    /// The base for `git log`: the local branch may be behind the commit that counts.
    pub(super) fn base_range(&self) -> String {
        let base = self.named_base();
        let here = self.repository.code(base);
        let here = here.and_then(|code| code.commit.parse::<ObjectId>().ok());
        let is_origins = self.ground.base.is_some() && self.ground.base != here;
        let origin = if is_origins { "origin/" } else { "" };
        let branch = self.repository.code_name(self.named_branch());
        format!("{origin}{base}..{branch}")
    }

    /// The finding if `origin` lacks the branch that others must continue. It refuses the contract,
    /// since nobody can continue from a commit that is only here.
    pub(crate) fn unpushed(
        &self,
        demanded: &[(Check, Policy)],
    ) -> Result<Option<Finding>, GitError> {
        let of_code = |(check, policy): &(Check, Policy)| {
            let is_code = matches!(check, Check::Branch | Check::Commits | Check::CommitsAdded);
            is_code && *policy != Policy::Off
        };
        if !demanded.iter().any(of_code) {
            return Ok(None);
        }
        match self.branch_pushed() {
            Ok(Some(Pushed::No { why, fix })) => {
                let at = self.claimed.branch_at().unwrap_or_default();
                Ok(Some(Finding::error(Check::Branch.code(), at, why).fix(fix)))
            }
            Ok(_) | Err(FactError::Unknown(_)) => Ok(None),
            Err(FactError::Git(error)) => Err(error),
        }
    }

    /// Whether `origin` has the branch's commit; a branch without commits of its own need not be
    /// pushed.
    fn branch_pushed(&self) -> Result<Option<Pushed>, FactError> {
        let (Some(branch), Some(tip)) = (self.ground.branch.as_deref(), self.ground.tip) else {
            return Ok(None);
        };
        if let Some(base) = self.ground.remote.as_ref().and_then(|remote| remote.base)
            && self.repository.has_commit(base, tip)?
        {
            return Ok(Some(Pushed::Yes));
        }
        Ok(Some(match self.pushed(Some(branch), tip)? {
            Pushed::No { why, fix } => {
                let why = format!("commit {} of {} {why}", tip.short(), quoted(branch));
                Pushed::No { why, fix }
            }
            pushed => pushed,
        }))
    }

    /// Whether `origin` has a commit of a branch, if required.
    pub(super) fn pushed(
        &self,
        branch: Option<&str>,
        commit: ObjectId,
    ) -> Result<Pushed, FactError> {
        let (Some(remote), Some(branch)) = (&self.ground.remote, branch) else {
            return Ok(Pushed::Yes);
        };
        let there = if self.ground.base_branch.as_deref() == Some(branch) {
            remote.base
        } else {
            remote.branch
        };
        if let Some(there) = there
            && self.repository.has_commit(there, commit)?
        {
            return Ok(Pushed::Yes);
        }
        // `origin` has a merged commit even if its branch is gone. But on the base's first-parent
        // line, it may just be the commit from which an unpushed branch starts.
        if let Some(base) = remote.base
            && self.repository.has_commit(base, commit)?
            && !self.repository.is_on_line(base, commit)?
        {
            return Ok(Pushed::Yes);
        }
        if remote.is_out_of_reach {
            let text = format!(
                "whether origin has {branch} as it is here is not known: it is out of reach"
            );
            return Ok(Pushed::Unknown(text));
        }
        if !self.repository.follows(branch) {
            let text = format!("this clone does not follow branch {branch} of origin");
            return Ok(Pushed::Unknown(text));
        }
        let why = match (there, &remote.refused) {
            (_, Some(why)) => format!("is only here, and can't be pushed: {}", one_line(why)),
            (None, _) => format!("is only here: origin has no branch {}", quoted(branch)),
            (Some(_), _) => format!("is only here: it is not on origin's {}", quoted(branch)),
        };
        let ends = self
            .ground
            .tip
            .filter(|_| self.ground.branch.as_deref() == Some(branch));
        let ends = ends.unwrap_or(commit);
        let name = word(branch);
        let fix = match there {
            Some(there) if self.repository.is_rewritten(branch, ends, there)? => format!(
                "the branch was rewritten here: `git push --force-with-lease origin {name}`"
            ),
            Some(there) if !self.repository.has_commit(ends, there)? => format!(
                "origin's has commits that are not here: `git fetch origin`, then rebase onto it or merge it: `git rebase origin/{name} {name}`, then `git push origin {name}`"
            ),
            _ => format!("push it: `git push origin {name}`"),
        };
        Ok(Pushed::No { why, fix })
    }

    fn branch(&self) -> Result<Found, FactError> {
        let Some(branch) = self.claimed.branch() else {
            return Ok(Found::Skipped("no code branch is known".to_owned()));
        };
        let at = self.claimed.branch_at().unwrap_or_default();
        if let Some(pushed) = self.branch_pushed()? {
            return Ok(match pushed {
                Pushed::Yes => Found::Passed,
                Pushed::Unknown(why) => Found::Skipped(why),
                Pushed::No { why, fix } => {
                    Found::because(Finding::error(Check::Branch.code(), at, why).fix(fix))
                }
            });
        }
        if !self.repository.follows(branch) {
            let text = format!("this clone does not follow branch {branch} of origin");
            return Ok(Found::Skipped(text));
        }
        let finding = Finding::error(Check::Branch.code(), at, self.repository.no_branch(branch));
        let fix = if self.repository.is_without_commits() {
            "make the first commit: `git commit`"
        } else {
            "create or fetch the branch, or name the right one"
        };
        Ok(Found::because(finding.fix(fix)))
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
        let name = |branch| self.repository.code_name(branch);
        let range = format!(
            "{}...{}",
            name(self.named_base()),
            name(self.named_branch())
        );
        let fix = format!("see `git diff --name-only {}`", word(&range));
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
        let claim = claimed.map_or_else(
            || format!("{} files", quoted(&value.to_string())),
            |claimed| counted(claimed, "file"),
        );
        let changed = counted_as(number, "", ["is", "are"]);
        let text = format!("the contract says {claim}, and {changed} changed");
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
            if counts[0] == 0 {
                return Ok(Found::unless(
                    self.unfixed(since, tip)?.into_iter().collect(),
                ));
            }
            return Ok(match self.branch_pushed()? {
                Some(Pushed::No { why, fix }) => {
                    let finding = Finding::error(Check::CommitsAdded.code(), at, why);
                    Found::because(finding.fix(fix))
                }
                Some(Pushed::Unknown(why)) => Found::Skipped(why),
                Some(Pushed::Yes) | None => Found::Passed,
            });
        }
        let claim = claimed.map_or_else(|| quoted(&value.to_string()), |n| n.to_string());
        let text = format!(
            "the contract says {claim}, and {branch} has {} more commits than when its sender got the work",
            counts[0]
        );
        let range = format!("{}..{branch}", since.short());
        let finding = Finding::error(Check::CommitsAdded.code(), at, text);
        Ok(Found::because(finding.fix(format!(
            "count what `git log {}` shows",
            word(&range)
        ))))
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
