//! The changes of each commit, as data for programs that follow the ledger.

use handoff_base::ids::{AgentName, HandoffId, IssueKey};
use handoff_base::{Moment, ObjectId, to_second};
use handoff_git::{Change, Commit, MOST_ENTRIES, Repository, Shape, Tree};
use handoff_model::{
    Failure, Handoff, Issue, IssueSummary, Record, Request, TraceParent, Transition, Update,
    layout, record, recorded, trailers,
};
use handoff_protocol::State;
use schemars::JsonSchema;
use serde::Serialize;

use super::archive_step::{ArchiveStep, archive_step_of, changes_archive, step_changes};
use super::error::LedgerError;

/// A kind of change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "HappeningKind")]
pub enum Kind {
    /// A handoff was sent or changed its state.
    Transition,
    /// A handoff's record changed but not its state: a lease was extended.
    Record,
    /// An issue changed but none of its handoffs: it was reopened, paused or cancelled.
    Issue,
    /// A protocol was put in force.
    Protocol,
    /// A document that issues share was set.
    Document,
    /// Ended issues were archived, or an issue was restored.
    Archive,
    /// The ledger was created.
    Ledger,
    /// Anything else; `git handoff verify` reports more.
    Other,
}

/// A change that a commit made.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct Happening {
    /// `transition`: a handoff began or changed its state. `record`: its record changed, but not its
    /// state (a lease was extended). `issue`: the issue changed, but none of its handoffs (it was
    /// reopened, a decision was made). `protocol`, `document`: one came into force. `archive`: issues
    /// that ended were archived, or the issue was brought back. `ledger`: the beginning. `other`: not a
    /// ledger step, see `verify`.
    pub kind: Kind,
    /// When.
    pub at: Moment,
    /// The agent, or the person who ran the program.
    pub by: String,
    /// The commit's subject.
    pub subject: String,
    /// The handoff, after the commit; null if it is about none.
    pub handoff: Option<Handoff>,
    /// The issue, after the commit, if it is about no handoff; else null.
    pub issue: Option<IssueSummary>,
    /// What happened to the handoff: `send`, or an event of the lifecycle: `claim`, `complete`,
    /// `fail`, ….
    pub event: Option<&'static str>,
    /// The state before; null if it is new.
    pub from: Option<State>,
    /// The state after.
    pub to: Option<State>,
    /// Why, or what the answer is.
    pub reason: Option<String>,
    /// What went wrong.
    pub failure: Option<Failure>,
    /// The protocol's name, or the document's path.
    pub name: Option<String>,
    /// The [trace](observability.md#traces) that it was made in.
    pub traceparent: Option<TraceParent>,
}

impl Happening {
    /// The change that a commit itself describes.
    fn of_commit(kind: Kind, commit: &Commit) -> Self {
        let subject = commit.message.lines().next().unwrap_or_default();
        Self {
            kind,
            at: to_second(commit.author.at),
            by: commit.author.name.clone(),
            subject: subject.to_owned(),
            handoff: None,
            issue: None,
            event: None,
            from: None,
            to: None,
            reason: None,
            failure: None,
            name: None,
            traceparent: None,
        }
    }

    /// The issue that it is about.
    pub fn key(&self) -> Option<&IssueKey> {
        let of_handoff = self.handoff.as_ref().map(|handoff| &handoff.issue);
        of_handoff.or(self.issue.as_ref().map(|issue| &issue.key))
    }

    /// Whether this agent made the change, sent the handoff or receives it.
    pub fn concerns(&self, agent: &AgentName) -> bool {
        let mut handoffs = self.handoff.iter();
        self.by == agent.as_str()
            || handoffs.any(|handoff| handoff.from == *agent || handoff.to == *agent)
    }
}

