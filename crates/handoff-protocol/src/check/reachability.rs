//! Checks the routes of work: types that can't be told apart on a route, agents that no route
//! reaches, types that nobody can send.

use std::collections::BTreeSet;

use handoff_base::finding::{Finding, FindingCode as Code};

use super::checker::Checker;
use crate::definition::{ContractType, Definition, Route, Words};

impl Checker<'_> {
    /// Reports types between the same agents that no field tells apart.
    pub(super) fn undecidable(&mut self) {
        let definition = self.definition;
        let types = &definition.contracts;
        let ways: Vec<BTreeSet<AgentPair<'_>>> =
            types.iter().map(|c| ways(definition, c)).collect();
        for (b, other) in types.iter().enumerate() {
            for (a, one) in types.iter().enumerate().take(b) {
                // Only XML contracts always have a root.
                let by_root = definition.formats == ["xml"] && one.root != other.root;
                if by_root || one.name == other.name || !alike(one, other) {
                    continue;
                }
                let Some(pair) = ways[a].intersection(&ways[b]).next() else {
                    continue;
                };
                let text = format!(
                    "`{}` and `{}` can both go {}, and no field in `when` tells them apart",
                    one.name,
                    other.name,
                    shared_way(definition, [one, other], *pair)
                );
                self.fault(
                    Code::ProtocolAmbiguous,
                    format!("/contracts/{b}/when"),
                    text,
                );
            }
        }
    }

    /// Reports agents that no work reaches, and types that nobody can send.
    pub(super) fn unreachable(&mut self) {
        // One fault in a route or an agent would be reported again for everything that depends on
        // it.
        let apart = |f: &Finding| !f.path.starts_with("/routes") && !f.path.starts_with("/agents");
        let misnames = |f: &Finding| f.code == Code::ProtocolUnknownType && !apart(f);
        if !self.found.iter().any(misnames) {
            self.unused();
        }
        if self.found.iter().all(apart) {
            self.unreached();
        }
    }

    fn unreached(&mut self) {
        let definition = self.definition;
        let opening = definition.routes.iter().filter(|r| r.opens);
        let mut reached: BTreeSet<&str> = opening
            .flat_map(|route| match route.from.as_str() {
                "*" => self.agents.iter().copied().collect(),
                from => vec![from],
            })
            .collect();
        loop {
            let goes = |r: &&Route| r.from == "*" || reached.contains(r.from.as_str());
            let routes: Vec<&Route> = definition.routes.iter().filter(goes).collect();
            let receivers = routes.iter().flat_map(|r| r.via.iter().chain([&r.to]));
            let more: Vec<&str> = receivers
                .map(|agent| agent.as_str())
                .filter(|agent| !reached.contains(agent))
                .collect();
            if more.is_empty() {
                break;
            }
            reached.extend(more);
        }
        for (i, agent) in definition.agents.iter().enumerate() {
            // A person can step in anywhere.
            if !definition.is_person(agent.id.as_str()) && !reached.contains(agent.id.as_str()) {
                let text = format!(
                    "no route reaches `{}` from where issues are opened",
                    agent.id
                );
                let code = Code::ProtocolUnreachableAgent;
                let finding = Finding::error(code, format!("/agents/{i}"), text);
                self.found
                    .push(finding.fix(format!("add a route to `{}`, or leave it out", agent.id)));
            }
        }
    }

    fn unused(&mut self) {
        let definition = self.definition;
        let sent: BTreeSet<&str> = definition
            .routes
            .iter()
            .flat_map(|route| route.contracts.iter().map(String::as_str))
            .collect();
        for (i, contract) in definition.contracts.iter().enumerate() {
            if contract.travels() && !sent.contains(contract.name.as_str()) {
                let text = format!("no route has contracts of type `{}`", contract.name);
                let finding =
                    Finding::error(Code::ProtocolUnusedType, format!("/contracts/{i}"), text);
                self.found
                    .push(finding.fix("name it in `contracts` of a route, or leave it out"));
            }
        }
    }
}

type AgentPair<'d> = (&'d str, &'d str);

/// The pairs of sender and receiver between which a contract type can go.
fn ways<'d>(definition: &'d Definition, kind: &ContractType) -> BTreeSet<AgentPair<'d>> {
    let agents = || definition.agents.iter().map(|agent| agent.id.as_str());
    let sent = |name: &str| {
        let routes = definition.routes.iter();
        let routes = routes.filter(|route| route.contracts.iter().any(|c| c == name));
        let ways = routes.flat_map(|route| {
            let from = agents().filter(|from| route.from == *from || route.from == "*");
            from.filter(|from| route.to.as_str() != *from)
                .map(|from| (from, route.to.as_str()))
        });
        ways.collect::<BTreeSet<_>>()
    };
    if kind.note {
        return agents()
            .flat_map(|from| agents().map(move |to| (from, to)))
            .collect();
    }
    if kind.answers.is_empty() {
        return sent(&kind.name);
    }
    // An answer goes back to the requester; if it names no receiver, it may go to anyone.
    let names_receiver = kind.fields.to.is_some();
    let asked = kind.answers.iter().flat_map(|asked| sent(asked));
    asked
        .flat_map(|(from, to)| {
            if names_receiver {
                vec![(to, from)]
            } else {
                agents().map(|any| (to, any)).collect()
            }
        })
        .collect()
}

/// The way that two types share: its agents, and the routes that lead there.
fn shared_way(definition: &Definition, types: [&ContractType; 2], (from, to): AgentPair) -> String {
    let goes = |route: &&Route| {
        let is_way = route.to.as_str() == to && (route.from == from || route.from == "*");
        is_way
            && types
                .iter()
                .any(|kind| route.contracts.contains(&kind.name))
    };
    let routes = definition.routes.iter().filter(goes);
    let routes: BTreeSet<String> = routes
        .map(|route| format!("`{} → {}`", route.from, route.to))
        .collect();
    let routes: Vec<String> = routes.into_iter().collect();
    let by = match routes.len() {
        0 => String::new(),
        1 => format!(" (route {})", routes[0]),
        _ => format!(" (routes {})", routes.join(", ")),
    };
    format!("from `{from}` to `{to}`{by}")
}

/// Whether two types can't be told apart by a field, by the format, or by where they name their
/// sender.
fn alike(a: &ContractType, b: &ContractType) -> bool {
    let apart = |(pointer, words): (&String, &Words)| {
        b.when
            .get(pointer)
            .is_some_and(|other| words.excludes(other))
    };
    // A file of another system has fields that no other contract has.
    let by_field = |kind: &ContractType| !kind.when.is_empty();
    if a.foreign.is_some() != b.foreign.is_some() && by_field(a) && by_field(b) {
        return false;
    }
    let formats = a.formats.is_empty() || a.formats.iter().any(|f| b.has_format(f));
    formats && a.fields.from == b.fields.from && !a.when.iter().any(apart)
}
