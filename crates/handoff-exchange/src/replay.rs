//! Import: detects the format of a folder, and replays the steps of an export.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use handoff::base::finding::{Finding, FindingCode};
use handoff::base::ids::{HandoffId, IssueKey};
use handoff::base::text::{counted, quoted};
use handoff::base::{ObjectId, digest};
use handoff::contract::Input;
use handoff::git::Repository;
use handoff::ledger::{Consent, Ledger, LedgerError, PutMode, Session, Snapshot, Work};
use handoff::model::{FailureContext, Update, View};

use super::deliver::{Import, Imported, Importer};
use super::fault::Fault;
use super::files::{Folder, TextLine, open};
use super::history::History;
use super::line::{Header, IssueLine, Key, Line, STEPS, Versioned};
use super::shared_folder::SharedFolder;
use super::{ExchangeError, Source, inbound, line, places};

/// Imports a folder or a file. Each item becomes one or more steps on the ordinary write path; a
/// refused item is reported, and the others continue. Items that the ledger already has are
/// skipped.
///
/// # Errors
/// [`ExchangeError`] if nothing can be read or the ledger can't be written; what was imported
/// before that stays.
pub fn import(
    ledger: &mut Ledger<'_>,
    session: Session,
    path: &Path,
    wanted: Import,
) -> Result<Imported, ExchangeError> {
    import_known(ledger, session, path, wanted, None)
}

/// Like [`import`], with the folder's index: skips known files, and adds the imported ones.
pub(super) fn import_known(
    ledger: &mut Ledger<'_>,
    session: Session,
    path: &Path,
    wanted: Import,
    known: Option<SharedFolder>,
) -> Result<Imported, ExchangeError> {
    let is_known = known.is_some();
    let (folder, file) = open(path)?;
    let source = match wanted.source {
        Some(source) => source,
        None => inbound::source_of(&folder, file.as_deref()),
    };
    let mut importer = Importer::new(ledger, session, wanted, source);
    importer.known = known;
    match source {
        Source::Steps => {
            let name = file.as_deref().unwrap_or(STEPS);
            let lines = Lines::open(&folder, name)?;
            Replay::new(&folder, name, importer).run(lines)
        }
        Source::Layout(layout) => {
            let read = inbound::read(&folder, file.as_deref(), layout, &mut importer);
            if let Some(known) = &mut importer.known {
                known.save()?;
            }
            read?;
            let mut report = importer.report;
            if file.is_none() {
                report.left_out = folder.left_out()?;
            }
            if is_known {
                // Files that an export put beside the folders of states.
                report.left_out.retain(|file| !places::is_of_export(file));
                return Ok(report);
            }
            if report.imported.is_empty() && report.skipped.is_empty() && report.refused.is_empty()
            {
                let path = path.to_owned();
                return Err(ExchangeError::Empty { path });
            }
            Ok(report)
        }
    }
}

/// The number of steps published one by one at first: a small import needs no packs, and an
/// interrupted large one has made a start.
const ALONE: usize = 64;

/// The maximum number of steps published together, and of bytes of their objects.
const BATCH: usize = 5_000;
const BATCH_BYTES: usize = 32 << 20;

/// A line with its number, or why it can't be parsed.
type NumberedLine = (usize, Result<Line, Box<Finding>>);

/// The lines of an export's steps.
struct Lines {
    lines: Vec<NumberedLine>,
}

