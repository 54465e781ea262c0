use clap::{Args, Subcommand};
use handoff::base::ObjectId;
use handoff::base::ids::AgentName;
use handoff::base::text::continued;
use handoff::ledger::{ProtocolError, Rules, Snapshot, documents};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::context::Context;
use crate::contracts::input;
use crate::failure::{ErrorCode, Failure, hint};
use crate::output::page::{Page, PageArgs};
use crate::output::{Answer, Output, pretty};
use crate::view::{Look, columns};

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
    List(PageArgs),
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
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        let repository = context.repository()?;
        let writer = match self.action {
            Action::Set { .. } => context.writer(&repository, output)?,
            Action::List(_) | Action::Show { .. } => context.writer_apart(&repository, output)?,
        };
        let (mut ledger, session) = writer;
        let tip = ledger.tip()?;
        match &self.action {
            Action::List(page) => self.list(&tip, page, output),
            Action::Show { name } => {
                let rules = self.rules(&tip, Some(name))?;
                let known = documents(&tip, &rules)?;
                let found = known.into_iter().find(|(known, _)| known == name);
                let Some((_, value)) = found else {
                    let text = format!("document {name} was never set");
                    let failure = Failure::new(ErrorCode::NoDocument, text);
                    return Err(
                        failure.hint(hint!("`git handoff document set {} FILE` sets it", name))
                    );
                };
                output.answer(&DocumentView {
                    document: name,
                    value,
                })
            }
            Action::Set { name, file } => {
                let agent = context.acting_agent(&repository)?;
                let bytes = input::contract(context, file)?;
                let rules = self.rules(&tip, Some(name))?;
                let protocol: AgentName = rules.protocol().definition().name.clone();
                let commit = ledger.put_document(&session, &agent, &protocol, name, &bytes)?;
                output.follow(&ledger);
                output.answer(&DocumentSetView {
                    document: name,
                    protocol,
                    commit,
                })
            }
        }
    }

    fn list(
        &self,
        tip: &Snapshot<'_>,
        page: &PageArgs,
        output: &mut Output,
    ) -> Result<(), Failure> {
        let mut listed = Vec::new();
        for name in tip.protocols()? {
            if self.protocol.as_ref().is_some_and(|p| p.as_str() != name) {
                continue;
            }
            let rules = tip.rules(&name)?;
            let set = documents(tip, &rules)?;
            for (document, about) in &rules.protocol().definition().documents {
                listed.push(ListedDocument {
                    document: document.clone(),
                    protocol: name.clone(),
                    title: about.title.clone(),
                    set: set.iter().any(|(known, _)| known == document),
                });
            }
        }
        let name = |one: &ListedDocument| format!("{}/{}", one.protocol, one.document);
        let page = page.cut(&mut listed, name, output)?;
        output.answer(&DocumentsView {
            documents: listed,
            page,
        })
    }

    /// The named protocol, or the first that shares this document.
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

/// The documents that protocols share.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Documents")]
pub(crate) struct DocumentsView {
    /// each document
    documents: Vec<ListedDocument>,
    #[serde(flatten)]
    page: Page,
}

/// A document that a protocol shares.
#[derive(Serialize, JsonSchema)]
struct ListedDocument {
    /// its name
    document: AgentName,
    /// the protocol that shares it
    protocol: String,
    /// what it is
    title: String,
    /// whether it was set
    set: bool,
}

impl Answer for DocumentsView {
    fn text(&self, _: &Look) -> String {
        if self.documents.is_empty() {
            return "no protocol here shares documents\n".to_owned();
        }
        let rows = self.documents.iter().map(|listed| {
            let standing = if listed.set { "set" } else { "not set" };
            vec![
                listed.document.to_string(),
                standing.to_owned(),
                listed.protocol.clone(),
                continued(&listed.title),
            ]
        });
        columns(&rows.collect::<Vec<_>>()) + self.page.text()
    }
}

/// A document.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "SharedDocument")]
pub(crate) struct DocumentView<'a> {
    /// its name
    document: &'a AgentName,
    /// its content
    value: Value,
}

impl Answer for DocumentView<'_> {
    fn text(&self, _: &Look) -> String {
        pretty(&self.value)
    }
}

/// A document that was set.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "DocumentSet")]
pub(crate) struct DocumentSetView<'a> {
    /// its name
    document: &'a AgentName,
    /// the protocol that shares it
    protocol: AgentName,
    /// the commit that was written; null if the document already had this value
    commit: Option<ObjectId>,
}

impl Answer for DocumentSetView<'_> {
    fn text(&self, _: &Look) -> String {
        let name = self.document;
        match self.commit {
            Some(commit) => format!("set {name}\n  commit {}\n", commit.short()),
            None => format!("{name} already has this content; nothing was written\n"),
        }
    }
}
