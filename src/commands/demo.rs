use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::Args;
use handoff::base::text::word;
use schemars::JsonSchema;
use serde::Serialize;

use crate::context::Context;
use crate::environment::now;
use crate::failure::{ErrorCode, Failure};
use crate::output::{Answer, Output};
use crate::view::Look;

/// Build a scratch repository and take one issue through the whole workflow
///
/// Seven agents take an issue from its write-up to a merged branch, including a review that asks
/// for changes. Each command is printed as an agent would type it, with its output; one contract
/// is incomplete and is refused. The repository stays for you to explore.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  git handoff demo\n  git handoff demo --quick\n  git handoff demo ../tour"
)]
pub(crate) struct Arguments {
    /// Stop after one handoff has been sent, claimed and verified
    #[arg(long)]
    quick: bool,

    /// A folder that is empty or does not exist yet; by default a new one in the temporary
    /// directory
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
}

const ISSUE: &str = "7";
const BRANCH: &str = "feature/issue-7-slugs";

const PULL_REQUEST: &str = "https://github.com/example/slugs/pull/8";

/// A field of a contract, and the value that an agent writes.
type Field<'a> = (&'a str, &'a str);

const WRITE_UP: [Field<'_>; 5] = [
    ("issue_title", "Titles become slugs"),
    ("type", "feature"),
    ("priority", "high"),
    (
        "summary",
        "Print a title as a slug that fits into a web address",
    ),
    ("requirements", "Words are joined by single dashes"),
];

/// The seconds between two steps, and the number of steps that fit before now.
const PACE: i64 = 240;
const STEPS: i64 = 20;

/// The code before the work, after it, and after the review.
const BEFORE: &str = "#!/bin/sh\n# Prints a title as it is.\nprintf '%s\\n' \"$1\"\n";
const AFTER: &str =
    "#!/bin/sh\n# Prints a title as a slug.\nprintf '%s\\n' \"$1\" | tr 'A-Z ' 'a-z-'\n";
const FIXED: &str = "#!/bin/sh\n# Prints a title as a slug: letters, digits and single dashes.\nprintf '%s\\n' \"$1\" | tr 'A-Z' 'a-z' | tr -cs 'a-z0-9\\n' '-'\n";
const TEST: &str = "#!/bin/sh\n[ \"$(sh slug.sh 'Two Words')\" = two-words ]\n";

impl Arguments {
    pub(crate) fn run(&self, _: &Context, output: &mut Output) -> Result<(), Failure> {
        let folder = match &self.folder {
            Some(folder) => folder.clone(),
            None => unused(&std::env::temp_dir()),
        };
        let mut stage = Stage::build(&folder, output)?;
        if self.quick {
            stage.play_one()?;
        } else {
            stage.play()?;
        }
        let folder = stage.folder.display().to_string();
        let issue = ISSUE;
        stage.output.answer(&DemoView { folder, key: issue })
    }
}

/// The result of the demo.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Demo")]
pub(crate) struct DemoView {
    /// the scratch repository
    folder: String,
    /// the key of the issue in it
    key: &'static str,
}

impl Answer for DemoView {
    fn text(&self, _: &Look) -> String {
        let shown = &self.folder;
        format!(
            "\nThe repository is {shown}. Look around:\n  \
             git -C {shown} log handoffs\n  \
             git -C {shown} show handoffs:issues/07/00/7/issue.json\n  \
             git -C {shown} log --graph --oneline main\n\
             Delete it with: rm -r {shown}\n"
        )
    }
}

struct Stage<'o> {
    folder: PathBuf,
    program: PathBuf,
    output: &'o mut Output,
    /// The time of the last step, in seconds.
    time: std::cell::Cell<i64>,
}

fn broken(subject: &str, why: impl std::fmt::Display) -> Failure {
    Failure::new(ErrorCode::Demo, format!("{subject}: {why}"))
}

