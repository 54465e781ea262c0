//! Composes contracts for `send` from known values, the command line and the editor.

use handoff::base::finding::{Finding, FindingCode};
use handoff::base::hint::Hint;
use handoff::base::ids::{AgentName, HandoffId, IssueKey, WorkerId};
use handoff::base::pointer::{escaped_part, parts};
use handoff::base::text::{counted, word};
use handoff::contract::Input;
use handoff::git::{CodeCommit, Repository};
use handoff::ledger::{DEFAULT_BRANCH, Overview, OverviewLimits, Rules, Snapshot, overview};
use handoff::model::branches::short_name;
use handoff::model::planner::Holder;
use handoff::model::{LeaseRefusal, StateRefusal, View, not_held_in, note_fact, review};
use handoff::protocol::{BRANCH, Protocol};
use handoff::templates::{Known, known, left_to_fill};
use serde_json::Value;

use super::draft::{Draft, Remarks, about_fields};
use super::fields::{Field, fields};
use super::settings::{NotTold, dotted, expected, is_in, shape_of};
use super::skeleton::{OF_THE_WORK, Wanted, before_work};
use crate::context::Context;
use crate::context::worker::holder;
use crate::context::writer::cancelled;
use crate::environment::now;
use crate::failure::{ErrorCode, Failure, hint};

/// How much is read to find what an agent holds.
const LOOK: OverviewLimits<'_> = OverviewLimits {
    records: 400,
    each: 100,
    after: None,
};

/// The issue of the handoff that an agent holds.
///
/// # Errors
/// A usage [`Failure`] if it holds none, or handoffs of several issues.
pub fn issue_held(
    context: &Context,
    repository: &Repository,
    tip: &Snapshot<'_>,
    agent: &AgentName,
) -> Result<IssueKey, Failure> {
    let (name, found) = work_of(context, repository, tip, agent)?;
    let held = found.held.first.iter().map(|held| held.id.issue());
    let mut issues: Vec<&IssueKey> = held.collect();
    issues.sort();
    issues.dedup();
    match issues[..] {
        [only] => Ok(only.clone()),
        [] => {
            let text =
                format!("{name} holds nothing here, so say which issue the contract is about");
            let claim = format!("`git handoff claim --next --as {name}` takes up what waits");
            if let Some(record) = tip.cancelled_under(&name)?.last() {
                let text = format!("{name} holds nothing here: {}", cancelled(record));
                return Err(Failure::usage(text).hint(claim));
            }
            let issue = "add --issue N";
            // The contract is most likely about the waiting handoff.
            Err(Failure::usage(text).hint(match found.waiting.count {
                0 => format!("{issue}; {claim}"),
                _ => format!("{claim}, and then send; or {issue}"),
            }))
        }
        _ => {
            let names: Vec<&str> = issues.into_iter().map(IssueKey::as_str).collect();
            let text = format!("{name} works on several issues: {}", names.join(", "));
            Err(Failure::usage(text).hint("say which with --issue"))
        }
    }
}

/// The only handoff that an agent's worker holds.
///
/// # Errors
/// A usage [`Failure`] if it holds none, or several.
pub fn handoff_held(
    context: &Context,
    repository: &Repository,
    tip: &Snapshot<'_>,
    agent: &AgentName,
) -> Result<HandoffId, Failure> {
    let (name, found) = work_of(context, repository, tip, agent)?;
    match &found.held.first[..] {
        [only] => Ok(only.id.clone()),
        [] => {
            let text = format!("{name} holds nothing here: say which handoff");
            let inbox = format!("`git handoff inbox --as {name}` lists its handoffs");
            Err(Failure::usage(text).hint(inbox))
        }
        several => {
            let ids: Vec<String> = several.iter().map(|held| held.id.to_string()).collect();
            let text = format!("{name} holds {} handoffs: say which", found.held.count);
            Err(Failure::usage(text).hint(ids.join(", ")))
        }
    }
}

/// What an agent's worker holds and can claim, and the agent's canonical name.
fn work_of(
    context: &Context,
    repository: &Repository,
    tip: &Snapshot<'_>,
    agent: &AgentName,
) -> Result<(AgentName, Overview), Failure> {
    let mut protocols = Vec::new();
    for name in tip.protocols()? {
        protocols.push(tip.rules(&name)?.protocol().clone());
    }
    protocols.retain(|protocol| protocol.agent(agent.as_str()).is_some());
    let knowing: Vec<&Protocol> = protocols.iter().collect();
    let known = knowing.iter().find_map(|p| p.agent(agent.as_str()));
    let name = known.map_or(agent, |known| &known.id);
    let worker = context.worker(repository)?;
    let found = overview(tip, holder(name, worker.as_ref()), &knowing, now()?, LOOK)?;
    Ok((name.clone(), found))
}

