//! Decides the type of a contract from its envelope, before its schema is known.

use handoff_base::finding::{Finding, FindingCode};
use handoff_base::ids::AgentName;
use handoff_base::text::quoted;

use crate::definition::{AgentKind, ContractType};
use crate::protocol::Protocol;

/// What can be read from a contract before it is checked.
pub struct Envelope<'a> {
    /// The XML root element, or the key of a wrapped JSON contract.
    pub root: Option<&'a str>,
    /// The contract's format.
    pub format: &'a str,
    /// Reads the scalar at a JSON Pointer of the contract.
    pub probe: &'a dyn Fn(&str) -> Option<String>,
}

/// A contract's type and parties.
#[derive(Clone, Debug)]
pub struct Resolved<'a> {
    /// The type.
    pub kind: &'a ContractType,
    /// The sender; optional in a note.
    pub from: Option<AgentName>,
    /// The receiver; optional in an answer or a note.
    pub to: Option<AgentName>,
}

/// Why a contract has no type. Paths in the findings are JSON Pointers.
#[derive(Debug)]
pub enum Unresolved<'a> {
    /// The envelope is incomplete or names an unknown agent. The second part is the only possible
    /// type, if there is just one.
    Envelope(Vec<Finding>, Option<&'a ContractType>),
    /// The envelope is well formed, but the protocol has no such route.
    Route(Box<Finding>),
}

impl Protocol {
    /// Decides the type of a contract.
    ///
    /// # Errors
    /// [`Unresolved`], with a finding for each fault of the envelope.
    pub fn resolve<'a>(&'a self, envelope: &Envelope<'_>) -> Result<Resolved<'a>, Unresolved<'a>> {
        let rooted = |c: &&ContractType| {
            envelope.root.is_none_or(|root| c.root == root) && c.has_format(envelope.format)
        };
        let contracts: Vec<&ContractType> =
            self.definition().contracts.iter().filter(rooted).collect();
        if contracts.is_empty() {
            let finding = self.unknown_root(envelope.root.unwrap_or_default());
            return Err(Unresolved::Envelope(vec![finding], None));
        }
        let contracts = match self.with_the_same_parties(contracts, envelope) {
            Ok(contracts) => contracts,
            Err(findings) => return Err(Unresolved::Envelope(findings, None)),
        };
        let pointers = |kind| (self.field(kind, |f| &f.from), self.field(kind, |f| &f.to));
        let (from_at, to_at) = contracts.first().map_or((None, None), |c| pointers(c));
        let probe = |at: Option<&str>| at.and_then(envelope.probe);
        let (mut from, mut to) = (probe(from_at), probe(to_at));
        let implied: Vec<_> = contracts
            .iter()
            .filter(|c| c.implied_from.is_some() && c.implied_to.is_some())
            .collect();
        let all_implied = implied.len() == contracts.len();
        if let [only] = implied[..]
            && (all_implied || (from.is_none() && to.is_none() && self.says_something(envelope)))
        {
            from = from.or(only.implied_from.as_ref().map(ToString::to_string));
            to = to.or(only.implied_to.as_ref().map(ToString::to_string));
        }

