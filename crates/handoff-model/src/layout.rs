//! The paths of the ledger's tree.

use handoff_base::ids::{AgentName, HandoffId, IssueKey};
use handoff_contract::Format;
use handoff_protocol::{Event, SIGNERS};

/// The file that describes the ledger.
pub const MANIFEST: &str = "ledger.json";
/// The page for people who open the branch in a browser.
pub const README: &str = "README.md";
/// The folder of open handoffs: a folder for each agent, with an entry for each open handoff that
/// it has ([`crate::record::open_entry`]).
pub const OPEN: &str = "open";
/// The folder of ended handoffs that await an agent: a folder for each agent, with an entry for
/// each handoff.
pub const AWAITING: &str = "awaiting";
/// The folder of issues, with a folder for each.
pub const ISSUES: &str = "issues";
/// The folder with the index of archived issues, which are no longer in [`ISSUES`]
/// ([`crate::record::archive`]).
pub const ARCHIVED: &str = "archived";
/// The folder of spending per day ([`crate::record::spending`]).
pub const SPENT: &str = "spent";
/// The folder with a file for each paused issue, so that searching for work need not read issues.
pub const PAUSED: &str = "paused";
/// The folder of the protocols in force.
pub const PROTOCOLS: &str = "protocols";

/// An issue's folder, such as `issues/23/01/123` for 123.
///
/// The fan-out is the key's last two characters, then the two before them, in lower case, padded
/// with `0`. It spreads sequential numbers evenly: even with a million issues, no folder has more
/// than about a hundred entries, and a person can find an issue without a tool.
pub fn issue_folder(issue: &IssueKey) -> String {
    in_fan_out(ISSUES, issue, issue.as_str())
}

/// The path of a file in an issue's folder.
pub fn in_issue(issue: &IssueKey, name: &str) -> String {
    let mut path = issue_folder(issue);
    path.push('/');
    path += name;
    path
}

/// The path of a file of an issue in the fan-out of `top`.
fn in_fan_out(top: &str, issue: &IssueKey, name: &str) -> String {
    /// The usual length of a path within an issue's folder.
    const INSIDE: usize = 64;
    let digit = |from_end: usize| {
        let mut digits = issue.as_str().bytes().rev();
        char::from(digits.nth(from_end).unwrap_or(b'0').to_ascii_lowercase())
    };
    let mut path = String::with_capacity(top.len() + name.len() + INSIDE);
    path += top;
    path.extend(['/', digit(1), digit(0), '/', digit(3), digit(2), '/']);
    path += name;
    path
}

/// The issue whose folder has this path.
pub fn issue_at(path: &str) -> Option<IssueKey> {
    let key: IssueKey = path
        .strip_prefix(ISSUES)?
        .rsplit('/')
        .next()?
        .parse()
        .ok()?;
    (issue_folder(&key) == path).then_some(key)
}

/// The file in [`ARCHIVED`] that lists an archived issue, fanned out like the issues' folders:
/// `archived/23/01.jsonl` for 123.
pub fn archived_file(issue: &IssueKey) -> String {
    let mut path = in_fan_out(ARCHIVED, issue, "");
    path.pop();
    path + ".jsonl"
}

/// The file with an issue's state.
pub fn issue_file(issue: &IssueKey) -> String {
    in_issue(issue, "issue.json")
}

/// The file of a day's spending: `spent/2026-11-25.json`.
pub fn spent_file(day: &str) -> String {
    format!("{SPENT}/{day}.json")
}

/// The file of an issue's pause: `paused/123.json`.
pub fn paused_file(issue: &IssueKey) -> String {
    format!("{PAUSED}/{issue}.json")
}

/// The issue whose pause has this path.
pub fn paused_at(path: &str) -> Option<IssueKey> {
    let name = path.strip_prefix(PAUSED)?.strip_prefix('/')?;
    name.strip_suffix(".json")?.parse().ok()
}

/// The name of a handoff's record in its issue's folder.
pub fn record_name(number: u32) -> String {
    format!("{number:04}.json")
}

/// The number of the handoff whose record has this file name; 0 for the issue's file.
pub fn number_of(name: &str) -> Option<u32> {
    let stem = name.strip_suffix(".json")?;
    if stem == "issue" {
        return Some(0);
    }
    let number = stem.parse().ok().filter(|number| *number > 0)?;
    (record_name(number) == name).then_some(number)
}

