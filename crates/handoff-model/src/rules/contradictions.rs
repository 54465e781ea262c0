//! Finds rules of a protocol that contradict each other or can never be satisfied: about contracts'
//! values, about handoffs, or about how an issue proceeds.
//!
//! Only certain contradictions are reported: whatever schemas, words and routes leave open is
//! assumed to be possible.

use std::collections::{BTreeMap, BTreeSet};

use handoff_base::finding::{Finding, FindingCode, Severity};
use handoff_base::pointer::parts;
use handoff_base::text::cut;
use handoff_protocol::{
    Action, AgentKind, Circumstances, Comparison, ConsistencyRule, Definition, Policy, Protocol,
    Requirement, Route, State, Subject, Term, schema_has, schema_values,
};
use serde_json::{Value, json};

use crate::rules::mistakes::accepts;
use crate::value::scalar;

/// Finds contradictions; `position` returns the line and column of a path in the file.
pub(super) struct Contradictions<'a, P> {
    pub(super) protocol: &'a Protocol,
    pub(super) schemas: &'a [Option<Value>],
    pub(super) position: P,
}

/// The name and the path of another rule that takes part in a contradiction.
type Other<'a> = Option<(&'a str, String)>;

impl<P: Fn(&str) -> Option<(u32, u32)>> Contradictions<'_, P> {
    /// Every contradiction, with the line and column of both rules.
    pub(super) fn find(&self) -> Vec<Finding> {
        let mut found = self.consistency();
        found.extend(self.decisions());
        found.extend(self.requirements());
        found.extend(self.ways());
        found
    }

    fn definition(&self) -> &Definition {
        self.protocol.definition()
    }

    fn finding(&self, at: String, mut text: String, other: Other<'_>) -> Finding {
        if let Some((name, at)) = other {
            text += &match (self.position)(&at) {
                Some((line, column)) => format!(" `{name}`, in line {line}, column {column}"),
                None => format!(" `{name}`"),
            };
        }
        let fix = "change what it says, or where it applies, and play it: `git handoff protocol test FOLDER`";
        let mut finding = Finding::error(FindingCode::ProtocolContradiction, at, text).fix(fix);
        (finding.line, finding.column) = (self.position)(&finding.path).unzip();
        finding
    }

    /// Consistency rules that no contract can satisfy, alone or in pairs.
    fn consistency(&self) -> Vec<Finding> {
        let contracts = self.definition().contracts.iter().zip(self.schemas);
        let types = contracts.filter_map(|(kind, schema)| Some((&*kind.name, schema.as_ref()?)));
        let types: Vec<(&str, &Value)> = types.collect();
        let of = |rule: &ConsistencyRule| {
            let mut types = types.clone();
            types.retain(|(name, _)| rule.of.is_empty() || rule.of.iter().any(|of| of == name));
            types.retain(|(_, schema)| has_places(schema, rule));
            types
        };
        let (mut found, mut sound) = (Vec::new(), Vec::<(usize, &ConsistencyRule)>::new());
        let rules = self.definition().consistency.iter().enumerate();
        for (j, rule) in rules.filter(|(_, rule)| rule.policy != Policy::Off) {
            let (at, name) = (format!("/consistency/{j}"), &rule.name);
            let mut applies = of(rule);
            let is_known = types.len() == self.schemas.len() && !applies.is_empty();
            applies.retain(|(_, schema)| impossible(schema, &[rule], &[]).is_none());
            let mut alone = applies.iter().filter_map(|(kind, schema)| {
                let (term, why) = impossible(schema, &[rule], &[rule])?;
                Some(format!("rule `{name}` can never hold: no `{term}` that a contract of type `{kind}` can have obeys it{why}"))
            });
            if let Some(text) = alone.next() {
                let finding = self.finding(at, text, None);
                found.push(weighed(finding, &[rule]));
                continue;
            } else if applies.is_empty() && is_known {
                let text = format!(
                    "rule `{name}` applies to no contract: none can have what its `when` asks"
                );
                let mut finding = self.finding(at, text, None);
                // Only a warning: its contract types may have been removed.
                finding.severity = Severity::Warning;
                found.push(finding);
                continue;
            }
            for (i, other) in &sound {
                let both = [*other, rule];
                if !implies(rule, other) && !implies(other, rule) {
                    continue;
                }
                let types = applies.iter().filter(|one| of(other).contains(one));
                let mut conflicts = types.filter_map(|(kind, schema)| {
                    // A pair is reported only if each of its rules can be satisfied alone.
                    let alone = |one| impossible(schema, &both, &[one]).is_some();
                    let is_of_both = !alone(other) && !alone(rule);
                    let (term, _) = impossible(schema, &both, &both).filter(|_| is_of_both)?;
                    Some(format!("rule `{name}` contradicts another, so that no `{term}` in a contract of type `{kind}` obeys both:"))
                });
                if let Some(text) = conflicts.next() {
                    let other = Some((&*other.name, format!("/consistency/{i}")));
                    found.push(weighed(self.finding(at.clone(), text, other), &both));
                }
            }
            sound.push((j, rule));
        }
        found
    }

    /// Decision rules that never apply, or that an earlier one always precedes. Only warnings,
    /// because a changed limit may have caused it.
    fn decisions(&self) -> Vec<Finding> {
        let rules = &self.definition().decisions;
        let at = |i: usize| format!("/decisions/{i}");
        let name = |i: usize| format!("{} {}", rules[i].action.as_str(), i + 1);
        let found = rules.iter().enumerate().filter_map(|(j, rule)| {
            let own = format!("decision `{}`", name(j));
            if let Some((why, key)) = self.never(&rule.when) {
                let other = key.map(|key| (key, format!("/limits/retry/{key}")));
                return Some(self.finding(at(j), format!("{own} never applies: {why}"), other));
            }
            let mut earlier = rules[..j].iter();
            let i = earlier
                .position(|one| is_sure(one.action, &one.when) && covers(&one.when, &rule.when))?;
            let text = format!("{own} is never reached: what it asks for meets an earlier one,");
            Some(self.finding(at(j), text, Some((&name(i), at(i)))))
        });
        let warned = found.map(|mut finding| {
            finding.severity = Severity::Warning;
            finding
        });
        warned.collect()
    }

    /// Why no handoff ever is in these circumstances, and the key of the retry setting that
    /// prevents it.
    fn never(&self, when: &Circumstances) -> Option<(&'static str, Option<&'static str>)> {
        let definition = self.definition();
        let retried = when.retries_left == Some(true);
        let retry = definition.retry().filter(|_| retried);
        let may_retry = || {
            definition
                .contracts
                .iter()
                .any(|kind| kind.max_retries.is_some())
        };
        let is_not_failed =
            when.to_decide || when.state.is_some_and(|state| state != State::Failed);
        let never = |code| retry.is_some_and(|retry| retry.never.contains(code));
        let decides = |kind| definition.agents.iter().any(|agent| agent.kind == kind);
        Some(if when.redriven_below == Some(0) {
            ("`redriven_below` is 0, and no count is below 0", None)
        } else if retried && is_not_failed {
            ("only what failed has retries left", None)
        } else if retry.is_some_and(|retry| retry.max_retries == Some(0)) && !may_retry() {
            ("nothing has retries left, by", Some("max_retries"))
        } else if !when.codes.is_empty() && when.codes.iter().all(never) {
            (
                "what fails with these codes has no retries left, by",
                Some("never"),
            )
        } else if when.to_decide && !decides(AgentKind::Orchestrator) {
            ("there is no agent of kind `orchestrator` to decide", None)
        } else {
            return None;
        })
    }

    /// Requirements that no contract meets, and pairs of them for a merge that undo each other.
    fn requirements(&self) -> Vec<Finding> {
        let all = self.definition().requirements.iter();
        let shown: Vec<_> = all.filter(|(_, of)| of.approved_by.is_empty()).collect();
        let undoes = |one: &Requirement, other: &Requirement| {
            one.merge
                && one
                    .shown_by
                    .iter()
                    .all(|kind| other.undone_by.contains(kind))
        };
        let found = shown.iter().enumerate().filter_map(|(j, (name, requirement))| {
            let at = |name: &str| format!("/requirements/{name}");
            if !requirement.shown_by.iter().any(|kind| self.counts(requirement, kind)) {
                let kinds = requirement.shown_by.join(" or ");
                let text = format!("requirement `{name}` can never be met: no `{kinds}` has a status that counts");
                return Some(self.finding(at(name), text, None));
            }
            let mut before = shown[..j].iter();
            let (other, _) = before.find(|(_, one)| undoes(one, requirement) && undoes(requirement, one))?;
            let text = format!("requirement `{name}` and another undo each other, so that nothing can be merged:");
            Some(self.finding(at(name), text, Some((other, at(other)))))
        });
        found.collect()
    }

    /// Whether a contract of this type can have a status that meets the requirement.
    fn counts(&self, requirement: &Requirement, name: &str) -> bool {
        let definition = self.definition();
        let mut types = definition.contracts.iter().zip(self.schemas);
        let Some((kind, Some(schema))) = types.find(|(kind, _)| kind.name == name) else {
            return true;
        };
        let status = self.protocol.field(kind, |fields| &fields.status);
        let Some(at) = status.filter(|at| schema_has(schema, at)) else {
            return requirement.status.is_empty();
        };
        let Some(listed) = schema_values(schema, at) else {
            return true;
        };
        if !requirement.status.is_empty() {
            return requirement.status.iter().any(|word| listed.contains(word));
        }
        let required = binding(schema, "")
            .into_iter()
            .filter_map(|node| node["required"].as_array());
        let is_required = required
            .flatten()
            .any(|name| name.as_str() == at.strip_prefix('/'));
        let state = |word: &String| definition.words.status.get(word);
        !is_required
            || listed
                .iter()
                .any(|word| state(word).is_none_or(|state| *state == State::Completed))
    }

    /// What takes more handoffs than an issue may have: its end, or a contract that a requirement
    /// names.
    fn ways(&self) -> Vec<Finding> {
        let definition = self.definition();
        let limits = definition.limits.as_ref();
        let Some(most) = limits.and_then(|limits| limits.handoffs) else {
            return Vec::new();
        };
        let ends = |route: &Route| self.protocol.is_kind(route.to.as_str(), AgentKind::End);
        let fewest = fewest(self.protocol, false);
        let least = |is: &dyn Fn(&Route) -> bool| {
            let routes = definition.routes.iter().filter(|route| is(route));
            routes
                .filter_map(|route| Some(held(&fewest, route)? + u32::from(!ends(route))))
                .min()
        };
        let end = (
            "the end of an issue".to_owned(),
            "/agents".to_owned(),
            least(&ends),
        );
        let shown = definition.requirements.iter().map(|(name, of)| {
            let least = least(&|route| {
                route
                    .contracts
                    .iter()
                    .any(|kind| of.shown_by.contains(kind))
            });
            (
                format!("what requirement `{name}` asks for"),
                format!("/requirements/{name}"),
                least,
            )
        });
        let found = std::iter::once(end)
            .chain(shown)
            .filter_map(|(what, at, least)| {
                let least = least.filter(|least| *least > most)?;
                let text = format!("{what} takes {least} handoffs, more than the limit");
                Some(self.finding(at, text, Some(("handoffs", "/limits/handoffs".to_owned()))))
            });
        found.collect()
    }
}

