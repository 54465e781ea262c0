//! The first word of a command line: a command, an alias, or an issue.

use std::ffi::OsString;

use handoff::base::ids::{HandoffId, IssueKey};
use handoff::base::text::quoted;
use handoff::git::Repository;

use crate::args::reference::{plain, repository_in};
use crate::failure::Failure;

/// Aliases of commands.
const ALIASES: [(&str, &str); 5] = [
    ("comment", "annotate"),
    ("done", "complete"),
    ("ls", "list"),
    ("redrive", "retry"),
    ("take", "claim"),
];

/// Common guesses, and the commands that they may mean.
const ANSWERS: [(&str, &str); 11] = [
    (
        "close",
        "`git handoff complete ID` finishes a handoff; `git handoff cancel ISSUE --reason WHY` gives up an issue",
    ),
    (
        "create",
        "`git handoff send --to AGENT --issue N` opens an issue; `git handoff init` starts the ledger",
    ),
    (
        "finish",
        "`git handoff send --to AGENT` hands on what you hold; `git handoff complete ID` finishes it without a contract",
    ),
    (
        "handoff",
        "leave the word out: `git handoff send --to AGENT` hands work on",
    ),
    (
        "pull",
        "`git handoff fetch` brings the remote's ledger; `git handoff sync` also sends this one",
    ),
    (
        "push",
        "`git handoff sync` sends this clone's ledger, after it brought the remote's",
    ),
    (
        "rejected",
        "`git handoff refused` lists what a sync refused",
    ),
    (
        "run",
        "`git handoff work --as AGENT -- COMMAND` runs an agent for what waits; `git handoff demo` shows a whole workflow",
    ),
    (
        "start",
        "`git handoff init` starts the ledger; `git handoff claim --next` takes up work",
    ),
    (
        "undo",
        "what is recorded stays: `git handoff annotate ID --note TEXT` corrects it, `git handoff cancel ID --reason WHY` withdraws it",
    ),
    (
        "update",
        "`git handoff extend ID --progress TEXT` reports progress; `git handoff protocol update` updates a protocol",
    ),
];

/// The global options that take a value of their own.
const VALUED: [&str; 5] = ["-C", "--as", "--worker", "--branch", "--color"];

/// The index of the first word that is neither an option nor an option's value.
fn place(arguments: &[OsString]) -> Option<usize> {
    let mut at = 1;
    while let Some(argument) = arguments.get(at) {
        match argument.to_str() {
            Some(option) if VALUED.contains(&option) => at += 2,
            Some(option) if option.starts_with('-') && option.len() > 1 => at += 1,
            _ => return Some(at),
        }
    }
    None
}

/// Replaces an alias by its command. An issue alone stands for `status`, a handoff for `show`.
pub(crate) fn replaced(arguments: &mut Vec<OsString>) {
    let Some(at) = place(arguments) else { return };
    let Some(word) = arguments[at].to_str() else {
        return;
    };
    if let Some((_, own)) = ALIASES.iter().find(|(alias, _)| *alias == word) {
        arguments[at] = (*own).into();
        return;
    }
    let is_written_as_one = word.starts_with(|c: char| c == '#' || c.is_ascii_digit());
    if !is_written_as_one && plain(word) == word {
        return;
    }
    let command = if plain(word).parse::<IssueKey>().is_ok() {
        "status"
    } else if plain(word).parse::<HandoffId>().is_ok() {
        "show"
    } else {
        return;
    };
    arguments.insert(at, command.into());
}

