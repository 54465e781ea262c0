//! Open issues that touch the same files.

use std::fs;

use test_support::TestEnvironment;

const PATH: &str = "src/rates.txt";

fn open(env: &TestEnvironment, issue: u32, asks: &str) {
    let url = format!("issue_url=https://github.com/octo/parcels/issues/{issue}");
    let asks = format!("requirements={asks}");
    let fields = [
        "issue_title=Rates",
        "type=feature",
        "priority=high",
        "summary=Rates",
        &url,
        &asks,
    ];
    let issue = issue.to_string();
    let mut args = vec![
        "send",
        "--issue",
        &issue,
        "--to",
        "prep-agent",
        "--as",
        "issue-manager",
    ];
    args.extend(fields.iter().flat_map(|field| ["--set", field]));
    env.handoff(&args).success();
}

#[cfg(feature = "agents")]
fn claim(env: &TestEnvironment, issue: u32) -> test_support::Ran {
    env.claim(&format!("{issue}.1"), "prep-agent").success()
}

fn commit(env: &TestEnvironment, text: &str) {
    fs::write(env.repo().join(PATH), text).unwrap();
    env.git(&env.repo(), &["add", PATH]);
    env.git(&env.repo(), &["commit", "-q", "-m", text]);
}

#[test]
fn an_agent_of_the_same_name_in_another_issue_is_told() {
    let env = TestEnvironment::with_ledger();
    fs::create_dir(env.repo().join("src")).unwrap();
    commit(&env, "rates");
    open(&env, 7, "In src/rates.txt");
    open(&env, 8, "In src/rates.txt");
    let run = |verb, id, worker| {
        let words = [verb, id, "--as", "prep-agent", "--worker", worker];
        env.handoff(&words).success()
    };
    run("claim", "7.1", "one");
    run("claim", "8.1", "two");
    let news = "from prep-agent: issue 8 begins, and touches the same files: ";
    run("extend", "7.1", "one").says(news);
    let own = run("extend", "8.1", "two");
    assert!(!own.shown.contains("new since"), "{}", own.shown);
    // Nobody is told what he said himself.
    let note = [
        "annotate",
        "7",
        "--as",
        "prep-agent",
        "--worker",
        "one",
        "--note",
        "half done",
    ];
    env.handoff(&note).success();
    let own = run("extend", "7.1", "one");
    assert!(!own.shown.contains("half done"), "{}", own.shown);
    env.assert_sound();
}

#[cfg(feature = "agents")]
#[test]
fn who_begins_an_issue_is_told_of_open_ones_that_touch_its_files() {
    let env = TestEnvironment::with_ledger();
    let repo = env.repo();
    fs::create_dir(repo.join("src")).unwrap();
    commit(&env, "rates");
    let untold =
        |ran: &test_support::Ran| assert!(!ran.shown.contains("claim.same_files"), "{}", ran.shown);

    // Named by its contract.
    open(&env, 7, "Round what src/rates.txt has.");
    untold(&claim(&env, 7));
    // Changed by its branch.
    open(&env, 8, "Sort the rates");
    untold(&claim(&env, 8));
    env.git(&repo, &["switch", "-q", "-c", "handoff/8"]);
    commit(&env, "sorted");
    env.git(&repo, &["switch", "-q", "main"]);
    let fields = [
        "branch=handoff/8",
        "workspace_type=in-place",
        "workspace_path=.",
        "validation.dependencies=none",
        "validation.build=clean",
        "validation.dev_server=n/a: a library",
    ];
    let mut prepared = vec![
        "send",
        "--issue",
        "8",
        "--to",
        "implementer-agent",
        "--as",
        "prep-agent",
    ];
    prepared.extend(fields.iter().flat_map(|field| ["--set", field]));
    env.handoff(&prepared).success();
    env.claim("8.2", "implementer-agent").success();

    open(&env, 9, "See `src/rates.txt:3` and src/absent.txt");
    let told = claim(&env, 9);
    let both =
        "the same files are touched by issue 7 (\"src/rates.txt\"), issue 8 (\"src/rates.txt\")";
    assert!(told.stderr.contains(both), "{}", told.shown);
    assert!(
        told.stderr.contains("git handoff set 9 after=ISSUE"),
        "{}",
        told.shown
    );
    // Whoever is at work in another issue is told, too.
    let news = "issue 9 begins, and touches the same files: ";
    env.handoff(&["prime", "--as", "implementer-agent"])
        .success()
        .says(news);
    env.handoff(&["extend", "8.2", "--as", "implementer-agent"])
        .success()
        .says(&format!(
            "8.2, new since you claimed it, from prep-agent: {news}"
        ));
    // What has ended touches nothing; another file neither.
    env.handoff(&[
        "cancel",
        "7",
        "--all",
        "--as",
        "orchestrator",
        "--reason",
        "no",
    ])
    .success();
    open(&env, 10, "In src/rates.txt");
    let told = claim(&env, 10).stderr;
    assert!(
        told.contains("issue 8") && told.contains("issue 9") && !told.contains("issue 7"),
        "{told}"
    );
    open(&env, 11, "In README.md");
    untold(&claim(&env, 11));
    env.assert_sound();
}