/// The minimum number of handoffs with which each agent can send. Those that step in can from the
/// start, and events can act for others, unless it is about the usual way.
pub(super) fn fewest(protocol: &Protocol, is_usual: bool) -> BTreeMap<&str, u32> {
    let definition = protocol.definition();
    let agents = definition.agents.iter().map(|agent| &agent.id);
    let acts = agents.filter(|agent| protocol.steps_in(agent));
    let acts = acts.chain(definition.event_rules().iter().map(|rule| &rule.agent));
    let acts = acts.filter(|_| !is_usual);
    let mut fewest: BTreeMap<&str, u32> = acts.map(|agent| (agent.as_str(), 1)).collect();
    for route in definition.agents.iter().flat_map(|_| &definition.routes) {
        // Any agent may report a failure.
        if is_usual && route.from == "*" {
            continue;
        }
        let Some(held) = held(&fewest, route) else {
            continue;
        };
        let sender = route.opens.then_some(&*route.from);
        for agent in sender.into_iter().chain([route.to.as_str()]) {
            let known = fewest.entry(agent).or_insert(held + 1);
            *known = (held + 1).min(*known);
        }
    }
    fewest
}

/// The minimum number of handoffs before one on this route can be sent.
pub(super) fn held(fewest: &BTreeMap<&str, u32>, route: &Route) -> Option<u32> {
    match route.from.as_str() {
        _ if route.opens => Some(0),
        "*" => fewest.values().min().copied(),
        from => fewest.get(from).copied(),
    }
}

