//! Skeletons: contracts to fill in, by type and format.

use clap::ValueEnum;
use handoff::base::ids::{AgentName, IssueKey};
use handoff::base::pointer::escaped_part;
use handoff::base::text::{continued, word};
use handoff::contract::{BY_SEND, FILL, Input};
use handoff::ledger::{IssueFolder, ProtocolError, Rules, Snapshot};
use handoff::model::{Filled, RoleRefusal, View, review};
use handoff::protocol::{ContractType, FactRule, Protocol};
use handoff::templates::{
    Known, left_to_fill, skeleton, takes, usual_format, with_answers, written,
};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use super::fields::fields;
use super::settings::{self, NotTold, Optional, Options, Setting};
use crate::environment::now;
use crate::failure::{ErrorCode, Failure, hint};
use crate::output::Answer;
use crate::view::Look;

/// The placeholder for an issue's number in a command that opens one.
const NUMBER: &str = "N";

/// The placeholder for a text in such a command.
const TEXT: &str = "TEXT";

/// The values that depend on the work: known only after it is done.
pub(super) const OF_THE_WORK: [&str; 5] = [
    "commits",
    "commit_ids",
    "commits_added",
    "files_changed",
    "merge_sha",
];

/// The values for a contract written before the work: those that depend on it are left to `send`.
pub fn before_work(known: &Known, protocol: &Protocol) -> Known {
    let mut open = known.clone();
    let told = OF_THE_WORK.iter().filter(|_| known.base.is_some());
    told.for_each(|name| open.leave_to_send(name));
    // It goes on until the contract is sent.
    if known.get("cycle_time").is_some() {
        open.leave_to_send("cycle_time");
    }
    for (name, fact) in &protocol.definition().facts {
        let is_counted = matches!(fact.rule, FactRule::Sum(_) | FactRule::Count(_));
        if is_counted && known.get(name).is_some() {
            open.leave_to_send(name);
        }
    }
    open
}

/// A request for a skeleton.
#[derive(Clone, Copy)]
pub struct Wanted<'a> {
    /// The sending agent.
    pub from: &'a AgentName,
    /// The receiving agent.
    pub to: &'a AgentName,
    /// The contract's type, if the route has several.
    pub kind: Option<&'a str>,
    /// The contract's format; by default the type's or the protocol's first.
    pub format: Option<Format>,
    /// The protocol; by default the issue's, or the first of the ledger's that has such a route.
    pub protocol: Option<&'a AgentName>,
    /// The given field values.
    pub set: &'a [Setting],
    /// Whether it opens an issue.
    pub opens: bool,
}

/// The command that opens an issue on a protocol's first such route, or this agent's first, with
/// these further options: first one that says what to do, before one that reports work. It has the
/// values that are needed, if any text will do for them.
///
/// # Errors
/// A [`Failure`] if the protocol can't be read.
pub fn opening_command(
    rules: &Rules<'_>,
    by: Option<&AgentName>,
    more: &str,
) -> Result<Option<String>, Failure> {
    let protocol = rules.protocol();
    let reports = |kind: &String| {
        let kind = protocol.contract_type(kind);
        kind.is_some_and(|kind| kind.claims.is_some())
    };
    let is_own = |from: &str| by.is_none_or(|by| from == by.as_str());
    let routes = protocol.definition().routes.iter();
    let routes = routes.filter(|route| route.opens && is_own(&route.from));
    let first = routes.min_by_key(|route| route.contracts.first().is_none_or(reports));
    let Some((route, first)) = first.and_then(|route| Some((route, route.contracts.first()?)))
    else {
        return Ok(None);
    };
    let (from, to): (AgentName, _) = (route.from.parse()?, &route.to);
    let wanted = Wanted::new(&from, to);
    let usual = wanted.contract_type(protocol, Format::first(protocol, None));
    let wanted = Wanted {
        kind: Some(first.as_str()).filter(|_| usual.map_or(true, |kind| kind.name != *first)),
        ..wanted
    };
    let options = wanted.plain_options(rules)?;
    let command = wanted.command(NUMBER);
    let key = wanted.key_about(rules)?;
    let key = key.map(|about| format!("{NUMBER}: {}", continued(&about)));
    let says = options.is_none().then(|| "says what to --set".to_owned());
    let remarks: Vec<String> = key.into_iter().chain(says).collect();
    let remarks = match &remarks[..] {
        [] => String::new(),
        remarks => format!("      ({})", remarks.join("; ")),
    };
    let options = options.unwrap_or_default();
    Ok(Some(format!("{command}{more}{options}{remarks}")))
}

