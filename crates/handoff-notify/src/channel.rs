//! The channels to a person: a command, a URL, the desktop.

use std::fmt;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use handoff::base::text::{cut, quoted};
use serde_json::{Value, json};

use super::notice::{Kind, Notice};
use super::told::Known;
use handoff_cli::environment::{self, MARK};
use handoff_cli::failure::Failure;
use handoff_cli::process::{Adoption, ProcessGroup};
use handoff_http::webhook::{Webhook, WebhookError};

/// The time limit of a command for a notice.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long its processes have to end once they are asked to.
const GRACE: Duration = Duration::from_secs(1);
/// The maximum of a command's output that is read, in bytes.
const LONGEST: u64 = 4096;
/// The maximum length of a command's text that is shown, in characters.
const SHOWN: usize = 200;

/// The channel of notices.
pub enum Channel {
    /// A command, which gets the notice on standard input.
    Command {
        /// The command and its arguments.
        words: Vec<String>,
        /// The program of its first word.
        program: PathBuf,
    },
    /// A URL to which the notice is posted.
    Webhook {
        /// The URL.
        webhook: Webhook,
        /// The format of the notice.
        form: Form,
    },
    /// The desktop session of the logged-in user.
    Desktop {
        /// The program that shows it.
        program: PathBuf,
    },
}

/// The format of a posted notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// The notice, as docs/json.md describes it
    Json,
    /// A message for an incoming webhook of Slack, or of what understands the same
    Slack,
    /// An Adaptive Card for a workflow of Microsoft Teams
    Teams,
}

/// Why a notice was not delivered.
#[derive(Debug)]
pub(super) enum Undelivered {
    /// This notice was refused; others may succeed.
    Refused(String),
    /// Every delivery fails.
    Unreachable(String),
    /// It may have been delivered, but there was no answer in time.
    Unheard(String),
}

impl Undelivered {
    /// Whether other notices would fail as well.
    pub(super) fn stops(&self) -> bool {
        !matches!(self, Self::Refused(_))
    }

    /// Whether it may have been delivered anyway.
    pub(super) fn is_unsure(&self) -> bool {
        matches!(self, Self::Unheard(_))
    }
}

impl fmt::Display for Undelivered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Refused(why) | Self::Unreachable(why) | Self::Unheard(why)) = self;
        f.write_str(why)
    }
}

impl Channel {
    /// A command line, split as a shell does, without a shell.
    ///
    /// # Errors
    /// A [`Failure`] if there is no such program.
    pub fn command(line: &str) -> Result<Self, Failure> {
        let words = shlex::split(line).filter(|words| !words.is_empty());
        let Some(words) = words else {
            let text = format!("{} is not a command", quoted(line));
            return Err(Failure::usage(text).hint("close each quotation mark"));
        };
        let program = found(&words[0])?;
        Ok(Self::Command { words, program })
    }

    /// The desktop of this machine.
    ///
    /// # Errors
    /// A [`Failure`] if it is unreachable from here.
    pub fn desktop() -> Result<Self, Failure> {
        let program = if cfg!(target_os = "macos") {
            "osascript"
        } else {
            "notify-send"
        };
        let program = found(program)?;
        Ok(Self::Desktop { program })
    }

    /// The key of its notes; each channel has its own.
    pub(super) fn key(&self) -> String {
        match self {
            Self::Command { words, .. } => format!("exec {}", json!(words)),
            Self::Webhook { webhook, form } => format!("webhook {form:?} {}", webhook.address()),
            Self::Desktop { .. } => "desktop".to_owned(),
        }
    }

    /// The channel for display, with secrets masked.
    pub(super) fn shown(&self) -> String {
        match self {
            Self::Command { words, .. } => quoted(&words[0]),
            Self::Webhook { webhook, .. } => webhook.shown(),
            Self::Desktop { .. } => "the desktop".to_owned(),
        }
    }

    /// Delivers a notice; `known` is the note about the handoff's last one. Returns a handle with
    /// which the next notice can replace this one, if the channel supports that.
    pub(super) fn deliver(
        &self,
        notice: &Notice,
        known: Option<&Known>,
    ) -> Result<Option<String>, Undelivered> {
        match self {
            Self::Command { words, program } => {
                let mut command = Command::new(program);
                command.args(&words[1..]);
                ran(command, notice).map(|_| None)
            }
            Self::Webhook { webhook, form } => {
                let posted = webhook.post(&form.body(notice), &notice.delivery);
                posted.map(|()| None).map_err(|error| match error {
                    WebhookError::Refused(why) => Undelivered::Refused(why),
                    WebhookError::Unreachable(why) => Undelivered::Unreachable(why),
                    WebhookError::Unheard(why) => Undelivered::Unheard(why),
                })
            }
            Self::Desktop { program } => {
                let handle = known.and_then(|known| known.handle.as_deref());
                let mut command = Command::new(program);
                command.args(shown_on_desktop(notice, handle));
                let printed = ran(command, notice)?;
                Ok(Some(printed.trim().to_owned()).filter(|id| id.parse::<u32>().is_ok()))
            }
        }
    }
}

/// The path of a program.
fn found(name: &str) -> Result<PathBuf, Failure> {
    environment::found_by_shell(name).ok_or_else(|| {
        let text = format!("{} can't be run: there is no such program", quoted(name));
        Failure::usage(text).hint("nothing was sent; name a program on the PATH, or its path")
    })
}

