//! Whether `origin` has the code that other agents continue: as this clone knows it, else by asking
//! it.

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use handoff_base::ids::{AgentName, IssueKey};
use handoff_base::text::word;
use handoff_base::{Code, ObjectId};
use handoff_git::{Patience, Pushed, Remote, RemoteError, Repository};
use handoff_model::branches::{BranchContext, branch_for_agents};
use handoff_model::{Record, View};
use handoff_protocol::Protocol;
use schemars::JsonSchema;
use serde::Serialize;

use super::error::LedgerError;
use super::ledger::Ledger;
use super::session::Session;
use super::snapshot::Snapshot;

/// How long `origin` may take to answer.
const LONGEST: Duration = Duration::from_secs(10);

/// An interrupt flag that is never set.
static NEVER: AtomicBool = AtomicBool::new(false);

/// Whether `origin` has a commit of a code branch.
pub(super) enum OnOrigin {
    /// `origin` has it: on its branch, or merged.
    There,
    /// `origin` lacks it, for this reason.
    Not(String),
    /// Unknown, for this reason.
    Unknown(String),
}

/// An open issue's code that is only here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct UnpushedCode {
    /// The issue.
    pub issue: IssueKey,
    /// Its branch.
    pub branch: String,
    /// How many commits of it `origin` lacks.
    pub commits: usize,
    /// The command that pushes it.
    #[serde(skip)]
    pub push: String,
    /// Whether `origin` lacks the commit that was handed on, not only later ones.
    #[serde(skip)]
    pub was_handed_on: bool,
}

/// What became of code that was handed on offline, when its step was published.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CodePush {
    /// its branch
    pub branch: String,
    /// why `origin`, or a hook, refused it
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

impl Ledger<'_> {
    /// Before steps are pushed: pushes the code that they hand on and that `origin` lacks, by the
    /// rules of `send`, so that nobody gets work without its code.
    pub(super) fn push_code_of(
        &self,
        session: &Session,
        (steps, there): (ObjectId, Option<ObjectId>),
        pushed: &mut Vec<CodePush>,
    ) -> Result<(), LedgerError> {
        let (repository, tip) = (self.repository(), self.at(steps)?);
        for UnpushedCode { issue, branch, .. } in self
            .code_only_here(&tip)?
            .into_iter()
            .filter(|one| one.was_handed_on)
        {
            if pushed.iter().any(|code| code.branch == branch) {
                continue;
            }
            let last = self.steps_beside(steps, there, &issue)?;
            let Some((record, commit)) = handed_on_in(&tip, &issue, last, &branch)? else {
                continue;
            };
            let tracked = repository.on_origin(&branch);
            let Ok(now) = asked(repository, &branch) else {
                continue;
            };
            if now.is_none_or(|now| repository.has(now))
                && goes_on(repository, tracked, now)?
                && is_below(repository, now, commit)?
                && self.is_for_agents(&tip, (&issue, &branch), None, session.is_run)?
            {
                let refused = push(repository, (&branch, commit), &record.from).err();
                pushed.push(CodePush { branch, refused });
            }
        }
        Ok(())
    }

    /// Whether agents may write to a branch, so that it can be pushed for them: it is checked out in
    /// this working tree, or not named after another issue. In a run of `work`, an agent could name
    /// a branch of the user, so there it must be named after the issue.
    pub(super) fn is_for_agents(
        &self,
        snapshot: &Snapshot<'_>,
        (issue, branch): (&IssueKey, &str),
        base: Option<&str>,
        is_run: bool,
    ) -> Result<bool, LedgerError> {
        let repository = self.repository();
        let patterns = snapshot.branch_patterns()?;
        let default = repository.base_branch();
        let context = BranchContext {
            issue,
            ledger_branch: self.branch(),
            default_branch: default.as_deref(),
            base,
            patterns: &patterns,
            made_here: repository.current_branch().as_deref() == Some(branch)
                || !is_run && patterns.issue(branch).is_none(),
        };
        Ok(branch_for_agents(branch, &context).is_ok())
    }

    /// The code of open issues that is only here, in a shared ledger.
    ///
    /// # Errors
    /// [`LedgerError`] if the ledger or the repository can't be read.
    pub fn unpushed_code(&self, tip: &Snapshot<'_>) -> Result<Vec<UnpushedCode>, LedgerError> {
        if self.is_shared() {
            self.code_only_here(tip)
        } else {
            Ok(Vec::new())
        }
    }

    fn code_only_here(&self, tip: &Snapshot<'_>) -> Result<Vec<UnpushedCode>, LedgerError> {
        let repository = self.repository();
        let mut only_here = repository.only_here()?;
        only_here.retain(|(name, _)| name != self.branch());
        let mut found = Vec::new();
        let open = if only_here.is_empty() {
            Vec::new()
        } else {
            tip.open()?
        };
        for entry in open {
            let Some(code) = tip.open_record(&entry)?.code else {
                continue;
            };
            let own = only_here.iter().position(|(name, _)| *name == code.branch);
            if let Some((branch, commits)) = own.map(|at| only_here.swap_remove(at)) {
                found.push(UnpushedCode {
                    issue: entry.id.issue().clone(),
                    push: push_command(repository, &branch)?,
                    was_handed_on: match code.commit.parse::<ObjectId>() {
                        Ok(sent) if repository.has(sent) => match repository.on_origin(&branch) {
                            Some(there) => !repository.is_in_history(sent, there)?,
                            None => true,
                        },
                        _ => false,
                    },
                    branch,
                    commits,
                });
            }
        }
        Ok(found)
    }
}

