//! Checks rules for GitHub's events that can't apply or have no effect.

use std::collections::BTreeSet;

use handoff_base::finding::FindingCode as Code;
use handoff_base::ids::AgentName;
use handoff_base::pointer::is_pointer;
use serde_json::Value;

use super::checker::Checker;
use crate::definition::{
    AgentKind, Command, ContractRule, ContractType, Effect, EventKind, EventRule, Permission,
    Source, Take, Unfinished,
};

const CODE: Code = Code::ProtocolGithub;

impl Checker<'_> {
    pub(super) fn github(&mut self) {
        let definition = self.definition;
        let patterns = definition.branch_patterns();
        self.each("/github/branches", patterns, CODE, |pattern| {
            let shown = pattern.escape_debug();
            (!is_branch_pattern(pattern)).then(|| {
                format!("`{shown}` is not a pattern of a branch with `{{issue}}` in it once, such as `{{type}}/{{issue}}-*`")
            })
        });
        let (served, mut prefixes) = (definition.repositories(), BTreeSet::new());
        for (name, prefix) in served {
            let fits = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
            let is_one = |name: &str| !name.is_empty() && !name.contains('/');
            let is_prefix = prefix.is_empty()
                || prefix.len() <= 40
                    && prefix.ends_with(['-', '_'])
                    && prefix.starts_with(|c: char| c.is_ascii_alphabetic())
                    && prefix.bytes().all(fits);
            let text = match name.split_once('/') {
                Some((owner, name)) if is_one(owner) && is_one(name) => {
                    if !is_prefix {
                        "keys begin with nothing, or with a letter, up to 40 letters, digits, `-` and `_`, and `-` or `_`"
                    } else if !prefixes.insert(prefix) {
                        "keys of another repository begin so"
                    } else {
                        continue;
                    }
                }
                _ => "a repository is written owner/name",
            };
            let at = name.replace('~', "~0").replace('/', "~1");
            self.fault(CODE, format!("/github/repositories/{at}"), text);
        }
        let mut names = BTreeSet::new();
        for (i, rule) in definition.event_rules().iter().enumerate() {
            let at = format!("/github/rules/{i}");
            if !names.insert(&rule.name) {
                let text = format!("rule `{}` is defined twice", rule.name);
                self.fault(Code::ProtocolDuplicate, format!("{at}/name"), text);
            }
            self.event_rule(&at, rule);
        }
    }

    fn event_rule(&mut self, at: &str, rule: &EventRule) {
        let is_word = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        let named = rule.name.starts_with(|c: char| c.is_ascii_lowercase());
        if !named || rule.name.len() > 48 || !rule.name.bytes().all(is_word) {
            let text = "a name has 1 to 48 small letters, digits and `-`, a letter first";
            self.fault(CODE, format!("{at}/name"), text);
        }
        if rule.on.is_empty() {
            self.fault(CODE, format!("{at}/on"), "`on` names no event");
        }
        let is_action = |b: u8| b.is_ascii_lowercase() || b == b'_';
        for (kind, actions) in &rule.on {
            for action in actions {
                if action.is_empty() || !action.bytes().all(is_action) {
                    let text = format!("`{}` is not the name of an action", action.escape_debug());
                    self.fault(CODE, format!("{at}/on/{}", kind.as_str()), text);
                }
            }
        }
        for (pointer, condition) in &rule.when {
            self.pointer(format!("{at}/when"), pointer);
            let plain = |value: &Value| !value.is_array() && !value.is_object();
            if condition.values().is_empty() || !condition.values().iter().all(plain) {
                let text = format!("`{pointer}` can never match: {EXPECTED}");
                self.fault(CODE, format!("{at}/when"), text);
            }
        }
        self.known_agent(format!("{at}/as"), rule.agent.as_str());
        let ends = self.definition.agents.iter();
        if { ends }.any(|a| a.id == rule.agent && a.kind == AgentKind::End) {
            let text = format!("`{}` is of kind `end` and takes no step", rule.agent);
            self.fault(CODE, format!("{at}/as"), text);
        }
        self.facts_of(at, rule);
        let says = |kind: &EventKind| {
            matches!(kind, EventKind::IssueComment | EventKind::PullRequestReview)
        };
        let is_said = rule.on.keys().all(says);
        if rule.needs.is_some() && !is_said {
            let text = "only the author of a comment or a review can need a permission";
            self.fault(CODE, format!("{at}/needs"), text);
        }
        if rule.needs == Some(Permission::None) {
            let text = "everybody has `none`: leave `needs` out";
            self.fault(CODE, format!("{at}/needs"), text);
        }
        match &rule.effect {
            None if rule.note.is_none() => self.fault(CODE, at, "nothing follows from it"),
            Some(Effect::Send(contract)) => {
                self.contract_of(&format!("{at}/do/send"), rule, contract)
            }
            Some(Effect::Draft(contract)) => {
                self.contract_of(&format!("{at}/do/draft"), rule, contract);
            }
            Some(Effect::Pause(pause)) => {
                for agent in &pause.except {
                    self.known_agent(format!("{at}/do/pause/except"), agent.as_str());
                }
            }
            Some(effect @ (Effect::Commands(_) | Effect::Answer)) => {
                if !is_said {
                    let text = "only a comment or a review has commands";
                    self.fault(CODE, format!("{at}/do"), text);
                }
                self.commands_of(at, rule, effect.commands());
            }
            _ => {}
        }
    }

    fn commands_of(&mut self, at: &str, rule: &EventRule, commands: &[Command]) {
        let at = format!("{at}/do/commands");
        if commands.is_empty() {
            self.fault(CODE, at.clone(), "it names no command");
        }
        let people: Vec<&AgentName> = self.definition.people().collect();
        let approves = people.len() == 1 || people.contains(&&rule.agent);
        if commands.contains(&Command::Approve) && !approves {
            let text =
                "only a person approves: `as` names none, and the protocol has none or several";
            self.fault(CODE, at, text);
        }
    }

    fn facts_of(&mut self, at: &str, rule: &EventRule) {
        if rule.only_changes && rule.facts.is_empty() {
            let text = "only facts can be changed, and it has none";
            self.fault(CODE, format!("{at}/only_changes"), text);
        }
        let is_name = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_';
        for (name, source) in &rule.facts {
            let at = format!("{at}/facts/{name}");
            if name.is_empty() || name.len() > 64 || !name.bytes().all(is_name) {
                let text = "a fact's name has 1 to 64 small letters, digits and `_`";
                self.fault(CODE, at.clone(), text);
            }
            self.source_of(at, source);
        }
        match &rule.note {
            Some(note) if note.trim().is_empty() || note.contains(char::is_control) => {
                let text = "a note is one line";
                self.fault(CODE, format!("{at}/note"), text);
            }
            None if !rule.facts.is_empty() => {
                let text = "facts are noted: `note` says in one line what they are about";
                self.fault(CODE, format!("{at}/facts"), text);
            }
            _ => {}
        }
    }

    fn contract_of(&mut self, at: &str, rule: &EventRule, contract: &ContractRule) {
        self.known_agent(format!("{at}/to"), contract.to.as_str());
        self.way_of(at, &contract.contract, (&rule.agent, &contract.to));
        for (pointer, source) in &contract.fields {
            self.field_of(format!("{at}/fields"), pointer);
            self.source_of(format!("{at}/fields"), source);
        }
        if let Some(unfinished) = &contract.unfinished {
            self.unfinished_of(&format!("{at}/unfinished"), rule, contract, unfinished);
        }
    }

    fn unfinished_of(
        &mut self,
        at: &str,
        rule: &EventRule,
        contract: &ContractRule,
        unfinished: &Unfinished,
    ) {
        self.way_of(at, &unfinished.contract, (&rule.agent, &rule.agent));
        self.field_of(format!("{at}/missing"), &unfinished.missing);
        let opens = |from: &AgentName, to: &AgentName, kind: &String| {
            let routes = self.definition.routes.iter();
            let mut open = routes.filter(|r| r.opens && (r.from == from.as_str() || r.from == "*"));
            open.any(|r| r.to == *to && r.contracts.contains(kind))
        };
        let text = match () {
            () if !matches!(rule.effect, Some(Effect::Send(_))) => {
                "`unfinished` needs `send`: a draft may be incomplete"
            }
            () if !opens(&rule.agent, &contract.to, &contract.contract) => {
                "the rule's own contract opens no issue"
            }
            () if !opens(&rule.agent, &rule.agent, &unfinished.contract) => {
                "no route opens an issue with this contract"
            }
            () => return,
        };
        self.fault(CODE, at, text);
    }

    fn field_of(&mut self, at: String, pointer: &str) {
        if !is_pointer(pointer) || pointer.contains('*') {
            let text = format!("`{pointer}` is not a JSON Pointer to a field, such as /from");
            self.fault(Code::ProtocolPointer, at, text);
        }
    }

    fn way_of(&mut self, at: &str, contract: &str, (from, to): (&AgentName, &AgentName)) {
        self.known_type(format!("{at}/contract"), contract);
        let (from, to) = (from.as_str(), to.as_str());
        let goes = |kind: &ContractType| {
            let routes = self.definition.routes.iter();
            let mut ways =
                routes.filter(|r| (r.from == from || r.from == "*") && r.to.as_str() == to);
            let answers = self.definition.routes.iter();
            let mut asked =
                answers.filter(|r| (r.from == to || r.from == "*") && r.to.as_str() == from);
            kind.note
                || ways.any(|r| r.contracts.contains(&kind.name))
                || asked.any(|r| r.contracts.iter().any(|c| kind.answers.contains(c)))
        };
        let kind = self
            .definition
            .contracts
            .iter()
            .find(|c| c.name == contract);
        if kind.is_some_and(|kind| !goes(kind)) {
            let text = format!("no such contract goes from {from} to {to}");
            self.fault(CODE, format!("{at}/contract"), text);
        }
    }

    fn source_of(&mut self, at: String, source: &Source) {
        for pointer in source.pointers() {
            self.pointer(at.clone(), pointer);
        }
        let Source::Rule(rule) = source else { return };
        let text = match () {
            () if rule.at.is_empty() && rule.default.is_none() => "there is no place in `at`",
            () if !rule.under.is_empty() && ![Take::Line, Take::Items].contains(&rule.take) => {
                "`under` needs `take`: `line` or `items`"
            }
            () if rule.map.is_empty() && !rule.prefixes.is_empty() => "`prefixes` need a `map`",
            () if !rule.map.is_empty() && [Take::Items, Take::Each].contains(&rule.take) => {
                "lists are not in a `map`"
            }
            () => return,
        };
        self.fault(CODE, at, text);
    }
}

/// Whether a pattern names the issue exactly once and its braces are balanced.
fn is_branch_pattern(pattern: &str) -> bool {
    let is_name = |name: &str| !name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase());
    let mut parts = pattern.split('{');
    let before = parts.next().unwrap_or_default();
    let closed = parts.all(|part| {
        let named = part.split_once('}');
        named.is_some_and(|(name, rest)| is_name(name) && !rest.contains('}'))
    });
    !before.contains('}') && closed && pattern.matches("{issue}").count() == 1
}

const EXPECTED: &str = "a text, a number, true, false or null, or a list of them, is expected";
