//! One built-in protocol and contracts that it accepts, all about one issue.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;

use handoff::base::ids::{AgentName, IssueKey};
use handoff::contract::Input;
use handoff::model::{Contract, review};
use handoff::protocol::{AgentKind, Protocol};
use handoff::templates::{FolderSchemas, built_in};
use serde_json::{Value, json};
use test_support::contracts;
use test_support::dice::Dice;

/// How many variants of each sample are tried.
const VARIANTS: usize = 6;

/// The budget of the issue: far enough to be reached rarely.
pub(crate) const TOKENS: u64 = 1200;
pub(crate) const ATTEMPTS: u64 = 8;

/// A protocol, an issue and the contracts that may be sent in it.
pub(crate) struct World {
    pub(crate) protocol: Protocol,
    pub(crate) key: IssueKey,
    pub(crate) contracts: Vec<Contract>,
    /// The agents that act.
    pub(crate) agents: Vec<AgentName>,
    /// Each of the contracts by its bytes.
    known: HashMap<Vec<u8>, usize>,
}

impl World {
    /// A built-in protocol with its valid samples, and random variants of those. It wants all that is
    /// refused on record.
    pub(crate) fn new(name: &str) -> Self {
        let folder = built_in(name).unwrap();
        let definition = folder.file("protocol.json").unwrap();
        let mut definition: Value = serde_json::from_slice(definition).unwrap();
        definition["limits"]["on_record"] = json!(["limits", "cycles", "refused_contracts"]);
        definition["limits"]["budgets"] = json!({
            "run": {"per": "run", "tokens": 400},
            "issue": {"per": "issue", "tokens": TOKENS, "attempts": ATTEMPTS},
            "day": {"per": "day", "cost": 1, "currency": "USD"},
        });
        let protocol = Protocol::load(&serde_json::to_vec(&definition).unwrap()).unwrap();
        let schemas = FolderSchemas::new(folder);
        let hint: IssueKey = "87".parse().unwrap();
        let reviewed = |bytes: &[u8], key: Option<&IssueKey>| -> Option<Contract> {
            let reviewed = review(&protocol, &schemas, &Input::read(bytes), key);
            reviewed.unwrap().contract
        };
        let mut samples = Vec::new();
        for entry in fs::read_dir(contracts::folder(name)).unwrap() {
            let path = entry.unwrap().path();
            samples.push((path.clone(), fs::read(path).unwrap()));
        }
        samples.sort();
        let samples: Vec<Vec<u8>> = samples.into_iter().map(|(_, bytes)| bytes).collect();
        // The issue that most samples are about.
        let mut about: BTreeMap<IssueKey, usize> = BTreeMap::new();
        let mut found = Vec::new();
        for bytes in &samples {
            // Some name no issue.
            let contract = reviewed(bytes, None).or_else(|| reviewed(bytes, Some(&hint)));
            if let Some(contract) = contract {
                *about.entry(contract.issue.clone()).or_default() += 1;
                found.push(contract);
            }
        }
        let key = about.iter().max_by_key(|(_, count)| **count).unwrap();
        let key = key.0.clone();
        let mut dice = Dice::new(1);
        let mut all: BTreeSet<Vec<u8>> = samples.iter().cloned().collect();
        for contract in &found {
            let variants = (0..VARIANTS).map(|_| varied(&protocol, contract, &key, &mut dice));
            all.extend(variants.flatten());
        }
        let contracts: Vec<Contract> = all
            .iter()
            .filter_map(|bytes| reviewed(bytes, Some(&key)))
            .filter(|contract| contract.issue == key)
            .collect();
        let known = contracts.iter().enumerate();
        let known = known.map(|(at, contract)| (contract.bytes.clone(), at));
        let names = protocol.definition().agents.iter();
        let names = names.filter(|agent| agent.kind != AgentKind::End);
        Self {
            agents: names.map(|agent| agent.id.clone()).collect(),
            known: known.collect(),
            key,
            contracts,
            protocol,
        }
    }

    /// The contract with these bytes.
    pub(crate) fn contract(&self, bytes: &[u8]) -> Option<&Contract> {
        self.known.get(bytes).map(|at| &self.contracts[*at])
    }
}

/// The contract about this issue, with other parties, another status or another id; `None` if it is
/// not JSON, or its envelope is not where the protocol has it.
fn varied(
    protocol: &Protocol,
    contract: &Contract,
    key: &IssueKey,
    dice: &mut Dice,
) -> Option<Vec<u8>> {
    let mut value: Value = serde_json::from_slice(&contract.bytes).ok()?;
    let kind = protocol.contract_type(&contract.kind)?;
    let definition = protocol.definition();
    let mut set = |pointer: Option<&str>, text: &str| {
        if let Some(member) = pointer.and_then(|at| value.pointer_mut(at)) {
            *member = match (&*member, text.parse::<u64>()) {
                (Value::Number(_), Ok(number)) => number.into(),
                _ => text.into(),
            };
        }
    };
    set(protocol.field(kind, |f| &f.issue), key.as_str());
    let agents: Vec<&AgentName> = definition.agents.iter().map(|a| &a.id).collect();
    if dice.percent(50) {
        set(
            protocol.field(kind, |f| &f.from),
            dice.one(&agents).as_str(),
        );
        set(protocol.field(kind, |f| &f.to), dice.one(&agents).as_str());
    }
    let words: Vec<&str> = definition.words.status.keys().map(String::as_str).collect();
    if dice.percent(30) && !words.is_empty() {
        let word: &&str = dice.one(&words);
        set(protocol.field(kind, |f| &f.status), word);
    }
    // Where the id is the issue, it stays.
    if dice.percent(60)
        && let Some(id) = contract
            .id
            .as_ref()
            .filter(|id| *id != contract.issue.as_str())
    {
        set(
            protocol.field(kind, |f| &f.id),
            &format!("{id}-{}", dice.below(4)),
        );
    }
    serde_json::to_vec_pretty(&value).ok()
}
