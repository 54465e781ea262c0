//! Two clones that are offline for seventy steps each, partly about the same
//! issues, with clocks hours apart: nothing is lost, and nothing is there twice.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::Path;
use std::thread;

use crate::clones::Clones;
use serde_json::Value;
use test_support::Ran;
use test_support::contracts::{opening, prepared};
use test_support::remote::{assert_whole, hook, tip};

const STEPS: usize = 70;

/// A step that was made offline: its commit, and a text that it alone has, if it has one.
struct Step {
    commit: String,
    marker: Option<String>,
}

/// Runs the program in a clone, by a clock that is off.
fn run(team: &Clones, clone: &Path, hours: i64, args: &[&str], input: Option<&str>) -> Ran {
    let mut command = team.env.program(args);
    let now = team.env.now() + hours * 3600;
    for name in ["GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"] {
        command.env(name, format!("@{now} +0000"));
    }
    command.current_dir(clone);
    command.env("GIT_HANDOFF_WORKER", test_support::worker_of(clone));
    team.env.run(command, args, input.map(str::as_bytes))
}

/// Takes all steps about fourteen issues offline.
fn work(team: &Clones, clone: &Path, name: &str, hours: i64, first: u32) -> Vec<Step> {
    let mut steps = Vec::new();
    for issue in first..first + 14 {
        // Some contracts are the same in both clones, byte for byte.
        let same = (10..=12).contains(&issue);
        let sender = if same { "both" } else { name };
        let marker = |what: &str, by: &str| format!("{what}-{issue}-{by}z");
        let sent = marker("sent", sender);
        let contract = opening(issue).replace("Dispatchers ask", &sent);
        let onward = marker("sent-on", name);
        let relay = prepared(issue).replace("212 packages", &onward);
        let (one, two) = (format!("{issue}.1"), format!("{issue}.2"));
        let note = marker("did", name);
        let (over, more) = (marker("did-over", name), marker("did-more", name));
        let claimed = ["claim", &one, "--as", "prep-agent"];
        let noted = ["annotate", &one, "--as", "prep-agent", "--note", &note];
        let done = ["complete", &one, "--as", "prep-agent", "--reason", &over];
        let noted_more = ["annotate", &one, "--as", "prep-agent", "--note", &more];
        let claimed_too = ["claim", &two, "--as", "implementer-agent"];
        type Task<'a> = (&'a [&'a str], Option<&'a str>, Option<&'a str>);
        let mut all: Vec<Task<'_>> = vec![
            (&["send", "-"], Some(&contract), Some(&sent)),
            (&claimed, None, None),
            (&noted, None, Some(&note)),
        ];
        if name == "here" && (5..=7).contains(&issue) {
            // The way is free for the other's, under the next number.
            all.extend([
                (&done[..], None, Some(&over[..])),
                (&noted_more[..], None, Some(&more[..])),
            ]);
        } else {
            all.extend([
                (&["send", "-"][..], Some(&relay[..]), Some(&onward[..])),
                (&claimed_too[..], None, None),
            ]);
        }
        for (args, input, marker) in all {
            let args = [args, &["--offline", "--json"]].concat();
            let ran = run(team, clone, hours, &args, input).exits(8);
            let document = ran.json();
            assert_eq!(document["error"]["code"], "not_published");
            let commit = document["data"]["commit"].as_str().unwrap();
            steps.push(Step {
                commit: commit.to_owned(),
                marker: marker.map(str::to_owned),
            });
        }
    }
    assert_eq!(steps.len(), STEPS);
    steps
}

fn pushes(team: &Clones) -> usize {
    let noted = fs::read_to_string(team.bare.join("pushes"));
    noted.unwrap_or_default().lines().count()
}

