//! Finds the protocol and the issue of a contract that does not name them.

use handoff_base::finding::{Finding, FindingCode, Severity};
use handoff_base::ids::{AgentName, IssueKey};
use handoff_contract::Input;
use handoff_model::intake::Soundness;
use handoff_model::{
    Contract, Opened, Reports, Review, SendOptions, View, first_match, review_imported,
};
use handoff_protocol::{AgentKind, State};

use super::error::{ContractError, LedgerError};
use super::snapshot::{Rules, Snapshot};

/// A contract offered to the ledger.
#[derive(Clone, Copy)]
pub struct Offer<'a> {
    /// The document.
    pub input: &'a Input<'a>,
    /// The sender, if known.
    pub agent: Option<&'a AgentName>,
    /// The issue, for a contract that names none.
    pub issue: Option<&'a IssueKey>,
    /// The protocol it follows, if given.
    pub protocol: Option<&'a AgentName>,
    /// How it is sent.
    pub options: &'a SendOptions,
    /// The reports that it is sent with.
    pub reports: Option<&'a Reports>,
}

impl<'a> Offer<'a> {
    /// An offer of a document as it is, without further information.
    pub fn new(input: &'a Input<'a>, options: &'a SendOptions) -> Self {
        Self {
            input,
            agent: None,
            issue: None,
            protocol: None,
            options,
            reports: None,
        }
    }
}

/// A protocol and the review of a contract under it.
pub struct ContractMatch<'r> {
    /// The protocol.
    pub rules: Rules<'r>,
    /// The result of the pipeline.
    pub review: Review,
}

impl AsRef<Review> for ContractMatch<'_> {
    fn as_ref(&self) -> &Review {
        &self.review
    }
}

impl ContractMatch<'_> {
    /// What later layers can judge of a document with these faults.
    ///
    /// # Errors
    /// [`LedgerError`] if a schema can't be read.
    pub fn soundness(
        &self,
        input: &Input<'_>,
        faults: &[Finding],
    ) -> Result<Soundness, LedgerError> {
        let protocol = self.rules.protocol();
        let kind = self.review.kind.as_deref();
        match kind.and_then(|kind| protocol.contract_type(kind)) {
            Some(kind) if self.review.draft.is_some() => {
                Soundness::of(protocol, &self.rules, kind, input, faults)
            }
            _ => Ok(Soundness::NONE),
        }
    }
}

