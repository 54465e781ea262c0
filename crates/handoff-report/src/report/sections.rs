//! Renders every issue's section on several threads, in order.

use std::collections::BTreeMap;
use std::io::Write;
use std::rc::Rc;
use std::sync::mpsc;
use std::thread;

use handoff::base::ids::AgentName;
use handoff::git::Repository;
use handoff::ledger::{
    IssueFolder, IssueSurvey, Kept, LedgerError, Rules, Snapshot, contract_value, failures,
};
use handoff::model::{Record, View};

use super::contract::contract;
use super::handoff::HandoffDetails;
use super::issue::{Facts, section};
use super::{Report, ReportError};
use handoff::ledger::attention::of_folder;

/// How many handoffs a thread renders at a time.
const PART: usize = 100;

pub(super) fn write(
    report: &Report<'_>,
    tip: &Snapshot<'_>,
    threads: usize,
    out: &mut impl Write,
) -> Result<(), ReportError> {
    let parts = parts(&report.sections);
    let threads = threads.clamp(1, parts.len().max(1));
    if threads == 1 {
        let mut reader = Reader::new(report, tip);
        for part in &parts {
            out.write_all(reader.part(part)?.as_bytes())?;
        }
        return Ok(());
    }
    thread::scope(|scope| {
        // Thread i renders every i-th part; bounded channels keep it close to the writer.
        let from: Vec<mpsc::Receiver<Result<String, LedgerError>>> = (0..threads)
            .map(|first| {
                let (send, receive) = mpsc::sync_channel(2);
                let (parts, commit) = (&parts, tip.commit());
                scope.spawn(move || {
                    let read = || -> Result<(), LedgerError> {
                        // libgit2's handles belong to one thread each.
                        let repository = Repository::open_for_report()?;
                        let tip = Snapshot::at(&repository, commit, report.branch)?;
                        let mut reader = Reader::new(report, &tip);
                        for part in parts.iter().skip(first).step_by(threads) {
                            // If the page can't be written, the receiver is gone.
                            if send.send(Ok(reader.part(part)?)).is_err() {
                                break;
                            }
                        }
                        Ok(())
                    };
                    if let Err(error) = read() {
                        let _ = send.send(Err(error));
                    }
                });
                receive
            })
            .collect();
        for number in 0..parts.len() {
            // A thread ends early only after sending its error.
            match from[number % threads].recv() {
                Ok(part) => out.write_all(part?.as_bytes())?,
                Err(_) => break,
            }
        }
        Ok(())
    })
}

/// Issues in groups of similar size.
fn parts<'a, 'b>(issues: &'b [&'a IssueSurvey<'a>]) -> Vec<&'b [&'a IssueSurvey<'a>]> {
    let mut parts = Vec::new();
    let (mut start, mut size) = (0, 0);
    for (i, issue) in issues.iter().enumerate() {
        size += issue.handoffs.len() + 1;
        if size >= PART {
            parts.push(&issues[start..=i]);
            (start, size) = (i + 1, 0);
        }
    }
    if start < issues.len() {
        parts.push(&issues[start..]);
    }
    parts
}

/// Reads issues and their contracts on one thread.
struct Reader<'a, 'r> {
    report: &'a Report<'a>,
    tip: &'a Snapshot<'r>,
    rules: BTreeMap<AgentName, Rc<Rules<'r>>>,
}

impl<'a, 'r> Reader<'a, 'r> {
    fn new(report: &'a Report<'a>, tip: &'a Snapshot<'r>) -> Self {
        Self {
            report,
            tip,
            rules: BTreeMap::new(),
        }
    }

    fn part(&mut self, issues: &[&IssueSurvey<'_>]) -> Result<String, LedgerError> {
        let mut page = String::new();
        for survey in issues {
            self.issue(&mut page, survey)?;
        }
        Ok(page)
    }

    fn issue(&mut self, page: &mut String, survey: &IssueSurvey<'_>) -> Result<(), LedgerError> {
        let folder = self.tip.issue(&survey.key)?;
        let Some(issue) = folder.issue()? else {
            return Ok(());
        };
        let records = folder.records()?.into_iter();
        let handoffs = records.map(|record| self.details(&folder, record));
        let handoffs = handoffs.collect::<Result<Vec<HandoffDetails>, LedgerError>>()?;
        let now = self.report.now;
        let protocols = self.report.protocols;
        let protocol = protocols.get(&survey.protocol);
        let stuck = protocol.map(|protocol| of_folder(&folder, protocol, now));
        let stuck = stuck.transpose()?;
        let facts = Facts {
            issue: &issue,
            definition: protocol.map(|protocol| protocol.definition()),
            survey,
            handoffs: &handoffs,
            stuck: &stuck.unwrap_or_default(),
            now,
        };
        section(page, &facts);
        Ok(())
    }

    fn details(
        &mut self,
        folder: &IssueFolder<'_>,
        record: Record,
    ) -> Result<HandoffDetails, LedgerError> {
        let bytes = folder.contract(&record)?;
        let rules = self.rules(&record.protocol)?;
        let value = contract_value(&rules, &record, &bytes)?;
        let shown = contract(&record, value.as_ref(), &bytes);
        let found = failures(&record).into_iter().map(|failure| {
            let context = failure.context.as_ref().map(|context| {
                let kept = Kept::open(self.tip.repository(), &record.id, context);
                kept.and_then(|kept| kept.contents())
            });
            (failure, context)
        });
        Ok(HandoffDetails {
            failures: found.collect(),
            contract: shown,
            record,
        })
    }

    fn rules(&mut self, name: &AgentName) -> Result<Rc<Rules<'r>>, LedgerError> {
        if let Some(known) = self.rules.get(name) {
            return Ok(Rc::clone(known));
        }
        let rules = Rc::new(self.tip.rules(name.as_str())?);
        self.rules.insert(name.clone(), Rc::clone(&rules));
        Ok(rules)
    }
}
