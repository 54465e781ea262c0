//! Filters for handoffs: conditions as options, or as one query.

use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;

use clap::Args;
use handoff::base::Moment;
use handoff::base::ids::AgentName;
use handoff::base::text::quoted;
use handoff::ledger::{Listed, Snapshot};
use handoff::model::{Record, View, words_of};
use handoff::protocol::State;
use serde_json::{Map, Value};

use crate::args::moment;
use crate::failure::{ErrorCode, Failure};

/// The field that a condition compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Issue,
    State,
    Type,
    Agent,
    From,
    To,
    Person,
    Priority,
    Label,
    Title,
    Branch,
    Protocol,
    Since,
    Until,
}

impl Field {
    const ALL: [(&'static str, Self); 14] = [
        ("issue", Self::Issue),
        ("state", Self::State),
        ("type", Self::Type),
        ("agent", Self::Agent),
        ("from", Self::From),
        ("to", Self::To),
        ("person", Self::Person),
        ("priority", Self::Priority),
        ("label", Self::Label),
        ("title", Self::Title),
        ("branch", Self::Branch),
        ("protocol", Self::Protocol),
        ("since", Self::Since),
        ("until", Self::Until),
    ];

    fn name(self) -> &'static str {
        let known = Self::ALL.iter().find(|(_, field)| *field == self);
        known.map_or("", |(name, _)| name)
    }

    /// Whether it is a field of the issue, which must then be read.
    fn is_of_issue(self) -> bool {
        matches!(self, Self::Label | Self::Branch)
    }
}

/// A condition: `title~csv`, `state=failed|dead`, `priority!=low`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Condition {
    field: Field,
    is_negated: bool,
    /// Whether a substring suffices, ignoring case.
    is_part: bool,
    /// The accepted values.
    values: Vec<String>,
}

impl Condition {
    fn is(field: Field, values: &[String]) -> Option<Self> {
        (!values.is_empty()).then(|| Self {
            field,
            is_negated: false,
            is_part: field == Field::Title,
            values: values.to_vec(),
        })
    }

    fn has(&self, text: &str) -> bool {
        self.values.iter().any(|value| {
            if self.is_part {
                text.to_lowercase().contains(&value.to_lowercase())
            } else {
                text == value
            }
        })
    }

    fn times(&self) -> impl Iterator<Item = Moment> + '_ {
        let read = |value: &String| moment::parse(value).ok();
        self.values.iter().filter_map(read)
    }

    fn holds(&self, record: &Record, facts: &Map<String, Value>, awaiting: &[Listed]) -> bool {
        let agent = |name: &AgentName| self.has(name.as_str());
        let fact = |name: &str| {
            let words = facts.get(name).map(words_of).unwrap_or_default();
            words.iter().any(|word| self.has(word))
        };
        let sent = record.sent_at();
        let found = match self.field {
            Field::Issue => self.has(record.id.issue().as_str()),
            Field::State => self.has(record.state.as_str()),
            Field::Type => self.has(&record.contract_type),
            Field::Agent => agent(&record.from) || agent(&record.to),
            Field::From => agent(&record.from),
            Field::To => agent(&record.to),
            Field::Person => {
                let by = record.transitions.iter().map(|t| &t.by);
                let waits = awaiting.iter().filter(|one| one.id == record.id);
                let by = by.chain(waits.map(|one| &one.to));
                [&record.from, &record.to].into_iter().chain(by).any(agent)
            }
            Field::Priority => self.has(record.priority.as_deref().unwrap_or("none")),
            Field::Label => fact("labels") || fact("label"),
            Field::Title => self.has(&record.title),
            Field::Branch => {
                record
                    .code
                    .as_ref()
                    .is_some_and(|code| self.has(&code.branch))
                    || fact("branch")
            }
            Field::Protocol => self.has(record.protocol.as_str()),
            Field::Since => self.times().any(|at| sent.is_some_and(|sent| sent >= at)),
            Field::Until => self.times().any(|at| sent.is_some_and(|sent| sent < at)),
        };
        found != self.is_negated
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let not = if self.is_negated { "!" } else { "" };
        let sign = if self.is_part { "~" } else { "=" };
        let (name, values) = (self.field.name(), self.values.join("|"));
        write!(f, "{name}{not}{sign}{values}")
    }
}

