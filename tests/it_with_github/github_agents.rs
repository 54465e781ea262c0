//! Agents that the workflow runs: an issue goes from agent to agent, and each makes only what its role may.

use std::fs;

use crate::github_rehearsal::{desk, opened, person, tip};
use crate::runner::{Event, KEY, Run, Runner, TOKEN, files};
use serde_json::{Value, json};
use test_support::TestEnvironment;
use test_support::events::fact;
use test_support::events::{did, event, issue, issues, pull, pull_request};
use test_support::files::script;

/// What plays each agent: it stands in for the program of the profile. A reviewer asks for changes
/// once, and commits, which it may not; nobody finds a token.
pub(crate) const AGENT: &str = r#"#!/bin/bash
set -euo pipefail
cat >/dev/null
env | grep -q "$ROOT_TOKEN" && { echo 'there is a token' >&2; exit 1; }
git config --get-regexp 'extraheader|credential' && exit 1
[ "$ANTHROPIC_API_KEY" = "$AGENTS_KEY" ]
issue=$GIT_HANDOFF_ISSUE
handed() { git handoff new --issue "$issue" --to "$@" >"$GIT_HANDOFF_CONTRACT"; }
commit() {
  echo "$2" >"$1"
  git add "$1"
  git commit -q -m "$2"
}
echo "$GIT_HANDOFF_AGENT" >>"$ROLES"
case $GIT_HANDOFF_AGENT in
  prep-agent)
    handed implementer-agent --set branch="$GIT_HANDOFF_BRANCH" --set workspace_type=worktree --set port=3000 \
      --set validation.dependencies='none needed' --set validation.build=passed --set validation.dev_server='n/a: a script' ;;
  implementer-agent)
    commit export.csv 'Export'
    handed reviewer-agent --set summary='It exports' --set tests_added=0 --set coverage=100% ;;
  reviewer-agent)
    commit sly.txt 'Sly'
    git checkout -q HEAD~1
    if [ -e fixed.txt ]; then
      handed validator-agent --set summary='It exports'
    else
      handed fixer-agent --set summary='It lacks a header' --set critical_count=0 --set important_count=1 --set suggestion_count=0 \
        --set 'blocking_issues={"description": "no header", "severity": "important", "location": "export.csv:1"}'
    fi ;;
  fixer-agent)
    commit fixed.txt 'A header'
    handed reviewer-agent --set 'fixes_applied={"finding": "F1", "location": "export.csv:1", "description": "a header"}' ;;
  validator-agent)
    handed closer-agent --set merge_status=merged --set merge_strategy=merge --set validation_summary.tests=passed \
      --set validation_summary.lint=passed --set validation_summary.type_check=passed --set validation_summary.coverage=100% \
      --set validation_summary.security='not run: a script' ;;
  closer-agent)
    handed workflow-complete --set summary='It is merged' --set actions_taken='Closed the issue' --set metrics.coverage=100% ;;
esac
echo '{"type": "result", "total_cost_usd": 0.5, "usage": {"input_tokens": 10, "output_tokens": 5}}'
"#;

/// A server on which an issue was opened, and a machine that has the agents' program.
fn with_agents(agent: &str) -> Runner {
    let runner = desk();
    install(&runner, agent);
    let run = runner.run("handoff-intake.yml", &opened(87, 1));
    run.job("record", "success");
    runner
}

/// Makes an agent's program, and what installs it, ones that the machine has.
pub(crate) fn install(runner: &Runner, agent: &str) {
    let bin = runner.env.root().join("bin");
    let npm = "#!/bin/sh\n[ \"$1 $2\" = 'install --global' ] && echo \"$3\" >>\"$(dirname \"$0\")/../installed\"\n";
    script(&bin.join("npm"), npm);
    let roles = runner.env.root().join("roles");
    let agent = agent
        .replace("$ROOT_TOKEN", TOKEN)
        .replace("$AGENTS_KEY", KEY)
        .replace("$ROLES", roles.to_str().unwrap());
    script(&bin.join("claude"), agent);
}

