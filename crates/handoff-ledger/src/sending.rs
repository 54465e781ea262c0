//! Sending a contract: the data gathered for it, and the step that it becomes.

use handoff_base::finding::{Finding, FindingCode, Severity};
use handoff_base::ids::{AgentName, HandoffId, IssueKey, WorkerId};
use handoff_base::{Code, Moment, ObjectId, digest, to_millisecond};
use handoff_contract::Allowance;
use handoff_git::FactError;
use handoff_model::branches::nameable;
use handoff_model::evidence::{Claimed, Demanded, demanded};
use handoff_model::intake::placed;
use handoff_model::planner::{Holder, held};
use handoff_model::{
    Artifact, Contract, ContractRefusal, Evidence, LeaseRefusal, Planned, Receipt, Record, Refusal,
    Reports, Request, RequestRefusal, Review, RoleRefusal, SendRequest, View, plan,
};
use handoff_protocol::{Check, Event, Gate, Protocol, State};

use super::artifacts::gather;
use super::base_branch::base_branch;
use super::contract_match::{ContractMatch, Offer, accepted, placed_in_issue};
use super::draft::Decided;
use super::error::{ContractError, LedgerError};
use super::evidence::{Ground, Judge, Judged, Merged, OnRemote, changed};
use super::session::Session;
use super::shared::shared;
use super::snapshot::{IssueFolder, Rules, Snapshot};
use super::write::{Done, Ledger, canonical};

/// The data that a contract is sent with.
#[derive(Clone, Debug)]
pub(super) struct Gathered {
    /// The tip of the code branch.
    pub(super) code: Option<Code>,
    pub(super) artifacts: Vec<Artifact>,
    /// The evidence for its statements.
    pub(super) evidence: Vec<Evidence>,
    /// Allowed matches of secret patterns in the contract.
    pub(super) allowed_secrets: Vec<Allowance>,
}

/// Where a contract is sent from.
#[derive(Clone, Copy)]
pub(super) enum Origin<'k> {
    /// From here: its claims can be checked.
    Here,
    /// From elsewhere, at an earlier time that its claims are about.
    Foreign,
    /// From an exported ledger, with the data gathered at that time.
    Export(&'k Gathered),
}

/// Why the claims of an imported contract are not checked.
const IMPORTED: &str = "imported";

/// How many handoffs to read to find the last commit of a deleted branch.
const LOOK_BACK: u32 = 64;

/// A contract with all the data that it is sent with.
struct PreparedContract<'r, 'o> {
    rules: Rules<'r>,
    contract: Contract,
    /// The warnings of its review.
    warnings: Vec<Finding>,
    offer: &'o Offer<'o>,
    origin: Origin<'o>,
    /// The acting agent's name in the protocol, if it is known.
    actor: Option<AgentName>,
    /// The worker that acts as it, if it is known.
    worker: Option<WorkerId>,
    /// The code branch that it names, or that its issue is known to have.
    branch: Option<String>,
    code: Option<Code>,
    artifacts: Vec<Artifact>,
    demanded: Demanded,
    /// Whether its sender stays offline, and can't push now.
    is_offline: bool,
    /// The results of the checks, for a sender that held this handoff.
    judged: Option<(Option<HandoffId>, Judged)>,
}

impl<'r> Ledger<'r> {
    /// Sends a contract. `offer.agent` is the sender, if known.
    ///
    /// # Errors
    /// [`LedgerError`]; the ledger is then unchanged.
    pub fn send(&mut self, session: &Session, offer: &Offer<'_>) -> Result<Done, LedgerError> {
        self.send_with(session, offer, Origin::Here)
    }