/// Conditions that must all hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query(Vec<Condition>);

impl FromStr for Query {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (mut all, mut one, mut at) = (Vec::new(), String::new(), 0);
        for part in text.split_inclusive(char::is_whitespace) {
            let (word, rest) = (part.trim(), &text[at..]);
            let place = text[..at].chars().count() + 1;
            at += part.len();
            if is_in_quotes(&one) {
                one += part;
            } else if word.eq_ignore_ascii_case("and") {
                all.push(condition(one.trim())?);
                one.clear();
            } else if word.eq_ignore_ascii_case("or") {
                return Err(format!(
                    "{} at character {place} joins no conditions; a field can have several values: state=failed|dead",
                    quoted(word)
                ));
            } else if !one.trim().is_empty() && begins_condition(rest) {
                return Err(format!(
                    "`and` is missing before {} at character {place}",
                    quoted(word)
                ));
            } else {
                one += part;
            }
        }
        all.push(condition(one.trim())?);
        Ok(Self(all))
    }
}

/// Whether a condition's value began with a quotation mark that is still open.
fn is_in_quotes(text: &str) -> bool {
    let value = text.trim_start_matches(|c: char| !"=~".contains(c));
    let value = value.trim_start_matches(['=', '~']).trim();
    let mark = value.chars().next().filter(|c| "'\"".contains(*c));
    mark.is_some_and(|mark| value.len() == 1 || !value.ends_with(mark))
}

/// Whether a field and an operator stand here.
fn begins_condition(text: &str) -> bool {
    let known = Field::ALL.iter();
    let mut after = known.filter_map(|(name, _)| text.strip_prefix(name));
    after.any(|rest| {
        let sign = rest.trim_start();
        sign.strip_prefix('!')
            .unwrap_or(sign)
            .starts_with(['=', '~'])
    })
}

fn condition(text: &str) -> Result<Condition, String> {
    let at = text.find(['=', '~', '!']);
    let (name, rest) = text.split_at(at.unwrap_or(text.len()));
    let known = Field::ALL.iter().find(|(known, _)| *known == name.trim());
    let Some((_, field)) = known else {
        let names: Vec<&str> = Field::ALL.iter().map(|(name, _)| *name).collect();
        let names = names.join(", ");
        return Err(format!("{} is not one of: {names}", quoted(name.trim())));
    };
    let (is_negated, rest) = match rest.strip_prefix('!') {
        Some(rest) => (true, rest),
        None => (false, rest),
    };
    let part = rest.strip_prefix('~');
    let value = part.or_else(|| rest.strip_prefix('='));
    let values = value.map_or("", str::trim).trim_matches(['\'', '"']);
    if values.split('|').any(|value| value.trim().is_empty()) {
        return Err(format!(
            "{}: write {name}=VALUE or {name}~PART",
            quoted(text)
        ));
    }
    let one = Condition {
        field: *field,
        is_negated,
        is_part: part.is_some(),
        values: values
            .split('|')
            .map(|value| value.trim().to_owned())
            .collect(),
    };
    for value in one.values.iter().filter(|_| !one.is_part) {
        match field {
            Field::State => drop(state(value)?),
            Field::Since | Field::Until => drop(moment::parse(value)?),
            _ => {}
        }
    }
    Ok(one)
}

impl fmt::Display for Query {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&all.join(" and "))
    }
}

// No doc comment: it would become part of the commands' help.
#[derive(Args, Clone, Debug, Default)]
#[allow(missing_docs, reason = "clap would take it for the command's help")]
pub struct Filter {
    /// Only handoffs of this issue
    #[arg(long, value_name = "ISSUE")]
    pub issue: Option<String>,
    /// Only handoffs sent since then: 2026-03-04T05:06:07Z, a date, or how long ago: 7d
    #[arg(long, value_name = "TIME", value_parser = moment::parse)]
    since: Option<Moment>,
    /// Only handoffs sent before this time
    #[arg(long, value_name = "TIME", value_parser = moment::parse)]
    until: Option<Moment>,
    #[command(flatten)]
    more: Conditions,
}

