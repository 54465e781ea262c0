//! Sending a contract: what is gathered for it, and the step that it becomes.

use handoff_base::finding::{Finding, Severity};
use handoff_base::ids::{AgentName, HandoffId, IssueKey};
use handoff_base::{Code, Moment, ObjectId, digest, to_second};
use handoff_contract::Allowance;
use handoff_git::FactError;
use handoff_model::evidence::{Claimed, Demanded, demanded};
use handoff_model::intake::placed;
use handoff_model::planner::held;
use handoff_model::{
    Artifact, Contract, Evidence, Planned, Receipt, Record, Refusal, Reports, Request, Review,
    SendRequest, View, plan,
};
use handoff_protocol::{Check, Event, Gate, Protocol, State};

use super::artifacts::gather;
use super::contract_match::{ContractMatch, Offer, accepted, placed_in_tasks};
use super::draft::Decided;
use super::error::LedgerError;
use super::evidence::{Ground, Judge, Judged, MISSING, Merged, changed};
use super::session::Session;
use super::snapshot::{IssueFolder, Rules, Snapshot};
use super::write::{Done, Ledger, canonical};

/// What a contract is sent with that it does not hold itself.
#[derive(Clone, Debug)]
pub(super) struct Gathered {
    /// Where the code branch stands.
    pub(super) code: Option<Code>,
    /// The files that the contract delivers.
    pub(super) artifacts: Vec<Artifact>,
    /// What was found of its claims.
    pub(super) evidence: Vec<Evidence>,
    /// What it holds that was allowed although it looks like a secret.
    pub(super) allowed_secrets: Vec<Allowance>,
}

/// Where a contract is sent from.
#[derive(Clone, Copy)]
pub(super) enum Origin<'k> {
    /// From here, where its claims can be checked.
    Here,
    /// From elsewhere, a while ago: its claims are about that time.
    Foreign,
    /// From a ledger that was exported, with what was gathered then.
    Export(&'k Gathered),
}

/// Why the claims of a contract that was sent elsewhere are not checked.
const IMPORTED: &str = "imported";

/// How many handoffs are read to find where a branch stood that is gone.
const LOOK_BACK: u32 = 64;

/// A contract with all that goes with it.
struct PreparedContract<'r> {
    rules: Rules<'r>,
    contract: Contract,
    /// Who acts, by the name that the protocol has for it, where anybody is known to.
    actor: Option<AgentName>,
    /// The code branch that it names, or that its issue is known to have.
    branch: Option<String>,
    code: Option<Code>,
    artifacts: Vec<Artifact>,
    /// The checks that its claims need.
    demanded: Demanded,
    /// What was found of its claims, for a sender that held this handoff.
    judged: Option<(Option<HandoffId>, Judged)>,
}

impl<'r> Ledger<'r> {
    /// Sends a contract. `offer.agent` is who sends it, where that is known.
    ///
    /// # Errors
    /// [`LedgerError`]; the ledger is then unchanged.
    pub fn send(&self, session: &Session, offer: &Offer<'_>) -> Result<Done, LedgerError> {
        self.send_with(session, offer, Origin::Here)
    }

    /// Sends a contract; what was gathered for it when it was sent elsewhere is
    /// not gathered again.
    pub(super) fn send_with(
        &self,
        session: &Session,
        offer: &Offer<'_>,
        origin: Origin<'_>,
    ) -> Result<Done, LedgerError> {
        let snapshot = self.tip()?;
        let mut prepared = self.prepared(&snapshot, offer, origin)?;
        if !prepared.demanded.is_empty() {
            // A walk through history takes its time: not while others wait to write.
            // What refuses the step says so where it is decided.
            let at = to_second(session.clock.author());
            if let Err(error @ LedgerError::Evidence { .. }) =
                self.decide(&mut prepared, &snapshot, session, at, offer, origin)
            {
                return Err(error);
            }
        }
        let mut done = self.publish(session, Some(snapshot), |tip, at| {
            let rules = &prepared.rules;
            if tip.rules_id(rules.protocol().name())? != Some(rules.id()) {
                prepared = self.prepared(tip, offer, origin)?;
            }
            self.decide(&mut prepared, tip, session, at, offer, origin)
        })?;
        if let Some((_, judged)) = prepared.judged.filter(|_| !done.receipt.repeated) {
            done.warnings = judged.findings;
        }
        Ok(done)
    }