/// A contract with placeholders for what only its sender knows.
#[derive(Serialize, JsonSchema)]
pub struct Skeleton {
    /// the contract's type
    #[serde(rename = "contract_type")]
    pub kind: String,
    /// `xml`, `json` or `md`
    #[schemars(with = "handoff::contract::Format")]
    pub format: Format,
    /// the skeleton
    pub text: String,
    /// how many places are marked `{{fill: …}}`
    #[serde(rename = "left_to_fill")]
    pub left: usize,
    /// how many places are marked `{{fill by send: …}}`, which `send` fills in
    #[serde(rename = "left_to_send")]
    pub by_send: usize,
    /// Whether it names its issue.
    #[serde(skip)]
    pub names_issue: bool,
}

impl Answer for Skeleton {
    fn text(&self, _: &Look) -> String {
        self.text.clone()
    }
}

/// A contract's format.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// XML
    Xml,
    /// JSON
    Json,
    /// A Markdown message
    Md,
}

impl Format {
    /// The format's name, which is its file extension.
    pub fn name(self) -> &'static str {
        match self {
            Self::Xml => "xml",
            Self::Json => "json",
            Self::Md => "md",
        }
    }

    /// The first format of the requested type, or of the protocol.
    pub fn first(protocol: &Protocol, kind: Option<&str>) -> Self {
        let kind = kind.and_then(|name| protocol.contract_type(name));
        let usual = usual_format(protocol, kind);
        let mut all = [Self::Xml, Self::Json, Self::Md].into_iter();
        all.find(|format| format.name() == usual)
            .unwrap_or(Self::Json)
    }

    /// Whether a type can be written in this format. A message can contain any JSON contract.
    fn fits(self, protocol: &Protocol, kind: &ContractType) -> bool {
        let has = |name: &str| {
            kind.has_format(name) && protocol.definition().formats.iter().any(|f| f == name)
        };
        has(self.name())
            || self == Self::Md && protocol.definition().formats.iter().any(|f| f == "md")
    }
}

fn schema_of(rules: &Rules<'_>, kind: &ContractType) -> Result<Value, Failure> {
    let bytes = rules.bytes(&kind.schema)?;
    Ok(serde_json::from_slice(&bytes).unwrap_or_default())
}

impl<'a> Wanted<'a> {
    /// A request for the route's only type.
    pub fn new(from: &'a AgentName, to: &'a AgentName) -> Self {
        Self {
            from,
            to,
            kind: None,
            format: None,
            protocol: None,
            set: &[],
            opens: false,
        }
    }

    /// The skeleton, with all known and given values.
    ///
    /// # Errors
    /// A [`Failure`] if the route has no such contract, or it has no such field.
    pub fn write(&self, rules: &Rules<'_>, known: &Known) -> Result<Skeleton, Failure> {
        let (kind, format) = self.type_and_format(rules)?;
        let mut value = skeleton(rules, kind, known)?;
        if !self.set.is_empty() {
            settings::set(&mut value, &schema_of(rules, kind)?, self.set)?;
        }
        with_answers(rules.protocol(), kind, known, &mut value);
        self.written(rules, kind, format, &value)
    }