impl Lines {
    fn open(folder: &Folder, name: &str) -> Result<Self, ExchangeError> {
        let path = folder.path(name);
        let unusable = |findings| ExchangeError::Unusable {
            path: path.clone(),
            findings,
        };
        let found = match folder.lines(name) {
            Ok(found) => found,
            Err(Fault::Unreadable { findings }) => return Err(unusable(findings)),
            Err(_) => return Err(unusable(Vec::new())),
        };
        let mut lines = Vec::new();
        let mut header = None;
        for line in found {
            let line = line?;
            if header.is_some() {
                lines.push((line.number, parse(&line)));
                continue;
            }
            let text = line.text.as_deref().unwrap_or_default();
            let version = serde_json::from_str::<Versioned>(text).map(|v| v.version);
            if let Ok(version) = version
                && version != line::VERSION
            {
                return Err(ExchangeError::Version { path, version });
            }
            match serde_json::from_str::<Header>(text) {
                Ok(read) => header = Some(read),
                Err(error) => {
                    let text = format!("the first line is not a header: {error}");
                    return Err(unusable(vec![Finding::error(
                        FindingCode::ImportHeader,
                        "",
                        text,
                    )]));
                }
            }
        }
        match header {
            Some(_) => Ok(Self { lines }),
            None => Err(ExchangeError::Empty { path }),
        }
    }
}

fn parse(line: &TextLine) -> Result<Line, Box<Finding>> {
    let wrong = |text: String| Box::new(Finding::error(FindingCode::ImportLine, "", text));
    let Some(text) = &line.text else {
        return Err(wrong("the line is too long, or is not UTF-8".to_owned()));
    };
    let read: Line = serde_json::from_str(text)
        .map_err(|error| wrong(format!("the line is not a ledger step: {error}")))?;
    match read.fault() {
        Some(text) => Err(wrong(text.to_owned())),
        None => Ok(read),
    }
}

struct Replay<'a, 'r> {
    folder: &'a Folder,
    name: &'a str,
    importer: Importer<'a, 'r>,
    /// The steps that the ledger had before the import.
    before: HashMap<(Key, u32), Line>,
    /// The current number of steps of each subject.
    steps: HashMap<Key, u32>,
    /// Subjects with a missing step, after which later ones would be out of order.
    broken: HashSet<Key>,
}

impl<'a, 'r> Replay<'a, 'r> {
    fn new(folder: &'a Folder, name: &'a str, importer: Importer<'a, 'r>) -> Self {
        Self {
            folder,
            name,
            importer,
            before: HashMap::new(),
            steps: HashMap::new(),
            broken: HashSet::new(),
        }
    }

    fn run(mut self, lines: Lines) -> Result<Imported, ExchangeError> {
        let read = lines
            .lines
            .iter()
            .filter_map(|(_, line)| line.as_ref().ok());
        let keys: HashSet<Key> = read.map(Line::key).collect();
        self.look_back(&keys)?;
        let tally = Arc::clone(&self.importer.session.tally);
        tally.begin(Work::Importing, Some(lines.lines.len()));
        let can_batch = !self.importer.session.sign && !self.importer.ledger.is_rehearsed();
        let alone = if can_batch { ALONE } else { usize::MAX };
        let (first, mut rest) = lines.lines.split_at(lines.lines.len().min(alone));
        self.lines(first)?;
        while !rest.is_empty() {
            let taken = self.batch(rest)?;
            rest = &rest[taken..];
        }
        Ok(self.importer.report)
    }

    /// Replays the steps of these lines one by one; returns how many lines fit into the memory
    /// limit for their objects.
    fn lines(&mut self, lines: &[NumberedLine]) -> Result<usize, ExchangeError> {
        for (done, (number, line)) in lines.iter().enumerate() {
            let place = format!("{}:{number}", self.name);
            match line {
                Ok(line) => self.step(&place, line)?,
                Err(finding) => {
                    let findings = vec![Finding::clone(finding)];
                    self.importer.refuse(&place, Fault::Unreadable { findings });
                }
            }
            self.importer.session.tally.add(1);
            if self.importer.ledger.repository().collected_bytes() >= BATCH_BYTES {
                return Ok(done + 1);
            }
        }
        Ok(lines.len())
    }

    /// Replays the first of these lines and publishes their steps together; one by one if another
    /// writer was faster. Returns the number of lines.
    fn batch(&mut self, lines: &[NumberedLine]) -> Result<usize, ExchangeError> {
        let lines = &lines[..lines.len().min(BATCH)];
        let (steps, broken) = (self.steps.clone(), self.broken.clone());
        let mark = self.importer.report.mark();
        let together = self.importer.ledger.begin_batch()?;
        let taken = self.lines(lines);
        // Steps made before an error stay.
        let Importer {
            ledger, session, ..
        } = &mut self.importer;
        let published = ledger.publish_together(session, &together)?;
        let taken = taken?;
        if !published {
            (self.steps, self.broken) = (steps, broken);
            self.importer.report.take_back(&mark);
            self.lines(&lines[..taken])?;
        }
        Ok(taken)
    }

