//! Sending a contract: the data gathered for it, and the step that it becomes.

use handoff_base::explained::{Explained, chain};
use handoff_base::finding::{Finding, FindingCode, Severity};
use handoff_base::ids::{AgentName, HandoffId, IssueKey};
use handoff_base::text::word;
use handoff_base::{Code, Moment, ObjectId, digest, short_id};
use handoff_contract::Input;
use handoff_git::FactError;
use handoff_macros::skip_serializing_none;
use handoff_model::branches::nameable;
use handoff_model::evidence::{Claimed, Demanded, demanded};
use handoff_model::intake::{Soundness, add_later, placed};
use handoff_model::planner::{Holder, dismissed_before, held, reviewed_commit};
use handoff_model::{
    Artifact, Contract, ContractRefusal, Contradiction, Evidence, LeaseRefusal, Planned,
    PlannedStep, Receipt, Record, Refusal, Reports, Request, RequestRefusal, RoleRefusal,
    SendOptions, SendRequest, Step, View, not_held_in, plan, send_again, sent_in_vain,
};
use handoff_protocol::{Check, Event, Gate, Identity, Policy, Protocol, State};
use serde::{Deserialize, Serialize};

use super::artifacts::gather;
use super::base_branch::base_branch;
use super::code_branches::newest_code;
use super::contract_match::{ContractMatch, Offer, accepted};
use super::draft::{Decided, Draft};
use super::error::{ContractError, LedgerError};
use super::evidence::{Ground, Judge, Judged, Merged, OnRemote, changed};
use super::ledger::Ledger;
use super::origin_code::{
    Gone, asked, goes_on, gone, handed_on_again, is_below, push, push_by_author,
};
use super::requirement::hindrance;
use super::session::Session;
use super::shared_resources::shared_resources;
use super::snapshot::{IssueFolder, Rules, Snapshot};
use super::step_plan::canonical;
use super::write::Done;

/// The data that a contract is sent with.
#[doc(hidden)]
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Gathered {
    /// The tip of the code branch.
    pub code: Option<Code>,
    /// The files that it delivers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<Artifact>,
    /// The evidence for its statements.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<Evidence>,
}

impl Gathered {
    /// The data that a handoff's contract was sent with.
    pub fn of(record: &Record) -> Self {
        Self {
            code: record.code.clone(),
            artifacts: record.artifacts.clone(),
            evidence: record.evidence.clone(),
        }
    }
}

/// The origin of a contract.
#[derive(Clone, Copy)]
enum Origin<'k> {
    /// This repository: its claims can be checked.
    Here,
    /// Another system: nothing here is compared with its claims.
    Foreign,
    /// An exported ledger, with the data gathered at that time.
    Export(&'k Gathered),
}

/// Why the claims of an imported contract are not checked.
const IMPORTED: &str = "imported";

/// The subject of checks: the handoff that the contract's sender held, and the code.
type Subject = (Option<HandoffId>, Option<Code>);

/// A contract with all the data that it is sent with.
struct PreparedContract<'r, 'o> {
    rules: Rules<'r>,
    contract: Contract,
    /// The warnings about it; for a repeat, also what the repository contradicts now.
    warnings: Vec<Finding>,
    session: &'o Session,
    offer: &'o Offer<'o>,
    origin: Origin<'o>,
    /// The acting agent's name in the protocol, if it is known.
    actor: Option<AgentName>,
    /// The code branch that it names, or that its issue is known to have.
    branch: Option<String>,
    gathered: Gathered,
    /// The results of its checks, with their subject.
    known: Option<(Subject, Judged)>,
    /// Why its code branch could not be pushed.
    unpushable: Option<String>,
    /// Whether it is refused already: what else is wrong is found without the network.
    is_refused: bool,
}

/// A contradiction that was accepted, with how what is made good now is told.
fn made_good(found: Finding, record: &Record) -> Finding {
    let (id, from) = (&record.id, &record.from);
    match &found.fix {
        Some(fix) if Check::ALL.iter().any(|check| check.code() == found.code) => {
            let fix = format!(
                "accepted already: what you make good now, tell with `git handoff annotate {id} --as {from} --note TEXT`; {fix}"
            );
            found.fix(fix)
        }
        _ => found,
    }
}

impl<'r> Ledger<'r> {
    /// Sends a contract. `offer.agent` is the sender, if known.
    ///
    /// # Errors
    /// [`LedgerError`]; the ledger is then unchanged.
    pub fn send(&mut self, session: &Session, offer: &Offer<'_>) -> Result<Done, LedgerError> {
        self.send_with(session, offer, Origin::Here)
    }

    /// The same as [`Self::send`] without the write: same result, same errors. A contract that was
    /// sent before is compared with the repository again.
    ///
    /// # Errors
    /// [`LedgerError`], as for sending.
    pub fn check(&mut self, session: &Session, offer: &Offer<'_>) -> Result<Done, LedgerError> {
        self.rehearse(|ledger| ledger.send(session, offer))
    }

    /// Sends a contract of another system, at an earlier time, to which its claims refer.
    ///
    /// # Errors
    /// [`LedgerError`]; the ledger is then unchanged.
    #[doc(hidden)]
    pub fn send_foreign(
        &mut self,
        session: &Session,
        offer: &Offer<'_>,
    ) -> Result<Done, LedgerError> {
        self.send_with(session, offer, Origin::Foreign)
    }