    /// The complete contract, without optional parts that are not filled in.
    ///
    /// # Errors
    /// As [`write`](Self::write), and a [`Failure`] that lists what is missing.
    pub fn complete(
        &self,
        rules: &Rules<'_>,
        known: &Known,
        not_told: Option<&NotTold>,
    ) -> Result<Skeleton, Failure> {
        let (kind, format) = self.type_and_format(rules)?;
        let value = self.without_optional(rules, kind, known, Optional::Sometimes)?;
        settings::ensure_complete(&value, not_told)?;
        self.written(rules, kind, format, &value)
    }

    /// The pointers of the contract's members that hold these values as a whole.
    ///
    /// # Errors
    /// A [`Failure`] if the route has no such contract.
    pub fn places_of(
        &self,
        rules: &Rules<'_>,
        known: &Known,
        names: &[&str],
    ) -> Result<Vec<String>, Failure> {
        let (kind, _) = self.type_and_format(rules)?;
        // A nested list: no template contains one.
        let mark = json!([[FILL]]);
        let mut known = known.clone();
        for name in names {
            known.insert((*name).to_owned(), mark.clone());
        }
        let value = skeleton(rules, kind, &known)?;
        let members = value.as_object().into_iter().flatten();
        let places = members.filter(|(_, member)| **member == mark);
        let pointer = |(at, _): (&String, _)| format!("/{}", escaped_part(at));
        Ok(places.map(pointer).collect())
    }

    /// The contract with known values, and placeholders for the rest.
    ///
    /// # Errors
    /// A [`Failure`] if the route has no such contract.
    pub fn known_value(&self, rules: &Rules<'_>, known: &Known) -> Result<Value, Failure> {
        let (kind, _) = self.type_and_format(rules)?;
        Ok(skeleton(rules, kind, known)?)
    }

    /// The contract type's name, and its root element for XML.
    ///
    /// # Errors
    /// A [`Failure`] if the route has no such contract.
    pub fn type_and_root(&self, rules: &Rules<'_>) -> Result<(String, Option<String>), Failure> {
        let (kind, format) = self.type_and_format(rules)?;
        let root = (format == Format::Xml).then(|| kind.root.clone());
        Ok((kind.name.clone(), root))
    }

    /// The options for the values that a first contract needs, if it is accepted with any text in
    /// their places.
    fn plain_options(&self, rules: &Rules<'_>) -> Result<Option<String>, Failure> {
        let mut known = Known::default();
        let key: IssueKey = "1".parse()?;
        known.insert_new(Filled::Issue, json!(1));
        known.insert_new(Filled::Key, json!(key));
        known.insert_new(Filled::From, json!(self.from));
        known.insert_new(Filled::To, json!(self.to));
        known.insert_new(Filled::Now, json!(now()?.rfc3339()));
        let (_, left) = self.so_far(rules, &known)?;
        let set = left.iter().map(|(at, _)| Setting::at(at, TEXT));
        let set: Vec<Setting> = set.collect();
        let given = Wanted { set: &set, ..*self };
        let Ok(made) = given.complete(rules, &known, None) else {
            return Ok(None);
        };
        let input = Input::read(made.text.as_bytes());
        let reviewed = review(rules.protocol(), rules, &input, Some(&key))?;
        let options = left
            .iter()
            .map(|(at, _)| format!(" --set {}={TEXT}", settings::dotted(at)));
        Ok(reviewed.contract.is_some().then(|| options.collect()))
    }

    /// What the schema says that an issue's key is, if it takes no number.
    ///
    /// # Errors
    /// A [`Failure`] if the route has no such contract.
    pub fn key_about(&self, rules: &Rules<'_>) -> Result<Option<String>, Failure> {
        let (kind, _) = self.type_and_format(rules)?;
        let Some(pointer) = rules.protocol().field(kind, |f| &f.issue) else {
            return Ok(None);
        };
        let schema = schema_of(rules, kind)?;
        if takes(&schema, pointer, &json!(1)) {
            return Ok(None);
        }
        let mut known = fields(&schema).into_iter();
        Ok(known
            .find(|field| field.path == *pointer)
            .map(|field| field.about))
    }

