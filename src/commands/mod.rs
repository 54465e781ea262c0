//! One file per command: its arguments, whose comments are its help, and what
//! it does. `exchange` is shared by `export` and `import`.

mod agents;
mod alerts;
mod annotate;
mod answer;
mod change;
mod check;
mod claim;
mod completions;
mod context;
mod demo;
mod document;
mod exchange;
mod explain;
mod export;
mod extend;
mod fail;
mod fetch;
mod gate;
mod github;
mod graph;
mod hook;
mod hooks;
mod import;
mod inbox;
mod init;
mod list;
mod log;
mod man;
mod mcp;
mod metrics;
mod new;
mod next;
mod otlp;
mod prime;
mod protocol;
mod reap;
mod rejected;
mod reopen;
mod report;
mod restore;
mod send;
mod serve;
mod show;
mod status;
mod sync;
mod verify;
mod wait;
mod watch;

use std::ffi::OsString;

use clap::{Args, Subcommand};

use crate::args::remote::Write;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Output;

/// Generates [`Command`] from a table. Each row has what the command does with the ledger, its name
/// and its arguments: it `reads`, it `works` here, or it also `sends` its steps to the remote.
macro_rules! commands {
    ($($does:ident $word:literal $name:ident($arguments:ty),)*) => {
        /// Every command.
        #[derive(Subcommand)]
        pub(crate) enum Command {
            $(#[command(name = $word)] $name($arguments),)*
        }

        impl Command {
            /// Adds to the root only the commands whose names are among the arguments: defining all
            /// of them takes longer than most of them run.
            pub(crate) fn named(arguments: &[OsString], mut root: clap::Command) -> clap::Command {
                $(if arguments.iter().any(|a| a == $word) {
                    let own = clap::Command::new($word);
                    root = root.subcommand(<$arguments as Args>::augment_args(own));
                })*
                root
            }

            /// Whether the command writes nothing but its answer.
            pub(crate) fn only_reads(&self) -> bool {
                if let Self::Agents(agents) = self {
                    return agents.only_reads();
                }
                match self {
                    $(Self::$name(_) => stringify!($does) == "reads",)*
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
                    $(Self::$name(arguments) => {
                        run!($does arguments, context, output)
                    })*
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
    reads "prime" Prime(prime::Arguments),
    works "agents" Agents(agents::Arguments),
    sends "init" Init(Write<init::Arguments>),
    works "new" New(new::Arguments),
    reads "check" Check(check::Arguments),
    sends "send" Send(Write<send::Arguments>),
    reads "inbox" Inbox(inbox::Arguments),
    sends "claim" Claim(Write<claim::Arguments>),
    sends "extend" Extend(Write<extend::Arguments>),
    sends "complete" Complete(Write<change::Complete>),
    sends "fail" Fail(Write<fail::Arguments>),
    sends "block" Block(Write<change::Block>),
    sends "answer" Answer(Write<answer::Arguments>),
    sends "retry" Retry(Write<change::Retry>),
    sends "reassign" Reassign(Write<change::Reassign>),
    sends "redrive" Redrive(Write<change::Redrive>),
    sends "reap" Reap(Write<reap::Arguments>),
    sends "reject" Reject(Write<change::Reject>),
    sends "cancel" Cancel(Write<change::Cancel>),
    sends "reopen" Reopen(Write<reopen::Arguments>),
    sends "annotate" Annotate(Write<annotate::Arguments>),
    works "restore" Restore(restore::Arguments),
    reads "status" Status(status::Arguments),
    reads "show" Show(show::Arguments),
    reads "context" Context(context::Arguments),
    reads "list" List(list::Arguments),
    reads "log" Log(log::Arguments),
    sends "next" Next(Write<next::Arguments>),
    works "wait" Wait(wait::Arguments),
    reads "watch" Watch(watch::Arguments),
    reads "metrics" Metrics(metrics::Arguments),
    reads "alerts" Alerts(alerts::Arguments),
    works "verify" Verify(verify::Arguments),
    reads "gate" Gate(gate::Arguments),
    works "github" Github(github::Arguments),
    reads "graph" Graph(graph::Arguments),
    works "sync" Sync(sync::Arguments),
    works "fetch" Fetch(fetch::Arguments),
    sends "rejected" Rejected(Write<rejected::Arguments>),
    works "hook" Hook(hook::Arguments),
    works "hooks" Hooks(hooks::Arguments),
    sends "protocol" Protocol(Write<protocol::Arguments>),
    sends "document" Document(Write<document::Arguments>),
    reads "report" Report(report::Arguments),
    reads "serve" Serve(serve::Arguments),
    works "export" Export(export::Arguments),
    sends "import" Import(Write<import::Arguments>),
    reads "explain" Explain(explain::Arguments),
    works "demo" Demo(demo::Arguments),
    reads "completions" Completions(completions::Arguments),
    reads "man" Man(man::Arguments),
    works "mcp" Mcp(mcp::Arguments),
}

impl Command {
    /// Whether a harness's hook runs the command: such a command must not fail.
    pub(crate) fn is_harness_hook(&self) -> bool {
        matches!(self, Self::Agents(agents) if agents.is_hook())
    }
}