impl<'r> Snapshot<'r> {
    /// Decides which of the ledger's protocols a contract follows: the given one, the one of its
    /// issue, or the first under which it is complete, starting with the default. Screens the
    /// contract for secrets.
    ///
    /// # Errors
    /// [`LedgerError`] if the ledger can't be read.
    pub fn match_contract(&self, offer: &Offer<'_>) -> Result<ContractMatch<'r>, LedgerError> {
        let ContractMatch { rules, review } = self.unscreened_match(offer)?;
        let review = review.screened(
            rules.protocol(),
            offer.input,
            &offer.options.allowed_secrets,
        );
        Ok(ContractMatch { rules, review })
    }

    fn unscreened_match(&self, offer: &Offer<'_>) -> Result<ContractMatch<'r>, LedgerError> {
        let bound = |key: &IssueKey| -> Result<Option<String>, LedgerError> {
            let issue = self.issue(key)?.issue()?;
            Ok(issue.map(|issue| issue.protocol.to_string()))
        };
        let named = match (offer.protocol, offer.issue) {
            (Some(name), _) => Some(name.to_string()),
            (None, Some(key)) => bound(key)?,
            (None, None) => None,
        };
        if let Some(name) = named {
            self.named_rules(&name)?;
            let found = self.match_under(&name, offer)?;
            if offer.protocol.is_some() || found.review.is_complete() {
                return Ok(found);
            }
            // Report that the contract fits another protocol.
            for other in self.protocols()?.iter().filter(|other| **other != name) {
                let other = self.match_under(other, offer)?;
                if other.review.contract.is_some() {
                    return Ok(other);
                }
            }
            return Ok(found);
        }
        let names = self.protocols()?;
        let found = first_match(names.iter().map(|name| self.match_under(name, offer)))?;
        let Some(found) = found else {
            return self.match_under(self.manifest().default_protocol.as_str(), offer);
        };
        // An existing issue already has a protocol.
        if let Some(contract) = &found.review.contract
            && let Some(own) = bound(&contract.issue)?
            && own != contract.protocol.as_str()
        {
            return self.match_under(&own, offer);
        }
        Ok(found)
    }

    /// Reviews a contract under one protocol. A contract that names no issue is about the given
    /// one, the only one that its sender works in, or one that it opens.
    fn match_under(&self, name: &str, offer: &Offer<'_>) -> Result<ContractMatch<'r>, LedgerError> {
        let rules = self.rules(name)?;
        let with = |hint: Option<&IssueKey>| {
            let protocol = rules.protocol();
            review_imported(
                protocol,
                &rules,
                offer.input,
                hint,
                offer.options.imported.as_ref(),
            )
        };
        let mut first = with(offer.issue)?;
        if first.contract.is_some() || !first.is_complete() || offer.issue.is_some() {
            return Ok(ContractMatch {
                rules,
                review: first,
            });
        }
        let senders = senders(&rules, offer);
        let issues = issues_of(self, &senders, State::InProgress)?;
        let own = first.new_issue.clone();
        let key = match &issues[..] {
            [only] => Some(only.clone()),
            [] => match self.sent_anywhere(offer.input.bytes(), &senders)? {
                Some(key) => Some(key),
                None => own,
            },
            several => own.filter(|key| first.names_session && several.contains(key)),
        };
        if let Some(key) = key {
            let review = with(Some(&key))?;
            return Ok(ContractMatch { rules, review });
        }
        if !issues.is_empty() {
            let keys: Vec<&str> = issues.iter().map(IssueKey::as_str).collect();
            let text = format!(
                "say which with --issue: its sender works on {}",
                keys.join(", ")
            );
            let named = first
                .findings
                .iter_mut()
                .filter(|f| f.code == FindingCode::EnvelopeIssue);
            named.for_each(|finding| finding.fix = Some(text.clone()));
        }
        Ok(ContractMatch {
            rules,
            review: first,
        })
    }
}

impl ContractMatch<'_> {
    /// The issues in which the offer's sender has a handoff in this state.
    ///
    /// # Errors
    /// [`LedgerError`] if an open handoff can't be read.
    #[doc(hidden)]
    pub fn issues_of_sender(
        &self,
        snapshot: &Snapshot<'_>,
        offer: &Offer<'_>,
        state: State,
    ) -> Result<Vec<IssueKey>, LedgerError> {
        issues_of(snapshot, &senders(&self.rules, offer), state)
    }
}

/// The sender that the contract names, and the agent that sends it.
fn senders(rules: &Rules<'_>, offer: &Offer<'_>) -> Vec<AgentName> {
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

/// The issues in which one of these agents has a handoff in this state.
fn issues_of(
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

/// The contract of a review without errors.
///
/// # Errors
/// [`ContractError`] with its findings.
#[doc(hidden)]
pub fn accepted(review: Review) -> Result<Contract, LedgerError> {
    let holds_secrets = review.holds_secrets();
    let Review {
        mut findings,
        contract,
        no_route,
        ..
    } = review;
    match contract {
        None if holds_secrets => Err(ContractError::Secret(findings).into()),
        Some(contract) => Ok(contract),
        None if no_route => Err(ContractError::Route(findings).into()),
        None => {
            // A note in a check is an error when sending.
            if !findings.iter().any(Finding::is_error) {
                findings
                    .iter_mut()
                    .filter(|f| f.severity == Severity::Note)
                    .for_each(|f| f.severity = Severity::Error);
            }
            Err(ContractError::Invalid(findings).into())
        }
    }
}
