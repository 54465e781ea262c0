//! Updates of existing work: claims and all others.

use std::collections::BTreeSet;

use handoff_base::Moment;
use handoff_base::finding::{Finding, FindingCode};
use handoff_base::ids::{AgentName, HandoffId, IssueKey};
use handoff_base::short_id;
use handoff_base::text::quoted;
use handoff_model::{EventArgs, Record, Request, Update, View};
use handoff_protocol::{Check, Event, Policy};

use super::base_branch::base_branch;
use super::claim_queue::{claimable, claimable_but};
use super::error::{ContractError, DamageError, LedgerError};
use super::evidence::changed;
use super::ledger::Ledger;
use super::origin_code::{Gone, OnOrigin, gone, handed_on_again, on_origin, push_by_author};
use super::same_files;
use super::session::Session;
use super::snapshot::Snapshot;
use super::turns::Turns;
use super::write::Done;

/// The handoff to claim: a given one, or the next in the queue.
pub enum Target {
    /// A given handoff.
    Handoff(HandoffId),
    /// The most urgent handoff that waits for the agent, the oldest first.
    Next,
}

impl<'r> Ledger<'r> {
    /// Claims a handoff, or takes it over (`event`). If artifact checks are enforced, refuses it
    /// when delivered files have changed.
    ///
    /// # Errors
    /// [`LedgerError`]; the ledger is then unchanged.
    pub fn claim(
        &mut self,
        session: &Session,
        agent: &AgentName,
        target: &Target,
        event: Event,
        args: &EventArgs,
    ) -> Result<Done, LedgerError> {
        let (mut warnings, mut same) = (Vec::new(), Vec::new());
        let mut done = self.publish(session, |ledger, tip, at| {
            let mut passed_over = Vec::new();
            let id = match target {
                Target::Handoff(id) => {
                    ledger.ensure_steps(tip, id.issue(), at)?;
                    id.clone()
                }
                Target::Next => {
                    let (id, over) = ledger.next_for(agent, tip, at)?;
                    passed_over = over;
                    id
                }
            };
            let claim = Update::change(id.number(), event, args.clone());
            let step = session.step(agent.clone(), at, Request::Update(claim));
            let decided = ledger.plan_on(tip, id.issue(), step, false)?;
            if let (Some(_), receipt) = &decided {
                warnings = changed(ledger.repository(), &receipt.record)?;
                if warnings.iter().any(Finding::is_error) {
                    let findings = std::mem::take(&mut warnings);
                    return Err(ContractError::Delivered(findings).into());
                }
                warnings.extend(ledger.missing_code(tip, session, &receipt.record)?);
                if matches!(target, Target::Handoff(_)) {
                    warnings.extend(out_of_turn(tip, &receipt.record, at)?);
                }
                warnings.append(&mut passed_over);
                same = tip.same_files(&receipt.record)?;
                warnings.extend(same_files::finding(&receipt.record, &same));
            }
            Ok(decided)
        })?;
        done.warnings.extend(warnings);
        for (issue, note) in same_files::notes(done.receipt.record.id.issue(), same) {
            // The claim counts without it, and its agent knows.
            let _ = self.update(session, agent, &issue, &note);
        }
        Ok(done)
    }

    /// The most urgent handoff that an agent can claim, and warnings about more urgent ones of issues
    /// that stand on commits which are not steps.
    fn next_for(
        &self,
        agent: &AgentName,
        tip: &Snapshot<'r>,
        at: Moment,
    ) -> Result<(HandoffId, Vec<Finding>), LedgerError> {
        let (mut left_out, mut warnings) = (BTreeSet::new(), Vec::new());
        let mut refusal = None;
        loop {
            let found = claimable_but(tip, agent, at, &left_out)?;
            let Some(id) = found.first else {
                return Err(refusal.unwrap_or_else(|| found.refusal(agent).into()));
            };
            let Err(error) = self.ensure_steps(tip, id.issue(), at) else {
                return Ok((id, warnings));
            };
            let LedgerError::Damage(DamageError::NotSteps { issue, findings }) = &error else {
                return Err(error);
            };
            let text = format!("{id} is not handed out: {error}");
            let first = findings.first().cloned();
            warnings.extend(first.map(|first| Finding::warning(first.code, first.path, text)));
            left_out.insert(issue.clone());
            refusal.get_or_insert(error);
        }
    }