/// The changes of a commit, at least one, ordered by handoff.
///
/// Handoffs' changes are in their records; an issue's are in the commit's message.
///
/// # Errors
/// [`LedgerError`] if an object can't be read.
pub fn happenings(repository: &Repository, commit: &Commit) -> Result<Vec<Happening>, LedgerError> {
    let parent = commit.parents.first();
    let before = parent.map(|&id| repository.commit(id)).transpose()?;
    let plain = |kind| Happening::of_commit(kind, commit);
    if let Some(before) = &before
        && changes_archive(repository, before.tree, commit.tree)?
    {
        return Ok(vec![of_archive(repository, before.tree, commit)?]);
    }
    let tree = Tree::new(repository, commit.tree);
    // Open entries duplicate the records, and a failure's context never changes.
    let closed =
        |path: &str| [layout::OPEN, layout::AWAITING].contains(&path) || layout::is_closed(path);
    let changes = tree.changes_since(
        before.map(|b| b.tree),
        Shape::undivided(closed),
        MOST_ENTRIES,
    )?;
    if parent.is_none() {
        return Ok(vec![plain(Kind::Ledger)]);
    }
    let mut found = Vec::new();
    for change in changes.iter().filter(|c| is_record(&c.path)) {
        let stored = |id: Option<ObjectId>| -> Result<Option<Record>, LedgerError> {
            id.map(|id| stored(repository, id, &change.path))
                .transpose()
        };
        let Some(new) = stored(change.new)? else {
            continue;
        };
        let known = stored(change.old)?.map_or(0, |old| old.transitions.len());
        let fresh = new.transitions.get(known..).unwrap_or_default();
        let happenings = fresh
            .iter()
            .map(|t| about(&new, plain(Kind::Transition), Some(t)));
        found.extend(happenings);
        if fresh.is_empty() {
            found.push(about(&new, plain(Kind::Record), None));
        }
    }
    // Also if handoffs only get new deadlines, as when an issue is resumed.
    let is_of_issue = changes.iter().any(|c| c.path.ends_with("/issue.json"));
    if is_of_issue && found.iter().all(|one| one.kind == Kind::Record) {
        let (one, is_resumed) = of_issue(&tree, repository, commit)?;
        if found.is_empty() || is_resumed {
            found = vec![one];
        }
    }
    if found.is_empty() {
        let mut other = plain(Kind::Other);
        if let Some(Change { path, .. }) = changes.first() {
            let mut parts = path.split('/');
            (other.kind, other.name) = match (parts.next(), parts.next()) {
                (Some(layout::PROTOCOLS), Some(name)) => (Kind::Protocol, Some(name.to_owned())),
                (Some(layout::DOCUMENTS), Some(_)) => (Kind::Document, Some(path.clone())),
                _ => (Kind::Other, None),
            };
        }
        found.push(other);
    }
    Ok(found)
}

/// The event of a step that concerns only the issue, and whether it resumed it.
fn of_issue(
    tree: &Tree<'_>,
    repository: &Repository,
    commit: &Commit,
) -> Result<(Happening, bool), LedgerError> {
    let mut one = Happening::of_commit(Kind::Issue, commit);
    let issue = { trailers(&commit.message).into_iter() }
        .find_map(|(name, value)| (name == "Issue").then(|| value.parse::<IssueKey>().ok())?);
    let step = recorded(&commit.message).map(|step| step.request);
    let (Some(issue), Ok(Request::Update(update))) = (issue, step) else {
        one.kind = Kind::Other;
        return Ok((one, false));
    };
    let texts = update.texts();
    one.reason = texts.last().map(|&why| why.to_owned());
    match update.handoff() {
        Some(number) => {
            let path = layout::record_file(&HandoffId::new(issue, number));
            let record: Option<Record> = stored_at(repository, tree, &path)?;
            one.handoff = record.map(|record| Handoff::new(&record, one.at));
        }
        None => one.issue = issue_at(repository, tree, &issue)?,
    }
    Ok((one, matches!(update, Update::Reopen { .. })))
}

