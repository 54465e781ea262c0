//! One value changed in one contract of a legal flow is found, unless free_places.md says that the
//! place may say anything; and `check` and `send` find the same.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;

use handoff::contract::{Schema, write_message};
use serde_json::{Map, Value, json};
use test_support::TestEnvironment;
use test_support::contracts::{value, with};
use test_support::exchange::{decision, handoff};
use test_support::files::copy;
use test_support::proof::times;
use test_support::team::with_protocol;

use crate::rules::{Rules, root};

/// How many flows of each protocol are tried.
const FLOWS: u64 = 2;

/// One in how many mutants that `check` finds a fault in is sent too, and must be refused; in the long
/// form, one in 25.
const SENT: u64 = 100;

/// Numbers that look random and are the same in every run (splitmix64).
pub(crate) struct Chance(pub(crate) u64);

impl Chance {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.next() % (most - least + 1)
    }

    fn is(&mut self) -> bool {
        self.next().is_multiple_of(2)
    }

    fn of<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words[usize::try_from(self.next() % words.len() as u64).unwrap()]
    }

    fn texts(&mut self, least: u64, most: u64, about: &str) -> Vec<String> {
        let count = self.between(least, most);
        (1..=count).map(|n| format!("{about}, part {n}")).collect()
    }
}

/// A place that may say anything: a row of the table in free_places.md.
struct Free {
    protocol: String,
    /// The contract types; all if it is empty.
    kinds: Vec<String>,
    place: String,
}

impl Free {
    /// The rows about a protocol.
    fn of(protocol: &str) -> Vec<Self> {
        let section = fs::read_to_string(root().join("tests/it_protocol/free_places.md")).unwrap();
        let names = |cell: &str| -> Vec<String> {
            let names = cell.split('`').skip(1).step_by(2);
            names.map(str::to_owned).collect()
        };
        let rows = section.lines().filter(|line| line.starts_with("| `"));
        let mut free = Vec::new();
        for row in rows {
            let cells: Vec<&str> = row.trim_matches('|').split(" | ").collect();
            let [of, kinds, places, reason] = cells[..] else {
                panic!("not four cells: {row}");
            };
            assert!(!reason.trim().is_empty(), "no reason: {row}");
            for place in names(places) {
                free.push(Self {
                    protocol: names(of).remove(0),
                    kinds: names(kinds),
                    place,
                });
            }
        }
        assert!(!free.is_empty());
        free.retain(|row| row.protocol == protocol);
        free
    }

    /// Whether a place is this one, or in it.
    fn covers(&self, kind: &str, pointer: &str) -> bool {
        let is_of = self.kinds.is_empty() || self.kinds.iter().any(|known| known == kind);
        let mut parts = pointer.split('/');
        is_of
            && self
                .place
                .split('/')
                .all(|own| parts.next().is_some_and(|part| own == "*" || own == part))
    }
}

/// A contract in which one value is another.
pub(crate) struct Mutant {
    pub(crate) pointer: String,
    what: String,
    pub(crate) value: Value,
}

/// Every contract that differs in one value. A text becomes other words of the same list, another
/// number in it, another text.
pub(crate) fn mutants(contract: &Value, words: &[Vec<String>]) -> Vec<Mutant> {
    let mut found = Vec::new();
    walk(contract, "", &mut |pointer, value| {
        let mut add = |what: String, value: Value| {
            let mut changed = contract.clone();
            *changed.pointer_mut(pointer).unwrap() = value;
            found.push(Mutant {
                pointer: pointer.to_owned(),
                what,
                value: changed,
            });
        };
        match value {
            Value::Number(number) => {
                for by in [1, -1] {
                    let other = match number.as_i64() {
                        Some(whole) => json!(whole + by),
                        #[allow(clippy::cast_precision_loss)]
                        None => json!(number.as_f64().unwrap() + by as f64),
                    };
                    add(format!("{number} → {other}"), other);
                }
            }
            Value::Bool(is) => add(format!("{is} → {}", !is), json!(!is)),
            Value::String(text) => {
                for other in other_texts(text, words) {
                    add(format!("{text:?} → {other:?}"), json!(other));
                }
            }
            Value::Array(items) => {
                let mut last: Vec<Value> = items.clone();
                if last.pop().is_some() {
                    add("last item removed".to_owned(), json!(last));
                    let mut twice = items.clone();
                    twice.push(items[0].clone());
                    add("first item twice".to_owned(), json!(twice));
                }
                if items.len() > 1 {
                    add("first item removed".to_owned(), json!(items[1..]));
                }
            }
            Value::Object(_) | Value::Null => {}
        }
    });
    walk(contract, "", &mut |pointer, value| {
        for key in value.as_object().into_iter().flat_map(Map::keys) {
            let mut changed = contract.clone();
            let members = changed.pointer_mut(pointer).unwrap();
            let members = members.as_object_mut().unwrap();
            let renamed = format!("{key}_0");
            let old = std::mem::take(members);
            members.extend(old.into_iter().map(|(name, value)| {
                let is_it = name == *key;
                (if is_it { renamed.clone() } else { name }, value)
            }));
            let escaped = key.replace('~', "~0").replace('/', "~1");
            found.push(Mutant {
                pointer: format!("{pointer}/{escaped}"),
                what: format!("called {renamed}"),
                value: changed,
            });
        }
    });
    found
}