#[test]
fn seventy_steps_each_come_together() {
    let team = Clones::new();
    team.env
        .handoff_in(&team.bare, &["hooks", "install", "--server"])
        .success();
    hook(&team.bare, "post-receive", "echo one >> pushes");
    let (here, there) = (team.env.repo(), team.other.clone());
    team.env.pace(10);
    let (mine, theirs) = thread::scope(|scope| {
        let mine = scope.spawn(|| work(&team, &here, "here", -5, 1));
        let theirs = scope.spawn(|| work(&team, &there, "there", 6, 5));
        (mine.join().unwrap(), theirs.join().unwrap())
    });
    assert_eq!(pushes(&team), 0);

    // Nobody was first: these go as they are.
    let sync = ["sync", "--json", "--timeout", "5m"];
    let data = run(&team, &here, -5, &sync, None).success().json()["data"].take();
    assert_eq!(data["sent"], STEPS);
    assert_eq!((data["made_again"].clone(), pushes(&team)), (0.into(), 1));
    let published = tip(&team.env, &team.bare);

    // These are made again where that is legal, and go in one push.
    let data = run(&team, &there, 6, &sync, None).exits(5).json()["data"].take();
    assert_eq!(pushes(&team), 2);
    assert_eq!(data["brought"], STEPS);
    let list = |data: &Value, name: &str| data[name].as_array().unwrap().clone();
    let (renamed, refused) = (list(&data, "renamed"), list(&data, "rejected"));
    assert!(!renamed.is_empty() && !refused.is_empty(), "{data:#}");
    run(&team, &here, -5, &sync, None).success();
    let data = run(&team, &there, 6, &sync, None).success().json()["data"].take();
    assert_eq!((&data["sent"], &data["brought"]), (&0.into(), &0.into()));
    assert_eq!(pushes(&team), 2);

    let now = tip(&team.env, &team.bare);
    for clone in [&here, &there] {
        assert_eq!(tip(&team.env, clone), now);
        run(&team, clone, 0, &["verify"], None).success();
        assert_whole(&team.env, clone);
    }
    assert_whole(&team.env, &team.bare);
    let above = format!("{published}..{now}");
    let log = |range: &str, format: &str| {
        let args = ["log", "--first-parent", format, range];
        team.env.git(&team.bare, &args)
    };
    let was = log(&published, "--format=%H");
    for step in &mine {
        assert!(
            was.lines().any(|id| id == step.commit),
            "lost: {}",
            step.commit
        );
    }

    // Each of the others was made again once, or is kept with a reason, or is the
    // very contract that was there.
    let mut again: HashMap<String, usize> = HashMap::new();
    let trailer = |key: &str| format!("%(trailers:key={key},valueonly,separator=)");
    let format = format!(
        "--format={} {}",
        trailer("Synced-From"),
        trailer("Transition")
    );
    for line in log(&above, &format).lines() {
        let (origin, change) = line.split_once(' ').unwrap();
        if origin.is_empty() {
            // By the clock that is ahead, a lease ran out before a step.
            assert!(change.ends_with(" in_progress..failed"), "{line}");
            continue;
        }
        *again.entry(origin.to_owned()).or_default() += 1;
    }
    let ran = run(&team, &there, 6, &["refused", "--json"], None).success();
    let mut kept: BTreeMap<String, Value> = BTreeMap::new();
    for rejected in list(&ran.json()["data"], "rejected") {
        assert_ne!(rejected["reason"], "", "{rejected:#}");
        let commit = rejected["commit"].as_str().unwrap().to_owned();
        assert!(kept.insert(commit, rejected).is_none());
    }
    assert_eq!(kept.len(), refused.len());
    let mut same = 0;
    for step in &theirs {
        let made = again.remove(&step.commit).unwrap_or(0);
        let is_kept = kept.contains_key(&step.commit);
        let is_same = step
            .marker
            .as_ref()
            .is_some_and(|text| text.contains("both"));
        same += usize::from(is_same);
        let times = made + usize::from(is_kept) + usize::from(is_same);
        assert_eq!(times, 1, "{} {:?}", step.commit, step.marker);
    }
    assert!(again.is_empty(), "nobody made these: {again:?}");
    assert_eq!(same, 3);

    // And each text is there as often as it should be.
    let args = [
        "grep",
        "-h",
        "-o",
        "-E",
        "sent(-on)?-[0-9]+-[a-z]+z",
        "handoffs",
        "--",
    ];
    let args = [&args[..], &["issues/*.xml"]].concat();
    let contracts = team.env.git(&team.bare, &args);
    let messages = log("handoffs", "--format=%(trailers:key=Reason,valueonly)");
    let all = contracts
        .lines()
        .chain(messages.lines().filter(|line| line.starts_with("did-")));
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for marker in all {
        *counts.entry(marker).or_default() += 1;
    }
    for step in mine.iter().chain(&theirs) {
        if let Some(marker) = &step.marker {
            let count = counts.get(&marker[..]).copied().unwrap_or(0);
            let wanted = usize::from(!kept.contains_key(&step.commit));
            assert_eq!(count, wanted, "{marker}");
        }
    }
    // What only one of them worked on is there in full.
    let touches_shared = |kept: &Value| {
        let id = kept["id"].as_str().unwrap();
        let issue: u32 = id.split('.').next().unwrap().parse().unwrap();
        (5..=14).contains(&issue)
    };
    assert!(kept.values().all(touches_shared), "{kept:#?}");
}
