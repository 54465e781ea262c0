//! The parts of the ledger outside issues: protocols in force, and shared documents. Each change of
//! one is a separate commit.

use std::collections::BTreeSet;

use handoff_base::finding::{Finding, FindingCode};
use handoff_base::ids::AgentName;
use handoff_base::pointer::push_part;
use handoff_base::text::quoted;
use handoff_base::{Edit, Moment, ObjectId, digest};
use handoff_contract::{Input, Schema};
use handoff_model::layout::DEFINITION;
use handoff_model::screening::{Screen, screen_protocol};
use handoff_model::semantic::part;
use handoff_model::{
    Assignment, FileChanges, Issue, IssueStatus, ProtocolFiles, ProtocolScope, Refusal, Schemas,
    SettingError, check_protocol_for, has_settings, is_earlier, keep_settings, layout,
    next_version, only_setting_changed, with_version,
};
use handoff_protocol::{AgentKind, ContractType, Protocol, SIGNERS, TaskFields, renewed};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::authority::{Authorized, compared, weaker_trailer};
use super::draft::{Decided, Draft};
use super::error::{LedgerError, ProtocolError};
use super::ledger::Ledger;
use super::protocol_effects::{CheckedMore, LimitedIssue, limited};
use super::session::Session;
use super::signing::{By, Demand};
use super::snapshot::{Rules, Snapshot};

/// Whether to add a protocol or update one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PutMode {
    /// The protocol must be new.
    Add,
    /// It replaces the protocol of the same name, and keeps its settings.
    Update,
    /// It replaces the protocol of the same name, without its settings.
    Replace,
}

impl PutMode {
    /// The mode for a protocol of this name, as recorded elsewhere.
    ///
    /// # Errors
    /// [`LedgerError`] if the folder of protocols can't be read.
    #[doc(hidden)]
    pub fn of(tip: &Snapshot<'_>, name: &str) -> Result<Self, LedgerError> {
        let known = tip.rules_id(name)?;
        Ok(known.map_or(Self::Add, |_| Self::Replace))
    }
}

/// The result of a protocol change.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ProtocolChange {
    /// The protocol.
    #[serde(rename = "protocol")]
    pub name: String,
    /// The version that was in force; null if it was not.
    pub before: Option<String>,
    /// The version that is in force now.
    pub version: String,
    /// The commit that was written; null if the ledger already had these files.
    pub commit: Option<ObjectId>,
    /// The settings that were kept from the previous version.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<KeptSetting>,
    /// What it checks less.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub weaker: Vec<String>,
    /// What it checks less than before, not on record.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub checks_less: Vec<String>,
    /// What may be checked less or more, not on record.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
    /// Fields that contracts now require.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub requires: Vec<RequiredFields>,
    /// What it checks more than before.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub checks_more: Vec<CheckedMore>,
    /// The open issues that are beyond one of its limits, and were not before.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub limited: Vec<LimitedIssue>,
    /// How many open issues follow it, for an update.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_issues: Option<usize>,
}

/// What a person consents to in a change of a protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Consent {
    /// It checks less than the default protocol, which is recorded.
    pub weaker: bool,
    /// Open issues are beyond its limits, so that nothing can be sent in them.
    pub past_limits: bool,
}

/// Fields that a contract type requires since an update.
#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RequiredFields {
    /// The contract type.
    pub contract: String,
    /// The fields; `*` stands for every entry of a list.
    pub fields: Vec<String>,
}

/// A setting that an update kept.
#[derive(Debug, Serialize, JsonSchema)]
pub struct KeptSetting {
    /// Its key.
    pub key: String,
    /// Its value.
    pub value: String,
}

