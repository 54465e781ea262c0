//! What is printed: data on stdout, chatter on stderr, one document with
//! `--json`.

use std::io::{self, Write};

use anstream::AutoStream;
use anstyle::{AnsiColor, Style};
use serde_json::{Value, json};

use super::error::Failure;
use crate::finding::{Finding, Severity};
use crate::ids::is_misleading;
use crate::ledger::{Publication, Unpublished};
use crate::protocol::State;

/// The version of every JSON document.
pub(super) const SCHEMA: &str = "git-handoff/1";

/// Where a command prints.
pub(super) struct Output {
    json: bool,
    publication: Option<Publication>,
    /// Why what is known here may be old.
    stale: Option<String>,
    one_line: bool,
    stdout: AutoStream<io::Stdout>,
    stderr: AutoStream<io::Stderr>,
}

impl Output {
    /// Prints as text, or as one JSON document.
    pub(super) fn new(json: bool, color: anstream::ColorChoice) -> Self {
        Self {
            json,
            publication: None,
            stale: None,
            one_line: false,
            stdout: AutoStream::new(io::stdout(), color),
            stderr: AutoStream::new(io::stderr(), color),
        }
    }

    /// Says whether the answer is one JSON document.
    pub(super) fn is_json(&self) -> bool {
        self.json
    }

    /// Prints the answer: the document, or the text.
    ///
    /// # Errors
    /// A [`Failure`] when stdout can't be written; a closed pipe is no error.
    pub(super) fn answer(&mut self, data: &Value, text: &str) -> Result<(), Failure> {
        let missed = self.missed();
        if !self.json {
            self.raw(text.as_bytes())?;
            let asked_for = |note: &Unpublished| note.trouble.is_none();
            let note = self.publication.as_ref().map(|note| note.borrow().clone());
            let asked_for = note.flatten().as_ref().is_some_and(asked_for);
            if let Some(missed) = missed {
                // Who asked for it meets no error.
                if !asked_for {
                    self.fail(&missed);
                    return Ok(());
                }
                let hint = missed.hint.as_deref().unwrap_or_default();
                self.say(&format!("{}; {hint}", plain(&missed.message)));
            }
            return Ok(());
        }
        if let Some(missed) = missed {
            self.fail(&missed.data(data.clone()));
            return Ok(());
        }
        let document = json!({ "schema": SCHEMA, "ok": true, "data": data });
        self.raw(pretty(&document).as_bytes())
    }

    /// From now on, failures say that they rest on what is known here, and why.
    pub(super) fn judge_by_what_is_here(&mut self, why: String) {
        self.stale = Some(why);
    }

    /// From now on, answers say what a write did not reach.
    pub(super) fn follow(&mut self, publication: Option<Publication>) {
        self.publication = publication;
    }

    /// Says whether the remote was asked, where there is one.
    pub(super) fn follows(&self) -> bool {
        self.publication.is_some()
    }

    /// The exit code of a command that did what it was asked.
    pub(super) fn exit(&self) -> u8 {
        self.missed()
            .map_or(super::exit::DONE, |missed| missed.exit)
    }

    /// That what was written is not on the remote, where that is so.
    fn missed(&self) -> Option<Failure> {
        let publication = self.publication.as_ref()?.borrow();
        let Unpublished { remote, trouble } = publication.as_ref()?;
        let mut text = format!("recorded here, but not on {remote}");
        if let Some(trouble) = trouble {
            text += &format!(": {trouble}");
        }
        let failure = Failure::new(super::exit::NOT_PUBLISHED, "not_published", text);
        Some(failure.hint("`git handoff sync` brings it there, once it can be reached"))
    }

    /// From now on, a failure is one line of JSON, as the answers are.
    pub(super) fn one_line_each(&mut self) {
        self.one_line = true;
    }

    /// Prints bytes as they are.
    ///
    /// # Errors
    /// A [`Failure`] when stdout can't be written; a closed pipe is no error.
    pub(super) fn raw(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.stream(bytes).map(drop)
    }

    /// Prints bytes as they are, and says whether anyone still reads.
    ///
    /// # Errors
    /// A [`Failure`] when stdout can't be written; a closed pipe is no error.
    pub(super) fn stream(&mut self, bytes: &[u8]) -> Result<bool, Failure> {
        let written = self
            .stdout
            .write_all(bytes)
            .and_then(|()| self.stdout.flush());
        match written {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
            Err(error) => Err(Failure::new(
                super::exit::ENVIRONMENT,
                "output",
                format!("the answer cannot be written, but what was done stays done: {error}"),
            )),
        }
    }