    /// Sends a contract. Data that was gathered when it was sent elsewhere is not gathered again.
    pub(super) fn send_with(
        &mut self,
        session: &Session,
        offer: &Offer<'_>,
        origin: Origin<'_>,
    ) -> Result<Done, LedgerError> {
        let snapshot = self.tip()?;
        let mut prepared = self.prepared(&snapshot, session, offer, origin)?;
        if !prepared.demanded.is_empty() {
            // Walking history takes time, so do it before other writers have to wait. A refusal of
            // the step is reported where it is decided.
            let at = to_millisecond(session.clock.author());
            if let Err(error @ LedgerError::Contract(ContractError::Evidence(_))) =
                self.decide(&mut prepared, &snapshot, session, at)
            {
                return Err(error);
            }
        }
        let mut sharing = Vec::new();
        let mut done = self.publish(session, Some(snapshot), |ledger, tip, at| {
            let rules = &prepared.rules;
            if tip.rules_id(rules.protocol().name())? != Some(rules.id()) {
                prepared = ledger.prepared(tip, session, offer, origin)?;
            }
            if matches!(origin, Origin::Here) {
                sharing = shared(tip, &prepared.rules, &prepared.contract, offer.input)?;
            }
            ledger.decide(&mut prepared, tip, session, at)
        })?;
        if !done.receipt.repeated {
            let contradictions = &done.receipt.record.contradictions;
            let found = contradictions.iter().map(|known| known.finding());
            done.warnings = std::mem::take(&mut prepared.warnings);
            done.warnings.extend(prepared.placed(found.collect())?);
            let judged = prepared.judged.take();
            done.warnings
                .extend(judged.into_iter().flat_map(|(_, judged)| judged.findings));
            done.warnings.extend(sharing);
        }
        Ok(done)
    }

    /// Runs a contract that a worker would send at this time through the pipeline, and compares it
    /// with what is known of its issue and its claims with the repository.
    ///
    /// # Errors
    /// [`LedgerError`] if the ledger or the repository can't be read; faults of the contract are in
    /// the review.
    pub fn check_claims(
        &self,
        snapshot: &Snapshot<'r>,
        offer: &Offer<'_>,
        (worker, at): (Option<&WorkerId>, Moment),
    ) -> Result<Review, LedgerError> {
        let ContractMatch { rules, review } = snapshot.match_contract(offer)?;
        let contract = review.contract.as_ref();
        let refused = contract.map(|contract| self.on_own_branch(&rules, contract, offer));
        let refused = refused.transpose()?.flatten();
        let mut review = placed_in_issue(snapshot, &rules, review, offer, (worker, at))?;
        if let Some(finding) = refused {
            review.findings.push(finding);
            review.contract = None;
        }
        if let Some(contract) = review.contract.take() {
            let mut prepared =
                PreparedContract::new(snapshot, rules, contract, offer, Origin::Here);
            prepared.worker = worker.cloned();
            let mut found = shared(snapshot, &prepared.rules, &prepared.contract, offer.input)?;
            if !prepared.demanded.is_empty() {
                self.gather(&mut prepared, snapshot)?;
                let held = prepared.held(snapshot)?.map(|record| record.id);
                let judged = self.judge(&mut prepared, snapshot, held.as_ref())?;
                found.splice(0..0, judged.findings);
            }
            let refused = found.iter().any(Finding::is_error);
            review.findings.extend(found);
            review.contract = Some(prepared.contract).filter(|_| !refused);
        }
        Ok(review)
    }

