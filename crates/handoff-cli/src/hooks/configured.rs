//! Hooks in git's configuration, supported since git 2.54: `hook.<name>.event` and
//! `hook.<name>.command` (git-hook(1)).

use handoff::git::{Setting, Version};

use super::Hook;
use super::without_program::{self, FOUND};

/// The first git version that supports them.
pub(super) const SINCE: Version = Version {
    major: 2,
    minor: 54,
};

/// The hook's name in the configuration: git refuses the name of an event.
fn name(hook: Hook) -> String {
    format!("handoff-{hook}")
}

/// Its section in the configuration.
pub(super) fn section(hook: Hook) -> String {
    format!("hook.{}", name(hook))
}

/// The command that git runs with the hook's arguments appended: a function and its call.
pub(super) fn command(hook: Hook) -> String {
    // git runs the hook in every phase, but only one phase can refuse.
    let phase = match hook {
        Hook::ReferenceTransaction => "[ \"$1\" = prepared ] || exit 0\n",
        _ => "",
    };
    let input = if hook.reads_input() {
        "git_handoff_input=$(cat)\n"
    } else {
        ""
    };
    let or_else = without_program::lines(hook);
    format!(
        "git_handoff() {{\n{phase}if {FOUND}; then exec git-handoff hook {hook} \"$@\"; fi\n{input}{or_else}}}; git_handoff"
    )
}

/// A hook in the configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Configured {
    /// The command in our section.
    pub(super) command: Option<String>,
    pub(super) has_event: bool,
    /// The setting that disables it.
    pub(super) disabled: Option<String>,
}

impl Configured {
    /// Reads the settings, in git's order.
    pub(super) fn read(hook: Hook, settings: &[Setting]) -> Self {
        let mut found = Self::default();
        let section = section(hook);
        for setting in settings {
            let value = setting.value.as_deref();
            // git prints these keys in lower case.
            let key = setting.key.as_str();
            let of = |section: &str, variable: &str| key == format!("{section}.{variable}");
            if of(&section, "command") {
                found.command = value.map(str::to_owned);
            } else if of(&section, "event") {
                found.has_event = match value {
                    // An empty value resets the list.
                    Some("") | None => false,
                    Some(event) => found.has_event || event == hook.name(),
                };
            } else if of(&section, "enabled") || of(&format!("hook.{hook}"), "enabled") {
                let off = matches!(value, Some("false" | "no" | "off" | "0" | ""));
                if off {
                    found.disabled = Some(key.to_owned());
                } else if found.disabled.as_deref() == Some(key) {
                    found.disabled = None;
                }
            }
        }
        found
    }

    /// Whether any setting of our section exists.
    pub(super) fn is_there(&self) -> bool {
        self.command.is_some() || self.has_event
    }

    pub(super) fn is_current(&self, hook: Hook) -> bool {
        self.has_event && self.command.as_deref() == Some(&command(hook))
    }
}
