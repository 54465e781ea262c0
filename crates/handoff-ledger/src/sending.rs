//! Sending a contract: the data gathered for it, and the step that it becomes.

use handoff_base::finding::{Finding, FindingCode, Severity};
use handoff_base::ids::{AgentName, HandoffId, IssueKey};
use handoff_base::text::word;
use handoff_base::{Code, Moment, ObjectId, digest, short_id};
use handoff_contract::Input;
use handoff_git::FactError;
use handoff_model::branches::nameable;
use handoff_model::evidence::{Claimed, Demanded, demanded};
use handoff_model::intake::placed;
use handoff_model::planner::{Holder, dismissed_before, held, reviewed_commit};
use handoff_model::{
    Artifact, BranchContext, Contract, ContractRefusal, Contradiction, Evidence, LeaseRefusal,
    Planned, PlannedStep, Receipt, Record, Refusal, Reports, Request, RequestRefusal, RoleRefusal,
    SendOptions, SendRequest, Step, View, branch_for_agents, plan,
};
use handoff_protocol::{Check, Event, Gate, Policy, Protocol, State};
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::artifacts::gather;
use super::base_branch::base_branch;
use super::contract_match::{ContractMatch, Offer, accepted};
use super::draft::{Decided, Draft};
use super::error::{ContractError, LedgerError};
use super::evidence::{Ground, Judge, Judged, Merged, OnRemote, changed};
use super::ledger::Ledger;
use super::origin_code::{asked, push};
use super::requirement::hindrance;
use super::session::Session;
use super::shared_resources::shared_resources;
use super::snapshot::{IssueFolder, Rules, Snapshot};
use super::step_plan::canonical;
use super::write::Done;

/// The data that a contract is sent with.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Gathered {
    /// The tip of the code branch.
    pub(super) code: Option<Code>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) artifacts: Vec<Artifact>,
    /// The evidence for its statements.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) evidence: Vec<Evidence>,
}

impl Gathered {
    /// The data that a handoff's contract was sent with.
    pub(super) fn of(record: &Record) -> Self {
        Self {
            code: record.code.clone(),
            artifacts: record.artifacts.clone(),
            evidence: record.evidence.clone(),
        }
    }
}

/// The origin of a contract.
#[derive(Clone, Copy)]
pub(super) enum Origin<'k> {
    /// This repository: its claims can be checked.
    Here,
    /// Another system, at an earlier time, to which its claims refer.
    Foreign,
    /// An exported ledger, with the data gathered at that time.
    Export(&'k Gathered),
}

/// Why the claims of an imported contract are not checked.
const IMPORTED: &str = "imported";

