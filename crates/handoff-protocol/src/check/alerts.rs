//! Checks alerts for thresholds that can never be crossed or that mean nothing.

use std::collections::BTreeSet;

use handoff_base::finding::FindingCode as Code;

use super::checker::Checker;
use crate::definition::{Alert, LONGEST, Measure, Metric, Threshold};

impl Checker<'_> {
    pub(super) fn alerts(&mut self) {
        let mut names = BTreeSet::new();
        let alerts = &self.definition.alerts;
        for (alert, i) in alerts.iter().zip(&alerts.places) {
            if !names.insert(&alert.name) {
                let text = format!("alert `{}` is defined twice", alert.name);
                let path = format!("/alerts/{i}/name");
                self.fault(Code::ProtocolDuplicate, path, text);
            }
            let limits = self.definition.limits.as_ref();
            let metric = |text: &str| Some(("/metric", text.to_owned()));
            let missing = match alert.metric {
                Metric::RoundsLeft if limits.is_none_or(|l| l.rounds.is_empty()) => {
                    metric("the limits have no `rounds`")
                }
                Metric::BudgetSpent if self.definition.budgets().is_empty() => {
                    metric("the limits have no `budgets`")
                }
                _ => None,
            };
            for (key, text) in missing.into_iter().chain(faults(alert)) {
                let path = format!("/alerts/{i}{key}");
                self.fault(Code::ProtocolAlert, path, text);
            }
        }
    }
}

/// The faults of an alert, each with the key it is about.
fn faults(alert: &Alert) -> Vec<(&'static str, String)> {
    let mut found = Vec::new();
    let mut fault = |key, text: String| found.push((key, text));
    let word = alert.metric.as_str();
    let is_word = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    if alert.name.is_empty() || alert.name.len() > 64 || !alert.name.bytes().all(is_word) {
        let text = "a name has 1 to 64 small letters, digits and `-`";
        fault("/name", text.to_owned());
    }
    if alert.action.trim().is_empty() || alert.action.contains(char::is_control) {
        let text = "`action` must say in one line what to do";
        fault("/action", text.to_owned());
    }
    let thresholds: Vec<Threshold> = alert.thresholds().collect();
    match thresholds[..] {
        [Threshold { value, .. }] if value < 0.0 => {
            fault("", format!("`{word}` is never less than 0"));
        }
        [Threshold { value, .. }] if alert.metric.measure() == Measure::Share && value > 1.0 => {
            fault("", format!("`{word}` is a share, and never more than 1"));
        }
        [_] => {}
        _ => {
            let text = "it has one of `above`, `at_least`, `below` and `at_most`";
            fault("", text.to_owned());
        }
    }
    let times = [
        (
            "/within_seconds",
            alert.within_seconds,
            alert.metric.has_window(),
            "is not counted over a period",
        ),
        (
            "/longer_than_seconds",
            alert.longer_than_seconds,
            alert.metric.has_patience(),
            "is not a state that lasts",
        ),
    ];
    for (key, seconds, fits, why) in times {
        if seconds.is_some() && !fits {
            fault(key, format!("`{word}` {why}"));
        } else if seconds.is_some_and(|seconds| !(1..=LONGEST).contains(&seconds)) {
            fault(key, format!("a time has from 1 to {LONGEST} seconds here"));
        }
    }
    if let Some(quantile) = &alert.quantile {
        if alert.metric.measure() != Measure::Times {
            fault("/quantile", format!("`{word}` is not a duration"));
        } else if !quantile.as_f64().is_some_and(|q| q > 0.0 && q <= 1.0) {
            let text = "a quantile is more than 0, and at most 1: the longest";
            fault("/quantile", text.to_owned());
        }
    }
    found
}
