//! The steps of docs/github.md, run as they stand there: each of its blocks of commands, and what each step promises.

use std::fs;
use std::path::{Path, PathBuf};

use crate::github_agents::{AGENT, dispatched, install};
use crate::github_rehearsal::{comment_on, here, opened, person, pull, step, tip};
use crate::runner::{Event, KEY, Runner, TOKEN};
use serde_json::{Value, json};
use test_support::TestEnvironment;
use test_support::contracts::{Format, prepared, sample};

/// What stands for names in the steps, and what is put in their place.
const PLACEHOLDERS: [(&str, &str); 4] = [
    ("OWNER/REPOSITORY", "octo/git-handoff"),
    ("OWNER/NAME", "owner/desk"),
    ("COMMIT", "1111111111111111111111111111111111111111"),
    ("NUMBER", "87"),
];

/// Words in capitals that are meant as they are.
const AS_THEY_ARE: [&str; 3] = ["POST", "PUT", "HANDOFF_AGENT_KEY"];

/// A step: its title, and its blocks of commands.
struct Step {
    title: String,
    blocks: Vec<String>,
}

fn page() -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/github.md")).unwrap()
}

/// A part of the page, by its heading.
fn part(heading: &str) -> String {
    let page = page();
    let (_, rest) = page.split_once(&format!("\n## {heading}\n")).unwrap();
    rest.split("\n## ").next().unwrap().to_owned()
}

/// The steps of a part. What comes before the first has no title.
fn steps(text: &str) -> Vec<Step> {
    let mut found = vec![Step {
        title: String::new(),
        blocks: Vec::new(),
    }];
    let mut is_inside = false;
    for line in text.lines() {
        // Commands are in blocks of one kind, which are all found.
        assert!(
            is_inside || !line.starts_with("    ") && !line.starts_with("~~~"),
            "{line}"
        );
        let is_numbered =
            line.starts_with("**") && line[2..].starts_with(|c: char| c.is_ascii_digit());
        if line.starts_with("```") {
            is_inside = !is_inside;
            if is_inside {
                found.last_mut().unwrap().blocks.push(String::new());
            }
        } else if is_inside {
            let block = found.last_mut().unwrap().blocks.last_mut().unwrap();
            *block += &format!("{line}\n");
        } else if is_numbered {
            let title = line[2..].split("**").next().unwrap();
            found.push(Step {
                title: title.trim_end_matches('.').to_owned(),
                blocks: Vec::new(),
            });
        }
    }
    found
}

/// A block with everything in it named.
fn named(block: &str) -> String {
    let mut text = block.to_owned();
    for (placeholder, name) in PLACEHOLDERS {
        text = text.replace(placeholder, name);
    }
    for word in text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_') {
        let is_placeholder =
            word.len() > 2 && word.chars().all(|c| c.is_ascii_uppercase() || c == '_');
        assert!(
            !is_placeholder || AS_THEY_ARE.contains(&word),
            "what is {word} in {block}?"
        );
    }
    text
}

/// A repository on GitHub with a clone of it, and nothing else.
struct Play {
    runner: Runner,
}

impl Play {
    fn new() -> Self {
        let runner = Runner::new(TestEnvironment::with_repository());
        let (env, repo) = (&runner.env, runner.env.repo());
        env.git(
            &runner.server(),
            &["symbolic-ref", "HEAD", "refs/heads/main"],
        );
        env.git(&repo, &["remote", "add", "origin", "../owner/desk"]);
        env.git(&repo, &["push", "-q", "-u", "origin", "main"]);
        let github = env.root().join("github");
        let settings = json!({ "can_approve_pull_request_reviews": "false" });
        fs::write(github.join("permissions.json"), settings.to_string()).unwrap();
        Self { runner }
    }

    fn env(&self) -> &TestEnvironment {
        &self.runner.env
    }

    /// Runs a block in a clone, as a person does.
    fn run(&self, block: &str, folder: PathBuf) -> String {
        let text = named(block);
        for line in text.lines() {
            assert!(
                line.starts_with("git ") || line.starts_with("gh "),
                "{line}"
            );
        }
        let mut command = self.env().command("bash");
        let path = command
            .get_envs()
            .find(|(name, _)| *name == "PATH")
            .unwrap();
        let path = path.1.unwrap().to_str().unwrap().to_owned();
        let bin = self.env().root().join("bin");
        command
            .args(["--noprofile", "--norc", "-eo", "pipefail", "-c", &text])
            .current_dir(folder)
            .env("PATH", format!("{}:{path}", bin.display()))
            .env("FAKE_GITHUB", self.env().root().join("github"))
            .env("GH_TOKEN", TOKEN);
        let ran = self.env().run(command, &[&text], Some(KEY.as_bytes()));
        ran.success().stdout
    }