/// The file with a handoff's record.
pub fn record_file(id: &HandoffId) -> String {
    in_issue(id.issue(), &record_name(id.number()))
}

/// For an event that saves a context: the word for it in the names of its folder and file, and the
/// option of `restore` that selects it.
fn keeping(event: Event) -> Option<(&'static str, &'static str)> {
    match event {
        Event::Fail => Some(("failure", "--attempt")),
        Event::Release => Some(("release", "--claim")),
        _ => None,
    }
}

/// The folder of the context that an event saves, in its issue's folder: `0002-failure/1` for the
/// first attempt, `0002-release/3` for the third claim (a release ends no attempt). `None` if the
/// event saves none.
pub fn kept_folder(number: u32, event: Event, count: u32) -> Option<String> {
    let (word, _) = keeping(event)?;
    Some(format!("{number:04}-{word}/{count}"))
}

/// The event whose context has a folder of this name, and the number of its attempt or claim.
fn kept_by(folder: &str) -> Option<(Event, u32)> {
    let mut parts = folder.rsplit('/');
    let (count, name) = (parts.next()?, parts.next()?);
    let (_, word) = name.rsplit_once('-')?;
    let mut events = [Event::Fail, Event::Release].into_iter();
    let event = events.find(|event| keeping(*event).is_some_and(|(known, _)| known == word))?;
    Some((event, count.parse().ok()?))
}

/// The file in such a folder that describes the context, such as `failure.json`.
pub fn kept_file(folder: &str) -> String {
    let word = kept_by(folder).and_then(|(event, _)| keeping(event));
    format!("{}.json", word.map_or("failure", |(word, _)| word))
}

/// The option of `restore` that selects the context in such a folder: `--attempt 1`, `--claim 3`.
pub fn kept_option(folder: &str) -> String {
    let known = kept_by(folder).and_then(|(event, count)| Some((keeping(event)?.1, count)));
    known.map_or_else(String::new, |(option, count)| format!("{option} {count}"))
}

/// Whether a path is the folder of a saved context.
pub fn is_kept_folder(path: &str) -> bool {
    let inside = |folder: &str| -> Option<String> {
        let (event, count) = kept_by(folder)?;
        let mut parts = folder.strip_prefix(ISSUES)?.split('/').skip(3);
        let key = parts.next()?.parse().ok()?;
        let number = parts.next()?.split_once('-')?.0.parse().ok()?;
        Some(in_issue(&key, &kept_folder(number, event, count)?))
    };
    inside(path).is_some_and(|known| known == path)
}

/// Whether a walk of the tree skips this folder's content: a saved context counts as one file, and
/// so does any folder that ledgers do not have, however large it is.
pub fn is_closed(path: &str) -> bool {
    let top = path.split('/').next().unwrap_or_default();
    let deepest = match top {
        ISSUES => 4,
        PROTOCOLS => 2,
        DOCUMENTS => 1,
        SPENT | PAUSED => 0,
        OPEN | AWAITING | ARCHIVED => 1,
        _ => return true,
    };
    path.matches('/').count() > deepest
}

/// Whether a folder is divided when it is large: that of one agent in [`OPEN`] or [`AWAITING`].
pub fn is_divided(path: &str) -> bool {
    let agent = path.split_once('/');
    agent.is_some_and(|(top, agent)| [OPEN, AWAITING].contains(&top) && !agent.contains('/'))
}

/// The file name of a handoff's contract in its issue's folder.
pub fn contract_name(number: u32, from: &AgentName, to: &AgentName, format: Format) -> String {
    format!("{number:04}-{from}-to-{to}.{}", format.extension())
}

/// The folder of documents shared by issues.
pub const DOCUMENTS: &str = "documents";

/// A document shared by a protocol's issues.
pub fn document(protocol: &str, name: &AgentName) -> String {
    format!("{DOCUMENTS}/{protocol}/{name}.json")
}

/// The definition's file name in a protocol's folder.
pub const DEFINITION: &str = "protocol.json";

/// A file of a protocol in force.
pub fn protocol_file(protocol: &str, file: &str) -> String {
    format!("{PROTOCOLS}/{protocol}/{file}")
}

