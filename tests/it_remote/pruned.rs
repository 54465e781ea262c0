//! Writers beside collections that remove at once what no ref leads to, which steps are that wait
//! for their push.

use std::path::Path;
use std::thread;

use test_support::TestEnvironment;
use test_support::contracts::opening;
use test_support::remote::assert_whole;

use crate::clones::Clones;

#[test]
fn a_step_that_waits_for_its_push_survives_collections() {
    const WRITERS: u32 = 2;
    const STEPS: u32 = 15;
    let team = Clones::new();
    let env = &team.env;
    env.git(&env.repo(), &["config", "gc.auto", "0"]);
    env.pace(0);
    let write = |writer: u32| {
        for step in 0..STEPS {
            let ran = env.send(opening(1 + writer * STEPS + step));
            // A git that pushes while another one replaces its commit-graph or its packs may give up,
            // in many words; the step is kept then, and the sync below brings it.
            assert!([0, 8].contains(&ran.status), "{}", ran.shown);
        }
    };
    let times = thread::scope(|scope| {
        let write = &write;
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| scope.spawn(move || write(writer)))
            .collect();
        let mut times = 0;
        while writers.iter().any(|writer| !writer.is_finished()) {
            env.git_any(&env.repo(), &["gc", "--quiet", "--prune=now"]);
            times += 1;
        }
        times
    });
    assert!(times > 1, "{times} collections");
    env.handoff(&["sync"]).success();
    for repository in [&env.repo(), &team.bare] {
        assert_whole(env, repository);
        assert_eq!(issues(env, repository), WRITERS * STEPS);
    }
    env.handoff(&["verify"]).success();
}

/// How many issues a repository's ledger has.
fn issues(env: &TestEnvironment, repository: &Path) -> u32 {
    let listed = env.git(
        repository,
        &["ls-tree", "-r", "--name-only", "handoffs", "open/"],
    );
    u32::try_from(listed.lines().count()).unwrap()
}