pub(crate) fn walk(value: &Value, pointer: &str, visit: &mut impl FnMut(&str, &Value)) {
    visit(pointer, value);
    match value {
        Value::Object(members) => {
            for (key, member) in members {
                let key = key.replace('~', "~0").replace('/', "~1");
                walk(member, &format!("{pointer}/{key}"), visit);
            }
        }
        Value::Array(items) => {
            for (i, item) in items.iter().enumerate() {
                walk(item, &format!("{pointer}/{i}"), visit);
            }
        }
        _ => {}
    }
}

fn other_texts(text: &str, words: &[Vec<String>]) -> BTreeSet<String> {
    let mut texts = BTreeSet::from([format!("{text}x"), "another text".to_owned()]);
    for list in words.iter().filter(|list| list.iter().any(|w| w == text)) {
        texts.extend(list.iter().filter(|word| *word != text).take(4).cloned());
    }
    let end = text.rfind(|c: char| c.is_ascii_digit()).map(|at| at + 1);
    if let Some(end) = end {
        let before = &text[..end];
        let start = before.rfind(|c: char| !c.is_ascii_digit());
        let start = start.map_or(0, |at| at + before[at..].chars().next().unwrap().len_utf8());
        let width = end - start;
        if let Ok(number) = text[start..end].parse::<u64>() {
            for other in [number + 1, number.wrapping_sub(1)] {
                if other < u64::MAX / 2 {
                    texts.insert(format!("{}{other:0width$}{}", &text[..start], &text[end..]));
                }
            }
        }
    }
    if let Some((scheme, path)) = text.split_once("://") {
        let parts: Vec<&str> = path.split('/').collect();
        if let [host, owner, name, rest @ ..] = &parts[..] {
            let rest = rest.join("/");
            texts.insert(format!("{scheme}://{host}/{owner}/{name}-2/{rest}"));
            texts.insert(format!("{scheme}://{host}/{owner}-2/{name}/{rest}"));
        }
    }
    texts
}

/// The lists of words that the schemas of a protocol allow, and its agents.
pub(crate) fn vocabulary(rules: &Rules) -> Vec<Vec<String>> {
    fn collect(value: &Value, lists: &mut Vec<Vec<String>>) {
        match value {
            Value::Object(members) => {
                for (key, member) in members {
                    if key == "enum" {
                        let words = member.as_array().into_iter().flatten();
                        lists.push(
                            words
                                .filter_map(|w| w.as_str().map(str::to_owned))
                                .collect(),
                        );
                    }
                    collect(member, lists);
                }
            }
            Value::Array(items) => items.iter().for_each(|item| collect(item, lists)),
            _ => {}
        }
    }
    let definition = rules.protocol.definition();
    let agents = definition.agents.iter().map(|agent| agent.id.to_string());
    let mut lists = vec![
        agents.collect(),
        definition.words.status.keys().cloned().collect(),
    ];
    for kind in &definition.contracts {
        collect(&rules.schema(&kind.name), &mut lists);
    }
    lists
}

/// How many mutants of a contract type were tried, and what became of them.
#[derive(Default)]
struct Tally {
    mutants: usize,
    found: usize,
    free: usize,
}

/// A flow of contracts, each of which is mutated before it is sent.
struct Flow {
    env: TestEnvironment,
    rules: Rules,
    words: Vec<Vec<String>>,
    free: Vec<Free>,
    used: BTreeSet<usize>,
    chance: Chance,
    /// Which of the flows this is.
    seed: u64,
    /// How many seconds pass with each command, but for those that try mutants.
    pace: i64,
    tallies: BTreeMap<String, Tally>,
    /// What nothing found.
    missed: BTreeMap<String, BTreeSet<String>>,
    /// The codes with which `send` alone refused.
    refusals: BTreeMap<String, usize>,
}

impl Flow {
    /// Tries flows of a protocol, each in a ledger of its own.
    fn try_all(protocol: &'static str, pace: i64, go: impl Fn(&mut Self)) {
        let rules = Rules::of(protocol);
        let words = vocabulary(&rules);
        let mut flow = Self {
            env: with_protocol(protocol),
            words,
            free: Free::of(protocol),
            rules,
            used: BTreeSet::new(),
            chance: Chance(0),
            seed: 0,
            pace,
            tallies: BTreeMap::new(),
            missed: BTreeMap::new(),
            refusals: BTreeMap::new(),
        };
        for seed in 1..=FLOWS {
            flow.env = with_protocol(protocol);
            flow.env.pace(pace);
            (flow.seed, flow.chance) = (seed, Chance(seed));
            go(&mut flow);
            flow.env.assert_sound();
        }
        flow.report();
    }

