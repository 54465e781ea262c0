//! One command, one file: its arguments, whose comments are its help, and what
//! it does. `exchange` is what `export` and `import` share.

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
#[cfg(feature = "mcp")]
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

use clap::Subcommand;

use crate::args::remote::Write;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Output;

/// Every command.
#[derive(Subcommand)]
pub(crate) enum Command {
    Prime(prime::Arguments),
    Agents(agents::Arguments),
    Init(Write<init::Arguments>),
    New(new::Arguments),
    Check(check::Arguments),
    Send(Write<send::Arguments>),
    Inbox(inbox::Arguments),
    Claim(Write<claim::Arguments>),
    Extend(Write<extend::Arguments>),
    Complete(Write<change::Complete>),
    Fail(Write<fail::Arguments>),
    Block(Write<change::Block>),
    Answer(Write<answer::Arguments>),
    Retry(Write<change::Retry>),
    Reassign(Write<change::Reassign>),
    Redrive(Write<change::Redrive>),
    Reap(Write<reap::Arguments>),
    Reject(Write<change::Reject>),
    Cancel(Write<change::Cancel>),
    Reopen(Write<reopen::Arguments>),
    Annotate(Write<annotate::Arguments>),
    Restore(restore::Arguments),
    Status(status::Arguments),
    Show(show::Arguments),
    Context(context::Arguments),
    List(list::Arguments),
    Log(log::Arguments),
    Next(Write<next::Arguments>),
    Wait(wait::Arguments),
    Watch(watch::Arguments),
    Metrics(metrics::Arguments),
    Alerts(alerts::Arguments),
    Verify(verify::Arguments),
    Gate(gate::Arguments),
    Github(github::Arguments),
    Graph(graph::Arguments),
    Sync(sync::Arguments),
    Fetch(fetch::Arguments),
    Rejected(Write<rejected::Arguments>),
    Hook(hook::Arguments),
    Hooks(hooks::Arguments),
    Protocol(Write<protocol::Arguments>),
    Document(Write<document::Arguments>),
    Report(report::Arguments),
    Serve(serve::Arguments),
    Export(export::Arguments),
    Import(Write<import::Arguments>),
    Explain(explain::Arguments),
    Demo(demo::Arguments),
    Completions(completions::Arguments),
    Man(man::Arguments),
    #[cfg(feature = "mcp")]
    Mcp(mcp::Arguments),
}

impl Command {
    /// Says whether a harness's hook runs it, which nothing may break.
    pub(crate) fn is_harness_hook(&self) -> bool {
        matches!(self, Self::Agents(agents) if agents.is_hook())
    }

    /// Says whether it writes nothing but its answer.
    pub(crate) fn only_reads(&self) -> bool {
        if let Self::Agents(a) = self {
            return a.only_reads();
        }
        matches!(
            self,
            Self::Prime(_)
                | Self::Check(_)
                | Self::Inbox(_)
                | Self::Status(_)
                | Self::Show(_)
                | Self::Context(_)
                | Self::List(_)
                | Self::Log(_)
                | Self::Watch(_)
                | Self::Metrics(_)
                | Self::Alerts(_)
                | Self::Gate(_)
                | Self::Graph(_)
                | Self::Report(_)
                | Self::Serve(_)
                | Self::Explain(_)
                | Self::Completions(_)
                | Self::Man(_)
        )
    }

    /// Runs the command.
    ///
    /// # Errors
    /// A [`Failure`] with its exit code.
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        match self {
            Self::Prime(a) => a.run(context, output),
            Self::Agents(a) => a.run(context, output),
            Self::Init(a) => a.own.run(&context.with(a.remote), output),
            Self::New(a) => a.run(context, output),
            Self::Check(a) => a.run(context, output),
            Self::Send(a) => a.own.run(&context.with(a.remote), output),
            Self::Inbox(a) => a.run(context, output),
            Self::Claim(a) => a.own.run(&context.with(a.remote), output),
            Self::Extend(a) => a.own.run(&context.with(a.remote), output),
            Self::Complete(a) => a.own.run(&context.with(a.remote), output),
            Self::Fail(a) => a.own.run(&context.with(a.remote), output),
            Self::Block(a) => a.own.run(&context.with(a.remote), output),
            Self::Answer(a) => a.own.run(&context.with(a.remote), output),
            Self::Retry(a) => a.own.run(&context.with(a.remote), output),
            Self::Reassign(a) => a.own.run(&context.with(a.remote), output),
            Self::Redrive(a) => a.own.run(&context.with(a.remote), output),
            Self::Reap(a) => a.own.run(&context.with(a.remote), output),
            Self::Reject(a) => a.own.run(&context.with(a.remote), output),
            Self::Cancel(a) => a.own.run(&context.with(a.remote), output),
            Self::Reopen(a) => a.own.run(&context.with(a.remote), output),
            Self::Annotate(a) => a.own.run(&context.with(a.remote), output),
            Self::Restore(a) => a.run(context, output),
            Self::Status(a) => a.run(context, output),
            Self::Show(a) => a.run(context, output),
            Self::Context(a) => a.run(context, output),
            Self::List(a) => a.run(context, output),
            Self::Log(a) => a.run(context, output),
            Self::Next(a) => a.own.run(&context.with(a.remote), output),
            Self::Wait(a) => a.run(context, output),
            Self::Watch(a) => a.run(context, output),
            Self::Metrics(a) => a.run(context, output),
            Self::Alerts(a) => a.run(context, output),
            Self::Verify(a) => a.run(context, output),
            Self::Gate(a) => a.run(context, output),
            Self::Github(a) => a.run(context, output),
            Self::Graph(a) => a.run(context, output),
            Self::Sync(a) => a.run(context, output),
            Self::Fetch(a) => a.run(context, output),
            Self::Rejected(a) => a.own.run(&context.with(a.remote), output),
            Self::Hook(a) => a.run(context, output),
            Self::Hooks(a) => a.run(context, output),
            Self::Protocol(a) => a.own.run(&context.with(a.remote), output),
            Self::Document(a) => a.own.run(&context.with(a.remote), output),
            Self::Report(a) => a.run(context, output),
            Self::Serve(a) => a.run(context, output),
            Self::Export(a) => a.run(context, output),
            Self::Import(a) => a.own.run(&context.with(a.remote), output),
            Self::Explain(a) => a.run(output),
            Self::Demo(a) => a.run(context, output),
            Self::Completions(a) => a.run(output),
            Self::Man(a) => a.run(output),
            #[cfg(feature = "mcp")]
            Self::Mcp(a) => a.run(context, output),
        }
    }
}