    /// Sends the contract of a recorded step again, with the data gathered for it then.
    ///
    /// # Errors
    /// [`LedgerError`]; the ledger is then unchanged.
    #[doc(hidden)]
    pub fn resend(
        &mut self,
        session: &Session,
        key: &IssueKey,
        step: &Step,
        (input, protocol): (&Input<'_>, &AgentName),
        gathered: &Gathered,
    ) -> Result<Done, LedgerError> {
        let offer = Offer {
            input,
            agent: Some(&step.by),
            issue: Some(key),
            protocol: Some(protocol),
            options: step.request.options(),
            reports: None,
        };
        self.send_with(session, &offer, Origin::Export(gathered))
    }

    /// Sends a contract. Data that was gathered elsewhere is not gathered again.
    fn send_with(
        &mut self,
        session: &Session,
        offer: &Offer<'_>,
        origin: Origin<'_>,
    ) -> Result<Done, LedgerError> {
        let mut sent = None;
        let mut done = self.publish(session, |ledger, tip, at| {
            let known = |before: PreparedContract<'_, '_>| before.known;
            let (mut known, mut unpushable) = (sent.take().and_then(known), None);
            loop {
                let mut prepared = ledger.prepared(tip, session, offer, (origin, at))?;
                (prepared.known, prepared.unpushable) = (known.take(), unpushable.take());
                let decided = ledger.decide(&mut prepared, tip, at)?;
                // Last, so that a contract which is refused pushes nothing.
                unpushable = ledger.push_code(&mut prepared).err();
                if unpushable.is_none() {
                    sent = Some(prepared);
                    return Ok(decided);
                }
            }
        })?;
        if let Some(sent) = sent {
            done.pushed = sent.known.and_then(|(_, judged)| judged.pushed);
            let accepted = sent.warnings.into_iter();
            if self.is_rehearsed() || !matches!(origin, Origin::Here) {
                done.warnings.extend(accepted);
            } else {
                let record = &done.receipt.record;
                done.warnings
                    .extend(accepted.map(|found| made_good(found, record)));
            }
        }
        Ok(done)
    }

    /// Reviews a contract and gathers the data for it.
    fn prepared<'o>(
        &self,
        tip: &Snapshot<'r>,
        session: &'o Session,
        offer: &'o Offer<'o>,
        (origin, at): (Origin<'o>, Moment),
    ) -> Result<PreparedContract<'r, 'o>, LedgerError> {
        let found = tip.match_contract(offer)?;
        let sound = found.soundness(offer.input, &found.review.findings)?;
        let ContractMatch { rules, mut review } = found;
        let draft = review.draft.take();
        let unused = review.unused.take();
        // The record keeps the contradictions.
        let warnings = review.findings.iter().filter(|finding| {
            finding.severity == Severity::Warning
                && finding.code != FindingCode::ContractInconsistent
        });
        let warnings: Vec<Finding> = warnings.cloned().collect();
        if matches!(origin, Origin::Here)
            && let Some(refusal) = self.before_faults(tip, &rules, draft.as_ref(), session)?
        {
            return Err(refusal.into());
        }
        let (mut contract, faults) = match (accepted(review), draft, origin) {
            (Ok(contract), ..) => (contract, Vec::new()),
            (
                Err(LedgerError::Contract(ContractError::Invalid(faults))),
                Some(draft),
                Origin::Here,
            ) => (draft, faults),
            (Err(error), ..) => return Err(error),
        };
        let is_refused = !faults.is_empty();
        if matches!(origin, Origin::Here)
            && !is_refused
            && let Some(finding) = self.on_own_branch(&rules, &contract, offer)?
        {
            return Err(ContractError::Invalid(vec![finding]).into());
        }
        match (origin, unused) {
            (Origin::Export(_), _) => {
                let allowed = &offer.options.allowed_secrets;
                contract.allowed_secrets.clone_from(allowed);
            }
            (_, Some(allowance)) if !is_refused => {
                return Err(ContractError::UnusedAllowance(allowance).into());
            }
            _ => {}
        }
        let sender = offer.agent.or(contract.from.as_ref());
        let mut prepared = PreparedContract {
            actor: sender.map(|agent| canonical(rules.protocol(), agent)),
            rules,
            contract,
            warnings,
            session,
            offer,
            origin,
            branch: None,
            gathered: Gathered::default(),
            known: None,
            unpushable: None,
            is_refused,
        };
        if is_refused {
            return Err(self.with_later_faults(&mut prepared, tip, at, (faults, sound)));
        }
        self.gather(&mut prepared, tip)?;
        Ok(prepared)
    }

    /// The refusal of a document with faults, and with what the later layers say of it, as far as they
    /// have what they need: whether it may be sent now, and what the repository says.
    fn with_later_faults(
        &self,
        prepared: &mut PreparedContract<'r, '_>,
        tip: &Snapshot<'r>,
        at: Moment,
        (mut faults, sound): (Vec<Finding>, Soundness),
    ) -> LedgerError {
        // What can't be judged is told once the document is sound.
        if let Ok(later) = self.later_faults(prepared, tip, at, sound) {
            add_later(&mut faults, later);
        }
        ContractError::Invalid(faults).into()
    }

    fn later_faults(
        &self,
        prepared: &mut PreparedContract<'r, '_>,
        tip: &Snapshot<'r>,
        at: Moment,
        sound: Soundness,
    ) -> Result<Vec<Finding>, LedgerError> {
        match self.gather(prepared, tip) {
            Err(LedgerError::Contract(ContractError::Artifact(found))) => return Ok(found),
            other => other?,
        }
        let mut later = Vec::new();
        if sound.step && prepared.actor.is_some() {
            let refusal = match self.planned(prepared, tip, at) {
                Ok(_) => None,
                Err(LedgerError::Refused(refusal)) => Some(refusal),
                Err(LedgerError::Contract(ContractError::Gate { refusal, .. })) => Some(*refusal),
                Err(error) => return Err(error),
            };
            if let Some(mut refusal) = refusal {
                // What a faulty contract would have made is not there.
                let is_missing = matches!(refusal, Refusal::Lookup(_));
                match refusal.misfits() {
                    Some(found) => later.append(found),
                    None if is_missing => {}
                    None => later.push(refused_step(&refusal)),
                }
                if refusal.is_before_work() {
                    return Ok(later);
                }
            }
        }
        if sound.code {
            later.extend(self.contradicted(prepared, tip)?);
        }
        Ok(later)
    }

    /// What the repository contradicts in a contract that is refused already.
    fn contradicted(
        &self,
        prepared: &mut PreparedContract<'r, '_>,
        tip: &Snapshot<'r>,
    ) -> Result<Vec<Finding>, LedgerError> {
        prepared.is_refused = true;
        let held = prepared.held(tip)?;
        let mut demanded = prepared.demanded(tip);
        // Otherwise it is unknown what its sender changed.
        if held.is_none() && tip.issue(&prepared.contract.issue)?.issue()?.is_some() {
            demanded.retain(|(check, _)| *check != Check::Paths);
        }
        if demanded.is_empty() && !prepared.names_commits() {
            return Ok(Vec::new());
        }
        let held = held.map(|held| held.id);
        let judged = self.judge(prepared, tip, &demanded, held.as_ref())?;
        Ok(judged.findings)
    }

    /// The refusal of a step, and with it what the repository contradicts.
    fn with_contradictions(
        &self,
        prepared: &mut PreparedContract<'r, '_>,
        tip: &Snapshot<'r>,
        error: LedgerError,
    ) -> LedgerError {
        let (mut refusal, mut findings) = match error {
            LedgerError::Refused(refusal) => (refusal, Vec::new()),
            LedgerError::Contract(ContractError::Gate { refusal, findings }) => {
                (*refusal, findings)
            }
            error => return error,
        };
        if matches!(prepared.origin, Origin::Here) && !refusal.is_before_work() {
            let found = self.contradicted(prepared, tip).unwrap_or_default();
            let found: Vec<Finding> = found.into_iter().filter(Finding::is_error).collect();
            if !found.is_empty() {
                add_later(refusal.misfits().unwrap_or(&mut findings), found);
            }
        }
        if findings.is_empty() {
            return refusal.into();
        }
        let refusal = Box::new(refusal);
        ContractError::Gate { refusal, findings }.into()
    }

    /// Why the sender of a contract with faults may not send now: it is told that before what the
    /// contract lacks. Whoever only checks it is told what it lacks.
    fn before_faults(
        &self,
        tip: &Snapshot<'r>,
        rules: &Rules<'r>,
        draft: Option<&Contract>,
        session: &Session,
    ) -> Result<Option<Refusal>, LedgerError> {
        let protocol = rules.protocol();
        let Some(draft) = draft.filter(|_| !self.is_rehearsed()) else {
            return Ok(None);
        };
        let is_note = protocol.contract_type(&draft.kind);
        let is_note = is_note.is_none_or(|kind| kind.note);
        let Some(from) = draft.from.as_ref().filter(|_| !is_note) else {
            return Ok(None);
        };
        let folder = tip.issue(&draft.issue)?;
        let Some(issue) = folder.issue()? else {
            return Ok(None);
        };
        let now = Moment::from(session.clock.author());
        let from = Holder {
            agent: from,
            worker: session.worker.as_ref(),
        };
        let refusal = not_held_in(&folder, (&issue, protocol), from, now)?;
        // Who has no part in the issue at all may have named the wrong one.
        let refusal = refusal.filter(|why| !matches!(why, LeaseRefusal::NotHeld { .. }));
        Ok(refusal.map(Refusal::from))
    }

    /// The finding that a contract names the ledger's own branch as a code branch.
    fn on_own_branch(
        &self,
        rules: &Rules<'_>,
        contract: &Contract,
        offer: &Offer<'_>,
    ) -> Result<Option<Finding>, LedgerError> {
        let protocol = rules.protocol();
        let Some(kind) = protocol.contract_type(&contract.kind) else {
            return Ok(None);
        };
        let claimed = Claimed::of(protocol, kind, contract);
        let refused = claimed
            .branch()
            .and_then(|branch| nameable(branch, Some(self.branch())).err());
        let found = refused.map(|why| why.finding(claimed.branch_at().unwrap_or_default()));
        let found = found.into_iter().collect();
        Ok(placed(protocol, rules, kind, offer.input, found)?.pop())
    }

    /// Gathers the data for a contract, unless that was done elsewhere.
    fn gather(
        &self,
        prepared: &mut PreparedContract<'r, '_>,
        tip: &Snapshot<'r>,
    ) -> Result<(), LedgerError> {
        if let Origin::Export(known) = prepared.origin {
            prepared.gathered = known.clone();
        } else {
            prepared.branch = prepared.code_branch(tip);
            prepared.gathered.code = self.code(prepared, tip)?;
            prepared.gathered.artifacts = prepared.delivered(tip)?;
            let code = prepared
                .gathered
                .code
                .as_ref()
                .map(|code| code.commit.parse());
            let is_artifacts = |(check, _): &(Check, Policy)| *check == Check::Artifacts;
            if let (Origin::Here, Some(Ok(code))) = (prepared.origin, code)
                && !prepared.gathered.artifacts.is_empty()
                && prepared.demanded(tip).iter().any(is_artifacts)
            {
                self.look_at(&mut prepared.gathered.artifacts, code)?;
            }
        }
        Ok(())
    }

    /// The commit of the code branch that a contract is about: the reviewed one, else the branch's
    /// newest.
    fn code(
        &self,
        prepared: &PreparedContract<'r, '_>,
        tip: &Snapshot<'r>,
    ) -> Result<Option<Code>, LedgerError> {
        let repository = self.repository();
        let Some(branch) = &prepared.branch else {
            return Ok(None);
        };
        let contract = &prepared.contract;
        let kind = prepared.rules.protocol().contract_type(&contract.kind);
        let Some(kind) = kind.filter(|kind| kind.reviews.is_some()) else {
            return Ok(repository.code(branch));
        };
        let (issue, held) = (tip.issue(&contract.issue)?.issue()?, prepared.held(tip)?);
        let Some(commit) = reviewed_commit(kind, contract, issue.as_ref(), held.as_ref()) else {
            return Ok(None);
        };
        let id = commit.parse::<ObjectId>().ok();
        let known = id.and_then(|id| repository.commit(id).ok());
        Ok(Some(Code {
            branch: branch.clone(),
            commit,
            tree: known.map(|commit| commit.tree.to_string()),
        }))
    }

    /// The step of a contract on a tip, with its plan, before the repository is asked.
    fn planned(
        &self,
        prepared: &PreparedContract<'r, '_>,
        tip: &Snapshot<'r>,
        at: Moment,
    ) -> Result<(Step, Planned), LedgerError> {
        let name = prepared.actor.clone();
        let name = name.ok_or(Refusal::Role(RoleRefusal::NoSender))?;
        let options = SendOptions {
            allowed_secrets: prepared.contract.allowed_secrets.clone(),
            imported: prepared.contract.imported.clone(),
            ..prepared.offer.options.clone()
        };
        let step = prepared.session.step(name, at, Request::Send(options));
        let folder = tip.issue(&prepared.contract.issue)?;
        let protocol = prepared.rules.protocol();
        let request = SendRequest {
            contract: &prepared.contract,
            code: prepared.gathered.code.as_ref(),
            artifacts: &prepared.gathered.artifacts,
            policy: tip.manifest().evidence,
        };
        let planned = plan(protocol, folder.key(), &folder, &step, Some(&request));
        let planned = planned.map_err(|stop| {
            let error = gated(protocol, stop.into());
            prepared.located(error)
        })?;
        if let (Planned::Write(step), Origin::Here) = (&planned, prepared.origin) {
            self.ensure_news(prepared, tip, &step.receipt.record)?;
        }
        Ok((step, planned))
    }

    /// The step of a contract on a tip, with evidence from the repository.
    fn decide(
        &self,
        prepared: &mut PreparedContract<'r, '_>,
        tip: &Snapshot<'r>,
        at: Moment,
    ) -> Decided<Receipt> {
        let planned = self.planned(prepared, tip, at);
        let (step, mut planned) =
            planned.map_err(|error| self.with_contradictions(prepared, tip, error))?;
        match &mut planned {
            Planned::Write(step) => self.prove(prepared, tip, step)?,
            Planned::Repeat(receipt)
                if self.is_rehearsed() && matches!(prepared.origin, Origin::Here) =>
            {
                let held = receipt.record.follows.as_ref();
                let demanded = prepared.demanded(tip);
                prepared.warnings = self.judge(prepared, tip, &demanded, held)?.findings;
            }
            Planned::Repeat(_) => prepared.warnings.clear(),
        }
        Draft::decided(tip, &prepared.rules, step, planned)
    }

    /// Refuses a review that raises a finding again that was skipped with a reason, unless its code
    /// is newer, or a person answered its sender. Applied only here and not in `plan`, so that
    /// earlier history stays legal.
    fn ensure_news(
        &self,
        prepared: &PreparedContract<'r, '_>,
        tip: &Snapshot<'r>,
        new: &Record,
    ) -> Result<(), LedgerError> {
        let (protocol, contract) = (prepared.rules.protocol(), &prepared.contract);
        let folder = tip.issue(&contract.issue)?;
        let (Some(kind), Some(issue), Some(code), Some(held)) = (
            protocol.contract_type(&contract.kind),
            folder.issue()?,
            &new.code,
            &new.follows,
        ) else {
            return Ok(());
        };
        let is_answered = |record: &Record| {
            let mut events = record.transitions.iter().map(|change| change.event);
            events.any(|event| event == Some(Event::Answer))
        };
        if protocol.is_person(new.from.as_str())
            || folder
                .record(held.number())?
                .as_ref()
                .is_some_and(is_answered)
        {
            return Ok(());
        }
        let mut findings = Vec::new();
        for (at, known) in dismissed_before(&issue, kind, contract) {
            let by = known.answered_by.as_ref();
            let by = by.map(|by| folder.record(by.number())).transpose()?;
            let then = by
                .flatten()
                .and_then(|record| record.code?.commit.parse().ok());
            let (Some(then), Ok(now)) = (then, code.commit.parse::<ObjectId>()) else {
                continue;
            };
            if !matches!(self.repository().has_commit(then, now), Ok(true)) {
                continue;
            }
            let text = format!("{}, and no commit came since", known.line());
            let finding = Finding::error(FindingCode::FindingDismissed, at, text);
            findings.push(finding.fix(format!(
                "leave it out, or let a person decide: `git handoff block {held} --as {} --reason 'Must {} be fixed?'`",
                new.from, known.id
            )));
        }
        if findings.is_empty() {
            return Ok(());
        }
        let issue = contract.issue.clone();
        let findings = prepared.placed(findings)?;
        Err(Refusal::from(ContractRefusal::Findings { issue, findings }).into())
    }

    /// Adds the results of the demanded checks to a planned step, and collects the warnings about
    /// the contract.
    fn prove(
        &self,
        prepared: &mut PreparedContract<'r, '_>,
        tip: &Snapshot<'r>,
        step: &mut PlannedStep,
    ) -> Result<(), LedgerError> {
        let contradictions = step.receipt.record.contradictions.iter();
        let found = contradictions.map(Contradiction::finding).collect();
        let found = prepared.placed(found)?;
        prepared.warnings.extend(found);
        let demanded = step.demanded.iter();
        let skipped = |&(check, policy)| Evidence::skipped(check, policy, IMPORTED);
        let evidence: Vec<Evidence> = match prepared.origin {
            Origin::Export(known) => {
                let known = demanded.map(|demand| {
                    let known = known.evidence.iter().find(|e| e.check == demand.0);
                    let known = known.map(|e| Evidence {
                        policy: demand.1,
                        ..e.clone()
                    });
                    known.unwrap_or_else(|| skipped(demand))
                });
                known.collect()
            }
            Origin::Foreign => demanded.map(skipped).collect(),
            Origin::Here => {
                let judged = self.judged(prepared, tip, step)?;
                prepared.warnings.extend(judged.findings);
                let Offer { input, .. } = prepared.offer;
                let sharing = shared_resources(tip, &prepared.rules, &prepared.contract, input)?;
                prepared.warnings.extend(sharing);
                let moved = self.branch_moved(prepared, tip, &step.receipt.record)?;
                let moved = prepared.placed(moved.into_iter().collect())?;
                prepared.warnings.extend(moved);
                let vain = prepared.in_vain(tip, &step.receipt.record)?;
                prepared.warnings.extend(vain);
                judged.evidence
            }
        };
        Ok(step.prove(evidence)?)
    }

    /// The warning that the branch is behind here, or at another commit than an approval's.
    fn branch_moved(
        &self,
        prepared: &PreparedContract<'r, '_>,
        tip: &Snapshot<'r>,
        record: &Record,
    ) -> Result<Option<Finding>, LedgerError> {
        let repository = self.repository();
        let kind = prepared.rules.protocol();
        let kind = kind.contract_type(&record.contract_type);
        let (Some(kind), Some(code)) = (kind, &prepared.gathered.code) else {
            return Ok(None);
        };
        let reviews = kind.reviews.as_ref();
        let at = reviews.and_then(|reviews| reviews.commit.as_deref());
        let at = at.unwrap_or_default();
        let branch = &code.branch;
        let here = repository.code(branch);
        let Some(here) = here.and_then(|code| code.commit.parse::<ObjectId>().ok()) else {
            return Ok(None);
        };
        let folder = tip.issue(record.id.issue())?;
        let newest = newest_code(repository, &folder, Some(branch))?;
        if let Some(newest) = newest.and_then(|code| code.commit.parse::<ObjectId>().ok())
            && newest != here
            && matches!(repository.is_in_history(here, newest), Ok(true))
        {
            let (here, newest) = (here.short(), newest.short());
            let text = format!("{branch} is at {here} here, behind {newest}");
            let branch = word(branch);
            let fix = format!("`git switch {branch}` and `git merge --ff-only {newest}`");
            let finding = Finding::warning(FindingCode::EvidenceBranch, at, text);
            return Ok(Some(finding.fix(fix)));
        }
        let here = here.to_string();
        let reviewed = short_id(&code.commit);
        if !kind.settles || reviews.is_none() || here == code.commit {
            return Ok(None);
        }
        let text = format!(
            "{branch} is at {} here, and this approves {reviewed}",
            short_id(&here)
        );
        let commit = code.commit.parse::<ObjectId>();
        let is_here = commit.is_ok_and(|commit| repository.has(commit));
        let fetch = if is_here {
            ""
        } else {
            "after `git fetch origin`, "
        };
        let name = word(&repository.code_name(branch)).into_owned();
        let mut fix = format!("{fetch}`git diff {reviewed} {name}` shows the difference");
        if !at.is_empty() {
            let (id, from, field) = (&record.id, &record.from, at.trim_start_matches('/'));
            fix += &format!(
                "; if you reviewed that, `git handoff cancel {id} --as {from}`, and send it again with --set {field}={here}"
            );
        }
        let finding = Finding::warning(FindingCode::EvidenceBranch, at, text);
        Ok(Some(finding.fix(fix)))
    }

    /// The results of the demanded checks; those of an earlier attempt are reused if they had the
    /// same subject.
    fn judged(
        &self,
        prepared: &mut PreparedContract<'r, '_>,
        tip: &Snapshot<'r>,
        step: &PlannedStep,
    ) -> Result<Judged, LedgerError> {
        if step.demanded.is_empty() && !prepared.names_commits() {
            return Ok(Judged::default());
        }
        let held = step.receipt.record.follows.as_ref();
        let subject = (held.cloned(), prepared.gathered.code.clone());
        let known = prepared.known.take();
        let mut judged = match known.filter(|(known, _)| *known == subject) {
            Some((_, judged)) => judged,
            None => self.judge(prepared, tip, &step.demanded, held)?,
        };
        judged.refuse(prepared.unapproved(tip, &step.receipt.record)?);
        if judged.refuses() {
            return Err(ContractError::Evidence(judged.findings).into());
        }
        prepared.known = Some((subject, judged.clone()));
        Ok(judged)
    }

    /// Checks the claims of a contract whose sender held this handoff. Each contradiction is an
    /// error if it is enforced, else a warning.
    fn judge(
        &self,
        prepared: &PreparedContract<'r, '_>,
        tip: &Snapshot<'r>,
        demanded: &[(Check, Policy)],
        held: Option<&HandoffId>,
    ) -> Result<Judged, LedgerError> {
        let rules = &prepared.rules;
        let protocol = rules.protocol();
        let Some(kind) = protocol.contract_type(&prepared.contract.kind) else {
            return Ok(Judged::default());
        };
        let claimed = Claimed::of(protocol, kind, &prepared.contract);
        let id = |code: &Code| code.commit.parse::<ObjectId>().ok();
        let folder = tip.issue(&prepared.contract.issue)?;
        let branch = prepared.branch.clone();
        let own = |code: &Code| Some(&code.branch) == branch.as_ref();
        let since = match held {
            Some(held) => folder.record(held.number())?.and_then(|record| record.code),
            None => None,
        };
        let merged = if demanded.iter().any(|(check, _)| *check == Check::Merge) {
            self.merged_at(&folder, branch.as_deref())?
        } else {
            Merged::Unknown
        };
        let issue = folder.issue()?;
        let issue = issue.as_ref().map(|issue| (issue, protocol.definition()));
        let base_branch = base_branch(self.repository(), issue, branch.as_deref(), claimed.base());
        let base = match &base_branch {
            Some(branch) => self.repository().base_code(branch)?,
            None => None,
        };
        let ground = Ground {
            tip: prepared.gathered.code.as_ref().and_then(id),
            merged,
            base: base.as_ref().and_then(id),
            since: since.filter(own).as_ref().and_then(id),
            remote: self.on_remote(prepared, tip, base_branch.as_deref(), demanded)?,
            branch,
            base_branch,
        };
        let none = Reports::default();
        let judge = Judge {
            repository: self.repository(),
            claimed,
            ground,
            artifacts: &prepared.gathered.artifacts,
            reports: prepared.offer.reports.unwrap_or(&none),
        };
        let mut judged = judge.judge(demanded)?;
        let remote = judge.ground.remote.as_ref();
        judged.to_push = remote.and_then(|remote| remote.to_push.clone());
        let policy = |check| protocol.policy(check, tip.manifest().evidence);
        let mut misnamed = judge.misnamed(policy)?;
        // An outside event is about a commit that its host has.
        let code = prepared.gathered.code.as_ref();
        let own = code.filter(|_| kind.settles && prepared.session.delivery.is_none());
        if let (Some(code), Some(reviews)) = (own, &kind.reviews)
            && let named = judge.claimed.named()
            && named.iter().all(|(_, commit)| *commit == code.commit)
        {
            let at = reviews.commit.as_deref().unwrap_or_default();
            let unseen = self.unread(prepared, tip, (code, at));
            let is_told = unseen.as_ref().is_some_and(Finding::is_error);
            misnamed.retain(|found| !is_told || found.path != at);
            judged.refuse(Vec::from_iter(unseen));
        }
        judged.refuse(misnamed);
        judged.refuse(judge.unpushed(demanded)?.into_iter().collect());
        let findings = std::mem::take(&mut judged.findings);
        judged.findings = placed(protocol, rules, kind, prepared.offer.input, findings)?;
        judged.findings.sort_by_key(|f| (f.line, f.column));
        Ok(judged)
    }

    /// The finding that this clone lacks the commit that a contract approves, and how its sender
    /// goes on. `check`, and what is refused already, do not ask `origin`.
    fn unread(
        &self,
        prepared: &PreparedContract<'_, '_>,
        tip: &Snapshot<'_>,
        (code, at): (&Code, &str),
    ) -> Option<Finding> {
        let is_asked = !self.is_rehearsed() && !prepared.is_refused && !prepared.session.offline;
        let protocol = prepared.rules.protocol();
        let by = prepared.actor.as_ref().filter(|_| is_asked);
        let issue = &prepared.contract.issue;
        let again = by.map(|by| handed_on_again(protocol, (issue, by), &code.branch));
        self.unseen(tip, protocol, (code, at), again)
    }

    /// The finding that this clone lacks the commit that an approval is of, if evidence is checked:
    /// an error where `origin` can be asked for it. `at` is where the contract names it, and `again`
    /// what helps if its branch was rewritten on `origin`, which is asked then.
    pub fn unseen(
        &self,
        tip: &Snapshot<'_>,
        protocol: &Protocol,
        (code, at): (&Code, &str),
        again: Option<String>,
    ) -> Option<Finding> {
        let repository = self.repository();
        let commit = code.commit.parse::<ObjectId>().ok()?;
        let is_checked = protocol.policy(Check::Commits, tip.manifest().evidence) != Policy::Off;
        if !is_checked || repository.has(commit) {
            return None;
        }
        let (short, branch) = (commit.short(), word(&code.branch));
        let mut text = format!("commit {short}, which this approves, is not here");
        let is_asked = self.is_shared() && self.out_of_reach().is_none();
        let again = again.filter(|_| is_asked && repository.remote_url("origin").is_some());
        let gone = again.and_then(|again| Some((again, gone(repository, code)?)));
        if let Some((_, gone)) = &gone {
            text += &format!(": {}", gone.text(&code.branch));
        }
        let push = push_by_author(code);
        let code = Check::Commits.code();
        Some(if let Some((again, gone)) = gone {
            let fix = match gone {
                Gone::Rewritten(_) => again,
                Gone::NoBranch => push,
            };
            Finding::error(code, at, text).fix(fix)
        } else if repository.remote_url("origin").is_some() {
            let fix = format!("`git fetch origin {branch}`, and read it before you approve it");
            Finding::error(code, at, text).fix(fix)
        } else {
            Finding::warning(code, at, text).fix("fetch it, and read it before a merge")
        })
    }

    /// The state of the code on `origin`, if the ledger is shared and this clone has an `origin`.
    /// The remote is asked about the branch that is sent, because it may have been deleted or
    /// rewritten. Commits that `send` pushes after all checks count as there. `check` does not use
    /// the network.
    fn on_remote(
        &self,
        prepared: &PreparedContract<'_, '_>,
        snapshot: &Snapshot<'_>,
        base: Option<&str>,
        demanded: &[(Check, Policy)],
    ) -> Result<Option<OnRemote>, LedgerError> {
        let repository = self.repository();
        if !self.is_shared() || repository.remote_url("origin").is_none() {
            return Ok(None);
        }
        let at = |branch: Option<&str>| repository.on_origin(branch?);
        let mut known = OnRemote {
            branch: at(prepared.branch.as_deref()),
            base: at(base),
            is_out_of_reach: prepared.session.offline || self.out_of_reach().is_some(),
            to_push: None,
            refused: None,
        };
        let of_code = |(check, _): &(Check, Policy)| {
            matches!(check, Check::Branch | Check::Commits | Check::CommitsAdded)
        };
        let asks = !known.is_out_of_reach && demanded.iter().any(of_code);
        let Some(branch) = prepared.branch.as_deref().filter(|_| asks) else {
            return Ok(Some(known));
        };
        let is_rehearsed = self.is_rehearsed() || prepared.is_refused;
        let tracked = known.branch;
        match (!is_rehearsed).then(|| asked(repository, branch)) {
            None => {}
            Some(Ok(tip)) if tip.is_none_or(|tip| repository.has(tip)) => known.branch = tip,
            // Its history is cut off here.
            Some(Ok(_)) => return Ok(Some(known)),
            Some(Err(_)) => {
                known.is_out_of_reach = true;
                return Ok(Some(known));
            }
        }
        // A deleted or rewritten branch is reported, not restored.
        if let Some((agent, commit)) = self.to_push(prepared, snapshot, base, &known)?
            && goes_on(repository, tracked, known.branch)?
        {
            known.refused.clone_from(&prepared.unpushable);
            if known.refused.is_none() {
                (known.branch, known.to_push) = (Some(commit), Some((agent.clone(), commit)));
            }
        }
        Ok(Some(known))
    }

    /// Pushes the code branch of a contract that passed its checks, if `origin` lacks it.
    ///
    /// # Errors
    /// Why `origin`, or a hook, refused it.
    fn push_code(&self, prepared: &mut PreparedContract<'_, '_>) -> Result<(), String> {
        let (Some((_, judged)), Some(branch)) = (&mut prepared.known, &prepared.branch) else {
            return Ok(());
        };
        let to_push = judged.to_push.take().filter(|_| !self.is_rehearsed());
        if let Some((agent, commit)) = to_push {
            push(self.repository(), (branch, commit), &agent)?;
            judged.pushed = Some(branch.clone());
        }
        Ok(())
    }

    /// The commit of the branch to push, if `origin` lacks it and agents may write to the branch.
    fn to_push<'p>(
        &self,
        prepared: &'p PreparedContract<'_, '_>,
        snapshot: &Snapshot<'_>,
        base: Option<&str>,
        known: &OnRemote,
    ) -> Result<Option<(&'p AgentName, ObjectId)>, LedgerError> {
        let (repository, contract) = (self.repository(), &prepared.contract);
        let (Some(agent), Some(code)) = (&prepared.actor, &prepared.gathered.code) else {
            return Ok(None);
        };
        let kind = prepared.rules.protocol().contract_type(&contract.kind);
        let is_review = kind.is_some_and(|kind| kind.reviews.is_some());
        let Some(commit) = code.commit.parse().ok().filter(|_| !is_review) else {
            return Ok(None);
        };
        let has = |tip: ObjectId| repository.is_in_history(commit, tip);
        let is_there = known.branch.map(has).transpose()? == Some(true);
        let is_in_base = || known.base.map(has).transpose();
        // The next agent needs a new branch that has no commits yet; a merged one is not restored.
        let is_new = || {
            let issue = snapshot.issue(&contract.issue)?.shared_issue()?;
            let definition = prepared.rules.protocol().definition();
            let merged = issue.map(|issue| {
                let facts = issue.known(definition);
                definition
                    .merge_facts()
                    .any(|fact| facts.contains_key(fact))
            });
            let reports_merge = kind.and_then(|kind| kind.claims.as_ref()?.merge.as_ref());
            Ok::<_, LedgerError>(reports_merge.is_none() && merged != Some(true))
        };
        if is_there || is_in_base()? == Some(true) && (known.branch.is_some() || !is_new()?) {
            return Ok(None);
        }
        let own = (&contract.issue, code.branch.as_str());
        let may = is_below(repository, known.branch, commit)?
            && self.is_for_agents(snapshot, own, base, prepared.session.is_run)?;
        Ok(may.then_some((agent, commit)))
    }

