//! One file per command: its arguments, whose comments are its help, and its action. `here` prints
//! the output without a command, `words` has aliases, and `formats` is shared by `export` and
//! `import`.

#[cfg(feature = "agents")]
pub(crate) mod agents;
#[cfg(feature = "report")]
pub(crate) mod alerts;
mod annotate;
mod answer;
mod approve;
pub(crate) mod archive;
#[cfg(feature = "board")]
mod board;
mod change;
pub(crate) mod check;
pub(crate) mod claim;
#[cfg(feature = "shell")]
mod completions;
pub(crate) mod context;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod document;
pub(crate) mod each;
#[cfg(feature = "exchange")]
pub(crate) mod exchange;
pub(crate) mod explain;
#[cfg(any(feature = "exchange", feature = "report"))]
pub(crate) mod export;
mod extend;
mod fail;
pub(crate) mod fetch;
#[cfg(feature = "exchange")]
mod formats;
pub(crate) mod gate;
#[cfg(feature = "github")]
pub(crate) mod github;
#[cfg(feature = "report")]
pub(crate) mod graph;
pub(crate) mod help;
pub(crate) mod here;
pub(crate) mod hook;
pub(crate) mod hooks;
#[cfg(feature = "exchange")]
pub(crate) mod import;
pub(crate) mod inbox;
pub(crate) mod init;
pub(crate) mod list;
pub(crate) mod log;
#[cfg(feature = "shell")]
pub(crate) mod man;
#[cfg(feature = "mcp")]
pub(crate) mod mcp;
#[cfg(feature = "report")]
pub(crate) mod metrics;
mod new;
pub(crate) mod next;
#[cfg(feature = "notify")]
mod notify;
#[cfg(feature = "report")]
pub(crate) mod otlp;
pub(crate) mod pause;
#[cfg(feature = "agents")]
mod prime;
pub(crate) mod protocol;
pub(crate) mod reap;
pub(crate) mod refused;
mod reopen;
#[cfg(feature = "report")]
pub(crate) mod report;
pub(crate) mod restore;
mod resume;
mod send;
#[cfg(feature = "report")]
pub(crate) mod serve;
pub(crate) mod set;
pub(crate) mod show;
pub(crate) mod status;
pub(crate) mod sync;
pub(crate) mod uninstall;
pub(crate) mod verify;
pub(crate) mod wait;
pub(crate) mod watch;
pub(crate) mod words;
#[cfg(feature = "work")]
pub(crate) mod work;
pub(crate) mod workers;

use std::ffi::OsString;

use clap::{Args, Subcommand};

use crate::args::remote::Write;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Output;

