//! Which protocol and which issue a contract belongs to, where it does not say.

use handoff_base::finding::{Finding, Severity};
use handoff_base::ids::{AgentName, IssueKey};
use handoff_contract::{Allowance, Input};
use handoff_model::intake::Opened;
use handoff_model::planner::misplaced;
use handoff_model::semantic::gates;
use handoff_model::{Contract, Reports, Review, View, review};
use handoff_protocol::{AgentKind, Protocol, State};

use super::error::LedgerError;
use super::snapshot::{Rules, Snapshot};
use super::write::Ledger;

/// A contract as it is offered to the ledger.
#[derive(Clone, Copy)]
pub struct Offer<'a> {
    /// The document.
    pub input: &'a Input<'a>,
    /// Who sends it, where that is known.
    pub agent: Option<&'a AgentName>,
    /// The issue it is about, for one that names none.
    pub issue: Option<&'a IssueKey>,
    /// The protocol it follows, where that is said.
    pub protocol: Option<&'a AgentName>,
    /// The number of the request that it answers, where its sender works on
    /// several; else it is the newest.
    pub answers: Option<u32>,
    /// The claim that its sender acts under, where that is said.
    pub token: Option<u32>,
    /// What it may hold although it looks like a secret.
    pub allow: &'a [Allowance],
    /// The reports that it is sent with.
    pub reports: Option<&'a Reports>,
}

/// A protocol, and what its pipeline makes of a contract.
pub struct Chosen<'r> {
    /// The protocol.
    pub rules: Rules<'r>,
    /// What the pipeline found.
    pub review: Review,
}

impl<'r> Ledger<'r> {
    /// Takes a contract through the pipeline, and compares what it says of tasks
    /// with where they stand.
    ///
    /// # Errors
    /// [`LedgerError`] when the ledger can't be read; faults of the contract
    /// are in the review.
    pub fn check(&self, snapshot: &Snapshot<'r>, offer: &Offer<'_>) -> Result<Review, LedgerError> {
        let Chosen { rules, review } = self.choose(snapshot, offer)?;
        placed_in_tasks(snapshot, rules.protocol(), review)
    }

    /// Decides which of the ledger's protocols a contract follows: the one that
    /// was named, the one of its issue, or the first, beginning with the default
    /// one, under which it is complete. The contract is screened for secrets.
    ///
    /// # Errors
    /// [`LedgerError`] when the ledger can't be read.
    pub fn choose(
        &self,
        snapshot: &Snapshot<'r>,
        offer: &Offer<'_>,
    ) -> Result<Chosen<'r>, LedgerError> {
        let Chosen { rules, review } = self.fitting(snapshot, offer)?;
        let review = review.screened(rules.protocol(), offer.input, offer.allow);
        Ok(Chosen { rules, review })
    }

    fn fitting(
        &self,
        snapshot: &Snapshot<'r>,
        offer: &Offer<'_>,
    ) -> Result<Chosen<'r>, LedgerError> {
        let bound = |key: &IssueKey| -> Result<Option<String>, LedgerError> {
            let issue = snapshot.issue(key)?.issue()?;
            Ok(issue.map(|issue| issue.protocol.to_string()))
        };
        let named = match (offer.protocol, offer.issue) {
            (Some(name), _) => Some(name.to_string()),
            (None, Some(key)) => bound(key)?,
            (None, None) => None,
        };
        if let Some(name) = named {
            if snapshot.rules_id(&name)?.is_none() {
                let known = snapshot.protocols()?;
                return Err(LedgerError::NoProtocol { name, known });
            }
            let chosen = self.under(snapshot, &name, offer)?;
            if offer.protocol.is_some() || chosen.review.is_complete() {
                return Ok(chosen);
            }
            // A contract of another protocol is told that it is one.
            for other in snapshot.protocols()?.iter().filter(|other| **other != name) {
                let other = self.under(snapshot, other, offer)?;
                if other.review.contract.is_some() {
                    return Ok(other);
                }
            }
            return Ok(chosen);
        }
        let mut best: Option<Chosen<'r>> = None;
        for name in snapshot.protocols()? {
            let chosen = self.under(snapshot, &name, offer)?;
            if let Some(contract) = &chosen.review.contract {
                return match bound(&contract.issue)?.filter(|own| *own != name) {
                    Some(own) => self.under(snapshot, &own, offer),
                    None => Ok(chosen),
                };
            }
            let strangeness = |chosen: &Chosen<'r>| chosen.review.strangeness();
            if best
                .as_ref()
                .is_none_or(|known| strangeness(&chosen) < strangeness(known))
            {
                best = Some(chosen);
            }
        }
        match best {
            Some(chosen) => Ok(chosen),
            None => self.under(
                snapshot,
                snapshot.manifest().default_protocol.as_str(),
                offer,
            ),
        }
    }

    /// What a protocol's pipeline makes of a contract. One that names no issue
    /// is about the one that was named, about the one issue in which its sender
    /// works, or about one that it opens.
    fn under(
        &self,
        snapshot: &Snapshot<'r>,
        name: &str,
        offer: &Offer<'_>,
    ) -> Result<Chosen<'r>, LedgerError> {
        let rules = snapshot.rules(name)?;
        let with = |hint: Option<&IssueKey>| review(rules.protocol(), &rules, offer.input, hint);
        let mut first = with(offer.issue)?;
        if first.contract.is_some() || !first.is_complete() || offer.issue.is_some() {
            return Ok(Chosen {
                rules,
                review: first,
            });
        }
        let senders = senders(&rules, offer);
        let issues = issues_of(snapshot, &senders, State::InProgress)?;
        let own = first.new_issue.clone();
        let key = match &issues[..] {
            [only] => Some(only.clone()),
            [] => match snapshot.sent_anywhere(offer.input.bytes(), &senders)? {
                Some(key) => Some(key),
                None => own,
            },
            several => own.filter(|key| first.names_session && several.contains(key)),
        };
        if let Some(key) = key {
            let review = with(Some(&key))?;
            return Ok(Chosen { rules, review });
        }
        if !issues.is_empty() {
            let keys: Vec<&str> = issues.iter().map(IssueKey::as_str).collect();
            let text = format!(
                "say which with --issue: its sender works on {}",
                keys.join(", ")
            );
            let named = { first.findings.iter_mut() }.filter(|f| f.code == "envelope.issue");
            named.for_each(|finding| finding.fix = Some(text.clone()));
        }
        Ok(Chosen {
            rules,
            review: first,
        })
    }
}