/// How many branches are named instead of one that is missing.
const MOST_BRANCHES: usize = 8;

/// How many commits of a branch that is checked out are looked at.
const MOST_COMMITS: usize = 50;

/// The name in templates of the code branch's commits.
const COMMITS: &str = "commits";

/// The name in templates of the commit that merged the work.
const MERGED: &str = "merge_sha";

/// What helps with wrong values.
const OTHER_VALUES: &str = "give other values with --set FIELD=VALUE";

/// Composes one contract.
pub struct Composer<'a> {
    repository: &'a Repository,
    rules: Rules<'a>,
    known: Known,
    wanted: Wanted<'a>,
    issue: &'a IssueKey,
    /// Whether the issue has a code branch.
    is_branch_known: bool,
    /// The branch that is checked out, if it is neither the issue's nor the base nor another issue's.
    elsewhere: Option<String>,
    /// Why the sender may not send, if it certainly does not hold the handoff.
    not_held: Option<LeaseRefusal>,
}

impl<'a> Composer<'a> {
    /// Gathers the known values.
    pub fn new(
        repository: &'a Repository,
        tip: &Snapshot<'a>,
        wanted: Wanted<'a>,
        issue: &'a IssueKey,
        worker: Option<&WorkerId>,
    ) -> Result<Self, Failure> {
        let folder = tip.issue(issue)?;
        let rules = wanted.rules(tip, &folder)?;
        let state = folder.issue()?;
        let wanted = Wanted {
            opens: state.is_none(),
            ..wanted
        };
        let branch = wanted.set.iter().find_map(|setting| setting.of("branch"));
        let (protocol, when) = (rules.protocol(), (branch, now()?));
        let (from, to) = (wanted.from.as_str(), wanted.to.as_str());
        let is_route = protocol.routes(from, to).next().is_some();
        let opens = protocol.routes(from, to).any(|route| route.opens);
        if state.is_none() && is_route && !opens {
            return Err(StateRefusal::not_opened(issue, protocol).into());
        }
        let from = Holder {
            agent: wanted.from,
            worker,
        };
        let known = known(repository, protocol, (tip, issue), from, wanted.to, when)?;
        let definition = protocol.definition();
        let fact = state
            .as_ref()
            .and_then(|issue| issue.fact(definition, BRANCH));
        let is_branch_known = fact.is_some();
        let is_apart = |here: &String| {
            let own = known.get("branch").and_then(Value::as_str).map(short_name);
            own != Some(here) && known.base.as_ref() != Some(here)
        };
        let mut elsewhere = repository.current_branch().filter(is_apart);
        if let Some(here) = &elsewhere
            && !tip.others_on(here, issue)?.is_empty()
        {
            elsewhere = None;
        }
        let not_held = match &state {
            Some(issue) => not_held_in(&folder, (issue, protocol), from, when.1)?,
            None => None,
        };
        Ok(Self {
            is_branch_known,
            elsewhere,
            not_held,
            repository,
            rules,
            known,
            wanted,
            issue,
        })
    }

    /// The complete contract.
    ///
    /// # Errors
    /// A [`Failure`] that lists what is missing.
    pub fn complete(&self) -> Result<String, Failure> {
        self.ensure_work_is_on_branch()?;
        let not_told = self.not_told()?;
        let made = self
            .wanted
            .complete(&self.rules, &self.known, not_told.as_ref());
        let made = made.map_err(|failure| self.with_wrong_values(failure, &self.known));
        Ok(made.map_err(|failure| self.with_claim(failure))?.text)
    }

    /// The contract with known and given values, and what is missing: the pointer and description
    /// of each value.
    ///
    /// # Errors
    /// A [`Failure`] if it can't be sent whatever the missing values are.
    pub fn so_far(&self) -> Result<(String, Vec<(String, String)>), Failure> {
        if let Some(refusal) = &self.not_held {
            return Err(refusal.clone().into());
        }
        self.ensure_work_is_on_branch()?;
        let made = self.wanted.so_far(&self.rules, &self.known)?;
        match self.not_told()? {
            Some(part) if part.is_about(&made.1) => Err(part.failure()),
            _ => Ok(made),
        }
    }

