//! Printing: data on stdout, chatter on stderr, one document with `--json`.
//!
//! Only [`Output`] prints; commands give it an [`Answer`]. `carried` completes printed commands,
//! `annotations` are for workflow logs, `progress` shows the progress of long work, `replace`
//! writes files atomically.

pub mod annotations;
mod answer;
mod carried;
pub mod page;
mod progress;
pub mod replace;

pub use handoff::base::text::{counted, counted_as};

use std::borrow::Cow;
use std::ffi::OsString;
use std::io;
use std::io::Write;

use anstream::adapter::{strip_bytes, strip_str};
use anstream::{AutoStream, ColorChoice};
use anstyle::AnsiColor;
use handoff::base::codes::exit;
use handoff::base::finding::{Finding, Severity};
use handoff::base::hint::Part;
use handoff::base::text::{continued, path};
use handoff::base::{Moment, short_id};
use handoff::contract::Secrets;
use handoff::git::tells_of_damage;
use handoff::ledger::attention::Attention;
use handoff::ledger::{Ledger, Snapshot, Unpublished};
use handoff::model::Halt;
use handoff_macros::skip_serializing_none;
use schemars::JsonSchema;
use serde::Serialize;

use annotations::{Annotation, Weight, commands, log};
pub use answer::{Answer, as_object};
pub use carried::{BEGIN, Carried};

use crate::environment::{is_in_workflow, now};
use crate::failure::{ErrorCode, Failure, Hint, hint};
use crate::view::{Look, Pager, Screen, Wishes, is_dumb, is_for_git_pager};

/// The version of every JSON document.
pub const SCHEMA: &str = "git-handoff/2";

/// Every JSON document.
#[skip_serializing_none]
#[derive(Serialize, JsonSchema)]
pub struct Document<'a, A> {
    /// `git-handoff/2`
    schema: &'static str,
    /// whether the command succeeded
    ok: bool,
    /// what went wrong, if `ok` is false
    error: Option<ErrorView<'a>>,
    /// what is paused beyond single issues, in the answers of views
    work_paused: Option<&'a [Halt]>,
    /// the answer, if `ok` is true; [each command](#what-each-command-answers) has its own. `import`, `wait`, `sync` and steps recorded only here
    /// (`not_published`) have it along with the error: what was done nevertheless, the current state
    data: Option<A>,
}

/// What went wrong.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Error")]
struct ErrorView<'a> {
    /// a stable word for programs: [codes](codes.md#errors)
    code: ErrorCode,
    /// what was refused and why, for people
    message: &'a str,
    /// the next safe thing to do
    hint: String,
    /// every fault, if there can be several; otherwise empty
    findings: &'a [Finding],
}

/// The destination of a command's output.
pub struct Output {
    json: bool,
    /// Whether the command's ledger has a remote.
    has_remote: bool,
    /// The written steps that the remote lacks.
    unpublished: Option<Unpublished>,
    /// Why the local state may be stale.
    stale: Option<String>,
    /// What the next answer is told with.
    notice: Option<(&'static str, String)>,
    /// What is paused beyond single issues.
    halts: Vec<Halt>,
    /// The options for printed commands, once known.
    carried: Option<Carried>,
    /// The hint of a failure that was reported as JSON.
    hint: Option<Hint>,
    one_line: bool,
    /// Whether failures are printed as annotations.
    annotates: bool,
    /// Whether the command has no effect besides its answer.
    only_reads: bool,
    /// The arguments as typed by the user.
    arguments: Vec<String>,
    /// The terminal for answers, if any.
    screen: Option<Screen>,
    wishes: Wishes,
    /// Whether answers may be long, and whether the user's settings allow a pager.
    is_view: bool,
    may_page: bool,
    stdout: Sink,
    stderr: AutoStream<io::Stderr>,
}

/// The answer for a caller in this process: the document, and the hint of a failure as data (the
/// document has it as text for a shell).
pub type Kept = (Vec<u8>, Option<Hint>);

/// The destination of answers.
enum Sink {
    /// To standard output.
    Stdout(AutoStream<io::Stdout>),
    /// To the caller in this process.
    Kept(Vec<u8>),
}

impl Sink {
    fn stdout(color: ColorChoice) -> Self {
        Self::Stdout(AutoStream::new(io::stdout(), color))
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Stdout(stream) if stream.current_choice() == ColorChoice::Never => {
                // In one piece: the stream would otherwise write each piece between two styles.
                let mut stdout = io::stdout().lock();
                stdout.write_all(&strip_bytes(bytes).into_vec())?;
                stdout.flush()
            }
            Self::Stdout(stream) => stream.write_all(bytes).and_then(|()| stream.flush()),
            Self::Kept(kept) => {
                kept.extend_from_slice(bytes);
                Ok(())
            }
        }
    }

