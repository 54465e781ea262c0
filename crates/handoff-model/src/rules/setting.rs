//! Single settings of a protocol, which can be changed without a copy of its files.

use std::collections::BTreeSet;

use handoff_base::Amount;
use handoff_base::text::quoted;
use handoff_contract::edit::{self, EditError, Leaf};
use handoff_protocol::{AnotherTry, OnRecord, Policy};
use serde_json::{Value, json};

/// The placeholder for a name in a key or a path.
const NAME: &str = "*";

/// The word that takes a setting back to what the protocol's author wrote, if anything.
const DEFAULT: &str = "default";

/// A setting of `protocol.json` for `git handoff protocol set`.
#[derive(Debug, PartialEq, Eq)]
pub struct Setting {
    /// Its key on the command line; a trailing `*` is a placeholder for a name.
    pub key: &'static str,
    /// Its path in `protocol.json`.
    path: &'static str,
    takes: Takes,
    /// A short description.
    pub about: &'static str,
}

/// The kind of value.
#[derive(Debug, PartialEq, Eq)]
enum Takes {
    /// `enforce`, `warn` or `off`.
    Policy,
    /// A whole number.
    Count,
    /// A sum of money.
    Money,
    /// Kinds of refused contracts, separated by commas.
    Kinds,
    /// Whether another attempt helps.
    AnotherTry,
    /// Yes or no.
    Flag,
}

/// Defines the settings: key and path, kind of value, description.
macro_rules! settings {
    ($($key:literal at $path:literal: $takes:ident, $about:literal;)+) => {
        /// Every setting.
        pub const SETTINGS: [Setting; [$($key),+].len()] = [$(Setting {
            key: $key, path: $path, takes: Takes::$takes, about: $about,
        }),+];
    };
}

settings! {
    "evidence" at "evidence/policy": Policy,
        "what happens to statements that the repository contradicts";
    "evidence.*" at "evidence/checks/*": Policy,
        "the same for one check, such as evidence.coverage";
    "consistency.*" at "consistency/*/policy": Policy,
        "what happens to contracts that break this rule";
    "requirements.*" at "requirements/*/merge": Flag,
        "whether each merge has to meet this requirement";
    "time.lease_seconds" at "limits/lease_seconds": Count,
        "how long a claim holds, in seconds";
    "time.longest_run_seconds" at "limits/longest_run_seconds": Count,
        "how long a worker lets an agent run for one claim";
    "time.person_lease_seconds" at "limits/person_lease_seconds": Count,
        "how long a claim of a person holds, in seconds";
    "time.acknowledge_seconds" at "limits/acknowledge_seconds": Count,
        "in how many seconds an agent must claim what it gets";
    "retry" at "limits/retry/max_retries": Count,
        "how many attempts may follow the first";
    "limits.retry.runs.*" at "limits/retry/runs/*": AnotherTry,
        "whether another attempt helps when a run ended so";
    "limits.handoffs" at "limits/handoffs": Count,
        "how many handoffs an issue may have";
    "limits.item" at "limits/item/handoffs": Count,
        "how many handoffs may be about one item";
    "limits.deadline_seconds" at "limits/deadline_seconds": Count,
        "how long after its start an issue may be handed on";
    "limits.cooldown_seconds" at "limits/cooldown_seconds": Count,
        "how long a sender waits between two handoffs to one receiver";
    "limits.rounds.*" at "limits/rounds/*/most": Count,
        "how many rounds of this name an issue may have";
    "limits.budgets.cost.*" at "limits/budgets/*/cost": Money,
        "what this budget allows in money";
    "limits.budgets.tokens.*" at "limits/budgets/*/tokens": Count,
        "how many tokens this budget allows";
    "limits.budgets.attempts.*" at "limits/budgets/*/attempts": Count,
        "how many claims this budget allows";
    "limits.budgets.seconds.*" at "limits/budgets/*/seconds": Count,
        "for how long this budget lets work be held, in seconds";
    "limits.on_record" at "limits/on_record": Kinds,
        "the kinds of refused contracts that are kept on record";
    "time.archive_after_seconds" at "limits/archive_after_seconds": Count,
        "how long after its end an issue is archived, in seconds";
}