/// Whether a path is one that decides something: commands read it, unlike the page for a browser.
pub fn is_read(path: &str) -> bool {
    let top = path.split('/').next().unwrap_or_default();
    path == MANIFEST || [OPEN, ISSUES, ARCHIVED, SPENT, PAUSED, PROTOCOLS, DOCUMENTS].contains(&top)
}

/// Whether this is a valid path in a protocol's folder.
pub fn is_protocol_file(path: &str) -> bool {
    let plain = |name: &str| {
        let allowed = |c: char| !c.is_control() && c != '\\' && c != '/';
        !name.is_empty() && !name.starts_with('.') && name.chars().all(allowed)
    };
    match path.split_once('/') {
        None => [DEFINITION, SIGNERS].contains(&path),
        Some((folder, name)) => ["schemas", "templates"].contains(&folder) && plain(name),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn issue_folders_fan_out_by_the_last_characters() {
        let folder = |key: &str| issue_folder(&key.parse().unwrap());
        assert_eq!(folder("7"), "issues/07/00/7");
        assert_eq!(folder("123"), "issues/23/01/123");
        assert_eq!(folder("98765"), "issues/65/87/98765");
        assert_eq!(folder("AB"), "issues/ab/00/AB");
    }

    #[test]
    fn archived_issues_are_listed_where_their_folders_were() {
        let key: IssueKey = "98765".parse().unwrap();
        assert_eq!(archived_file(&key), "archived/65/87.jsonl");
        assert_eq!(issue_at("issues/65/87/98765"), Some(key));
        for path in [
            "issues/65/87",
            "issues/65/87/98765/issue.json",
            "issues/65/86/98765",
            "open/65/87/98765",
            "98765",
        ] {
            assert_eq!(issue_at(path), None, "{path}");
        }
    }

    #[test]
    fn a_paused_issue_has_one_file() {
        let key: IssueKey = "98765".parse().unwrap();
        assert_eq!(paused_file(&key), "paused/98765.json");
        assert_eq!(paused_at("paused/98765.json"), Some(key));
        for path in [
            "paused/98765",
            "paused/a/98765.json",
            "98765.json",
            "paused",
        ] {
            assert_eq!(paused_at(path), None, "{path}");
        }
    }

    #[test]
    fn folders_of_contexts_are_told_from_all_others() {
        assert!(is_kept_folder("issues/23/01/123/0002-failure/1"));
        assert!(is_kept_folder("issues/23/01/123/0002-release/3"));
        let folder = kept_folder(2, Event::Release, 3).unwrap();
        assert_eq!(
            (&*kept_file(&folder), &*kept_option(&folder)),
            ("release.json", "--claim 3")
        );
        assert_eq!(kept_folder(2, Event::Block, 3), None);
        for path in [
            "",
            "issues",
            "issues/23/01/123/0002-failure",
            "issues/23/01/123/0002-failure/1/x",
            "issues/23/01/123/0002-failure/01",
            "issues/23/01/123/2-failure/1",
            "issues/23/01/124/0002-failure/1",
            "issues/23/01/123/0002-block/1",
            "issues/23/01/123/0002/1",
        ] {
            assert!(!is_kept_folder(path), "{path}");
        }
    }

    #[test]
    fn walks_end_where_a_ledger_ends() {
        for path in [
            "issues/23/01/123",
            "issues/23/01/123/0002-failure",
            "open/x",
            "archived/23",
            "protocols/a/schemas",
            "documents/a",
            "paused",
        ] {
            assert!(!is_closed(path), "{path}");
        }
        for path in [
            "issues/23/01/123/0002-failure/1",
            "issues/23/01/123/notes/more",
            "open/x/y",
            "archived/23/01",
            "protocols/a/schemas/b",
            "paused/7",
            "notes",
            "",
        ] {
            assert!(is_closed(path), "{path}");
        }
    }

    #[test]
    fn a_protocols_files_are_in_three_places() {
        for path in [
            "protocol.json",
            "allowed_signers",
            "schemas/a.schema.json",
            "templates/a b.xml",
        ] {
            assert!(is_protocol_file(path), "{path}");
        }
        for path in [
            "",
            "other.json",
            "schemas/",
            "schemas//a.json",
            "schemas/a/b.json",
            "templates/.git",
            "../a",
        ] {
            assert!(!is_protocol_file(path), "{path}");
        }
    }
}