    fn has_colors(&self) -> bool {
        match self {
            Self::Stdout(stream) => stream.current_choice() != ColorChoice::Never,
            Self::Kept(_) => false,
        }
    }
}

impl Output {
    /// Prints as text, or as one JSON document.
    pub fn new(json: bool, color: ColorChoice) -> Self {
        Self {
            json,
            has_remote: false,
            unpublished: None,
            stale: None,
            notice: None,
            halts: Vec::new(),
            carried: None,
            hint: None,
            one_line: false,
            annotates: false,
            only_reads: false,
            arguments: Vec::new(),
            screen: None,
            wishes: Wishes::default(),
            is_view: false,
            may_page: false,
            stdout: Sink::stdout(color),
            stderr: AutoStream::new(io::stderr(), color),
        }
    }

    /// Captures the JSON document instead of printing it.
    pub fn kept() -> Self {
        Self {
            stdout: Sink::Kept(Vec::new()),
            ..Self::new(true, ColorChoice::Never)
        }
    }

    /// The captured document; empty if it was printed.
    pub fn into_kept(self) -> Kept {
        let document = match self.stdout {
            Sink::Stdout(_) => Vec::new(),
            Sink::Kept(kept) => kept,
        };
        (document, self.hint)
    }

    /// The document of a failure.
    pub fn of_failure(failure: &Failure) -> Kept {
        let mut output = Self::kept();
        output.fail(failure);
        output.into_kept()
    }

    /// Prints as the user's terminal and configuration require; options for colour and pager take
    /// precedence.
    pub fn for_user(json: bool, color: ColorChoice, may_page: bool) -> Self {
        let screen = Screen::of_stdout().filter(|_| !json);
        if screen.is_none() {
            return Self::new(json, color);
        }
        let wishes = Wishes::read();
        let choice = match color {
            ColorChoice::Auto if wishes.no_color => ColorChoice::Never,
            choice => choice,
        };
        // git's pager is a pipe, but supports colours.
        let in_pager = is_for_git_pager() && choice == ColorChoice::Auto;
        let stdout = match choice {
            _ if !in_pager => choice,
            _ if wishes.no_color_in_pager || !takes_colors() => ColorChoice::Never,
            _ => ColorChoice::AlwaysAnsi,
        };
        Self {
            screen,
            wishes,
            may_page: may_page && !is_for_git_pager() && !is_dumb(),
            stdout: Sink::stdout(stdout),
            stderr: AutoStream::new(io::stderr(), choice),
            ..Self::new(json, color)
        }
    }

    /// From now on, answers may be long: on a terminal, a pager shows them.
    pub fn paged(&mut self) {
        self.is_view = true;
    }

    /// The look of an answer given now.
    pub fn look(&self, now: Moment) -> Look {
        Look::new(now, self.screen)
    }

    /// From now on, answers are JSON documents.
    pub fn as_json(&mut self) {
        self.json = true;
    }

    /// Whether the answer is text on a terminal.
    pub fn is_on_terminal(&self) -> bool {
        self.screen.is_some()
    }

    /// Whether a pager shows the answer.
    pub fn has_pager(&self) -> bool {
        self.pager().is_some()
    }

    fn pager(&self) -> Option<Pager> {
        let pages = self.is_view && self.may_page;
        let own = self.wishes.pager.as_deref();
        pages.then(|| Pager::of_user(own)).flatten()
    }

