//! Consents: what a person must allow in a harness's own settings before the harness uses the
//! installed files.

use std::path::Path;

use handoff::base::text::without_mark;
use handoff::git::read_regular;
use serde::Deserialize;
use serde_json::Value;

use super::filled;

/// The placeholder for the worktree or a parent folder.
const ROOT: &str = "{{root}}";

/// A permission that a person must give.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Consent {
    /// What does not work without it.
    pub(super) text: String,
    /// How to give it.
    pub(super) fix: String,
    /// Whether only an installed MCP server needs it.
    #[serde(default)]
    pub(super) server: bool,
    /// The settings that give it; any one suffices.
    any: Vec<Setting>,
}

/// A setting in a harness's file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Setting {
    /// The file, in the worktree or the home folder.
    file: String,
    /// The keys that lead to the value. `{{root}}` matches the worktree or a parent folder, and a
    /// trailing `*` any suffix.
    at: Vec<String>,
    /// The value, or one of its elements, which may be `{{root}}` too; any value if omitted.
    is: Option<Value>,
}

impl Consent {
    /// Whether it was given for this worktree.
    pub(super) fn is_given(&self, root: &Path, home: Option<&Path>) -> bool {
        self.any.iter().any(|setting| setting.is_set(root, home))
    }
}

impl Setting {
    fn is_set(&self, root: &Path, home: Option<&Path>) -> bool {
        let file = match (self.file.strip_prefix("~/"), home) {
            (Some(rest), Some(home)) => home.join(rest),
            (Some(_), None) => return false,
            (None, _) => root.join(&self.file),
        };
        let Some(config) = read(&file) else {
            return false;
        };
        root.ancestors().any(|folder| {
            let folder = folder.to_string_lossy();
            let at = self.at.iter().map(|key| key.replace(ROOT, &folder));
            let found = at.fold(vec![&config], |values, key| {
                let values = values.into_iter();
                values.flat_map(|value| members(value, &key)).collect()
            });
            let is = self.is.as_ref().map(|is| filled(is, ROOT, &folder));
            found.into_iter().any(|value| match (&is, value) {
                (None, _) => true,
                (Some(own), Value::Array(items)) => items.contains(own),
                (Some(own), value) => value == own,
            })
        })
    }
}

/// The members of a value that match a key.
fn members<'a>(value: &'a Value, key: &str) -> Vec<&'a Value> {
    match (key.strip_suffix('*'), value) {
        (Some(prefix), Value::Object(members)) => {
            let named = members.iter().filter(|(name, _)| name.starts_with(prefix));
            named.map(|(_, value)| value).collect()
        }
        _ => value.get(key).into_iter().collect(),
    }
}

/// Reads a harness's file; `None` if it can't be read.
fn read(file: &Path) -> Option<Value> {
    let text = String::from_utf8(without_mark(&read_regular(file).ok()?).to_vec()).ok()?;
    if file.extension().is_some_and(|ending| ending == "toml") {
        return toml::from_str(&text).ok();
    }
    // Some files begin with comment lines.
    let lines = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"));
    serde_json::from_str(&lines.collect::<Vec<_>>().join("\n")).ok()
}
