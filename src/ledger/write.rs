//! Writing: load the tip, plan, prepare, publish by compare-and-swap; when the
//! tip moved, plan again on the new one.

use std::time::{Duration, Instant};

use super::error::LedgerError;
use super::intake::{Contract, Review, review};
use super::layout;
use super::planner::plan;
use super::record::{self, Evidence, Manifest, VERSION};
use super::refusal::Refusal;
use super::session::{Session, author};
use super::snapshot::{Rules, Snapshot};
use super::step::{Actor, Planned, Receipt, Request, View};
use crate::finding::{Finding, Severity};
use crate::git::{ObjectId, Prepared, PublishError, Queue, Repository, to_second};
use crate::ids::{AgentName, HandoffId, IssueKey, quoted};
use crate::protocol::State;

/// A ledger in a repository.
pub struct Ledger<'r> {
    repository: &'r Repository,
    branch: String,
    refname: String,
}

/// A handoff, named or to be chosen.
pub enum Target {
    /// This one.
    Handoff(HandoffId),
    /// The most urgent, then the oldest, that waits for the agent.
    Next,
}

/// What a write did.
#[derive(Debug)]
pub struct Done {
    /// What became of the request.
    pub receipt: Receipt,
    /// The commit that holds it; of a repeated request, none was made.
    pub commit: Option<ObjectId>,
}

/// What a new ledger starts with.
pub struct Founding {
    /// The protocol that new issues are bound to.
    pub protocol: AgentName,
    /// Whether claims are checked.
    pub evidence: Evidence,
    /// The protocol's files by path in its folder.
    pub files: Vec<(String, Vec<u8>)>,
    /// The README's text.
    pub readme: String,
}

impl<'r> Ledger<'r> {
    /// Names the ledger on a branch, which need not exist yet.
    ///
    /// # Errors
    /// [`LedgerError::BranchName`] when no branch can have that name.
    pub fn new(repository: &'r Repository, branch: &str) -> Result<Self, LedgerError> {
        let refname = format!("refs/heads/{branch}");
        if branch.starts_with('-') || branch == "HEAD" || !Repository::is_ref_name(&refname) {
            return Err(LedgerError::BranchName {
                shown: quoted(branch),
            });
        }
        Ok(Self {
            repository,
            branch: branch.to_owned(),
            refname,
        })
    }

    /// The branch.
    pub fn branch(&self) -> &str {
        &self.branch
    }

