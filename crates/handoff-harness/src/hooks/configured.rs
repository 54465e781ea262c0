//! Hooks that git takes from its configuration, since version 2.54:
//! `hook.<name>.event` and `hook.<name>.command` (git-hook(1)).

use handoff_git::{Setting, Version};

use super::Hook;

/// The first version of git that has them.
pub(super) const SINCE: Version = Version {
    major: 2,
    minor: 54,
};

/// A name for the hook, which may not be the event's.
fn name(hook: Hook) -> String {
    format!("handoff-{hook}")
}

/// The section that it is configured in.
pub(super) fn section(hook: Hook) -> String {
    format!("hook.{}", name(hook))
}

/// What git runs, with the hook's arguments added.
pub(super) fn command(hook: Hook) -> String {
    let call = format!("git-handoff hook {hook}");
    match hook {
        // Git tells of every phase; a ref can be kept from moving in one of them only.
        Hook::ReferenceTransaction => format!("test \"$1\" != prepared || {call}"),
        _ => call,
    }
}

/// What the configuration says of a hook.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Configured {
    /// The command of our section.
    pub(super) command: Option<String>,
    /// Whether the section names the hook's event.
    pub(super) has_event: bool,
    /// Where it is switched off, by which setting.
    pub(super) disabled: Option<String>,
}

impl Configured {
    /// Reads it from what is configured, in git's order.
    pub(super) fn read(hook: Hook, settings: &[Setting]) -> Self {
        let mut found = Self::default();
        let section = section(hook);
        for setting in settings {
            let value = setting.value.as_deref();
            // Git has these in lower case.
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

    /// Says whether there is anything of ours.
    pub(super) fn is_there(&self) -> bool {
        self.command.is_some() || self.has_event
    }

    /// Says whether it is as this version writes it.
    pub(super) fn is_current(&self, hook: Hook) -> bool {
        self.has_event && self.command.as_deref() == Some(&command(hook))
    }
}