    /// Prints the counts, and fails if a mutant was missed or a row of the table is not needed.
    #[allow(clippy::print_stdout, reason = "the counts are the test's result")]
    fn report(&self) {
        let mut text = format!("{}:", self.rules.name);
        let mut sum = Tally::default();
        for (kind, tally) in &self.tallies {
            let Tally {
                mutants,
                found,
                free,
            } = tally;
            write!(
                text,
                "\n  {kind}: {mutants} mutants, {found} found, {free} free"
            )
            .unwrap();
            sum.mutants += mutants;
            sum.found += found;
            sum.free += free;
        }
        println!(
            "{text}\n  in all: {} mutants, {} found, {} free; refused by send alone: {:?}",
            sum.mutants, sum.found, sum.free, self.refusals
        );
        let missed: Vec<String> = self
            .missed
            .iter()
            .map(|(m, n)| format!("{m}: {n:?}"))
            .collect();
        assert!(
            missed.is_empty(),
            "nothing finds these:\n{}",
            missed.join("\n")
        );
        let rows = self.free.iter().enumerate();
        let unused: Vec<String> = rows
            .filter(|(i, _)| !self.used.contains(i))
            .map(|(_, row)| format!("{:?} {}", row.kinds, row.place))
            .collect();
        assert!(
            unused.is_empty(),
            "free_places.md declares free what is found:\n{}",
            unused.join("\n")
        );
        assert!(sum.mutants > 300 && sum.found * 2 > sum.mutants, "too few");
    }

    /// The contract's bytes, and how its file's name ends.
    fn bytes(&self, kind: &str, contract: &Value) -> (String, &'static str) {
        let formats = &self.rules.protocol.contract_type(kind).unwrap().formats;
        if formats[..] == ["md".to_owned()] {
            let schema = Schema::compile(&self.rules.schema(kind)).unwrap();
            (write_message(contract, schema.shape()), "md")
        } else {
            (contract.to_string(), "json")
        }
    }

    /// What `check` finds in each of these contracts: errors, and contradictions.
    fn checked(&self, agent: &str, kind: &str, contracts: &[&Value], more: &[&str]) -> Vec<usize> {
        let name = |n: usize, ending: &str| format!("mutant-{n}.{ending}");
        let mut files = Vec::new();
        for (n, contract) in contracts.iter().enumerate() {
            let (bytes, ending) = self.bytes(kind, contract);
            files.push(self.env.file(&name(n, ending), bytes));
        }
        let mut args = vec!["check", "--json", "--as", agent];
        args.extend(more);
        args.extend(files.iter().map(String::as_str));
        let document = self.env.handoff(&args).json();
        let found = match &document["error"]["findings"] {
            Value::Array(found) => found,
            _ => document["data"]["findings"].as_array().unwrap(),
        };
        let mut counts = vec![0; contracts.len()];
        for finding in found.iter().filter(|finding| is_found(finding)) {
            let file = finding["file"].as_str().unwrap();
            counts[files.iter().position(|name| name == file).unwrap()] += 1;
        }
        counts
    }

    /// Sends a contract as it is, after mutants of it were tried.
    #[track_caller]
    fn hand(&mut self, kind: &str, agent: &str, contract: &Value, more: &[&str]) -> Value {
        self.env.wait(self.pace);
        self.env.pace(0);
        let mutants = mutants(contract, &self.words);
        let mut all: Vec<&Value> = vec![contract];
        all.extend(mutants.iter().map(|mutant| &mutant.value));
        let counts = self.checked(agent, kind, &all, more);
        assert_eq!(counts[0], 0, "{kind} is legal: {contract}");
        // What a mutant's step does is tried in a copy.
        let trial = self.env.root().join("trial");
        if trial.exists() {
            fs::remove_dir_all(&trial).unwrap();
        }
        copy(&self.env.repo(), &trial);
        for (mutant, count) in mutants.iter().zip(&counts[1..]) {
            let is_free = self.row(kind, mutant).is_some();
            let is_sent = if *count > 0 {
                self.chance.next().is_multiple_of(SENT / u64::from(times()))
            } else {
                !is_free
            };
            let is_refused = is_sent && self.is_refused(agent, kind, &mutant.value, more);
            if is_sent && *count > 0 {
                let Mutant { pointer, what, .. } = mutant;
                assert!(is_refused, "only `check` finds {kind} {pointer}: {what}");
            }
            self.tally(kind, mutant, *count > 0 || is_refused);
        }
        let (bytes, _) = self.bytes(kind, contract);
        let args = [&["send", "-", "--json", "--as", agent][..], more].concat();
        let answer = self.env.handoff_with(&args, bytes).success().json();
        assert!(
            !answer.to_string().contains("contract.inconsistent"),
            "{answer:#}"
        );
        self.env.pace(self.pace);
        answer["data"].clone()
    }