        let mut findings = Vec::new();
        let needs_from = contracts.iter().any(|c| !c.note);
        let needs_to = contracts.iter().any(|c| c.travels());
        // A note's `to` names its receiver only if the note's type has such a field.
        let own = |c: &&ContractType| !c.note || c.fields.to.is_some();
        let to = to.filter(|_| contracts.iter().any(own));
        let mut party = |at: Option<&str>, text: &Option<String>, needed: bool| {
            let at = at.unwrap_or_default();
            if text.is_none() && !needed {
                return Ok(None);
            }
            self.party(at, text.as_deref(), &mut findings)
                .map(Some)
                .ok_or(())
        };
        let from_name = party(from_at, &from, needs_from);
        let to_name = party(to_at, &to, needs_to);
        let named = |party: &Result<Option<AgentName>, ()>, text: Option<String>| match party {
            Ok(Some(name)) => Some(name.to_string()),
            _ => text,
        };
        let (from, to) = (named(&from_name, from), named(&to_name, to));
        let candidates: Vec<&ContractType> = contracts
            .into_iter()
            .filter(|c| c.note || self.can_go(c, from.as_deref(), to.as_deref()))
            .collect();
        let (Ok(from), Ok(to)) = (from_name, to_name) else {
            let only = match candidates[..] {
                [only] => Some(only),
                _ => discriminated(&candidates, envelope.probe),
            };
            return Err(Unresolved::Envelope(findings, only));
        };
        match (&candidates[..], &from, &to) {
            ([], Some(from), Some(to)) => {
                let (from, to) = (from.as_str(), to.as_str());
                Err(match self.other_root(envelope.root, from, to) {
                    Some(finding) => Unresolved::Envelope(vec![finding], None),
                    None => Unresolved::Route(Box::new(self.no_route(to_at, from, to))),
                })
            }
            ([], Some(from), None) if !needs_to => {
                let finding = self.nothing_to_answer(from_at, from);
                Err(Unresolved::Route(Box::new(finding)))
            }
            ([kind], ..) => Ok(Resolved { kind, from, to }),
            _ => match discriminated(&candidates, envelope.probe) {
                Some(kind) => Ok(Resolved { kind, from, to }),
                None => Err(Unresolved::Envelope(undecided(&candidates, envelope), None)),
            },
        }
    }

    fn unknown_root(&self, root: &str) -> Finding {
        let text = format!(
            "the root element {} is not one that protocol {} has",
            quoted(root),
            self.name()
        );
        Finding::error(FindingCode::ContractRoot, "", text)
            .fix(format!("use one of: {}", self.roots().join(", ")))
    }

    fn nothing_to_answer(&self, from_at: Option<&str>, from: &AgentName) -> Finding {
        let text = format!("no route sends {from} a request, so it can't answer one");
        let fix = format!(
            "see who asks whom: `git handoff protocol show {}`",
            self.name()
        );
        Finding::error(FindingCode::RouteUnknown, from_at.unwrap_or_default(), text).fix(fix)
    }

    /// The types whose sender and receiver are where this contract has them. If these places
    /// differ, the discriminating fields decide, else the types with the most envelope fields
    /// present: the sender counts most, then the receiver, then the time.
    fn with_the_same_parties<'a>(
        &'a self,
        contracts: Vec<&'a ContractType>,
        envelope: &Envelope<'_>,
    ) -> Result<Vec<&'a ContractType>, Vec<Finding>> {
        let pointers = |kind| (self.field(kind, |f| &f.from), self.field(kind, |f| &f.to));
        let differ = |contracts: &[&'a ContractType]| {
            let first = contracts.first().map(|c| pointers(c));
            contracts
                .iter()
                .any(|c| Some(pointers(c)) != first || c.note != contracts[0].note)
        };
        if !differ(&contracts) {
            return Ok(contracts);
        }
        if let Some(kind) = discriminated(&contracts, envelope.probe)
            && !kind.when.is_empty()
        {
            return Ok(vec![kind]);
        }
        let has = |at: Option<&str>| usize::from(at.and_then(envelope.probe).is_some());
        let score = |kind: &'a ContractType| {
            let (from, to) = pointers(kind);
            let at = self.field(kind, |f| &f.at);
            let to = to.filter(|_| kind.travels() || kind.fields.to.is_some() && !kind.note);
            4 * has(from) + 2 * has(to) + has(at)
        };
        let most = contracts.iter().map(|c| score(c)).max();
        let best: Vec<_> = contracts
            .iter()
            .copied()
            .filter(|c| Some(score(c)) == most)
            .collect();
        if differ(&best) {
            return Err(undecided(&best, envelope));
        }
        // A receiver alone does not identify a type.
        if most < Some(3) {
            return Err(undecided(&contracts, envelope));
        }
        Ok(best)
    }

    /// Reads the name of the sender or the receiver; the finding says what is wrong with it.
    fn party(
        &self,
        pointer: &str,
        text: Option<&str>,
        findings: &mut Vec<Finding>,
    ) -> Option<AgentName> {
        let field = pointer.trim_start_matches('/');
        let Some(text) = text else {
            findings.push(
                Finding::error(
                    FindingCode::FieldMissing,
                    pointer,
                    format!("`{field}` is missing"),
                )
                .fix(format!("name an agent: {}", self.agent_names().join(", "))),
            );
            return None;
        };
        match text.parse::<AgentName>() {
            _ if self.agent(text).is_some() => self.agent(text).map(|agent| agent.id.clone()),
            Ok(_) => {
                findings.push(
                    Finding::error(
                        FindingCode::AgentUnknown,
                        pointer,
                        format!(
                            "{} is not an agent of protocol {}",
                            quoted(text),
                            self.name()
                        ),
                    )
                    .fix(format!("use one of: {}", self.agent_names().join(", "))),
                );
                None
            }
            Err(error) => {
                findings.push(Finding::error(
                    FindingCode::AgentName,
                    pointer,
                    error.to_string(),
                ));
                None
            }
        }
    }

    /// Whether a contract has any envelope field besides its parties. If it has none, it is
    /// probably not a contract at all, rather than one without parties.
    fn says_something(&self, envelope: &Envelope<'_>) -> bool {
        let fields = &self.definition().fields;
        let others = [
            &fields.status,
            &fields.at,
            &fields.priority,
            &fields.summary,
            &fields.issue,
        ];
        let mut pointers = others.into_iter().flatten();
        pointers.any(|pointer| (envelope.probe)(pointer).is_some())
    }

    /// The finding for a contract with a wrong root whose parties have a route for another root.
    fn other_root(&self, root: Option<&str>, from: &str, to: &str) -> Option<Finding> {
        let root = root?;
        let mut contracts = self.definition().contracts.iter();
        let meant = contracts.find(|c| self.routed(c, Some(from), Some(to)))?;
        let text = format!(
            "a contract from {from} to {to} has the root {}, not {}",
            quoted(&meant.root),
            quoted(root)
        );
        let fix = format!("use {} as the root", quoted(&meant.root));
        Some(Finding::error(FindingCode::ContractRoot, "", text).fix(fix))
    }

    /// Whether a contract of this type can go between these parties, as far as they are known:
    /// along a route, or as an answer back along the request's route.
    fn can_go(&self, kind: &ContractType, from: Option<&str>, to: Option<&str>) -> bool {
        if kind.travels() {
            return self.routed(kind, from, to);
        }
        let asked = kind
            .answers
            .iter()
            .filter_map(|name| self.contract_type(name));
        asked.into_iter().any(|asked| self.routed(asked, to, from))
    }

    /// Whether a type has a route between these parties, as far as they are known.
    fn routed(&self, kind: &ContractType, from: Option<&str>, to: Option<&str>) -> bool {
        self.definition().routes.iter().any(|route| {
            route.contracts.contains(&kind.name)
                && to.is_none_or(|to| route.to.as_str() == to)
                && from.is_none_or(|from| {
                    route.from == from
                        || (route.from == "*"
                            && route.to.as_str() != from
                            && !self.is_kind(from, AgentKind::End))
                })
        })
    }

    fn no_route(&self, at: Option<&str>, from: &str, to: &str) -> Finding {
        let forbidden = self.forbidden(from, to);
        let receivers = self.receivers(from);
        let targets: Vec<&str> = receivers.iter().map(|to| to.as_str()).collect();
        let why = forbidden.map_or_else(String::new, |f| format!(": {}", f.reason));
        let finding = Finding::error(
            if forbidden.is_some() {
                FindingCode::RouteForbidden
            } else {
                FindingCode::RouteUnknown
            },
            at.unwrap_or_default(),
            format!(
                "protocol {} has no route from {from} to {to}{why}",
                self.name()
            ),
        );
        if targets.is_empty() {
            finding.fix(format!("{from} hands nothing on"))
        } else {
            finding.fix(format!("{from} may send to: {}", targets.join(", ")))
        }
    }
}