    /// Says something beside the answer.
    pub(super) fn say(&mut self, text: &str) {
        if !self.json {
            // Chatter that can't be written has nowhere to be reported.
            let _ = writeln!(self.stderr, "{text}");
        }
    }

    /// Prints a failure, unless its command has done so.
    pub(super) fn fail(&mut self, failure: &Failure) {
        if failure.code.is_empty() {
            return;
        }
        let told = match &self.stale {
            Some(why) if failure.code != "not_published" => {
                let hint = failure.hint.as_ref().map(|hint| format!("; {hint}"));
                Some(format!("{why}{}", hint.unwrap_or_default()))
            }
            _ => failure.hint.clone(),
        };
        if self.json {
            let error = json!({
                "code": failure.code,
                "message": failure.message,
                "hint": told,
                "findings": failure.findings,
            });
            let mut document = json!({ "schema": SCHEMA, "ok": false, "error": error });
            if let Some(data) = &failure.data {
                document["data"] = Value::clone(data);
            }
            let text = if self.one_line {
                format!("{document}\n")
            } else {
                pretty(&document)
            };
            let _ = self.raw(text.as_bytes());
            return;
        }
        let bold = AnsiColor::Red.on_default().bold();
        let mut text = format!("{bold}error{bold:#}: {}\n", plain(&failure.message));
        for finding in &failure.findings {
            text += &render(finding);
        }
        if let Some(hint) = &told {
            let style = AnsiColor::Cyan.on_default();
            text += &format!("{style}hint{style:#}: {}\n", plain(hint));
        }
        let _ = self.stderr.write_all(text.as_bytes());
    }
}

/// A JSON document with a final line break.
pub(super) fn pretty(value: &Value) -> String {
    let mut text = serde_json::to_string_pretty(value).unwrap_or_default();
    text.push('\n');
    text
}

/// One finding as text: place, severity, message, cure.
pub(super) fn render(finding: &Finding) -> String {
    let style = match finding.severity {
        Severity::Error => AnsiColor::Red.on_default(),
        Severity::Warning => AnsiColor::Yellow.on_default(),
        Severity::Note => AnsiColor::Blue.on_default(),
    };
    let mut place = String::new();
    if let Some(commit) = &finding.commit {
        place += &format!("{} ", commit.chars().take(10).collect::<String>());
    }
    if let (Some(line), Some(column)) = (finding.line, finding.column) {
        place += &format!("{line}:{column} ");
    }
    let path = plain(&finding.path);
    let weight = match finding.severity {
        Severity::Error => "",
        Severity::Warning => "warning ",
        Severity::Note => "note ",
    };
    let mut text = format!(
        "  {place}{path} {style}{weight}{}{style:#} {}\n",
        finding.code,
        plain(&finding.message)
    );
    if let Some(fix) = &finding.fix {
        text += &format!("      {}\n", plain(fix));
    }
    text
}

/// Foreign text for a terminal: what could move its cursor is made visible.
pub(super) fn plain(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if (c.is_control() && c != '\n' && c != '\t') || is_misleading(c) {
            shown.extend(c.escape_unicode());
        } else {
            shown.push(c);
        }
    }
    shown
}

/// A number of things: `1 commit`, `2 commits`.
pub(super) fn counted(count: usize, what: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{count} {what}{ending}")
}

/// A state in its colour.
pub(super) fn state(state: State) -> String {
    let style = match state {
        State::Pending => AnsiColor::Yellow.on_default(),
        State::InProgress => AnsiColor::Blue.on_default(),
        State::Completed => AnsiColor::Green.on_default(),
        State::Failed | State::Dead => AnsiColor::Red.on_default(),
        State::Blocked => AnsiColor::Magenta.on_default(),
        State::Rejected | State::Cancelled => Style::new().dimmed(),
    };
    format!("{style}{state}{style:#}")
}

/// Lines up columns by their visible width; styles don't count.
pub(super) fn columns(rows: &[Vec<String>]) -> String {
    let width = |cell: &str| {
        anstream::adapter::strip_str(cell)
            .to_string()
            .chars()
            .count()
    };
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..count)
        .map(|i| {
            rows.iter()
                .filter_map(|r| r.get(i))
                .map(|c| width(c))
                .max()
                .unwrap_or(0)
        })
        .collect();
    let mut text = String::new();
    for row in rows {
        for (i, cell) in row.iter().enumerate() {
            text += cell;
            if i + 1 < row.len() {
                text += &" ".repeat(widths[i] - width(cell) + 2);
            }
        }
        // An empty last cell leaves no blanks behind.
        text.truncate(text.trim_end_matches(' ').len());
        text.push('\n');
    }
    text
}