    /// A push that a rule of the server refuses.
    fn refused(&self, args: &[&str], rule: &str) {
        let mut command = self.env().command("git");
        command
            .current_dir(self.env().repo())
            .arg("push")
            .args(args);
        let ran = self.env().run(command, args, None);
        assert_ne!(ran.status, 0, "{}", ran.shown);
        ran.says(&format!(": {rule}"));
    }

    fn head(&self) -> String {
        let head = self.env().git(&self.env().repo(), &["rev-parse", "HEAD"]);
        head.trim().to_owned()
    }

    /// What is not a command: what the step says that a person does first, or GitHub.
    fn before(&self, title: &str) {
        let (env, repo) = (self.env(), self.env().repo());
        match title {
            "2. Say which results to record, and push" => {
                let intake = repo.join(".github/workflows/handoff-intake.yml");
                let text = fs::read_to_string(&intake).unwrap();
                assert!(text.contains("workflows: [CI]"));
                fs::write(
                    &intake,
                    text.replace("workflows: [CI]", "workflows: [Test]"),
                )
                .unwrap();
            }
            "5. Open an issue" => {
                let runs = self.runner.starts(&opened(87, 1));
                let names: Vec<&String> = runs
                    .keys()
                    .filter(|name| *name != "handoff-agent.yml")
                    .collect();
                assert_eq!(names, ["handoff-intake.yml"]);
                let run = &runs["handoff-intake.yml"];
                run.job("record", "success")
                    .says("issues opened, issue 87, ")
                    .says("  sent 87.1 by issue-manager");
                comment_on(&self.runner, 87);
                // One that says too little.
                let mut event = opened(88, 2);
                event.payload["issue"]["body"] = json!("Please");
                let runs = self.runner.starts(&event);
                runs["handoff-intake.yml"]
                    .job("record", "success")
                    .says("left to fill");
            }
            "6. Open a pull request" => {
                env.handoff(&["fetch"]).success();
                step(&self.runner, "prep-agent", prepared(87));
                env.git(
                    &repo,
                    &["checkout", "-q", "-b", "enhancement/87-csv-export"],
                );
                fs::write(repo.join("export.txt"), "a,b\n").unwrap();
                env.git(&repo, &["add", "."]);
                env.git(&repo, &["commit", "-q", "-m", "Export"]);
                let review = sample("implementer-agent-to-reviewer-agent", Format::Xml, 87);
                step(&self.runner, "implementer-agent", review);
                let runs = self.runner.starts(&pull(&self.runner, "opened", 3));
                runs["handoff-intake.yml"].job("record", "success");
                comment_on(&self.runner, 7);
                let approval = sample("reviewer-agent-to-validator-agent", Format::Xml, 87);
                step(&self.runner, "reviewer-agent", approval);
                assert_eq!(self.status(), "failure");
            }
            _ => {}
        }
    }