/// The only candidate whose discriminating fields all match.
fn discriminated<'a>(
    candidates: &[&'a ContractType],
    probe: &dyn Fn(&str) -> Option<String>,
) -> Option<&'a ContractType> {
    let fits = |c: &&&ContractType| {
        let mut fields = c.when.iter();
        fields.all(|(pointer, words)| probe(pointer).is_some_and(|text| words.accept(&text)))
    };
    let mut fitting = candidates.iter().filter(fits);
    match (fitting.next(), fitting.next()) {
        (Some(only), None) => Some(only),
        _ => None,
    }
}

/// Findings for the fields that should have told the candidates apart.
fn undecided(candidates: &[&ContractType], envelope: &Envelope<'_>) -> Vec<Finding> {
    let mut pointers: Vec<&str> = candidates
        .iter()
        .flat_map(|c| c.when.keys().map(String::as_str))
        .collect();
    pointers.sort_unstable();
    pointers.dedup();
    let finding = |pointer: &str| {
        let allowed: Vec<&str> = candidates
            .iter()
            .filter_map(|c| c.when.get(pointer))
            .flat_map(|words| words.texts().iter().map(String::as_str))
            .collect();
        let field = pointer.trim_start_matches('/');
        let made = match (envelope.probe)(pointer) {
            None => Finding::error(
                FindingCode::FieldMissing,
                pointer,
                format!("`{field}` is missing"),
            ),
            Some(text) => Finding::error(
                FindingCode::FieldValue,
                pointer,
                format!(
                    "`{field}` is {}, which no contract on this route has",
                    quoted(&text)
                ),
            ),
        };
        if !allowed.contains(&"*") {
            return made.fix(format!("use one of: {}", allowed.join(", ")));
        }
        let has = |c: &&&ContractType| c.when.contains_key(pointer);
        let types: Vec<&str> = candidates
            .iter()
            .filter(has)
            .map(|c| c.name.as_str())
            .collect();
        made.fix(format!("a contract of type {} has it", types.join(" or ")))
    };
    if pointers.is_empty() {
        let types: Vec<&str> = candidates.iter().map(|c| c.name.as_str()).collect();
        let text = "the contract could be of several types, and names no party";
        return vec![
            Finding::error(FindingCode::ContractType, "", text)
                .fix(format!("it may be: {}", types.join(", "))),
        ];
    }
    pointers.into_iter().map(finding).collect()
}