    /// The commit of a branch when it was merged.
    fn merged_at(
        &self,
        folder: &IssueFolder<'_>,
        branch: Option<&str>,
    ) -> Result<Merged, LedgerError> {
        let stood = newest_code(self.repository(), folder, branch)?;
        let stood = stood.and_then(|code| code.commit.parse::<ObjectId>().ok());
        Ok(match stood {
            Some(stood) if self.repository().has(stood) => Merged::At(stood),
            Some(stood) => Merged::Elsewhere(stood),
            None => Merged::Unknown,
        })
    }

    /// Marks the artifacts that the code branch has unchanged, and reads missing ones from it.
    fn look_at(&self, artifacts: &mut [Artifact], tip: ObjectId) -> Result<(), LedgerError> {
        for artifact in artifacts {
            let bytes = match self.repository().file_at(tip, &artifact.path) {
                Ok(Some(bytes)) => bytes,
                Ok(None) | Err(FactError::Unknown(_)) => continue,
                Err(FactError::Git(error)) => return Err(error.into()),
            };
            let sha256 = digest(&bytes);
            artifact.committed = artifact
                .sha256
                .as_ref()
                .is_none_or(|known| *known == sha256);
            if artifact.sha256.is_none() {
                artifact.bytes = Some(bytes.len() as u64);
                artifact.sha256 = Some(sha256);
            }
        }
        Ok(())
    }
}