    /// What a step promises.
    fn after(&self, title: &str, said: &str) {
        let (env, repo, server) = (self.env(), self.env().repo(), self.runner.server());
        let rulesets = || self.runner.kept("rulesets.json");
        let shipped = |name: &str| -> Value {
            let file = Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("templates/github")
                .join(name);
            serde_json::from_slice(&fs::read(file).unwrap()).unwrap()
        };
        match title {
            "" => assert_eq!(said, ""),
            "1. Start the ledger, with the workflows" => {
                let held = env.git(&server, &["ls-tree", "-r", "--name-only", "handoffs"]);
                assert!(held.contains("ledger.json"), "{held}");
                let code = env.git(&repo, &["ls-files"]);
                assert!(
                    !code
                        .lines()
                        .any(|file| held.lines().any(|one| one == file) && file != "README.md")
                );
                for name in ["intake", "gate", "verify", "audit"] {
                    let file = repo.join(format!(".github/workflows/handoff-{name}.yml"));
                    let text = fs::read_to_string(file).unwrap();
                    let action = named("uses: OWNER/REPOSITORY/action@COMMIT");
                    assert!(text.contains(&action), "{text}");
                    assert!(!text.contains("OWNER/"), "{text}");
                }
            }
            "2. Say which results to record, and push" => {
                let ended = |name: &str| {
                    let run = json!({ "id": 1, "run_attempt": 1, "name": name, "conclusion": "success", "head_branch": "main",
                        "head_sha": self.head(), "pull_requests": [] });
                    let payload = json!({ "action": "completed", "workflow_run": run, "repository": here(), "sender": person("octocat") });
                    self.runner.starts(&Event::new("workflow_run", 9, payload))
                };
                ended("Test")["handoff-intake.yml"].job("record", "success");
                assert!(ended("Else").is_empty());
            }
            "3. Let workflows write" => {
                for file in self.runner.pushed().values() {
                    assert!(file["permissions"].is_object(), "{file}");
                    for job in file["jobs"].as_object().unwrap().values() {
                        let is_said = job["permissions"].is_object();
                        assert!(is_said || file["permissions"] != json!({}), "{job}");
                    }
                }
            }
            "4. Protect the ledger" => {
                assert_eq!(rulesets(), json!([shipped("ruleset-ledger.json")]));
                let before = tip(&self.runner);
                self.refused(&["origin", ":handoffs"], "deletion");
                self.refused(&["-f", "origin", "main:handoffs"], "non_fast_forward");
                assert_eq!(tip(&self.runner), before);
            }
            "5. Open an issue" => {
                let turn = "prep-agent";
                assert!(said.contains("87.1") && said.contains(turn), "{said}");
            }
            "6. Open a pull request" => {
                self.dispatched("handoff-gate.yml", 4)
                    .job("gate", "success");
                assert_eq!(self.status(), "success");
            }
            "7. Require the status" => {
                let gate = shipped("ruleset-gate.json");
                assert_eq!(rulesets()[1], gate);
                let rules = gate["rules"].as_array().unwrap().iter();
                let mut required =
                    rules.map(|rule| &rule["parameters"]["required_status_checks"][0]["context"]);
                // The status that was set has the name that is required.
                assert_eq!(required.next_back().unwrap(), "handoff gate");
                self.refused(&["origin", "HEAD:main"], "pull_request");
            }
            "8. Let the agents work" => {
                let clone = env.root().join("agent");
                let before = tip(&self.runner);
                let claim = ["claim", "87", "--as", "validator-agent"];
                env.handoff_in(&clone, &claim).success();
                assert_ne!(tip(&self.runner), before);
            }
            other => panic!("no test plays step {other:?}"),
        }
    }

    /// What `github setup` says, with these words.
    fn setup(&self, words: &[&str]) -> String {
        self.run(
            &format!("git handoff github setup {}", words.join(" ")),
            self.env().repo(),
        )
    }

    fn status(&self) -> String {
        self.runner.api.status(&self.head()).unwrap().0
    }

    /// Runs what was dispatched last.
    fn dispatched(&self, workflow: &str, run: u32) -> crate::runner::Run {
        let all = self.runner.kept("dispatches.json");
        let last = all.as_array().unwrap().last().unwrap();
        assert_eq!(
            (&last["workflow"], &last["ref"]),
            (&json!(workflow), &json!("main"))
        );
        let file = &self.runner.pushed()[workflow];
        self.runner
            .run_workflow(file, &dispatched(run, last["inputs"].clone()))
    }

    fn play(&self, step: &Step) {
        self.before(&step.title);
        let mut folder = self.env().repo();
        if step.title.starts_with("8. ") {
            folder = self.env().root().join("agent");
            let args = ["clone", "-q", "owner/desk", "agent"];
            self.env().git(self.env().root(), &args);
        }
        let said = step
            .blocks
            .iter()
            .map(|block| self.run(block, folder.clone()));
        let said: String = said.collect();
        self.after(&step.title, &said);
    }
}

#[test]
fn the_steps_lead_from_nothing_to_a_gated_repository() {
    let text = part("From nothing to a gated repository");
    assert!(text.contains("**Nothing on this page was ever run on GitHub itself.**"));
    let play = Play::new();
    let steps = steps(&text);
    for (i, step) in steps.iter().enumerate() {
        assert!(
            i == 0 || step.title.starts_with(&format!("{i}. ")),
            "{}",
            step.title
        );
        play.play(step);
    }
    assert_eq!(steps.len(), 9);
    play.env().assert_sound();
}

