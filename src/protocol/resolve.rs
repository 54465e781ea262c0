//! Which type a contract is, decided from its envelope before its schema is
//! known.

use super::definition::{AgentKind, ContractType, Protocol};
use crate::finding::Finding;
use crate::ids::{AgentName, quoted};

/// What the envelope says, as text, before anything is checked.
pub struct Envelope<'a> {
    /// The XML root element or the wrapped JSON form's key.
    pub root: Option<&'a str>,
    /// The sender, where the contract names one.
    pub from: Option<String>,
    /// The receiver, where the contract names one.
    pub to: Option<String>,
    /// Reads the scalar at a JSON Pointer of the contract.
    pub probe: &'a dyn Fn(&str) -> Option<String>,
}

/// A contract's type and parties.
#[derive(Clone, Debug)]
pub struct Resolved<'a> {
    /// The type.
    pub kind: &'a ContractType,
    /// The sender.
    pub from: AgentName,
    /// The receiver.
    pub to: AgentName,
}

/// Why a contract has no type. Paths in the findings are JSON Pointers.
#[derive(Debug)]
pub enum Unresolved<'a> {
    /// The envelope is incomplete or names nobody: the contract is at fault.
    /// The type is the only one it could still be, if there is just one.
    Envelope(Vec<Finding>, Option<&'a ContractType>),
    /// The envelope is well formed, and the protocol has no such route.
    Route(Box<Finding>),
}

impl Protocol {
    /// Decides the type of a contract.
    ///
    /// # Errors
    /// [`Unresolved`], with a finding for each fault of the envelope.
    pub fn resolve<'a>(&'a self, envelope: &Envelope<'_>) -> Result<Resolved<'a>, Unresolved<'a>> {
        let fields = &self.definition().fields;
        let rooted = |c: &&ContractType| envelope.root.is_none_or(|root| c.root == root);
        let contracts: Vec<&ContractType> =
            self.definition().contracts.iter().filter(rooted).collect();
        if contracts.is_empty() {
            let finding = Finding::error(
                "contract.root",
                "",
                format!(
                    "the root element {} is not one that protocol {} has",
                    quoted(envelope.root.unwrap_or_default()),
                    self.name()
                ),
            )
            .fix(format!("use one of: {}", self.roots().join(", ")));
            return Err(Unresolved::Envelope(vec![finding], None));
        }

        let (mut from, mut to) = (envelope.from.clone(), envelope.to.clone());
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
        let from_name = self.party(&fields.from, from.as_deref(), &mut findings);
        let to_name = self.party(&fields.to, to.as_deref(), &mut findings);
        let candidates: Vec<&ContractType> = contracts
            .into_iter()
            .filter(|c| self.travels(c, from.as_deref(), to.as_deref()))
            .collect();
        let (Some(from), Some(to)) = (from_name, to_name) else {
            let only = match candidates[..] {
                [only] => Some(only),
                _ => discriminated(&candidates, envelope.probe),
            };
            return Err(Unresolved::Envelope(findings, only));
        };
        match candidates[..] {
            [] => Err(
                match self.other_root(envelope.root, from.as_str(), to.as_str()) {
                    Some(finding) => Unresolved::Envelope(vec![finding], None),
                    None => Unresolved::Route(Box::new(self.no_route(from.as_str(), to.as_str()))),
                },
            ),
            [kind] => Ok(Resolved { kind, from, to }),
            _ => match discriminated(&candidates, envelope.probe) {
                Some(kind) => Ok(Resolved { kind, from, to }),
                None => Err(Unresolved::Envelope(undecided(&candidates, envelope), None)),
            },
        }
    }

    /// Reads one party's name; the finding says what is wrong with it.
    fn party(
        &self,
        pointer: &str,
        text: Option<&str>,
        findings: &mut Vec<Finding>,
    ) -> Option<AgentName> {
        let field = pointer.trim_start_matches('/');
        let Some(text) = text else {
            findings.push(
                Finding::error("field.missing", pointer, format!("`{field}` is missing"))
                    .fix(format!("name an agent: {}", self.agent_names().join(", "))),
            );
            return None;
        };
        match text.parse::<AgentName>() {
            Ok(name) if self.agent(text).is_some() => Some(name),
            Ok(_) => {
                findings.push(
                    Finding::error(
                        "agent.unknown",
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
                findings.push(Finding::error("agent.name", pointer, error.to_string()));
                None
            }
        }
    }

    /// Says whether a contract has any of the envelope's other fields: one that has none does not even
    /// look like a contract that may leave its parties out.
    fn says_something(&self, envelope: &Envelope<'_>) -> bool {
        let fields = &self.definition().fields;
        let others = [
            &fields.status,
            &fields.at,
            &fields.priority,
            &fields.summary,
        ];
        let mut pointers = others.into_iter().flatten().chain([&fields.issue]);
        pointers.any(|pointer| (envelope.probe)(pointer).is_some())
    }

    /// The finding of a contract whose parties have a route, for contracts with another root.
    fn other_root(&self, root: Option<&str>, from: &str, to: &str) -> Option<Finding> {
        let root = root?;
        let mut contracts = self.definition().contracts.iter();
        let meant = contracts.find(|c| self.travels(c, Some(from), Some(to)))?;
        let text = format!(
            "a contract from {from} to {to} has the root {}, not {}",
            quoted(&meant.root),
            quoted(root)
        );
        let fix = format!("use {} as the root", quoted(&meant.root));
        Some(Finding::error("contract.root", "", text).fix(fix))
    }

    /// Says whether a type may travel between these parties, as far as known.
    fn travels(&self, kind: &ContractType, from: Option<&str>, to: Option<&str>) -> bool {
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

    fn no_route(&self, from: &str, to: &str) -> Finding {
        let forbidden = self
            .definition()
            .forbidden
            .iter()
            .find(|f| f.from.as_str() == from && f.to.as_str() == to);
        let receivers = self.receivers(from);
        let targets: Vec<&str> = receivers.iter().map(|to| to.as_str()).collect();
        let why = forbidden.map_or_else(String::new, |f| format!(": {}", f.reason));
        let finding = Finding::error(
            if forbidden.is_some() {
                "route.forbidden"
            } else {
                "route.unknown"
            },
            self.definition().fields.to.clone(),
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

/// The one candidate whose discriminating fields are all as they must be.
fn discriminated<'a>(
    candidates: &[&'a ContractType],
    probe: &dyn Fn(&str) -> Option<String>,
) -> Option<&'a ContractType> {
    let fits = |c: &&&ContractType| {
        let mut fields = c.when.iter();
        fields.all(|(pointer, text)| probe(pointer).as_deref() == Some(text.as_str()))
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
            .filter_map(|c| c.when.get(pointer).map(String::as_str))
            .collect();
        let field = pointer.trim_start_matches('/');
        let made = match (envelope.probe)(pointer) {
            None => Finding::error("field.missing", pointer, format!("`{field}` is missing")),
            Some(text) => Finding::error(
                "field.value",
                pointer,
                format!(
                    "`{field}` is {}, which no contract on this route has",
                    quoted(&text)
                ),
            ),
        };
        made.fix(format!("use one of: {}", allowed.join(", ")))
    };
    pointers.into_iter().map(finding).collect()
}