impl PreparedContract<'_, '_> {
    /// The checks that its step demands.
    fn demanded(&self, tip: &Snapshot<'_>) -> Demanded {
        demanded(
            self.rules.protocol(),
            tip.manifest().evidence,
            &self.contract,
        )
    }

    /// Whether contracts of its type name reviewed commits, or fixes.
    fn names_commits(&self) -> bool {
        let kind = self.rules.protocol().contract_type(&self.contract.kind);
        kind.is_some_and(|kind| kind.reviews.is_some() || kind.fixes.is_some())
    }

    fn code_branch(&self, tip: &Snapshot<'_>) -> Option<String> {
        let Self {
            rules, contract, ..
        } = self;
        let protocol = rules.protocol();
        let kind = protocol.contract_type(&contract.kind);
        let named = kind.and_then(|kind| Claimed::of(protocol, kind, contract).branch());
        if let Some(named) = named {
            return Some(named.to_owned());
        }
        let issue = tip.issue(&contract.issue).ok()?.issue().ok()??;
        Some(issue.facts.get("branch")?.as_str()?.to_owned())
    }

    /// Findings about the contract, with lines and columns in the document.
    fn placed(&self, findings: Vec<Finding>) -> Result<Vec<Finding>, LedgerError> {
        let protocol = self.rules.protocol();
        match protocol.contract_type(&self.contract.kind) {
            Some(kind) => placed(protocol, &self.rules, kind, self.offer.input, findings),
            None => Ok(findings),
        }
    }

