//! Values for skeletons, from the ledger and the repository, by name.

use chrono::TimeDelta;
use handoff_base::Moment;
use handoff_base::ids::{AgentName, IssueKey};
use handoff_base::pointer::parts;
use handoff_base::text::counted;
use handoff_contract::FILL;
use handoff_git::Repository;
use handoff_ledger::{IssueFolder, LedgerError, Snapshot, base_branch, newest_code};
use handoff_model::planner::{Holder, shown_commit};
use handoff_model::{Filled, Issue, Question, Record, ReviewFinding, Task, TaskName, View};
use handoff_protocol::{BASE, FixFields, GivenFields, Protocol, TaskState};
use serde_json::{Map, Value, json};

use super::skeleton::Known;

/// The fact with the commit that merged the branch.
const MERGED: Filled = Filled::MergeSha;

/// The maximum number of commits in a skeleton.
const COMMITS: usize = 1000;

/// Gathers the known values for a contract that a worker of an agent is about to write.
///
/// Facts from the issue's contracts take precedence; the repository supplies the rest: the code
/// branch, its commits, the changed files, the merge commit, the worktree. Commits are counted if
/// the branch is in this clone. `branch` overrides the code branch.
///
/// # Errors
/// [`LedgerError`] when the issue can't be read.
pub fn known(
    repository: &Repository,
    protocol: &Protocol,
    (tip, key): (&Snapshot<'_>, &IssueKey),
    from: Holder<'_>,
    to: &AgentName,
    (branch, now): (Option<&str>, Moment),
) -> Result<Known, LedgerError> {
    let folder = &tip.issue(key)?;
    let issue = folder.issue()?;
    let parties = (from, to);
    let mut known = known_at_tip(repository, protocol, folder, issue.as_ref(), parties, now)?;
    if let Some(branch) = branch {
        known.insert("branch".to_owned(), json!(branch));
    }
    let known = with_current_branch(repository, (tip, key), known)?;
    let mut known = with_workspace(repository, known);
    let branch = known.get("branch").and_then(Value::as_str);
    let of_issue = issue.as_ref().map(|issue| (issue, protocol.definition()));
    known.base = base_branch(repository, of_issue, branch, None);
    let branch = known.get("branch").and_then(Value::as_str);
    let branch = branch.map(str::to_owned);
    let (Some(branch), Some(base)) = (branch, known.base.clone()) else {
        return Ok(known);
    };
    let mut known = on_branch(repository, folder, known, &branch, &base)?;
    let kinds = protocol.types_between(from.agent.as_str(), to.as_str());
    let mut claims = kinds.iter().filter_map(|kind| kind.claims.as_ref());
    if claims.any(|claims| claims.merge.is_some())
        && let Some(merge) = merge_of(repository, folder, &branch, &base)?
    {
        known.insert_new(MERGED, json!(merge));
    }
    Ok(known)
}

/// Adds the current branch as the code branch, if none is known and it is not another issue's.
///
/// # Errors
/// [`LedgerError`] when the issues can't be read.
pub fn with_current_branch(
    repository: &Repository,
    (tip, key): (&Snapshot<'_>, &IssueKey),
    mut known: Known,
) -> Result<Known, LedgerError> {
    if known.get("branch").is_none()
        && let Some(current) = repository.current_branch()
        && known.get(BASE).and_then(Value::as_str) != Some(&*current)
        && repository.base_branch().is_some_and(|base| base != current)
    {
        known.others = tip.others_on(&current, key)?;
        if known.others.is_empty() {
            known.insert_new(Filled::Branch, json!(current));
        }
    }
    Ok(known)
}

/// Adds the worktree in which the code branch is checked out, if none is known.
pub fn with_workspace(repository: &Repository, mut known: Known) -> Known {
    let is_known = known.get("workspace_path").is_some();
    let branch = known.get("branch").and_then(Value::as_str);
    let branch = branch.filter(|_| !is_known);
    let path = branch.and_then(|b| repository.checked_out_at(&format!("refs/heads/{b}")));
    if let Some(path) = path {
        let is_linked = path.join(".git").is_file();
        let kind = if is_linked { "worktree" } else { "in-place" };
        known.insert_new(Filled::WorkspaceType, json!(kind));
        known.insert_new(Filled::WorkspacePath, json!(path.to_string_lossy()));
    }
    known
}

/// Adds facts about the code branch from the repository.
fn on_branch(
    repository: &Repository,
    folder: &IssueFolder<'_>,
    mut known: Known,
    branch: &str,
    base: &str,
) -> Result<Known, LedgerError> {
    known.insert_new(Filled::Branch, json!(branch));
    let mut set = |name: Filled, value: Value| known.insert_new(name, value);
    if let Some(files) = repository.files_changed(base, branch)? {
        set(Filled::FilesChanged, json!(files));
    }
    let listed = |commits: Vec<handoff_git::CodeCommit>| -> Vec<Value> {
        let one = |c: handoff_git::CodeCommit| json!({ "sha": c.id, "message": c.subject });
        commits.into_iter().map(one).collect()
    };
    if let Some(commits) = repository.own_commits(base, branch, COMMITS)?
        && !commits.is_empty()
    {
        let ids = commits.iter().map(|commit| commit.id.to_string());
        set(Filled::CommitIds, ids.collect());
        set(Filled::Commits, json!(listed(commits)));
    }
    // Count the commits since the one that the issue's newest contract was sent with.
    let records = folder.records()?;
    if let Some(code) = records.iter().rev().find_map(|r| r.code.as_ref())
        && let Some(added) = repository.commits_between(&code.commit, branch, COMMITS)?
    {
        set(Filled::CommitsAdded, json!(added.len()));
    }
    Ok(known)
}

/// The commit that merged the issue's work into the base branch, if there is one.
fn merge_of(
    repository: &Repository,
    folder: &IssueFolder<'_>,
    branch: &str,
    base: &str,
) -> Result<Option<String>, LedgerError> {
    let records = folder.records()?;
    let first = records.iter().find_map(|record| record.code.as_ref());
    let newest = newest_code(repository, folder, Some(branch))?;
    let (Some(first), Some(newest)) = (first, newest) else {
        return Ok(None);
    };
    Ok(repository.merge_of(base, &first.commit, &newest.commit)?)
}

/// Like [`known`], but without history: only the ledger's tip and the remote's URL.
///
/// # Errors
/// [`LedgerError`] when the issue can't be read.
pub fn known_at_tip(
    repository: &Repository,
    protocol: &Protocol,
    folder: &IssueFolder<'_>,
    issue: Option<&Issue>,
    (by, to): (Holder<'_>, &AgentName),
    now: Moment,
) -> Result<Known, LedgerError> {
    let from = by.agent;
    let mut known = Known::default();
    let answers = issue.map_or_else(Vec::new, answers);
    for (key, value) in &answers {
        known.insert_answer(key, value.clone());
    }
    let mut set = |name: Filled, value: Value| known.insert_new(name, value);
    let key = folder.key();
    let number = key.as_str().parse::<u64>();
    set(
        Filled::Issue,
        number.map_or_else(|_| json!(key), |n| json!(n)),
    );
    set(Filled::Key, json!(key));
    set(Filled::From, json!(from));
    set(Filled::To, json!(to));
    for (name, agent) in [(Filled::FromPhase, from), (Filled::ToPhase, to)] {
        let phase = protocol.agent(agent.as_str()).and_then(|known| known.phase);
        if let Some(phase) = phase {
            set(name, json!(phase));
        }
    }
    set(Filled::Now, json!(now.rfc3339()));

    let held = held(folder, issue, by)?;
    if let Some(task) = task_of(issue, &held) {
        set(Filled::Task, json!(task.id));
        if let (Some(parent), Some(issue)) = (task.parent, issue) {
            for (name, value) in beside(issue, &parent, &task.id) {
                set(name, value);
            }
            set(Filled::ParentTask, json!(parent));
        }
    }
    if let [only] = &held[..] {
        set(Filled::Retries, json!(only.retries()));
    }
    let facts = issue.map(|issue| issue.known_facts(protocol.definition()));
    // A merge commit that a contract stated may be of an earlier round: take the repository's,
    // unless it was noted.
    let facts = facts.into_iter().flatten();
    let facts = facts.filter(|(name, fact)| *name != MERGED.as_str() || fact.note.is_some());
    let facts = facts.map(|(name, fact)| (name, fact.value.clone()));
    for (name, value) in answers.into_iter().chain(facts) {
        known.insert_fact(name, value);
    }
    let mut set = |name: Filled, value: Value| known.insert_new(name, value);
    let kinds = protocol.types_between(from.as_str(), to.as_str());
    // A sender that holds nothing goes on from its last completed handoff that nothing followed.
    let again = match (held.last(), issue) {
        (None, Some(issue)) => unfollowed(folder, issue, from)?,
        _ => None,
    };
    let basis = held.last().or(again.as_ref());
    let mut shown = kinds.iter();
    let reviewed = shown.find_map(|kind| shown_commit(kind, issue, basis));
    if let Some(issue) = issue {
        for fields in kinds.iter().filter_map(|kind| kind.fixes.as_ref()) {
            let open = issue.findings.iter().filter(|f| f.state.is_unanswered());
            let list: Vec<Value> = open.map(|finding| to_answer(fields, finding)).collect();
            if !list.is_empty() {
                set(Filled::Fixes, list.into());
            }
        }
        let asked = held.last().map_or(&[][..], |record| &record.missing);
        for fields in kinds.iter().filter_map(|kind| kind.given.as_ref()) {
            if !asked.is_empty() {
                set(Filled::Given, to_give(fields, asked));
            }
        }
        set(Filled::CycleTime, json!(duration(now - issue.opened_at)));
    }
    if let Some(url) = repository
        .remote_url("origin")
        .and_then(|url| web_address(&url))
    {
        set(Filled::IssueUrl, json!(format!("{url}/issues/{key}")));
    }
    let branch = known.get("branch").and_then(Value::as_str);
    let of_issue = issue.map(|issue| (issue, protocol.definition()));
    known.base = base_branch(repository, of_issue, branch, None);
    known.reviewed = reviewed;
    Ok(known)
}

/// The handoffs of an issue that a worker of an agent holds, the oldest first; those of all its
/// workers if the worker is unknown.
fn held(
    folder: &IssueFolder<'_>,
    issue: Option<&Issue>,
    by: Holder<'_>,
) -> Result<Vec<Record>, LedgerError> {
    let mut found = Vec::new();
    for open in issue.iter().flat_map(|issue| issue.held_by(by.agent)) {
        let record = folder.record(open.id.number())?;
        found.extend(record.filter(|record| by.worker.is_none() || by.holds(record)));
    }
    Ok(found)
}

/// The newest handoff that an agent completed and that nothing followed.
fn unfollowed(
    folder: &IssueFolder<'_>,
    issue: &Issue,
    agent: &AgentName,
) -> Result<Option<Record>, LedgerError> {
    for id in issue.unfollowed.iter().rev() {
        let record = folder.record(id.number())?;
        if let Some(record) = record.filter(|record| record.to == *agent) {
            return Ok(Some(record));
        }
    }
    Ok(None)
}

/// The task that a report is about: the first held one that was not broken down, since such a task
/// waits for its parts.
fn task_of(issue: Option<&Issue>, held: &[Record]) -> Option<TaskName> {
    let tasks = &issue?.tasks;
    let is_task = |record: &&Record| tasks.iter().any(|task| task.handoff == record.id);
    let held = || {
        held.iter()
            .filter(is_task)
            .filter_map(|record| record.task.as_ref())
    };
    let has_parts = |of: &TaskName| {
        tasks
            .iter()
            .any(|task| task.parent.as_ref() == Some(&of.id))
    };
    let whole = held().find(|task| !has_parts(task));
    whole.or_else(|| held().next()).cloned()
}

/// The tasks with the same parent, in the state after this one is completed.
fn beside(issue: &Issue, parent: &str, completes: &str) -> [(Filled, Value); 5] {
    let tasks = issue.tasks.iter();
    let all = tasks.filter(|task| task.parent.as_deref() == Some(parent));
    let is_done = |task: &&Task| task.state == TaskState::Completed || task.id == completes;
    let (done, left): (Vec<&Task>, Vec<&Task>) = all.clone().partition(is_done);
    let listed = |tasks: &[&Task]| {
        let names: Vec<&str> = tasks.iter().map(|task| task.id.as_str()).collect();
        json!(format!("[{}]", names.join(", ")))
    };
    [
        (Filled::Siblings, listed(&all.collect::<Vec<_>>())),
        (Filled::SiblingsComplete, listed(&done)),
        (Filled::SiblingsPending, listed(&left)),
        (Filled::CompletedCount, json!(done.len())),
        (Filled::RemainingCount, json!(left.len())),
    ]
}

/// The values that were asked for in an issue, the newest first: answers, and statements of later
/// contracts.
fn answers(issue: &Issue) -> Vec<(&str, Value)> {
    let newest = issue.answers.iter().rev();
    let values = newest.flat_map(|answer| {
        answer.by_key().filter_map(|(key, value)| {
            let is_outdated = answer.outdated.iter().any(|outdated| outdated == key);
            let value = if is_outdated {
                issue.facts.get(key)?.clone()
            } else {
                value
            };
            Some((key, value))
        })
    });
    values.collect()
}

/// A placeholder for the answer to a finding.
fn to_answer(fields: &FixFields, finding: &ReviewFinding) -> Value {
    let location = match &finding.location {
        Some(location) => location.clone(),
        None => to_fill("path and line of the fix"),
    };
    let mut entry = Value::Object(Map::new());
    set_at(&mut entry, fields.location.as_deref(), location.into());
    let what = to_fill(&format!("what was done about {}", finding.id));
    set_at(&mut entry, Some(&fields.text), what.into());
    set_at(
        &mut entry,
        fields.finding.as_deref(),
        finding.id.as_str().into(),
    );
    entry
}

/// Placeholders for answers to questions: a list, or an object by key.
fn to_give(fields: &GivenFields, asked: &[Question]) -> Value {
    let mark = |question: &Question| {
        let kind = question.kind.as_deref().map(|kind| format!(", {kind}"));
        let about = question.description.as_deref().unwrap_or("the answer");
        Value::from(to_fill(&format!("{about}{}", kind.unwrap_or_default())))
    };
    if fields.key.is_none() {
        let member = |question: &Question| (question.key.clone(), mark(question));
        return Value::Object(asked.iter().map(member).collect());
    }
    let entry = |question: &Question| {
        let mut entry = Value::Object(Map::new());
        let key = question.key.as_str().into();
        set_at(&mut entry, fields.key.as_deref(), key);
        set_at(&mut entry, fields.value.as_deref(), mark(question));
        entry
    };
    asked.iter().map(entry).collect()
}

/// A placeholder. Braces in the text would end it.
fn to_fill(about: &str) -> String {
    let about: String = about.chars().filter(|c| !"{}\n".contains(*c)).collect();
    format!("{FILL}: {about}}}}}")
}

/// Sets the value at a pointer of an object; missing members become objects.
pub(super) fn set_at(entry: &mut Value, at: Option<&str>, value: Value) {
    let Some(at) = at else { return };
    let mut here = entry;
    for part in parts(at) {
        here = &mut here[part.as_str()];
    }
    *here = value;
}

/// A duration in its two largest units: `2 days 4 hours`.
fn duration(span: TimeDelta) -> String {
    let minutes = span.num_minutes().max(0);
    let units = [
        (minutes / 1440, "day"),
        (minutes / 60 % 24, "hour"),
        (minutes % 60, "minute"),
    ];
    let shown: Vec<String> = units
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .take(2)
        .map(|(count, unit)| counted(count, unit))
        .collect();
    if shown.is_empty() {
        "0 minutes".to_owned()
    } else {
        shown.join(" ")
    }
}

/// The web page of a repository, from its remote's URL, without credentials.
fn web_address(remote: &str) -> Option<String> {
    let (host, path) = match remote.split_once("://") {
        Some((scheme, rest)) if ["https", "http", "ssh", "git"].contains(&scheme) => {
            let (authority, path) = rest.split_once('/')?;
            let host = authority.rsplit('@').next()?;
            let port_kept = scheme == "https" || scheme == "http";
            (
                if port_kept {
                    host
                } else {
                    host.split(':').next()?
                },
                path,
            )
        }
        Some(_) => return None,
        None => {
            let (authority, path) = remote.split_once(':')?;
            (authority.rsplit('@').next()?, path)
        }
    };
    let path = path.trim_end_matches('/').trim_end_matches(".git");
    let plain = |text: &str| {
        !text.is_empty() && !text.contains(|c: char| c.is_whitespace() || "<>\"".contains(c))
    };
    let usual = host.contains('.') && plain(host) && path.contains('/') && plain(path);
    usual.then(|| format!("https://{host}/{path}"))
}

#[cfg(test)]
mod tests {
    use super::{duration, web_address};
    use chrono::TimeDelta;

    #[test]
    fn durations_show_their_two_largest_units() {
        assert_eq!(
            duration(TimeDelta::minutes(2 * 1440 + 4 * 60 + 5)),
            "2 days 4 hours"
        );
        assert_eq!(duration(TimeDelta::minutes(61)), "1 hour 1 minute");
        assert_eq!(duration(TimeDelta::seconds(-5)), "0 minutes");
    }

    #[test]
    fn web_addresses_come_without_credentials() {
        let expected = Some("https://github.com/o/r".to_owned());
        for remote in [
            "https://user:secret@github.com/o/r.git",
            "git@github.com:o/r.git",
            "ssh://git@github.com:22/o/r",
        ] {
            assert_eq!(web_address(remote), expected, "{remote}");
        }
        for local in ["/srv/git/r.git", "../r", "file:///srv/r.git", "C:\\r"] {
            assert_eq!(web_address(local), None, "{local}");
        }
    }
}