fn issue_at(
    repository: &Repository,
    tree: &Tree<'_>,
    key: &IssueKey,
) -> Result<Option<IssueSummary>, LedgerError> {
    let issue: Option<Issue> = stored_at(repository, tree, &layout::issue_file(key))?;
    Ok(issue.as_ref().map(IssueSummary::from))
}

fn stored_at<T: handoff_model::record::Stored>(
    repository: &Repository,
    tree: &Tree<'_>,
    path: &str,
) -> Result<Option<T>, LedgerError> {
    match tree.entry(path)? {
        Some((_, id)) => stored(repository, id, path).map(Some),
        None => Ok(None),
    }
}

/// The change of a commit that changes the archive.
fn of_archive(
    repository: &Repository,
    before: ObjectId,
    commit: &Commit,
) -> Result<Happening, LedgerError> {
    let changes = step_changes(repository, before, commit.tree)?;
    let of_commit = |kind| Happening::of_commit(kind, commit);
    Ok(match archive_step_of(&changes) {
        Some(ArchiveStep::Archive(_)) => of_commit(Kind::Archive),
        Some(ArchiveStep::Unarchive(key)) => Happening {
            issue: issue_at(repository, &Tree::new(repository, commit.tree), &key)?,
            ..of_commit(Kind::Archive)
        },
        _ => of_commit(Kind::Other),
    })
}

fn stored<T: handoff_model::record::Stored>(
    repository: &Repository,
    id: ObjectId,
    path: &str,
) -> Result<T, LedgerError> {
    record::read(&repository.blob(id)?).map_err(|e| LedgerError::stored(path, e))
}

fn is_record(path: &str) -> bool {
    let name = path
        .strip_prefix("issues/")
        .and_then(|rest| rest.rsplit('/').next());
    let number = name.and_then(|name| name.strip_suffix(".json"));
    number.is_some_and(|n| n.len() >= 4 && n.bytes().all(|b| b.is_ascii_digit()))
}

fn about(record: &Record, mut happening: Happening, transition: Option<&Transition>) -> Happening {
    happening.handoff = Some(Handoff::new(record, happening.at));
    let (from, to) = (Some(record.state), Some(record.state));
    (happening.from, happening.to) = (from, to);
    if let Some(transition) = transition {
        happening.at = transition.at;
        happening.by = transition.by.to_string();
        happening.event = Some(
            transition
                .event
                .map_or("send", handoff_protocol::Event::as_str),
        );
        (happening.from, happening.to) = (transition.from, Some(transition.to));
        happening.reason.clone_from(&transition.reason);
        happening.failure.clone_from(&transition.failure);
        happening.traceparent = transition.traceparent;
    }
    happening
}

/// Why history can't be followed from a commit.
#[derive(Debug, thiserror::Error)]
pub enum FollowError {
    /// The commit is not in the branch's history.
    #[error("commit {0} is not in the branch's history")]
    NotInHistory(ObjectId),
    /// The clone is shallow.
    #[error("this clone does not have the ledger's history before commit {0}")]
    CutOff(ObjectId),
    /// It can't be read.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
}

/// The commits after one, or all, up to another, oldest first.
///
/// # Errors
/// [`FollowError`] if the branch has no such history.
pub fn commits_after(
    repository: &Repository,
    from: Option<ObjectId>,
    tip: ObjectId,
) -> Result<Vec<ObjectId>, FollowError> {
    let mut commits = Vec::new();
    for id in repository.first_parents(tip) {
        let id = id.map_err(LedgerError::from)?;
        if Some(id) == from {
            commits.reverse();
            return Ok(commits);
        }
        commits.push(id);
    }
    if let Some(&first) = commits.last()
        && repository.commit(first).map_err(LedgerError::from)?.cut_off
    {
        return Err(FollowError::CutOff(first));
    }
    if let Some(from) = from {
        return Err(FollowError::NotInHistory(from));
    }
    commits.reverse();
    Ok(commits)
}
