use clap::{Args, Subcommand};
use handoff_base::ids::AgentName;
use handoff_base::text::plain;
use handoff_ledger::{ProtocolError, Rules, Snapshot, documents};
use serde_json::{Value, json};

use crate::context::Context;
use crate::contracts::input;
use crate::failure::{ErrorCode, Failure};
use crate::output::{Output, pretty};
use crate::view::columns;

/// Manage the documents that all issues of a protocol share
///
/// The protocol names the documents and gives each a schema. Each new version is one commit;
/// `claim` prints their contents.
#[derive(Args)]
#[command(after_help = "Examples:
  git handoff document list
  git handoff document set tech-stack stack.json --as @backend-specialist
  git handoff document show tech-stack")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
    /// The protocol that shares the document; by default the first that has one
    /// of that name
    #[arg(long, value_name = "NAME", global = true)]
    protocol: Option<AgentName>,
}

#[derive(Subcommand)]
enum Action {
    /// List the documents and whether each is set
    #[command(after_help = "Example:\n  git handoff document list")]
    List,
    /// Print a document
    #[command(after_help = "Example:\n  git handoff document show tech-stack")]
    Show {
        /// The document's name
        #[arg(value_name = "DOCUMENT")]
        name: AgentName,
    },
    /// Record a new version of a document in the ledger
    #[command(
        after_help = "Example:\n  git handoff document set tech-stack stack.json --as @backend-specialist"
    )]
    Set {
        /// The document's name
        #[arg(value_name = "DOCUMENT")]
        name: AgentName,
        /// The JSON file; - reads standard input
        #[arg(value_name = "FILE")]
        file: String,
    },
}

impl Arguments {
    /// Runs the command.
    ///
    /// # Errors
    /// A [`Failure`] with its exit code.
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        let repository = context.repository()?;
        let writer = match self.action {
            Action::Set { .. } => context.writer(&repository, output)?,
            Action::List | Action::Show { .. } => context.writer_apart(&repository, output)?,
        };
        let (mut ledger, session) = writer;
        let tip = ledger.tip()?;
        match &self.action {
            Action::List => self.list(&tip, output),
            Action::Show { name } => {
                let rules = self.rules(&tip, Some(name))?;
                let known = documents(&tip, &rules)?;
                let found = known.into_iter().find(|(known, _)| known == name);
                let Some((_, value)) = found else {
                    let text = format!("document {name} was never set");
                    let failure = Failure::new(ErrorCode::NoDocument, text);
                    return Err(
                        failure.hint(format!("`git handoff document set {name} FILE` sets it"))
                    );
                };
                output.answer(
                    &json!({ "document": name, "value": value }),
                    &pretty(&value),
                )
            }
            Action::Set { name, file } => {
                let agent = context.acting_agent(&repository)?;
                let bytes = input::contract(context, file)?;
                let rules = self.rules(&tip, Some(name))?;
                let protocol: AgentName = rules.protocol().definition().name.clone();
                let commit = ledger.put_document(&session, &agent, &protocol, name, &bytes)?;
                output.follow(&ledger);
                let text = match commit {
                    Some(commit) => format!("set {name}\n  commit {}\n", commit.short()),
                    None => format!("{name} already has this content; nothing was written\n"),
                };
                let data = json!({
                    "document": name,
                    "protocol": protocol,
                    "commit": commit.map(|c| c.to_string()),
                });
                output.answer(&data, &text)
            }
        }
    }

    fn list(&self, tip: &Snapshot<'_>, output: &mut Output) -> Result<(), Failure> {
        let mut rows = Vec::new();
        let mut data: Vec<Value> = Vec::new();
        for name in tip.protocols()? {
            if self.protocol.as_ref().is_some_and(|p| p.as_str() != name) {
                continue;
            }
            let rules = tip.rules(&name)?;
            let set = documents(tip, &rules)?;
            for (document, about) in &rules.protocol().definition().documents {
                let is_set = set.iter().any(|(known, _)| known == document);
                let standing = if is_set { "set" } else { "not set" };
                rows.push(vec![
                    document.to_string(),
                    standing.to_owned(),
                    name.clone(),
                    plain(&about.title),
                ]);
                data.push(json!({"document": document, "protocol": name, "title": about.title, "set": is_set}));
            }
        }
        let text = if rows.is_empty() {
            "no protocol here shares documents\n".to_owned()
        } else {
            columns(&rows)
        };
        output.answer(&json!({ "documents": data }), &text)
    }

    /// The protocol that was named, or the first that shares this document.
    fn rules<'r>(
        &self,
        tip: &Snapshot<'r>,
        document: Option<&AgentName>,
    ) -> Result<Rules<'r>, Failure> {
        let mut known = Vec::new();
        for name in tip.protocols()? {
            if self.protocol.as_ref().is_some_and(|p| p.as_str() != name) {
                continue;
            }
            let rules = tip.rules(&name)?;
            let shared = &rules.protocol().definition().documents;
            if document.is_none_or(|document| shared.contains_key(document)) {
                return Ok(rules);
            }
            known.extend(shared.keys().map(ToString::to_string));
        }
        let name = document.map(ToString::to_string).unwrap_or_default();
        Err(ProtocolError::NoDocument { name, known }.into())
    }
}