#[test]
fn agents_on_actions_begin_as_described() {
    let play = Play::new();
    for step in steps(&part("From nothing to a gated repository")) {
        if ["1.", "2.", "5."]
            .iter()
            .any(|number| step.title.starts_with(number))
        {
            play.play(&step);
        }
    }
    install(&play.runner, AGENT);
    let steps = steps(&part("Agents on Actions"));
    assert_eq!((steps.len(), steps[0].blocks.len()), (1, 1));
    play.run(&steps[0].blocks[0], play.env().repo());
    // The environment and the secret are those that the workflow asks for.
    let file = &play.runner.pushed()["handoff-agent.yml"];
    let environment = &file["jobs"]["work"]["environment"];
    assert_eq!(play.runner.kept("environments.json"), json!([environment]));
    let secret = json!([[environment, "HANDOFF_AGENT_KEY", KEY]]);
    assert_eq!(play.runner.kept("secrets.json"), secret);
    // Whose turn it is; then the next, for whom the pull request is opened.
    for run in [10, 11] {
        play.dispatched("handoff-agent.yml", run)
            .job("turn", "success")
            .job("work", "success")
            .job("carry", "success");
    }
    assert_eq!(play.runner.kept("pulls.json")[0]["body"], "Closes #87");
    play.env().handoff(&["fetch"]).success();
    let said = play.env().data(&["status", "87"]);
    assert_eq!(said["handoffs"].as_array().unwrap().len(), 3, "{said:#}");
    play.env().assert_sound();
}

#[test]
fn setup_shows_what_is_missing_and_does_it() {
    let play = Play::new();
    for step in steps(&part("From nothing to a gated repository")) {
        if ["1.", "2."]
            .iter()
            .any(|number| step.title.starts_with(number))
        {
            play.play(&step);
        }
    }
    let before = play.setup(&["--agents"]);
    for line in [
        "✓ the workflows name a commit of the action\n",
        "✓ owner/desk: the workflows are on the default branch\n",
        "✗ owner/desk: the ledger's branch is never rewritten\n    gh api --hostname github.com repos/owner/desk/rulesets --method POST --input .github/ruleset-ledger.json\n",
        "✗ owner/desk: the status is required on the default branch\n",
        "✗ owner/desk: it has the agents' key (gh: Not Found (HTTP 404))\n    gh secret set HANDOFF_AGENT_KEY ",
    ] {
        assert!(before.contains(line), "no {line} in\n{before}");
    }
    assert_eq!(play.runner.kept("rulesets.json"), json!([]));
    let after = play.setup(&["--agents", "--apply"]);
    // The key is a person's to give.
    assert_eq!(after.matches("✗").count(), 1, "{after}");
    assert_eq!(play.setup(&["--agents", "--apply"]), after);
    assert_eq!(
        play.runner.kept("rulesets.json").as_array().unwrap().len(),
        2
    );
    let intake = play
        .env()
        .repo()
        .join(".github/workflows/handoff-intake.yml");
    let text = fs::read_to_string(&intake).unwrap();
    fs::write(&intake, text.replace("LEDGER: handoffs", "LEDGER: other")).unwrap();
    let wrong = play.setup(&["owner/desk"]);
    let line = "✗ the workflows name the ledger's branch (.github/workflows/handoff-intake.yml)\n    set LEDGER to handoffs in each\n";
    assert!(wrong.contains(line), "{wrong}");
    // Another ledger's status is another one.
    let env = play.env();
    env.handoff(&["--branch", "two", "init", "--remote", "origin", "--github"])
        .success();
    let second = play.setup(&["owner/desk"]);
    for line in [
        "✗ owner/desk: the workflows are on the default branch (",
        "✗ owner/desk: the status is required on the default branch\n    gh api --hostname github.com repos/owner/desk/rulesets --method POST --input .github/ruleset-gate-two.json\n",
    ] {
        assert!(second.contains(line), "no {line} in\n{second}");
    }
    let second = play.setup(&["owner/desk", "--apply"]);
    let line = "✓ owner/desk: the status is required on the default branch\n";
    assert!(second.contains(line), "{second}");
}

