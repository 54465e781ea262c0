//! The branches of ended issues, here and on a remote. A branch with unique commits is removed only
//! on request.

use handoff::base::ids::{HandoffId, IssueKey};
use handoff::model::{BranchContext, BranchPatterns, branch_for_agents};

use super::worktree::Worktrees;

/// A branch that agents may write to.
#[derive(Clone, Debug)]
pub(super) struct IssueBranch {
    pub(super) issue: IssueKey,
    pub(super) name: String,
    /// The remote that has it; `None` for a local branch.
    pub(super) remote: Option<String>,
    /// The commit at which it was listed: if it has moved since, it is not removed.
    tip: String,
}

/// The names by which a branch belongs to an issue.
pub(super) struct Naming<'a> {
    pub(super) ledger_branch: &'a str,
    pub(super) patterns: &'a BranchPatterns,
}

impl Worktrees {
    /// The branches of issues: local ones that are not checked out, or a remote's.
    ///
    /// # Errors
    /// git's message.
    pub(super) fn issue_branches(
        &self,
        naming: &Naming<'_>,
        remote: Option<&str>,
    ) -> Result<Vec<IssueBranch>, String> {
        let format = "--format=%(objectname) %(refname)%(if)%(worktreepath)%(then) used%(end)";
        let listed = match remote {
            None => self.program.git(&["for-each-ref", format, "refs/heads"])?,
            Some(remote) => self.program.git(&["ls-remote", "--heads", remote])?,
        };
        let default = self.main(remote.or(Some("origin")));
        let found = listed.lines().filter_map(|line| {
            let mut words = line.split_whitespace();
            let (tip, name) = (words.next()?, words.next()?.strip_prefix("refs/heads/")?);
            let issue = issue_of(name, naming.patterns).filter(|_| words.next().is_none())?;
            let context = BranchContext {
                issue: &issue,
                ledger_branch: naming.ledger_branch,
                default_branch: default.as_deref(),
                base: None,
                patterns: naming.patterns,
                made_here: false,
            };
            branch_for_agents(name, &context).ok()?;
            Some(IssueBranch {
                name: name.to_owned(),
                remote: remote.map(str::to_owned),
                tip: tip.to_owned(),
                issue,
            })
        });
        Ok(found.collect())
    }

    /// Whether a branch has unique commits: of a local branch, those that no other branch, tag or
    /// remote has; of a remote's, those that its main branch lacks.
    pub(super) fn has_own_commits(&self, branch: &IssueBranch) -> bool {
        let has_commits_beside = |others: &[&str]| {
            let count = ["rev-list", "--count", "--max-count=1", &branch.tip, "--not"];
            let count = self.program.git(&[&count[..], others].concat());
            count.map_or(true, |count| count != "0")
        };
        // Compare with the remote's main branch, not with the one checked out, which may be this
        // one.
        let newest_main = |remote| {
            let main = self.main(Some(remote))?;
            self.refresh(remote, &main);
            Some(main)
        };
        match &branch.remote {
            None => {
                let except = format!("--exclude=refs/heads/{}", branch.name);
                let rest = [
                    except.as_str(),
                    "--glob=refs/heads",
                    "--glob=refs/remotes",
                    "--glob=refs/tags",
                ];
                // It may have been merged on the remote meanwhile.
                has_commits_beside(&rest)
                    && (newest_main("origin").is_none() || has_commits_beside(&rest))
            }
            Some(remote) => {
                // Fetch the branch: the comparison needs its commits here.
                self.refresh(remote, &branch.name);
                newest_main(remote).is_none_or(|main| has_commits_beside(&[main.as_str()]))
            }
        }
    }

    /// Removes a branch that has not moved.
    ///
    /// # Errors
    /// git's message.
    pub(super) fn remove_branch(&self, branch: &IssueBranch) -> Result<(), String> {
        let name = format!("refs/heads/{}", branch.name);
        let removed = match &branch.remote {
            None => self.program.git(&["update-ref", "-d", &name, &branch.tip]),
            Some(remote) => {
                let lease = format!("--force-with-lease={name}:{}", branch.tip);
                self.program
                    .git(&["push", "--quiet", &lease, remote, &format!(":{name}")])
            }
        };
        removed.map(drop)
    }
}

/// The issue that a branch is named after.
fn issue_of(branch: &str, patterns: &BranchPatterns) -> Option<IssueKey> {
    let own = branch.strip_prefix("handoff/").and_then(|rest| {
        let part = rest.parse::<HandoffId>().map(|part| part.issue().clone());
        part.ok().or_else(|| rest.split('/').next()?.parse().ok())
    });
    own.or_else(|| patterns.issue(branch))
}
