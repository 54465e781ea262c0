//! Checks whether the user's own lines let a failing call stop git.

use std::path::Path;

use handoff::base::finding::{Finding, FindingCode};

use super::faults::{at, early_exit};
use super::{Hook, block};

/// Why no call in a script can stop git; `None` if one can.
pub(super) fn fault(hook: Hook, path: &Path, bytes: &[u8]) -> Option<Finding> {
    let text = String::from_utf8_lossy(bytes);
    let end = block::end_of(&text);
    let mut first = None;
    for (line, number) in text.lines().zip(1..) {
        let Some(rest) = hook.call_in(line) else {
            continue;
        };
        let fault = match end.filter(|end| *end < number) {
            Some(end) => early_exit(path, end, "the lines that call the program"),
            None if is_ignored(rest) => {
                let text = "the exit code of the call is ignored, so it can't stop git";
                let fix = "take the `||` and what follows out of the line, or write `|| exit 1`";
                at(FindingCode::HookIgnored, path, text)
                    .at(number, 1)
                    .fix(fix)
            }
            None => return None,
        };
        first.get_or_insert(fault);
    }
    first
}

/// Whether the exit code of the call on a line is ignored.
fn is_ignored(rest: &str) -> bool {
    rest.split("||").skip(1).any(|then| {
        let then = then.trim_start();
        let end = then.find([';', '#', '&', '|', '}', ')']);
        let words = then[..end.unwrap_or(then.len())].split_whitespace();
        let words: Vec<&str> = words.take(2).collect();
        matches!(words[..], ["true" | ":" | "/bin/true", ..] | ["exit", "0"])
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::fault;
    use crate::hooks::Hook;

    #[test]
    fn calls_that_stop_nothing_are_told() {
        let code = |lines: &str| {
            let text = format!("#!/bin/sh\n{lines}\n");
            let found = fault(Hook::PreCommit, Path::new("hook"), text.as_bytes());
            found.map(|found| (found.code.as_str(), found.line))
        };
        let call = "git handoff hook pre-commit \"$@\"";
        for (lines, found) in [
            (
                format!("exit 0\n{call}"),
                Some(("hook.early_exit", Some(2))),
            ),
            (
                format!("exec make check\n{call}"),
                Some(("hook.early_exit", Some(2))),
            ),
            (format!("{call} || true"), Some(("hook.ignored", Some(2)))),
            (format!("{call} || :"), Some(("hook.ignored", Some(2)))),
            (
                format!("if {call} || :; then a; fi"),
                Some(("hook.ignored", Some(2))),
            ),
            (
                format!("a\n{call} >&2 || exit 0 # never"),
                Some(("hook.ignored", Some(3))),
            ),
            (format!("{call}\n{call} || true"), None),
            (format!("{call} || true\n{call}"), None),
            (format!("{call} || exit 1"), None),
            (format!("{call} || {{ echo no; exit 1; }}"), None),
            (format!("test \"$1\" || exit 0\nexec {call}\nexit 0"), None),
            (format!("a || true; {call}"), None),
            (format!("{call} || truest"), None),
        ] {
            assert_eq!(code(&lines), found, "{lines}");
        }
    }
}