impl<'r> Ledger<'r> {
    /// Puts a protocol in force: adds it, or replaces the one with the same name.
    ///
    /// # Errors
    /// [`LedgerError`]; the ledger is then unchanged.
    pub fn put_protocol(
        &mut self,
        session: &Session,
        files: &ProtocolFiles,
        change: PutMode,
        consent: Consent,
    ) -> Result<ProtocolChange, LedgerError> {
        let by = session.agent.as_ref();
        let now = Moment::from(session.clock.author());
        let (mut done, commit) = self.write(session, |_, tip, _| {
            screen_protocol(files)?;
            let mut files = files.to_vec();
            let kept = match change {
                PutMode::Update => keep_set(tip, &mut files)?,
                PutMode::Add | PutMode::Replace => Vec::new(),
            };
            let (step, mut outcome) = protocol_step(
                tip,
                &files,
                change,
                (consent.weaker, by),
                ProtocolScope::Folder,
            )?;
            outcome.kept = kept;
            if step.is_some() && outcome.before.is_some() {
                outcome.compare(tip, &files, now)?;
                outcome.open_issues = Some(open_issues(tip, &outcome.name)?);
                let stranded = outcome.limited.iter().filter(|one| one.stranded);
                let findings: Vec<Finding> = stranded.map(LimitedIssue::finding).collect();
                if !findings.is_empty() && !consent.past_limits {
                    let name = outcome.name;
                    return Err(ProtocolError::PastLimits { name, findings }.into());
                }
            }
            Ok((step, outcome))
        })?;
        done.commit = commit;
        Ok(done)
    }

    /// Changes one setting of a protocol in force.
    ///
    /// # Errors
    /// [`LedgerError`]; the ledger is then unchanged.
    pub fn set_in_protocol(
        &mut self,
        session: &Session,
        name: &str,
        assignment: &Assignment,
        may_be_weaker: bool,
    ) -> Result<ProtocolChange, LedgerError> {
        let by = session.agent.as_ref();
        let now = Moment::from(session.clock.author());
        let (mut done, commit) = self.write(session, |_, tip, _| {
            let rules = tip.named_rules(name)?;
            let mut assignment = assignment.clone();
            if assignment.is_default() {
                let cut_off = || ProtocolError::CutOff {
                    name: name.to_owned(),
                };
                let (_, author) = tip.set_in(name)?.ok_or_else(cut_off)?;
                assignment = assignment.or_as_in(&author);
            }
            let mut files = rules.files()?;
            for (_, bytes) in files.iter_mut().filter(|(path, _)| path == DEFINITION) {
                let refused = |source| {
                    let name = name.to_owned();
                    ProtocolError::Setting { name, source }
                };
                let text = std::str::from_utf8(bytes).unwrap_or_default();
                if let Some(changed) = assignment.applied(text).map_err(refused)? {
                    *bytes = changed.into_bytes();
                }
            }
            skip_versions(tip, name, &mut files)?;
            let (step, mut outcome) = protocol_step(
                tip,
                &files,
                PutMode::Replace,
                (may_be_weaker, by),
                ProtocolScope::Setting,
            )?;
            if step.is_some() {
                let (protocol, _) = loaded(&files)?;
                outcome.limited = limited(tip, [rules.protocol(), &protocol], now)?;
            }
            Ok((step, outcome))
        })?;
        done.commit = commit;
        Ok(done)
    }

    /// Sets a shared document. Returns the commit, or `None` if it is unchanged.
    ///
    /// # Errors
    /// [`LedgerError`]; the ledger is then unchanged.
    pub fn put_document(
        &mut self,
        session: &Session,
        agent: &AgentName,
        protocol: &AgentName,
        name: &AgentName,
        bytes: &[u8],
    ) -> Result<Option<ObjectId>, LedgerError> {
        let input = Input::read(bytes);
        let ((), commit) = self.write(session, |_, tip, _| {
            let rules = tip.rules(protocol.as_str())?;
            let mut screen = Screen::new(rules.protocol().definition(), &[]);
            screen.contract(&input);
            screen.finish()?;
            Ok((document_step(tip, &rules, agent, name, &input)?, ()))
        })?;
        Ok(commit)
    }
}

impl ProtocolChange {
    /// Adds what a new version checks more than the one in force or changes, and the issues that this
    /// limits.
    fn compare(
        &mut self,
        tip: &Snapshot<'_>,
        files: &ProtocolFiles,
        now: Moment,
    ) -> Result<(), LedgerError> {
        let known = tip.rules(&self.name)?;
        let (_, was) = loaded(&known.files()?)?;
        let (protocol, is) = loaded(files)?;
        self.requires = newly_required(&known, files)?;
        // What `requires` says of a schema is all that most change.
        let is_said = |key: &String| {
            let mut said = self.requires.iter();
            said.any(|one| key.strip_prefix("schema.") == Some(&one.contract))
        };
        let compared = compared(tip, &known, &protocol, files)?;
        let less = std::mem::take(&mut self.checks_less).into_iter();
        (self.changed, self.checks_less) = less.partition(|key| compared.changed.contains(key));
        let keys = compared.more.into_iter().filter(|key| !is_said(key));
        self.checks_more = keys.map(|key| CheckedMore::new(key, [&was, &is])).collect();
        self.limited = limited(tip, [known.protocol(), &protocol], now)?;
        Ok(())
    }
}