fn repository() -> Value {
    json!({ "id": 1, "full_name": "owner/desk", "default_branch": "main" })
}

pub(crate) fn dispatched(run: u32, inputs: Value) -> Event {
    let payload = json!({ "inputs": inputs, "repository": repository(), "sender": person("github-actions[bot]") });
    Event::new("workflow_dispatch", run, payload)
}

fn labeled(run: u32, label: &str, by: &str) -> Event {
    let payload = json!({
        "action": "labeled", "issue": { "number": 87 }, "label": { "name": label },
        "repository": repository(), "sender": person(by),
    });
    Event::new("issues", run, payload)
}

/// Runs what was dispatched, one after the other, until nothing is.
fn run_on(runner: &Runner, first: Event) -> Vec<Run> {
    let mut runs = Vec::new();
    let mut next = Some(first);
    while let Some(event) = next {
        runs.push(runner.run("handoff-agent.yml", &event));
        let dispatches = runner.kept("dispatches.json");
        let dispatch = dispatches.get(runs.len() - 1).cloned();
        next = dispatch.map(|dispatch| {
            assert_eq!(dispatch["workflow"], "handoff-agent.yml");
            assert_eq!(dispatch["ref"], "main");
            dispatched(event.run + 1, dispatch["inputs"].clone())
        });
        assert!(runs.len() < 20);
    }
    runs
}

/// What the server has of issue 87.
fn status(runner: &Runner) -> Value {
    runner.env.handoff(&["fetch"]).success();
    runner.env.data(&["status", "87"])
}

#[test]
fn an_issue_goes_through_all_its_agents_by_itself() {
    let runner = with_agents(AGENT);
    let env = &runner.env;
    let collaborators = json!([["maintainer", "write"], ["triager", "read"]]);
    fs::write(
        env.root().join("github/collaborators.json"),
        collaborators.to_string(),
    )
    .unwrap();
    // Other labels start nothing, and neither do people who may only label.
    for (label, by, turn) in [
        ("bug", "maintainer", "skipped"),
        ("handoff", "triager", "success"),
    ] {
        let run = runner.run("handoff-agent.yml", &labeled(2, label, by));
        run.job("turn", turn)
            .job("work", "skipped")
            .job("carry", "skipped");
    }
    let runs = run_on(&runner, labeled(3, "handoff", "maintainer"));
    for run in &runs {
        run.job("turn", "success")
            .job("work", "success")
            .job("carry", "success");
    }
    let merging = runs.iter().find(|run| run.log.contains("merges=true"));
    merging.unwrap().says("::notice title=approved::");
    let roles = fs::read_to_string(env.root().join("roles")).unwrap();
    let roles: Vec<&str> = roles.lines().collect();
    assert_eq!(
        roles,
        [
            "prep-agent",
            "implementer-agent",
            "reviewer-agent",
            "fixer-agent",
            "reviewer-agent",
            "validator-agent",
            "closer-agent"
        ]
    );
    let said = status(&runner);
    assert_eq!(said["issue"]["status"], "completed", "{said:#}");
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let records = list(&said["handoffs"]);
    let usage = records
        .iter()
        .flat_map(|record| list(&record["record"]["usage"]));
    let models = usage.flat_map(|usage| list(&usage["models"]));
    let costs: Vec<Value> = models.map(|model| model["cost"].clone()).collect();
    assert_eq!(costs, vec![json!(0.5); 7], "{said:#}");
    // The pull request was opened before there was anything in it, and merged when the gate was open.
    let pulls = runner.kept("pulls.json");
    assert_eq!(pulls.as_array().unwrap().len(), 1);
    assert_eq!(pulls[0]["title"], "Issue 87 in $(words)");
    assert_eq!(pulls[0]["body"], "Closes #87");
    assert_eq!(pulls[0]["merged"], true);
    let merged = env.git(&runner.server(), &["ls-tree", "--name-only", "main"]);
    assert!(
        merged.contains("export.csv") && merged.contains("fixed.txt"),
        "{merged}"
    );
    // What a reviewer commits stays where it was made.
    assert!(!merged.contains("sly.txt"), "{merged}");
    let heads = env.git(
        &runner.server(),
        &["for-each-ref", "--format=%(refname)", "refs/heads"],
    );
    assert_eq!(
        heads,
        "refs/heads/handoff/87\nrefs/heads/handoffs\nrefs/heads/main\n"
    );
    let comments = runner.kept("comments.json");
    // One on the issue, one on the pull request, each as things are now.
    let numbers: Vec<&Value> = comments
        .as_array()
        .unwrap()
        .iter()
        .map(|c| &c["number"])
        .collect();
    assert_eq!(numbers, [87, 7]);
    for comment in comments.as_array().unwrap() {
        let body = comment["body"].as_str().unwrap();
        assert!(body.contains("## Issue `87`: completed"), "{body}");
    }
    env.assert_sound();
    for (path, bytes) in files(env.root()) {
        let is_agents = path.ends_with("bin/claude");
        for secret in [TOKEN, KEY].map(str::as_bytes) {
            let holds = bytes.windows(secret.len()).any(|w| w == secret);
            assert!(!holds || is_agents, "{}", path.display());
        }
    }
    // Nothing is left to do, and to ask again costs one job.
    let run = runner.run(
        "handoff-agent.yml",
        &dispatched(30, json!({ "issue": "87" })),
    );
    run.job("turn", "success").job("work", "skipped");
    for wrong in ["", "0", "87; touch sly", "-1", "8_7"] {
        let run = runner.run(
            "handoff-agent.yml",
            &dispatched(31, json!({ "issue": wrong })),
        );
        run.job("turn", "failure").job("work", "skipped");
    }
    let run = runner.run(
        "handoff-agent.yml",
        &dispatched(32, json!({ "issue": "88" })),
    );
    run.job("turn", "success")
        .says("the ledger has no issue 88");
}

