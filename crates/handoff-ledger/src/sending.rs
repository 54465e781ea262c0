//! Sending a contract: what is gathered for it, and the step that it becomes.

use handoff_base::finding::{Finding, Severity};
use handoff_base::ids::{HandoffId, IssueKey};
use handoff_base::{Code, Moment, ObjectId, digest, to_second};
use handoff_contract::Allowance;
use handoff_git::FactError;
use handoff_model::evidence::{Claimed, demanded};
use handoff_model::intake::placed;
use handoff_model::{
    Actor, Artifact, Contract, Evidence, Planned, Receipt, Refusal, Reports, Request, SendRequest,
    View, plan,
};
use handoff_protocol::{Check, Gate, Policy, Protocol, State};

use super::choice::{Chosen, Offer, accepted, branch_of};
use super::draft::Decided;
use super::error::LedgerError;
use super::evidence::{Ground, Judge, Judged, MISSING, Merged, changed};
use super::session::Session;
use super::snapshot::{IssueFolder, Snapshot};
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

/// A contract on its way, with what was gathered for it.
struct Parcel<'r> {
    chosen: Chosen<'r>,
    contract: Contract,
    code: Option<Code>,
    artifacts: Vec<Artifact>,
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
        let mut parcel = self.packed(&snapshot, offer, origin)?;
        if !parcel.demanded(&snapshot).is_empty() {
            // A walk through history takes its time: not while others wait to write.
            // What refuses the step says so where it is decided.
            let at = to_second(session.clock.author());
            if let Err(error @ LedgerError::Evidence { .. }) =
                self.decide(&mut parcel, &snapshot, session, at, offer, origin)
            {
                return Err(error);
            }
        }
        let mut done = self.publish(session, Some(snapshot), |tip, at| {
            let rules = &parcel.chosen.rules;
            if tip.rules_id(rules.protocol().name())? != Some(rules.id()) {
                parcel = self.packed(tip, offer, origin)?;
            }
            self.decide(&mut parcel, tip, session, at, offer, origin)
        })?;
        if let Some((_, judged)) = parcel.judged.filter(|_| !done.receipt.repeated) {
            done.warnings = judged.findings;
        }
        Ok(done)
    }

    /// Reviews a contract and gathers what goes with it.
    fn packed(
        &self,
        tip: &Snapshot<'r>,
        offer: &Offer<'_>,
        origin: Origin<'_>,
    ) -> Result<Parcel<'r>, LedgerError> {
        let chosen = self.choose(tip, offer)?;
        let mut contract = accepted(chosen.review.clone())?;
        match (origin, &chosen.review.unused) {
            (Origin::Export(known), _) => {
                contract.allowed_secrets.clone_from(&known.allowed_secrets);
            }
            (_, Some(allowance)) => {
                let allowance = allowance.clone();
                return Err(LedgerError::UnusedAllowance { allowance });
            }
            (_, None) => {}
        }
        let (code, artifacts) = match origin {
            Origin::Export(known) => (known.code.clone(), known.artifacts.clone()),
            Origin::Here | Origin::Foreign => {
                let branch = self.branch_for(tip, &chosen, &contract);
                let code = branch.and_then(|branch| self.repository().code(&branch));
                let artifacts = self.artifacts(tip, &chosen.rules, &contract, offer)?;
                (code, artifacts)
            }
        };
        Ok(Parcel {
            chosen,
            contract,
            code,
            artifacts,
            judged: None,
        })
    }

    /// The code branch that a contract names, or that its issue is known to have.
    fn branch_for(
        &self,
        tip: &Snapshot<'r>,
        chosen: &Chosen<'r>,
        contract: &Contract,
    ) -> Option<String> {
        branch_of(contract, &chosen.rules).or_else(|| {
            let issue = tip.issue(&contract.issue).ok()?.issue().ok()??;
            Some(issue.facts.get("branch")?.as_str()?.to_owned())
        })
    }

    /// The step that a contract becomes on a tip.
    fn decide(
        &self,
        parcel: &mut Parcel<'r>,
        tip: &Snapshot<'r>,
        session: &Session,
        at: Moment,
        offer: &Offer<'_>,
        origin: Origin<'_>,
    ) -> Result<Decided<Receipt>, LedgerError> {
        let protocol = parcel.chosen.rules.protocol().clone();
        let name = canonical(&protocol, offer.agent.or(parcel.contract.from.as_ref()));
        let name = name.ok_or(Refusal::NoSender)?;
        let actor = Actor {
            name: &name,
            at,
            traceparent: session.traceparent,
            delivery: session.delivery.as_ref(),
        };
        let demanded = parcel.demanded(tip);
        let folder = tip.issue(&parcel.contract.issue)?;
        let policy = tip.manifest().evidence;
        let plan_with = |parcel: &Parcel<'r>, evidence: Option<&[Evidence]>| {
            let request = Request::Send(SendRequest {
                contract: &parcel.contract,
                code: parcel.code.as_ref(),
                artifacts: &parcel.artifacts,
                evidence,
                policy,
                answers: offer.answers,
                token: offer.token,
            });
            let planned = plan(&protocol, &parcel.contract.issue, &folder, &actor, &request);
            planned.map_err(|stop| gated(&protocol, stop.into()))
        };
        let evidence: Vec<Evidence> = match origin {
            Origin::Export(known) => {
                let known = demanded.iter().map(|&(check, policy)| {
                    let mut known = known.evidence.iter().filter(|e| e.check == check);
                    let known = known.next().map(|e| Evidence {
                        policy,
                        ..e.clone()
                    });
                    known.unwrap_or_else(|| Evidence::skipped(check, policy, IMPORTED))
                });
                known.collect()
            }
            Origin::Foreign => {
                let skipped = |&(check, policy)| Evidence::skipped(check, policy, IMPORTED);
                demanded.iter().map(skipped).collect()
            }
            Origin::Here if demanded.is_empty() => Vec::new(),
            Origin::Here => {
                // What the sender held follows from the plan; what is refused or
                // repeated needs no checks.
                let planned = plan_with(parcel, None)?;
                let Planned::Write(step) = &planned else {
                    return Decided::of(&parcel.chosen.rules, name, planned);
                };
                let held = step.receipt.record.follows.clone();
                if parcel
                    .judged
                    .as_ref()
                    .is_none_or(|(for_held, _)| *for_held != held)
                {
                    let judged = self.judge(parcel, tip, held.as_ref(), offer, &demanded)?;
                    parcel.judged = Some((held, judged));
                }
                let judged = parcel.judged.as_ref().map(|(_, judged)| judged);
                if let Some(refused) = judged.filter(|judged| judged.refuses()) {
                    let findings = refused.findings.clone();
                    return Err(LedgerError::Evidence { findings });
                }
                judged
                    .map(|judged| judged.evidence.clone())
                    .unwrap_or_default()
            }
        };
        let planned = plan_with(parcel, Some(&evidence))?;
        Decided::of(&parcel.chosen.rules, name, planned)
    }

    /// Checks the claims of a contract whose sender held this handoff.
    fn judge(
        &self,
        parcel: &mut Parcel<'r>,
        tip: &Snapshot<'r>,
        held: Option<&HandoffId>,
        offer: &Offer<'_>,
        demanded: &[(Check, Policy)],
    ) -> Result<Judged, LedgerError> {
        let rules = &parcel.chosen.rules;
        let protocol = rules.protocol();
        let Some(kind) = protocol.contract_type(&parcel.contract.kind) else {
            return Ok(Judged::default());
        };
        let claimed = Claimed::of(protocol, kind, &parcel.contract);
        let id = |code: &Code| code.commit.parse::<ObjectId>().ok();
        let folder = tip.issue(&parcel.contract.issue)?;
        let branch = self.branch_for(tip, &parcel.chosen, &parcel.contract);
        let own = |code: &Code| Some(&code.branch) == branch.as_ref();
        let since = match held {
            Some(held) => folder.record(held.number())?.and_then(|record| record.code),
            None => None,
        };
        let merged = match demanded.iter().any(|(check, _)| *check == Check::Merge) {
            true => self.merged_at(&folder, branch.as_deref())?,
            false => Merged::Unknown,
        };
        let base_branch =
            { claimed.base().map(str::to_owned) }.or_else(|| self.repository().base_branch());
        let base = match &base_branch {
            Some(branch) => self.repository().base_code(branch)?,
            None => None,
        };
        let ground = Ground {
            is_ledger: branch.as_deref() == Some(self.branch()),
            tip: parcel.code.as_ref().and_then(id),
            merged,
            base_branch,
            base: base.as_ref().and_then(id),
            since: since.filter(own).as_ref().and_then(id),
            branch,
        };
        if demanded.iter().any(|(check, _)| *check == Check::Artifacts)
            && let Some(tip) = ground.tip
        {
            self.look_at(&mut parcel.artifacts, tip)?;
        }
        let none = Reports::default();
        let judge = Judge {
            repository: self.repository(),
            claimed,
            ground,
            artifacts: &parcel.artifacts,
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

    /// What the repository says against a contract that passed the pipeline: an
    /// error for each contradiction where that is enforced, else a warning.
    ///
    /// # Errors
    /// [`LedgerError`] when the ledger or the repository can't be read.
    pub(super) fn contradictions(
        &self,
        tip: &Snapshot<'r>,
        chosen: Chosen<'r>,
        contract: &Contract,
        offer: &Offer<'_>,
    ) -> Result<Vec<Finding>, LedgerError> {
        let protocol = chosen.rules.protocol();
        let demanded = demanded(protocol, tip.manifest().evidence, contract);
        if demanded.is_empty() {
            return Ok(Vec::new());
        }
        let held = tip.held(&chosen.rules, contract, offer)?;
        let branch = self.branch_for(tip, &chosen, contract);
        let mut parcel = Parcel {
            code: branch.and_then(|branch| self.repository().code(&branch)),
            artifacts: self.artifacts(tip, &chosen.rules, contract, offer)?,
            contract: contract.clone(),
            chosen,
            judged: None,
        };
        let held = held.map(|record| record.id);
        let judged = self.judge(&mut parcel, tip, held.as_ref(), offer, &demanded)?;
        Ok(judged.findings)
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

impl Parcel<'_> {
    /// The checks that its claims need.
    fn demanded(&self, tip: &Snapshot<'_>) -> Vec<(Check, Policy)> {
        let protocol = self.chosen.rules.protocol();
        demanded(protocol, tip.manifest().evidence, &self.contract)
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