    /// The question for a value: its field's name, its type unless it is text, and its description.
    ///
    /// # Errors
    /// A [`Failure`] if the schema can't be read.
    pub fn question(&self, pointer: &str, about: &str) -> Result<String, Failure> {
        let path: Vec<String> = parts(pointer).collect();
        let shape = shape_of(&self.wanted.schema(&self.rules)?, &path);
        Ok(format!("{}{shape}: {about}", dotted(pointer)))
    }

    /// The contract, with values that depend on the work left to a later `send`.
    ///
    /// # Errors
    /// A [`Failure`] that lists what is missing.
    pub fn before_work(&self) -> Result<String, Failure> {
        let known = before_work(&self.known, self.rules.protocol());
        let made = self.wanted.complete(&self.rules, &known, None);
        let made = made.map_err(|failure| self.with_wrong_values(failure, &known));
        Ok(made.map_err(|failure| self.with_claim(failure))?.text)
    }

    /// The failure for an incomplete contract, with the faults of what it has.
    fn with_wrong_values(&self, mut failure: Failure, known: &Known) -> Failure {
        if failure.findings.is_empty() {
            return failure;
        }
        let Ok((text, _)) = self.wanted.so_far(&self.rules, known) else {
            return failure;
        };
        let input = Input::read(text.as_bytes());
        let reviewed = review(self.rules.protocol(), &self.rules, &input, Some(self.issue));
        let Ok(mut wrong) = reviewed.map(|review| review.findings) else {
            return failure;
        };
        self.name_fields(&mut wrong);
        let is_open = |at: &str| failure.findings.iter().any(|open| is_in(&open.path, at));
        wrong.retain(|found| {
            let is_unfilled = found.code == FindingCode::FieldUnfilled;
            let is_fault = found.is_error() && !found.code.is_gate();
            is_fault && !is_unfilled && !is_open(&found.path)
        });
        if wrong.is_empty() {
            return failure;
        }
        let others = self.other_values(&wrong);
        failure.findings.extend(wrong);
        let given = failure.hint.take().unwrap_or_default();
        failure.hint(given.and("; ").and(others).and(self.all_fields()))
    }

    /// The failure for an incomplete contract, unless its sender holds nothing.
    fn with_claim(&self, failure: Failure) -> Failure {
        match &self.not_held {
            Some(refusal) if failure.code == Some(ErrorCode::ContractRefused) => {
                Failure::from(refusal.clone()).findings(failure.findings)
            }
            _ => failure,
        }
    }

    /// Why the repository can't provide the values of the work: the base branch is unknown, or the
    /// code branch has no commits.
    fn not_told(&self) -> Result<Option<NotTold>, Failure> {
        let of_work = |names: &[&str]| self.wanted.places_of(&self.rules, &self.known, names);
        let pointers = of_work(&OF_THE_WORK)?;
        let depends_on = of_work(&[BRANCH])?.into_iter().next();
        let Some(branch) = self.known.get(BRANCH).and_then(Value::as_str) else {
            if let others @ Some(_) = self.branch_of_others()? {
                return Ok(others);
            }
            // Whoever names the branch need not list what is on it.
            return Ok(depends_on.is_some().then(|| NotTold {
                pointers,
                depends_on,
                why: String::new(),
                fix: String::new(),
            }));
        };
        if self.repository.code(branch).is_none() {
            return Ok(Some(NotTold {
                pointers,
                depends_on,
                why: self.repository.no_branch(branch),
                fix: self.other_branch(branch),
            }));
        }
        let Some(base) = &self.known.base else {
            let (why, fix) = self.base_as_branch(branch).unwrap_or_else(|| {
                (
                    format!(
                        "the base of {branch}, which it is merged into, is not known here: there is no origin/HEAD, main or master"
                    ),
                    "name it: `git config init.defaultBranch BRANCH`".to_owned(),
                )
            });
            return Ok(Some(NotTold {
                pointers,
                depends_on: None,
                why,
                fix,
            }));
        };
        if self.known.get(COMMITS).is_some() {
            return self.not_merged(branch, base);
        }
        let own = self.repository.own_commits(base, branch, 1)?;
        if !own.is_some_and(|own| own.is_empty()) {
            return Ok(None);
        }
        Ok(Some(NotTold {
            pointers: of_work(&[COMMITS, "commit_ids"])?,
            depends_on: None,
            why: format!("branch {branch} has no commits of its own yet"),
            fix: match self
                .repository
                .current_branch()
                .filter(|here| here != branch)
            {
                Some(here) if self.is_branch_known => {
                    let merge = format!("merge {}", word(&here));
                    let merge = match self.elsewhere_at(branch) {
                        Some(dir) => {
                            format!("`git -C {} {merge}`; {}", word(&dir), set_aside(&dir))
                        }
                        None => format!("`git switch {}` and `git {merge}`", word(branch)),
                    };
                    format!("commit the work on it first; what is on {here} comes with {merge}")
                }
                _ => "commit the work on it first, or name the right branch with --set branch=NAME"
                    .to_owned(),
            },
        }))
    }