/// A setting's key with the value to set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    key: String,
    path: Vec<String>,
    /// How many parts of the path must exist: they are never added.
    given: usize,
    /// The value; `None` removes the setting.
    value: Option<Value>,
}

/// Why a setting can't be changed.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum SettingError {
    /// No setting has this key.
    #[error("there is no setting {}", quoted(.0))]
    Key(String),
    /// The definition has an earlier form, with other keys.
    #[error("it has an earlier form, in which settings have other keys")]
    Earlier,
    /// The definition has no entry with this name.
    #[error("the protocol has no {}", quoted(.0))]
    Missing(String),
    /// The definition can't be edited.
    #[error("no single value can be put into the definition")]
    Edit(#[source] EditError),
    /// The setting does not accept this value.
    #[error("{key} takes {takes}, not {}", quoted(value))]
    Value {
        /// The key.
        key: String,
        /// The accepted values.
        takes: String,
        /// The value.
        value: String,
    },
}

impl Setting {
    /// The accepted values, in words.
    pub fn takes(&self) -> String {
        let kinds = OnRecord::ALL.map(OnRecord::as_str).join(", ");
        let takes = match &self.takes {
            Takes::Policy => "enforce, warn, off".to_owned(),
            Takes::Count => "a whole number".to_owned(),
            Takes::Money => "a sum of money".to_owned(),
            Takes::AnotherTry => AnotherTry::ALL.map(AnotherTry::as_str).join(", "),
            Takes::Kinds => format!("{kinds}, or some of them with commas between"),
            Takes::Flag => "true, false".to_owned(),
        };
        format!("{takes} or {DEFAULT}")
    }

    /// The keys of this setting in a definition, with their values; if there is no name for `*`,
    /// the key itself.
    pub fn values(&self, definition: &Value) -> Vec<(String, String)> {
        let given = self.given(definition);
        if given.is_empty() {
            return vec![(self.key.to_owned(), DEFAULT.to_owned())];
        }
        given
    }

    /// The same, of those that the definition may name.
    fn given(&self, definition: &Value) -> Vec<(String, String)> {
        let entries = keys(self, definition, definition).into_iter();
        let values = entries.map(|entry| (entry.key, shown(at(definition, &entry.path))));
        values.collect()
    }

    /// The limits that a definition has, with their values.
    pub fn limits(definition: &Value) -> impl Iterator<Item = (String, String, &'static str)> {
        let limits = SETTINGS
            .iter()
            .filter(|one| one.path.starts_with("limits/"));
        let given = limits.flat_map(|setting| {
            let given = setting.given(definition).into_iter();
            given.map(|(key, value)| (key, value, setting.about))
        });
        given.filter(|(_, value, _)| value != DEFAULT)
    }

    /// The numbers among the limits of a definition that no setting changes, and the codes that are
    /// never retried, by their places.
    pub fn fixed_limits(definition: &Value) -> Vec<(String, String)> {
        fn walk(value: &Value, at: &str, found: &mut Vec<(String, String)>) {
            match value {
                Value::Object(members) => {
                    for (name, member) in members {
                        walk(member, &format!("{at}/{name}"), found);
                    }
                }
                Value::Number(_) => {
                    let is_at = |path: &str| {
                        path.split('/').count() == at.split('/').count()
                            && path
                                .split('/')
                                .zip(at.split('/'))
                                .all(|(part, own)| part == NAME || part == own)
                    };
                    if !SETTINGS.iter().any(|setting| is_at(setting.path)) {
                        found.push((at.replace('/', "."), value.to_string()));
                    }
                }
                _ => {}
            }
        }
        let mut found = Vec::new();
        walk(&definition["limits"], "limits", &mut found);
        let never = definition["limits"]["retry"]["never"].as_array();
        let codes = never.into_iter().flatten().filter_map(Value::as_str);
        let codes: Vec<&str> = codes.collect();
        if !codes.is_empty() {
            found.push(("limits.retry.never".to_owned(), codes.join(", ")));
        }
        found
    }