#[test]
fn an_agent_takes_no_step_of_another_and_touches_no_other_branch() {
    let sly = [
        "git handoff annotate 87 --as maintainer --note 'I approve'",
        "git handoff annotate 88 --as prep-agent --note 'Elsewhere'",
        "git branch -q -f handoffs main; git checkout -q handoffs; git commit -q --allow-empty -m x; git checkout -q -",
    ];
    for line in sly {
        let agent = AGENT.replacen("echo \"$GIT_HANDOFF_AGENT\"", &format!("{line}; echo"), 1);
        let runner = with_agents(&agent);
        let run = runner.run("handoff-intake.yml", &opened(88, 2));
        run.job("record", "success");
        let before = tip(&runner);
        let run = runner.run(
            "handoff-agent.yml",
            &dispatched(3, json!({ "issue": "87" })),
        );
        run.job("turn", "success");
        if line.contains("annotate") {
            run.job("carry", "failure")
                .says("may only take its own steps in issue 87; nothing was taken over");
        }
        assert_ne!(run.jobs["carry"], "success", "{line}: {}", run.log);
        assert_eq!(tip(&runner), before, "{line}");
        assert_eq!(runner.kept("dispatches.json"), json!([]));
    }
}

#[test]
fn a_failed_agent_is_run_again_as_far_as_the_rules_go() {
    let agent = AGENT.replacen("set -euo pipefail", "set -euo pipefail; exit 3", 1);
    let runner = with_agents(&agent);
    let runs = run_on(
        &runner,
        dispatched(2, json!({ "issue": "87", "role": "prep-agent" })),
    );
    let last = runs.last().unwrap();
    assert_eq!(last.jobs["work"], "failure", "{}", last.log);
    last.job("carry", "success")
        .says("::notice title=handoff agent::issue 87: ");
    let said = status(&runner);
    assert_eq!(said["handoffs"][0]["state"], "dead", "{said:#}");
    runner.env.assert_sound();
    // It is not its turn: nobody else is run.
    let run = runner.run(
        "handoff-agent.yml",
        &dispatched(40, json!({ "issue": "87", "role": "closer-agent" })),
    );
    run.job("turn", "success").job("work", "skipped");
}

