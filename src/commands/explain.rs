use clap::Args;
use handoff::base::codes::{self, ErrorCode, ExplainedCode};
use handoff::base::text::{continued, quoted};
use handoff::protocol::{Definition, Protocol, RunFailure};
use handoff::templates::{BUILT_IN, built_in};
use schemars::JsonSchema;
use serde::Serialize;

use crate::context::Context;
use crate::failure::Failure;
use crate::output::{Answer, Output};
use crate::view::{Look, columns};

/// The minimum similarity, from 0 to 1, of a code and its misspelling.
const ALIKE: f64 = 0.85;

/// The maximum number of issues searched for a code that an agent chose.
const MOST_ISSUES: usize = 10_000;

/// Explain an error, a finding or an exit code
///
/// Prints its cause, an example, and what to do about it. A prefix lists every code that starts
/// with it; without CODE, every code is listed. Knows the failure codes of the ledger's protocols too, or of
/// the built-in ones where there is no ledger, those of runs (`work`), and those that agents chose and the
/// ledger has on record. Needs no repository.
#[derive(Args)]
#[command(after_help = "Examples:
  git handoff explain lease_lost
  git handoff explain field.missing
  git handoff explain 5          (an exit code)
  git handoff explain TIMEOUT    (of a failure)
  git handoff explain evidence   (every code with this prefix)
  git handoff explain")]
pub(crate) struct Arguments {
    /// A code as it was printed, or a prefix of several
    #[arg(value_name = "CODE")]
    code: Option<String>,
}

impl Arguments {
    /// The arguments that name one code.
    pub(crate) fn of(code: String) -> Self {
        Self { code: Some(code) }
    }

    /// Runs the command.
    ///
    /// # Errors
    /// A [`Failure`] if there is no such code.
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        output.paged();
        let wanted = self.code.as_deref().unwrap_or_default();
        let mut found: Vec<_> = codes::all().filter(|c| c.code == wanted).collect();
        if found.is_empty() {
            found.extend(codes::all().filter(|c| c.code.starts_with(wanted)));
        }
        let is_listed = found.len() != 1;
        let own = OWN_FAILURES.iter().filter(|_| is_listed);
        let own = own.filter(|(code, ..)| code.starts_with(wanted));
        let mut failures: Vec<FailureCode> = own.map(FailureCode::own).collect();
        let definitions = definitions(context);
        for definition in definitions.iter().filter(|_| is_listed) {
            let known = definition.words.errors.iter();
            failures.extend(known.filter(|(code, _)| code.starts_with(wanted)).map(
                |(code, known)| FailureCode {
                    code: code.clone(),
                    protocol: Some(definition.name.to_string()),
                    cause: known.meaning.clone(),
                    cure: known.recovery.clone(),
                },
            ));
        }
        if is_listed {
            failures.extend(RunFailure::ALL.into_iter().map(FailureCode::of_run));
            failures.extend(definitions.iter().flat_map(FailureCode::of_types));
            failures.retain(|failure| failure.code.starts_with(wanted));
        }
        if failures.iter().any(|failure| failure.code == wanted) {
            failures.retain(|failure| failure.code == wanted);
        }
        if found.is_empty() && failures.is_empty() {
            failures.extend(in_record(context, wanted));
        }
        if found.is_empty() && failures.is_empty() {
            return Err(unknown(wanted));
        }
        output.answer(&ExplainView {
            codes: found,
            failures,
        })
    }
}

/// Failure codes that exist in any protocol, each with cause and cure.
const OWN_FAILURES: [(&str, &str, &str); 4] = [
    (
        "FAILED",
        "its agent gave no code",
        "read the message: `git handoff show ID`",
    ),
    (
        "TIMEOUT",
        "the lease ran out, or the time that the contract gives",
        "find out whether the agent still runs; then `git handoff next`",
    ),
    (
        "NOT_ACKNOWLEDGED",
        "its receiver did not claim it in the time that its route gives",
        "see that the receiver runs; then `git handoff next`",
    ),
    (
        "ROLE_VIOLATION",
        "its agent did what its role forbids",
        "read what it did: `git handoff show ID`; then `git handoff next`",
    ),
];