/// The newest of an issue's last handoffs that hands on commits of this branch as their author, and
/// the commit. A merged branch is not restored.
fn handed_on_in(
    tip: &Snapshot<'_>,
    issue: &IssueKey,
    last: usize,
    branch: &str,
) -> Result<Option<(Record, ObjectId)>, LedgerError> {
    let folder = tip.issue(issue)?;
    let Some(issue) = folder.issue()? else {
        return Ok(None);
    };
    let rules = tip.rules(issue.protocol.as_str())?;
    let protocol = rules.protocol();
    let facts = issue.known(protocol.definition());
    let mut merged = protocol.definition().merge_facts();
    if merged.any(|fact| facts.contains_key(fact)) {
        return Ok(None);
    }
    for number in (1..=issue.handoffs).rev().take(last) {
        let Some(record) = folder.record(number)? else {
            continue;
        };
        let kind = protocol.contract_type(&record.contract_type);
        let is_review = kind.is_none_or(|kind| kind.reviews.is_some());
        let code = record.code.as_ref().filter(|code| code.branch == branch);
        if let Some(commit) = code.and_then(|code| code.commit.parse().ok())
            && !is_review
        {
            return Ok(Some((record, commit)));
        }
    }
    Ok(None)
}

/// Whether `origin`'s branch was not deleted or rewritten since this clone saw it.
pub(super) fn goes_on(
    repository: &Repository,
    tracked: Option<ObjectId>,
    there: Option<ObjectId>,
) -> Result<bool, LedgerError> {
    Ok(match (tracked, there) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some(tracked), Some(there)) => repository.is_in_history(tracked, there)?,
    })
}

/// Whether a push from `there` to a commit is a fast-forward.
pub(super) fn is_below(
    repository: &Repository,
    there: Option<ObjectId>,
    commit: ObjectId,
) -> Result<bool, LedgerError> {
    Ok(match there {
        Some(there) => repository.is_in_history(there, commit)?,
        None => true,
    })
}

/// The command that pushes a branch to `origin`, as far as this clone knows.
///
/// # Errors
/// [`LedgerError`] if the repository can't be read.
pub(super) fn push_command(repository: &Repository, branch: &str) -> Result<String, LedgerError> {
    let there = repository.on_origin(branch);
    Ok(match repository.local_branch(branch) {
        Some(tip) => repository.push_command(branch, tip, there)?,
        None => format!("git push origin {}", word(branch)),
    })
}

/// Asks `origin` for a branch's commit, and fetches it with its history unless the clone is
/// shallow. No ref moves.
///
/// # Errors
/// [`RemoteError`] if `origin` is unreachable.
pub(super) fn asked(
    repository: &Repository,
    branch: &str,
) -> Result<Option<ObjectId>, RemoteError> {
    let remote = Remote::new(repository, "origin", &format!("refs/heads/{branch}"));
    let patience = patience();
    let tip = remote.tip(&patience)?;
    if let Some(tip) = tip
        && !repository.has(tip)
        && !repository.is_shallow()
    {
        remote.bring(false, &patience)?;
    }
    Ok(tip)
}

fn patience() -> Patience<'static> {
    Patience {
        deadline: Instant::now().checked_add(LONGEST),
        interrupted: &NEVER,
    }
}

/// Pushes the commit of a code branch to `origin` for an agent, without force. No local branch
/// moves.
///
/// # Errors
/// Why `origin`, or a hook, refused it.
pub(super) fn push(
    repository: &Repository,
    (branch, commit): (&str, ObjectId),
    agent: &AgentName,
) -> Result<(), String> {
    let remote = Remote::new(repository, "origin", &format!("refs/heads/{branch}"));
    let patience = patience();
    match remote.push_code(commit, agent.as_str(), &patience) {
        Ok(Pushed::Done | Pushed::Already) => Ok(()),
        Ok(Pushed::Behind) => Err("origin's branch moved".to_owned()),
        Err(error) => Err(match &error {
            RemoteError::Refused { message } => format!("{error}: {}", message.join("; ")),
            _ => error.to_string(),
        }),
    }
}

