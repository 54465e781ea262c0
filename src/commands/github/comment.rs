use std::path::PathBuf;

use clap::Args;
use handoff::base::ids::IssueKey;
use handoff::base::text::quoted;
use handoff::model::IssueSummary;
use handoff_github::comment::{AUTHOR, Comment, existing, marker};
use handoff_github::status::Issue;
use handoff_github::summary::comment;
use schemars::JsonSchema;
use serde::Serialize;

use crate::args::gate::GateArgs;
use crate::context::Context;
use crate::contracts::input;
use crate::environment::now;
use crate::failure::{ErrorCode, Failure, chain};
use crate::output::replace::{is_stdout, replace};
use crate::output::{Answer, Output};
use crate::view::Look;

/// Write the body of the comment about an issue, for the issue and its pull request
///
/// It says first whose turn it is, what is asked and how to answer, what a merge lacks, what reviews
/// found, and what it cost; what happened is folded away. It has at most 65,536 bytes, and an
/// invisible first line. --existing takes the issue's or the pull request's comments as GitHub's REST API lists them; the body then
/// goes to a file, unless it is as it was, and the answer is the id of the comment to update, or nothing if
/// there is none yet. Only a comment by the same author counts, even if another's has that first line.
#[derive(Args)]
#[command(after_help = "Examples:
  git handoff github comment 123 > comment.md
  git handoff github comment 123 --existing comments.json --output comment.md
  git handoff github comment 123 --report https://octo.github.io/desk/")]
pub(crate) struct Arguments {
    /// The issue
    #[arg(value_name = "ISSUE")]
    issue: String,
    #[command(flatten)]
    gate: GateArgs,
    /// The existing comments: one page of the API's answer, or several pages in a row; - reads
    /// standard input
    #[arg(long, value_name = "FILE", requires = "output")]
    existing: Option<String>,
    /// The author of the comment
    #[arg(long, value_name = "LOGIN", default_value = AUTHOR, requires = "existing")]
    author: String,
    /// The address of the ledger's report, to link to: templates/github/handoff-pages.yml
    #[arg(long, value_name = "URL", value_parser = address)]
    report: Option<String>,
    /// Write the body to this file
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Parses a URL that can be a link in Markdown; an empty text is `None`.
fn address(text: &str) -> Result<String, String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._~:/?&=%+,@".contains(c);
    let is_web = text.starts_with("https://") || text.starts_with("http://");
    if text.is_empty() || is_web && text.chars().all(is_plain) {
        Ok(text.to_owned())
    } else {
        Err("it is not an address such as https://octo.github.io/desk/".to_owned())
    }
}

impl Arguments {
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        let file = self.output.as_ref().filter(|file| !is_stdout(file));
        if self.existing.is_some() && file.is_none() {
            let text = "standard output is for the comment's id; the body needs a file";
            return Err(Failure::usage(text).hint("use --output FILE"));
        }
        let key: IssueKey = self.issue.parse()?;
        let repository = context.repository()?;
        let ledger = context.ledger(&repository)?;
        let known = match &self.existing {
            Some(list) => self.found(context, list, &marker(&key, ledger.branch()))?,
            None => None,
        };
        let tip = ledger.tip()?;
        let request = self.gate.read(context, (&ledger, &tip), &key)?;
        let issue = Issue::known(&tip, &key, &request, now()?)?;
        let page = comment(
            &issue,
            self.report.as_deref().filter(|report| !report.is_empty()),
            ledger.branch(),
        );
        if !page.left_out.is_empty() {
            output.say(&format!("left out: {}", page.left_out.join(", ")));
        }
        let is_same = known.as_ref().is_some_and(|known| known.is(&page.text));
        if let Some(file) = file.filter(|_| !is_same) {
            replace(file, page.text.as_bytes())?;
        }
        output.answer(&CommentView {
            issue: IssueSummary::from(&issue.issue),
            comment: known.map(|known| known.id),
            bytes: page.text.len(),
            left_out: page.left_out,
            body: page.text,
            is_written: file.is_some(),
        })
    }

    /// The existing comment, if any.
    fn found(
        &self,
        context: &Context,
        list: &str,
        marker: &str,
    ) -> Result<Option<Comment>, Failure> {
        let bytes = input::comments(context, list)?;
        existing(&bytes, marker, &self.author).map_err(|error| {
            let shown = match list {
                "-" => "standard input".to_owned(),
                list => quoted(list),
            };
            let text = format!("{shown}: {}", chain(&error));
            Failure::new(ErrorCode::CommentsRefused, text)
                .hint("`gh api --paginate repos/OWNER/NAME/issues/NUMBER/comments` lists them")
        })
    }
}

/// The body of an issue's comment.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "GithubComment")]
pub(crate) struct CommentView {
    /// the issue
    issue: IssueSummary,
    /// the comment to replace, with `--existing`
    comment: Option<u64>,
    /// how long the body is
    bytes: usize,
    /// what did not fit GitHub's limit
    left_out: Vec<String>,
    /// the body, Markdown
    body: String,
    /// Whether the body went to a file.
    #[serde(skip)]
    is_written: bool,
}

impl Answer for CommentView {
    fn text(&self, _: &Look) -> String {
        match self.comment {
            _ if !self.is_written => self.body.clone(),
            Some(id) => format!("{id}\n"),
            None => String::new(),
        }
    }
}