    /// Reviews a contract and gathers the data for it.
    fn prepared<'o>(
        &self,
        tip: &Snapshot<'r>,
        session: &Session,
        offer: &'o Offer<'o>,
        origin: Origin<'o>,
    ) -> Result<PreparedContract<'r, 'o>, LedgerError> {
        let ContractMatch { rules, mut review } = tip.match_contract(offer)?;
        let unused = review.unused.take();
        // The record keeps what it contradicts.
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
            (Origin::Export(known), _) => {
                contract.allowed_secrets.clone_from(&known.allowed_secrets);
            }
            (_, Some(allowance)) => return Err(ContractError::UnusedAllowance(allowance).into()),
            (_, None) => {}
        }
        let mut prepared = PreparedContract::new(tip, rules, contract, offer, origin);
        prepared.worker.clone_from(&session.worker);
        prepared.is_offline = session.offline;
        prepared.warnings = warnings;
        self.gather(&mut prepared, tip)?;
        Ok(prepared)
    }

    /// The finding that a contract names the ledger's own branch as the one that work is on.
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
            prepared.code.clone_from(&known.code);
            prepared.artifacts.clone_from(&known.artifacts);
        } else {
            prepared.branch = prepared.code_branch(tip);
            prepared.code = self.code(prepared, tip)?;
            prepared.artifacts = prepared.delivered(tip)?;
        }
        Ok(())
    }

    /// The commit of the code branch that a contract is about: the one that a review names or that
    /// an event noted for it, else the branch's newest.
    fn code(
        &self,
        prepared: &PreparedContract<'r, '_>,
        tip: &Snapshot<'r>,
    ) -> Result<Option<Code>, LedgerError> {
        let repository = self.repository();
        let Some(branch) = &prepared.branch else {
            return Ok(None);
        };
        let Some(commit) = prepared.reviewed(tip)? else {
            return Ok(repository.code(branch));
        };
        let id = commit.parse::<ObjectId>().ok();
        let known = id.and_then(|id| repository.commit(id).ok());
        Ok(Some(Code {
            branch: branch.clone(),
            commit,
            tree: known.map(|commit| commit.tree.to_string()),
        }))
    }

    fn decide(
        &self,
        prepared: &mut PreparedContract<'r, '_>,
        tip: &Snapshot<'r>,
        session: &Session,
        at: Moment,
    ) -> Result<Decided<Receipt>, LedgerError> {
        let name = prepared.actor.clone();
        let name = name.ok_or(Refusal::Role(RoleRefusal::NoSender))?;
        let actor = session.actor(&name, at);
        let folder = tip.issue(&prepared.contract.issue)?;
        let plan_with = |prepared: &PreparedContract<'r, '_>, evidence: Option<&[Evidence]>| {
            let protocol = prepared.rules.protocol();
            let request = Request::Send(SendRequest {
                contract: &prepared.contract,
                code: prepared.code.as_ref(),
                artifacts: &prepared.artifacts,
                evidence,
                policy: tip.manifest().evidence,
                answers: prepared.offer.answers,
                replaces: prepared.offer.replaces,
                token: prepared.offer.token,
            });
            let planned = plan(protocol, folder.key(), &folder, &actor, &request);
            planned.map_err(|stop| {
                let error = gated(protocol, stop.into());
                prepared.located(error)
            })
        };
        let demanded = prepared.demanded.iter();
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
            Origin::Here if prepared.demanded.is_empty() => Vec::new(),
            Origin::Here => {
                // The plan shows what the sender held; a refusal or a repeat needs no checks.
                let planned = plan_with(prepared, None)?;
                let Planned::Write(step) = &planned else {
                    return Decided::of(tip, &prepared.rules, name, planned);
                };
                let held = step.receipt.record.follows.clone();
                let known = prepared.judged.take().filter(|(known, _)| *known == held);
                let judged = match known {
                    Some((_, judged)) => judged,
                    None => self.judge(prepared, tip, held.as_ref())?,
                };
                if judged.refuses() {
                    let findings = judged.findings;
                    return Err(ContractError::Evidence(findings).into());
                }
                let evidence = judged.evidence.clone();
                prepared.judged = Some((held, judged));
                evidence
            }
        };
        let planned = plan_with(prepared, Some(&evidence))?;
        Decided::of(tip, &prepared.rules, name, planned)
    }

    /// Checks the claims of a contract whose sender held this handoff. Each contradiction is an
    /// error if that is enforced, else a warning.
    fn judge(
        &self,
        prepared: &mut PreparedContract<'r, '_>,
        tip: &Snapshot<'r>,
        held: Option<&HandoffId>,
    ) -> Result<Judged, LedgerError> {
        let (rules, demanded) = (&prepared.rules, &prepared.demanded);
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
            tip: prepared.code.as_ref().and_then(id),
            merged,
            base: base.as_ref().and_then(id),
            since: since.filter(own).as_ref().and_then(id),
            remote: self.on_remote(prepared, base_branch.as_deref()),
            branch,
            base_branch,
        };
        if demanded.iter().any(|(check, _)| *check == Check::Artifacts)
            && let Some(tip) = ground.tip
        {
            self.look_at(&mut prepared.artifacts, tip)?;
        }
        let none = Reports::default();
        let judge = Judge {
            repository: self.repository(),
            claimed,
            ground,
            artifacts: &prepared.artifacts,
            reports: prepared.offer.reports.unwrap_or(&none),
        };
        let mut judged = judge.judge(demanded)?;
        let findings = std::mem::take(&mut judged.findings);
        judged.findings = placed(protocol, rules, kind, prepared.offer.input, findings)?;
        judged.findings.sort_by_key(|f| (f.line, f.column));
        Ok(judged)
    }

    /// What `origin` has of the code, if the ledger is shared and this clone has an `origin`.
    ///
    /// Only this clone's knowledge is used, which every push and fetch updates: a check makes
    /// nobody wait for the network.
    fn on_remote(
        &self,
        prepared: &PreparedContract<'_, '_>,
        base: Option<&str>,
    ) -> Option<OnRemote> {
        let repository = self.repository();
        if !self.is_shared() || repository.remote_url("origin").is_none() {
            return None;
        }
        let at = |branch: Option<&str>| repository.on_origin(branch?);
        Some(OnRemote {
            branch: at(prepared.branch.as_deref()),
            base: at(base),
            is_out_of_reach: prepared.is_offline || self.out_of_reach().is_some(),
        })
    }

    /// The commit a branch was at when it was merged: its tip, here or on `origin`; if it was
    /// deleted, the newest commit that the ledger recorded for it.
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

    /// Notes which artifacts the code branch has unchanged, and reads from it those that are
    /// missing in the working tree.
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

