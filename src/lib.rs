//! The command line: parses arguments, calls the library, prints results.
//!
//! Only this crate uses clap, prints, exits, or reads the clock and the environment
//! (`environment`). One command is one file in `commands`: its arguments' comments are its help,
//! and it has no Git logic. `args` has values that many commands take, `context` opens what they
//! need, `contracts` reads and writes contracts, `failure` has all errors, `view` formats for a
//! terminal, `output` prints, and `render` makes text and JSON of records. `hook`, `mcp`, `http` and
//! `board` are for git, tools, browsers and people at a terminal. `work` runs
//! agents, and `notify` notifies persons. `readers` is for tests only.

mod args;
mod commands;
mod hook;
#[cfg(feature = "github")]
mod judging;
#[cfg(feature = "report")]
mod local;
#[cfg(feature = "all")]
#[doc(hidden)]
pub mod readers;
#[cfg(all(test, feature = "all"))]
#[path = "../tests/reference/mod.rs"]
mod reference;
mod version;

pub use handoff::base::codes::exit;

use handoff_cli::{context, contracts, environment, failure, output, render, view};

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, CommandFactory, FromArgMatches, Parser};

use crate::context::{Context, Global};
use crate::failure::{ErrorCode, Failure, Hint, hint};
use crate::output::{Output, mask};

/// Keep a ledger of handoffs between agents, in Git
///
/// Each handoff is a contract (XML, JSON or Markdown) that becomes one commit on a branch
/// of its own, in its issue's folder. A contract that is incomplete, or that
/// the protocol does not allow, is refused. Your working tree, index, HEAD and
/// other local branches are never touched; only `work` makes and removes branches,
/// those of issues.
///
/// An agent begins with `git handoff prime --as AGENT`.
#[derive(Parser)]
#[command(
    name = NAME,
    bin_name = "git handoff",
    version,
    max_term_width = 100
)]
#[command(disable_help_subcommand = true, disable_help_flag = true)]
struct Cli {
    #[command(flatten)]
    global: Global,
    /// Without one, the program says where one is, and what can be done next.
    #[command(subcommand)]
    command: Option<commands::Command>,
}

const NAME: &str = "git-handoff";

const FIRST_ROUND: &str = r#"A first round in a new repository; in any other, `git handoff` says what is next:
  git handoff init --protocol review
  git handoff send --issue 7 --to coder --as maintainer --set summary='A header' \
      --set findings='{"severity":"blocking","text":"No header"}'
  git handoff claim --next --as coder
  git handoff log 7

Help:
  git handoff send -h        (one command, with examples)
  git handoff help --all     (every command by task, the options that all have, exit codes)
  git handoff help share     (a task, a command, or any code that was printed)"#;

const EXIT_CODES: &str = "\
Exit codes (`git handoff explain CODE` has any code that is printed):
  0 done   1 the answer is no   2 wrong usage   3 contract refused   4 protocol refuses
  5 someone else was first   6 not found, nothing to do   7 timed out   8 recorded here, not on the remote
  9 no repository, no ledger, remote out of reach   10 ledger damaged";

/// The command line's definition, for help, man pages and completions. Its help lists only the most
/// important commands.
pub fn command() -> clap::Command {
    let root = root();
    let listed = commands::words::first(&root);
    let template =
        format!("{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{listed}{{after-help}}");
    root.help_template(template).after_help(FIRST_ROUND)
}

/// The command line's definition, with help that lists every command.
pub fn full_command() -> clap::Command {
    let root = root();
    let listed = commands::words::listed(&root, commands::GROUPS.iter().copied());
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{listed}Options:\n{{options}}{{after-help}}"
    );
    root.help_template(template).after_help(EXIT_CODES)
}

fn root() -> clap::Command {
    Cli::command().mut_subcommands(with_references)
}

/// Accepts every form of an issue or a handoff in arguments that name one.
fn with_references(command: clap::Command) -> clap::Command {
    let command = command.mut_args(args::reference::accepted);
    command.mut_subcommands(with_references)
}