#[test]
fn setup_makes_one_ruleset_for_an_organization_and_says_what_a_plan_lacks() {
    let play = Play::new();
    play.env()
        .handoff(&["init", "--remote", "origin", "--github"])
        .success();
    let line = "✗ owner/desk: the status is required on the default branch\n    jq '.conditions.repository_name = {\"include\":[\"desk\"],\"exclude\":[]}' .github/ruleset-gate.json | gh api --hostname github.com orgs/owner/rulesets --method POST --input -\n";
    let before = play.setup(&["owner/desk", "--org", "owner"]);
    assert!(before.contains(line), "{before}");
    assert_eq!(play.runner.kept("org-rulesets.json"), json!([]));
    let right = |said: &str, repository: &str| {
        [
            "the ledger's branch is never rewritten",
            "the status is required on the default branch",
        ]
        .iter()
        .all(|what| said.contains(&format!("✓ {repository}: {what}\n")))
    };
    let one = play.setup(&["owner/desk", "--org", "owner", "--apply"]);
    assert!(right(&one, "owner/desk"), "{one}");
    // Another one comes to those that have it.
    let both = play.setup(&["owner/ships", "--org", "owner", "--apply"]);
    assert!(right(&both, "owner/ships"), "{both}");
    assert!(right(
        &play.setup(&["owner/desk", "owner/ships"]),
        "owner/desk"
    ));
    let kept = play.runner.kept("org-rulesets.json");
    assert_eq!(kept.as_array().unwrap().len(), 2);
    assert_eq!(
        kept[1]["conditions"]["repository_name"]["include"],
        json!(["desk", "ships"])
    );
    assert_eq!(play.runner.kept("rulesets.json"), json!([]));
    let other = ["github", "setup", "octo/desk", "--org", "owner"];
    play.env()
        .handoff(&other)
        .exits(2)
        .says("\"octo/desk\" is not a repository of \"owner\"");
    // GitHub Free has neither rulesets nor environments for private repositories.
    fs::write(play.env().root().join("github/plan.json"), "[\"free\"]").unwrap();
    let free = play.setup(&["--agents", "--apply"]);
    for (what, without) in [
        (
            "the ledger's branch is never rewritten",
            "everyone with push access can rewrite it; the weekly audit reports that",
        ),
        (
            "the status is required on the default branch",
            "the status is shown, and holds no merge back",
        ),
        (
            "there is the agents' environment",
            "nobody reviews a run before it has the agents' key",
        ),
    ] {
        let line = format!(
            "✗ owner/desk: {what} (gh: Upgrade to GitHub Pro or make this repository public to enable this feature. (HTTP 403); until then {without})\n✗"
        );
        let last = line.replace("\n✗", "\n✓");
        assert!(free.contains(&line) || free.contains(&last), "{line}{free}");
    }
}

#[test]
fn setup_asks_the_host_of_the_repository_and_no_namesake() {
    let play = Play::new();
    let env = play.env();
    env.handoff(&["init", "--remote", "origin", "--github"])
        .success();
    fs::write(
        env.root().join("github/host.json"),
        "[\"ghe.corp.example\"]",
    )
    .unwrap();
    let line = "    gh api --hostname ghe.corp.example repos/owner/desk/rulesets --method POST --input .github/ruleset-gate.json\n";
    // As `gh` knows the clone, as the remote says, and as it is named.
    assert!(play.setup(&[]).contains(line));
    let url = [
        "remote",
        "set-url",
        "origin",
        "git@ghe.corp.example:owner/desk.git",
    ];
    env.git(&env.repo(), &url);
    assert!(play.setup(&["owner/desk"]).contains(line));
    let asked = play.setup(&["github.com/owner/desk", "--apply"]);
    assert!(asked.contains("(gh: another host was asked)"), "{asked}");
    assert_eq!(play.runner.kept("rulesets.json"), json!([]));
    let set = play.setup(&["ghe.corp.example/owner/desk", "--agents", "--apply"]);
    assert!(
        set.contains("✓ owner/desk: the status is required on the default branch\n"),
        "{set}"
    );
    let key =
        "gh secret set HANDOFF_AGENT_KEY --env handoff-agents --repo ghe.corp.example/owner/desk\n";
    assert!(set.contains(key), "{set}");
    let several = ["github", "setup", "octo/desk", "github.com/octo/desk"];
    env.handoff(&several).exits(2).says("on several hosts");
}

#[test]
fn a_step_that_nobody_knows_fails() {
    let text = "**1. Do something else.** So:\n```\ngit handoff init\n```\n**2. And.** More\n";
    let found = steps(text);
    assert_eq!(found.len(), 3);
    assert_eq!(found[1].title, "1. Do something else");
    assert_eq!(found[1].blocks, ["git handoff init\n"]);
    let outcome = |play: &dyn Fn()| std::panic::catch_unwind(std::panic::AssertUnwindSafe(play));
    let play = Play::new();
    assert!(outcome(&|| play.play(&found[1])).is_err());
    for block in [
        "curl example.com\n",
        "gh api repos/OWNER/ELSE\n",
        "gh gist list\n",
    ] {
        assert!(
            outcome(&|| drop(play.run(block, play.env().repo()))).is_err(),
            "{block}"
        );
    }
}
