use clap::Args;
use handoff::base::codes::{self, ErrorCode, ExplainedCode};
use handoff::base::text::quoted;
use schemars::JsonSchema;
use serde::Serialize;

use crate::context::Context;
use crate::failure::Failure;
use crate::output::{Answer, Output};
use crate::view::{Look, columns};

/// The similarity, from 0 to 1, at which one code counts as a misspelling of another.
const ALIKE: f64 = 0.85;

/// Explain an error, a finding or an exit code
///
/// Prints its cause, an example, and what to do about it. A prefix lists every code that starts
/// with it; without CODE, every code is listed. Needs no repository.
#[derive(Args)]
#[command(after_help = "Examples:
  git handoff explain lease_lost
  git handoff explain field.missing
  git handoff explain 5          (an exit code)
  git handoff explain evidence   (every code with this prefix)
  git handoff explain")]
pub(crate) struct Arguments {
    /// A code as it was printed, or a prefix of several
    #[arg(value_name = "CODE")]
    code: Option<String>,
}

impl Arguments {
    /// Runs the command.
    ///
    /// # Errors
    /// A [`Failure`] if there is no such code.
    pub(crate) fn run(&self, _: &Context, output: &mut Output) -> Result<(), Failure> {
        output.paged();
        let wanted = self.code.as_deref().unwrap_or_default();
        let mut found: Vec<_> = codes::all().filter(|c| c.code == wanted).collect();
        if found.is_empty() {
            found.extend(codes::all().filter(|c| c.code.starts_with(wanted)));
        }
        if found.is_empty() {
            return Err(unknown(wanted));
        }
        output.answer(&ExplainView { codes: found })
    }
}

/// Codes and their explanations.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Explain")]
pub(crate) struct ExplainView {
    /// the named code, or all that begin with it; without an argument, every code; each is as in
    /// [docs/codes.md](codes.md)
    codes: Vec<&'static ExplainedCode>,
}

impl Answer for ExplainView {
    fn text(&self, _: &Look) -> String {
        match &self.codes[..] {
            [code] => details(code),
            several => list(several),
        }
    }
}

/// All of one code.
fn details(code: &ExplainedCode) -> String {
    let mut text = format!("{}  ({}", code.code, kind(code));
    if let [first, rest @ ..] = code.exit {
        text += &format!(", exit {first}");
        rest.iter().for_each(|exit| text += &format!(" or {exit}"));
    }
    let ExplainedCode {
        cause,
        example,
        cure,
        ..
    } = code;
    text + &format!(")\n  cause    {cause}\n  example  {example}\n  cure     {cure}\n")
}

/// The kind of a code, in the singular: `finding in contracts`.
fn kind(code: &ExplainedCode) -> String {
    let one = code.kind.to_lowercase();
    let (first, rest) = one.split_once(' ').unwrap_or((&one, ""));
    let singular = first.strip_suffix('s').unwrap_or(first);
    match rest {
        "codes" => format!("{singular} code"),
        "" => singular.to_owned(),
        rest => format!("{singular} {rest}"),
    }
}

/// One line per code, grouped by kind.
fn list(codes: &[&ExplainedCode]) -> String {
    let mut text = String::new();
    for of_kind in codes.chunk_by(|a, b| a.kind == b.kind) {
        text += &format!("{}\n", of_kind[0].kind);
        let rows = of_kind.iter().map(|code| {
            let row = [format!("  {}", code.code), code.cause.to_owned()];
            row.to_vec()
        });
        text += &columns(&rows.collect::<Vec<_>>());
    }
    text
}

fn unknown(wanted: &str) -> Failure {
    let alike = |code: &ExplainedCode| strsim::jaro_winkler(code.code, wanted);
    let is_number = wanted.parse::<u32>().is_ok();
    let nearest = codes::all()
        .filter(|_| !is_number)
        .max_by(|a, b| alike(a).total_cmp(&alike(b)));
    let nearest = nearest.filter(|code| alike(code) >= ALIKE);
    let hint = nearest.map_or_else(
        || "`git handoff explain` lists every code".to_owned(),
        |code| format!("the closest code: `git handoff explain {}`", code.code),
    );
    let text = format!("no error, finding or exit has the code {}", quoted(wanted));
    Failure::new(ErrorCode::NoCode, text).hint(hint)
}