/// The protocol in these files, and its definition as JSON.
fn loaded(files: &ProtocolFiles) -> Result<(Protocol, Value), LedgerError> {
    let found = files.iter().find(|(path, _)| path == DEFINITION);
    let bytes = found.map_or(&[][..], |(_, bytes)| bytes);
    let refused = |findings| LedgerError::from(ProtocolError::Refused(findings));
    let protocol = Protocol::load(bytes).map_err(refused)?;
    Ok((protocol, serde_json::from_slice(bytes).unwrap_or_default()))
}

/// Plans the activation of a protocol. If it is weaker than the default protocol, its message lists
/// the weakened checks, so that nobody activates it silently. `by` is the acting agent, if named:
/// only a person may weaken a protocol.
pub(super) fn protocol_step(
    tip: &Snapshot<'_>,
    files: &ProtocolFiles,
    change: PutMode,
    (may_be_weaker, by): (bool, Option<&AgentName>),
    scope: ProtocolScope,
) -> Decided<ProtocolChange> {
    let definition = files.iter().find(|(path, _)| path == DEFINITION);
    let definition = definition
        .map(|(_, bytes)| bytes.as_slice())
        .unwrap_or_default();
    let (protocol, _) = loaded(files)?;
    let findings = check_protocol_for(files, scope);
    if findings.iter().any(Finding::is_error) {
        return Err(ProtocolError::Refused(findings).into());
    }
    let name = protocol.name().to_owned();
    let version = protocol.definition().version.clone();
    let known = tip.rules_id(&name)?.map(|_| tip.rules(&name));
    let known = known.transpose()?;
    let mut outcome = ProtocolChange {
        name: name.clone(),
        before: known
            .as_ref()
            .map(|k| k.protocol().definition().version.clone()),
        version: version.clone(),
        commit: None,
        kept: Vec::new(),
        weaker: Vec::new(),
        checks_less: Vec::new(),
        changed: Vec::new(),
        requires: Vec::new(),
        checks_more: Vec::new(),
        limited: Vec::new(),
        open_issues: None,
    };
    let changes = differences(known.as_ref(), files)?;
    if known.is_some() && (changes.is_empty() || is_renewed(known.as_ref(), &changes, definition)?)
    {
        return Ok((None, outcome));
    }
    let mut message = match (&mut outcome.before, change) {
        (None, PutMode::Add) => {
            format!("Add protocol {name} {version}\n\nProtocol: {name}\n")
        }
        (Some(before), PutMode::Update | PutMode::Replace) => {
            ensure_succeeds(known.as_ref(), files, (&name, before, &version))?;
            if scope == ProtocolScope::Folder {
                ensure_new_version(tip, files, (&name, &version))?;
            }
            let mut orphans = orphans(tip, &protocol, files)?;
            orphans.extend(misfit_documents(tip, &protocol, files)?);
            if !orphans.is_empty() {
                return Err(ProtocolError::Orphans {
                    name,
                    findings: orphans,
                }
                .into());
            }
            update_message(known.as_ref(), before, &version, &changes, definition)?
        }
        (Some(before), PutMode::Add) => {
            let version = before.clone();
            return Err(ProtocolError::Exists { name, version }.into());
        }
        (None, PutMode::Update | PutMode::Replace) => {
            let known = tip.protocols()?;
            return Err(ProtocolError::Unknown { name, known }.into());
        }
    };
    let authorized = Authorized::of(tip, known.as_ref(), &protocol, files)?;
    if let Some(by) = by {
        let rules = known.map_or_else(|| tip.default_rules(), Ok)?;
        authorized.ensure_by_person(rules.protocol(), by, &name)?;
        message += &format!("From: {by}\n");
    }
    outcome.weaker = authorized.weaker_keys(&name, tip, may_be_weaker)?;
    message += &weaker_trailer(&outcome.weaker);
    if outcome.before.is_some() {
        outcome.checks_less = authorized.unrecorded_keys();
    }
    let step = Draft {
        author: by.cloned(),
        ..Draft::shared(changes, message, authorized.demand)
    };
    Ok((Some(step), outcome))
}