#[test]
fn what_copilot_is_given_and_opens_is_recorded() {
    let env = TestEnvironment::with_ledger();
    event(&env, "issues", &issues("opened", issue(12)));
    let assigned = |login: &str| {
        let mut payload = issues("assigned", issue(12));
        payload["assignee"] = json!({ "login": login, "type": "Bot" });
        event(&env, "issues", &payload)
    };
    assigned("octocat");
    assert_eq!(fact(&env, "coding_agent"), Value::Null);
    assert!(did(&assigned("Copilot")).contains(&"noted 12.1".to_owned()));
    assert_eq!(fact(&env, "coding_agent"), "Copilot");
    // It begins with a draft on a branch of its own, which is ready when it says so.
    env.wait_minutes(1);
    let mut opened = pull_request(13, 12);
    opened["draft"] = json!(true);
    opened["body"] = json!("Thanks for assigning this to me.");
    opened["user"] = json!({ "login": "Copilot", "type": "Bot" });
    opened["author_association"] = json!("CONTRIBUTOR");
    opened["head"]["ref"] = json!("copilot/fix-12");
    let noted = event(&env, "pull_request", &pull("opened", opened.clone()));
    assert_eq!(did(&noted), ["noted 12.1"], "{noted:#}");
    assert_eq!(fact(&env, "branch"), "copilot/fix-12");
    assert_eq!(fact(&env, "pr_number"), 13);
}

#[test]
fn an_agents_contract_chooses_no_branch_of_others() {
    for branch in ["gh-pages", "release/2.0", "somebody/87-else"] {
        let named = format!("branch={branch} --set workspace_path=elsewhere");
        let agent = AGENT.replace("branch=\"$GIT_HANDOFF_BRANCH\"", &named);
        let runner = with_agents(&agent);
        let server = runner.server();
        if branch != "release/2.0" {
            let args = ["update-ref", &format!("refs/heads/{branch}"), "main"];
            runner.env.git(&server, &args);
        }
        let runs = run_on(&runner, dispatched(2, json!({ "issue": "87" })));
        let last = runs.last().unwrap();
        last.job("turn", "failure").job("work", "skipped");
        last.says(&format!("{branch} is not for agents of issue 87"));
        // Nobody was paid for it, and nothing was opened.
        let roles = fs::read_to_string(runner.env.root().join("roles")).unwrap();
        assert_eq!(roles, "prep-agent\n");
        assert_eq!(runner.kept("pulls.json"), json!([]));
        assert_eq!(runner.kept("dispatches.json").as_array().unwrap().len(), 1);
    }
}

#[test]
fn a_push_that_is_refused_is_a_failure_that_is_not_paid_twice() {
    let runner = with_agents(AGENT);
    let hook = runner.server().join("hooks/update");
    fs::create_dir_all(hook.parent().unwrap()).unwrap();
    let refuses = "#!/bin/sh\n[ \"$1\" != refs/heads/handoff/87 ] || [ -z \"$(echo \"$2\" | tr -d 0)\" ] || { echo 'refusing to allow a GitHub App to create or update workflow `.github/workflows/ci.yml` without `workflows` permission'; exit 1; }\n";
    script(&hook, refuses);
    let runs = run_on(&runner, dispatched(2, json!({ "issue": "87" })));
    let last = runs.last().unwrap();
    last.job("carry", "success")
        .says("::error title=handoff agent::the push to handoff/87 was refused: issue 87 says why");
    let paid = || fs::read_to_string(runner.env.root().join("roles")).unwrap();
    assert_eq!(paid(), "prep-agent\nimplementer-agent\n");
    let said = status(&runner);
    assert!(said.to_string().contains("PUSH_REFUSED"), "{said:#}");
    let comments = runner.kept("comments.json").to_string();
    assert!(
        comments.contains("without `workflows` permission"),
        "{comments}"
    );
    // Whoever starts it again is told; a person decides.
    let run = runner.run(
        "handoff-agent.yml",
        &dispatched(40, json!({ "issue": "87" })),
    );
    run.job("turn", "success").job("work", "skipped");
    assert_eq!(paid(), "prep-agent\nimplementer-agent\n");
    runner.env.assert_sound();
}