    /// The repository it is in.
    pub fn repository(&self) -> &'r Repository {
        self.repository
    }

    /// Where the branch is, if it exists.
    ///
    /// # Errors
    /// [`LedgerError`] when the ref can't be read.
    pub fn tip_id(&self) -> Result<Option<ObjectId>, LedgerError> {
        Ok(self.repository.resolve(&self.refname)?)
    }

    /// Reads the ledger as it is now.
    ///
    /// # Errors
    /// [`LedgerError`] when there is none or it can't be read.
    pub fn tip(&self) -> Result<Snapshot<'r>, LedgerError> {
        let tip = self.tip_id()?.ok_or_else(|| {
            let branch = self.branch.clone();
            if self.repository.is_symbolic(&self.refname) {
                LedgerError::Symbolic { branch }
            } else {
                LedgerError::NoLedger { branch }
            }
        })?;
        Snapshot::at(self.repository, tip, &self.branch)
    }

    /// Refuses to write where a write could hurt: from a hook that receives a
    /// push, and under a working tree whose next commit would undo the step.
    fn guard(&self, session: &Session) -> Result<(), LedgerError> {
        if session.quarantined {
            return Err(LedgerError::Quarantine);
        }
        if self.repository.is_symbolic(&self.refname) {
            let branch = self.branch.clone();
            return Err(LedgerError::Symbolic { branch });
        }
        match self.repository.checked_out_at(&self.refname) {
            Some(path) => Err(LedgerError::CheckedOut {
                branch: self.branch.clone(),
                path,
            }),
            None => Ok(()),
        }
    }

    /// Waits for this machine's other writers, and clears away what one of them
    /// left behind if it was killed while it published.
    fn join_queue(&self, session: &Session) -> Queue {
        let mut queue = Queue::join(self.repository.common_dir(), session.patience);
        if let Some(commit) = queue.abandoned() {
            self.repository.remove_abandoned_lock(&self.refname, commit);
            queue.announce(None);
        }
        queue
    }

    /// Starts the ledger; says nothing new where there is one already.
    ///
    /// # Errors
    /// [`LedgerError`]; the repository is then unchanged.
    pub fn init(
        &self,
        session: &Session,
        founding: &Founding,
    ) -> Result<Option<ObjectId>, LedgerError> {
        if self.tip_id()?.is_some() {
            self.tip()?;
            return Ok(None);
        }
        self.guard(session)?;
        let now = session.clock.author();
        let manifest = Manifest {
            version: VERSION,
            default_protocol: founding.protocol.clone(),
            evidence: founding.evidence,
            created_at: to_second(now),
        };
        let mut files = vec![
            (
                layout::README.to_owned(),
                Some(founding.readme.clone().into_bytes()),
            ),
            (layout::MANIFEST.to_owned(), Some(record::write(&manifest))),
        ];
        for (file, bytes) in &founding.files {
            let path = layout::protocol_file(founding.protocol.as_str(), file);
            files.push((path, Some(bytes.clone())));
        }
        let mut person = session.committer();
        person.at = now;
        let message = format!("Start the ledger\n\nProtocol: {}\n", founding.protocol);
        let start = Instant::now();
        let mut queue = self.join_queue(session);
        let mut attempts = 0;
        while self.tip_id()?.is_none() {
            attempts += 1;
            let prepared = self.repository.prepare(
                &self.refname,
                None,
                &files,
                &person,
                &session.committer(),
                &message,
            )?;
            match in_turn(&mut queue, prepared, "handoff: start the ledger") {
                Ok(commit) => return Ok(Some(commit)),
                Err(PublishError::Locked(path)) if start.elapsed() >= session.patience => {
                    return Err(LedgerError::Locked { path });
                }
                Err(PublishError::Locked(_)) => back_off(session, attempts),
                // Someone else started it first; theirs is as good.
                Err(PublishError::Moved) => break,
                Err(PublishError::Git(error)) => return Err(error.into()),
            }
        }
        self.tip().map(|_| None)
    }

    /// Takes a contract through the pipeline under the ledger's rules. A
    /// contract that names no issue is about `hint`, or about the one issue in
    /// which its sender works.
    ///
    /// # Errors
    /// [`LedgerError`] when the ledger can't be read; faults of the contract
    /// are in the review.
    pub fn review(
        &self,
        snapshot: &Snapshot<'r>,
        rules: &Rules<'r>,
        bytes: &[u8],
        hint: Option<&IssueKey>,
    ) -> Result<Review, LedgerError> {
        let first = review(rules.protocol(), rules, bytes, hint)?;
        if first.contract.is_some() || !first.is_complete() {
            return Ok(first);
        }
        let issues = issues_of_sender(snapshot, rules, bytes)?;
        if let [only] = &issues[..] {
            return review(rules.protocol(), rules, bytes, Some(only));
        }
        let mut first = first;
        if !issues.is_empty() {
            let keys: Vec<&str> = issues.iter().map(IssueKey::as_str).collect();
            let text = format!(
                "say which with --issue: its sender works on {}",
                keys.join(", ")
            );
            let named = first
                .findings
                .iter_mut()
                .filter(|f| f.code == "envelope.issue");
            named.for_each(|finding| finding.fix = Some(text.clone()));
        }
        Ok(first)
    }

    /// Sends a contract. `agent` is who sends it, where that is known.
    ///
    /// # Errors
    /// [`LedgerError`]; the ledger is then unchanged.
    pub fn send(
        &self,
        session: &Session,
        agent: Option<&AgentName>,
        bytes: &[u8],
        hint: Option<&IssueKey>,
    ) -> Result<Done, LedgerError> {
        let snapshot = self.tip()?;
        let mut rules = snapshot.default_rules()?;
        let mut contract = accepted(self.review(&snapshot, &rules, bytes, hint)?)?;
        let code_of = |contract: &Contract, snapshot: &Snapshot<'r>| {
            let pointer = branch_of(&contract.value, &rules);
            let known = || {
                let issue = snapshot.issue(&contract.issue).ok()?.issue().ok()??;
                Some(issue.facts.get("branch")?.as_str()?.to_owned())
            };
            pointer
                .or_else(known)
                .and_then(|branch| self.repository.code(&branch))
        };
        let code = code_of(&contract, &snapshot);
        self.publish(session, Some(snapshot), |tip, actor_at| {
            if tip.default_rules_id()? != Some(rules.id()) {
                rules = tip.default_rules()?;
                contract = accepted(self.review(tip, &rules, bytes, hint)?)?;
            }
            let name = agent.unwrap_or(&contract.from).clone();
            let folder = tip.issue(&contract.issue)?;
            let request = Request::Send {
                contract: &contract,
                code: code.clone(),
            };
            let actor = Actor {
                name: &name,
                at: actor_at,
            };
            let planned = plan(rules.protocol(), &contract.issue, &folder, &actor, &request)?;
            Ok((name, planned))
        })
    }

    /// Carries out a request about a handoff or an issue that exists.
    ///
    /// # Errors
    /// [`LedgerError`]; the ledger is then unchanged.
    pub fn act(
        &self,
        session: &Session,
        agent: &AgentName,
        target: &Target,
        request: impl Fn(u32) -> Request<'static>,
    ) -> Result<Done, LedgerError> {
        self.publish(session, None, |tip, at| {
            let chosen;
            let id = match target {
                Target::Handoff(id) => id,
                Target::Next => {
                    chosen = next_for(tip, agent)?;
                    &chosen
                }
            };
            let planned = self.plan_on(tip, agent, at, id.issue(), &request(id.number()))?;
            Ok((agent.clone(), planned))
        })
    }

    /// Opens a completed issue again.
    ///
    /// # Errors
    /// [`LedgerError`]; the ledger is then unchanged.
    pub fn reopen(
        &self,
        session: &Session,
        agent: &AgentName,
        issue: &IssueKey,
        reason: &str,
    ) -> Result<Done, LedgerError> {
        self.publish(session, None, |tip, at| {
            let request = Request::Reopen {
                reason: reason.to_owned(),
            };
            Ok((
                agent.clone(),
                self.plan_on(tip, agent, at, issue, &request)?,
            ))
        })
    }

    fn plan_on(
        &self,
        tip: &Snapshot<'r>,
        agent: &AgentName,
        at: record::Moment,
        key: &IssueKey,
        request: &Request<'_>,
    ) -> Result<Planned, LedgerError> {
        let folder = tip.issue(key)?;
        let issue = folder
            .issue()?
            .ok_or_else(|| Refusal::NoIssue { issue: key.clone() })?;
        let rules = tip.rules(issue.protocol.as_str())?;
        Ok(plan(
            rules.protocol(),
            key,
            &folder,
            &Actor { name: agent, at },
            request,
        )?)
    }

    /// The write path: plan on the tip, publish, and again if the tip moved.
    /// `known` is the tip as it was a moment ago, where that was read.
    fn publish(
        &self,
        session: &Session,
        mut known: Option<Snapshot<'r>>,
        mut decide: impl FnMut(
            &Snapshot<'r>,
            record::Moment,
        ) -> Result<(AgentName, Planned), LedgerError>,
    ) -> Result<Done, LedgerError> {
        self.guard(session)?;
        let start = Instant::now();
        let mut queue = self.join_queue(session);
        let mut attempts = 0;
        loop {
            attempts += 1;
            let tip = match known.take() {
                Some(known) if self.tip_id()? == Some(known.commit()) => known,
                _ => self.tip()?,
            };
            let now = session.clock.author();
            let (agent, planned) = decide(&tip, to_second(now))?;
            let step = match planned {
                Planned::Repeat(receipt) => {
                    return Ok(Done {
                        receipt: *receipt,
                        commit: None,
                    });
                }
                Planned::Write(step) => step,
            };
            let prepared = self.repository.prepare(
                &self.refname,
                Some((tip.commit(), tip.tree_id())),
                &step.files,
                &author(&agent, now),
                &session.committer(),
                &step.message,
            )?;
            let subject = step.message.lines().next().unwrap_or_default();
            let late = start.elapsed() >= session.patience;
            match in_turn(&mut queue, prepared, &format!("handoff: {subject}")) {
                Ok(commit) => {
                    return Ok(Done {
                        receipt: step.receipt,
                        commit: Some(commit),
                    });
                }
                Err(PublishError::Moved) if late => {
                    return Err(LedgerError::Contended { attempts });
                }
                Err(PublishError::Locked(path)) if late => {
                    return Err(LedgerError::Locked { path });
                }
                Err(PublishError::Moved) => {}
                Err(PublishError::Locked(_)) => back_off(session, attempts),
                Err(PublishError::Git(error)) => return Err(error.into()),
            }
        }
    }
}

