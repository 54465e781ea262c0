//! Tests a protocol in a scratch ledger.

use clap::Args;
use handoff::base::finding::Finding;
use handoff::base::text::one_line;
use handoff::templates::check_folder;
use handoff_graph::Graph;
use schemars::JsonSchema;
use serde::Serialize;

use super::{ensure_one_meaning, files};
use crate::args::protocols;
use crate::commands::graph::drawn;
use crate::context::Context;
use crate::exit;
use crate::failure::{ErrorCode, Failure, hint};
use crate::output::{Answer, Output, counted};
use crate::view::{Look, columns};
use handoff_trial::{Load, Played, Scenario};

/// Play a protocol: the usual way, refusals, limits, failures, many issues
///
/// Agents are played in a scratch ledger, which is deleted: each sends contracts made from the
/// templates, with values that the schemas allow. Draws the routes, and says for each scenario whether
/// it went as it should. Exits 1 if one did not.
///
/// If no value is found for a field, give it `examples` in the schema. Claims about the repository are
/// not checked, and nothing is signed.
#[derive(Args)]
#[command(after_help = "Examples:
  git handoff protocol test ./our-way
  git handoff protocol test issue-to-pr --issues 20
  git handoff protocol test ./our-way --json")]
pub(super) struct Test {
    /// One in force here, a built-in one, or a folder
    #[arg(value_name = "NAME|FOLDER")]
    name: String,
    /// How many issues to take to their end, in five seconds at most, to see how fast the steps are
    #[arg(long, value_name = "N", default_value_t = 200)]
    issues: u32,
}

impl Test {
    pub(super) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        ensure_one_meaning(context, "test", &self.name)?;
        let files = files(context, output, &self.name)?;
        let findings = check_folder(&files);
        if findings.iter().any(Finding::is_error) {
            let text = format!(
                "{} is not sound, so that it was not played",
                one_line(&self.name)
            );
            return Err(Failure::new(ErrorCode::ProtocolFaults, text)
                .hint(hint!(
                    "fix what `git handoff protocol check {}` finds",
                    protocols::again(&self.name)
                ))
                .findings(findings));
        }
        let Played {
            scenarios,
            graph,
            load,
        } = handoff_trial::play(&files, self.issues)?;
        let unexpected = scenarios.iter().filter(|scenario| !scenario.ok).count();
        let view = ProtocolTestView {
            protocol: &self.name,
            graph,
            scenarios,
            load,
        };
        if unexpected == 0 {
            return output.answer(&view);
        }
        if output.is_json() {
            let text = format!("{} did not go as expected", counted(unexpected, "scenario"));
            return Err(Failure::new(ErrorCode::ProtocolUnexpected, text)
                .hint("each scenario says what was unexpected")
                .data(&view));
        }
        output.answer(&view)?;
        Err(Failure::reported(exit::NO))
    }
}

/// The result of a protocol's test.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ProtocolTest")]
pub(crate) struct ProtocolTestView<'a> {
    /// the name or folder as given
    protocol: &'a str,
    /// its routes, and how often they were taken in the scenarios
    graph: Graph,
    /// what was played, in this order
    scenarios: Vec<Scenario>,
    /// how fast the steps of many issues were; null if an issue does not come to its end
    load: Option<Load>,
}

impl Answer for ProtocolTestView<'_> {
    fn text(&self, look: &Look) -> String {
        let rows = self.scenarios.iter().map(|scenario| {
            let word = match (scenario.played, scenario.ok) {
                (false, _) => "not played",
                (true, true) => "ok",
                (true, false) => "UNEXPECTED",
            };
            let cells = [word, &scenario.name, &scenario.about];
            cells.map(one_line).to_vec()
        });
        let mut text = format!(
            "{}\n{}",
            drawn(&self.graph, look),
            columns(&rows.collect::<Vec<_>>())
        );
        if let Some(load) = &self.load {
            text += &format!("{} steps per second\n", load.rate());
        }
        text
    }
}