/// The fields that contracts of known types require in these files, and not in the version in force.
fn newly_required(
    known: &Rules<'_>,
    files: &ProtocolFiles,
) -> Result<Vec<RequiredFields>, LedgerError> {
    let before = known.files()?;
    let required = |files: &ProtocolFiles, path: &str| {
        let file = files.iter().find(|(known, _)| known == path);
        let schema = file.and_then(|(_, bytes)| serde_json::from_slice(bytes).ok());
        schema.map(|schema: Value| required_fields(&schema))
    };
    let definition = files.iter().find(|(path, _)| path == DEFINITION);
    let protocol = definition.and_then(|(_, bytes)| Protocol::load(bytes).ok());
    let kinds = protocol.iter().flat_map(|p| &p.definition().contracts);
    let found = kinds.filter_map(|kind| {
        let was = known.protocol().contract_type(&kind.name)?;
        let was = required(&before, &was.schema)?;
        let is = required(files, &kind.schema)?;
        let fields: Vec<String> = is.difference(&was).cloned().collect();
        let contract = kind.name.clone();
        (!fields.is_empty()).then_some(RequiredFields { contract, fields })
    });
    Ok(found.collect())
}

/// The required members of a schema and of what it contains. Recursion is bounded by its depth.
fn required_fields(schema: &Value) -> BTreeSet<String> {
    fn walk(node: &Value, at: &str, found: &mut BTreeSet<String>) {
        let under = |name: &str| {
            let mut at = at.to_owned();
            push_part(&mut at, name);
            at
        };
        let required = node["required"].as_array().into_iter().flatten();
        found.extend(required.filter_map(Value::as_str).map(under));
        for (name, member) in node["properties"].as_object().into_iter().flatten() {
            walk(member, &under(name), found);
        }
        if let Some(items) = node.get("items") {
            walk(items, &format!("{at}/*"), found);
        }
    }
    let mut found = BTreeSet::new();
    walk(schema, "", &mut found);
    found
}

/// Applies the settings of the protocol in force to a new version of it.
fn keep_set(
    tip: &Snapshot<'_>,
    files: &mut [(String, Vec<u8>)],
) -> Result<Vec<KeptSetting>, LedgerError> {
    let Some((_, new)) = files.iter_mut().find(|(path, _)| path == DEFINITION) else {
        return Ok(Vec::new());
    };
    let Ok(protocol) = Protocol::load(new) else {
        return Ok(Vec::new());
    };
    let name = protocol.name();
    if tip.rules_id(name)?.is_none() {
        return Ok(Vec::new());
    }
    let rules = tip.rules(name)?;
    if !has_settings(&rules.protocol().definition().version) {
        return Ok(Vec::new());
    }
    let set = tip.set_in(name)?;
    let (keys, _) = set.ok_or(ProtocolError::CutOff {
        name: name.to_owned(),
    })?;
    let files = rules.files()?;
    let in_force = files.iter().find(|(path, _)| path == DEFINITION);
    let in_force = in_force.map_or(&[][..], |(_, bytes)| bytes);
    if serde_json::from_slice(in_force).is_ok_and(|text| is_earlier(&text)) {
        let (name, source) = (name.to_owned(), SettingError::Earlier);
        return Err(ProtocolError::LosesSetting { name, source }.into());
    }
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    let kept = keep_settings(&keys, &text(in_force), &text(new));
    let (changed, kept) = kept.map_err(|source| ProtocolError::LosesSetting {
        name: name.to_owned(),
        source,
    })?;
    *new = changed.into_bytes();
    let kept = kept.into_iter();
    Ok(kept
        .map(|(key, value)| KeptSetting { key, value })
        .collect())
}