impl<'r, 'o> PreparedContract<'r, 'o> {
    fn new(
        tip: &Snapshot<'r>,
        rules: Rules<'r>,
        contract: Contract,
        offer: &'o Offer<'o>,
        origin: Origin<'o>,
    ) -> Self {
        let protocol = rules.protocol();
        Self {
            actor: canonical(protocol, offer.agent.or(contract.from.as_ref())),
            demanded: demanded(protocol, tip.manifest().evidence, &contract),
            rules,
            contract,
            warnings: Vec::new(),
            offer,
            origin,
            worker: None,
            branch: None,
            code: None,
            artifacts: Vec::new(),
            is_offline: false,
            judged: None,
        }
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

    /// Findings about the contract, with their places in the document.
    fn placed(&self, findings: Vec<Finding>) -> Result<Vec<Finding>, LedgerError> {
        let protocol = self.rules.protocol();
        match protocol.contract_type(&self.contract.kind) {
            Some(kind) => placed(protocol, &self.rules, kind, self.offer.input, findings),
            None => Ok(findings),
        }
    }

    /// An error whose findings about the contract have their places in the document.
    fn located(&self, mut error: LedgerError) -> LedgerError {
        if let LedgerError::Refused(Refusal::Contract(
            ContractRefusal::Inconsistent { findings, .. }
            | ContractRefusal::Findings { findings, .. },
        )) = &mut error
        {
            match self.placed(std::mem::take(findings)) {
                Ok(found) => *findings = found,
                Err(unreadable) => return unreadable,
            }
        }
        error
    }

    /// The commit that was reviewed, if the contract names it, or an event noted it after its sender
    /// was handed the work.
    fn reviewed(&self, tip: &Snapshot<'_>) -> Result<Option<String>, LedgerError> {
        let contract = &self.contract;
        let kind = self.rules.protocol().contract_type(&contract.kind);
        let Some((kind, reviews)) = kind.and_then(|kind| Some((kind, kind.reviews.as_ref()?)))
        else {
            return Ok(None);
        };
        if let Some(named) = contract.reviewed_commit(kind) {
            return Ok(Some(named.to_owned()));
        }
        let (Some(fact), Some(held)) = (&reviews.fact, self.held(tip)?) else {
            return Ok(None);
        };
        let issue = tip.issue(&contract.issue)?.issue()?;
        let notes = issue
            .iter()
            .flat_map(|issue| issue.annotations.iter().rev());
        let mut since = notes.filter(|note| Some(note.at) >= held.sent_at());
        let noted = since.find_map(|note| note.facts.get(fact)?.as_str());
        let noted = noted.filter(|id| id.parse::<ObjectId>().is_ok());
        Ok(noted.map(str::to_ascii_lowercase))
    }

    /// The handoff that the sender holds; `None` if the sender is not known.
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
            worker: self.worker.as_ref(),
        };
        Ok(held(
            &folder,
            &issue,
            kind,
            contract,
            self.offer.answers,
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
    /// The artifacts of claimable handoffs that have changed since they were delivered. A missing
    /// file is a warning: another clone or working tree may have it.
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

/// Adds the finding of a protocol's gate to a refusal that fails it.
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
            if protocol.definition().gates.contains(&gate) && !own(&refusal) =>
        {
            let text = "the gate is not passed: the sender may not send this now";
            let findings = vec![Finding::error(gate.code(), "", text)];
            let refusal = Box::new(refusal);
            ContractError::Gate { refusal, findings }.into()
        }
        other => other,
    }
}