/// The finding, reduced to a warning if one of these rules only warns.
fn weighed(mut finding: Finding, rules: &[&ConsistencyRule]) -> Finding {
    if rules.iter().any(|rule| rule.policy == Policy::Warn) {
        finding.severity = Severity::Warning;
    }
    finding
}

/// Whether contracts with this schema can have all the places that a rule reads.
fn has_places(schema: &Value, rule: &ConsistencyRule) -> bool {
    let mut places = rule.places();
    places.all(|at| schema_has(schema, at))
}

/// Whether one rule applies only where the other does, too.
fn implies(rule: &ConsistencyRule, other: &ConsistencyRule) -> bool {
    other.when.iter().all(|(at, words)| {
        let own = rule.when.get(at);
        own.is_some_and(|own| own.texts().iter().all(|text| words.accept(text)))
    })
}

/// Whether an action can always be carried out when its rule applies.
fn is_sure(action: Action, when: &Circumstances) -> bool {
    let is = |state| when.state == Some(state);
    when.to_decide
        || match action {
            Action::Escalate | Action::FallBack => true,
            Action::Retry => when.retries_left == Some(true),
            Action::Ask => is(State::Blocked),
            Action::Advance | Action::ProceedPartial => is(State::Completed),
            Action::Skip | Action::Terminate => {
                when.state.is_some_and(|state| !state.is_terminal())
            }
            Action::Reassign => false,
        }
}