    /// The path for a key, if it is one of this setting.
    fn path_of(&self, key: &str) -> Option<Vec<String>> {
        let name = match self.key.strip_suffix(NAME) {
            Some(prefix) => Some(key.strip_prefix(prefix).filter(|name| !name.is_empty())?),
            None if key == self.key => None,
            None => return None,
        };
        let path = self.path.split('/');
        let path = path.map(|part| name.filter(|_| part == NAME).unwrap_or(part));
        Some(path.map(str::to_owned).collect())
    }

    /// The assignment that removes the setting.
    fn assignment(&self, key: &str, path: Vec<String>) -> Assignment {
        let mut parts = self.path.split('/');
        let named = parts.position(|part| part == NAME);
        let inner = named.filter(|_| parts.next().is_some());
        Assignment {
            key: key.to_owned(),
            path,
            given: inner.map_or(0, |at| at + 1),
            value: None,
        }
    }

    fn value(&self, word: &str) -> Option<Value> {
        match self.takes {
            Takes::Policy => {
                let mut policies = Policy::ALL.into_iter();
                let known = policies.find(|policy| policy.as_str() == word);
                known.map(|policy| json!(policy))
            }
            Takes::Count => word.parse::<u32>().ok().map(Value::from),
            Takes::Money => {
                let number = word.parse::<f64>().ok()?;
                Amount::try_from(number).ok().map(|amount| json!(amount))
            }
            Takes::AnotherTry => {
                let mut answers = AnotherTry::ALL.into_iter();
                let known = answers.find(|answer| answer.as_str() == word);
                known.map(|answer| json!(answer))
            }
            Takes::Flag => word.parse::<bool>().ok().map(Value::from),
            Takes::Kinds => {
                let kind = |word| OnRecord::ALL.into_iter().find(|kind| kind.as_str() == word);
                let kinds = word.split(',').map(kind);
                kinds.collect::<Option<Vec<_>>>().map(|kinds| json!(kinds))
            }
        }
    }
}

/// The current key for a former one, which scripts may use.
fn moved(key: &str) -> Option<String> {
    if key.starts_with("budgets.") || key == "on_record" {
        return Some(format!("limits.{key}"));
    }
    let now = match key {
        "leases" => "lease_seconds",
        "leases.longest_run_seconds" => "longest_run_seconds",
        "leases.person_seconds" => "person_lease_seconds",
        "leases.acknowledge_seconds" => "acknowledge_seconds",
        "archive" => "archive_after_seconds",
        // Also accepts a path in `protocol.json`.
        place => {
            let is_it = |one: &&Setting| one.path.replace('/', ".") == place;
            return SETTINGS.iter().find(is_it).map(|one| one.key.to_owned());
        }
    };
    Some(format!("time.{now}"))
}

impl Assignment {
    /// Parses a key and a value.
    ///
    /// # Errors
    /// [`SettingError`] if there is no such setting, or the value is invalid.
    pub fn new(key: &str, word: &str) -> Result<Self, SettingError> {
        let now = moved(key);
        let key = now.as_deref().unwrap_or(key);
        let mut settings = SETTINGS.iter();
        let found = settings.find_map(|setting| Some((setting, setting.path_of(key)?)));
        let (setting, path) = found.ok_or_else(|| SettingError::Key(key.to_owned()))?;
        let value = match setting.value(word) {
            None if word == DEFAULT => None,
            None => {
                return Err(SettingError::Value {
                    key: key.to_owned(),
                    takes: setting.takes(),
                    value: word.to_owned(),
                });
            }
            value => value,
        };
        Ok(Self {
            value,
            ..setting.assignment(key, path)
        })
    }

    /// Whether it has no value.
    pub fn is_default(&self) -> bool {
        self.value.is_none()
    }

    /// Takes a setting without a value back to what the author's definition says.
    #[must_use]
    pub fn or_as_in(mut self, author: &str) -> Self {
        if self.value.is_none() {
            self.value = edit::read(author)
                .ok()
                .and_then(|author| written(&self.key, &author).cloned());
        }
        self
    }

