use std::ffi::OsString;

use clap::{Args, ValueEnum};
use schemars::JsonSchema;
use serde::Serialize;

use crate::context::Context;
use crate::failure::Failure;
use crate::output::{Answer, Output};
use crate::view::Look;
use crate::{exit, hook};

/// Run the checks of a Git hook
///
/// Git's hooks call this; the scripts are in `hooks/`. It takes the arguments and standard input
/// that git gives to the hook of that name, writes nothing, and exits 1 with every finding if git
/// should stop. What cannot be read is refused too.
#[derive(Args)]
#[command(after_help = "Examples:
  git handoff hook pre-commit             (check what is staged)
  git handoff hook pre-receive < lines    (lines of `OLD NEW REF`)")]
pub(crate) struct Arguments {
    /// The hook
    #[arg(value_name = "NAME")]
    name: Name,
    /// The arguments that git gives to the hook
    #[arg(
        value_name = "ARGUMENT",
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    arguments: Vec<OsString>,
}

/// The hooks, by git's names.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, JsonSchema, ValueEnum)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "HookName")]
enum Name {
    /// Check that staged contracts are complete, and that what is staged on the ledger's branch
    /// is a step
    PreCommit,
    /// Check that the message of a step says what the step does
    CommitMsg,
    /// Check that what is pushed advances the ledger by legal steps
    PrePush,
    /// Check the same in the repository that receives a push
    PreReceive,
    /// Check the same for one ref
    Update,
    /// Check that the ledger's branch moves only to a legal descendant
    ReferenceTransaction,
}

impl Arguments {
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
            Ok(()) => output.answer(&HookView { hook: self.name }),
            // A check that can't run refuses: any exit code but 0 stops git.
            Err(failure) if failure.exit == exit::USAGE => Err(failure),
            Err(mut failure) => {
                failure.exit = exit::NO;
                Err(failure)
            }
        }
    }
}

/// A hook that lets git continue.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "PassedHook")]
pub(crate) struct HookView {
    /// the hook's name
    hook: Name,
}

impl Answer for HookView {
    fn text(&self, _: &Look) -> String {
        String::new()
    }
}