    /// The objection to the contract's merge, such as a person's disapproval. The finding is not
    /// recorded, since the disapproval is.
    fn unapproved(&self, tip: &Snapshot<'_>, record: &Record) -> Result<Vec<Finding>, LedgerError> {
        let protocol = self.rules.protocol();
        let policy = protocol.policy(Check::Merge, tip.manifest().evidence);
        let folder = tip.issue(&self.contract.issue)?;
        let why = match policy {
            Policy::Off => None,
            Policy::Warn | Policy::Enforce => hindrance(tip, &folder, &self.rules, record)?,
        };
        let found = why.map(|(why, end, is_of_code)| {
            let finding = Finding::error(FindingCode::EvidenceApproval, "", why);
            let other = if is_of_code {
                "hand in other code"
            } else {
                "hand the work back for new code"
            };
            let fix = match end {
                Some(end) => format!("{other}, or let that person approve it: `{end}`"),
                None => {
                    let issue = &self.contract.issue;
                    format!("{other}, or have this code approved: `git handoff gate {issue}` says by whom")
                }
            };
            let mut finding = finding.fix(fix);
            if is_of_code || policy == Policy::Warn {
                finding.severity = Severity::Warning;
            }
            finding
        });
        self.placed(found.into_iter().collect())
    }

    /// The warning about a contract that meets no requirement, because of the worker that sends it.
    fn in_vain(&self, tip: &Snapshot<'_>, sent: &Record) -> Result<Vec<Finding>, LedgerError> {
        let protocol = self.rules.protocol();
        let folder = tip.issue(&self.contract.issue)?;
        let found = sent_in_vain(&folder, protocol, sent)?.map(|(name, why)| {
            let text = format!("this does not count for `{name}`: {why}");
            let finding = Finding::warning(FindingCode::EvidenceApproval, "", text);
            match send_again(sent, Identity::Worker) {
                Some(again) => finding.fix(again),
                None => finding,
            }
        });
        self.placed(found.into_iter().collect())
    }