    /// The definition with this value and the next version; `None` if the value is unchanged. All
    /// other bytes stay the same.
    ///
    /// # Errors
    /// [`SettingError`] if the definition has no such entry, or can't be edited.
    pub fn applied(&self, definition: &str) -> Result<Option<String>, SettingError> {
        let before = edit::read(definition).map_err(SettingError::Edit)?;
        if is_earlier(&before) {
            return Err(SettingError::Earlier);
        }
        let missing = || SettingError::Missing(self.key.clone());
        let path = placed(self.path.clone(), &self.key, &[&before]);
        let path = indexed(&before, &path, self.given).ok_or_else(missing)?;
        if at(&before, &path) == self.value.as_ref() {
            return Ok(None);
        }
        self.edited(definition, &before, &path)
            .map_err(SettingError::Edit)
    }

    fn edited(
        &self,
        definition: &str,
        before: &Value,
        path: &[String],
    ) -> Result<Option<String>, EditError> {
        let (last, parents) = path.split_last().map_or(("", &[][..]), |(l, p)| (l, p));
        let parents: Vec<&str> = parents.iter().map(String::as_str).collect();
        let is_it = |key: Option<&str>, _: &Value| key == Some(last);
        let changed = match &self.value {
            None => edit::remove(definition, &parents, is_it)?,
            Some(value) => match edit::replace(definition, &parents, is_it, value)? {
                Some(changed) => Some(changed),
                None => Some(edit::add(definition, &parents, Leaf::Member(last, value))?),
            },
        };
        let changed = changed.unwrap_or_else(|| definition.to_owned());
        let version = next_version(before["version"].as_str().unwrap_or_default());
        with_version(&changed, &version)
    }
}

/// A definition with another version; `None` if it has none.
///
/// # Errors
/// [`EditError`] if it can't be edited.
pub fn with_version(definition: &str, version: &str) -> Result<Option<String>, EditError> {
    let is_version = |key: Option<&str>, _: &Value| key == Some("version");
    edit::replace(definition, &[], is_version, &json!(version))
}

/// The version after a setting was changed: `1.2.0`, then `1.2.0+1`, `1.2.0+2`.
pub fn next_version(version: &str) -> String {
    let local = version.rsplit_once('+');
    match local.and_then(|(base, number)| Some((base, number.parse::<u32>().ok()?))) {
        Some((base, number)) => format!("{base}+{}", number.saturating_add(1)),
        None => format!("{version}+1"),
    }
}

/// The setting in which a definition differs from the previous one, with its new value, if that is
/// the only difference: setting it must give exactly the new definition.
pub fn only_setting_changed(before: &str, after: &str) -> Option<(String, String)> {
    let [old, new] = [edit::read(before).ok()?, edit::read(after).ok()?];
    let keys = SETTINGS
        .iter()
        .flat_map(|setting| keys(setting, &old, &new));
    let mut changed = keys.filter(|entry| at(&old, &entry.path) != at(&new, &entry.path));
    let mut only = changed.next()?;
    only.value = at(&new, &only.path).cloned();
    let version = |definition: &Value| {
        definition["version"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    // A number can be left out, because an earlier version has it.
    let is_next = author_version(&version(&old)) == author_version(&version(&new));
    let mut applied = only.applied(before).ok()??;
    if is_next && has_settings(&version(&new)) {
        applied = with_version(&applied, &version(&new)).ok()??;
    }
    let is_all = changed.next().is_none() && applied == after;
    is_all.then(|| (only.key, shown(only.value.as_ref())))
}

/// Whether a setting has another value in one definition than in another one.
pub fn is_set(key: &str, before: &str, after: &str) -> bool {
    let [before, after] = [before, after].map(|text| edit::read(text).unwrap_or_default());
    written(key, &before) != written(key, &after)
}

/// The value of a setting's key in a definition.
fn written<'v>(key: &str, definition: &'v Value) -> Option<&'v Value> {
    let path = SETTINGS.iter().find_map(|setting| setting.path_of(key))?;
    at(definition, &placed(path, key, &[definition]))
}