    /// Whether `send` refuses a contract, or warns.
    fn is_refused(&mut self, agent: &str, kind: &str, contract: &Value, more: &[&str]) -> bool {
        let trial = self.env.root().join("trial");
        let tip = self.env.tip();
        self.env
            .git(&trial, &["update-ref", "refs/heads/handoffs", &tip]);
        let (bytes, _) = self.bytes(kind, contract);
        let args = [&["send", "-", "--json", "--as", agent][..], more].concat();
        let mut command = self.env.program(&args);
        command.current_dir(&trial);
        let answer = self.env.run(command, &args, Some(bytes.as_bytes())).json();
        if let Some(code) = answer["error"]["code"].as_str() {
            *self.refusals.entry(code.to_owned()).or_default() += 1;
            return true;
        }
        answer["data"]["repeated"] == true || answer.to_string().contains("contract.inconsistent")
    }

    /// The row that declares a mutant's place free.
    fn row(&self, kind: &str, mutant: &Mutant) -> Option<usize> {
        self.free
            .iter()
            .position(|row| row.covers(kind, &mutant.pointer))
    }

    fn tally(&mut self, kind: &str, mutant: &Mutant, is_found: bool) {
        let tally = self.tallies.entry(kind.to_owned()).or_default();
        tally.mutants += 1;
        if is_found {
            tally.found += 1;
            return;
        }
        let row = self
            .free
            .iter()
            .position(|row| row.covers(kind, &mutant.pointer));
        if let Some(row) = row {
            tally.free += 1;
            self.used.insert(row);
        } else {
            let parts = mutant
                .pointer
                .split('/')
                .map(|part| match part.parse::<usize>() {
                    Ok(_) => "*",
                    Err(_) => part,
                });
            let place = parts.collect::<Vec<_>>().join("/");
            let missed = self.missed.entry(format!("{kind} {place}")).or_default();
            missed.insert(mutant.what.clone());
        }
    }

    fn claim(&self, id: &str, agent: &str) {
        self.env.claim(id, agent).success();
    }
}

/// Whether a finding of `check` is one that a change has to bring about.
fn is_found(finding: &Value) -> bool {
    finding["severity"] == "error" || finding["code"] == "contract.inconsistent"
}

#[test]
fn issue_to_pr() {
    Flow::try_all("issue-to-pr", 60, |flow| {
        let work = Work::new(&mut flow.chance);
        let issue = work.issue.to_string();
        flow.hand(
            &kind("issue-manager", "prep-agent"),
            "issue-manager",
            &work.opening,
            &[],
        );
        let opened_at = flow.env.now();
        flow.claim(&issue, "prep-agent");
        flow.hand(
            &kind("prep-agent", "implementer-agent"),
            "prep-agent",
            &work.prepared,
            &[],
        );
        flow.claim(&issue, "implementer-agent");
        if flow.seed % 2 == 0 {
            let error = work.of(
                "error",
                &[
                    ("/from", json!("implementer-agent")),
                    ("/status", json!("failure")),
                    ("/error/recoverable", json!(true)),
                ],
            );
            flow.hand("error", "implementer-agent", &error, &[]);
            run(flow, "retry", &format!("{issue}.2"), "orchestrator");
            flow.claim(&format!("{issue}.2"), "implementer-agent");
        }
        let mut commits = flow.chance.between(1, 4);
        let tests = flow.chance.between(0, 40);
        let implemented = work.implemented(commits, tests, flow.chance.between(1, 90));
        flow.hand(
            &kind("implementer-agent", "reviewer-agent"),
            "implementer-agent",
            &implemented,
            &[],
        );
        let mut reviews = 0;
        for _ in 0..flow.chance.between(0, 2) {
            flow.claim(&issue, "reviewer-agent");
            let review = work.review(&mut flow.chance);
            flow.hand(
                &kind("reviewer-agent", "fixer-agent"),
                "reviewer-agent",
                &review,
                &[],
            );
            reviews += 1;
            flow.claim(&issue, "fixer-agent");
            commits += 1 + reviews;
            let fixed = work.fixed(&review["blocking_issues"], 1 + reviews);
            flow.hand(
                &kind("fixer-agent", "reviewer-agent"),
                "fixer-agent",
                &fixed,
                &[],
            );
        }
        flow.claim(&issue, "reviewer-agent");
        let approval = work.of("reviewer-agent-to-validator-agent", &[]);
        flow.hand(
            &kind("reviewer-agent", "validator-agent"),
            "reviewer-agent",
            &approval,
            &[],
        );
        reviews += 1;
        flow.claim(&issue, "validator-agent");
        if flow.seed % 2 == 1 {
            let failed = work.of("validator-agent-to-fixer-agent", &[]);
            flow.hand(
                &kind("validator-agent", "fixer-agent"),
                "validator-agent",
                &failed,
                &[],
            );
            flow.claim(&issue, "fixer-agent");
            commits += 7;
            let fixed = work.fixed(&failed["failures"], 7);
            flow.hand(
                &kind("fixer-agent", "reviewer-agent"),
                "fixer-agent",
                &fixed,
                &[],
            );
            flow.claim(&issue, "reviewer-agent");
            let again = with(
                approval,
                &[("/summary", json!("What validation found is fixed"))],
            );
            flow.hand(
                &kind("reviewer-agent", "validator-agent"),
                "reviewer-agent",
                &again,
                &[],
            );
            reviews += 1;
            flow.claim(&issue, "validator-agent");
        }
        let coverage = json!(format!("{}.5%", flow.chance.between(50, 99)));
        let merged = work.of(
            "validator-agent-to-closer-agent",
            &[
                ("/validation_summary/coverage", coverage.clone()),
                ("/merge_sha", json!(format!("{:040x}", flow.chance.next()))),
            ],
        );
        flow.hand(
            &kind("validator-agent", "closer-agent"),
            "validator-agent",
            &merged,
            &[],
        );
        flow.claim(&issue, "closer-agent");
        let minutes = (flow.env.now() + flow.pace - opened_at) / 60;
        let complete = work.of(
            "workflow-complete",
            &[
                ("/cycle_time", json!(format!("{minutes} minutes"))),
                ("/metrics/review_iterations", json!(reviews)),
                ("/metrics/total_commits", json!(commits)),
                ("/metrics/tests_added", json!(tests)),
                ("/metrics/coverage", coverage),
            ],
        );
        flow.hand("workflow-complete", "closer-agent", &complete, &[]);
    });
}

