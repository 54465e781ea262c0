use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;

use crate::context::Context;
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

/// What the issue's write-up says, in the order of its fields.
const WRITE_UP: [&str; 5] = [
    "Titles become slugs",
    "feature",
    "high",
    "Titles are printed as slugs",
    "Words are joined by dashes",
];

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

/// What was built.
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

/// The scratch repository, and the output.
struct Stage<'o> {
    folder: PathBuf,
    program: PathBuf,
    output: &'o mut Output,
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
        self.contract("issue-manager", "prep-agent", &WRITE_UP)?;
        self.tell("prep-agent claims it")?;
        self.claim("prep-agent")?;
        self.audit()
    }

    fn play(&mut self) -> Result<(), Failure> {
        self.init()?;
        self.tell("issue-manager writes the issue up; its first contract is incomplete")?;
        let skeleton = self.new_contract("issue-manager", "prep-agent")?;
        let some = filled(&skeleton, &WRITE_UP[..2]);
        self.refused(&["send", "-"], &some)?;
        self.tell("The same contract, with everything filled in")?;
        self.fill_and_send(&skeleton, &WRITE_UP)?;

        self.tell("prep-agent claims it, and prepares a branch")?;
        self.claim("prep-agent")?;
        self.git(&["switch", "--quiet", "--create", BRANCH])?;
        self.contract(
            "prep-agent",
            "implementer-agent",
            &["8080", "none needed", "passing", "not used"],
        )?;

        self.implement()?;
        self.review()?;
        self.merge_and_close()?;

        self.tell("Nothing can be added to a completed issue")?;
        let late = filled(
            &skeleton,
            &["Once more", "chore", "low", "Once more", "Once more"],
        );
        self.refused(&["send", "-"], &late)?;
        self.audit()
    }

    fn init(&mut self) -> Result<(), Failure> {
        self.tell("The ledger, on its own branch")?;
        self.handoff(&["init"], None).map(|_| ())
    }

    fn audit(&mut self) -> Result<(), Failure> {
        self.tell(
            "The audit trail is the branch's history, and `verify` derives every step again",
        )?;
        self.show_git(&["log", "--format=%h %an: %s", "handoffs"])?;
        self.handoff(&["verify"], None).map(|_| ())
    }

    fn implement(&mut self) -> Result<(), Failure> {
        self.tell("implementer-agent writes the code: two real commits")?;
        self.claim("implementer-agent")?;
        self.save("slug.sh", AFTER, "feat: print titles as slugs")?;
        self.save("test.sh", TEST, "test: two words")?;
        self.show_git(&["log", "--oneline", "main.."])?;
        self.contract(
            "implementer-agent",
            "reviewer-agent",
            &[
                "https://github.com/example/slugs/pull/8",
                "8",
                "slug.sh prints a title as a slug",
                "1",
                "80%",
            ],
        )
    }

    fn review(&mut self) -> Result<(), Failure> {
        self.tell("reviewer-agent asks for changes")?;
        self.claim("reviewer-agent")?;
        self.contract(
            "reviewer-agent",
            "fixer-agent",
            &[
                "1",
                "0",
                "0",
                "slug.sh:3",
                "critical",
                "Punctuation ends up in the slug",
            ],
        )?;

        self.tell("fixer-agent fixes it; its new commit is counted automatically")?;
        self.claim("fixer-agent")?;
        self.save("slug.sh", FIXED, "fix: keep punctuation out of slugs")?;
        self.contract(
            "fixer-agent",
            "reviewer-agent",
            &["slug.sh:3", "Everything else becomes one dash"],
        )?;

        self.tell("reviewer-agent approves")?;
        self.claim("reviewer-agent")?;
        self.contract(
            "reviewer-agent",
            "validator-agent",
            &["0", "Clean, with a test"],
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
        self.contract(
            "validator-agent",
            "closer-agent",
            &[
                "merge",
                "passed (1/1)",
                "80%",
                "passed",
                "not used",
                "no findings",
            ],
        )?;

        self.tell("closer-agent closes the issue; reviews and commits are counted automatically")?;
        self.claim("closer-agent")?;
        self.contract(
            "closer-agent",
            "workflow-complete",
            &["Titles are slugs now", "Issue closed"],
        )
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

    /// Runs a program in the repository, without the variables that a surrounding git or agent
    /// may have set.
    fn start(
        &self,
        program: &Path,
        arguments: &[&str],
        input: Option<&str>,
    ) -> Result<std::process::Output, Failure> {
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
        command.stdin(if input.is_some() {
            Stdio::piped()
        } else {
            Stdio::null()
        });
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let shown = program.display().to_string();
        let mut child = command.spawn().map_err(|e| broken(&shown, e))?;
        if let (Some(input), Some(mut pipe)) = (input, child.stdin.take()) {
            // A program that refuses early may not read all of its input.
            let _ = pipe.write_all(input.as_bytes());
        }
        child.wait_with_output().map_err(|e| broken(&shown, e))
    }

    fn git(&self, arguments: &[&str]) -> Result<String, Failure> {
        let out = self.start(Path::new("git"), arguments, None)?;
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
        let shown: Vec<String> = arguments.iter().map(|a| typed(a)).collect();
        self.print(&format!("$ git {}\n{}", shown.join(" "), indented(&out)))
    }

    fn save(&self, file: &str, text: &str, message: &str) -> Result<(), Failure> {
        fs::write(self.folder.join(file), text).map_err(|e| broken(file, e))?;
        self.git(&["add", file])?;
        self.git(&["commit", "--quiet", "-m", message]).map(|_| ())
    }

    /// Runs one of our own commands, prints it as typed, and returns its answer.
    fn handoff(&mut self, arguments: &[&str], input: Option<&str>) -> Result<String, Failure> {
        let out = self.start(&self.program.clone(), arguments, input)?;
        let answer = String::from_utf8_lossy(&out.stdout).into_owned();
        let shown: Vec<String> = arguments.iter().map(|a| typed(a)).collect();
        self.print(&format!(
            "$ git handoff {}\n{}",
            shown.join(" "),
            indented(&answer)
        ))?;
        if out.status.success() {
            return Ok(answer);
        }
        let message = String::from_utf8_lossy(&out.stderr);
        Err(broken(
            &format!("git handoff {}", shown.join(" ")),
            message.trim(),
        ))
    }

    /// Runs a command that must be refused, and prints why.
    fn refused(&mut self, arguments: &[&str], input: &str) -> Result<(), Failure> {
        let out = self.start(&self.program.clone(), arguments, Some(input))?;
        let message = String::from_utf8_lossy(&out.stderr);
        let code = out.status.code().unwrap_or(-1);
        self.print(&format!(
            "$ git handoff {}\n{}  (exit {code})\n",
            arguments.join(" "),
            indented(&message)
        ))?;
        if out.status.success() {
            return Err(broken("send", "an incomplete contract was accepted"));
        }
        Ok(())
    }

    fn claim(&mut self, agent: &str) -> Result<(), Failure> {
        let arguments = ["claim", "--next", "--as", agent];
        let out = self.start(&self.program.clone(), &arguments, None)?;
        if !out.status.success() {
            return Err(broken("claim", String::from_utf8_lossy(&out.stderr).trim()));
        }
        // Leave out the contract, which was already shown when it was sent.
        let answer = String::from_utf8_lossy(&out.stdout).into_owned();
        let head = answer.split("\n\n").next().unwrap_or_default().trim_end();
        self.print(&format!(
            "$ git handoff {}\n{}",
            arguments.join(" "),
            indented(head)
        ))
    }

    fn new_contract(&mut self, from: &str, to: &str) -> Result<String, Failure> {
        let arguments = ["new", "--issue", ISSUE, "--from", from, "--to", to];
        self.handoff(&arguments, None)
    }

    fn contract(&mut self, from: &str, to: &str, values: &[&str]) -> Result<(), Failure> {
        let skeleton = self.new_contract(from, to)?;
        self.fill_and_send(&skeleton, values)
    }

    fn fill_and_send(&mut self, skeleton: &str, values: &[&str]) -> Result<(), Failure> {
        let contract = filled(skeleton, values);
        self.print(&format!("  … filled in: {}\n", values.join(" | ")))?;
        self.handoff(&["send", "-"], Some(&contract)).map(|_| ())
    }
}

/// Replaces the marks of a skeleton in order; marks without a value stay, and so do those that `send`
/// fills in.
fn filled(skeleton: &str, values: &[&str]) -> String {
    let mut text = skeleton.to_owned();
    for value in values {
        let Some(start) = text.find("{{fill: ") else {
            break;
        };
        let end = text[start..]
            .find("}}")
            .map_or(text.len(), |at| start + at + 2);
        text.replace_range(start..end, value);
    }
    text
}

/// A folder that does not exist yet.
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

/// An argument as a person would type it.
fn typed(argument: &str) -> String {
    if argument.contains(char::is_whitespace) {
        format!("'{argument}'")
    } else {
        argument.to_owned()
    }
}