    /// Takes a contract through the pipeline, and compares what it says of tasks
    /// with where they stand, and what it claims with the repository.
    ///
    /// # Errors
    /// [`LedgerError`] when the ledger or the repository can't be read; faults of
    /// the contract are in the review.
    pub fn check_claims(
        &self,
        snapshot: &Snapshot<'r>,
        offer: &Offer<'_>,
    ) -> Result<Review, LedgerError> {
        let ContractMatch { rules, review } = snapshot.match_contract(offer)?;
        let mut review = placed_in_tasks(snapshot, rules.protocol(), review)?;
        let policy = snapshot.manifest().evidence;
        let needed = |contract: &Contract| demanded(rules.protocol(), policy, contract);
        let demanded = review.contract.as_ref().map(needed).unwrap_or_default();
        if let Some(contract) = review.contract.take_if(|_| !demanded.is_empty()) {
            let mut prepared =
                self.gathered(snapshot, rules, contract, demanded, offer, Origin::Here)?;
            let held = prepared.held(snapshot, offer)?.map(|record| record.id);
            let found = self
                .judge(&mut prepared, snapshot, held.as_ref(), offer)?
                .findings;
            let refused = found.iter().any(Finding::is_error);
            review.findings.extend(found);
            review.contract = Some(prepared.contract).filter(|_| !refused);
        }
        Ok(review)
    }

    /// Reviews a contract and gathers what goes with it.
    fn prepared(
        &self,
        tip: &Snapshot<'r>,
        offer: &Offer<'_>,
        origin: Origin<'_>,
    ) -> Result<PreparedContract<'r>, LedgerError> {
        let ContractMatch { rules, mut review } = tip.match_contract(offer)?;
        let unused = review.unused.take();
        let mut contract = accepted(review)?;
        match (origin, unused) {
            (Origin::Export(known), _) => {
                contract.allowed_secrets.clone_from(&known.allowed_secrets);
            }
            (_, Some(allowance)) => return Err(LedgerError::UnusedAllowance { allowance }),
            (_, None) => {}
        }
        let demanded = demanded(rules.protocol(), tip.manifest().evidence, &contract);
        self.gathered(tip, rules, contract, demanded, offer, origin)
    }

    /// Gathers what goes with a contract, unless that was done elsewhere.
    fn gathered(
        &self,
        tip: &Snapshot<'r>,
        rules: Rules<'r>,
        contract: Contract,
        demanded: Demanded,
        offer: &Offer<'_>,
        origin: Origin<'_>,
    ) -> Result<PreparedContract<'r>, LedgerError> {
        let mut prepared = PreparedContract {
            actor: canonical(rules.protocol(), offer.agent.or(contract.from.as_ref())),
            rules,
            contract,
            branch: None,
            code: None,
            artifacts: Vec::new(),
            demanded,
            judged: None,
        };
        if let Origin::Export(known) = origin {
            prepared.code.clone_from(&known.code);
            prepared.artifacts.clone_from(&known.artifacts);
        } else {
            prepared.branch = prepared.code_branch(tip);
            let branch = prepared.branch.as_deref();
            prepared.code = branch.and_then(|branch| self.repository().code(branch));
            prepared.artifacts = prepared.delivered(tip, offer)?;
        }
        Ok(prepared)
    }

    /// The step that a contract becomes on a tip.
    fn decide(
        &self,
        prepared: &mut PreparedContract<'r>,
        tip: &Snapshot<'r>,
        session: &Session,
        at: Moment,
        offer: &Offer<'_>,
        origin: Origin<'_>,
    ) -> Result<Decided<Receipt>, LedgerError> {
        let name = prepared.actor.clone().ok_or(Refusal::NoSender)?;
        let actor = session.actor(&name, at);
        let folder = tip.issue(&prepared.contract.issue)?;
        let plan_with = |prepared: &PreparedContract<'r>, evidence: Option<&[Evidence]>| {
            let protocol = prepared.rules.protocol();
            let request = Request::Send(SendRequest {
                contract: &prepared.contract,
                code: prepared.code.as_ref(),
                artifacts: &prepared.artifacts,
                evidence,
                policy: tip.manifest().evidence,
                answers: offer.answers,
                token: offer.token,
            });
            let planned = plan(protocol, folder.key(), &folder, &actor, &request);
            planned.map_err(|stop| gated(protocol, stop.into()))
        };
        let demanded = prepared.demanded.iter();
        let skipped = |&(check, policy)| Evidence::skipped(check, policy, IMPORTED);
        let evidence: Vec<Evidence> = match origin {
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
                // What the sender held follows from the plan; what is refused or
                // repeated needs no checks.
                let planned = plan_with(prepared, None)?;
                let Planned::Write(step) = &planned else {
                    return Decided::of(&prepared.rules, name, planned);
                };
                let held = step.receipt.record.follows.clone();
                let known = prepared.judged.take().filter(|(known, _)| *known == held);
                let judged = match known {
                    Some((_, judged)) => judged,
                    None => self.judge(prepared, tip, held.as_ref(), offer)?,
                };
                if judged.refuses() {
                    let findings = judged.findings;
                    return Err(LedgerError::Evidence { findings });
                }
                let evidence = judged.evidence.clone();
                prepared.judged = Some((held, judged));
                evidence
            }
        };
        let planned = plan_with(prepared, Some(&evidence))?;
        Decided::of(&prepared.rules, name, planned)
    }

    /// Checks the claims of a contract whose sender held this handoff: an error for
    /// each contradiction where that is enforced, else a warning.
    fn judge(
        &self,
        prepared: &mut PreparedContract<'r>,
        tip: &Snapshot<'r>,
        held: Option<&HandoffId>,
        offer: &Offer<'_>,
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
        let base_branch = claimed
            .base()
            .map(str::to_owned)
            .or_else(|| self.repository().base_branch());
        let base = match &base_branch {
            Some(branch) => self.repository().base_code(branch)?,
            None => None,
        };
        let ground = Ground {
            is_ledger: branch.as_deref() == Some(self.branch()),
            tip: prepared.code.as_ref().and_then(id),
            merged,
            base_branch,
            base: base.as_ref().and_then(id),
            since: since.filter(own).as_ref().and_then(id),
            branch,
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
            reports: offer.reports.unwrap_or(&none),
        };
        let mut judged = judge.judge(demanded)?;
        let findings = std::mem::take(&mut judged.findings);
        judged.findings = placed(protocol, rules, kind, offer.input, findings)?;
        judged.findings.sort_by_key(|f| (f.line, f.column));
        Ok(judged)
    }

    /// Where a branch stood when it was merged: its tip, here or on `origin`, and
    /// only where it is gone the newest commit at which the ledger saw it.
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

    /// Notes which artifacts the code branch has as they are, and takes from it
    /// those that the working tree does not have.
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