    /// What to do about a branch that is not here.
    fn other_branch(&self, branch: &str) -> String {
        let mut here = self.repository.local_branches(MOST_BRANCHES);
        let base = self.known.base.as_deref();
        here.retain(|name| name != DEFAULT_BRANCH && Some(name.as_str()) != base);
        let make = format!("make it: `git switch -c {}`", word(branch));
        let fetch = "fetch it: `git fetch origin`; if nobody pushed it, ";
        let fetch = self.repository.remote_url("origin").map_or("", |_| fetch);
        if self.repository.is_without_commits() {
            "make the first: `git commit`".to_owned()
        } else if here.is_empty() {
            format!("{fetch}{make}")
        } else {
            let here = here.join(", ");
            format!("{fetch}name one that is there with --set branch=NAME ({here}), or {make}")
        }
    }

    /// Why the commit that merged the work is not known: nothing did yet, as far as is known here.
    fn not_merged(&self, branch: &str, base: &str) -> Result<Option<NotTold>, Failure> {
        let own = self.repository.own_commits(base, branch, 1)?;
        let is_apart = own.is_some_and(|own| !own.is_empty());
        if self.known.get(MERGED).is_some() || !is_apart {
            return Ok(None);
        }
        let has_remote = self.repository.remote_url("origin").is_some();
        let push = if has_remote { ", and push that" } else { "" };
        Ok(Some(NotTold {
            pointers: self.wanted.places_of(&self.rules, &self.known, &[MERGED])?,
            depends_on: None,
            why: format!("{branch} is not merged into {base} here yet"),
            fix: format!(
                "`git handoff gate {}`; if it exits 0, merge the commit that it approves: `git merge --no-ff COMMIT` on {base}{push}",
                self.issue
            ),
        }))
    }

    /// What is wrong with the base as the code branch, and what to do, if a branch is the base.
    fn base_as_branch(&self, branch: &str) -> Option<(String, String)> {
        let is_base = self.known.base.is_none()
            && self.repository.base_branch().as_deref() == Some(short_name(branch));
        is_base.then(|| {
            let name = if self.is_branch_known {
                let note = note_fact(self.rules.protocol(), self.issue, BRANCH);
                format!("have it noted: `{note}`")
            } else {
                "name it with --set branch=NAME".to_owned()
            };
            (
                format!("{branch} is the base, which work is merged into"),
                format!("put the work on a branch: `git switch -c NAME`, and {name}"),
            )
        })
    }

    /// Refuses to hand on the issue's branch while another one with work of its own, which may be
    /// the issue's, is checked out; unless the sender names the branch.
    fn ensure_work_is_on_branch(&self) -> Result<(), Failure> {
        let is_named = self.wanted.set.iter().any(|one| one.of("branch").is_some());
        let branch = self.known.get("branch").and_then(Value::as_str);
        let (Some(branch), Some(base), Some(here)) = (branch, &self.known.base, &self.elsewhere)
        else {
            return Ok(());
        };
        let places = [COMMITS, "commit_ids"];
        let lists_commits = || self.wanted.places_of(&self.rules, &self.known, &places);
        let Some(code) = self.repository.code(branch) else {
            return Ok(());
        };
        // A branch without commits is another fault.
        if is_named || self.known.get(COMMITS).is_none() || lists_commits()?.is_empty() {
            return Ok(());
        }
        let own = self.repository.own_commits(base, here, MOST_COMMITS)?;
        let is_lacking = |commit: &CodeCommit| {
            let ids = commit.id.parse().ok().zip(code.commit.parse().ok());
            ids.is_some_and(|(id, tip)| matches!(self.repository.is_in_history(id, tip), Ok(false)))
        };
        let own = own.unwrap_or_default();
        let commits = match own.iter().filter(|one| is_lacking(one)).count() {
            0 => return Ok(()),
            commits => counted(commits, "commit"),
        };
        let why = format!(
            "{here}, which is checked out here, has {commits} that {branch}, the branch of issue {}, lacks",
            self.issue
        );
        let take_over = match self.elsewhere_at(branch) {
            Some(dir) => hint!("`git -C {} merge {}` takes them over", dir, here),
            None => hint!(
                "`git switch {}` and `git merge {}` take them over",
                branch,
                here
            ),
        };
        let hint = hint!("nothing was written; ").and(take_over);
        Err(Failure::new(ErrorCode::ContractRefused, why)
            .hint(hint.and(hint!("; without them, add `--set branch={}`", branch))))
    }

