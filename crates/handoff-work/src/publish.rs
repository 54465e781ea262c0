//! The worker's git operations for an agent: it verifies the worktree, commits the edits, and
//! pushes the issue's branch. So an agent needs neither rights on the repository nor network
//! access.

use std::fs::File;
use std::process::Stdio;
use std::thread;

use handoff::base::text::{one_line, quoted};
use handoff::git::Repository;
use handoff::model::{BranchContext, BranchPatterns, IssueStatus, View, branch_for_agents};

use handoff_cli::failure::Failure;
use handoff_cli::output::{Output, counted};

use super::piece::{PAUSE, Piece, Place, Pushed, Refusal, Site, TRIES};
use super::program::{Actor, Program, config_variables, ensure_addresses_here, word};
use super::roles::Commits;
use super::{Supervisor, agent_folder};

/// The maximum number of changed files that are named.
const NAMED: usize = 10;

impl Piece {
    /// Refuses a branch that agents may not write to.
    ///
    /// # Errors
    /// Why, and what a person can do.
    pub(super) fn may_write(&self, branch: &str) -> Result<(), String> {
        let name = format!("refs/heads/{branch}");
        let clone = Repository::open_here().map_err(|error| error.to_string())?;
        if clone.is_symbolic(&name) {
            return Err(format!(
                "branch {branch} is a symbolic ref, so that commits would move another branch: `git symbolic-ref --delete {name}` removes it"
            ));
        }
        if branch == self.unnamed_branch() {
            return Ok(());
        }
        let issue = self.id.issue();
        let default = self.worktrees.main(self.remote.as_deref());
        let base = self.claimed["work"]["base"].as_str();
        let named = self.patterns.issue(branch);
        let made_here =
            named.is_none_or(|named| named == *issue) && self.worktrees.made(issue, branch);
        let own = BranchPatterns::new(&self.role.branches);
        let decided = |patterns: &BranchPatterns| {
            let context = BranchContext {
                issue,
                ledger_branch: &self.ledger,
                default_branch: default.as_deref(),
                base,
                patterns,
                made_here,
            };
            branch_for_agents(branch, &context)
        };
        let decided = decided(&self.patterns).or_else(|refusal| {
            if self.role.branches.is_empty() {
                return Err(refusal);
            }
            decided(&own).map_err(|_| refusal)
        });
        decided.map_err(|refusal| refusal.to_string())
    }

    /// Verifies the worktree after a run: it is the original one, names this repository, and has no
    /// branch checked out that agents may not write to.
    ///
    /// # Errors
    /// What is there instead.
    pub(super) fn take_back(&self, site: &Site<'_>) -> Result<(), String> {
        let Some(worktree) = &site.place.worktree else {
            return Ok(());
        };
        if worktree.checkout.repair()? {
            let path = worktree.checkout.path.display();
            (site.say)(format!(
                "{}: its agent changed what names the repository in {path}; that is as it was again",
                self.id
            ));
        }
        let within = self.within(site.place);
        let Some(branch) = within.branch() else {
            return Ok(());
        };
        if let Err(why) = self.may_write(&branch) {
            (site.say)(format!("{}: its agent left that branch: {why}", self.id));
            within.git(&["checkout", "--quiet", "--detach"])?;
        }
        Ok(())
    }

    /// The uncommitted changes in the worktree.
    fn uncommitted(&self, site: &Site<'_>) -> Vec<String> {
        if site.place.worktree.is_none() {
            return Vec::new();
        }
        // An agent that only reads the code may leave files that its tests wrote.
        let untracked = if self.only_looks { "no" } else { "all" };
        let untracked = format!("--untracked-files={untracked}");
        let words = [
            "status",
            "--porcelain",
            &untracked,
            // To look into a nested repository, git would run itself there.
            "--ignore-submodules=dirty",
        ];
        let changed = self.within(site.place).git(&words).unwrap_or_default();
        let own = |line: &&str| line[3..].split('/').next() != Some(agent_folder::NAME);
        let changed = changed.lines().filter(|line| line.len() > 3).filter(own);
        changed.map(|line| line[3..].to_owned()).collect()
    }

    /// Commits the changes in the agent's name, or makes the agent do it.
    ///
    /// # Errors
    /// What the agent has to fix.
    pub(super) fn commit(&self, site: &Site<'_>) -> Result<(), Refusal> {
        if self.only_looks {
            return self.refuse_own_commits(site);
        }
        let changed = self.uncommitted(site);
        if changed.is_empty() {
            return Ok(());
        }
        let within = self.within(site.place);
        let branch = within.branch();
        if self.role.commits == Commits::Agent || branch.is_none() {
            let named: Vec<String> = changed
                .iter()
                .take(NAMED)
                .map(|name| quoted(name))
                .collect();
            let more = changed.len().saturating_sub(NAMED);
            let more = if more > 0 {
                format!(" and {more} more")
            } else {
                String::new()
            };
            let count = counted(changed.len(), "uncommitted file");
            return Err(Refusal {
                message: format!("its worktree has {count}"),
                findings: format!(
                    "- not committed: {}{more}: commit what belongs to the work, remove the rest\n",
                    named.join(", ")
                ),
            });
        }
        let committed = self.commit_all(site, &within);
        committed.map_err(|why| Refusal {
            message: "what it changed can't be committed".to_owned(),
            findings: format!("- {}\n", one_line(&why)),
        })
    }

