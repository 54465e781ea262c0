//! The newest base in the worktree of whoever merges. What can't be merged is no work for its agent:
//! it goes on as a conflict, with the files that it is in.

use handoff::base::ids::AgentName;
use handoff::base::text::{one_line, quoted};
use handoff::ledger::Snapshot;
use serde_json::Value;

use super::piece::{Outcome, PAUSE, Piece, Place, Site, TRIES};
use super::program::Program;

/// How many files in conflict are named.
const NAMED: usize = 50;

/// What a piece of work has to do with merges (`limits.turns` of its protocol).
#[derive(Clone, Debug, Default)]
pub(super) struct Merging {
    /// Whether its agent merges into the base.
    merges: bool,
    /// Whether it was handed on because of a conflict.
    is_conflict: bool,
    /// The contract that hands a conflict on.
    conflict: Option<Conflict>,
}

/// A contract about a conflict.
#[derive(Clone, Debug)]
struct Conflict {
    kind: String,
    to: String,
    /// Its fields that say that it is one, as `--set` has them.
    fields: Vec<(String, String)>,
    /// The list of what is wrong, and the field of an entry that says it.
    list: (String, String),
}

impl Merging {
    pub(super) fn of(tip: &Snapshot<'_>, claimed: &Value, agent: &AgentName) -> Self {
        let text = |at: &str| claimed.pointer(at).and_then(Value::as_str);
        let Ok(rules) = tip.rules(text("/record/protocol").unwrap_or_default()) else {
            return Self::default();
        };
        let protocol = rules.protocol();
        let limits = protocol.definition().limits.as_ref();
        let Some((limits, turns)) = limits.and_then(|all| Some((all, all.turns.as_ref()?))) else {
            return Self::default();
        };
        let round = turns.kept_through.as_ref();
        let round = round.and_then(|name| limits.rounds.get(name));
        let kind = round.and_then(|round| round.contracts.first());
        let conflict = kind.and_then(|kind| {
            let mut routes = protocol.routes_from(turns.agent.as_str());
            let raised = protocol.contract_type(kind)?.raises.as_ref()?;
            let fields = round.into_iter().flat_map(|round| &round.when);
            let fields = fields
                .filter_map(|(at, words)| Some((field(at), words.texts().first()?.to_owned())));
            Some(Conflict {
                kind: kind.clone(),
                to: routes
                    .find(|route| route.contracts.contains(kind))?
                    .to
                    .to_string(),
                fields: fields.collect(),
                list: (field(&raised.list), field(&raised.text)),
            })
        });
        let given = text("/record/contract_type").or(text("/handoff/contract_type"));
        Self {
            merges: turns.agent == *agent,
            is_conflict: kind.map(String::as_str) == given,
            conflict,
        }
    }
}

/// A JSON Pointer as `--set` has it.
fn field(pointer: &str) -> String {
    pointer.trim_start_matches('/').replace('/', ".")
}

impl Conflict {
    /// The fields of a contract about conflicts in these files.
    fn filled(&self, files: &[String], what: &str) -> Vec<String> {
        let (list, entry) = (&self.list.0, &self.list.1);
        let first = format!("{list}.0.");
        let mut all = Vec::new();
        for (at, file) in files.iter().take(NAMED).enumerate() {
            for (name, word) in &self.fields {
                match name.strip_prefix(&first) {
                    Some(name) => all.push(format!("{list}.{at}.{name}={word}")),
                    None if at == 0 => all.push(format!("{name}={word}")),
                    None => {}
                }
            }
            let more = files.len().saturating_sub(NAMED);
            let more = match more {
                1.. if at + 1 == NAMED => format!("; so do {more} more files"),
                _ => String::new(),
            };
            let file = quoted(file);
            all.push(format!("{list}.{at}.{entry}={file}: {what}{more}"));
        }
        all
    }
}

impl Piece {
    /// Brings the newest base into the worktree of whoever merges, and to the remote. Returns what
    /// became of the work where that ends it: there is a conflict.
    pub(super) fn bring_base(&self, site: &Site<'_>) -> Option<Outcome> {
        let remote = self.remote.as_deref();
        let base = self.base();
        if self.merging.is_conflict
            && let Some(remote) = remote
        {
            // Whoever resolves it merges what is there now.
            self.worktrees.refresh(remote, &base);
        }
        let is_clean = site.place.worktree.is_some() && !site.place.has_earlier_work;
        if !self.merging.merges || self.only_looks || !is_clean {
            return None;
        }
        let within = self.within(site.place);
        let theirs = self.worktrees.start_of(&base, remote);
        let at = |name: &str| within.git(&["rev-parse", "--verify", "--quiet", name]).ok();
        let (ours, theirs) = (at("HEAD")?, at(&format!("{theirs}^{{commit}}"))?);
        let lacks = within.git(&[
            "rev-list",
            "--count",
            "--max-count=1",
            &theirs,
            "--not",
            &ours,
        ]);
        let is_apart = within.git(&["symbolic-ref", "--quiet", "HEAD"]).is_err();
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
                // Before its agent looks at it: what is validated is what others can see.
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

    /// Hands a conflict on by the contract that the protocol has for it; its agent gets what can't be
    /// handed on so.
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
                let reason = format!("{named}; {}: {}", said.message(), said.hint());
                Some(self.block(&reason, None))
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

    /// The same program, which commits in the agent's name.
    pub(super) fn as_author(&self, within: &Program) -> Program {
        let agent = self.actor.agent.as_str();
        let email = format!("{agent}@handoff.invalid");
        within.with(&[
            ("GIT_AUTHOR_NAME".to_owned(), agent.to_owned()),
            ("GIT_AUTHOR_EMAIL".to_owned(), email),
        ])
    }

    /// The merge that an agent has begun in its worktree and not committed, as the second parent of
    /// what the worker commits.
    pub(super) fn merge_begun(&self, place: &Place) -> Option<String> {
        let words = ["rev-parse", "--verify", "--quiet", "MERGE_HEAD"];
        self.within(place).git(&words).ok()
    }
}

/// What a merge gives.
pub(super) enum Merged {
    /// This tree.
    Tree(String),
    /// Nothing: there are conflicts in these files.
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