/// The protocols in force here, or the built-in ones where there is no ledger.
fn definitions(context: &Context) -> Vec<Definition> {
    let in_force = || -> Result<Vec<Definition>, Failure> {
        let repository = context.repository()?;
        let ledger = context.ledger(&repository)?;
        let tip = ledger.tip()?;
        let rules = tip.protocols()?.into_iter().map(|name| tip.rules(&name));
        let rules = rules.collect::<Result<Vec<_>, _>>()?;
        Ok(rules
            .iter()
            .map(|rules| rules.protocol().definition().clone())
            .collect())
    };
    in_force().unwrap_or_else(|_| {
        let read = |name: &&str| Protocol::load(built_in(name)?.file("protocol.json")?).ok();
        let built_in = BUILT_IN.iter().filter_map(read);
        built_in
            .map(|protocol| protocol.definition().clone())
            .collect()
    })
}

/// A code that an agent chose, from the first failure with it.
fn in_record(context: &Context, wanted: &str) -> Option<FailureCode> {
    let repository = context.repository().ok()?;
    let tip = context.ledger(&repository).ok()?.tip().ok()?;
    let issues = tip.issues_within(MOST_ISSUES).ok()?.into_iter();
    let records = issues.filter_map(|key| tip.issue(&key).ok()?.records().ok());
    records.flatten().find_map(|record| {
        let mut failures = record.transitions.iter().filter_map(|t| t.failure.as_ref());
        let failure = failures.find(|failure| failure.code == wanted)?;
        let show = format!("`git handoff show {}`", record.id);
        Some(FailureCode {
            code: wanted.to_owned(),
            protocol: Some(record.protocol.to_string()),
            cause: format!(
                "its agent's own word, of {}: {}",
                record.id, failure.message
            ),
            cure: match &failure.suggested_action {
                Some(action) => format!("{action}; {show} has the rest"),
                None => format!("read what it says: {show}"),
            },
        })
    })
}

/// A code that failures have in a protocol.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "FailureCode")]
struct FailureCode {
    /// the code
    code: String,
    /// the protocol; null if it is so in each
    protocol: Option<String>,
    /// what it means
    cause: String,
    /// what to do about it
    cure: String,
}

impl FailureCode {
    /// The codes that a protocol's contract types define.
    fn of_types(definition: &Definition) -> Vec<Self> {
        let types = definition.contracts.iter().filter_map(|kind| {
            let code = &kind.failure.as_ref()?.code;
            let is_code = !code.starts_with('/') && !definition.words.errors.contains_key(code);
            is_code.then(|| Self {
                code: code.clone(),
                protocol: Some(definition.name.to_string()),
                cause: format!("a contract of type `{}` says so", kind.name),
                cure: "read its reason: `git handoff show ID`; then `git handoff next`".to_owned(),
            })
        });
        types.collect()
    }

    /// A run failure's code: that of protocols without codes of their own, and known in the others,
    /// too.
    fn of_run(run: RunFailure) -> Self {
        use RunFailure as R;
        let (cause, cure) = match run {
            R::NoWorktree => (
                "`work` has no worktree for the agent, or not the one that it made",
                "see `git worktree list`; run `git handoff work` again",
            ),
            R::AgentFailed => (
                "the agent says that the work can't be done",
                "read what it says: `git handoff show ID`; then `git handoff next`",
            ),
            R::NotStarted => (
                "the agent's program could not be started",
                "see that it is installed, and its line in the roles of `git handoff work`",
            ),
            R::WorkerLost => (
                "the worker that ran the agent was killed",
                "run `git handoff work` again; what was kept: `git handoff show ID`",
            ),
            R::ContractRefused => (
                "the contract that the agent left was refused",
                "read the findings: `git handoff show ID`; then `git handoff next`",
            ),
            R::TimeSpent => (
                "the run took longer than it may",
                "give it more time (`--time`), or less to do; then `git handoff next`",
            ),
            R::BudgetSpent => (
                "the run spent its budget",
                "raise the protocol's budget, or give it less to do; then `git handoff next`",
            ),
            R::NotEnded => (
                "how the agent's program ended is not known",
                "see whether it still runs; then `git handoff next`",
            ),
            R::Signal => (
                "a signal ended the agent's program",
                "find out who sent it (too little memory, often); then `git handoff next`",
            ),
            R::NothingHandedOn => (
                "the agent's program ended and handed nothing on",
                "read its last output: `git handoff show ID`; then `git handoff next`",
            ),
            R::Exit => (
                "the agent's program exited with another code than 0",
                "read its last output: `git handoff show ID`; then `git handoff next`",
            ),
            R::BranchRefused => (
                "agents may not write to the branch, or its name is not valid",
                "name another one: `git handoff annotate ISSUE --fact branch=NAME`",
            ),
            R::WorkersLost => (
                "workers were killed over it again and again",
                "find out who kills them (too little memory, often); then `git handoff retry ID`",
            ),
            R::NotReady => (
                "there is no folder or worktree for the agent, or none that can be set up",
                "see the message: the disk, the setup of the roles, or `git worktree list`",
            ),
            R::Unavailable => (
                "the provider or the network did not let the agent run",
                "wait, or log in; `work` tries again by itself",
            ),
            R::NeedsPerson => (
                "a limit, a permission, a rule of the remote, or a branch in use",
                "do what the message says; then answer it",
            ),
        };
        Self::own(&(run.as_str(), cause, cure))
    }