fn kind(from: &str, to: &str) -> String {
    format!("{from}-to-{to}")
}

fn run(flow: &Flow, verb: &str, id: &str, agent: &str) {
    flow.env
        .handoff(&[verb, id, "--as", agent, "--reason", "it can go on"])
        .success();
}

/// An issue of the protocol issue-to-pr, with its first contracts.
struct Work {
    issue: u64,
    pull_request: u64,
    repository: String,
    branch: String,
    opening: Value,
    prepared: Value,
    /// Whether its contracts name the address and the branch where they may.
    says_more: bool,
}

impl Work {
    fn new(chance: &mut Chance) -> Self {
        let issue = chance.between(10, 4000);
        let owner = chance.of(&["quayside", "harbour-office", "mole"]);
        let name = chance.of(&["parcel-desk", "tide.tables", "lamp"]);
        let what = chance.of(&["feature", "bug", "enhancement", "refactor", "chore"]);
        let mut work = Self {
            issue,
            pull_request: issue + chance.between(1, 50),
            repository: format!("https://github.com/{owner}/{name}"),
            branch: format!(
                "{what}/{issue}-{}",
                chance.of(&["export", "lights", "faster-start"])
            ),
            opening: Value::Null,
            prepared: Value::Null,
            says_more: chance.is(),
        };
        let title = chance.of(&["Export the history", "Lights by the hour"]);
        work.opening = work.of(
            "issue-manager-to-prep-agent",
            &[
                ("/issue_title", json!(title)),
                ("/type", json!(what)),
                (
                    "/priority",
                    json!(chance.of(&["critical", "high", "medium", "low"])),
                ),
                (
                    "/requirements",
                    json!(chance.texts(1, 4, "What it must do")),
                ),
            ],
        );
        let port = chance.between(3000, 9000);
        work.prepared = work.of(
            "prep-agent-to-implementer-agent",
            &[
                ("/workspace_path", json!(format!("/srv/{name}-{issue}"))),
                (
                    "/workspace_type",
                    json!(chance.of(&["worktree", "in-place", "cloud"])),
                ),
                ("/port", json!(port)),
                (
                    "/validation/dev_server",
                    json!(format!("answers on port {port}")),
                ),
            ],
        );
        work
    }

    /// A sample about this issue.
    fn of(&self, name: &str, members: &[(&str, Value)]) -> Value {
        let issue_url = format!("{}/issues/{}", self.repository, self.issue);
        let pr_url = format!("{}/pull/{}", self.repository, self.pull_request);
        let mut contract = value("issue-to-pr", name, &[("/issue_number", json!(self.issue))]);
        for (key, known) in [
            ("issue_url", json!(issue_url)),
            ("pr_url", json!(pr_url)),
            ("pr_number", json!(self.pull_request)),
            ("branch", json!(self.branch)),
        ] {
            let may = self.says_more
                && (key == "issue_url" || key == "branch")
                && name != "issue-manager-to-prep-agent";
            if contract.get(key).is_some() || may {
                contract[key] = known;
            }
        }
        with(contract, members)
    }

    fn implemented(&self, commits: u64, tests: u64, files: u64) -> Value {
        let commits: Vec<Value> = (1..=commits)
            .map(|n| json!({"sha": format!("{:012x}", n * 0xb27_d5aa_3077), "message": format!("Part {n}")}))
            .collect();
        self.of(
            "implementer-agent-to-reviewer-agent",
            &[
                ("/commits", json!(commits)),
                ("/tests_added", json!(tests)),
                ("/files_changed", json!(files)),
            ],
        )
    }