    /// From now on, printed commands may repeat these arguments.
    pub fn was_typed(&mut self, arguments: &[OsString]) {
        let words = arguments.iter().skip(1);
        let words = words.map(|word| word.to_string_lossy().into_owned());
        self.arguments = words.collect();
    }

    /// The typed command, with these options instead of its `--after`.
    pub fn typed(&self, options: &[&str]) -> String {
        self.command(&page::retyped(&self.arguments, options))
    }

    /// Whether answers have colours.
    pub fn has_colors(&self) -> bool {
        self.stdout.has_colors()
    }

    /// Whether the answer is one JSON document.
    pub fn is_json(&self) -> bool {
        self.json
    }

    /// Prints an answer: the document, or the text.
    ///
    /// # Errors
    /// A [`Failure`] if stdout can't be written; a closed pipe is no error.
    pub fn answer(&mut self, answer: &impl Answer) -> Result<(), Failure> {
        if let Some((title, text)) = self.notice.take() {
            self.notice(title, &text);
        }
        let missed = self.missed();
        if !self.json {
            let text = self.halts_text() + &answer.text(&self.look(now()?));
            self.show(&text)?;
            if let Some(missed) = missed {
                // With --offline there is no trouble: the missing step is then a notice, not an error.
                let unpublished = self.unpublished.as_ref();
                if unpublished.is_some_and(|unpublished| unpublished.trouble.is_some()) {
                    self.fail(&missed);
                    return Ok(());
                }
                let hint = self.sentence(missed.hint.clone().unwrap_or_default());
                self.say(&format!("{}; {hint}", continued(&missed.message)));
            }
            return Ok(());
        }
        if let Some(missed) = missed {
            self.fail(&missed.data(answer));
            return Ok(());
        }
        let document = pretty(&Document {
            work_paused: Some(&self.halts[..]).filter(|halts| !halts.is_empty()),
            ..done(answer)
        });
        self.raw(document.as_bytes())
    }

    /// A line for each pause beyond single issues, with the command that ends it.
    fn halts_text(&self) -> String {
        let each = self.halts.iter().map(|halt| {
            let command = halt.scope.resume(&halt.by);
            format!("{halt}\n  to resume it: {}\n", self.command(&command))
        });
        each.collect()
    }

    /// From now on, answers begin with pauses beyond single issues.
    pub fn tell_pauses(&mut self, tip: &Snapshot<'_>) {
        self.halts.clone_from(&tip.manifest().paused);
    }

    /// Prints a text, through a pager if required.
    fn show(&mut self, text: &str) -> Result<(), Failure> {
        let Some(pager) = self.pager() else {
            return self.raw(text.as_bytes());
        };
        let colors = self.stdout.has_colors();
        let shown = if colors && !self.wishes.no_color_in_pager {
            pager.show(text.as_bytes())
        } else {
            pager.show(&strip_str(text).to_string().into_bytes())
        };
        if shown {
            Ok(())
        } else {
            self.raw(text.as_bytes())
        }
    }

    /// From now on, failures say that this clone's state may be stale, and why.
    pub fn judge_by_what_is_here(&mut self, why: String) {
        self.stale = Some(why);
    }

    /// From now on, printed commands carry these options.
    pub fn carry(&mut self, carried: Carried) {
        self.carried = Some(carried);
    }

    /// The carried options, if known.
    pub fn carried(&self) -> Option<&Carried> {
        self.carried.as_ref()
    }