    /// Reads the ledger's existing steps of the imported subjects.
    fn look_back(&mut self, keys: &HashSet<Key>) -> Result<(), ExchangeError> {
        let tip = self.importer.ledger.tip()?;
        let repository = Repository::open_for_history().map_err(LedgerError::from)?;
        let (before, steps) = (&mut self.before, &mut self.steps);
        History::new(&repository).walk(
            tip.commit(),
            |key| keys.contains(key),
            |taken| {
                let step = taken.line.number();
                steps.insert(taken.line.key(), step);
                before.insert((taken.line.key(), step), taken.line);
                Ok(())
            },
        )
    }

    /// Replays one step, unless the ledger has it.
    fn step(&mut self, place: &str, line: &Line) -> Result<(), ExchangeError> {
        let (key, step) = (line.key(), line.number());
        let has = self.steps.get(&key).copied().unwrap_or_default();
        let of = key.to_string();
        let fault = if self.broken.contains(&key) {
            let why = "a step before it was not imported".to_owned();
            Some(Fault::Order { step, of, why })
        } else if let Some(before) = self.before.get(&(key.clone(), step)) {
            if before.is_same(line) {
                let handoff = self.about(line);
                self.importer.skip(place, handoff);
                return Ok(());
            }
            Some(Fault::Other { step, of })
        } else if step <= has {
            // The file has it twice, and the first one was imported.
            Some(Fault::Other { step, of })
        } else if step != has + 1 {
            let why = format!("the ledger has {} of it", counted(has, "step"));
            Some(Fault::Order { step, of, why })
        } else {
            None
        };
        if let Some(fault) = fault {
            self.importer.refuse(place, fault);
            self.broken.insert(key);
            return Ok(());
        }
        line.at()
            .into_iter()
            .for_each(|at| self.importer.set_time(at));
        if self.take(place, line)? {
            self.steps.insert(key, step).map(drop)
        } else {
            self.broken.insert(key).then_some(())
        };
        Ok(())
    }

    fn about(&self, line: &Line) -> Option<HandoffId> {
        match (line.update(), line.key()) {
            (Some(Update::Change { handoff, .. }), Key::Issue(key)) => {
                Some(HandoffId::new(key, *handoff))
            }
            _ => None,
        }
    }

    /// Replays a step; returns whether the ledger has it now.
    fn take(&mut self, place: &str, line: &Line) -> Result<bool, ExchangeError> {
        let taken = match line {
            Line::Protocol(protocol) => self.protocol(place, protocol),
            Line::Document(document) => self.document(place, document),
            Line::Issue(line) => self.of_issue(place, line),
        };
        match taken {
            Ok(()) => Ok(true),
            Err(Fault::Ledger(error)) => {
                self.importer.failed(place, error)?;
                Ok(false)
            }
            Err(fault) => {
                self.importer.refuse(place, fault);
                Ok(false)
            }
        }
    }

    /// Copies the context of a failure.
    fn bring(&self, context: &FailureContext) -> Result<(), Fault> {
        let tree: ObjectId = context.tree.parse().map_err(|_| {
            let text = "the failure's stored context has an invalid id";
            Fault::unreadable(FindingCode::ImportLine, text)
        })?;
        let repository = self.importer.ledger.repository();
        if tree.format() != repository.format() {
            let text = "what was kept of the failure is in objects of another format (SHA-1 or SHA-256) than this \
                        repository's";
            return Err(Fault::unreadable(FindingCode::ImportLine, text));
        }
        let brought = repository.take_in(tree, |id| -> Result<Vec<u8>, Fault> {
            self.folder.read_up_to(&places::object_place(id), OBJECT)
        })?;
        brought.map_err(|id| {
            let text = format!("{} is another object", places::object_place(id));
            Fault::unreadable(FindingCode::ImportSha256, text)
        })
    }