impl<'o> Stage<'o> {
    fn build(folder: &Path, output: &'o mut Output) -> Result<Self, Failure> {
        let unusable = |error: std::io::Error| broken(&folder.display().to_string(), error);
        fs::create_dir_all(folder).map_err(unusable)?;
        if fs::read_dir(folder).map_err(unusable)?.next().is_some() {
            return Err(Failure::usage(format!("{} is not empty", folder.display())));
        }
        let program = std::env::current_exe().map_err(|e| broken("the program", e))?;
        let folder = folder.canonicalize().map_err(unusable)?;
        let mut stage = Self {
            folder,
            program,
            output,
            time: std::cell::Cell::new(now()?.timestamp() - STEPS * PACE),
        };
        stage.tell("A scratch repository with a little code")?;
        stage.git(&["init", "--quiet", "--initial-branch=main"])?;
        stage.git(&["config", "user.name", "Demo"])?;
        stage.git(&["config", "user.email", "demo@example.com"])?;
        stage.git(&["config", "commit.gpgsign", "false"])?;
        stage.git(&["config", "handoff.sign", "false"])?;
        stage.git(&["config", "handoff.worker", "demo"])?;
        stage.git(&["config", "core.hooksPath", ".git/hooks"])?;
        stage.git(&[
            "remote",
            "add",
            "origin",
            "https://github.com/example/slugs.git",
        ])?;
        stage.save("slug.sh", BEFORE, "feat: print a title")?;
        stage.show_git(&["log", "--oneline"])?;
        Ok(stage)
    }

    /// One handoff, from its contract to the audit.
    fn play_one(&mut self) -> Result<(), Failure> {
        self.init()?;
        self.tell("issue-manager writes the issue up, and hands it to prep-agent")?;
        self.send("issue-manager", "prep-agent", &WRITE_UP)?;
        self.tell("prep-agent claims it")?;
        self.claim("prep-agent")?;
        self.audit()
    }

    fn play(&mut self) -> Result<(), Failure> {
        self.init()?;
        self.tell("issue-manager writes the issue up; its first contract is incomplete")?;
        self.refused(&sending("issue-manager", "prep-agent", &WRITE_UP[..3]))?;
        self.tell("The same contract, with everything filled in")?;
        self.send("issue-manager", "prep-agent", &WRITE_UP)?;

        self.tell("prep-agent claims it, and prepares a branch")?;
        self.claim("prep-agent")?;
        self.git(&["switch", "--quiet", "--create", BRANCH])?;
        self.send(
            "prep-agent",
            "implementer-agent",
            &[
                ("validation.dependencies", "none needed"),
                ("validation.build", "slug.sh runs"),
                ("validation.dev_server", "n/a: a shell script"),
            ],
        )?;

        self.implement()?;
        self.review()?;
        self.merge_and_close()?;

        self.tell("Nothing can be added to a completed issue")?;
        let mut late = WRITE_UP;
        late[3] = ("summary", "Slugs have at most forty letters");
        self.refused(&sending("issue-manager", "prep-agent", &late))?;
        self.audit()
    }

    fn init(&mut self) -> Result<(), Failure> {
        self.tell("The ledger, on its own branch")?;
        self.handoff(&["init"])
    }

    fn audit(&mut self) -> Result<(), Failure> {
        self.tell(
            "The audit trail is the branch's history, and `verify` derives every step again",
        )?;
        self.show_git(&["log", "--format=%h %an: %s", "handoffs"])?;
        self.handoff(&["verify"])
    }

    fn implement(&mut self) -> Result<(), Failure> {
        self.tell("implementer-agent writes the code: two real commits")?;
        self.claim("implementer-agent")?;
        self.save("slug.sh", AFTER, "feat: print titles as slugs")?;
        self.save("test.sh", TEST, "test: two words")?;
        self.show_git(&["log", "--oneline", "main.."])?;
        self.send(
            "implementer-agent",
            "reviewer-agent",
            &[
                ("pr_url", PULL_REQUEST),
                ("pr_number", "8"),
                (
                    "summary",
                    "slug.sh joins the words of a title by dashes, in lower case",
                ),
                ("tests_added", "1"),
                ("coverage", "n/a: no coverage tool for shell"),
            ],
        )
    }