    /// An error whose findings have lines and columns in the document.
    fn located(&self, mut error: LedgerError) -> LedgerError {
        if let LedgerError::Refused(refusal) = &mut error
            && let Some(findings) = refusal.misfits()
        {
            match self.placed(std::mem::take(findings)) {
                Ok(found) => *findings = found,
                Err(unreadable) => return unreadable,
            }
        }
        error
    }

    /// The handoff that the sender holds; `None` if the sender is unknown.
    fn held(&self, tip: &Snapshot<'_>) -> Result<Option<Record>, LedgerError> {
        let contract = &self.contract;
        let kind = self.rules.protocol().contract_type(&contract.kind);
        let (Some(actor), Some(kind)) = (&self.actor, kind) else {
            return Ok(None);
        };
        let folder = tip.issue(&contract.issue)?;
        let Some(issue) = folder.issue()? else {
            return Ok(None);
        };
        let from = Holder {
            agent: contract.sender(actor),
            worker: self.session.worker.as_ref(),
        };
        Ok(held(
            &folder,
            &issue,
            kind,
            contract,
            self.offer.options.answers,
            from,
        )?)
    }

    /// The files that the contract delivers, in their current state.
    ///
    /// # Errors
    /// [`ContractError::Artifact`] if one does not match the request.
    fn delivered(&self, tip: &Snapshot<'_>) -> Result<Vec<Artifact>, LedgerError> {
        let Self {
            rules, contract, ..
        } = self;
        let kind = rules.protocol().contract_type(&contract.kind);
        let Some(kind) = kind.filter(|kind| kind.artifacts.is_some()) else {
            return Ok(Vec::new());
        };
        let outcome = rules.protocol().outcome(kind, contract.status.as_deref());
        let request = if outcome.event() == Event::Complete && !kind.answers.is_empty() {
            self.held(tip)?
        } else {
            None
        };
        let expected = request.and_then(|request| request.expects);
        let (repository, value) = (tip.repository(), &contract.value);
        let (artifacts, findings) = gather(repository, rules, expected.as_ref(), kind, value)?;
        if findings.is_empty() {
            Ok(artifacts)
        } else {
            Err(ContractError::Artifact(findings).into())
        }
    }
}