/// Publishes a commit, announced to whoever comes after a crash.
fn in_turn(
    queue: &mut Queue,
    prepared: Prepared<'_>,
    reflog: &str,
) -> Result<ObjectId, PublishError> {
    queue.announce(Some(prepared.commit()));
    let published = prepared.publish(reflog);
    queue.announce(None);
    published
}

/// Gives whoever holds the lock a moment, and a longer one at each attempt.
fn back_off(session: &Session, attempts: u32) {
    const LONGEST: u64 = 50_000;
    let pause = LONGEST.min(1_000 << attempts.min(6));
    std::thread::sleep(Duration::from_micros(pause + (session.jitter)(pause)));
}

fn accepted(review: Review) -> Result<Contract, LedgerError> {
    let Review {
        mut findings,
        contract,
        no_route,
        ..
    } = review;
    match contract {
        Some(contract) => Ok(contract),
        None if no_route => Err(LedgerError::Route { findings }),
        None => {
            // What a check only notes, the ledger can't do without.
            if !findings.iter().any(Finding::is_error) {
                findings
                    .iter_mut()
                    .filter(|f| f.severity == Severity::Note)
                    .for_each(|f| f.severity = Severity::Error);
            }
            Err(LedgerError::Contract { findings })
        }
    }
}

/// The code branch that a contract names.
fn branch_of(value: &serde_json::Value, rules: &Rules<'_>) -> Option<String> {
    let pointer = rules.protocol().definition().fields.branch.as_deref()?;
    value.pointer(pointer)?.as_str().map(str::to_owned)
}