    fn review(&self, chance: &mut Chance) -> Value {
        let (critical, important) = (chance.between(0, 2), chance.between(1, 2));
        let severities = (0..critical)
            .map(|_| "critical")
            .chain((0..important).map(|_| "important"));
        let findings: Vec<Value> = severities
            .enumerate()
            .map(|(n, severity)| json!({"location": format!("src/part.rs:{}", 10 * n + 3), "severity": severity, "description": format!("Part {n} is wrong")}))
            .collect();
        self.of(
            "reviewer-agent-to-fixer-agent",
            &[
                ("/critical_count", json!(critical)),
                ("/important_count", json!(important)),
                ("/suggestion_count", json!(chance.between(0, 5))),
                ("/blocking_issues", json!(findings)),
            ],
        )
    }

    fn fixed(&self, findings: &Value, commits: u64) -> Value {
        let fixes = findings.as_array().unwrap().iter().map(|finding| {
            let location = finding
                .get("location")
                .cloned()
                .unwrap_or_else(|| json!("tests/part.rs"));
            json!({"location": location, "description": "It is right now"})
        });
        self.of(
            "fixer-agent-to-reviewer-agent",
            &[
                ("/fixes_applied", json!(fixes.collect::<Vec<_>>())),
                ("/commits_added", json!(commits)),
            ],
        )
    }
}

#[test]
fn directive() {
    Flow::try_all("directive", 60, |flow| {
        let key = format!("weir-{}", flow.chance.between(1, 99));
        let session = ("/session_id", json!(key));
        let done = |id: &str, from: &str, to: &str, status: &str, next: &str| {
            with(
                handoff(id, from, to, status),
                &[session.clone(), ("/recommended_next_agent", json!(next))],
            )
        };
        let number = std::cell::Cell::new(0);
        let claim = |flow: &Flow, agent: &str| {
            number.set(number.get() + 1);
            flow.claim(&format!("{key}.{}", number.get()), agent);
        };
        let (first, second) = if flow.chance.is() {
            ("ResearchGPT", "DesignGPT")
        } else {
            ("DesignGPT", "ResearchGPT")
        };
        flow.hand(
            "handoff",
            first,
            &done("one", first, second, "success", second),
            &[],
        );
        claim(flow, "MetaGPT");
        flow.hand(
            "evaluation",
            "MetaGPT",
            &decision("one", second, "advance"),
            &[],
        );
        claim(flow, second);
        for round in 0..flow.chance.between(0, 1) {
            let id = format!("two-{round}");
            flow.hand(
                "handoff",
                second,
                &done(&id, second, "METAGPT", "blocked", "USER"),
                &[],
            );
            claim(flow, "MetaGPT");
            flow.hand("evaluation", "MetaGPT", &decision(&id, "USER", "ask"), &[]);
            claim(flow, "USER");
            let given = json!([{"required": "How many lanes?", "answer": "Three"}]);
            let members = [("/handoff_id", json!(id)), ("/answers", given)];
            let answer = value("directive", "user-input", &members);
            flow.hand("user-input", "USER", &answer, &[]);
            claim(flow, "MetaGPT");
            flow.hand(
                "evaluation",
                "MetaGPT",
                &decision(&id, second, "advance"),
                &[],
            );
            claim(flow, second);
        }
        for round in 0..flow.chance.between(0, 2) {
            let id = format!("three-{round}");
            flow.hand(
                "handoff",
                second,
                &done(&id, second, "ImplementationGPT", "failed", second),
                &[],
            );
            claim(flow, "MetaGPT");
            flow.hand(
                "evaluation",
                "MetaGPT",
                &decision(&id, second, "retry"),
                &[],
            );
            claim(flow, second);
        }
        let last = with(
            done("last", second, "METAGPT", "success", "workflow-end"),
            &[
                (
                    "/assumptions",
                    json!([{"assumption": "The plan is current", "validated": true, "risk": "low"}]),
                ),
                (
                    "/missing_inputs",
                    json!([{"required": "The date", "reason": "Only for the title", "blocking": false}]),
                ),
            ],
        );
        flow.hand("handoff", second, &last, &[]);
        claim(flow, "MetaGPT");
        flow.hand(
            "evaluation",
            "MetaGPT",
            &decision("last", "workflow-end", "advance"),
            &[],
        );
    });
}

