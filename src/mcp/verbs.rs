//! The commands that are tools, and their properties that clap does not know.

/// A tool's effect on the ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// It changes nothing.
    Reads,
    /// It writes; the same call again changes nothing more, and is no error.
    WritesOnce,
    /// It writes.
    Writes,
}

/// A command that is a tool.
#[derive(Debug)]
pub(super) struct Verb {
    /// Its words on the command line.
    pub(super) words: &'static [&'static str],
    pub(super) effect: Effect,
    /// The arguments that are useless here, by clap's names.
    without: &'static [&'static str],
    /// The argument that is replaced by a contract's text.
    pub(super) contract: Option<&'static str>,
    /// The value of an argument that no call names.
    pub(super) preset: Option<(&'static str, &'static str)>,
}

impl Verb {
    const fn new(words: &'static [&'static str], effect: Effect) -> Self {
        Self {
            words,
            effect,
            without: &[],
            contract: None,
            preset: None,
        }
    }

    const fn reads(words: &'static [&'static str]) -> Self {
        Self::new(words, Effect::Reads)
    }

    const fn writes(words: &'static [&'static str]) -> Self {
        Self::new(words, Effect::Writes)
    }

    const fn once(words: &'static [&'static str]) -> Self {
        Self::new(words, Effect::WritesOnce)
    }

    const fn without(mut self, arguments: &'static [&'static str]) -> Self {
        self.without = arguments;
        self
    }

    const fn takes(mut self, argument: &'static str) -> Self {
        self.contract = Some(argument);
        self
    }

    const fn preset(mut self, argument: &'static str, value: &'static str) -> Self {
        self.preset = Some((argument, value));
        self
    }

    /// The tool's name.
    pub(super) fn name(&self) -> String {
        self.words.join("_")
    }

    /// Whether one of clap's arguments is one of the tool's. Global options except working offline
    /// are left out, and so are options for the output.
    pub(super) fn has(&self, argument: &clap::Arg) -> bool {
        let id = argument.get_id().as_str();
        let is_everywhere = argument.is_global_set() && id != "offline";
        !is_everywhere && !self.without.contains(&id)
    }

    /// Whether it waits for other agents, so that other calls must not wait for it.
    pub(super) fn waits(&self) -> bool {
        self.preset.is_some()
    }
}

/// The tools, in the order in which an agent needs them.
pub(super) const VERBS: &[Verb] = &[
    Verb::reads(&["prime"]).without(&["quiet"]),
    Verb::reads(&["inbox"]).without(&["limit"]),
    Verb::writes(&["claim"]),
    Verb::reads(&["new"]).without(&["set"]),
    Verb::reads(&["check"]).takes("files").without(&["format"]),
    Verb::once(&["send"])
        .takes("file")
        .without(&["edit", "format", "usage"]),
    Verb::writes(&["extend"]),
    Verb::writes(&["complete"]).without(&["usage"]),
    Verb::writes(&["fail"]),
    Verb::writes(&["block"]).without(&["usage"]),
    Verb::writes(&["reject"]),
    Verb::writes(&["cancel"]),
    Verb::writes(&["answer"]),
    Verb::writes(&["retry"]),
    Verb::writes(&["reassign"]),
    Verb::writes(&["reopen"]),
    Verb::writes(&["annotate"]).without(&["usage"]),
    Verb::writes(&["restore"]),
    Verb::reads(&["status"]),
    Verb::reads(&["show"]).without(&["contract"]),
    Verb::reads(&["context"]),
    Verb::reads(&["list"]).without(&["archived"]),
    Verb::reads(&["log"]),
    Verb::writes(&["next"]),
    Verb::reads(&["wait"])
        .without(&["remote", "poll"])
        .preset("timeout", "50s"),
    Verb::reads(&["verify"]).without(&["accept_rewritten", "format"]),
    Verb::reads(&["gate"]).without(&["format", "named", "policy", "protocol", "signed"]),
    Verb::reads(&["graph"]).without(&["format"]),
    Verb::reads(&["metrics"]).without(&["format", "output"]),
    Verb::reads(&["alerts"]).without(&["format"]),
    Verb::once(&["reap"]),
    Verb::once(&["sync"]),
    Verb::once(&["fetch"]).without(&["repair", "shallow"]),
    Verb::reads(&["refused", "list"]),
    Verb::reads(&["refused", "show"]),
    Verb::writes(&["refused", "retry"]),
    Verb::reads(&["protocol", "list"]),
    Verb::reads(&["protocol", "show"]),
    Verb::reads(&["document", "list"]),
    Verb::reads(&["document", "show"]),
    Verb::reads(&["explain"]),
];

/// The tool of this name.
pub(super) fn named(name: &str) -> Option<&'static Verb> {
    VERBS.iter().find(|verb| verb.name() == name)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::{Effect, VERBS};
    use crate::Cli;
    use crate::mcp::schema::command;

    #[test]
    fn what_a_tool_is_said_to_do_is_what_its_command_does() {
        let all = crate::command();
        for verb in VERBS {
            let command = command(&all, verb).unwrap_or_else(|| panic!("{verb:?} is no command"));
            let known = |id: &str| command.get_arguments().any(|a| a.get_id().as_str() == id);
            let named = verb.without.iter().chain(&verb.contract);
            let preset = verb.preset.iter().map(|(id, _)| id);
            for id in named.chain(preset) {
                assert!(known(id), "{} has no {id}", verb.name());
            }
            let needed = command.get_arguments().filter(|a| a.is_required_set());
            let mut line = vec!["git-handoff".to_owned()];
            line.extend(verb.words.iter().map(|word| (*word).to_owned()));
            for argument in needed {
                line.extend(argument.get_long().map(|long| format!("--{long}")));
                line.push("1".to_owned());
            }
            // Some need one of several arguments, which clap does not say of any of them.
            if ["claim", "gate", "graph", "send", "wait"].contains(&verb.words[0]) {
                line.push("1".to_owned());
            }
            let parsed = crate::Cli::try_parse_from(&line);
            let parsed: Cli = parsed.unwrap_or_else(|error| panic!("{line:?}: {error}"));
            if parsed.command.is_some_and(|command| command.only_reads()) {
                assert_eq!(verb.effect, Effect::Reads, "{}", verb.name());
            }
        }
    }
}
