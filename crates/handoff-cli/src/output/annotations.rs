//! GitHub annotations, shown beside a step, above its run and in a pull request's files (`--format
//! github`). A step emits them as workflow commands in its log.

use clap::ValueEnum;
use handoff::base::finding::{Finding, Severity};
use handoff::base::text::{cut, one_line, plain};
use handoff::protocol::Level;

use super::Output;
use crate::failure::Failure;

/// The output format of reports.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people
    Human,
    /// Workflow commands that GitHub turns into annotations
    Github,
}

impl Format {
    /// Whether the output is annotations; if so, failures are annotations from now on too.
    pub fn is_github(self, output: &mut Output) -> bool {
        let is_github = self == Self::Github && !output.is_json();
        if is_github {
            output.annotate();
        }
        is_github
    }
}

/// Prints annotations, and the verdict for the log.
pub fn show(output: &mut Output, found: &[Annotation], verdict: &str) -> Result<(), Failure> {
    output.raw(format!("{}{}", commands(found), log(verdict)).as_bytes())
}

/// The maximum number of annotations per severity that GitHub shows for a step.
pub const MOST_SHOWN: usize = 10;

/// The maximum length of a title, in characters.
const MOST_TITLE: usize = 120;

/// The maximum length of a message, in characters.
const MOST_MESSAGE: usize = 4000;

/// The severity of an annotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// Something is wrong.
    Error,
    /// Something may be wrong.
    Warning,
    /// Worth knowing.
    Notice,
}

impl Weight {
    const ALL: [Self; 3] = [Self::Error, Self::Warning, Self::Notice];

    fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Notice => "notice",
        }
    }
}

impl From<Severity> for Weight {
    fn from(severity: Severity) -> Self {
        match severity {
            Severity::Error => Self::Error,
            Severity::Warning => Self::Warning,
            Severity::Note => Self::Notice,
        }
    }
}

impl From<Level> for Weight {
    fn from(level: Level) -> Self {
        match level {
            Level::Critical => Self::Error,
            Level::Warning => Self::Warning,
            Level::Info => Self::Notice,
        }
    }
}

/// One annotation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Annotation {
    /// Its severity.
    pub weight: Weight,
    /// A finding's code, or a word.
    pub title: String,
    /// One line or several.
    pub message: String,
    /// A file's path, relative to the workflow's working directory.
    pub file: Option<String>,
    /// Line and column in the file, from 1.
    pub at: Option<(u32, u32)>,
}

impl Annotation {
    /// An annotation without a file.
    pub fn new(weight: Weight, title: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            weight,
            title: title.into(),
            message: message.into(),
            file: None,
            at: None,
        }
    }

    /// An annotation for a finding in a file.
    pub fn in_file(finding: &Finding, file: impl Into<String>) -> Self {
        let at = finding.line.zip(finding.column);
        let file = Some(file.into());
        Self {
            file,
            at,
            ..Self::of(finding)
        }
    }

    /// An annotation for a finding in a ledger. Its path may be a file on the ledger's branch, or a
    /// JSON Pointer, which is not a file.
    pub fn in_ledger(finding: &Finding) -> Self {
        let path = &finding.path;
        let is_file = !path.starts_with(['/', '#']) && path.contains(['/', '.']);
        let file = is_file.then(|| path.clone());
        let mut found = Self {
            file,
            ..Self::of(finding)
        };
        if let Some(commit) = &finding.commit {
            found.message = format!("commit {commit}: {}", found.message);
        }
        found
    }

    fn of(finding: &Finding) -> Self {
        let mut message = format!("{} {}", finding.path, finding.message);
        if let Some(fix) = &finding.fix {
            message += &format!("\n{fix}");
        }
        Self::new(
            finding.severity.into(),
            finding.code.as_str(),
            message.trim(),
        )
    }

    /// The workflow command. GitHub decodes `%XX`, so everything that could end a value or the line
    /// is encoded.
    fn command(&self) -> String {
        let mut properties = Vec::new();
        if let Some(file) = &self.file {
            properties.push(format!("file={}", property(file)));
        }
        if let Some((line, column)) = self.at {
            properties.push(format!("line={line},col={column}"));
        }
        properties.push(format!(
            "title={}",
            property(&one_line(&cut(self.title.trim(), MOST_TITLE)))
        ));
        format!(
            "::{} {}::{}\n",
            self.weight.as_str(),
            properties.join(","),
            value(&cut(&self.message, MOST_MESSAGE))
        )
    }

    /// A log line, for an annotation beyond GitHub's limit.
    fn logged(&self) -> String {
        let mut place = self.file.clone().unwrap_or_default();
        if let Some((line, column)) = self.at {
            place += &format!(":{line}:{column}");
        }
        let text = [self.weight.as_str(), &place, &self.title, &self.message];
        let words: Vec<&str> = text.into_iter().filter(|word| !word.is_empty()).collect();
        format!(
            "{}\n",
            log(&one_line(&cut(words.join(" ").trim(), MOST_MESSAGE)))
        )
    }
}

