use std::ffi::OsString;

use clap::{Args, ValueEnum};
use serde_json::json;

use crate::context::Context;
use crate::failure::Failure;
use crate::output::Output;
use crate::{exit, hook};

/// Do what one of git's hooks is there for
///
/// Git's hooks call this; the scripts are in `hooks/`. It reads its arguments
/// and standard input as git gives them to the hook of that name, writes
/// nothing, and exits 1 with every finding when git is to stop. What can't be
/// read is refused too.
#[derive(Args)]
#[command(after_help = "Examples:
  git handoff hook pre-commit             (check what is staged)
  git handoff hook pre-receive < lines    (lines of `OLD NEW REF`)")]
pub(crate) struct Arguments {
    /// The hook
    #[arg(value_name = "NAME")]
    name: Name,
    /// What git gives to the hook
    #[arg(
        value_name = "ARGUMENT",
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    arguments: Vec<OsString>,
}

/// The hooks that there are, by git's names.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Name {
    /// Staged contracts are complete; what is staged on the ledger's branch is a step
    PreCommit,
    /// The message of a step says what the step does
    CommitMsg,
    /// What is pushed leads the ledger on by legal steps
    PrePush,
    /// The same, where a push arrives
    PreReceive,
    /// The same, for one ref
    Update,
    /// The ledger's branch moves to a legal descendant only
    ReferenceTransaction,
}

impl Arguments {
    /// Runs the command.
    ///
    /// # Errors
    /// A [`Failure`] with its exit code.
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        let done = match self.name {
            Name::PreCommit => hook::pre_commit(context),
            Name::CommitMsg => hook::commit_msg(context, &self.arguments),
            Name::PrePush => hook::pre_push(context, &self.arguments),
            Name::PreReceive => hook::pre_receive(context),
            Name::Update => hook::update(context, &self.arguments),
            Name::ReferenceTransaction => {
                hook::reference_transaction(context, output, &self.arguments)
            }
        };
        match done {
            Ok(()) if output.is_json() => {
                let name = self.name.to_possible_value();
                let name = name.map(|name| name.get_name().to_owned());
                output.answer(&json!({ "hook": name }), "")
            }
            Ok(()) => Ok(()),
            // What can't be told is refused: git stops whatever the reason.
            Err(failure) if failure.exit == exit::USAGE => Err(failure),
            Err(mut failure) => {
                failure.exit = exit::NO;
                Err(failure)
            }
        }
    }
}