    fn of_issue(&mut self, place: &str, line: &IssueLine) -> Result<(), Fault> {
        let IssueLine {
            key,
            step,
            contract,
            ..
        } = line;
        unmoved(&self.importer.ledger.tip()?, key, line.number)?;
        let mut session = self.importer.session.instead_of(step);
        // A step that was written by hand belongs to the importing worker.
        session.worker = session.worker.or(self.importer.session.worker.clone());
        let done = match (contract, step.request.update()) {
            (Some(contract), _) => {
                let bytes = self.folder.contract(&contract.file)?;
                same_digest(&contract.file, &bytes, &contract.sha256)?;
                let input = Input::read(&bytes);
                if { input.source() }.is_ok_and(|source| source.format() != contract.format) {
                    let text = format!("{} is not {}", quoted(&contract.file), contract.format);
                    return Err(Fault::unreadable(FindingCode::ImportLine, text));
                }
                let sent = (&input, &contract.protocol);
                let ledger = &mut self.importer.ledger;
                ledger.resend(&session, key, step, sent, &contract.gathered)?
            }
            (None, Some(update)) => {
                if let Update::Change { arguments, .. } = update
                    && let Some(context) = &arguments.context
                {
                    self.bring(context)?;
                }
                let ledger = &mut self.importer.ledger;
                ledger.update(&session, &step.by, key, update)?
            }
            (None, None) => return Ok(()),
        };
        let id = done.receipt.record.id.clone();
        if done.commit.is_none() {
            return Err(Fault::Repeats { id });
        }
        self.importer.took(place, &done, id);
        Ok(())
    }

    fn protocol(&mut self, place: &str, protocol: &line::ProtocolLine) -> Result<(), Fault> {
        let mut files = Vec::new();
        for file in &protocol.files {
            let inside = format!("{}/{}", protocol.folder, file.path);
            let bytes = self.folder.contract(&inside)?;
            same_digest(&inside, &bytes, &file.sha256)?;
            files.push((file.path.clone(), bytes));
        }
        let Importer {
            ledger, session, ..
        } = &mut self.importer;
        let change = PutMode::of(&ledger.tip()?, protocol.name.as_str())?;
        let consent = Consent {
            weaker: false,
            past_limits: true,
        };
        let done = ledger.put_protocol(session, &files, change, consent)?;
        self.importer.put(place, done.commit);
        Ok(())
    }

    fn document(&mut self, place: &str, document: &line::DocumentLine) -> Result<(), Fault> {
        let bytes = self.folder.contract(&document.file)?;
        same_digest(&document.file, &bytes, &document.sha256)?;
        let Importer {
            ledger, session, ..
        } = &mut self.importer;
        let (protocol, name) = (&document.protocol, &document.name);
        let commit = ledger.put_document(session, &document.by, protocol, name, &bytes)?;
        self.importer.put(place, commit);
        Ok(())
    }
}

/// The maximum size of an object to copy, in bytes: a file of the commits that a failure's context
/// keeps.
const OBJECT: u64 = 1 << 30;

/// Refuses a step of an issue that another writer changed in the meantime.
fn unmoved(tip: &Snapshot<'_>, key: &IssueKey, step: u32) -> Result<(), Fault> {
    let steps = tip.issue(key)?.issue()?.map_or(0, |issue| issue.steps);
    if steps + 1 == step {
        return Ok(());
    }
    let of = format!("issue {key}");
    Err(Fault::Other { step, of })
}

/// Refuses a file that does not match its line's digest.
fn same_digest(file: &str, bytes: &[u8], sha256: &str) -> Result<(), Fault> {
    if digest(bytes) == sha256 {
        return Ok(());
    }
    let text = format!("{} does not have the digest of its line", quoted(file));
    Err(Fault::unreadable(FindingCode::ImportSha256, text))
}