// The conditions other than issue and time. No doc comment, as above.
#[derive(Args, Clone, Debug, Default)]
#[allow(missing_docs, reason = "clap would take it for the command's help")]
pub struct Conditions {
    /// Only handoffs sent by or to this agent
    #[arg(long = "agent", id = "of_agent", value_name = "AGENT")]
    agent: Option<String>,
    /// Only handoffs that this person sent, received, decided about or must approve
    #[arg(long, value_name = "AGENT")]
    person: Option<String>,
    /// Only handoffs in this state; can be repeated
    #[arg(long, value_name = "STATE", value_parser = state)]
    state: Vec<State>,
    /// Only handoffs with a contract of this type
    #[arg(long = "type", value_name = "TYPE")]
    kind: Option<String>,
    /// Only handoffs of this priority; can be repeated
    #[arg(long, value_name = "WORD")]
    priority: Vec<String>,
    /// Only handoffs of issues with this label; can be repeated
    #[arg(long, value_name = "LABEL")]
    label: Vec<String>,
    /// Only handoffs of issues with this in their title
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
    /// Only handoffs whose code is on this branch
    #[arg(long = "on", value_name = "BRANCH")]
    on: Option<String>,
    /// Only what meets every condition: `title~csv and state=failed|dead and priority!=high`
    #[arg(long = "where", value_name = "QUERY")]
    query: Option<Query>,
}

impl Filter {
    /// The query with names and words resolved in a ledger; unknown ones are refused.
    ///
    /// # Errors
    /// A [`Failure`] of usage, or if the ledger can't be read.
    pub fn query(&self, tip: &Snapshot<'_>) -> Result<Query, Failure> {
        let time = |at: Option<Moment>| at.map(|at| at.rfc3339()).into_iter().collect::<Vec<_>>();
        let issue: Vec<String> = self.issue.iter().cloned().collect();
        let own = [
            Condition::is(Field::Issue, &issue),
            Condition::is(Field::Since, &time(self.since)),
            Condition::is(Field::Until, &time(self.until)),
        ];
        let mut query = self.more.query(tip)?;
        query.0.extend(own.into_iter().flatten());
        Ok(query)
    }
}

impl Conditions {
    /// The query with names and words resolved in a ledger; unknown ones are refused.
    ///
    /// # Errors
    /// A [`Failure`] of usage, or if the ledger can't be read.
    pub fn query(&self, tip: &Snapshot<'_>) -> Result<Query, Failure> {
        let one = |value: &Option<String>| value.iter().cloned().collect::<Vec<_>>();
        let states = self.state.iter().map(|state| state.as_str().to_owned());
        let own = [
            Condition::is(Field::Agent, &one(&self.agent)),
            Condition::is(Field::Person, &one(&self.person)),
            Condition::is(Field::State, &states.collect::<Vec<_>>()),
            Condition::is(Field::Type, &one(&self.kind)),
            Condition::is(Field::Priority, &self.priority),
            Condition::is(Field::Label, &self.label),
            Condition::is(Field::Title, &one(&self.title)),
            Condition::is(Field::Branch, &one(&self.on)),
        ];
        let more = self.query.iter().flat_map(|query| query.0.iter().cloned());
        Query(own.into_iter().flatten().chain(more).collect()).known(tip)
    }
}

/// Refuses an agent that no protocol here has, instead of finding nothing.
pub fn ensure_agent(tip: &Snapshot<'_>, agent: &str) -> Result<(), Failure> {
    let mut agents = Vec::new();
    for name in tip.protocols()? {
        let rules = tip.rules(&name)?;
        let defined = rules.protocol().definition().agents.iter();
        agents.extend(defined.map(|agent| agent.id.to_string()));
    }
    if agents.iter().any(|known| known == agent) {
        return Ok(());
    }
    let text = format!("{} is not an agent of any protocol here", quoted(agent));
    let hint = format!("agents are: {}", agents.join(", "));
    Err(Failure::new(ErrorCode::UnknownAgent, text).hint(hint))
}