/// Whether one set of circumstances includes every case of another one.
fn covers(wide: &Circumstances, narrow: &Circumstances) -> bool {
    fn any<T: PartialEq>(wide: &[T], narrow: &[T]) -> bool {
        wide.is_empty() || !narrow.is_empty() && narrow.iter().all(|one| wide.contains(one))
    }
    fn same<T: PartialEq>(wide: Option<T>, narrow: Option<T>) -> bool {
        wide.is_none() || wide == narrow
    }
    let failed = narrow
        .retries_left
        .filter(|left| *left)
        .map(|_| State::Failed);
    wide.to_decide == narrow.to_decide
        && same(wide.state, narrow.state.or(failed))
        && any(&wide.codes, &narrow.codes)
        && any(&wide.status, &narrow.status)
        && any(&wide.priority, &narrow.priority)
        && any(&wide.recommends, &narrow.recommends)
        && same(wide.recoverable, narrow.recoverable)
        && same(wide.retries_left, narrow.retries_left)
        && (wide.after_seconds.is_none() || narrow.after_seconds >= wide.after_seconds)
        && same(
            wide.redriven_below,
            narrow.redriven_below.max(wide.redriven_below),
        )
        && wide
            .not_to
            .iter()
            .all(|agent| narrow.not_to.contains(agent))
        && wide
            .reached
            .iter()
            .all(|round| narrow.reached.contains(round))
}

/// The possible values of a term.
#[derive(Clone, Default)]
struct Domain {
    /// Whether it is a single scalar.
    single: bool,
    /// Whether it is a number; below, its minimum and maximum.
    number: bool,
    least: Option<f64>,
    most: Option<f64>,
    /// The allowed values, if they are known, and the excluded ones.
    words: Option<BTreeSet<String>>,
    without: BTreeSet<String>,
    /// What the schema asks of a text.
    texts: Vec<Value>,
}

impl Domain {
    /// The values of a term that a contract type's schema allows.
    fn of(term: &Term, schema: &Value) -> Self {
        let mut domain = Self::default();
        if let Subject::Fixed(_) = term.subject() {
            let values = term.own_values(&Value::Null).unwrap_or_default();
            domain.single = values.len() == 1;
            let number = values
                .first()
                .and_then(Value::as_f64)
                .filter(|_| domain.single);
            (domain.number, domain.least, domain.most) = (number.is_some(), number, number);
            domain.words = Some(values.iter().map(word).collect());
        } else if term.is_count() {
            (domain.single, domain.number, domain.least) = (true, true, Some(0.0));
        } else if let Some(at) = term.place().filter(|_| term.is_whole_place()) {
            domain = Self::at(at, schema);
        }
        domain
    }