    fn review(&mut self) -> Result<(), Failure> {
        self.tell("reviewer-agent asks for changes")?;
        self.claim("reviewer-agent")?;
        self.send(
            "reviewer-agent",
            "fixer-agent",
            &[
                ("critical_count", "1"),
                ("important_count", "0"),
                ("suggestion_count", "0"),
                (
                    "blocking_issues",
                    r#"{"location":"slug.sh:3","severity":"critical","description":"Punctuation ends up in the slug"}"#,
                ),
            ],
        )?;

        self.tell("fixer-agent fixes it; its new commit is counted automatically")?;
        self.claim("fixer-agent")?;
        self.save("slug.sh", FIXED, "fix: keep punctuation out of slugs")?;
        self.send(
            "fixer-agent",
            "reviewer-agent",
            &[(
                "fixes_applied",
                r#"{"finding":"F1","location":"slug.sh:3","description":"What is no letter or digit becomes one dash"}"#,
            )],
        )?;

        self.tell("reviewer-agent approves")?;
        self.claim("reviewer-agent")?;
        self.send(
            "reviewer-agent",
            "validator-agent",
            &[(
                "summary",
                "Punctuation is gone from slugs, and a test covers two words",
            )],
        )
    }

    fn merge_and_close(&mut self) -> Result<(), Failure> {
        self.tell("validator-agent validates and merges; the merge commit is found automatically")?;
        self.claim("validator-agent")?;
        self.git(&["switch", "--quiet", "main"])?;
        self.git(&[
            "merge",
            "--quiet",
            "--no-ff",
            "-m",
            "Merge pull request #8",
            BRANCH,
        ])?;
        self.send(
            "validator-agent",
            "closer-agent",
            &[
                ("merge_strategy", "merge"),
                ("validation_summary.tests", "1 passed"),
                (
                    "validation_summary.coverage",
                    "n/a: no coverage tool for shell",
                ),
                ("validation_summary.lint", "passed"),
                ("validation_summary.type_check", "n/a: shell has no types"),
                ("validation_summary.security", "no findings"),
            ],
        )?;

        self.tell("closer-agent closes the issue; reviews and commits are counted automatically")?;
        self.claim("closer-agent")?;
        self.send(
            "closer-agent",
            "workflow-complete",
            &[
                ("summary", "slug.sh prints titles as slugs"),
                ("actions_taken", "Told the issue's author, and closed it"),
            ],
        )
    }

    /// Advances the clock by some minutes.
    fn later(&self) {
        self.time.set(self.time.get() + PACE);
    }

    fn tell(&mut self, text: &str) -> Result<(), Failure> {
        self.print(&format!("\n── {text}\n"))
    }

    fn print(&mut self, text: &str) -> Result<(), Failure> {
        if self.output.is_json() {
            Ok(())
        } else {
            self.output.raw(text.as_bytes())
        }
    }