impl Snapshot<'_> {
    /// The artifacts of claimable handoffs that changed since their delivery. A missing file is a
    /// warning: another clone or working tree may have it.
    ///
    /// # Errors
    /// [`LedgerError`] if the ledger or the repository can't be read.
    pub fn changed_artifacts(&self, issue: Option<&IssueKey>) -> Result<Vec<Finding>, LedgerError> {
        let mut findings = Vec::new();
        for entry in self.open()? {
            if issue.is_some_and(|key| entry.id.issue() != key) {
                continue;
            }
            let record = self.open_record(&entry)?;
            if record.state == State::Pending {
                let found = changed(self.repository(), &record)?.into_iter();
                findings.extend(found.map(|mut finding| {
                    if finding.code == FindingCode::ArtifactMissing {
                        finding.severity = Severity::Warning;
                    }
                    finding.in_commit(self.commit())
                }));
            }
        }
        Ok(findings)
    }
}

/// The finding that a step is refused, for a contract that has other faults.
fn refused_step(refusal: &Refusal) -> Finding {
    let finding = Finding::error(FindingCode::StepRefused, "", chain(refusal));
    match refusal.explanation().hint {
        Some(hint) => finding.fix(hint.to_string()),
        None => finding,
    }
}

/// Adds the finding of a protocol's gate to the refusal by it.
fn gated(protocol: &Protocol, error: LedgerError) -> LedgerError {
    let gate = Gate::ValidTransition;
    let own = |refusal: &Refusal| {
        use ContractRefusal as C;
        matches!(
            refusal,
            Refusal::Contract(
                C::Tasks { .. }
                    | C::Findings { .. }
                    | C::Inconsistent { .. }
                    | C::IdTaken { .. }
                    | C::Evidence { .. }
            ) | Refusal::Request(RequestRefusal::Unfit { .. })
                | Refusal::Lease(LeaseRefusal::Overdue(_))
        )
    };
    match error {
        LedgerError::Refused(refusal)
            if protocol.definition().gates().contains(&gate) && !own(&refusal) =>
        {
            let text = "the gate is not passed: the sender may not send this now";
            let findings = vec![Finding::error(gate.code(), "", text)];
            let refusal = Box::new(refusal);
            ContractError::Gate { refusal, findings }.into()
        }
        other => other,
    }
}
