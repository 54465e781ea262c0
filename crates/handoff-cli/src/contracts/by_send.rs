//! Fills in the places marked `{{fill by send: …}}` in a contract that was written before the work:
//! with what the repository and the issue say now.

use handoff::base::ids::{AgentName, IssueKey, WorkerId};
use handoff::contract::{BY_SEND, FILL, Source};
use handoff::git::Repository;
use handoff::ledger::{ContractMatch, Offer, Rules, Snapshot};
use handoff::model::planner::Holder;
use handoff::model::{Opened, Schemas};
use handoff::protocol::ContractType;
use handoff::templates::{known, left_to_fill, skeleton};

use crate::environment::now;
use crate::failure::Failure;

/// A contract with open places, and its rules.
struct Open<'a, 'r> {
    source: &'a Source,
    rules: Rules<'r>,
    kind: String,
    wrapper: Option<String>,
}

impl<'a, 'r> Open<'a, 'r> {
    /// `None` if it has no open places, or its type is unknown.
    fn new(tip: &Snapshot<'r>, offer: &Offer<'a>) -> Result<Option<Self>, Failure> {
        let source = offer.input.source().ok();
        let Some(source) = source.filter(|source| source.text().contains(BY_SEND)) else {
            return Ok(None);
        };
        let ContractMatch { rules, review } = tip.match_contract(offer)?;
        let wrapper = Opened::new(rules.protocol(), source).wrapper;
        Ok(review.kind.map(|kind| Self {
            source,
            rules,
            kind,
            wrapper,
        }))
    }

    fn kind(&self) -> Option<&ContractType> {
        self.rules.protocol().contract_type(&self.kind)
    }

    fn probe(&self, pointer: &str) -> Option<String> {
        self.source.probe(self.wrapper.as_deref(), pointer)
    }

    fn agent(&self, pointer: Option<&str>) -> Option<AgentName> {
        let name: AgentName = self.probe(pointer?)?.parse().ok()?;
        let known = self.rules.protocol().agent(name.as_str());
        Some(known.map_or(name, |known| known.id.clone()))
    }
}

/// The places of a contract that `send` fills in, in terms of its format.
pub fn open_places(tip: &Snapshot<'_>, offer: &Offer<'_>) -> Result<Vec<String>, Failure> {
    let open = Open::new(tip, offer)?;
    let Some((open, kind)) = open.as_ref().and_then(|open| Some((open, open.kind()?))) else {
        return Ok(Vec::new());
    };
    let schema = open.rules.schema(kind)?;
    let (shape, wrapper) = (schema.shape(), open.wrapper.as_deref());
    let left = open
        .source
        .filled(shape, wrapper, |_| None)
        .left
        .into_iter();
    let place = |pointer: String| open.source.place(shape, wrapper, &pointer).path;
    Ok(left.map(place).collect())
}

/// The contract with its open places filled in; `None` without open places, or if its type or issue is
/// unknown. Places without a known value stay, and become findings.
pub fn filled(
    repository: &Repository,
    tip: &Snapshot<'_>,
    offer: &Offer<'_>,
    worker: Option<&WorkerId>,
) -> Result<Option<String>, Failure> {
    let open = Open::new(tip, offer)?;
    let Some((open, kind)) = open.as_ref().and_then(|open| Some((open, open.kind()?))) else {
        return Ok(None);
    };
    let protocol = open.rules.protocol();
    let from = open.agent(protocol.field(kind, |f| &f.from));
    let from = from.or_else(|| kind.implied_from.clone());
    let from = from.or_else(|| offer.agent.cloned());
    let to = open.agent(protocol.field(kind, |f| &f.to));
    let to = to.or_else(|| kind.implied_to.clone());
    let named = protocol.field(kind, |f| &f.issue);
    let named = named.and_then(|pointer| open.probe(pointer));
    let named: Option<IssueKey> = named.and_then(|key| key.parse().ok());
    let issue = named.or_else(|| offer.issue.cloned());
    let (Some(from), Some(to), Some(issue)) = (from, to, issue) else {
        return Ok(None);
    };
    let branch = open
        .probe("/branch")
        .filter(|branch| !branch.contains(FILL));
    let at = (branch.as_deref(), now()?);
    let by = Holder {
        agent: &from,
        worker,
    };
    let known = known(repository, protocol, (tip, &issue), by, &to, at)?;
    let told = skeleton(&open.rules, kind, &known)?;
    let value = |pointer: &str| {
        let value = told.pointer(pointer)?;
        left_to_fill(value).is_empty().then(|| value.clone())
    };
    let schema = open.rules.schema(kind)?;
    let filled = open
        .source
        .filled(schema.shape(), open.wrapper.as_deref(), value);
    Ok(Some(filled.text))
}