    /// The options that commands carry, if any.
    fn carrying(&self) -> Cow<'_, Carried> {
        self.carried
            .as_ref()
            .map_or_else(Cow::default, Cow::Borrowed)
    }

    /// Completes a command with the carried options.
    pub fn command(&self, command: &str) -> String {
        self.carrying().command(command)
    }

    /// Completes the commands in a text.
    pub fn sentence(&self, text: impl Into<Hint>) -> Hint {
        self.carrying().sentence(text.into())
    }

    /// Completes the commands in attention entries.
    pub fn complete(&self, found: &mut [Attention]) {
        self.carrying().attention(found);
    }

    /// From now on, answers say which steps the remote lacks.
    pub fn follow(&mut self, ledger: &Ledger<'_>) {
        self.has_remote = ledger.is_shared();
        self.unpublished = ledger.unpublished().cloned();
        if let Some(lock) = ledger.left_lock() {
            let text = format!(
                "the remote has it, but this clone's branch is locked: `git handoff doctor` says what to do with {}",
                lock.display()
            );
            self.say(&continued(&text));
        }
    }

    /// Whether the command's ledger has a remote.
    pub fn has_remote(&self) -> bool {
        self.has_remote
    }

    /// The exit code of a command that succeeded.
    pub fn exit(&self) -> u8 {
        self.missed().map_or(exit::DONE, |missed| missed.exit)
    }

    /// The warning for a step that the remote lacks.
    fn missed(&self) -> Option<Failure> {
        let Unpublished { remote, trouble } = self.unpublished.as_ref()?;
        let mut text = format!("recorded here, but not on {remote}");
        let mut hint = "`git handoff sync` brings it there, once it can be reached; until then another clone may be first";
        if let Some(trouble) = trouble {
            text += &format!(": {trouble}");
            if tells_of_damage(trouble) {
                hint = "`git handoff fetch --repair` repairs this clone's copy, then `git handoff sync` brings it there";
            }
        }
        let failure = Failure::new(ErrorCode::NotPublished, text);
        Some(failure.hint(hint))
    }

    /// From now on, failures are single lines of JSON, like the answers.
    pub fn one_line_each(&mut self) {
        self.one_line = true;
    }

    /// From now on, failures are annotations.
    pub fn annotate(&mut self) {
        self.annotates = true;
    }

    /// Notes that the command has no effect besides its answer, in case that can't be printed.
    pub fn only_reads(&mut self) {
        self.only_reads = true;
    }

    /// Prints raw bytes.
    ///
    /// # Errors
    /// A [`Failure`] if stdout can't be written; a closed pipe is no error.
    pub fn raw(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.stream(bytes).map(drop)
    }

    /// Prints raw bytes, and returns whether anyone still reads.
    ///
    /// # Errors
    /// A [`Failure`] if stdout can't be written; a closed pipe is no error.
    pub fn stream(&mut self, bytes: &[u8]) -> Result<bool, Failure> {
        match self.stdout.write(bytes) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
            Err(error) => {
                let stays = if self.only_reads {
                    ""
                } else {
                    ", but what was done stays done"
                };
                let text = format!("the answer cannot be written{stays}: {error}");
                Err(Failure::new(ErrorCode::Output, text))
            }
        }
    }

    /// Prints a message on stderr.
    pub fn say(&mut self, text: &str) {
        if !self.json {
            // There is nowhere to report an error of stderr.
            let _ = writeln!(self.stderr, "{}", for_log(text));
        }
    }

    /// Prints a notice for people on stderr: in a workflow, as an annotation.
    pub fn notice(&mut self, title: &str, text: &str) {
        if is_in_workflow() {
            let notice = Annotation::new(Weight::Notice, title, text);
            let _ = write!(self.stderr, "{}", commands(&[notice]));
        } else {
            self.say(&format!("note: {title}: {}", continued(text)));
        }
    }

    /// From now on, an answer comes with a notice; a failure does not.
    pub fn notice_later(&mut self, title: &'static str, text: String) {
        self.notice = Some((title, text));
    }

    /// Prints a failure, unless it was reported already.
    pub fn fail(&mut self, failure: &Failure) {
        if failure.code.is_none() {
            return;
        }
        let mut hint = self.sentence(failure.next());
        for part in &mut hint.parts {
            if let Part::Again(name, value) = part
                && !self.arguments.is_empty()
            {
                let again = page::retyped(&self.arguments, &[*name, value.as_str()]);
                *part = Part::Command(again.as_str().into());
            }
        }
        if let Some(why) = &self.stale
            && failure.code != Some(ErrorCode::NotPublished)
        {
            hint = hint!("{}; ", why).and(hint);
        }
        if let (true, Some(code)) = (self.json, failure.code) {
            let document = Document {
                schema: SCHEMA,
                ok: false,
                error: Some(ErrorView {
                    code,
                    message: &failure.message,
                    hint: hint.to_string(),
                    findings: &failure.findings,
                }),
                data: failure.data.as_deref(),
                work_paused: None,
            };
            let text = if self.one_line {
                let line = serde_json::to_string(&document).unwrap_or_default();
                format!("{line}\n")
            } else {
                pretty(&document)
            };
            let _ = self.raw(text.as_bytes());
            self.hint = Some(hint);
            return;
        }
        if self.annotates {
            let _ = self.raw(annotation(failure).as_bytes());
            return;
        }
        let bold = AnsiColor::Red.on_default().bold();
        let mut text = format!("{bold}error{bold:#}: {}\n", continued(&failure.message));
        for finding in &failure.findings {
            text += &render(finding);
        }
        let style = AnsiColor::Cyan.on_default();
        text += &format!("{style}hint{style:#}: {}\n", continued(&hint.to_string()));
        let _ = self.stderr.write_all(for_log(&text).as_bytes());
    }
}

