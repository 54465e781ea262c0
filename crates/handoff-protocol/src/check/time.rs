//! Checks limits, retries and decision rules.

use std::collections::BTreeSet;

use handoff_base::finding::FindingCode as Code;
use handoff_base::pointer::escaped_part;
use serde_json::Number;

use super::checker::{Checker, placed};
use crate::definition::{Action, DecisionRule, LONGEST, Limits, Retry};
use crate::lifecycle::State;

/// The largest multiplier of delays.
const STEEPEST: f64 = 1000.0;

impl Checker<'_> {
    pub(super) fn time_and_failure(&mut self) {
        let definition = self.definition;
        if let Some(retry) = definition.retry() {
            self.retry(retry);
        }
        if let Some(limits) = &definition.limits {
            self.times(limits);
            self.limits(limits);
        }
        self.run_failures();
        for (i, rule) in definition.decisions.iter().enumerate() {
            self.decision(i, rule);
        }
    }

    pub(super) fn time(&mut self, path: &str, seconds: Option<u64>, least: u64) {
        if seconds.is_some_and(|seconds| !(least..=LONGEST).contains(&seconds)) {
            let text = format!("a time has from {least} to {LONGEST} seconds here");
            self.fault(Code::ProtocolTime, path, text);
        }
    }

    fn number(&mut self, path: impl Into<String>, most: u32) {
        if most == 0 {
            let text = "a limit of 0 leaves room for nothing";
            self.fault(Code::ProtocolLimit, path, text);
        }
    }

    fn times(&mut self, time: &Limits) {
        for (key, seconds) in [
            ("lease_seconds", time.lease_seconds),
            ("longest_lease_seconds", time.longest_lease_seconds),
            ("longest_run_seconds", time.longest_run_seconds),
            ("person_lease_seconds", time.person_lease_seconds),
            ("acknowledge_seconds", time.acknowledge_seconds),
            ("archive_after_seconds", time.archive_after_seconds),
        ] {
            self.time(&format!("/limits/{key}"), seconds, 1);
        }
        let leases = time.longest_lease_seconds.zip(time.lease_seconds);
        if leases.is_some_and(|(longest, usual)| longest < usual) {
            let text = "the longest lease is shorter than the usual one";
            self.fault(Code::ProtocolTime, "/limits/longest_lease_seconds", text);
        }
    }

    fn run_failures(&mut self) {
        let mut seen = BTreeSet::new();
        for (code, known) in &self.definition.words.errors {
            for (i, run) in known.runs.iter().enumerate() {
                if !seen.insert(*run) {
                    let text = format!("`{}` has a code already", run.as_str());
                    let at = format!("/words/errors/{}/runs/{i}", escaped_part(code));
                    self.fault(Code::ProtocolDuplicate, at, text);
                }
            }
        }
    }

    fn retry(&mut self, retry: &Retry) {
        let by_contract = |c: &crate::definition::ContractType| c.retry_delay.is_some();
        let grows =
            retry.initial_seconds.is_some() || self.definition.contracts.iter().any(by_contract);
        let delays = placed("/limits/retry/delays_seconds", &retry.delays_seconds);
        delays.for_each(|(at, seconds)| self.time(&at, Some(*seconds), 0));
        self.time("/limits/retry/initial_seconds", retry.initial_seconds, 0);
        self.time("/limits/retry/cap_seconds", retry.cap_seconds, 1);
        if !retry.delays_seconds.is_empty() && retry.initial_seconds.is_some() {
            let text = "delays are listed or grow from the first, not both";
            self.fault(Code::ProtocolRetry, "/limits/retry/initial_seconds", text);
        }
        if let Some(multiplier) = retry.multiplier.as_ref().and_then(Number::as_f64) {
            if !(1.0..=STEEPEST).contains(&multiplier) {
                let text = format!("a delay grows by a number from 1 to {STEEPEST}");
                self.fault(Code::ProtocolRetry, "/limits/retry/multiplier", text);
            } else if !grows {
                let text = "there is no first delay that could grow";
                self.fault(Code::ProtocolRetry, "/limits/retry/multiplier", text);
            }
        }
        for (at, code) in placed("/limits/retry/never", &retry.never) {
            self.known_code(at, code);
        }
        let manual = retry.manual.as_ref();
        if manual.is_some_and(|text| text.trim().is_empty()) {
            let text = "nothing says what a person does by hand";
            self.fault(Code::ProtocolRetry, "/limits/retry/manual", text);
        }
    }

    fn limits(&mut self, limits: &Limits) {
        self.number("/limits/handoffs", limits.handoffs.unwrap_or(1));
        self.time("/limits/deadline_seconds", limits.deadline_seconds, 1);
        self.time("/limits/cooldown_seconds", limits.cooldown_seconds, 1);
        if let Some(item) = &limits.item {
            self.pointer("/limits/item/at".to_owned(), &item.at);
            self.number("/limits/item/handoffs", item.handoffs);
        }
        if let Some(cycle) = &limits.cycle {
            self.pointer("/limits/cycle/reason".to_owned(), &cycle.reason);
            self.number("/limits/cycle/most", cycle.most);
            if cycle.among < cycle.most {
                let text = "`most` is greater than `among`, so no cycle is ever found";
                self.fault(Code::ProtocolLimit, "/limits/cycle/among", text);
            }
        }
        for (name, round) in &limits.rounds {
            let name = escaped_part(name);
            let at = |key: &str| format!("/limits/rounds/{name}/{key}");
            self.number(at("most"), round.most);
            if round.contracts.is_empty() {
                let text = "`contracts` is empty, so no round is ever counted";
                self.fault(Code::ProtocolLimit, at("contracts"), text);
            }
            self.known_types(&at("contracts"), &round.contracts);
            self.pointers(&at("when"), round.when.keys());
            self.pointers(&at("unless"), round.unless.keys());
        }
        if let Some(turns) = &limits.turns {
            self.known_agent("/limits/turns/agent".to_owned(), turns.agent.as_str());
            if let Some(name) = &turns.kept_through {
                let at = "/limits/turns/kept_through".to_owned();
                self.known_round(Code::ProtocolLimit, at, name);
            }
        }
    }

    fn known_round(&mut self, code: Code, at: String, name: &str) {
        let limits = self.definition.limits.iter();
        let rounds = limits.flat_map(|limits| limits.rounds.keys().map(String::as_str));
        let text = || format!("`{name}` is not one of the limits' `rounds`");
        self.known((code, at), name, rounds, text);
    }

    fn decision(&mut self, i: usize, rule: &DecisionRule) {
        let at = |key: &str| format!("/decisions/{i}/{key}");
        let definition = self.definition;
        rule.to
            .iter()
            .for_each(|agent| self.known_agent(at("to"), agent.as_str()));
        let when = |key: &str| at(&format!("when/{key}"));
        for (key, agents) in [
            ("not_to", &rule.when.not_to),
            ("recommends", &rule.when.recommends),
        ] {
            for (at, agent) in placed(when(key), agents) {
                self.known_agent(at, agent.as_str());
            }
        }
        if rule.why.trim().is_empty() {
            let text = "there is no reason to record";
            self.fault(Code::ProtocolDecision, at("why"), text);
        }
        self.known_status(placed(when("status"), &rule.when.status));
        for (at, word) in placed(when("priority"), &rule.when.priority) {
            let words = definition.words.priorities.iter().map(String::as_str);
            let text = || format!("`{word}` is not a word in `words.priorities`");
            self.known((Code::ProtocolDecision, at), word, words, text);
        }
        for (at, name) in placed(when("reached"), &rule.when.reached) {
            self.known_round(Code::ProtocolDecision, at, name);
        }
        if rule.when.to_decide && rule.when.state.is_some() {
            let text = "`to_decide` and `state` exclude each other";
            self.fault(Code::ProtocolDecision, at("when/state"), text);
        }
        let revives = rule.action == Action::Retry && rule.when.state == Some(State::Dead);
        if revives && rule.when.redriven_below.is_none() {
            let text = "it would retry a dead handoff forever; limit it with `redriven_below`";
            self.fault(Code::ProtocolDecision, at("when"), text);
        }
        if let Some(state) = rule.when.state
            && !fits(rule.action, state)
        {
            let action = rule.action.as_str();
            let text = format!("`{action}` does not apply to a handoff that is {state}");
            self.fault(Code::ProtocolDecision, at("action"), text);
        }
    }
}

/// Whether an action is possible for a handoff in this state.
fn fits(action: Action, state: State) -> bool {
    match action {
        Action::Ask => state == State::Blocked,
        Action::Retry => matches!(state, State::Failed | State::Dead),
        Action::Reassign => state == State::Failed,
        Action::Advance | Action::ProceedPartial => state == State::Completed,
        Action::Skip | Action::FallBack | Action::Escalate | Action::Terminate => {
            matches!(state, State::Failed | State::Dead | State::Blocked)
        }
    }
}