/// Whether `origin` has the commit on a code branch or its base. With `anew`, the branch is looked
/// up on `origin` even if the tracking ref has the commit.
pub(super) fn on_origin(
    repository: &Repository,
    code: &Code,
    base: Option<&str>,
    anew: bool,
) -> OnOrigin {
    let Ok(commit) = code.commit.parse::<ObjectId>() else {
        return OnOrigin::Not("its id is abbreviated; give the full one".to_owned());
    };
    let has = |tip: Option<ObjectId>| {
        tip.is_some_and(|tip| {
            let are_here = || repository.has(tip) && repository.has(commit);
            tip == commit || are_here() && repository.is_in_history(commit, tip).unwrap_or_default()
        })
    };
    let known = |branch: &str| has(repository.on_origin(branch));
    if base.is_some_and(known) || !anew && known(&code.branch) {
        return OnOrigin::There;
    }
    let branch = &code.branch;
    match asked(repository, branch) {
        Ok(tip) if has(tip) => OnOrigin::There,
        Ok(Some(tip)) if !repository.has(tip) => OnOrigin::Unknown(format!(
            "origin has {branch} at {}, whose history is not here",
            tip.short()
        )),
        Ok(Some(tip)) => OnOrigin::Not(lacks(branch, tip)),
        Ok(None) => match base.map(|base| asked(repository, base)) {
            Some(Ok(tip)) if has(tip) => OnOrigin::There,
            _ => OnOrigin::Not(no_branch(branch)),
        },
        Err(error) => OnOrigin::Unknown(format!("origin can't be asked: {error}")),
    }
}

/// Why `origin`'s branch lacks a commit that was handed on.
fn lacks(branch: &str, tip: ObjectId) -> String {
    format!(
        "origin has {branch} at {}, without it: the branch was rewritten, or the commit was never pushed",
        tip.short()
    )
}

/// Why a fetch of its branch can't bring code that was handed on.
pub(super) enum Gone {
    /// `origin` has the branch at this commit, to which no push can bring the code, as far as is
    /// known here: it was rewritten.
    Rewritten(ObjectId),
    /// `origin` has no such branch.
    NoBranch,
}

impl Gone {
    pub(super) fn text(&self, branch: &str) -> String {
        match self {
            Self::Rewritten(tip) => lacks(branch, *tip),
            Self::NoBranch => no_branch(branch),
        }
    }
}

/// How code comes to `origin` that only its author has.
pub(super) fn push_by_author(code: &Code) -> String {
    let (commit, branch) = (&code.commit, &code.branch);
    format!("whoever has it pushes it: `git push origin {commit}:refs/heads/{branch}`")
}

fn no_branch(branch: &str) -> String {
    format!("origin has no branch {branch}")
}

/// Whether code is gone from `origin`, which is asked; nothing is fetched: whoever approves reads
/// what comes here.
pub(super) fn gone(repository: &Repository, code: &Code) -> Option<Gone> {
    let commit = code.commit.parse::<ObjectId>().ok()?;
    let remote = Remote::new(repository, "origin", &format!("refs/heads/{}", code.branch));
    let Some(tip) = remote.tip(&patience()).ok()? else {
        return Some(Gone::NoBranch);
    };
    let is_below = |one, other| repository.is_in_history(one, other).unwrap_or_default();
    let is_on_it = repository.has(commit) && (is_below(commit, tip) || is_below(tip, commit));
    let is_known = repository.has(tip) && !repository.is_shallow();
    (is_known && !is_on_it).then_some(Gone::Rewritten(tip))
}

/// How an agent goes on whose work is about a branch that was rewritten since: it sends findings
/// back, if it may, so that the branch is handed on again. Others need no approved commit.
pub(super) fn handed_on_again(
    protocol: &Protocol,
    (issue, agent): (&IssueKey, &AgentName),
    branch: &str,
) -> String {
    let sent = protocol.onward(agent.as_str(), None).into_iter();
    let mut findings = sent.filter(|(to, kind)| {
        let mut types = protocol.types_between(agent.as_str(), to.as_str());
        types.retain(|one| kind.as_ref().is_none_or(|kind| *kind == one.name));
        types.iter().any(|one| one.raises.is_some())
    });
    match findings.next() {
        Some((to, kind)) => {
            let kind = kind.map_or_else(String::new, |kind| format!(" --type {}", word(&kind)));
            format!(
                "send it back, to be handed on as it is now: `git handoff send --issue {issue} --to {to}{kind} --as {agent} --set FIELD=VALUE…`"
            )
        }
        None => {
            let branch = word(branch);
            format!(
                "`git fetch origin {branch}`, and go on from there: what you send is about it as it is now"
            )
        }
    }
}