impl Query {
    /// Resolves agents' aliases and words in a ledger.
    ///
    /// # Errors
    /// A usage [`Failure`] for words that no protocol here has.
    pub fn known(mut self, tip: &Snapshot<'_>) -> Result<Self, Failure> {
        let (mut types, mut priorities) = (Vec::new(), vec!["none".to_owned()]);
        for name in tip.protocols()? {
            let rules = tip.rules(&name)?;
            let definition = rules.protocol().definition();
            types.extend(definition.contracts.iter().map(|c| c.name.clone()));
            priorities.extend(definition.words.priorities.iter().cloned());
        }
        for one in self.0.iter_mut().filter(|one| !one.is_part) {
            for value in &mut one.values {
                match one.field {
                    Field::Agent | Field::From | Field::To | Field::Person => {
                        if let Some(own) = tip.own_name(value)? {
                            *value = String::from(own);
                        }
                        ensure_agent(tip, value)?;
                    }
                    Field::Type => known(value, &types, "contract type", "types")?,
                    Field::Priority => known(value, &priorities, "priority", "priorities")?,
                    _ => {}
                }
            }
        }
        Ok(self)
    }

    /// Whether the query can match open handoffs only.
    pub fn is_of_open(&self) -> bool {
        let is_open = |value: &String| state(value).is_ok_and(|state| !state.is_terminal());
        let of_open = |one: &Condition| {
            one.field == Field::State
                && !one.is_part
                && !one.is_negated
                && one.values.iter().all(is_open)
        };
        self.0.iter().any(of_open)
    }

    /// Whether the query has no conditions.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a handoff matches.
    ///
    /// # Errors
    /// A [`Failure`] if its issue can't be read.
    pub fn holds(&self, tip: &Snapshot<'_>, record: &Record) -> Result<bool, Failure> {
        self.holds_among(tip, record, &self.awaiting(tip)?)
    }

    /// What waits for somebody, if a person is asked for.
    fn awaiting(&self, tip: &Snapshot<'_>) -> Result<Vec<Listed>, Failure> {
        if self.0.iter().any(|one| one.field == Field::Person) {
            return Ok(tip.awaiting()?);
        }
        Ok(Vec::new())
    }

    fn holds_among(
        &self,
        tip: &Snapshot<'_>,
        record: &Record,
        awaiting: &[Listed],
    ) -> Result<bool, Failure> {
        let mut facts = Map::new();
        if self.0.iter().any(|one| one.field.is_of_issue())
            && let Some(issue) = tip.issue(record.id.issue())?.shared_issue()?
        {
            facts = issue.known(tip.rules(record.protocol.as_str())?.protocol().definition());
        }
        Ok(self.0.iter().all(|one| one.holds(record, &facts, awaiting)))
    }

    /// Keeps the matching handoffs.
    ///
    /// # Errors
    /// A [`Failure`] if an issue can't be read.
    pub fn retain<R: Borrow<Record>>(
        &self,
        tip: &Snapshot<'_>,
        records: &mut Vec<R>,
    ) -> Result<(), Failure> {
        let awaiting = self.awaiting(tip)?;
        let holds = records.iter();
        let holds = holds.map(|one| self.holds_among(tip, one.borrow(), &awaiting));
        let mut holds = holds.collect::<Result<Vec<_>, _>>()?.into_iter();
        records.retain(|_| holds.next().unwrap_or_default());
        Ok(())
    }
}

/// Refuses a word that no protocol has, instead of finding nothing.
fn known(value: &str, words: &[String], noun: &str, nouns: &str) -> Result<(), Failure> {
    if words.iter().any(|word| word == value) {
        return Ok(());
    }
    let text = format!("no protocol here has a {noun} {}", quoted(value));
    let mut words = words.to_vec();
    words.dedup();
    Err(Failure::usage(text).hint(format!("{nouns} are: {}", words.join(", "))))
}

fn state(text: &str) -> Result<State, String> {
    let named = |s: &State| s.as_str() == text;
    State::ALL.into_iter().find(named).ok_or_else(|| {
        let names: Vec<&str> = State::ALL.iter().map(|s| s.as_str()).collect();
        format!("states are: {}", names.join(", "))
    })
}