/// Refuses a new version that drops the list of keys, or has the same version number.
fn ensure_succeeds(
    known: Option<&Rules<'_>>,
    files: &ProtocolFiles,
    (name, before, version): (&str, &str, &str),
) -> Result<(), ProtocolError> {
    let lists = |files: &ProtocolFiles| files.iter().any(|(path, _)| path == SIGNERS);
    if known.is_some_and(demands) && !lists(files) {
        let text = "the new version leaves out allowed_signers, which is in force";
        let finding = Finding::error(FindingCode::ProtocolSigners, SIGNERS, text);
        let fix = "copy the file into the folder; one that lists no key asks for no signature from then on";
        return Err(ProtocolError::Refused(vec![finding.fix(fix)]));
    }
    if before == version {
        return Err(same_version(name, version, "is"));
    }
    Ok(())
}

/// Counts on in the version of changed settings, past those that were in force with other files.
fn skip_versions(
    tip: &Snapshot<'_>,
    name: &str,
    files: &mut ProtocolFiles,
) -> Result<(), LedgerError> {
    loop {
        let definition = files.iter().position(|(path, _)| path == DEFINITION);
        let Some(at) = definition else { return Ok(()) };
        let text = String::from_utf8_lossy(&files[at].1).into_owned();
        let known: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
        let version = known["version"].as_str().unwrap_or_default();
        if !has_settings(version) {
            return Ok(());
        }
        let is_other = match tip.rules_of(name, version)? {
            Some(rules) => !differences(Some(&rules), files)?.is_empty(),
            None => false,
        };
        let changed = with_version(&text, &next_version(version)).ok().flatten();
        let Some(changed) = changed.filter(|_| is_other) else {
            return Ok(());
        };
        files[at].1 = changed.into_bytes();
    }
}

/// Refuses a version that was in force earlier with other files: its name would mean two things.
fn ensure_new_version(
    tip: &Snapshot<'_>,
    files: &ProtocolFiles,
    (name, version): (&str, &str),
) -> Result<(), LedgerError> {
    match tip.rules_of(name, version)? {
        Some(rules) if !differences(Some(&rules), files)?.is_empty() => {
            Err(same_version(name, version, "was").into())
        }
        _ => Ok(()),
    }
}

fn same_version(name: &str, version: &str, is: &str) -> ProtocolError {
    let text = format!("version {version} {is} in force, with other files");
    let finding = Finding::error(FindingCode::ProtocolVersion, "/version", text);
    ProtocolError::SameVersion {
        name: name.to_owned(),
        findings: vec![finding.fix("give the new one another version")],
    }
}

/// The message of an update. Names a changed setting, which the version number would not show.
fn update_message(
    known: Option<&Rules<'_>>,
    before: &str,
    version: &str,
    changes: &FileChanges,
    definition: &[u8],
) -> Result<String, LedgerError> {
    let name = known
        .map(|known| known.protocol().name())
        .unwrap_or_default();
    let subject = match set_alone(known, changes, definition)? {
        Some((key, value)) => format!("Set {key} to {value} in protocol {name}, version {version}"),
        None => format!("Update protocol {name} from {before} to {version}"),
    };
    Ok(format!("{subject}\n\nProtocol: {name}\n"))
}

/// The setting that an update changes, with its new value, if that is its only change.
fn set_alone(
    known: Option<&Rules<'_>>,
    changes: &FileChanges,
    definition: &[u8],
) -> Result<Option<(String, String)>, LedgerError> {
    let (Some(known), [(path, _)]) = (known, &changes[..]) else {
        return Ok(None);
    };
    if *path != layout::protocol_file(known.protocol().name(), DEFINITION) {
        return Ok(None);
    }
    let files = known.files()?;
    let before = files.iter().find(|(path, _)| path == DEFINITION);
    let before = before.and_then(|(_, bytes)| std::str::from_utf8(bytes).ok());
    let both = before.zip(std::str::from_utf8(definition).ok());
    Ok(both.and_then(|(before, after)| only_setting_changed(before, after)))
}

/// Whether an update only rewrites the protocol in force in the current form of `protocol.json`.
fn is_renewed(
    known: Option<&Rules<'_>>,
    changes: &FileChanges,
    definition: &[u8],
) -> Result<bool, LedgerError> {
    let (Some(known), [(path, _)]) = (known, &changes[..]) else {
        return Ok(false);
    };
    let files = known.files()?;
    let before = files.iter().find(|(path, _)| path == DEFINITION);
    let before = before.and_then(|(_, bytes)| renewed(bytes));
    let value = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).ok();
    let is_same = before.is_some_and(|before| value(&before.definition) == value(definition));
    Ok(is_same && *path == layout::protocol_file(known.protocol().name(), DEFINITION))
}

