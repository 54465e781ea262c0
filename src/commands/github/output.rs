use clap::Args;
use handoff_github::output::{Values, of_issue, of_ledger, of_none, written};
use schemars::JsonSchema;
use serde::Serialize;

use super::page::{Page, append};
use crate::context::Context;
use crate::environment::random_word;
use crate::failure::Failure;
use crate::output::replace::is_stdout;
use crate::output::{Answer, Output, as_object};
use crate::view::Look;

/// Set values for later workflow steps: state, holder, next action, gate
///
/// Appends to the file that GITHUB_OUTPUT names. Each value is a word, a number or a list of
/// names, never foreign text; each is delimited by two lines with a random word, so that it
/// cannot end early. For an issue that is not in the ledger, `exists` is false, and there is
/// nothing else. `git handoff help github.md` lists the values.
#[derive(Args)]
#[command(after_help = "Examples:
  git handoff github output 123
  git handoff github output 123 --require approved --head HEAD --output -
  git handoff github output      (of the whole ledger)")]
pub(crate) struct Arguments {
    #[command(flatten)]
    page: Page,
}

impl Arguments {
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        let file = self.page.file(output, "GITHUB_OUTPUT")?;
        let of_issue = |_: &_, issue: Option<&_>| issue.map_or_else(of_none, of_issue);
        let values = self.page.render(context, of_issue, of_ledger)?;
        let text = written(&values, random_word);
        let to_stdout = file.as_deref().is_some_and(is_stdout);
        if let Some(file) = file.filter(|_| !to_stdout) {
            append(&file, &text)?;
        }
        output.answer(&ValuesView {
            values,
            delimited: to_stdout.then_some(text),
        })
    }
}

/// Each value, by its name.
#[derive(Serialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub(crate) struct ValuesView {
    #[serde(serialize_with = "as_object")]
    #[schemars(with = "std::collections::BTreeMap<String, String>")]
    values: Values,
    /// The text for a workflow, where standard output takes its file's place.
    #[serde(skip)]
    delimited: Option<String>,
}

impl Answer for ValuesView {
    fn text(&self, _: &Look) -> String {
        let lines = self.values.iter();
        let lines = || {
            lines
                .map(|(name, value)| format!("{name}={value}\n"))
                .collect()
        };
        self.delimited.clone().unwrap_or_else(lines)
    }
}
