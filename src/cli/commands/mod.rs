//! One command, one file: its arguments, whose comments are its help, and what
//! it does.

mod annotate;
mod answer;
mod change;
mod check;
mod claim;
mod completions;
mod context;
mod demo;
mod document;
mod export;
mod extend;
mod fail;
mod gate;
mod hook;
mod hooks;
mod import;
mod inbox;
mod init;
mod list;
mod log;
mod man;
mod new;
mod next;
mod protocol;
mod reap;
mod reopen;
mod restore;
mod send;
mod show;
mod status;
mod verify;
mod wait;
mod watch;

use clap::Subcommand;

use super::context::Context;
use super::error::Failure;
use super::output::Output;

/// Every command.
#[derive(Subcommand)]
pub(super) enum Command {
    Init(init::Arguments),
    New(new::Arguments),
    Check(check::Arguments),
    Send(send::Arguments),
    Inbox(inbox::Arguments),
    Claim(claim::Arguments),
    Extend(extend::Arguments),
    Complete(change::Complete),
    Fail(fail::Arguments),
    Block(change::Block),
    Answer(answer::Arguments),
    Retry(change::Retry),
    Reassign(change::Reassign),
    Redrive(change::Redrive),
    Reap(reap::Arguments),
    Reject(change::Reject),
    Cancel(change::Cancel),
    Reopen(reopen::Arguments),
    Annotate(annotate::Arguments),
    Restore(restore::Arguments),
    Status(status::Arguments),
    Show(show::Arguments),
    Context(context::Arguments),
    List(list::Arguments),
    Log(log::Arguments),
    Next(next::Arguments),
    Wait(wait::Arguments),
    Watch(watch::Arguments),
    Verify(verify::Arguments),
    Gate(gate::Arguments),
    Hook(hook::Arguments),
    Hooks(hooks::Arguments),
    Protocol(protocol::Arguments),
    Document(document::Arguments),
    Export(export::Arguments),
    Import(import::Arguments),
    Demo(demo::Arguments),
    Completions(completions::Arguments),
    Man(man::Arguments),
}

impl Command {
    /// Runs the command.
    ///
    /// # Errors
    /// A [`Failure`] with its exit code.
    pub(super) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        match self {
            Self::Init(a) => a.run(context, output),
            Self::New(a) => a.run(context, output),
            Self::Check(a) => a.run(context, output),
            Self::Send(a) => a.run(context, output),
            Self::Inbox(a) => a.run(context, output),
            Self::Claim(a) => a.run(context, output),
            Self::Extend(a) => a.run(context, output),
            Self::Complete(a) => a.run(context, output),
            Self::Fail(a) => a.run(context, output),
            Self::Block(a) => a.run(context, output),
            Self::Answer(a) => a.run(context, output),
            Self::Retry(a) => a.run(context, output),
            Self::Reassign(a) => a.run(context, output),
            Self::Redrive(a) => a.run(context, output),
            Self::Reap(a) => a.run(context, output),
            Self::Reject(a) => a.run(context, output),
            Self::Cancel(a) => a.run(context, output),
            Self::Reopen(a) => a.run(context, output),
            Self::Annotate(a) => a.run(context, output),
            Self::Restore(a) => a.run(context, output),
            Self::Status(a) => a.run(context, output),
            Self::Show(a) => a.run(context, output),
            Self::Context(a) => a.run(context, output),
            Self::List(a) => a.run(context, output),
            Self::Log(a) => a.run(context, output),
            Self::Next(a) => a.run(context, output),
            Self::Wait(a) => a.run(context, output),
            Self::Watch(a) => a.run(context, output),
            Self::Verify(a) => a.run(context, output),
            Self::Gate(a) => a.run(context, output),
            Self::Hook(a) => a.run(context, output),
            Self::Hooks(a) => a.run(context, output),
            Self::Protocol(a) => a.run(context, output),
            Self::Document(a) => a.run(context, output),
            Self::Export(a) => a.run(context, output),
            Self::Import(a) => a.run(context, output),
            Self::Demo(a) => a.run(context, output),
            Self::Completions(a) => a.run(output),
            Self::Man(a) => a.run(output),
        }
    }
}