/// Whether steps under a protocol in force must be signed.
fn demands(rules: &Rules<'_>) -> bool {
    // An unreadable list counts as one with signers.
    rules.signers().map_or(true, |signers| signers.is_some())
}

/// The files of a protocol in force that would change.
fn differences(
    known: Option<&Rules<'_>>,
    files: &ProtocolFiles,
) -> Result<FileChanges, LedgerError> {
    let mut changes = Vec::new();
    let old = known.map(Rules::files).transpose()?.unwrap_or_default();
    let definition = files.iter().find(|(path, _)| path == DEFINITION);
    let name = definition.and_then(|(_, bytes)| Protocol::load(bytes).ok());
    let name = name.map(|p| p.name().to_owned()).unwrap_or_default();
    for (path, bytes) in files {
        if old.iter().find(|(p, _)| p == path).map(|(_, b)| b) != Some(bytes) {
            let path = layout::protocol_file(&name, path);
            changes.push((path, Edit::Bytes(bytes.clone())));
        }
    }
    for (path, _) in &old {
        if !files.iter().any(|(p, _)| p == path) {
            changes.push((layout::protocol_file(&name, path), Edit::Gone));
        }
    }
    Ok(changes)
}

/// The open handoffs that could not continue under another definition.
fn orphans(
    tip: &Snapshot<'_>,
    protocol: &Protocol,
    files: &ProtocolFiles,
) -> Result<Vec<Finding>, LedgerError> {
    let old = tip.rules(protocol.name())?;
    let was = old.protocol();
    let mut found = Vec::new();
    for entry in tip.open()? {
        let record = tip.open_record(&entry)?;
        if record.protocol.as_str() != protocol.name() {
            continue;
        }
        let path = layout::record_file(&record.id);
        let mut orphan = |text: String| {
            let finding = Finding::error(FindingCode::ProtocolOrphan, path.clone(), text);
            let fix = format!(
                "finish or cancel {} first, or keep what it needs",
                record.id
            );
            found.push(finding.fix(fix));
        };
        for agent in [&record.to, &record.from] {
            if protocol
                .agent(agent.as_str())
                .is_none_or(|a| a.kind == AgentKind::End)
            {
                orphan(format!("{} needs the agent {agent}", record.id));
            }
        }
        if protocol.contract_type(&record.contract_type).is_none() {
            let kind = quoted(&record.contract_type);
            orphan(format!("{} needs the contract type {kind}", record.id));
        }
        let routes = |p: &Protocol| {
            let mut answers = p.definition().contracts.iter();
            let answered = |c: &ContractType| c.answers.contains(&record.contract_type);
            (
                !p.receivers(record.to.as_str()).is_empty(),
                answers.any(answered),
            )
        };
        let ((onward, answered), (still_onward, still_answered)) = (routes(was), routes(protocol));
        if onward && !still_onward {
            let to = &record.to;
            orphan(format!(
                "{} needs a route on which {to} can hand it on",
                record.id
            ));
        }
        if answered && !still_answered {
            orphan(format!(
                "{} needs a contract type that answers it",
                record.id
            ));
        }
        if was.definition().style() != protocol.definition().style() {
            orphan(format!("{} was handed over in the other style", record.id));
        }
        if let Some(expected) = &record.expects {
            let path = format!("schemas/{}", expected.schema);
            if !files.iter().any(|(known, _)| *known == path) {
                orphan(format!("{} needs {path} for its answer", record.id));
            }
        }
        if record.task.is_some() && task_rules(was) != task_rules(protocol) {
            orphan(format!(
                "{} needs the tasks of contracts where they are",
                record.id
            ));
        }
    }
    Ok(found)
}

/// The task fields of a protocol's contract types.
fn task_rules(protocol: &Protocol) -> Vec<(&str, &TaskFields)> {
    let types = protocol.definition().contracts.iter();
    let rules = types.filter_map(|c| Some((c.name.as_str(), c.tasks.as_ref()?)));
    rules.collect()
}