/// A failure as a workflow command.
fn annotation(failure: &Failure) -> String {
    let hint = failure.hint.as_ref();
    let hint = hint.map(|hint| format!("\n{hint}"));
    let text = format!("{}{}", failure.message, hint.unwrap_or_default());
    let findings = failure.findings.iter().map(Annotation::in_ledger);
    let all: Vec<Annotation> = [Annotation::new(Weight::Error, failure.word(), text)]
        .into_iter()
        .chain(findings)
        .collect();
    commands(&all)
}

/// A message without workflow commands.
fn for_log(text: &str) -> Cow<'_, str> {
    if is_in_workflow() {
        // The program's own colours are not part of the text.
        Cow::Owned(log(&strip_str(text).to_string()))
    } else {
        Cow::Borrowed(text)
    }
}

/// The JSON document of an answer.
pub fn document(answer: &impl Answer) -> String {
    pretty(&done(answer))
}

fn done<A: Answer>(answer: &A) -> Document<'_, &A> {
    Document {
        schema: SCHEMA,
        ok: true,
        error: None,
        work_paused: None,
        data: Some(answer),
    }
}

/// A JSON document with a final line break.
pub fn pretty(value: &impl Serialize) -> String {
    let mut text = serde_json::to_string_pretty(value).unwrap_or_default();
    text.push('\n');
    text
}

/// A finding as text: place, severity, message, fix.
pub fn render(finding: &Finding) -> String {
    let style = match finding.severity {
        Severity::Error => AnsiColor::Red.on_default(),
        Severity::Warning => AnsiColor::Yellow.on_default(),
        Severity::Note => AnsiColor::Blue.on_default(),
    };
    let mut place = String::new();
    if let Some(commit) = &finding.commit {
        place += &format!("{} ", short_id(commit));
    }
    if let (Some(line), Some(column)) = (finding.line, finding.column) {
        place += &format!("{line}:{column} ");
    }
    let path = path(&finding.path);
    let weight = match finding.severity {
        Severity::Error => "",
        Severity::Warning => "warning ",
        Severity::Note => "note ",
    };
    let mut text = format!(
        "  {place}{path} {style}{weight}{}{style:#} {}\n",
        finding.code,
        continued(&finding.message)
    );
    if let Some(fix) = &finding.fix {
        text += &format!("      {}\n", continued(fix));
    }
    text
}

/// Whether the environment allows colours on a terminal.
fn takes_colors() -> bool {
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    !refused && !is_dumb()
}

/// Masks arguments in a text that look like secrets; returns whether it masked any.
pub fn mask(text: &mut String, arguments: &[OsString]) -> bool {
    let mut found = false;
    for argument in arguments {
        let secrets = Secrets::in_file("", argument.as_encoded_bytes());
        found |= !secrets.is_empty();
        secrets.mask_text(text);
    }
    found
}
