//! Commands for GitHub workflows: one file per verb, and the `page` that several write.

pub(crate) mod comment;
pub(crate) mod event;
mod given;
pub(crate) mod issue;
pub(crate) mod output;
mod page;
pub(crate) mod setup;
pub(crate) mod status;
pub(crate) mod summary;
mod whole_ledger;
pub(crate) mod workflows;

use clap::{Args, Subcommand};

use crate::args::remote::Write;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Output;

/// Report the ledger's state to GitHub workflows, and act on GitHub events
///
/// `output` sets values for later steps, `summary` adds a page to the run, and `comment` writes
/// the body of a comment that is updated in place. `status` sets the check on pull requests, and `setup` checks
/// what all of it needs of a repository. `git handoff help github.md` describes the complete setup of
/// a repository; the workflows are in templates/github.
#[derive(Args)]
#[command(after_help = "Examples:
  git handoff github output 123
  git handoff github summary 123
  git handoff github comment 123 > comment.md
  git handoff github status --dry-run")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    Event(Write<event::Arguments>),
    Issue(issue::Arguments),
    Output(output::Arguments),
    Summary(summary::Arguments),
    Comment(comment::Arguments),
    Status(status::Arguments),
    #[command(visible_alias = "doctor")]
    Setup(setup::Arguments),
}

impl Arguments {
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        match &self.verb {
            Verb::Event(a) => a.own.run(&context.with(a.remote), output),
            Verb::Issue(a) => a.run(context, output),
            Verb::Output(a) => a.run(context, output),
            Verb::Summary(a) => a.run(context, output),
            Verb::Comment(a) => a.run(context, output),
            Verb::Status(a) => a.run(context, output),
            Verb::Setup(a) => a.run(context, output),
        }
    }
}