    /// Refuses commits of an agent that only reads the code: nobody would get them.
    fn refuse_own_commits(&self, site: &Site<'_>) -> Result<(), Refusal> {
        let within = self.within(site.place);
        match within.resolve("HEAD") {
            Some(commit) if site.place.worktree.is_some() && within.has_unreferenced_head() => {
                Err(Refusal {
                    message: "it committed to code that it only looks at".to_owned(),
                    findings: format!(
                        "- commit {commit} is on no branch: report what it mends as a finding, and go back \
                     to the commit that you were given\n"
                    ),
                })
            }
            _ => Ok(()),
        }
    }

    /// Commits all changes, with git commands that run no filter or hook and enter no nested
    /// repository.
    fn commit_all(&self, site: &Site<'_>, within: &Program) -> Result<(), String> {
        let except = format!(":(exclude){}", agent_folder::NAME);
        let words = [
            "ls-files",
            "-z",
            "--modified",
            "--deleted",
            "--others",
            "--exclude-standard",
            "--",
            ".",
            &except,
        ];
        let changed = within.git_bytes(&words, Stdio::null())?;
        let list = site.files.own.write("changed", &changed);
        let list = list.and_then(File::open);
        let list = Stdio::from(list.map_err(|error| error.to_string())?);
        within.git_bytes(
            &["update-index", "-z", "--add", "--remove", "--stdin"],
            list,
        )?;
        let tree = within.git(&["write-tree"])?;
        let parent = within.resolve("HEAD").ok_or("its branch has no commit")?;
        let title = self.claimed["handoff"]["title"]
            .as_str()
            .unwrap_or_default();
        let title = Some(one_line(title)).filter(|title| !title.is_empty());
        let title = title.unwrap_or_else(|| format!("Work on issue {}", self.id.issue()));
        let message = format!("{title}\n\nHandoff-Id: {}\n", self.id);
        let mut words = vec!["commit-tree", &tree, "-p", &parent, "-m", &message];
        let begun = self.merge_begun(site.place);
        words.extend(begun.iter().flat_map(|other| ["-p", other]));
        let commit = self.as_author(within).git(&words)?;
        let said = format!("handoff work: {}", self.id);
        within.git(&["update-ref", "-m", &said, "HEAD", &commit, &parent])?;
        if begun.is_some() {
            within.git(&["merge", "--quit"])?;
        }
        Ok(())
    }

    /// Prints what an agent that sent its work on itself left uncommitted.
    pub(super) fn tell_left_behind(&self, site: &Site<'_>) {
        let changed = self.uncommitted(site);
        if !changed.is_empty() {
            let count = counted(changed.len(), "uncommitted file");
            (site.say)(format!(
                "{}: handed on, but its worktree has {count} that nobody else gets",
                self.id
            ));
        }
    }

    /// Whether the branch of the work has commits that the remote lacks.
    fn is_unpushed(&self, place: &Place) -> bool {
        let pushes = self.role.bounds.pushes && !self.only_looks && place.worktree.is_some();
        let remote = self.remote.as_deref().filter(|_| pushes);
        let name = format!("refs/heads/{}", self.branch());
        remote.is_some_and(|remote| {
            self.worktrees.has_branch(&self.branch())
                && !self.program.has_none_of_its_own(&name, remote)
        })
    }

    /// Pushes the worktree's branch, without force.
    pub(super) fn push(&self, site: &Site<'_>) -> Pushed {
        let is_pushed =
            self.role.bounds.pushes && !self.only_looks && site.place.worktree.is_some();
        let Some(remote) = self.remote.as_deref().filter(|_| is_pushed) else {
            return Pushed::Done;
        };
        let within = self.within(site.place);
        let Some(branch) = within.branch() else {
            return Pushed::Done;
        };
        if self.may_write(&branch).is_err() {
            return Pushed::Done;
        }
        let known = format!("refs/remotes/{remote}/{branch}");
        let head = within.resolve("HEAD");
        if head.is_some() && head == within.resolve(&known) {
            return Pushed::Done;
        }
        // That does not pass by itself.
        if let Err(why) = ensure_addresses_here() {
            return Pushed::Unreachable(why);
        }
        let mut last = String::new();
        for attempt in 0..TRIES {
            if attempt > 0 {
                thread::sleep(PAUSE);
            }
            // Run in the repository's own folder, since a remote's relative path is resolved from
            // there.
            match self.program.push(remote, &branch) {
                Ok(()) => return Pushed::Done,
                Err(why) if is_refusal(&why) => return Pushed::Refused(why),
                Err(why) => last = why,
            }
        }
        Pushed::Unreachable(last)
    }