    /// The other working tree in which a branch is checked out, where git refuses to switch to it.
    fn elsewhere_at(&self, branch: &str) -> Option<String> {
        let refname = format!("refs/heads/{}", short_name(branch));
        let dir = self.repository.checked_out_at(&refname)?;
        Some(dir.to_string_lossy().into_owned())
    }

    /// Why the current branch is not filled in, if it belongs to other issues.
    fn branch_of_others(&self) -> Result<Option<NotTold>, Failure> {
        let others: Vec<&str> = self.known.others.iter().map(IssueKey::as_str).collect();
        let Some(current) = self
            .repository
            .current_branch()
            .filter(|_| !others.is_empty())
        else {
            return Ok(None);
        };
        Ok(Some(NotTold {
            pointers: self
                .wanted
                .places_of(&self.rules, &self.known, &OF_THE_WORK)?,
            depends_on: None,
            why: format!(
                "{current}, which is checked out here, is the branch of issue {}",
                others.join(", ")
            ),
            fix: format!(
                "check out the branch of issue {}, or name it with --set branch=NAME",
                self.issue
            ),
        }))
    }

    /// Names fields in findings as `--set` does: the user has not seen the text that their lines
    /// refer to.
    pub fn name_fields(&self, findings: &mut [Finding]) {
        let found = self.wanted.type_and_root(&self.rules);
        let (Ok((_, root)), Ok(schema)) = (found, self.wanted.schema(&self.rules)) else {
            return;
        };
        let known = fields(&schema);
        // What `claim` asks for.
        let asked = Wanted {
            set: &[],
            ..self.wanted
        };
        let asked = asked.known_value(&self.rules, &self.known);
        let asked = asked.map_or_else(|_| Vec::new(), |value| left_to_fill(&value));
        for finding in findings {
            (finding.line, finding.column) = (None, None);
            if let Some(root) = &root {
                finding.path = pointer_of(&finding.path, root, &known);
            }
            let about = asked.iter().find(|(at, _)| *at == finding.path);
            if let (FindingCode::FieldPattern, Some((_, about))) = (finding.code, about) {
                finding.fix = Some(about.clone());
            }
        }
    }

    /// The failure for a refused contract that was composed here: the fix is `--set`, not a file.
    pub fn with_settings(&self, mut failure: Failure) -> Failure {
        self.name_fields(&mut failure.findings);
        if self.not_held.is_some() {
            return self.with_claim(failure);
        }
        if failure.code != Some(ErrorCode::ContractRefused) {
            return failure;
        }
        // There is no file to import.
        let is_of_file = |finding: &Finding| finding.code == FindingCode::ContractImportable;
        failure.findings.retain(|finding| !is_of_file(finding));
        let found = self.wanted.type_and_root(&self.rules);
        let (Ok(_), Ok(schema)) = (found, self.wanted.schema(&self.rules)) else {
            return failure;
        };
        let known = fields(&schema);
        let mut missing = Vec::new();
        for finding in &failure.findings {
            let path = parts(&finding.path).map(|name| match name.parse::<usize>() {
                Ok(_) => "/*".to_owned(),
                Err(_) => format!("/{}", escaped_part(&name)),
            });
            let path: String = path.collect();
            let field = known.iter().find(|field| field.path == path);
            if let (FindingCode::FieldMissing, Some(field)) = (finding.code, field) {
                missing.push((finding.path.clone(), field.about.replace('\n', " ")));
            }
        }
        let hint = if missing.is_empty() {
            self.other_values(&failure.findings)
        } else {
            hint!("give {}", expected(&missing))
        };
        failure.hint(hint.and(self.all_fields()))
    }