/// A new definition with the settings that were changed in the one in force, and the keys and
/// values of these settings.
///
/// # Errors
/// [`SettingError`] if the new definition has no place for one of them.
pub fn keep_settings(
    keys: &BTreeSet<String>,
    in_force: &str,
    new: &str,
) -> Result<(String, Vec<(String, String)>), SettingError> {
    let before = edit::read(in_force).map_err(SettingError::Edit)?;
    let (mut text, mut kept) = (new.to_owned(), Vec::new());
    for key in keys {
        let value = shown(written(key, &before));
        if let Some(changed) = Assignment::new(key, &value)?.applied(&text)? {
            text = changed;
            kept.push((key.clone(), value));
        }
    }
    let after = edit::read(new).map_err(SettingError::Edit)?;
    let [version, new_version] = [&before, &after].map(|one| one["version"].as_str());
    if [version, version.map(author_version)].contains(&new_version) {
        let same = with_version(&text, before["version"].as_str().unwrap_or_default());
        if same.map_err(SettingError::Edit)?.as_deref() == Some(in_force) {
            return Ok((in_force.to_owned(), kept));
        }
    }
    Ok((text, kept))
}

/// Whether settings were changed since the version that the author made.
pub fn has_settings(version: &str) -> bool {
    author_version(version) != version
}

/// The author's version, without the number of changed settings.
fn author_version(version: &str) -> &str {
    match version.rsplit_once('+') {
        Some((author, number)) if number.parse::<u32>().is_ok() => author,
        _ => version,
    }
}

/// The assignments, without values, for all keys of a setting in two definitions.
fn keys(setting: &Setting, before: &Value, after: &Value) -> Vec<Assignment> {
    let Some(prefix) = setting.key.strip_suffix(NAME) else {
        let path = setting.path_of(setting.key).unwrap_or_default();
        let path = placed(path, setting.key, &[before, after]);
        return vec![setting.assignment(setting.key, path)];
    };
    let above = setting.path.split('/').take_while(|part| *part != NAME);
    let above: Vec<String> = above.map(str::to_owned).collect();
    let both = [before, after].into_iter();
    let named = both.filter_map(|definition| at(definition, &above));
    let mut names: Vec<&str> = Vec::new();
    for name in named.flat_map(names_in) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let named = names.into_iter().filter_map(|name| {
        let key = format!("{prefix}{name}");
        Some(setting.assignment(&key, setting.path_of(&key)?))
    });
    named.collect()
}

/// The path of a setting, moved out of `limits` to its former place if one of these definitions has
/// it there.
fn placed(path: Vec<String>, key: &str, definitions: &[&Value]) -> Vec<String> {
    let part = key.split('.').next().unwrap_or_default();
    let is_there = || definitions.iter().any(|one| one.get(part).is_some());
    match path.split_first() {
        Some((first, rest)) if first == "limits" && part != "limits" && is_there() => {
            let rest = rest.strip_prefix(&[part.to_owned()]).unwrap_or(rest);
            std::iter::once(part.to_owned())
                .chain(rest.iter().cloned())
                .collect()
        }
        _ => path,
    }
}

/// Whether a definition has settings in an earlier form, with other keys.
pub fn is_earlier(definition: &Value) -> bool {
    let keys = ["archive", "budgets", "leases", "on_record"];
    keys.iter().any(|key| definition.get(key).is_some())
}

/// The names of an object's members, or of the objects in a list.
fn names_in(value: &Value) -> Vec<&str> {
    match value {
        Value::Object(members) => members.keys().map(String::as_str).collect(),
        Value::Array(items) => items.iter().filter_map(|i| i["name"].as_str()).collect(),
        _ => Vec::new(),
    }
}

/// A path in which the names of list entries are replaced by their indices; `None` if one of the
/// first `given` parts is missing.
fn indexed(definition: &Value, path: &[String], given: usize) -> Option<Vec<String>> {
    let mut here = Some(definition);
    let mut found = Vec::new();
    for (depth, part) in path.iter().enumerate() {
        let index = here.and_then(Value::as_array).and_then(|items| {
            let is_it = |item: &Value| item["name"] == **part;
            items.iter().position(is_it)
        });
        let part = index.map_or_else(|| part.clone(), |index| index.to_string());
        here = match index {
            Some(index) => here.and_then(|list| list.get(index)),
            None => here.and_then(|object| object.get(&part)),
        };
        if here.is_none() && depth < given {
            return None;
        }
        found.push(part);
    }
    Some(found)
}