/// The issues in which the sender of a contract works right now.
fn issues_of_sender(
    snapshot: &Snapshot<'_>,
    rules: &Rules<'_>,
    bytes: &[u8],
) -> Result<Vec<IssueKey>, LedgerError> {
    let Ok(source) = crate::contract::Source::parse(bytes) else {
        return Ok(Vec::new());
    };
    let roots = rules.protocol().roots();
    let wrapper = source.root(&roots);
    let wrapper = wrapper
        .as_deref()
        .filter(|_| source.format() == crate::contract::Format::Json);
    let sender = source.probe(wrapper, &rules.protocol().definition().fields.from);
    let mut issues = Vec::new();
    for entry in snapshot.open()? {
        if Some(entry.to.as_str()) == sender.as_deref()
            && snapshot.open_record(&entry)?.state == State::InProgress
        {
            issues.push(entry.id.issue().clone());
        }
    }
    issues.dedup();
    Ok(issues)
}

/// The most urgent, then the oldest handoff that waits for an agent.
fn next_for(tip: &Snapshot<'_>, agent: &AgentName) -> Result<HandoffId, LedgerError> {
    let rules = tip.default_rules()?;
    let mut best: Option<(usize, record::Moment, HandoffId)> = None;
    for entry in tip.open()?.iter().filter(|e| e.to == *agent) {
        let record = tip.open_record(entry)?;
        let Some(sent) = record.sent_at().filter(|_| record.state == State::Pending) else {
            continue;
        };
        let rank = rules.protocol().priority_rank(record.priority.as_deref());
        let candidate = (rank, sent, record.id);
        if best
            .as_ref()
            .is_none_or(|b| (candidate.0, candidate.1) < (b.0, b.1))
        {
            best = Some(candidate);
        }
    }
    let found = best.map(|(_, _, id)| id);
    Ok(found.ok_or_else(|| Refusal::NothingToClaim {
        agent: agent.clone(),
    })?)
}