    /// Pushes steps that were only recorded here, also the agent's own, which may have been made
    /// while the remote was unreachable. A step that sends unpushed code on stays here until the
    /// worker has pushed the code.
    pub(super) fn publish(&self, place: &Place, say: &dyn Fn(String)) {
        let Some(tracking) = &self.tracking else {
            return;
        };
        if self.is_unpushed(place) {
            let branch = self.branch();
            return say(format!("{}: {branch} is not on the remote yet", self.id));
        }
        // The remote is usually ahead: others write there.
        let here = format!("refs/heads/{}", self.ledger);
        if self.program.is_in_history(&here, tracking) {
            return;
        }
        let said = self
            .program
            .run_again(&self.actor, &["sync"], (TRIES, PAUSE));
        if said.exit != 0 {
            let why = said.message();
            say(format!(
                "{}: recorded here only: {why}; `git handoff sync`",
                self.id
            ));
        }
    }

    /// Variables that tell git in a worktree the absolute paths of remotes with relative ones,
    /// which git would resolve from the worktree.
    pub(super) fn relative_remotes(&self) -> Vec<(String, String)> {
        let Ok(clone) = Repository::open_here() else {
            return Vec::new();
        };
        let addresses = |name| clone.config_all(&format!("remote.{name}.url")).ok();
        let all = clone.remotes().into_iter().filter_map(addresses).flatten();
        let relative = all.filter(|url| url.starts_with("./") || url.starts_with("../"));
        let settings = relative.map(|url| {
            let whole = word(&self.program.folder().join(&url));
            (format!("url.{whole}.insteadOf"), url)
        });
        config_variables(settings, self.role.passes("GIT_CONFIG_COUNT"))
    }
}

impl Supervisor<'_> {
    /// Pushes what is only here: first the branches of the work, then steps.
    pub(super) fn publish(&mut self, output: &mut Output) -> Result<(), Failure> {
        let ledger = self.context.ledger(self.repository)?;
        let Some(beside) = ledger.beside_remote()? else {
            return Ok(());
        };
        let mut is_away = false;
        let remote = self.remote.clone();
        let pushes = self.plan.roles.iter().any(|role| role.bounds.pushes);
        if let Some(remote) = remote.filter(|_| pushes) {
            for (issue, branch) in self.worktrees.branches_begun() {
                let is_busy = self.running.values().any(|run| *run.id.issue() == issue);
                let name = format!("refs/heads/{branch}");
                let tip = self.repository.resolve(&name)?;
                let Some(tip) = tip.filter(|tip| self.pushed.get(&branch) != Some(tip)) else {
                    continue;
                };
                if is_busy {
                    continue;
                }
                if self.program.has_none_of_its_own(&name, &remote) {
                    self.pushed.insert(branch, tip);
                    continue;
                }
                // The branch of an ended issue may have been removed from the remote on purpose.
                let state = self.context.tip(self.repository)?.issue(&issue)?.issue()?;
                if state.is_some_and(|state| state.status != IssueStatus::Open) {
                    continue;
                }
                let told = match self.program.push(&remote, &branch) {
                    Ok(()) => format!("issue {issue}: {branch} is on {remote} now"),
                    Err(why) => {
                        is_away |= !is_refusal(&why);
                        format!(
                            "issue {issue}: {branch} can't be pushed: {}",
                            one_line(&why)
                        )
                    }
                };
                if self.told.insert(told.clone()) {
                    output.say(&told);
                }
            }
        }
        if beside.unpublished == 0 || is_away {
            return Ok(());
        }
        let agent = self.plan.roles.first().map(|role| role.agent.clone());
        let Some(agent) = agent.or_else(|| "worker".parse().ok()) else {
            return Ok(());
        };
        let worker = self.base.clone();
        let said = self.program.run(&Actor { agent, worker }, &["sync"]);
        if said.exit == 0 {
            let steps = counted(beside.unpublished, "step");
            output.say(&format!(
                "{steps} made here while {} was away: published",
                beside.remote
            ));
        } else {
            let told = format!("recorded here only: {}; `git handoff sync`", said.message());
            if self.told.insert(told.clone()) {
                output.say(&told);
            }
        }
        Ok(())
    }
}

/// Whether the remote answered with a refusal.
fn is_refusal(why: &str) -> bool {
    why.contains("rejected]") || why.contains("non-fast-forward") || why.contains("declined")
}
