//! The commit that starts a ledger.

use std::time::Instant;

use handoff_base::ids::AgentName;
use handoff_base::{Edit, ObjectId, to_second};
use handoff_git::Proposal;
use handoff_model::record::VERSION;
use handoff_model::screening::screen_protocol;
use handoff_model::{Manifest, layout, record};
use handoff_protocol::Policy;

use super::error::LedgerError;
use super::ledger::Ledger;
use super::session::Session;
use super::signing::signed;
use super::snapshot::SHAPE;
use super::upstream::Upstream;

/// The content of a new ledger.
pub struct Founding {
    /// The protocol of new issues.
    pub protocol: AgentName,
    /// The policy for statements that the repository contradicts.
    pub evidence: Policy,
    /// The protocol's files, by path in its folder.
    pub files: Vec<(String, Vec<u8>)>,
    /// The README's text.
    pub readme: String,
}

impl Founding {
    /// All files of the new ledger.
    fn edits(&self, manifest: &Manifest) -> Vec<(String, Edit)> {
        let mut files = vec![
            (
                layout::README.to_owned(),
                Edit::Bytes(self.readme.clone().into_bytes()),
            ),
            (
                layout::MANIFEST.to_owned(),
                Edit::Bytes(record::write(manifest)),
            ),
        ];
        for (file, bytes) in &self.files {
            let path = layout::protocol_file(self.protocol.as_str(), file);
            files.push((path, Edit::Bytes(bytes.clone())));
        }
        files
    }
}

pub(super) fn first_message(protocol: &AgentName) -> String {
    format!("Start the ledger\n\nProtocol: {protocol}\n")
}

impl Ledger<'_> {
    /// Creates the ledger; does nothing if it exists.
    ///
    /// # Errors
    /// [`LedgerError`]; the repository is then unchanged.
    pub fn init(
        &mut self,
        session: &Session,
        founding: &Founding,
    ) -> Result<Option<ObjectId>, LedgerError> {
        if self.tip_id()?.is_some() {
            self.tip()?;
            return Ok(None);
        }
        if let Some(upstream) = self.upstream() {
            // The remote may have a ledger already, and two ledgers cannot be merged.
            upstream.ensure_reached()?;
        }
        self.guard(session)?;
        screen_protocol(&founding.files)?;
        let now = session.clock.author();
        let manifest = Manifest {
            paused: Vec::new(),
            quarantined: Vec::new(),
            resumed: None,
            version: VERSION,
            default_protocol: founding.protocol.clone(),
            evidence: founding.evidence,
            created_at: to_second(now),
        };
        let files = founding.edits(&manifest);
        let mut person = session.committer();
        session.ensure_not_ahead(to_second(now), to_second(person.at))?;
        person.at = now;
        let message = first_message(&founding.protocol);
        let start = Instant::now();
        let is_reached = self.upstream().is_some_and(Upstream::is_reached);
        let mut queue = (!is_reached).then(|| self.join_queue(session));
        let mut attempts = 0;
        while self.tip_id()?.is_none() {
            attempts += 1;
            let proposal = Proposal {
                refname: self.refname(),
                parent: None,
                edits: &files,
                shape: SHAPE,
                author: &person,
                committer: &session.committer(),
                message: &message,
            };
            // No protocol in force can require a signature yet.
            let prepared = if session.sign && !self.is_rehearsed() {
                signed(self.repository(), &proposal, session, None, start)?
            } else {
                self.repository().prepare(&proposal)?
            };
            let reflog = "handoff: start the ledger";
            let attempt = (attempts, start);
            let published =
                self.publish_step(session, queue.as_mut(), prepared, reflog, attempt)?;
            // If another process created it first, use that ledger.
            if let Some(commit) = published {
                self.settle(Some(commit))?;
                return Ok(Some(commit));
            }
        }
        self.tip().map(|_| None)
    }
}