    /// Runs a program in the repository, without variables of a surrounding git or agent.
    fn start(&self, program: &Path, arguments: &[&str]) -> Result<std::process::Output, Failure> {
        let mut command = Command::new(program);
        command.current_dir(&self.folder).args(arguments);
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy().into_owned();
            if name.starts_with("GIT_")
                && !name.starts_with("GIT_CONFIG")
                && name != "GIT_EXEC_PATH"
            {
                command.env_remove(name);
            }
        }
        let date = format!("@{} +0000", self.time.get());
        command
            .env("GIT_AUTHOR_DATE", &date)
            .env("GIT_COMMITTER_DATE", &date);
        command.stdin(Stdio::null());
        let shown = program.display().to_string();
        command.output().map_err(|e| broken(&shown, e))
    }

    fn git(&self, arguments: &[&str]) -> Result<String, Failure> {
        let out = self.start(Path::new("git"), arguments)?;
        if out.status.success() {
            return Ok(String::from_utf8_lossy(&out.stdout).into_owned());
        }
        let message = String::from_utf8_lossy(&out.stderr);
        Err(broken(
            &format!("git {}", arguments.join(" ")),
            message.trim(),
        ))
    }

    fn show_git(&mut self, arguments: &[&str]) -> Result<(), Failure> {
        let out = self.git(arguments)?;
        let shown: Vec<String> = arguments.iter().map(|a| word(a).into_owned()).collect();
        self.print(&format!("$ git {}\n{}", shown.join(" "), indented(&out)))
    }

    fn save(&self, file: &str, text: &str, message: &str) -> Result<(), Failure> {
        self.later();
        fs::write(self.folder.join(file), text).map_err(|e| broken(file, e))?;
        self.git(&["add", file])?;
        self.git(&["commit", "--quiet", "-m", message]).map(|_| ())
    }

    /// Runs a git-handoff command, and prints it as typed, with its output.
    fn handoff(&mut self, arguments: &[&str]) -> Result<(), Failure> {
        let out = self.start(&self.program.clone(), arguments)?;
        let answer = String::from_utf8_lossy(&out.stdout).into_owned();
        self.print(&format!("{}{}", prompt(arguments), indented(&answer)))?;
        if out.status.success() {
            return Ok(());
        }
        let message = String::from_utf8_lossy(&out.stderr);
        Err(broken(prompt(arguments).trim(), message.trim()))
    }

    /// Runs a command that must be refused, and prints the refusal.
    fn refused(&mut self, arguments: &[String]) -> Result<(), Failure> {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let out = self.start(&self.program.clone(), &arguments)?;
        let message = String::from_utf8_lossy(&out.stderr);
        let code = out.status.code().unwrap_or(-1);
        self.print(&format!(
            "{}{}  (exit {code})\n",
            prompt(&arguments),
            indented(&message)
        ))?;
        if out.status.success() {
            return Err(broken("send", "an incomplete contract was accepted"));
        }
        Ok(())
    }

    fn send(&mut self, from: &str, to: &str, fields: &[Field<'_>]) -> Result<(), Failure> {
        self.later();
        let arguments = sending(from, to, fields);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        self.handoff(&arguments)
    }

    fn claim(&mut self, agent: &str) -> Result<(), Failure> {
        self.later();
        let arguments = ["claim", "--next", "--as", agent];
        let out = self.start(&self.program.clone(), &arguments)?;
        if !out.status.success() {
            return Err(broken("claim", String::from_utf8_lossy(&out.stderr).trim()));
        }
        // Omit the contract, which was shown when it was sent.
        let answer = String::from_utf8_lossy(&out.stdout).into_owned();
        let head = answer.split("\n\n").next().unwrap_or_default().trim_end();
        self.print(&format!("{}{}", prompt(&arguments), indented(head)))
    }
}

/// The command that sends a contract with these fields.
fn sending(from: &str, to: &str, fields: &[Field<'_>]) -> Vec<String> {
    let head = ["send", "--issue", ISSUE, "--to", to, "--as", from];
    let fields = fields.iter().map(|(name, value)| format!("{name}={value}"));
    let fields = fields.flat_map(|field| ["--set".to_owned(), field]);
    head.into_iter().map(str::to_owned).chain(fields).collect()
}

/// A git-handoff command as a person would type it, one field per line.
fn prompt(arguments: &[&str]) -> String {
    let words: Vec<String> = arguments.iter().map(|a| word(a).into_owned()).collect();
    let words = words.join(" ").replace(" --set ", " \\\n    --set ");
    format!("$ git handoff {words}\n")
}

/// The path of a new folder.
fn unused(parent: &Path) -> PathBuf {
    let named = |n: u32| parent.join(format!("git-handoff-demo-{n}"));
    (1..)
        .map(named)
        .find(|path| !path.exists())
        .unwrap_or_else(|| named(0))
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  {line}\n")).collect()
}