    /// The command that sends it, without values that only its sender knows.
    pub fn command(&self, issue: &str) -> String {
        let (from, to) = (self.from, self.to);
        let kind = self.kind.map(|kind| format!(" --type {}", word(kind)));
        let kind = kind.unwrap_or_default();
        format!("git handoff send --issue {issue} --to {to}{kind} --as {from}")
    }

    /// The options for values that only its sender knows; values from the repository are left to
    /// `send`.
    ///
    /// # Errors
    /// A [`Failure`] if the route has no such contract.
    pub fn options(&self, rules: &Rules<'_>, known: &Known) -> Result<Options, Failure> {
        let (kind, _) = self.type_and_format(rules)?;
        let known = before_work(known, rules.protocol());
        let mut value = self.without_optional(rules, kind, &known, Optional::Always)?;
        // The command has an option for the issue.
        let issue = rules.protocol().field(kind, |f| &f.issue);
        if let Some(issue) = issue.and_then(|pointer| value.pointer_mut(pointer)) {
            *issue = Value::Null;
        }
        Ok(Options::of(&value))
    }

    /// The contract with known and given values and placeholders for what is missing; and the
    /// placeholders' pointers with their descriptions.
    ///
    /// # Errors
    /// A [`Failure`] if the route has no such contract, or it has no such field.
    pub fn so_far(
        &self,
        rules: &Rules<'_>,
        known: &Known,
    ) -> Result<(String, Vec<(String, String)>), Failure> {
        let (kind, format) = self.type_and_format(rules)?;
        let value = self.without_optional(rules, kind, known, Optional::Sometimes)?;
        let text = self.written(rules, kind, format, &value)?.text;
        Ok((text, left_to_fill(&value)))
    }

    /// The schema of its contract type.
    ///
    /// # Errors
    /// A [`Failure`] if the route has no such contract.
    pub fn schema(&self, rules: &Rules<'_>) -> Result<Value, Failure> {
        schema_of(rules, self.type_and_format(rules)?.0)
    }