/// Generates [`Command`] from a table. Commands are grouped by purpose. Each row has the module of
/// the command, if it is not one of the core, its effect on the ledger (it `reads`, `works` here,
/// or also `sends` its steps to the remote), its name and its arguments.
macro_rules! commands {
    ($($group:literal {
        $($(#[$room:meta])* $does:ident $word:literal $name:ident($arguments:ty),)*
    })*) => {
        /// Every command.
        #[derive(Subcommand)]
        pub(crate) enum Command {
            $($($(#[$room])* #[command(name = $word)] $name($arguments),)*)*
        }

        /// The commands' names by group.
        pub(crate) const GROUPS: &[(&str, &[&str])] = &[$(($group, &[$($(#[$room])* $word),*])),*];

        impl Command {
            /// Adds to the root only the commands named among the arguments: defining all of them
            /// takes longer than running most of them.
            pub(crate) fn named(arguments: &[OsString], mut root: clap::Command) -> clap::Command {
                $($($(#[$room])* if arguments.iter().any(|a| a == $word) {
                    let own = clap::Command::new($word);
                    let own = <$arguments as Args>::augment_args(own);
                    root = root.subcommand(crate::with_references(own));
                })*)*
                root
            }

            /// Whether the command changes nothing.
            pub(crate) fn only_reads(&self) -> bool {
                #[cfg(feature = "agents")]
                if let Self::Agents(agents) = self {
                    return agents.only_reads();
                }
                match self {
                    $($($(#[$room])* Self::$name(_) => stringify!($does) == "reads",)*)*
                }
            }

            /// Runs the command.
            ///
            /// # Errors
            /// A [`Failure`] with its exit code.
            pub(crate) fn run(
                &self,
                context: &Context,
                output: &mut Output,
            ) -> Result<(), Failure> {
                match self {
                    $($($(#[$room])* Self::$name(arguments) => {
                        run!($does arguments, context, output)
                    })*)*
                }
            }
        }
    };
}

macro_rules! run {
    (sends $arguments:ident, $context:ident, $output:ident) => {
        $arguments
            .own
            .run(&$context.with($arguments.remote), $output)
    };
    ($does:ident $arguments:ident, $context:ident, $output:ident) => {
        $arguments.run($context, $output)
    };
}

commands! {
    "Start" {
        sends "init" Init(Write<init::Arguments>),
        works "demo" Demo(demo::Arguments),
        sends "protocol" Protocol(Write<protocol::Arguments>),
        works "hooks" Hooks(hooks::Arguments),
        #[cfg(feature = "agents")]
        works "agents" Agents(agents::Arguments),
        works "uninstall" Uninstall(uninstall::Arguments),
        reads "help" Help(help::Arguments),
    }
    "Hand work on" {
        #[cfg(feature = "agents")]
        reads "prime" Prime(prime::Arguments),
        reads "inbox" Inbox(inbox::Arguments),
        sends "claim" Claim(Write<claim::Arguments>),
        works "new" New(new::Arguments),
        reads "check" Check(check::Arguments),
        sends "send" Send(Write<send::Arguments>),
        sends "extend" Extend(Write<extend::Arguments>),
        sends "complete" Complete(Write<change::Complete>),
        sends "fail" Fail(Write<fail::Arguments>),
        sends "block" Block(Write<change::Block>),
        sends "release" Release(Write<change::Release>),
        sends "reject" Reject(Write<change::Reject>),
        works "restore" Restore(restore::Arguments),
        #[cfg(feature = "work")]
        works "work" Work(work::Arguments),
    }
    "Decide what happens" {
        sends "next" Next(Write<next::Arguments>),
        sends "answer" Answer(Write<answer::Arguments>),
        sends "retry" Retry(Write<change::Retry>),
        sends "reassign" Reassign(Write<change::Reassign>),
        sends "set" Set(Write<set::Arguments>),
        sends "cancel" Cancel(Write<change::Cancel>),
        sends "pause" Pause(Write<pause::Arguments>),
        sends "resume" Resume(Write<resume::Arguments>),
        sends "reopen" Reopen(Write<reopen::Arguments>),
        sends "approve" Approve(Write<approve::Arguments>),
        sends "annotate" Annotate(Write<annotate::Arguments>),
        sends "reap" Reap(Write<reap::Arguments>),
    }
    "See where things are" {
        reads "status" Status(status::Arguments),
        reads "show" Show(show::Arguments),
        reads "workers" Workers(workers::Arguments),
        reads "list" List(list::Arguments),
        reads "log" Log(log::Arguments),
        reads "context" Context(context::Arguments),
        #[cfg(feature = "report")]
        reads "graph" Graph(graph::Arguments),
        works "wait" Wait(wait::Arguments),
        reads "watch" Watch(watch::Arguments),
        #[cfg(feature = "report")]
        reads "metrics" Metrics(metrics::Arguments),
        #[cfg(feature = "report")]
        reads "alerts" Alerts(alerts::Arguments),
        #[cfg(feature = "report")]
        reads "report" Report(report::Arguments),
        #[cfg(feature = "report")]
        reads "serve" Serve(serve::Arguments),
        #[cfg(feature = "board")]
        works "board" Board(board::Arguments),
        #[cfg(feature = "notify")]
        works "notify" Notify(notify::Arguments),
        reads "explain" Explain(explain::Arguments),
    }
    "Trust it" {
        works "doctor" Doctor(doctor::Arguments),
        works "verify" Verify(verify::Arguments),
        reads "gate" Gate(gate::Arguments),
    }
    "Share and keep it" {
        works "sync" Sync(sync::Arguments),
        works "fetch" Fetch(fetch::Arguments),
        sends "refused" Refused(Write<refused::Arguments>),
        sends "document" Document(Write<document::Arguments>),
        sends "archive" Archive(Write<archive::Arguments>),
        #[cfg(any(feature = "exchange", feature = "report"))]
        works "export" Export(export::Arguments),
        #[cfg(feature = "exchange")]
        sends "import" Import(Write<import::Arguments>),
        #[cfg(feature = "exchange")]
        sends "exchange" Exchange(Write<exchange::Arguments>),
    }
    "For machines" {
        #[cfg(feature = "github")]
        works "github" Github(github::Arguments),
        #[cfg(feature = "mcp")]
        works "mcp" Mcp(mcp::Arguments),
        works "hook" Hook(hook::Arguments),
        #[cfg(feature = "shell")]
        reads "completions" Completions(completions::Arguments),
        #[cfg(feature = "shell")]
        reads "man" Man(man::Arguments),
    }
}

impl Command {
    /// Whether a harness's hook runs the command: such a command must not fail.
    pub(crate) fn is_harness_hook(&self) -> bool {
        #[cfg(feature = "agents")]
        if let Self::Agents(agents) = self {
            return agents.is_hook();
        }
        false
    }
}