#[test]
fn orchestrator_specialist() {
    const NAME: &str = "orchestrator-specialist";
    Flow::try_all(NAME, 5, |flow| {
        for work in 1..=flow.chance.between(1, 2) {
            let id = format!("desk-{work}-{}", flow.chance.between(1, 999));
            let of = |name: &str| value(NAME, name, &[("/handoff_id", json!(id))]);
            let request = of(flow.chance.of(&["request", "request-database"]));
            let (source, target) = (
                &request["source"]["agent_id"],
                &request["target"]["agent_id"],
            );
            let (asks, makes) = (
                source.as_str().unwrap().to_owned(),
                target.as_str().unwrap().to_owned(),
            );
            let number = flow.chance.between(1, 3);
            let request = with(
                request.clone(),
                &[
                    ("/retry_policy/max_retries", json!(number)),
                    ("/retry_policy/retry_delay_seconds", json!(0)),
                ],
            );
            flow.hand("request", &asks, &request, &[]);
            flow.claim(&format!("{id}.1"), &makes);
            if flow.chance.is() {
                let failure = with(
                    of("failure"),
                    &[
                        (
                            "/source",
                            json!({"agent_id": asks, "phase": request["source"]["phase"]}),
                        ),
                        (
                            "/target",
                            json!({"agent_id": makes, "phase": request["target"]["phase"]}),
                        ),
                        ("/max_retries", json!(number)),
                        ("/retry_count", json!(0)),
                    ],
                );
                flow.hand("failure", &makes, &failure, &[]);
                run(flow, "retry", &format!("{id}.1"), &asks);
                flow.claim(&format!("{id}.1"), &makes);
            }
            let is_database = makes.contains("database");
            let answer = of(if is_database {
                "response-database"
            } else {
                "response"
            });
            let kind = &request["expected_output"]["artifact_type"];
            let answer = with(answer, &[("/output/artifact_type", kind.clone())]);
            flow.hand("response", &makes, &answer, &[]);
        }
    });
}

#[test]
fn delegation() {
    const NAME: &str = "delegation";
    Flow::try_all(NAME, 6, |flow| {
        for answer in [
            "response",
            "response-partial",
            "response-failed",
            "response-escalated",
        ] {
            let trace = format!(
                "3f6e0a58-94c1-4d27-8a3b-{:012x}",
                flow.chance.between(1, 1 << 40)
            );
            let of = |name: &str| value(NAME, name, &[("/traceId", json!(trace))]);
            let keys = flow.chance.texts(1, 3, "table");
            let missing: Vec<Value> = keys
                .iter()
                .map(|key| json!({"key": key, "expectedType": "object", "description": "For each month"}))
                .collect();
            let full = flow.chance.is();
            let name = if full {
                "request-with-every-field"
            } else {
                "request"
            };
            let request = with(
                of(name),
                &[
                    ("/missingInputs", json!(missing)),
                    ("/sourceContext/documentType", json!(trace)),
                ],
            );
            flow.hand("request", "document_generator", &request, &[]);
            flow.claim(&format!("{trace}.1"), "research_agent");
            if flow.chance.is() {
                let decision = value(
                    NAME,
                    "decision-to-hand-on",
                    &[("/handoffTo", json!("orchestrator"))],
                );
                flow.hand(
                    "decision",
                    "research_agent",
                    &decision,
                    &["--issue", &trace],
                );
            }
            let tables: Map<String, Value> = keys
                .iter()
                .map(|key| (key.clone(), json!({"january": 5.2})))
                .collect();
            let mut members = vec![("/respondingAgent", json!("research_agent"))];
            match answer {
                "response" => members.push(("/providedInputs", json!(tables))),
                "response-partial" => {
                    let first = tables
                        .iter()
                        .take(keys.len() - 1)
                        .map(|(k, v)| (k.clone(), v.clone()));
                    members.push(("/providedInputs", Value::Object(first.collect())));
                    members.push(("/unresolved", json!([keys[keys.len() - 1]])));
                }
                _ => {}
            }
            flow.hand(
                "response",
                "research_agent",
                &with(of(answer), &members),
                &[],
            );
        }
    });
}

/// Tasks, the parts of the first, and what each part waits for.
struct Plan {
    tasks: Vec<String>,
    parts: Vec<String>,
    waits: Map<String, Value>,
}

impl Plan {
    fn new(chance: &mut Chance) -> Self {
        let first = chance.between(1, 80);
        let tasks: Vec<String> = (0..chance.between(1, 3))
            .map(|n| format!("{:03}", first + n))
            .collect();
        let parts: Vec<String> = (1..=chance.between(2, 4))
            .map(|n| format!("{}_{n}", tasks[0]))
            .collect();
        let mut waits = Map::new();
        for (n, part) in parts.iter().enumerate() {
            // Each part waits for the one before it, or for the first.
            let on = match n {
                0 => json!([]),
                _ if chance.is() => json!([parts[n - 1]]),
                _ => json!([parts[0]]),
            };
            waits.insert(part.clone(), on);
        }
        Self {
            tasks,
            parts,
            waits,
        }
    }
}

const PLANNER: &str = "task-orchestrator";
const GUARDIAN: &str = "execution-guardian";

#[test]
fn task_breakdown() {
    Flow::try_all("task-breakdown", 1, |flow| match flow.seed % 2 {
        0 => task_breakdown_in_messages(flow),
        _ => task_breakdown_in_json(flow),
    });
}