    /// The finding that the code of a handoff can't be continued: its commit is on no relevant
    /// branch of the remote. The remote is asked, and missing commits are fetched.
    fn missing_code(
        &self,
        tip: &Snapshot<'r>,
        session: &Session,
        record: &Record,
    ) -> Result<Option<Finding>, LedgerError> {
        let repository = self.repository();
        let has_remote = self.is_shared() && repository.remote_url("origin").is_some();
        let is_reached = !session.offline && self.out_of_reach().is_none();
        let Some(code) = record.code.as_ref().filter(|_| has_remote && is_reached) else {
            return Ok(None);
        };
        let rules = tip.rules(record.protocol.as_str())?;
        let protocol = rules.protocol();
        let kind = protocol.contract_type(&record.contract_type);
        let claims = kind.and_then(|kind| kind.claims.as_ref());
        let is_merged = claims.is_some_and(|claims| claims.merge.is_some());
        // Without checks, a branch may be any name.
        if is_merged || protocol.policy(Check::Branch, tip.manifest().evidence) == Policy::Off {
            return Ok(None);
        }
        let issue = tip.issue(record.id.issue())?.issue()?;
        let issue = issue.as_ref().map(|issue| (issue, protocol.definition()));
        let base = base_branch(repository, issue, Some(&code.branch), None);
        let OnOrigin::Not(why) = on_origin(repository, code, base.as_deref(), true) else {
            return Ok(None);
        };
        let (id, short) = (&record.id, short_id(&code.commit));
        let text = format!(
            "{id} was handed on with commit {short} of {}: {why}",
            quoted(&code.branch)
        );
        let finding = Finding::warning(FindingCode::CodeMissing, code.branch.clone(), text);
        if let Some(Gone::Rewritten(_)) = gone(repository, code) {
            let by = (id.issue(), &record.to);
            return Ok(Some(finding.fix(handed_on_again(
                protocol,
                by,
                &code.branch,
            ))));
        }
        Ok(Some(finding.fix(format!(
            "{}; until then give it back: `git handoff release {id} --as {} --reason WHY`",
            push_by_author(code),
            record.to
        ))))
    }

    /// Applies an update to an existing issue.
    ///
    /// # Errors
    /// [`LedgerError`]; the ledger is then unchanged.
    pub fn update(
        &mut self,
        session: &Session,
        agent: &AgentName,
        issue: &IssueKey,
        update: &Update,
    ) -> Result<Done, LedgerError> {
        self.publish(session, |ledger, tip, at| {
            let step = session.step(agent.clone(), at, Request::Update(update.clone()));
            ledger.plan_on(tip, issue, step, false)
        })
    }

    /// Applies an update that was decided on when its issue had this many steps. `None` if it has
    /// more by now, so that it must be decided again.
    ///
    /// # Errors
    /// [`LedgerError`]; the ledger is then unchanged.
    pub fn update_as_of(
        &mut self,
        session: &Session,
        agent: &AgentName,
        key: &IssueKey,
        update: &Update,
        steps: u32,
    ) -> Result<Option<Done>, LedgerError> {
        let (receipt, commit) = self.write(session, |ledger, tip, at| {
            let issue = tip.issue(key)?.issue()?;
            if issue.is_some_and(|issue| issue.steps != steps) {
                return Ok((None, None));
            }
            let step = session.step(agent.clone(), at, Request::Update(update.clone()));
            let (draft, receipt) = ledger.plan_on(tip, key, step, false)?;
            Ok((draft, Some(receipt)))
        })?;
        Ok(receipt.map(|receipt| Done {
            receipt,
            commit,
            warnings: Vec::new(),
            pushed: None,
        }))
    }
}

/// The warning that a manual claim skips the handoff before it. Not a refusal, since the caller may
/// know that the other one is stuck.
fn out_of_turn(
    tip: &Snapshot<'_>,
    record: &Record,
    at: Moment,
) -> Result<Option<Finding>, LedgerError> {
    let (id, protocol) = (&record.id, record.protocol.as_str());
    let turns = Turns::new(tip, &record.to, at);
    let mut before = turns.before(id, protocol)?;
    if before.is_none()
        && let Some(first) = claimable(tip, &record.to, at)?.first
        && first != *id
        && turns.is_same_base(id, &first, protocol)?
    {
        before = Some(first);
    }
    Ok(before.map(|before| {
        let text = format!(
            "{before} comes before {id} in the order of merges, and may move the base that {id} is judged against"
        );
        let finding = Finding::warning(FindingCode::ClaimTurn, id.to_string(), text);
        finding.fix(format!(
            "unless {before} is stuck, give it back: `git handoff release {id} --as {} --reason WHY`; `claim --next` keeps the order",
            record.to
        ))
    }))
}