/// Runs the program with these arguments and returns its exit code.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let mut arguments: Vec<OsString> = arguments.into_iter().collect();
    commands::words::replaced(&mut arguments);
    if version::is_verbose(&arguments) {
        let mut output = Output::new(false, anstream::ColorChoice::Never);
        let printed = output.raw(version::details().as_bytes());
        return printed.map_or_else(|failure| failure.exit, |()| exit::DONE);
    }
    let cli = match parsed(&arguments) {
        Ok(cli) => cli,
        // For harnesses, 2 means that the agent must continue.
        Err(error) if is_harness_hook(&arguments) => {
            misused(&error, &arguments);
            return exit::DONE;
        }
        Err(error) => return misused(&error, &arguments),
    };
    let color = match cli.global.color {
        clap::ColorChoice::Always => anstream::ColorChoice::Always,
        clap::ColorChoice::Never => anstream::ColorChoice::Never,
        clap::ColorChoice::Auto => anstream::ColorChoice::Auto,
    };
    handoff::git::tune(environment::surroundings());
    let gone = change_directory(&cli.global);
    let gone = gone.and_then(|()| commands::words::ensure_own(&arguments));
    let mut output = Output::for_user(cli.global.json, color, !cli.global.no_pager);
    let context = Context::new(cli.global);
    match gone {
        Ok(()) => perform(cli.command.as_ref(), &context, &mut output, &arguments),
        Err(_) if cli.command.is_some_and(|command| command.is_harness_hook()) => exit::DONE,
        Err(failure) => {
            output.fail(&failure);
            failure.exit
        }
    }
}

/// Parses the arguments. Help and errors need all commands, so unless the arguments clearly name
/// one command, they are parsed again with all of them.
fn parsed(arguments: &[OsString]) -> Result<Cli, clap::Error> {
    let root = clap::Command::new(NAME).disable_help_flag(true);
    let root = root.disable_help_subcommand(true);
    let root = root.version(env!("CARGO_PKG_VERSION"));
    let mut root = commands::Command::named(arguments, Global::augment_args(root));
    let matches = root.try_get_matches_from_mut(arguments);
    match matches.and_then(|mut matches| Cli::from_arg_matches_mut(&mut matches)) {
        Err(error) if error.kind() != ErrorKind::DisplayVersion => {
            let matches = command().try_get_matches_from(arguments)?;
            Cli::from_arg_matches(&matches)
        }
        parsed => parsed,
    }
}

/// Whether invalid arguments are those of a harness's hook.
fn is_harness_hook(arguments: &[OsString]) -> bool {
    let mut pairs = arguments.windows(2);
    pairs.any(|pair| pair[0] == "agents" && pair[1] == "hook")
}

/// Runs a command, reports its outcome, and returns its exit code.
fn perform(
    command: Option<&commands::Command>,
    context: &Context,
    output: &mut Output,
    arguments: &[OsString],
) -> u8 {
    output.was_typed(arguments);
    if command.is_none_or(commands::Command::only_reads) {
        output.only_reads();
    }
    let ran = match command {
        Some(command) => command.run(context, output),
        None => commands::here::run(context, output),
    };
    let exit = match ran {
        Ok(()) => output.exit(),
        Err(mut failure) => {
            if failure.code == Some(ErrorCode::Usage) {
                failure.see(help_of(arguments));
            }
            context.may_be_behind(&mut failure, output);
            let offline = arguments.iter().any(|argument| argument == "--offline");
            context.may_be_elsewhere(&mut failure, offline);
            context.may_have_other_case(&mut failure, arguments);
            if let (None, Some(carried)) = (output.carried(), context.carried_by_failure()) {
                output.carry(carried);
            }
            output.fail(&failure);
            failure.exit
        }
    };
    context.maintain();
    exit
}

