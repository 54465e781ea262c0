//! Drafts: contracts edited before they are sent.
//!
//! A draft is kept in the git directory until it is sent, so that nothing written is lost. Lines
//! that begin with `#:` are remarks, not part of it.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use handoff::base::finding::Finding;
use handoff::base::ids::{AgentName, IssueKey};
use handoff::base::text::one_line;
use handoff::git::Repository;

use super::fields::Field;
use super::skeleton::Format;
use crate::failure::{ErrorCode, Failure};

/// The prefix of a remark.
const REMARK: &str = "#:";

/// The folder of drafts in a git directory.
const FOLDER: &str = "handoff/drafts";

/// Remarks, by the number of the line that follows them, from 1.
pub type Remarks = BTreeMap<usize, Vec<String>>;

/// A draft on disk.
pub struct Draft {
    file: PathBuf,
}

impl Draft {
    /// The draft for a contract about an issue to an agent.
    pub fn new(repository: &Repository, issue: &IssueKey, to: &AgentName, format: Format) -> Self {
        let name = format!("{issue}-to-{to}.{}", format.name());
        Self {
            file: repository.path().join(FOLDER).join(name),
        }
    }

    /// The edited file.
    pub fn path(&self) -> &Path {
        &self.file
    }

    /// The text of an earlier edit, without remarks.
    pub fn kept(&self) -> Result<Option<String>, Failure> {
        match fs::read_to_string(&self.file) {
            Ok(text) => Ok(Some(without_remarks(&text))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.fault(&error)),
        }
    }

    /// Writes it.
    ///
    /// # Errors
    /// A [`Failure`] if the file can't be written.
    pub fn keep(&self, text: &str) -> Result<(), Failure> {
        let folder = self.file.parent().unwrap_or(Path::new(""));
        let kept = fs::create_dir_all(folder).and_then(|()| fs::write(&self.file, text));
        kept.map_err(|error| self.fault(&error))
    }

    /// Writes it with remarks, opens the editor, and returns the edited text.
    ///
    /// # Errors
    /// A [`Failure`] if the file can't be written or read, the editor fails, or nothing is left.
    pub fn edit(&self, text: &str, remarks: &Remarks) -> Result<String, Failure> {
        self.keep(&with_remarks(text, remarks))?;
        run_editor(&self.file)?;
        let text = self.kept()?.unwrap_or_default();
        if text.trim().is_empty() {
            self.delete();
            return Err(Failure::usage("the contract is empty: nothing was sent"));
        }
        Ok(text)
    }

    /// Deletes it. If that fails, it is offered again next time.
    pub fn delete(&self) {
        let _ = fs::remove_file(&self.file);
    }

    fn fault(&self, error: &io::Error) -> Failure {
        let text = format!("the draft {} can't be used: {error}", self.file.display());
        Failure::new(ErrorCode::Output, text)
    }
}

/// Runs git's editor.
fn run_editor(file: &Path) -> Result<(), Failure> {
    let failed = |text: String| {
        Failure::usage(text).hint("`git var GIT_EDITOR` names the editor; without one, use `git handoff send --to AGENT --set FIELD=VALUE`")
    };
    let named = Command::new("git").args(["var", "GIT_EDITOR"]).output();
    let named = named.map_err(|error| failed(format!("git can't be run: {error}")))?;
    let editor = String::from_utf8_lossy(&named.stdout).trim().to_owned();
    if editor.is_empty() {
        return Err(failed("git knows no editor".to_owned()));
    }
    // As in git, the editor may be a command line.
    let mut command = Command::new("sh");
    command
        .args(["-c", &format!("{editor} \"$@\""), &editor])
        .arg(file);
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(failed(format!(
            "the editor {editor} ended with {status}; nothing was sent"
        ))),
        Err(error) => Err(failed(format!("the editor {editor} can't be run: {error}"))),
    }
}

fn with_remarks(text: &str, remarks: &Remarks) -> String {
    let mut written = String::new();
    for (number, line) in (1..).zip(text.lines()) {
        for remark in remarks.get(&number).into_iter().flatten() {
            written += &format!("{REMARK} {}\n", one_line(remark));
        }
        written += line;
        written.push('\n');
    }
    written
}

fn without_remarks(text: &str) -> String {
    let lines = text
        .lines()
        .filter(|line| !line.trim_start().starts_with(REMARK));
    lines.map(|line| format!("{line}\n")).collect()
}

/// Descriptions of the fields, above the first line of each.
pub fn about_fields(text: &str, fields: &[Field]) -> Remarks {
    let mut remarks = Remarks::new();
    let mut told: Vec<&str> = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim_start();
        let name = line
            .strip_prefix(['<', '"', '#'])
            .unwrap_or(line)
            .trim_start_matches(['#', ' ']);
        let end = name.find(|c: char| !c.is_alphanumeric() && !"_-".contains(c));
        let name = &name[..end.unwrap_or(name.len())];
        let meant = |field: &&Field| field.path.rsplit('/').next() == Some(name);
        if let Some(field) = fields
            .iter()
            .find(meant)
            .filter(|field| !told.contains(&field.path.as_str()))
        {
            told.push(&field.path);
            let needed = if field.required {
                "required"
            } else {
                "optional"
            };
            let about = match field.about.as_str() {
                "" => String::new(),
                about => format!("; {about}"),
            };
            let remark = format!("{name}: {needed}, {}{about}", field.holds);
            remarks.entry(number).or_default().push(remark);
        }
    }
    remarks
}

/// Findings, above the lines they are about; the refusal at the top.
pub fn about_findings(failure: &Failure) -> Remarks {
    let mut remarks = Remarks::new();
    let said = format!("refused: {}", failure.message);
    remarks.entry(1).or_default().push(said);
    for finding in &failure.findings {
        let line = finding.line.and_then(|line| usize::try_from(line).ok());
        remarks
            .entry(line.unwrap_or(1))
            .or_default()
            .push(about_finding(finding));
    }
    remarks
}

/// A finding with its fix, in one line.
pub fn about_finding(finding: &Finding) -> String {
    let fix = finding.fix.as_deref().map(|fix| format!("; {fix}"));
    let place = match finding.path.as_str() {
        "" => String::new(),
        path => format!("{path}: "),
    };
    format!("{place}{}{}", finding.message, fix.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::{Remarks, about_fields, with_remarks, without_remarks};
    use crate::contracts::fields::Field;

    #[test]
    fn remarks_come_and_go() {
        let text = "<a>\n  <b>1</b>\n</a>\n";
        let remarks = Remarks::from([(2, vec!["b: two\nlines".to_owned()])]);
        let written = with_remarks(text, &remarks);
        assert_eq!(written, "<a>\n#: b: two lines\n  <b>1</b>\n</a>\n");
        assert_eq!(without_remarks(&written), text);
    }

    #[test]
    fn fields_are_explained_once() {
        let field = |path: &str| Field {
            path: path.to_owned(),
            required: true,
            holds: "string".to_owned(),
            about: "what it is".to_owned(),
        };
        let fields = [field("/steps/*/name"), field("/summary")];
        for text in [
            "<x>\n <name>a</name>\n <name>b</name>\n <summary/>",
            "{\n \"name\": 1,\n \"name\": 2,\n \"summary\": 3",
        ] {
            let remarks = about_fields(text, &fields);
            let lines: Vec<usize> = remarks.keys().copied().collect();
            assert_eq!(lines, [2, 4], "{text}");
            assert_eq!(remarks[&4], ["summary: required, string; what it is"]);
        }
    }
}