    pub(super) fn type_and_format<'p>(
        &self,
        rules: &'p Rules<'_>,
    ) -> Result<(&'p ContractType, Format), Failure> {
        let protocol = rules.protocol();
        let format = self
            .format
            .unwrap_or_else(|| Format::first(protocol, self.kind));
        Ok((self.contract_type(protocol, format)?, format))
    }

    fn without_optional(
        &self,
        rules: &Rules<'_>,
        kind: &ContractType,
        known: &Known,
        optional: Optional,
    ) -> Result<Value, Failure> {
        let mut schema = schema_of(rules, kind)?;
        let mut value = skeleton(rules, kind, known)?;
        settings::set(&mut value, &schema, self.set)?;
        if let Some(at) = with_answers(rules.protocol(), kind, known, &mut value) {
            settings::require(&mut schema, at);
        }
        settings::without_optional(&mut value, &schema, optional);
        Ok(value)
    }

    fn written(
        &self,
        rules: &Rules<'_>,
        kind: &ContractType,
        format: Format,
        value: &Value,
    ) -> Result<Skeleton, Failure> {
        let text = written(rules, kind, value, format.name(), (self.from, self.to))?;
        let issue = rules.protocol().field(kind, |f| &f.issue);
        let by_send = text.matches(BY_SEND).count();
        Ok(Skeleton {
            kind: kind.name.clone(),
            format,
            left: text.matches(FILL).count() - by_send,
            by_send,
            text,
            names_issue: issue.is_some_and(|pointer| value.pointer(pointer).is_some()),
        })
    }

    /// The given protocol, the issue's, or the first with such a route.
    pub fn rules<'r>(
        &self,
        tip: &Snapshot<'r>,
        folder: &IssueFolder<'_>,
    ) -> Result<Rules<'r>, Failure> {
        let (from, to) = (self.from, self.to);
        let bound = folder.issue()?.map(|issue| issue.protocol);
        if let Some(name) = self.protocol.cloned().or(bound) {
            if tip.rules_id(name.as_str())?.is_none() {
                let (name, known) = (name.to_string(), tip.protocols()?);
                return Err(ProtocolError::Unknown { name, known }.into());
            }
            return Ok(tip.rules(name.as_str())?);
        }
        for name in tip.protocols()? {
            let rules = tip.rules(&name)?;
            if !rules
                .protocol()
                .types_between(from.as_str(), to.as_str())
                .is_empty()
            {
                return Ok(rules);
            }
        }
        Ok(tip.default_rules()?)
    }

    /// The requested contract type, or the route's only one.
    pub fn contract_type<'p>(
        &self,
        protocol: &'p Protocol,
        format: Format,
    ) -> Result<&'p ContractType, Failure> {
        let (from, to) = (self.from, self.to);
        for name in [from, to] {
            if protocol.agent(name.as_str()).is_none() {
                let agents = protocol.definition().agents.iter();
                return Err(Failure::from(RoleRefusal::UnknownAgent {
                    agent: name.clone(),
                    protocol: protocol.name().to_owned(),
                    agents: agents.map(|a| a.id.to_string()).collect(),
                }));
            }
        }
        let all = protocol.types_between(from.as_str(), to.as_str());
        let fitting = all.iter().filter(|kind| format.fits(protocol, kind));
        let mut names: Vec<&str> = fitting.map(|kind| kind.name.as_str()).collect();
        if self.kind.is_none() && self.opens {
            let opens = |name: &&str| protocol.opens(from.as_str(), to.as_str(), name);
            if names.iter().any(opens) {
                names.retain(opens);
            }
        }
        // A type without JSON, which exists only as a message, must be requested explicitly.
        if self.kind.is_none() && names.len() > 1 {
            let json = |name: &&str| {
                protocol
                    .contract_type(name)
                    .is_some_and(|k| k.has_format("json"))
            };
            names.retain(json);
        }
        // A note must be requested explicitly, too, if the route has other types.
        if self.kind.is_none() && names.len() > 1 {
            let note = |name: &&str| protocol.contract_type(name).is_some_and(|k| k.note);
            if !names.iter().all(note) {
                names.retain(|name| !note(name));
            }
        }
        let wanted = match (self.kind, &names[..]) {
            (_, []) if !all.is_empty() => {
                let formats = protocol.definition().formats.join(", ");
                let text = format!(
                    "no contract from {from} to {to} is written as {}",
                    format.name()
                );
                return Err(
                    Failure::usage(text).hint(format!("the protocol's formats are: {formats}"))
                );
            }
            (_, []) => {
                let receivers = protocol.receivers(from.as_str());
                let targets: Vec<&str> = receivers.iter().map(|to| to.as_str()).collect();
                let forbidden = protocol.forbidden(from.as_str(), to.as_str());
                let why = forbidden.map(|f| format!(": {}", f.reason));
                let text = format!(
                    "protocol {} has no route from {from} to {to}{}",
                    protocol.name(),
                    why.unwrap_or_default()
                );
                let failure = Failure::new(ErrorCode::RouteRefused, text);
                return Err(if targets.is_empty() {
                    failure.hint(hint!(
                        "{} hands nothing on; see `git handoff inbox --as {}`",
                        from,
                        from
                    ))
                } else {
                    failure.hint(format!("{from} may send to: {}", targets.join(", ")))
                });
            }
            (None, [only]) => *only,
            (Some(kind), _) if names.contains(&kind) => kind,
            (given, _) => {
                let text = match given {
                    Some(kind) => format!("no contract of type {kind} goes from {from} to {to}"),
                    None => format!("several types of contract go from {from} to {to}"),
                };
                return Err(Failure::usage(text)
                    .hint(format!("say which with --type: {}", names.join(", "))));
            }
        };
        protocol
            .contract_type(wanted)
            .ok_or_else(|| Failure::usage("no such contract type"))
    }
}
