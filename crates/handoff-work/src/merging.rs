//! Merges the newest base in the worktree of an agent that merges. A conflict is not that agent's
//! task: it is sent on, with the conflicting files.

use handoff::base::text::{one_line, quoted};
use handoff::protocol::RunFailure;

use super::piece::{Outcome, PAUSE, Piece, Place, Site, TRIES};
use super::program::Program;
use super::turn::NAMED;

impl Piece {
    /// Merges the newest base into the worktree of an agent that merges, and pushes. Returns the
    /// result of the work if a conflict ends it.
    pub(super) fn bring_base(&self, site: &Site<'_>) -> Option<Outcome> {
        let remote = self.remote.as_deref();
        let base = self.base();
        // A clean worktree came with the newest base.
        let is_clean = site.place.worktree.is_some() && !site.place.has_earlier_work;
        if self.merging.is_conflict
            && !is_clean
            && let Some(remote) = remote
        {
            // The agent that resolves the conflict merges the newest base.
            self.worktrees.refresh(remote, &base);
        }
        if !self.merging.merges || self.only_looks || !is_clean {
            return None;
        }
        let within = self.within(site.place);
        let theirs = self.worktrees.known_start(&base, remote);
        let theirs = format!("{theirs}^{{commit}}");
        let words = ["rev-parse", "--verify", "--quiet", &theirs];
        let (ours, theirs) = (within.resolve("HEAD")?, within.git(&words).ok()?);
        let lacks = within.git(&[
            "rev-list",
            "--count",
            "--max-count=1",
            &theirs,
            "--not",
            &ours,
        ]);
        let is_apart = within.branch().is_none();
        if is_apart || lacks.is_ok_and(|lacks| lacks == "0") {
            return None;
        }
        match within.merged(&ours, &theirs) {
            Ok(Merged::Tree(tree)) => {
                let message = format!("Merge {base} into {}", self.branch());
                if let Err(why) = self.commit_tree(&within, &tree, &[&ours, &theirs], &message) {
                    (site.say)(format!(
                        "{}: {base} is not merged into its worktree: {}",
                        self.id,
                        one_line(&why)
                    ));
                    return None;
                }
                // Push before the agent starts: what it validates must be visible to others.
                self.push(site);
                None
            }
            Ok(Merged::Conflicts(files)) => self.hand_conflict_on(site, &files, (&ours, &theirs)),
            Err(why) => {
                let why = one_line(&why);
                (site.say)(format!("{}: {base} can't be merged here: {why}", self.id));
                None
            }
        }
    }

    /// Sends a conflict on with the protocol's contract for conflicts. `None` if that is
    /// impossible: the agent gets the work with the conflict.
    fn hand_conflict_on(
        &self,
        site: &Site<'_>,
        files: &[String],
        (ours, theirs): (&str, &str),
    ) -> Option<Outcome> {
        let conflict = self.merging.conflict.as_ref()?;
        let short = |id: &str| id.chars().take(10).collect::<String>();
        let (base, branch) = (self.base(), self.branch());
        let what = format!(
            "{branch} at {} conflicts with {base} at {}; merge {base} into it and resolve that",
            short(ours),
            short(theirs)
        );
        let (issue, token) = (
            self.id.issue().to_string(),
            self.claimed["handoff"]["token"].to_string(),
        );
        let fields = conflict.filled(files, &what);
        let mut words = vec!["send", "--issue", &issue, "--to", &conflict.to];
        words.extend(["--type", &conflict.kind, "--token", &token]);
        words.extend(fields.iter().flat_map(|field| ["--set", field]));
        let within = self.within(site.place);
        let said = within.run_again(&self.actor, &words, (TRIES, PAUSE));
        let named: Vec<String> = files.iter().take(NAMED).map(|file| quoted(file)).collect();
        let named = format!("conflicts with {base}: {}", named.join(", "));
        match said.exit {
            0 | 8 => {
                (site.say)(format!("{}: {named}", self.id));
                Some(Outcome::HandedOn(Vec::new()))
            }
            5 => Some(Outcome::Lost(said.message().to_owned())),
            _ if said.may_pass() => Some(self.kept(&said)),
            _ if said.is_at_limit() => {
                let why = format!("{named}; {}: {}", said.message(), said.hint());
                Some(self.give_up(RunFailure::NeedsPerson, why, None))
            }
            _ => {
                let why = said.message();
                (site.say)(format!("{}: {named}; its agent sees to it: {why}", self.id));
                None
            }
        }
    }

    /// Commits a tree in the agent's name, and checks it out on the branch.
    fn commit_tree(
        &self,
        within: &Program,
        tree: &str,
        parents: &[&str],
        message: &str,
    ) -> Result<(), String> {
        let message = format!("{message}\n\nHandoff-Id: {}\n", self.id);
        let mut words = vec!["commit-tree", tree, "-m", &message];
        words.extend(parents.iter().flat_map(|parent| ["-p", parent]));
        let commit = self.as_author(within).git(&words)?;
        within
            .git(&["reset", "--quiet", "--keep", &commit])
            .map(drop)
    }

    /// A program that commits with the agent as author.
    pub(super) fn as_author(&self, within: &Program) -> Program {
        let agent = self.actor.agent.as_str();
        let email = format!("{agent}@handoff.invalid");
        within.with(&[
            ("GIT_AUTHOR_NAME".to_owned(), agent.to_owned()),
            ("GIT_AUTHOR_EMAIL".to_owned(), email),
        ])
    }

    /// The commit of a merge that an agent began in its worktree and did not commit: the second
    /// parent of the worker's commit.
    pub(super) fn merge_begun(&self, place: &Place) -> Option<String> {
        let words = ["rev-parse", "--verify", "--quiet", "MERGE_HEAD"];
        self.within(place).git(&words).ok()
    }
}

/// The result of a merge.
pub(super) enum Merged {
    /// The merged tree, which has no conflicts.
    Tree(String),
    /// Conflicts in these files.
    Conflicts(Vec<String>),
}

impl Program {
    /// Merges two commits without touching a file.
    fn merged(&self, ours: &str, theirs: &str) -> Result<Merged, String> {
        let words = ["merge-tree", "--write-tree", "--name-only", "--no-messages"];
        let words = [&words[..], &["-z", ours, theirs]].concat();
        let output = self.git_output(&words)?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let mut parts = text
            .split('\0')
            .map(str::trim)
            .filter(|part| !part.is_empty());
        let tree = parts.next().unwrap_or_default().to_owned();
        match output.status.code() {
            Some(0) => Ok(Merged::Tree(tree)),
            Some(1) => Ok(Merged::Conflicts(parts.map(str::to_owned).collect())),
            _ => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        }
    }
}