/// The arguments that show a notice on the desktop, replacing the one with this handle.
fn shown_on_desktop(notice: &Notice, handle: Option<&str>) -> Vec<String> {
    let title = match notice.event {
        Kind::Settled => format!("{} is settled", notice.about.id),
        _ => format!("{} {}", notice.about.id, notice.about.need.title()),
    };
    if cfg!(target_os = "macos") {
        // The texts are arguments, not part of the script.
        let script = "on run argv\ndisplay notification (item 2 of argv) with title (item 1 of argv)\nend run";
        return ["-e", script, &title, &notice.text]
            .map(str::to_owned)
            .to_vec();
    }
    let mut arguments = vec!["--app-name=git-handoff".to_owned(), "--print-id".to_owned()];
    arguments.extend(handle.map(|handle| format!("--replace-id={handle}")));
    if notice.is_settled() {
        arguments.push("--transient".to_owned());
    }
    // The text may contain markup.
    let text = notice.text.replace('&', "&amp;").replace('<', "&lt;");
    arguments.extend(["--".to_owned(), title, text]);
    arguments
}

/// Runs a command with a notice on its standard input; returns the start of what it printed.
fn ran(mut command: Command, notice: &Notice) -> Result<String, Undelivered> {
    let group = ProcessGroup::marked();
    let adoption = Adoption::begin();
    command
        .env(MARK, &group.mark)
        .env("GIT_HANDOFF_NOTICE", notice.event.as_str())
        .env("GIT_HANDOFF_ISSUE", notice.about.issue.as_str())
        .env("GIT_HANDOFF_ID", notice.about.id.to_string())
        .env("GIT_HANDOFF_TEXT", &notice.text)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    let unreachable = |error: std::io::Error| Undelivered::Unreachable(error.to_string());
    let mut child = command.spawn().map_err(unreachable)?;
    let group = group.of(child.id());
    if let Some(mut input) = child.stdin.take() {
        let document = format!("{}\n", json!(notice));
        // The command may exit without reading its input.
        thread::spawn(move || input.write_all(document.as_bytes()));
    }
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let (out, err) = (drained(out), drained(err));
    let status = ended(&mut child);
    // Also end processes that have lost the mark.
    group.end(GRACE);
    adoption.end(GRACE);
    let status = status.map_err(unreachable)?;
    let printed = out.recv_timeout(GRACE).unwrap_or_default();
    let Some(status) = status else {
        // Don't wait for it: another user's process may continue.
        let _ = child.try_wait();
        let text = format!("it did not end within {} s", PATIENCE.as_secs());
        return Err(Undelivered::Unheard(text));
    };
    if status.success() {
        return Ok(printed);
    }
    let said = err.recv_timeout(GRACE).unwrap_or_default();
    let said = said.trim().lines().next_back().unwrap_or_default();
    let said = if said.is_empty() {
        String::new()
    } else {
        format!(": {}", cut(said, SHOWN))
    };
    Err(Undelivered::Refused(format!(
        "it ended with {status}{said}"
    )))
}

/// Reads a command's output, and keeps its beginning. A process that it started may hold the stream
/// open forever.
fn drained(stream: Option<impl Read + Send + 'static>) -> Receiver<String> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        let mut start = Vec::new();
        if let Some(mut stream) = stream {
            // If the stream can't be read, the error message has no reason.
            let _ = stream.by_ref().take(LONGEST).read_to_end(&mut start);
            let _ = sender.send(String::from_utf8_lossy(&start).into_owned());
            let _ = std::io::copy(&mut stream, &mut std::io::sink());
        }
    });
    receiver
}

/// The exit status of a command; `None` if its time is up.
fn ended(child: &mut Child) -> std::io::Result<Option<std::process::ExitStatus>> {
    let until = Instant::now() + PATIENCE;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() >= until {
            return Ok(None);
        }
        thread::sleep(Duration::from_millis(10));
    }
}

impl Form {
    /// The body of the post.
    fn body(self, notice: &Notice) -> Value {
        let command = (!notice.is_settled()).then_some(&notice.about.next);
        match self {
            Self::Json => json!(notice),
            Self::Slack => {
                // A text can't become a mention, a link or a channel.
                let escape = |text: &str| {
                    let text = text.replace('&', "&amp;");
                    text.replace('<', "&lt;").replace('>', "&gt;")
                };
                let command = command.map(|command| format!("\n`{}`", escape(command)));
                let text = escape(&notice.text) + &command.unwrap_or_default();
                json!({"text": text, "unfurl_links": false})
            }
            Self::Teams => {
                let block = |text: &str, font: &str| json!({"type": "TextBlock", "text": unmarked(text), "wrap": true, "fontType": font});
                let command = command.map(|command| block(command, "Monospace"));
                let body: Vec<Value> = [block(&notice.text, "Default")]
                    .into_iter()
                    .chain(command)
                    .collect();
                json!({"type": "message", "attachments": [{
                    "contentType": "application/vnd.microsoft.card.adaptive",
                    "content": {
                        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
                        "type": "AdaptiveCard", "version": "1.4", "body": body,
                    },
                }]})
            }
        }
    }
}

/// A text without Markdown's special characters.
fn unmarked(text: &str) -> String {
    let mut found = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '#' | '~') {
            found.push('\\');
        }
        found.push(c);
    }
    found
}