/// Renders workflow commands. GitHub shows ten per severity: if there are more, the tenth gives
/// their number, and they follow as log lines.
pub fn commands(annotations: &[Annotation]) -> String {
    let (mut shown, mut logged) = (String::new(), String::new());
    for weight in Weight::ALL {
        let all: Vec<&Annotation> = annotations.iter().filter(|a| a.weight == weight).collect();
        let most = match all.len() {
            few if few <= MOST_SHOWN => few,
            _ => MOST_SHOWN - 1,
        };
        let (first, rest) = all.split_at(most);
        shown.extend(first.iter().map(|a| a.command()));
        if !rest.is_empty() {
            let text = format!(
                "{} more, of which GitHub shows none: they are in the log of this step",
                rest.len()
            );
            shown += &Annotation::new(weight, "left out", text).command();
            logged.extend(rest.iter().map(|a| a.logged()));
        }
    }
    shown + &logged
}

fn value(text: &str) -> String {
    let shown = plain(&text.replace("\r\n", "\n"));
    shown
        .replace('%', "%25")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}

fn property(text: &str) -> String {
    value(text).replace(':', "%3A").replace(',', "%2C")
}

/// Escapes a text for a log, so that no line is a workflow command: the runner parses `::` at the
/// start of a line, also after blanks, and `##[` anywhere.
pub fn log(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for line in plain(text).split_inclusive('\n') {
        let blanks = line.len() - line.trim_start().len();
        let (before, rest) = line.split_at(blanks);
        safe += before;
        match rest.strip_prefix("::") {
            Some(rest) => safe += &format!(": :{}", rest.replace("##[", "## [")),
            None => safe += &rest.replace("##[", "## ["),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::{Annotation, Weight, commands, log};
    use handoff::base::finding::{Finding, FindingCode};

    #[test]
    fn nothing_in_a_remark_ends_its_command() {
        let finding = Finding::error(FindingCode::FieldValue, "/x", "100%\n::error::sly\r##[x]")
            .fix("do: this, now");
        let sly = Annotation::in_file(&finding.at(3, 7), "a:b,c%\n.xml");
        assert_eq!(
            commands(&[sly]),
            "::error file=a%3Ab%2Cc%25%0A.xml,line=3,col=7,title=field.value::/x 100%25%0A::error::sly\\u{d}##[x]%0Ado: this, now\n"
        );
    }

    #[test]
    fn what_github_does_not_show_is_counted_and_logged() {
        let many: Vec<Annotation> = (1..=12)
            .map(|n| Annotation::new(Weight::Warning, "t", format!("::error::{n}")))
            .chain([Annotation::new(Weight::Notice, "t", "one")])
            .collect();
        let text = commands(&many);
        let lines: Vec<&str> = text.lines().collect();
        let shown = lines.iter().filter(|l| l.starts_with("::warning ")).count();
        assert_eq!(shown, 10);
        assert_eq!(lines[8], "::warning title=t::::error::9");
        assert!(lines[9].starts_with("::warning title=left out::3 more, "));
        assert_eq!(lines[10], "::notice title=t::one");
        assert_eq!(lines[11], "warning t ::error::10");
        assert_eq!(lines.len(), 14);
    }

    #[test]
    fn no_line_of_a_log_is_a_command() {
        for (text, safe) in [
            ("::error::x", ": :error::x"),
            (" \t::stop-commands::x\ny", " \t: :stop-commands::x\ny"),
            ("a\n::set-env name=x::y", "a\n: :set-env name=x::y"),
            ("see ##[add-path]/tmp ##[x]", "see ## [add-path]/tmp ## [x]"),
            ("std::fs", "std::fs"),
            ("a\r::error::", "a\\u{d}::error::"),
            ("\u{3000}::error::", "\u{3000}: :error::"),
        ] {
            assert_eq!(log(text), safe);
        }
    }
}
