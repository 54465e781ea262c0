//! The commands that are tools, with properties that clap does not know.

use clap::ValueEnum;

/// Which tools a server has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ToolSet {
    /// What an agent calls that takes work over, does it and hands it on
    #[default]
    Worker,
    /// Those of a worker, and what an agent calls that leads others
    Orchestrator,
    /// Those that change nothing
    Read,
    /// Every tool
    All,
}

impl ToolSet {
    /// Its name on the command line.
    pub fn name(self) -> String {
        let value = self.to_possible_value();
        value.map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

/// The kind of agent that needs a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum For {
    Workers,
    Leads,
    Others,
}

/// A tool's effect on the ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It changes nothing.
    Reads,
    /// It writes, and is idempotent.
    WritesOnce,
    /// It writes.
    Writes,
}

/// A command that is a tool.
#[derive(Debug)]
pub struct Verb {
    /// The command's words.
    pub words: &'static [&'static str],
    pub effect: Effect,
    whom: For,
    /// The command's arguments that the tool does not have, by clap's names.
    pub without: &'static [&'static str],
    /// The argument that `contract` replaces.
    pub contract: Option<&'static str>,
    /// An argument with a fixed value, which calls can't set.
    pub preset: Option<(&'static str, &'static str)>,
}

impl Verb {
    const fn new(words: &'static [&'static str], effect: Effect) -> Self {
        Self {
            words,
            effect,
            whom: For::Others,
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

    const fn worker(mut self) -> Self {
        self.whom = For::Workers;
        self
    }

    const fn lead(mut self) -> Self {
        self.whom = For::Leads;
        self
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

    /// The tool's name, with a prefix that tells it from other servers' tools.
    pub fn name(&self) -> String {
        format!("{PREFIX}{}", self.words.join("_"))
    }

    /// Whether the tool is in this set.
    pub fn is_in(&self, set: ToolSet) -> bool {
        match set {
            ToolSet::Worker => self.whom == For::Workers,
            ToolSet::Orchestrator => self.whom != For::Others,
            ToolSet::Read => self.effect == Effect::Reads,
            ToolSet::All => true,
        }
    }

    /// Whether the tool has this argument of its command. Output options are excluded, and so are
    /// global options except `--offline`.
    pub fn has(&self, argument: &clap::Arg) -> bool {
        let id = argument.get_id().as_str();
        let is_everywhere = argument.is_global_set() && id != "offline";
        !is_everywhere && !self.without.contains(&id)
    }

    /// Whether it waits for other agents, so that other calls must not queue behind it.
    pub fn waits(&self) -> bool {
        self.preset.is_some()
    }
}

/// The tools, in the order in which an agent needs them.
pub const VERBS: &[Verb] = &[
    Verb::reads(&["prime"]).worker().without(&["quiet"]),
    Verb::reads(&["inbox"]).lead(),
    Verb::writes(&["claim"]).worker(),
    Verb::reads(&["new"]).worker().without(&["set"]),
    Verb::reads(&["check"]).worker().takes("files").without(&[
        "allow_secret",
        "answers",
        "contract_only",
        "coverage",
        "format",
        "kind",
        "set",
        "tests",
        "to",
        "token",
    ]),
    Verb::once(&["send"])
        .worker()
        .takes("file")
        .without(&["edit", "format", "usage"]),
    Verb::writes(&["extend"]).worker(),
    Verb::writes(&["complete"]).worker().without(&["usage"]),
    Verb::writes(&["fail"]).worker().without(&["run_failure"]),
    Verb::writes(&["block"]).worker().without(&["usage"]),
    Verb::writes(&["reject"]).lead(),
    Verb::writes(&["cancel"])
        .lead()
        .without(&["query", "all", "duplicate_of"]),
    Verb::writes(&["answer"]).worker().without(&["_message"]),
    Verb::writes(&["retry"]).lead().without(&["query"]),
    Verb::writes(&["reassign"]).lead().without(&["query"]),
    Verb::writes(&["pause"])
        .lead()
        .without(&["query", "all", "of_agent", "protocol", "now"]),
    Verb::writes(&["reopen"]).lead(),
    Verb::writes(&["annotate"]).worker().without(&["usage"]),
    Verb::writes(&["restore"]).lead(),
    Verb::reads(&["status"]).lead().without(&["offline"]),
    Verb::reads(&["show"])
        .worker()
        .without(&["contract", "offline"]),
    Verb::reads(&["context"]).worker(),
    Verb::reads(&["list"]).lead().without(&[
        "archived", "person", "label", "title", "on", "offline", "priority", "query",
    ]),
    Verb::reads(&["log"]).lead().without(&["offline"]),
    Verb::writes(&["next"]).lead(),
    Verb::reads(&["wait"])
        .worker()
        .without(&["remote", "poll"])
        .preset("timeout", "50s"),
    Verb::reads(&["verify"]).without(&[
        "accept_rewritten",
        "format",
        "quarantine",
        "with_later",
        "reason",
    ]),
    Verb::reads(&["gate"]).lead().without(&[
        "format",
        "named",
        "offline",
        "policy",
        "protocol",
        "pull_request",
        "signed",
    ]),
    Verb::reads(&["graph"]).without(&["format"]),
    Verb::reads(&["metrics"]).without(&["format", "output"]),
    Verb::reads(&["alerts"]).lead().without(&["format"]),
    Verb::once(&["reap"]).lead().without(&["handoffs"]),
    Verb::once(&["sync"]).lead(),
    Verb::once(&["fetch"]).without(&["from", "give_up", "repair", "shallow"]),
    Verb::reads(&["refused", "list"]),
    Verb::reads(&["refused", "show"]),
    Verb::writes(&["refused", "retry"]),
    Verb::reads(&["protocol", "list"]).without(&["limit", "after"]),
    Verb::reads(&["protocol", "show"]),
    Verb::reads(&["document", "list"]).without(&["limit", "after"]),
    Verb::reads(&["document", "show"]),
    Verb::reads(&["explain"]).worker(),
];

/// The prefix of tools' names.
const PREFIX: &str = "handoff_";

/// The tools of a set.
pub fn of(set: ToolSet) -> impl Iterator<Item = &'static Verb> {
    VERBS.iter().filter(move |verb| verb.is_in(set))
}

/// The names of the tools that wait for other agents.
pub fn waiting() -> impl Iterator<Item = String> {
    let all = VERBS.iter().filter(|verb| verb.waits());
    all.map(Verb::name)
}

/// Finds a tool by name in a set.
///
/// # Errors
/// Why it was not found.
pub fn named(name: &str, set: ToolSet) -> Result<&'static Verb, String> {
    let whole = |name: &str| VERBS.iter().find(|verb| verb.name() == name);
    match whole(name) {
        Some(verb) if verb.is_in(set) => Ok(verb),
        Some(verb) => Err(format!(
            "this server has the tools of `--tools {}`, and {name} is not one of them: `git handoff {}` is its command for a shell",
            set.name(),
            verb.words.join(" "),
        )),
        None => Err(match whole(&format!("{PREFIX}{name}")) {
            Some(verb) => format!("unknown tool: {name}; it is called {}", verb.name()),
            None => format!("unknown tool: {name}"),
        }),
    }
}

/// The tool of a set for a command's first words, and the remaining words.
pub fn of_words(words: &[String], set: ToolSet) -> Option<(&'static Verb, &[String])> {
    of(set).find_map(|verb| {
        let (own, rest) = words.split_at_checked(verb.words.len())?;
        (own == verb.words).then_some((verb, rest))
    })
}