/// How many handoffs to read to find the last commit of a deleted branch.
const LOOK_BACK: u32 = 64;

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

    /// Sends the contract of a recorded step again, with the data gathered for it then.
    pub(super) fn resend(
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
    pub(super) fn send_with(
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
                let mut prepared = ledger.prepared(tip, session, offer, origin)?;
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
            done.warnings.extend(sent.warnings);
        }
        Ok(done)
    }

    /// Reviews a contract and gathers the data for it.
    fn prepared<'o>(
        &self,
        tip: &Snapshot<'r>,
        session: &'o Session,
        offer: &'o Offer<'o>,
        origin: Origin<'o>,
    ) -> Result<PreparedContract<'r, 'o>, LedgerError> {
        let ContractMatch { rules, mut review } = tip.match_contract(offer)?;
        let unused = review.unused.take();
        // The record keeps the contradictions.
        let warnings = review.findings.iter().filter(|finding| {
            finding.severity == Severity::Warning
                && finding.code != FindingCode::ContractInconsistent
        });
        let warnings: Vec<Finding> = warnings.cloned().collect();
        let mut contract = accepted(review)?;
        if matches!(origin, Origin::Here)
            && let Some(finding) = self.on_own_branch(&rules, &contract, offer)?
        {
            return Err(ContractError::Invalid(vec![finding]).into());
        }
        match (origin, unused) {
            (Origin::Export(_), _) => {
                let allowed = &offer.options.allowed_secrets;
                contract.allowed_secrets.clone_from(allowed);
            }
            (_, Some(allowance)) => return Err(ContractError::UnusedAllowance(allowance).into()),
            (_, None) => {}
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
        };
        self.gather(&mut prepared, tip)?;
        Ok(prepared)
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

    /// The step of a contract on a tip, with evidence from the repository.
    fn decide(
        &self,
        prepared: &mut PreparedContract<'r, '_>,
        tip: &Snapshot<'r>,
        at: Moment,
    ) -> Decided<Receipt> {
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
        let mut planned = planned.map_err(|stop| {
            let error = gated(protocol, stop.into());
            prepared.located(error)
        })?;
        match &mut planned {
            Planned::Write(step) => {
                if matches!(prepared.origin, Origin::Here) {
                    self.ensure_news(prepared, tip, &step.receipt.record)?;
                }
                self.prove(prepared, tip, step)?;
            }
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
                let moved = self.branch_moved(prepared, &step.receipt.record);
                let moved = prepared.placed(moved.into_iter().collect())?;
                prepared.warnings.extend(moved);
                judged.evidence
            }
        };
        Ok(step.prove(evidence)?)
    }

    /// The warning about an approval whose branch is at another commit here.
    fn branch_moved(
        &self,
        prepared: &PreparedContract<'r, '_>,
        record: &Record,
    ) -> Option<Finding> {
        let kind = prepared
            .rules
            .protocol()
            .contract_type(&record.contract_type)?;
        let reviews = kind.reviews.as_ref().filter(|_| kind.settles)?;
        let code = prepared.gathered.code.as_ref()?;
        let (branch, reviewed) = (&code.branch, short_id(&code.commit));
        let here = self.repository().code(branch)?.commit;
        if here == code.commit {
            return None;
        }
        let text = format!(
            "{branch} is at {} here, and this approves {reviewed}",
            short_id(&here)
        );
        let commit = code.commit.parse::<ObjectId>();
        let is_here = commit.is_ok_and(|commit| self.repository().has(commit));
        let fetch = if is_here {
            ""
        } else {
            "after `git fetch origin`, "
        };
        let name = word(&self.repository().code_name(branch)).into_owned();
        let mut fix = format!("{fetch}`git diff {reviewed} {name}` shows the difference");
        if let Some(at) = &reviews.commit {
            let (id, from, field) = (&record.id, &record.from, at.trim_start_matches('/'));
            fix += &format!(
                "; if you reviewed that, `git handoff cancel {id} --as {from}`, and send it again with --set {field}={here}"
            );
        }
        let at = reviews.commit.as_deref().unwrap_or_default();
        Some(Finding::warning(FindingCode::EvidenceBranch, at, text).fix(fix))
    }

    /// The results of the demanded checks; those of an earlier attempt are reused if they had the
    /// same subject.
    fn judged(
        &self,
        prepared: &mut PreparedContract<'r, '_>,
        tip: &Snapshot<'r>,
        step: &PlannedStep,
    ) -> Result<Judged, LedgerError> {
        let protocol = prepared.rules.protocol();
        let kind = protocol.contract_type(&prepared.contract.kind);
        let names = kind.is_some_and(|kind| kind.reviews.is_some() || kind.fixes.is_some());
        if step.demanded.is_empty() && !names {
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
        judged.refuse(judge.misnamed(policy)?);
        // An outside event is about a commit that its host has.
        let code = prepared.gathered.code.as_ref();
        let own = code.filter(|_| kind.settles && prepared.session.delivery.is_none());
        if let (Some(code), Some(reviews)) = (own, &kind.reviews)
            && judge.claimed.named().is_empty()
        {
            let at = reviews.commit.as_deref().unwrap_or_default();
            judged.refuse(Vec::from_iter(self.unseen(tip, protocol, code, at)));
        }
        judged.refuse(judge.unpushed(demanded)?.into_iter().collect());
        let findings = std::mem::take(&mut judged.findings);
        judged.findings = placed(protocol, rules, kind, prepared.offer.input, findings)?;
        judged.findings.sort_by_key(|f| (f.line, f.column));
        Ok(judged)
    }

    /// The finding that this clone lacks the commit that an approval is of, if evidence is checked:
    /// an error where `origin` can be asked for it. `at` is where the contract names it.
    pub fn unseen(
        &self,
        tip: &Snapshot<'_>,
        protocol: &Protocol,
        code: &Code,
        at: &str,
    ) -> Option<Finding> {
        let repository = self.repository();
        let commit = code.commit.parse::<ObjectId>().ok()?;
        let is_checked = protocol.policy(Check::Commits, tip.manifest().evidence) != Policy::Off;
        if !is_checked || repository.has(commit) {
            return None;
        }
        let (short, branch) = (commit.short(), word(&code.branch));
        let text = format!("commit {short}, which this approves, is not here");
        let code = Check::Commits.code();
        Some(if repository.remote_url("origin").is_some() {
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
        let is_rehearsed = self.is_rehearsed();
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
        let goes_on = match (tracked, known.branch) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(tracked), Some(tip)) => repository.is_in_history(tracked, tip)?,
        };
        if let Some((agent, commit)) = self.to_push(prepared, snapshot, base, &known)?
            && goes_on
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

    /// The commit of the branch to push, if `origin` lacks it and agents may write to the branch:
    /// it is checked out in this working tree, or not named after another issue. In a run of `work`,
    /// an agent could name a branch of the user, so there it must be named after the issue.
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
        if known.branch.map(has).transpose()? == Some(true)
            || known.base.map(has).transpose()? == Some(true)
        {
            return Ok(None);
        }
        let patterns = snapshot.branch_patterns()?;
        let default = repository.base_branch();
        let context = BranchContext {
            issue: &contract.issue,
            ledger_branch: self.branch(),
            default_branch: default.as_deref(),
            base,
            patterns: &patterns,
            made_here: repository.current_branch().as_ref() == Some(&code.branch)
                || !prepared.session.is_run && patterns.issue(&code.branch).is_none(),
        };
        let goes_on = known
            .branch
            .map(|tip| repository.is_in_history(tip, commit));
        let may = branch_for_agents(&code.branch, &context).is_ok();
        Ok((may && goes_on.transpose()? != Some(false)).then_some((agent, commit)))
    }

    /// The commit of a branch when it was merged: its tip, here or on `origin`; if it was deleted,
    /// the newest commit that the ledger recorded for it.
    fn merged_at(
        &self,
        folder: &IssueFolder<'_>,
        branch: Option<&str>,
    ) -> Result<Merged, LedgerError> {
        let tip = branch.map(|branch| self.repository().base_code(branch));
        let mut stood = tip.transpose()?.flatten();
        let newest = folder.issue()?.map_or(0, |issue| issue.handoffs);
        let mut back = (1..=newest).rev().take(LOOK_BACK as usize);
        while let (None, Some(number)) = (&stood, back.next()) {
            let code = folder.record(number)?.and_then(|record| record.code);
            stood = code.filter(|code| branch.is_none_or(|branch| code.branch == branch));
        }
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
        let found = why.map(|(why, is_of_code)| {
            let finding = Finding::error(FindingCode::EvidenceApproval, "", why);
            let mut finding = finding.fix(format!(
                "hand the work back for new code, or let that person approve it: `git handoff gate {}`",
                self.contract.issue
            ));
            if is_of_code || policy == Policy::Warn {
                finding.severity = Severity::Warning;
            }
            finding
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