/// The shared documents that a new definition drops or refuses.
fn misfit_documents(
    tip: &Snapshot<'_>,
    protocol: &Protocol,
    files: &ProtocolFiles,
) -> Result<Vec<Finding>, LedgerError> {
    let old = tip.rules(protocol.name())?;
    let mut found = Vec::new();
    for (name, value) in documents(tip, &old)? {
        let path = layout::document(protocol.name(), &name);
        let document = protocol.definition().documents.get(&name);
        let schema = document.and_then(|d| files.iter().find(|(path, _)| *path == d.schema));
        let schema = schema.and_then(|(_, bytes)| serde_json::from_slice(bytes).ok());
        let schema = schema.and_then(|schema: Value| Schema::compile(&schema).ok());
        let text = match schema {
            None => "the new definition has no such document",
            Some(schema) if !part(&schema, &value, "").is_empty() => {
                "the new schema refuses what the document says"
            }
            Some(_) => continue,
        };
        let finding = Finding::error(FindingCode::ProtocolOrphan, path, text);
        found.push(finding.fix("keep it, or set it to what both accept first"));
    }
    Ok(found)
}

/// Plans the change of a shared document.
pub(super) fn document_step(
    tip: &Snapshot<'_>,
    rules: &Rules<'_>,
    agent: &AgentName,
    name: &AgentName,
    input: &Input<'_>,
) -> Result<Option<Draft>, LedgerError> {
    let protocol = rules.protocol();
    if protocol
        .agent(agent.as_str())
        .is_none_or(|a| a.kind == AgentKind::End)
    {
        return Err(Refusal::unknown_agent(agent, protocol).into());
    }
    let Some(document) = protocol.definition().documents.get(name) else {
        let known = protocol.definition().documents.keys();
        return Err(ProtocolError::NoDocument {
            name: name.to_string(),
            known: known.map(ToString::to_string).collect(),
        }
        .into());
    };
    let source = input
        .source()
        .map_err(|findings| ProtocolError::Document(findings.to_vec()))?;
    let findings = rules.file(&document.schema)?.check(source, None).findings;
    if findings.iter().any(Finding::is_error) {
        return Err(ProtocolError::Document(findings).into());
    }
    let bytes = input.bytes();
    let path = layout::document(protocol.name(), name);
    if tip.file(&path)?.is_some_and(|known| *known == *bytes) {
        return Ok(None);
    }
    let message = format!(
        "Set document {name}\n\nDocument: {name}\nDocument-Sha256: {}\nFrom: {agent}\nProtocol: {}\n",
        digest(bytes),
        protocol.name()
    );
    let files = vec![(path, Edit::Bytes(bytes.to_vec()))];
    let demand = Demand::of(rules, By::Agent(agent.clone()))?;
    Ok(Some(Draft {
        author: Some(agent.clone()),
        ..Draft::shared(files, message, demand)
    }))
}

/// The documents that a protocol's issues share, by name, except unset ones.
///
/// # Errors
/// [`LedgerError`] if one can't be read.
pub fn documents(
    tip: &Snapshot<'_>,
    rules: &Rules<'_>,
) -> Result<Vec<(AgentName, Value)>, LedgerError> {
    let mut found = Vec::new();
    for name in rules.protocol().definition().documents.keys() {
        let path = layout::document(rules.protocol().name(), name);
        if let Some(bytes) = tip.file(&path)? {
            let value = serde_json::from_slice(&bytes)
                .map_err(|e| LedgerError::stored(&path, handoff_model::StoredError::Form(e)))?;
            found.push((name.clone(), value));
        }
    }
    Ok(found)
}

/// Counts the open issues that follow a protocol.
///
/// # Errors
/// [`LedgerError`] if an open issue can't be read.
pub fn open_issues(tip: &Snapshot<'_>, protocol: &str) -> Result<usize, LedgerError> {
    let open = tip.open()?;
    let keys: BTreeSet<_> = open.iter().map(|e| e.id.issue().clone()).collect();
    let counts = |i: &&Issue| i.protocol.as_str() == protocol && i.status == IssueStatus::Open;
    Ok(tip.states(&keys)?.iter().filter(counts).count())
}