/// Compares what a contract says of tasks with where they stand.
pub(super) fn placed_in_tasks(
    snapshot: &Snapshot<'_>,
    protocol: &Protocol,
    mut review: Review,
) -> Result<Review, LedgerError> {
    if let Some(contract) = &review.contract
        && let Some(kind) = protocol.contract_type(&contract.kind)
        && let Some(fields) = &kind.tasks
        && let Some(from) = &contract.from
        && let Some(issue) = snapshot.issue(&contract.issue)?.issue()?
    {
        let plan = fields.read(&contract.value);
        let mut found = misplaced(&issue, fields, &plan, from);
        gates(protocol, &mut found);
        if found.iter().any(Finding::is_error) {
            review.contract = None;
        }
        review.findings.extend(found);
    }
    Ok(review)
}

/// Whoever a contract names as its sender, and whoever sends it.
pub(super) fn senders(rules: &Rules<'_>, offer: &Offer<'_>) -> Vec<AgentName> {
    let Ok(source) = offer.input.source() else {
        return Vec::new();
    };
    let protocol = rules.protocol();
    let wrapper = Opened::new(protocol, source).wrapper;
    let own = protocol.definition().contracts.iter().map(|c| &c.fields);
    let fields = own.chain([&protocol.definition().fields]);
    let names = fields.filter_map(|f| source.probe(wrapper.as_deref(), f.from.as_deref()?));
    names
        .chain(offer.agent.map(ToString::to_string))
        .filter_map(|name| Some(protocol.agent(&name)?.id.clone()))
        .filter(|name| !protocol.is_kind(name.as_str(), AgentKind::End))
        .collect()
}

/// The issues in which one of these agents has a handoff in this state: those
/// in which it works, or in which work waits for it.
pub(super) fn issues_of(
    snapshot: &Snapshot<'_>,
    agents: &[AgentName],
    state: State,
) -> Result<Vec<IssueKey>, LedgerError> {
    let mut issues = Vec::new();
    for entry in snapshot.open()? {
        if agents.contains(&entry.to) && snapshot.open_record(&entry)?.state == state {
            issues.push(entry.id.issue().clone());
        }
    }
    issues.dedup();
    Ok(issues)
}

/// The contract of a review that nothing refuses.
pub(super) fn accepted(review: Review) -> Result<Contract, LedgerError> {
    let holds_secrets = review.holds_secrets();
    let Review {
        mut findings,
        contract,
        no_route,
        ..
    } = review;
    match contract {
        None if holds_secrets => Err(LedgerError::Secret { findings }),
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