    /// How to give other values than those at fault.
    fn other_values(&self, wrong: &[Finding]) -> Hint {
        let protocol = self.rules.protocol();
        let kind = self.wanted.type_and_format(&self.rules);
        let key = kind
            .ok()
            .and_then(|(kind, _)| protocol.field(kind, |f| &f.issue));
        let is_key = |found: &Finding| key.is_some_and(|key| found.path == *key);
        let key = "give the issue another key with --issue";
        match (wrong.iter().any(is_key), wrong.iter().all(is_key)) {
            (true, true) => key.into(),
            (true, false) => Hint::from(key).and("; ").and(OTHER_VALUES),
            (false, _) => OTHER_VALUES.into(),
        }
    }

    /// The end of a hint that names the command which lists the contract's fields.
    fn all_fields(&self) -> Hint {
        let name = self.rules.protocol().name();
        let Ok((kind, _)) = self.wanted.type_and_root(&self.rules) else {
            return Hint::default();
        };
        hint!(
            "; `git handoff protocol show {} --type {}` lists the fields",
            name,
            kind
        )
    }

    /// The contract's draft.
    ///
    /// # Errors
    /// A [`Failure`] if the route has no such contract.
    pub fn new_draft(&self) -> Result<Draft, Failure> {
        let format = self.wanted.type_and_format(&self.rules)?.1;
        Ok(Draft::new(
            self.repository,
            self.issue,
            self.wanted.to,
            format,
        ))
    }

    /// The draft, its initial text, and remarks about its fields.
    ///
    /// # Errors
    /// A [`Failure`] if the route has no such contract, or the draft can't be read.
    pub fn draft(&self) -> Result<(Draft, String, Remarks), Failure> {
        if let Some(refusal) = &self.not_held {
            return Err(refusal.clone().into());
        }
        let made = self.wanted.write(&self.rules, &self.known)?;
        let draft = self.new_draft()?;
        let text = match draft.kept()? {
            Some(kept) => kept,
            None => made.text,
        };
        let fields = fields(&self.wanted.schema(&self.rules)?);
        let remarks = about_fields(&text, &fields);
        Ok((draft, text, remarks))
    }
}

/// How changes that a failed attempt left in a working tree make room for a merge there.
pub fn set_aside(dir: &str) -> String {
    format!(
        "what is uncommitted there goes aside first: `git -C {} stash -u`",
        word(dir)
    )
}

fn pointer_of(element: &str, root: &str, known: &[Field]) -> String {
    let within = element.strip_prefix('/').unwrap_or(element);
    let Some(within) = within.strip_prefix(root) else {
        return element.to_owned();
    };
    let (mut pointer, mut pattern) = (String::new(), String::new());
    for part in within.split('/').skip(1) {
        let (name, number) = match part.strip_suffix(']').and_then(|part| part.split_once('[')) {
            Some((name, number)) => (name, number.parse::<usize>().ok()),
            None => (part, None),
        };
        let is_list = known
            .iter()
            .any(|field| field.path == pattern && field.is_list());
        if !is_list {
            let name = escaped_part(name.trim_start_matches('@'));
            pointer += &format!("/{name}");
            pattern += &format!("/{name}");
        }
        if is_list || number.is_some() {
            pointer += &format!("/{}", number.unwrap_or(1).saturating_sub(1));
            pattern += "/*";
        }
    }
    pointer
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{fields, pointer_of};

    #[test]
    fn an_element_is_named_as_its_field() {
        let schema = json!({ "properties": {
            "branch": { "type": "string" },
            "steps": { "type": "array", "items": { "type": "string" } },
            "commits": { "type": "array", "items": { "properties": { "sha": { "type": "string" } } } },
        } });
        let known = fields(&schema);
        for (element, pointer) in [
            ("/handoff/branch", "/branch"),
            ("/handoff/steps/step[2]", "/steps/1"),
            ("/handoff/steps/step", "/steps/0"),
            ("/handoff/commits/commit[3]/@sha", "/commits/2/sha"),
            ("/handoff/note[2]/text", "/note/1/text"),
            ("/handoff", ""),
            ("/other/branch", "/other/branch"),
        ] {
            assert_eq!(pointer_of(element, "handoff", &known), pointer, "{element}");
        }
    }
}