/// Refuses the URL of another repository's issue, if any remote is on such a site: the number in it
/// means another issue here.
///
/// # Errors
/// A usage [`Failure`] that names the repository.
pub(crate) fn ensure_own(arguments: &[OsString]) -> Result<(), Failure> {
    let words: Vec<&str> = arguments
        .iter()
        .filter_map(|argument| argument.to_str())
        .collect();
    let is_value = |before: &str| before.starts_with("--") && before != "--issue";
    let pairs = words.windows(2).filter(|pair| !is_value(pair[0]));
    let mut named = pairs.filter_map(|pair| repository_in(pair[1])).peekable();
    if named.peek().is_none() {
        return Ok(());
    }
    let Ok(repository) = Repository::open_here() else {
        return Ok(());
    };
    let addresses = repository.remotes().into_iter();
    let addresses = addresses.filter_map(|name| repository.remote_url(&name));
    let hosted: Vec<String> = addresses
        .filter(|address| address.contains("://") || address.contains('@'))
        .map(|address| {
            address
                .trim_end_matches('/')
                .trim_end_matches(".git")
                .to_owned()
        })
        .collect();
    let has = |own: &String, path: &str| {
        let host = own.strip_suffix(path);
        host.is_some_and(|host| host.ends_with(['/', ':']))
    };
    let is_own = |path: &&str| hosted.is_empty() || hosted.iter().any(|own| has(own, path));
    match named.find(|path| !is_own(path)) {
        None => Ok(()),
        Some(other) => {
            let text = format!("this is an issue of another repository, {}", quoted(other));
            let advice = "give the issue's number alone if it is one of this repository";
            Err(Failure::usage(text).hint(advice))
        }
    }
}

/// The advice for an unknown word, if it is a common guess.
pub(crate) fn answer(arguments: &[OsString]) -> Option<(&str, &'static str)> {
    let word = arguments.get(place(arguments)?)?.to_str()?;
    let (_, command) = ANSWERS.iter().find(|(tried, _)| *tried == word)?;
    Some((word, command))
}

/// The first commands to learn, in the order of use.
const FIRST: (&str, &[&str]) = (
    "Commands",
    &[
        "init",
        "demo",
        #[cfg(feature = "agents")]
        "prime",
        "inbox",
        "claim",
        "send",
        "block",
        "fail",
        "answer",
        "status",
        #[cfg(feature = "board")]
        "board",
        #[cfg(feature = "work")]
        "work",
        "verify",
        "protocol",
        "uninstall",
    ],
);

/// The commands that the short help lists.
pub(crate) fn first(root: &clap::Command) -> String {
    listed(root, [FIRST])
}

/// The commands of these groups, one line each.
pub(crate) fn listed<'g>(
    root: &clap::Command,
    groups: impl IntoIterator<Item = (&'g str, &'g [&'g str])>,
) -> String {
    let style = root.get_styles();
    let (header, literal) = (style.get_header(), style.get_literal());
    let mut text = String::new();
    for (group, names) in groups {
        text += &format!("{header}{group}:{header:#}\n");
        for name in names {
            let about = root
                .find_subcommand(name)
                .and_then(clap::Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            text += &format!("  {literal}{name:<11}{literal:#}  {about}\n");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::{ALIASES, ANSWERS, FIRST, answer, replaced};
    use crate::commands::GROUPS;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn other_names_become_the_command() {
        for (given, meant) in [
            ("git-handoff ls", "git-handoff list"),
            (
                "git-handoff --as a -C . done 7.1",
                "git-handoff --as a -C . complete 7.1",
            ),
            ("git-handoff #13", "git-handoff status #13"),
            ("git-handoff 13.2 --json", "git-handoff show 13.2 --json"),
            (
                "git-handoff https://x.org/o/r/issues/13",
                "git-handoff status https://x.org/o/r/issues/13",
            ),
            ("git-handoff --as ls", "git-handoff --as ls"),
            ("git-handoff send ls", "git-handoff send ls"),
            ("git-handoff", "git-handoff"),
        ] {
            let mut line = words(given);
            replaced(&mut line);
            assert_eq!(line, words(meant));
        }
    }

    #[test]
    fn a_word_has_one_meaning() {
        let commands: Vec<&str> = GROUPS
            .iter()
            .flat_map(|(_, names)| names.iter().copied())
            .collect();
        let others = ALIASES.iter().chain(&ANSWERS).map(|(word, _)| word);
        for word in others {
            assert!(!commands.contains(word), "{word} is a command");
        }
        assert!(ALIASES.iter().all(|(_, own)| commands.contains(own)));
        // Some are those of rooms.
        let first = if cfg!(feature = "all") { 15 } else { 12 };
        assert!(FIRST.1.len() == first && FIRST.1.iter().all(|name| commands.contains(name)));
        assert_eq!(
            answer(&words("git-handoff start x")).map(|(word, _)| word),
            Some("start")
        );
        assert_eq!(answer(&words("git-handoff send start")), None);
    }
}