#[test]
fn a_label_on_a_new_issue_waits_for_no_intake() {
    let runner = desk();
    install(&runner, AGENT);
    let collaborators = json!([["maintainer", "write"]]).to_string();
    fs::write(
        runner.env.root().join("github/collaborators.json"),
        collaborators,
    )
    .unwrap();
    let mut event = labeled(1, "handoff", "maintainer");
    event.payload["issue"] = opened(87, 1).payload["issue"].clone();
    let run = runner.run("handoff-agent.yml", &event);
    run.job("work", "success").job("carry", "success");
    // The intake's run comes later, and finds it done.
    let run = runner.run("handoff-intake.yml", &opened(87, 2));
    run.job("record", "success");
    let said = status(&runner);
    assert_eq!(said["handoffs"].as_array().unwrap().len(), 2, "{said:#}");
    assert_eq!(said["handoffs"][0]["to"], "prep-agent");
}

#[test]
fn a_reopened_issue_goes_on_from_the_base_in_a_new_pull_request() {
    // What is done again is not the same.
    let agent = AGENT.replace("echo \"$2\" >\"$1\"", "echo \"$2 $RANDOM$RANDOM\" >\"$1\"");
    let runner = with_agents(&agent);
    let env = &runner.env;
    let server = runner.server();
    let first = run_on(&runner, dispatched(3, json!({ "issue": "87" })));
    assert_eq!(status(&runner)["issue"]["status"], "completed");
    // It was merged as one commit, and others work on.
    let git = |args: &[&str]| env.git(&server, args).trim().to_owned();
    let mut base = git(&["rev-parse", "main"]);
    let commit = |of: &str, parent: &str| {
        let tree = format!("{of}^{{tree}}");
        git(&["commit-tree", &tree, "-p", parent, "-m", "Others"])
    };
    let before = git(&["rev-parse", "main^1"]);
    base = commit(&base, &before);
    base = commit(&base, &base);
    git(&["update-ref", "refs/heads/main", &base]);
    let roles = env.root().join("roles");
    fs::write(&roles, "").unwrap();
    env.wait_minutes(5);
    let at = chrono::DateTime::from_timestamp(env.now(), 0).unwrap();
    let mut payload = opened(87, 1).payload;
    payload["action"] = json!("reopened");
    payload["issue"]["state_reason"] = json!("reopened");
    payload["issue"]["updated_at"] = json!(at.format("%Y-%m-%dT%H:%M:%SZ").to_string());
    let run = runner.run("handoff-intake.yml", &Event::new("issues", 50, payload));
    run.job("record", "success")
        .says("reopened issue 87")
        .says(" --as prep-agent");
    let said = status(&runner);
    assert_eq!(said["issue"]["status"], "open", "{said:#}");
    let dispatches = env.root().join("github/dispatches.json");
    fs::write(dispatches, "[]").unwrap();
    let runs = run_on(&runner, dispatched(51, json!({ "issue": "87" })));
    for run in &runs {
        run.job("turn", "success").job("carry", "success");
    }
    let again = fs::read_to_string(&roles).unwrap();
    assert!(
        again.starts_with("prep-agent\nimplementer-agent\n"),
        "{again}"
    );
    let said = status(&runner);
    assert_eq!(said["issue"]["status"], "completed", "{said:#}");
    // A new pull request, whose code goes on from what the base has by then.
    let pulls = runner.kept("pulls.json");
    let newest = pulls.as_array().unwrap().last().unwrap();
    assert_eq!(
        (&newest["number"], &newest["merged"]),
        (&json!(8), &json!(true))
    );
    let head = newest["head"]["sha"].as_str().unwrap();
    env.git(&server, &["merge-base", "--is-ancestor", &base, head]);
    let noted = said.to_string();
    assert!(noted.contains("/pull/8"), "{said:#}");
    assert!(first.len() > 5);
    env.assert_sound();
}