fn task_breakdown_in_json(flow: &mut Flow) {
    const NAME: &str = "task-breakdown";
    let plan = Plan::new(&mut flow.chance);
    let difficulties: Vec<u64> = plan
        .tasks
        .iter()
        .map(|_| flow.chance.between(7, 9))
        .collect();
    let opening = value(
        NAME,
        "environment-to-planning",
        &[
            ("/data/task_ids", json!(plan.tasks)),
            ("/data/difficulties", json!(difficulties)),
            (
                "/data/assumptions_made",
                json!(flow.chance.texts(0, 2, "Assumed")),
            ),
        ],
    );
    flow.hand(
        "environment-to-planning",
        "environment-architect",
        &opening,
        &[],
    );
    flow.claim("environment.1", PLANNER);
    let broken_down = value(
        NAME,
        "planning-to-execution",
        &[
            ("/data/parent_task_id", json!(plan.tasks[0])),
            ("/data/subtask_ids", json!(plan.parts)),
            ("/data/dependency_graph", json!(plan.waits)),
            ("/data/execution_order", json!(plan.parts)),
            ("/data/parallel_groups", json!([])),
        ],
    );
    flow.hand("planning-to-execution", PLANNER, &broken_down, &[]);
    for (n, part) in plan.parts.iter().enumerate() {
        flow.claim(
            &format!("environment.{}", plan.tasks.len() + 1 + n),
            GUARDIAN,
        );
        let done = value(
            NAME,
            "execution-to-planning",
            &[
                ("/data/completed_task_id", json!(part)),
                ("/data/parent_task_id", json!(plan.tasks[0])),
            ],
        );
        flow.hand("execution-to-planning", GUARDIAN, &done, &[]);
    }
}

fn task_breakdown_in_messages(flow: &mut Flow) {
    let plan = Plan::new(&mut flow.chance);
    let listed = |ids: &[String], weight: &[u64], before: &str| -> Map<String, Value> {
        let lines = ids.iter().zip(weight).map(|(id, weight)| {
            (
                format!("{before}{id}"),
                json!(format!("\"Read {id}\" (difficulty: {weight})")),
            )
        });
        lines.collect()
    };
    let weights: Vec<u64> = plan
        .tasks
        .iter()
        .map(|_| flow.chance.between(7, 9))
        .collect();
    let message = json!({
        "from": "Environment Architect", "to": "Task Orchestrator",
        "status": "The environment stands",
        "created": {"template": "gateway", "initial_tasks": format!("{}", plan.tasks.len() + 2), "directories": "tasks, firmware"},
        "high_difficulty_tasks_requiring_breakdown": listed(&plan.tasks, &weights, "task_"),
        "recommended_action": "Split the first",
        "handoff_data": {"task_ids": plan.tasks, "difficulties": weights, "template": "gateway", "assumptions": ["It answers"]},
    });
    flow.hand(
        "environment-message",
        "environment-architect",
        &message,
        &[],
    );
    flow.claim("environment.1", PLANNER);
    let weights: Vec<u64> = plan
        .parts
        .iter()
        .map(|_| flow.chance.between(1, 6))
        .collect();
    let path = plan.parts.join(" → ");
    let message = json!({
        "from": "Task Orchestrator", "to": "Execution Guardian",
        "status": "It is split",
        "parent_task": {"id": plan.tasks[0], "title": format!("\"Read {}\"", plan.tasks[0]), "status": "Broken Down"},
        "subtasks_ready_for_execution": listed(&plan.parts, &weights, ""),
        "execution_strategy": {"sequential": path, "parallel_possible": "none", "critical_path": path},
        "dependencies": plan.waits,
        "recommended_starting_task": plan.parts[0],
    });
    flow.hand("breakdown-message", PLANNER, &message, &[]);
    for (n, part) in plan.parts.iter().enumerate() {
        flow.claim(
            &format!("environment.{}", plan.tasks.len() + 1 + n),
            GUARDIAN,
        );
        let (complete, pending) = plan.parts.split_at(n + 1);
        let list = |ids: &[String]| format!("[{}]", ids.join(", "));
        let message = json!({
            "from": "Execution Guardian", "to": "Task Orchestrator",
            "status": format!("{part} is done"),
            "completed_task": {"id": part, "title": format!("\"Read {part}\""), "final_status": "Finished", "confidence": "90%", "duration": "38 minutes"},
            "validation_results": {"pre_execution_gates": "PASSED", "post_execution_gates": "PASSED", "checkpoints_created": "3", "errors_encountered": "0"},
            "parent_task_info": {"parent_id": plan.tasks[0], "sibling_tasks": list(&plan.parts), "siblings_complete": list(complete), "siblings_pending": list(pending)},
            "action_required": "See whether it is complete",
            "metrics_update": {"completed_count": complete.len(), "remaining_count": pending.len(), "avg_confidence": 0.9, "total_duration": "38 minutes"},
        });
        flow.hand("execution-message", GUARDIAN, &message, &[]);
    }
}