fn change_directory(global: &Global) -> Result<(), Failure> {
    let Some(directory) = &global.directory else {
        return Ok(());
    };
    std::env::set_current_dir(directory).map_err(|error| {
        let text = format!("cannot go to {}: {error}", directory.display());
        Failure::new(ErrorCode::Directory, text)
    })
}

/// Prints help and version as answers, anything else as a usage error.
fn misused(error: &clap::Error, arguments: &[OsString]) -> u8 {
    if error.use_stderr() && arguments.iter().any(|a| a == "--json") {
        Output::new(true, anstream::ColorChoice::Never).fail(&misuse(error, arguments));
        return exit::USAGE;
    }
    if let (ErrorKind::InvalidSubcommand, Some((word, instead))) =
        (error.kind(), commands::words::answer(arguments))
    {
        let text = format!("error: `{word}` is not a command\n  hint: {instead}");
        Output::new(false, anstream::ColorChoice::Never).say(&text);
        return exit::USAGE;
    }
    if error.use_stderr() {
        // An unknown argument may be a misplaced secret.
        let mut message = error.to_string();
        mask(&mut message, arguments);
        let help = format!("see {}", help_of(arguments));
        let mut message = message.replace("try '--help'", &help);
        if let Some(which) = which(error, arguments) {
            message = format!("error: {which}\n\nFor more information, {help}.");
        }
        Output::new(false, anstream::ColorChoice::Never).say(message.trim_end());
        return exit::USAGE;
    }
    // A closed pipe is no error.
    let _ = error.print();
    exit::DONE
}

/// The question for a handoff's id if it is missing, and how `set` takes what was given as an option.
fn which(error: &clap::Error, arguments: &[OsString]) -> Option<String> {
    #[cfg(feature = "agents")]
    if let Some(which) = commands::agents::which(error, arguments) {
        return Some(which);
    }
    let missing = error.get(ContextKind::InvalidArg);
    if let Some(ContextValue::String(option)) = missing
        && let Some(name) = commands::set::setting(option)
        && arguments.iter().any(|argument| argument == "set")
        && error.kind() == ErrorKind::UnknownArgument
    {
        let command = commands::set::without_dashes(arguments);
        return Some(format!(
            "`set` takes `{name}=VALUE`, without dashes: `{command}`"
        ));
    }
    let is_id =
        |missing: &ContextValue| matches!(missing, ContextValue::Strings(all) if all == &["<ID>"]);
    if error.kind() != ErrorKind::MissingRequiredArgument || !missing.is_some_and(is_id) {
        return None;
    }
    let next = if arguments.iter().any(|argument| argument == "claim") {
        "`git handoff claim --next` takes the most urgent"
    } else {
        "`git handoff inbox` lists yours"
    };
    Some(format!("which handoff? Name it, such as 12.3; {next}"))
}

/// The command that shows the help of the command in the arguments.
fn help_of(arguments: &[OsString]) -> Hint {
    let known = command();
    let mut named = arguments.iter().skip(1).filter_map(|a| a.to_str());
    match named.find(|a| known.find_subcommand(a).is_some()) {
        Some(sub) => hint!("`git handoff {} -h`", sub),
        None => hint!("`git handoff -h`"),
    }
}

/// A usage error as one document.
fn misuse(error: &clap::Error, arguments: &[OsString]) -> Failure {
    let mut text = error.to_string();
    mask(&mut text, arguments);
    let lines: Vec<&str> = text
        .trim_start_matches("error: ")
        .lines()
        .map(str::trim)
        .take_while(|line| !line.starts_with("Usage:"))
        .filter(|line| !line.is_empty() && !line.starts_with("For more information"))
        .collect();
    let text = which(error, arguments).unwrap_or_else(|| lines.join(" "));
    let mut failure = Failure::usage(text);
    match commands::words::answer(arguments) {
        Some((_, instead)) if error.kind() == ErrorKind::InvalidSubcommand => failure.hint(instead),
        _ => {
            failure.see(help_of(arguments));
            failure
        }
    }
}