    /// The values at a pointer that a schema allows.
    fn at(pointer: &str, schema: &Value) -> Self {
        let mut domain = Self::default();
        for node in binding(schema, pointer) {
            let types = node["type"]
                .as_array()
                .map_or(std::slice::from_ref(&node["type"]), Vec::as_slice);
            let all = |known: &[&str]| {
                types
                    .iter()
                    .all(|t| t.as_str().is_some_and(|t| known.contains(&t)))
            };
            domain.single |= all(&["string", "number", "integer", "boolean", "null"]);
            domain.number |= all(&["number", "integer"]);
            if all(&["boolean"]) {
                domain.keep(&["true", "false"].map(str::to_owned).into());
            }
            domain.bound(node["minimum"].as_f64(), node["maximum"].as_f64());
            for key in ["pattern", "minLength", "maxLength"] {
                let given = node.get(key).map(|given| json!({ (key): given }));
                domain.texts.extend(given);
            }
            let constant = node.get("const").map(std::slice::from_ref);
            let listed = node["enum"].as_array().map(Vec::as_slice).or(constant);
            let listed = listed.filter(|list| !list.iter().any(|v| v.is_array() || v.is_object()));
            if let Some(list) = listed {
                domain.keep(&list.iter().map(word).collect());
            }
        }
        domain
    }

    /// Restricts it to these values.
    fn keep(&mut self, words: &BTreeSet<String>) {
        self.single = true;
        let both = self.words.as_ref().map(|known| known & words);
        self.words = Some(both.unwrap_or_else(|| words.clone()));
    }

    /// Restricts it to a range of numbers.
    fn bound(&mut self, least: Option<f64>, most: Option<f64>) {
        let some =
            |known: Option<f64>, new: Option<f64>, of: fn(f64, f64) -> f64| match (known, new) {
                (Some(known), Some(new)) => Some(of(known, new)),
                (known, new) => known.or(new),
            };
        self.least = some(self.least, least, f64::max);
        self.most = some(self.most, most, f64::min);
    }

    /// What the schema asks of a text and this one does not meet. A number can be written otherwise.
    fn refuses(&self, word: &str) -> Option<&Value> {
        let text = Some(word).filter(|word| word.parse::<f64>().is_err())?;
        self.texts
            .iter()
            .find(|asked| !accepts(asked, &text.into()))
    }

    /// Why no value is left, if the schema refuses the text that a rule asks for.
    fn why(&self) -> String {
        let words = self.words.iter().flatten();
        let refused = words
            .filter_map(|word| Some((word, self.refuses(word)?)))
            .next();
        let refused = refused.map(|(word, asked)| {
            format!(
                ": its schema has {asked}, which refuses `{}`",
                cut(word, 40)
            )
        });
        refused.unwrap_or_default()
    }

    fn is_empty(&self) -> bool {
        let is_within = |n: f64| {
            self.least.is_none_or(|least| n >= least) && self.most.is_none_or(|most| n <= most)
        };
        let can = |word: &String| {
            !self.without.contains(word)
                && (!self.number || word.parse().is_ok_and(is_within))
                && self.refuses(word).is_none()
        };
        let is_crossed = self.number
            && self
                .least
                .zip(self.most)
                .is_some_and(|(least, most)| least > most);
        is_crossed
            || self
                .words
                .as_ref()
                .is_some_and(|words| !words.iter().any(can))
    }

    /// Restricts two terms to what a comparison between them allows.
    fn narrow(&mut self, compare: &Comparison, other: &mut Self) {
        let is_fixed = |term: &Term| matches!(term.subject(), Subject::Fixed(_));
        // Except numbers, because a text can write the same number in several ways.
        let exclude = |from: &mut Self, words: &Self| {
            let words = words
                .words
                .iter()
                .flatten()
                .filter(|word| word.parse::<f64>().is_err());
            from.without.extend(words.cloned());
        };
        match compare {
            Comparison::Same(..) => {
                let (one, two) = (self.clone(), other.clone());
                for (this, that) in [(self, two), (other, one)] {
                    if let Some(words) = that.words.filter(|_| that.single) {
                        this.keep(&words);
                    }
                    if this.number && that.number {
                        this.bound(that.least, that.most);
                    }
                }
            }
            Comparison::AtMost(..) if self.number && other.number => {
                self.bound(None, other.most);
                other.bound(self.least, None);
            }
            Comparison::SubsetOf(_, list) if self.single && is_fixed(list) => {
                self.keep(&other.words.clone().unwrap_or_default());
            }
            Comparison::Distinct(_, list) if self.single && is_fixed(list) => exclude(self, other),
            Comparison::Distinct(list, _) if other.single && is_fixed(list) => exclude(other, self),
            _ => {}
        }
    }
}