fn at<'v>(definition: &'v Value, path: &[String]) -> Option<&'v Value> {
    path.iter().try_fold(definition, |value, part| match value {
        Value::Array(items) => match part.parse::<usize>() {
            Ok(index) => items.get(index),
            Err(_) => items.iter().find(|item| item["name"] == **part),
        },
        value => value.get(part),
    })
}

fn shown(value: Option<&Value>) -> String {
    match value {
        None => DEFAULT.to_owned(),
        Some(Value::String(word)) => word.clone(),
        Some(Value::Array(words)) => {
            let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
            words.join(",")
        }
        Some(other) => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{
        Assignment, SETTINGS, SettingError, has_settings, keep_settings, next_version,
        only_setting_changed,
    };

    const BEFORE: &str = r#"{
  "version": "1.2.0",
  "agents": [{"id": "a"},   {"id": "b"}],
  "consistency": [
    {"name": "one", "compare": {"same": ["/a", "/b"]}},
    {"name": "two", "compare": {"same": ["/a", "/c"]}, "policy": "warn"}
  ],
  "time": {"lease_seconds": 60},
  "limits": {
    "rounds": {
      "of review": {"contracts": ["x"], "most": 5}
    }
  },
  "requirements": {
    "seen": {"title": "Seen"}
  }
}
"#;

    fn set(text: &str, key: &str, value: &str) -> Option<String> {
        let assignment = Assignment::new(key, value).unwrap_or_else(|e| panic!("{e}"));
        assignment.applied(text).unwrap_or_else(|e| panic!("{e}"))
    }

    #[test]
    fn each_setting_changes_its_own_bytes_and_the_version() {
        for (key, value, line) in [
            ("evidence", "enforce", "\"policy\": \"enforce\""),
            ("evidence.coverage", "off", "\"coverage\": \"off\""),
            (
                "consistency.one",
                "off",
                "{\"name\": \"one\", \"compare\": {\"same\": [\"/a\", \"/b\"]}, \"policy\": \"off\"}",
            ),
            (
                "consistency.two",
                "enforce",
                "[\"/a\", \"/c\"]}, \"policy\": \"enforce\"}",
            ),
            (
                "time.lease_seconds",
                "90",
                "\"time\": {\"lease_seconds\": 90}",
            ),
            ("retry", "2", "\"max_retries\": 2"),
            (
                "limits.retry.runs.EXIT",
                "person",
                "\"runs\": {\n        \"EXIT\": \"person\"\n      }",
            ),
            ("limits.handoffs", "40", "\"handoffs\": 40"),
            ("requirements.seen", "true", "\"merge\": true"),
            (
                "limits.rounds.of review",
                "9",
                "{\"contracts\": [\"x\"], \"most\": 9}",
            ),
            (
                "limits.on_record",
                "limits,cycles",
                "\"on_record\": [\n      \"limits\",",
            ),
        ] {
            let after = set(BEFORE, key, value).unwrap_or_default();
            assert!(after.contains(line), "{after}");
            assert!(after.contains("\"version\": \"1.2.0+1\""), "{after}");
            assert!(
                after.contains("{\"id\": \"a\"},   {\"id\": \"b\"}"),
                "{after}"
            );
            assert_eq!(set(&after, key, value), None, "it has it already");
            let only = (key.to_owned(), value.to_owned());
            assert_eq!(only_setting_changed(BEFORE, &after), Some(only));
            let more = after.replace("[{", "[{\"x\": 1}, {");
            assert_eq!(only_setting_changed(BEFORE, &more), None, "{more}");
            let again = set(&after, "limits.cooldown_seconds", "7").unwrap_or_default();
            assert!(again.contains("\"version\": \"1.2.0+2\""), "{again}");
            let both = only_setting_changed(BEFORE, &again);
            assert_eq!(both, None, "two settings, two versions on");
        }
    }

    #[test]
    fn a_setting_is_taken_back_to_what_its_author_wrote() {
        let with = set(BEFORE, "evidence", "warn").unwrap_or_default();
        let without = set(&with, "evidence", "default").unwrap_or_default();
        assert_eq!(without, BEFORE.replace("1.2.0", "1.2.0+2"));
        let set = set(BEFORE, "limits.rounds.of review", "9").unwrap_or_default();
        let back = Assignment::new("limits.rounds.of review", "default");
        let back = back.map(|back| back.or_as_in(BEFORE).applied(&set));
        assert_eq!(back, Ok(Ok(Some(BEFORE.replace("1.2.0", "1.2.0+2")))));
    }

    #[test]
    fn what_is_no_setting_or_no_value_of_it_is_refused() {
        for key in [
            "",
            "agents",
            "evidence.",
            "limits.rounds.",
            "evidence_policy",
        ] {
            let error = Assignment::new(key, "1").map(drop);
            assert_eq!(error, Err(SettingError::Key(key.to_owned())));
        }
        for (key, now) in [
            ("leases", "time.lease_seconds"),
            ("limits.lease_seconds", "time.lease_seconds"),
            ("limits.retry.max_retries", "retry"),
            ("budgets.cost.team", "limits.budgets.cost.team"),
        ] {
            assert_eq!(
                Assignment::new(key, "1"),
                Assignment::new(now, "1"),
                "{key}"
            );
        }
        for (key, value) in [
            ("evidence", "on"),
            ("time.lease_seconds", "-1"),
            ("retry", "1.5"),
            ("limits.retry.runs.EXIT", "sometimes"),
            ("requirements.seen", "yes"),
            ("limits.on_record", "limits,"),
        ] {
            assert!(Assignment::new(key, value).is_err(), "{key} {value}");
        }
        for setting in &SETTINGS {
            assert!(!setting.about.is_empty() && !setting.takes().is_empty());
        }
    }

    #[test]
    fn a_name_that_a_list_lacks_is_not_added_to_it() {
        for text in [BEFORE, "{\"version\": \"1\"}"] {
            for (key, value) in [
                ("consistency.three", "off"),
                ("limits.rounds.x", "1"),
                ("requirements.heard", "true"),
            ] {
                let applied = Assignment::new(key, value).map(|a| a.applied(text));
                let missing = SettingError::Missing(key.to_owned());
                assert_eq!(applied, Ok(Err(missing)), "{text}");
            }
        }
        let error =
            Assignment::new("time.lease_seconds", "9").map(|a| a.applied("{\"a\": 1, \"a\": 2}"));
        assert!(matches!(error, Ok(Err(SettingError::Edit(_)))));
    }

    #[test]
    fn a_new_version_keeps_what_was_set_and_nothing_else() {
        let set = set(BEFORE, "evidence", "enforce").unwrap_or_default();
        let keys = BTreeSet::from(["evidence".to_owned()]);
        let new = BEFORE.replace("1.2.0", "2.0.0").replace("60", "90");
        let (text, kept) = keep_settings(&keys, &set, &new).unwrap_or_default();
        assert_eq!(kept, [("evidence".to_owned(), "enforce".to_owned())]);
        assert!(text.contains("\"version\": \"2.0.0+1\""), "{text}");
        assert!(text.contains("\"lease_seconds\": 90"), "{text}");
        let again = keep_settings(&keys, &text, &new).unwrap_or_default();
        assert_eq!(
            again,
            (text, kept),
            "the same version again changes nothing"
        );
        let raised = new.replace("2.0.0", "2.1.0");
        let (text, _) = keep_settings(&keys, &again.0, &raised).unwrap_or_default();
        assert_eq!(
            text,
            again.0.replace("2.0.0+1", "2.1.0+1"),
            "other files may have changed"
        );
        let rule = BTreeSet::from(["consistency.two".to_owned()]);
        let without = new.replace("\"two\"", "\"three\"");
        let lost = keep_settings(&rule, BEFORE, &without);
        assert_eq!(
            lost,
            Err(SettingError::Missing("consistency.two".to_owned()))
        );
        assert!(has_settings("2.0.0+1") && !has_settings("2.0.0+b") && !has_settings("2.0.0"));
    }

    #[test]
    fn versions_count_what_was_set_here() {
        for (version, next) in [
            ("1.2.0", "1.2.0+1"),
            ("1.2.0+9", "1.2.0+10"),
            ("1+b", "1+b+1"),
        ] {
            assert_eq!(next_version(version), next);
        }
    }
}