impl PreparedContract<'_> {
    /// The code branch that the contract names, or that its issue is known to have.
    fn code_branch(&self, tip: &Snapshot<'_>) -> Option<String> {
        let Self {
            rules, contract, ..
        } = self;
        let kind = rules.protocol().contract_type(&contract.kind);
        let at = kind.and_then(|kind| rules.protocol().field(kind, |f| &f.branch));
        let named = at.and_then(|at| contract.value.pointer(at)?.as_str());
        if let Some(named) = named {
            return Some(named.to_owned());
        }
        let issue = tip.issue(&contract.issue).ok()?.issue().ok()??;
        Some(issue.facts.get("branch")?.as_str()?.to_owned())
    }

    /// What the sender holds; nothing, where nobody is known to send it.
    fn held(&self, tip: &Snapshot<'_>, offer: &Offer<'_>) -> Result<Option<Record>, LedgerError> {
        let contract = &self.contract;
        let kind = self.rules.protocol().contract_type(&contract.kind);
        let (Some(actor), Some(kind)) = (&self.actor, kind) else {
            return Ok(None);
        };
        let folder = tip.issue(&contract.issue)?;
        let Some(issue) = folder.issue()? else {
            return Ok(None);
        };
        let from = contract.sender(actor);
        Ok(held(&folder, &issue, kind, contract, offer.answers, from)?)
    }

    /// The files that the contract delivers, as they are now.
    ///
    /// # Errors
    /// [`LedgerError::Artifact`] when one is not what the request asked for.
    fn delivered(
        &self,
        tip: &Snapshot<'_>,
        offer: &Offer<'_>,
    ) -> Result<Vec<Artifact>, LedgerError> {
        let Self {
            rules, contract, ..
        } = self;
        let kind = rules.protocol().contract_type(&contract.kind);
        let Some(kind) = kind.filter(|kind| kind.artifacts.is_some()) else {
            return Ok(Vec::new());
        };
        let outcome = rules.protocol().outcome(kind, contract.status.as_deref());
        let request = if outcome.event() == Event::Complete && !kind.answers.is_empty() {
            self.held(tip, offer)?
        } else {
            None
        };
        let expected = request.and_then(|request| request.expects);
        let (repository, value) = (tip.repository(), &contract.value);
        let (artifacts, findings) = gather(repository, rules, expected.as_ref(), kind, value)?;
        if findings.is_empty() {
            Ok(artifacts)
        } else {
            Err(LedgerError::Artifact { findings })
        }
    }
}

impl Snapshot<'_> {
    /// What handoffs that wait to be claimed delivered and that is not what it was.
    /// A file that is not here is a warning: another clone may have it, or another
    /// working tree.
    ///
    /// # Errors
    /// [`LedgerError`] when the ledger or the repository can't be read.
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
                    if finding.code == MISSING {
                        finding.severity = Severity::Warning;
                    }
                    finding.in_commit(self.commit())
                }));
            }
        }
        Ok(findings)
    }
}

/// A refusal that fails a gate of the protocol.
fn gated(protocol: &Protocol, error: LedgerError) -> LedgerError {
    let gate = Gate::ValidTransition;
    let own = |refusal: &Refusal| {
        matches!(
            refusal,
            Refusal::Tasks { .. }
                | Refusal::Unfit { .. }
                | Refusal::IdTaken { .. }
                | Refusal::Overdue { .. }
                | Refusal::Evidence { .. }
        )
    };
    match error {
        LedgerError::Refused(refusal)
            if protocol.definition().gates.contains(&gate) && !own(&refusal) =>
        {
            let text = "the gate is not passed: the sender may not send this now";
            let findings = vec![Finding::error(gate.code(), "", text)];
            LedgerError::Gate {
                refusal: Box::new(refusal),
                findings,
            }
        }
        other => other,
    }
}