/// The canonical text of a value: trimmed, with numbers normalized.
fn word(value: &Value) -> String {
    let text = scalar(value).unwrap_or_else(|| value.to_string());
    let text = text.trim();
    text.parse::<f64>()
        .map_or(text.to_owned(), |number| number.to_string())
}

/// The subschemas that apply at a pointer in every case.
fn binding<'s>(schema: &'s Value, pointer: &str) -> Vec<&'s Value> {
    let all = |mut next: Vec<&'s Value>| {
        let mut found = Vec::new();
        while let Some(node) = next.pop().filter(|_| found.len() < 64) {
            let reference = node["$ref"].as_str().and_then(|to| to.strip_prefix('#'));
            next.extend(reference.and_then(|to| schema.pointer(to)));
            next.extend(node["allOf"].as_array().into_iter().flatten());
            found.push(node);
        }
        found
    };
    parts(pointer).fold(all(vec![schema]), |here, part| {
        all(here
            .iter()
            .filter_map(|node| node["properties"].get(&part))
            .collect())
    })
}

/// A term for which no value is possible, if contracts with this schema to which the rules `when`
/// apply must satisfy the rules `then`; and why, if the schema refuses a text.
fn impossible(
    schema: &Value,
    when: &[&ConsistencyRule],
    then: &[&ConsistencyRule],
) -> Option<(String, String)> {
    let mut domains: BTreeMap<String, Domain> = BTreeMap::new();
    for (at, words) in when.iter().flat_map(|rule| &rule.when) {
        let domain = domains
            .entry(at.clone())
            .or_insert_with(|| Domain::at(at, schema));
        if !words.accept("*") {
            let texts = words.texts().iter().map(|text| word(&text.as_str().into()));
            domain.keep(&texts.collect());
        }
    }
    // Twice, because a later rule may restrict a term of an earlier one.
    for rule in then.iter().chain(then) {
        let terms = rule.compare.terms();
        let [mut left, mut right] = terms.map(|term| {
            let known = domains.get(&term.to_string()).cloned();
            known.unwrap_or_else(|| Domain::of(term, schema))
        });
        left.narrow(&rule.compare, &mut right);
        let both = terms.into_iter().zip([left, right]);
        let open = both.filter(|(term, _)| !matches!(term.subject(), Subject::Fixed(_)));
        domains.extend(open.map(|(term, domain)| (term.to_string(), domain)));
    }
    let mut empty = domains.into_iter().filter(|(_, domain)| domain.is_empty());
    empty
        .next()
        .map(|(term, domain)| (term, domain.why()))
        .or_else(|| Some((opposed(then)?, String::new())))
}

/// A term that a rule requires to differ from itself, or from what another rule requires it to be
/// equal to; empty lists are not what an author means.
fn opposed(rules: &[&ConsistencyRule]) -> Option<String> {
    use Comparison::{Distinct, EqualSets, Same, SubsetOf};
    let terms = |compare: &Comparison| compare.terms().map(ToString::to_string);
    let is_open = |compare: &Comparison| !matches!(compare.terms()[0].subject(), Subject::Fixed(_));
    rules.iter().find_map(|not| {
        let Distinct(..) = &not.compare else {
            return None;
        };
        let [first, second] = terms(&not.compare);
        if first == second && is_open(&not.compare) {
            return Some(first);
        }
        rules.iter().find_map(|is| {
            let other = terms(&is.compare);
            let is_equal = matches!(is.compare, Same(..) | EqualSets(..) | SubsetOf(..));
            let is_pair = other == [&*first, &*second] || other == [&*second, &*first];
            (is_equal && is_pair).then(|| other[0].clone())
        })
    })
}