    fn own((code, cause, cure): &(&str, &str, &str)) -> Self {
        Self {
            code: (*code).to_owned(),
            protocol: None,
            cause: (*cause).to_owned(),
            cure: (*cure).to_owned(),
        }
    }
}

/// Codes and their explanations.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Explain")]
pub(crate) struct ExplainView {
    /// the named code, or all that begin with it; without an argument, every code; each is as in
    /// [docs/codes.md](codes.md)
    codes: Vec<&'static ExplainedCode>,
    /// the failure codes of the protocols in force that begin with it
    failures: Vec<FailureCode>,
}

impl Answer for ExplainView {
    fn text(&self, _: &Look) -> String {
        let mut text = match &self.codes[..] {
            [code] => details(code),
            several => list(several),
        };
        for failure in &self.failures {
            let code = continued(&failure.code);
            let protocol = failure.protocol.as_deref().unwrap_or("any protocol");
            let protocol = continued(protocol);
            let (cause, cure) = (continued(&failure.cause), continued(&failure.cure));
            text += &format!(
                "{code}  (failure in {protocol})\n  cause    {cause}\n  cure     {cure}\n"
            );
        }
        text
    }
}

fn details(code: &ExplainedCode) -> String {
    let mut text = format!("{}  ({}", code.code, kind(code));
    if let [first, rest @ ..] = code.exit {
        text += &format!(", exit {first}");
        rest.iter().for_each(|exit| text += &format!(" or {exit}"));
    }
    let ExplainedCode {
        cause,
        example,
        cure,
        ..
    } = code;
    text + &format!(")\n  cause    {cause}\n  example  {example}\n  cure     {cure}\n")
}

/// The kind of a code, in the singular: `finding in contracts`.
fn kind(code: &ExplainedCode) -> String {
    let one = code.kind.to_lowercase();
    let (first, rest) = one.split_once(' ').unwrap_or((&one, ""));
    let singular = first.strip_suffix('s').unwrap_or(first);
    match rest {
        "codes" => format!("{singular} code"),
        "" => singular.to_owned(),
        rest => format!("{singular} {rest}"),
    }
}

/// One line per code, grouped by kind.
fn list(codes: &[&ExplainedCode]) -> String {
    let mut text = String::new();
    for of_kind in codes.chunk_by(|a, b| a.kind == b.kind) {
        text += &format!("{}\n", of_kind[0].kind);
        let rows = of_kind.iter().map(|code| {
            let row = [format!("  {}", code.code), code.cause.to_owned()];
            row.to_vec()
        });
        text += &columns(&rows.collect::<Vec<_>>());
    }
    text
}

fn unknown(wanted: &str) -> Failure {
    let alike = |code: &ExplainedCode| strsim::jaro_winkler(code.code, wanted);
    let is_number = wanted.parse::<u32>().is_ok();
    let nearest = codes::all()
        .filter(|_| !is_number)
        .max_by(|a, b| alike(a).total_cmp(&alike(b)));
    let nearest = nearest.filter(|code| alike(code) >= ALIKE);
    let hint = nearest.map_or_else(
        || "`git handoff explain` lists every code".to_owned(),
        |code| format!("the closest code: `git handoff explain {}`", code.code),
    );
    let text = format!("no error, finding or exit has the code {}", quoted(wanted));
    Failure::new(ErrorCode::NoCode, text).hint(hint)
}
