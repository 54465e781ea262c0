//! Offers hold: in ledgers drawn by chance, each command that a view prints for an agent or a person
//! is accepted, all views name the same turn, and nobody whose turn it is hears that nothing is to do.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use git_handoff::readers::values;
use serde_json::{Value, json};
use test_support::dice::Dice;
use test_support::proof::Proof;
use test_support::team::{BUILT_IN, Folder};
use test_support::{Ran, TestEnvironment, files};

/// A mark that a sender replaces.
const MARK: &str = "{{fill";

/// How often a refused command is filled in otherwise.
const MOST_FILLED: usize = 80;

/// The most commands that the short form tries in one state.
const FEW: usize = 3;

/// A command that a view prints: the view, and the command that comes before it there.
type Printed = BTreeMap<String, (String, Option<String>)>;

/// What a command or hint may leave to whoever reads it: a file, a folder, a choice.
const OPEN: [&str; 4] = ["FILE", "DIR", "answers.json", "AGENT"];

/// A ledger that grows by chance.
struct Walk {
    env: TestEnvironment,
    name: &'static str,
    definition: Value,
    schemas: BTreeMap<String, Value>,
    /// The schemas that contracts name, by file.
    named: Vec<(String, Value)>,
    dice: Dice,
    /// How many commands were tried.
    tried: u64,
    issues: u32,
    /// What the newest step printed.
    said: Printed,
    faults: BTreeSet<String>,
}

/// A place in a command that is filled in: the word, the place in its value, what may stand there.
struct Slot {
    word: usize,
    field: String,
    inner: String,
    pointer: String,
    candidates: Vec<Value>,
    at: usize,
    /// The schema of what the contract's named schema describes, if the place holds that.
    schema: Option<Value>,
    /// For places within, which of the schema's values stands there.
    within: BTreeMap<String, usize>,
}

impl Slot {
    /// What stands there now.
    fn value(&self) -> Option<Value> {
        let mut value = self.candidates.get(self.at)?.clone();
        for (at, chosen) in &self.within {
            let made_up = values(self.schema.as_ref()?, at);
            let (above, name) = at.rsplit_once('/')?;
            let one = made_up.get(*chosen).or(made_up.last())?;
            match value.pointer_mut(above)? {
                Value::Object(members) => drop(members.insert(name.to_owned(), one.clone())),
                Value::Array(items) => *items.get_mut(name.parse::<usize>().ok()?)? = one.clone(),
                _ => {}
            }
        }
        Some(value)
    }

    /// Takes another value for what a refusal names; whether there is one.
    fn change(&mut self, place: &str) -> bool {
        let own = self.pointer.trim_end_matches("/0");
        let within = place.strip_prefix(own).filter(|rest| rest.starts_with('/'));
        if let (Some(schema), Some(rest)) = (&self.schema, within) {
            let known = self.within.get(rest).map_or(0, |chosen| chosen + 1);
            let more = known < values(schema, rest).len();
            if more {
                self.within.insert(rest.to_owned(), known);
            }
            return more;
        }
        let named = place == own || within.is_some() || self.pointer.starts_with(place);
        let more = named && self.at + 1 < self.candidates.len();
        self.at += usize::from(more);
        more
    }
}

/// The words of a printed command, without `git handoff`: what a shell would pass on.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let (mut word, mut begun, mut quote) = (String::new(), false, None);
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        match (letter, quote) {
            (own, Some(open)) if own == open => quote = None,
            ('\\', None) => word.extend(letters.next()),
            (_, Some(_)) => word.push(letter),
            ('\'' | '"', None) => (quote, begun) = (Some(letter), true),
            (' ', None) => {
                if begun || !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
                begun = false;
            }
            ('#', None) if word.is_empty() => break,
            _ => word.push(letter),
        }
    }
    if begun || !word.is_empty() {
        words.push(word);
    }
    // What follows is another command, which edits what this one prints.
    let end = words.iter().position(|word| word == "&&" || word == ">");
    words.truncate(end.unwrap_or(words.len()));
    words.into_iter().skip(2).collect()
}

/// The commands after `next:` and `or:` in what a command says.
fn said(ran: &Ran) -> Vec<String> {
    if let Ok(document) = serde_json::from_str::<Value>(&ran.stdout) {
        let next = document["data"]["next"].as_array().into_iter().flatten();
        return next.filter_map(Value::as_str).map(str::to_owned).collect();
    }
    let both = format!("{}\n{}", ran.stdout, ran.stderr);
    let commands = both.lines().filter_map(|line| {
        let (before, command) = line.split_once("git handoff ")?;
        let before = before.trim();
        let is_next = before.starts_with("next") || before == "or:";
        (is_next && before.ends_with(':')).then(|| format!("git handoff {command}"))
    });
    commands.collect()
}

/// The commands in the hint of a refusal, as the agent would run them.
fn hinted(ran: &Ran, agent: &str) -> Vec<String> {
    let hints = ran.stderr.lines().filter(|line| line.starts_with("hint: "));
    let quoted = hints.flat_map(|line| line.split('`').skip(1).step_by(2));
    let commands = quoted.filter(|text| text.starts_with("git handoff "));
    let commands = commands.filter(|text| !OPEN.iter().any(|open| text.contains(open)));
    let acting = |text: &str| {
        if text.contains("--as ") || text.contains("--from ") {
            text.to_owned()
        } else {
            format!("{text} --as {agent}")
        }
    };
    commands.map(acting).collect()
}

/// The value of an option among words.
fn option<'w>(words: &'w [String], name: &str) -> Option<&'w str> {
    let at = words.iter().position(|word| word == name)?;
    words.get(at + 1).map(String::as_str)
}

/// The ids of all tasks in an answer.
fn ids_of_tasks(value: &Value, found: &mut Vec<String>) {
    for (name, member) in value.as_object().into_iter().flatten() {
        let tasks = member.as_array().filter(|_| name == "tasks");
        let ids = tasks.into_iter().flatten().map(|task| task["id"].as_str());
        found.extend(ids.flatten().map(str::to_owned));
        ids_of_tasks(member, found);
    }
}

/// The places of a value that hold a mark.
fn marked(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::String(text) if text.contains(MARK) => found.push(at.to_owned()),
        Value::Array(items) => {
            for (i, item) in items.iter().enumerate() {
                marked(item, &format!("{at}/{i}"), found);
            }
        }
        Value::Object(members) => {
            for (name, member) in members {
                marked(member, &format!("{at}/{name}"), found);
            }
        }
        _ => {}
    }
}

impl Walk {
    fn new(seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let name = BUILT_IN[usize::try_from(seed).unwrap() % BUILT_IN.len()];
        let env = TestEnvironment::with_repository();
        let folder = Folder::copy(&env, name, "own");
        let mut definition = Value::Null;
        folder.define(|own| {
            if dice.percent(30) {
                own["limits"]["deadline_seconds"] = json!(7200);
            }
            if dice.percent(30) {
                own["limits"]["budgets"] =
                    json!({ "team": { "per": "issue", "cost": 1, "currency": "USD" } });
            }
            definition = own.clone();
        });
        let path = PathBuf::from(folder.path());
        let schemas = definition["contracts"].as_array().unwrap().iter();
        let schemas = schemas.map(|kind| {
            let usual = format!("schemas/{}.schema.json", kind["type"].as_str().unwrap());
            let file = path.join(kind["schema"].as_str().unwrap_or(&usual));
            let schema = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
            (kind["type"].as_str().unwrap().to_owned(), schema)
        });
        let schemas = schemas.collect();
        let files = fs::read_dir(path.join("schemas")).unwrap();
        let named = files.map(|file| {
            let file = file.unwrap();
            let schema = serde_json::from_slice(&fs::read(file.path()).unwrap());
            (
                file.file_name().into_string().unwrap(),
                schema.unwrap_or_default(),
            )
        });
        let named = named.filter(|(file, _): &(String, Value)| file.contains("specialist"));
        let named = named.collect();
        env.handoff(&["init", "--protocol", &folder.path(), "--evidence", "off"])
            .success();
        env.pace(0);
        Self {
            env,
            name,
            definition,
            schemas,
            named,
            dice,
            tried: 0,
            issues: 0,
            said: Printed::new(),
            faults: BTreeSet::new(),
        }
    }

    fn agents(&self) -> Vec<String> {
        let agents = self.definition["agents"].as_array().unwrap().iter();
        agents
            .map(|agent| agent["id"].as_str().unwrap().to_owned())
            .collect()
    }

    /// The key of a new issue, in the form that the protocol takes.
    fn key(&mut self) -> String {
        self.issues += 1;
        match self.name {
            "delegation" => format!("00000000-0000-4000-8000-{:012}", self.issues),
            "issue-to-pr" => self.issues.to_string(),
            _ => format!("work-{}", self.issues),
        }
    }

    /// The schemas of the contracts that a command may send.
    fn schemas_of(&self, words: &[String]) -> Vec<&Value> {
        let (from, to) = (option(words, "--as"), option(words, "--to"));
        if let Some(kind) = option(words, "--type") {
            return self.schemas.get(kind).into_iter().collect();
        }
        let routes = self.definition["routes"].as_array().unwrap();
        let routes = routes.iter();
        let fits = |end: &Value, wanted: Option<&str>| end == "*" || end.as_str() == wanted;
        let routes = routes.filter(|r| fits(&r["from"], from) && fits(&r["to"], to));
        let kinds = routes.flat_map(|route| route["contracts"].as_array().unwrap());
        let known: Vec<&Value> = kinds
            .filter_map(|kind| self.schemas.get(kind.as_str()?))
            .collect();
        // An answer needs no route.
        if known.is_empty() {
            return self.schemas.values().collect();
        }
        known
    }

    /// The tasks of the issue that a command is about.
    fn tasks(&self, words: &[String]) -> Vec<String> {
        let issue = option(words, "--issue").unwrap_or_default();
        let status = self.env.handoff(&["status", issue, "--json"]);
        let status: Value = serde_json::from_str(&status.stdout).unwrap_or_default();
        let mut found = Vec::new();
        ids_of_tasks(&status["data"], &mut found);
        found
    }

    /// What a place holds that names a schema, or is what the named schema describes.
    fn named(&self, at: &str, to: &str) -> (Vec<Value>, Option<Value>) {
        let receiver = to.trim_start_matches('@');
        let fits = |(file, _): &&(String, Value)| file.contains(receiver);
        let mut named: Vec<&(String, Value)> = self.named.iter().filter(fits).collect();
        named.sort_by_key(|(file, _)| file.contains("output") != at.contains("output"));
        let own = named.into_iter();
        let place = |name: &str| {
            let kinds = self.definition["contracts"].as_array().unwrap().iter();
            let all = kinds.flat_map(|kind| kind["named_schemas"].as_array());
            let mut places = all.flatten().map(|named| named[name].clone());
            places.any(|place| place == at)
        };
        if place("schema") || at == "/expected_output/schema" {
            (own.map(|(file, _)| file.as_str().into()).collect(), None)
        } else if place("data") {
            let mut input = own.filter(|(file, _)| file.contains("input"));
            let schema = input.next().map(|(_, schema)| schema.clone());
            let made_up = schema.iter().flat_map(|schema| values(schema, ""));
            (made_up.collect(), schema)
        } else {
            (Vec::new(), None)
        }
    }

    /// The places of a command that are to be filled in.
    fn slots(&self, words: &[String]) -> Vec<Slot> {
        let schemas = self.schemas_of(words);
        let mut slots = Vec::new();
        for (i, word) in words.iter().enumerate().filter(|(_, w)| w.contains(MARK)) {
            let Some((field, value)) = word.split_once('=') else {
                continue;
            };
            let pointer = format!("/{}", field.trim_start_matches('/').replace('.', "/"));
            let value: Value = serde_json::from_str(value).unwrap_or_else(|_| value.into());
            let mut inner = Vec::new();
            marked(&value, "", &mut inner);
            let lists = schemas.iter().any(|schema| {
                let first = values(schema, &pointer);
                first.first().is_some_and(Value::is_array)
            });
            for inner in inner {
                let at = if lists && !value.is_array() {
                    format!("{pointer}/0{inner}")
                } else {
                    format!("{pointer}{inner}")
                };
                let mut candidates: Vec<Value> = Vec::new();
                let key = option(words, "--issue").map(Value::from);
                let key = key.filter(|_| self.definition["fields"]["issue"] == at.as_str());
                let url = word.contains("address").then(|| {
                    let key = option(words, "--issue").unwrap_or_default();
                    format!("https://github.com/example/example/issues/{key}").into()
                });
                let (named, schema) = self.named(&at, option(words, "--to").unwrap_or_default());
                let names_agent = word.contains("agent").then(|| self.agents());
                let agents = names_agent.into_iter().flatten().map(Value::from);
                let all = schemas.iter().flat_map(|schema| values(schema, &at));
                let tasks = word.contains("task_id").then(|| self.tasks(words));
                let tasks = tasks.into_iter().flatten().map(Value::from);
                let first = key.into_iter().chain(url).chain(named).chain(tasks);
                for value in first.chain(all).chain(agents) {
                    if !candidates.contains(&value) {
                        candidates.push(value);
                    }
                }
                slots.push(Slot {
                    word: i,
                    field: field.to_owned(),
                    inner,
                    pointer: at,
                    candidates,
                    at: 0,
                    schema,
                    within: BTreeMap::new(),
                });
            }
        }
        slots
    }

    /// Does the work that a contract is about to report: a commit on the issue's branch.
    fn work(&self, folder: &Path, issue: &str) {
        let context = self.env.handoff_in(folder, &["context", issue, "--json"]);
        let context: Value = serde_json::from_str(&context.stdout).unwrap_or_default();
        let Some(branch) = context["data"]["known"]["branch"].as_str() else {
            return;
        };
        if self.env.git_any(folder, &["switch", "-q", branch]).status != 0 {
            self.env.git(folder, &["switch", "-q", "-c", branch]);
        }
        fs::write(folder.join(format!("work-{}.txt", self.tried)), "done\n").unwrap();
        self.env.git(folder, &["add", "."]);
        self.env.git(folder, &["commit", "-q", "-m", "Do the work"]);
    }

    /// Runs a printed command in a folder, its places filled in until it is accepted.
    fn accepted(&mut self, folder: &Path, line: &str) -> Result<Ran, Ran> {
        let mut template = words(line);
        let key = self.key();
        for word in &mut template {
            let plain = [
                ("WHY", "it has to be so"),
                ("ANSWER", "take the second one"),
                ("TEXT", "a text"),
                ("N", "90000"),
                ("ISSUE", key.as_str()),
            ];
            if let Some((_, text)) = plain.iter().find(|(name, _)| word == name) {
                *word = (*text).to_owned();
            }
            if let Some(name) = word.strip_suffix("=VALUE") {
                *word = format!("{name}=example");
            }
        }
        if template.first().is_some_and(|verb| verb == "send") {
            self.work(folder, option(&template, "--issue").unwrap_or_default());
        }
        let mut slots = self.slots(&template);
        let mut last = None;
        for _ in 0..MOST_FILLED {
            let mut filled = template.clone();
            for (i, word) in filled.iter_mut().enumerate() {
                let own = slots.iter().filter(|slot| slot.word == i);
                let Some((field, text)) = word
                    .clone()
                    .split_once('=')
                    .map(|(f, v)| (f.to_owned(), v.to_owned()))
                else {
                    continue;
                };
                let mut value: Value = serde_json::from_str(&text).unwrap_or_else(|_| text.into());
                let mut any = false;
                for slot in own {
                    any = true;
                    if let (Some(own), Some(place)) = (slot.value(), value.pointer_mut(&slot.inner))
                    {
                        *place = own;
                    }
                }
                if any {
                    let text = value
                        .as_str()
                        .map_or_else(|| value.to_string(), str::to_owned);
                    *word = format!("{field}={text}");
                }
            }
            let mut args: Vec<&str> = filled.iter().map(String::as_str).collect();
            if args.first() == Some(&"wait") {
                args.extend(["--timeout", "0s"]);
            }
            if args.first() == Some(&"send") {
                args.push("--json");
            }
            self.tried += 1;
            let ran = self.env.handoff_in(folder, &args);
            let waits = args.first() == Some(&"wait") && ran.status == 7;
            if ran.status == 0 || waits {
                return Ok(ran);
            }
            let goes_on = (2..=4).contains(&ran.status) && otherwise(&mut slots, &ran);
            last = Some(ran);
            if !goes_on {
                break;
            }
        }
        Err(last.unwrap())
    }

    /// Everything that the views print now, for everyone.
    fn printed(&mut self) -> Printed {
        let mut printed = std::mem::take(&mut self.said);
        let mut add = |command: &str, view: &str, before: Option<String>| {
            let entry = printed.entry(command.to_owned());
            entry.or_insert_with(|| (view.to_owned(), before));
        };
        let status = self.env.data(&["status", "--limit", "0"]);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        for one in list(&status["attention"]) {
            add(&text(&one["next"]), "status", None);
        }
        let open = self.open();
        for issue in open.keys() {
            let ran = self.env.handoff(&["next", issue]);
            for command in said(&ran) {
                add(&command, "next", None);
            }
        }
        for id in open.values().flatten() {
            let shown = self.env.data(&["show", id]);
            for one in list(&shown["options"]) {
                add(&text(&one["command"]), &format!("show {id}"), None);
            }
        }
        for agent in self.agents() {
            let prime = self.env.data(&["prime", "--as", &agent]);
            let view = format!("prime --as {agent}");
            let commands: Vec<String> = list(&prime["commands"]).iter().map(text).collect();
            // What follows a claim is sent from it.
            let claims = |command: &&String| command.starts_with("git handoff claim");
            let first = commands.first().filter(claims).cloned();
            for (i, command) in commands.iter().enumerate() {
                add(command, &view, first.clone().filter(|_| i > 0));
            }
            for other in list(&prime["others"]) {
                add(&text(&other["command"]), &view, first.clone());
                if other["send"].is_string() {
                    add(&text(&other["send"]), &view, first.clone());
                }
            }
            let inbox = self.env.handoff(&["inbox", "--as", &agent]).success();
            for command in said(&inbox) {
                add(&command, &format!("inbox --as {agent}"), None);
            }
        }
        printed
    }

    /// The open handoffs, by issue.
    fn open(&self) -> BTreeMap<String, Vec<String>> {
        let listed = self.env.data(&["list", "--limit", "0"]);
        let mut open: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let done = ["completed", "cancelled", "rejected"];
        for one in listed["handoffs"].as_array().unwrap() {
            let ids = open
                .entry(one["issue"].as_str().unwrap().to_owned())
                .or_default();
            if !done.contains(&one["state"].as_str().unwrap()) {
                ids.push(one["id"].as_str().unwrap().to_owned());
            }
        }
        open
    }

    /// Whose turn it is, by each view, and whether each of them hears of it.
    fn check_turns(&mut self) {
        let status = self.env.data(&["status", "--limit", "0"]);
        let needs = status["attention"].as_array().unwrap().clone();
        for issue in self.open().keys() {
            let next = self.env.data(&["next", issue]);
            let Some(agent) = next["agent"].as_str() else {
                continue;
            };
            let prime = self.env.data(&["prime", "--as", agent]);
            let kinds = [
                "holds",
                "held_by_others",
                "waits",
                "later",
                "stuck",
                "to_decide",
            ];
            let has = kinds.iter().any(|kind| prime[kind]["count"] != 0);
            let told = prime["attention"].as_array().unwrap();
            if !has && told.is_empty() {
                self.fault(
                    &format!("next {issue} names {agent}, whose prime has nothing"),
                    &next.to_string(),
                );
            }
            let first = needs
                .iter()
                .find(|one| one["issue"] == issue.as_str() && one["id"] == next["handoff"]["id"]);
            if let Some(first) = first
                && first["turn"] != agent
            {
                let text = format!("next {issue}: {agent}; status: {}", first["turn"]);
                self.fault(&text, &first.to_string());
            }
        }
        for one in &needs {
            let turn = one["turn"].as_str().unwrap();
            if self.agents().iter().all(|agent| agent != turn) {
                continue;
            }
            let inbox = self.env.data(&["inbox", "--limit", "0", "--as", turn]);
            let told = inbox["attention"].as_array().unwrap().iter();
            let mut hears = told.chain(inbox["handoffs"].as_array().unwrap());
            if !hears.any(|other| other["id"] == one["id"]) {
                self.fault(
                    &format!("{turn}'s inbox does not have what status says"),
                    &one.to_string(),
                );
            }
        }
    }

    fn fault(&mut self, what: &str, more: &str) {
        let log = self.env.git(
            &self.env.repo(),
            &["log", "--reverse", "--format=%an: %s", "handoffs"],
        );
        self.faults
            .insert(format!("## {}: {what}\n{more}\n{log}", self.name));
    }

    /// Tries each printed command on a copy of the repository.
    fn try_all(&mut self, few: bool) -> Vec<String> {
        let mut printed: Vec<_> = self.printed().into_iter().collect();
        while few && printed.len() > FEW {
            let any = self.dice.below(printed.len() as u64);
            printed.swap_remove(usize::try_from(any).unwrap());
        }
        let mut good = Vec::new();
        for (line, (view, before)) in printed {
            let parent = self.env.root().join("try");
            let _ = fs::remove_dir_all(&parent);
            let copy = parent.join("repo");
            files::copy(&self.env.repo(), &copy);
            let first = before.map(|first| self.accepted(&copy, &first));
            if let Some(Err(ran)) = first {
                let what = format!("{view} prints what is refused first");
                self.fault(&what, &ran.shown);
                continue;
            }
            match self.accepted(&copy, &line) {
                Ok(_) => good.push(line),
                Err(ran) => self.fault(
                    &format!("{view} prints what is refused"),
                    &format!("{line}\n{}", ran.shown),
                ),
            }
        }
        good
    }

    /// Makes the next step: one that was printed, or a mishap.
    fn go_on(&mut self, good: &[String]) {
        let verbs = [
            "send", "claim", "complete", "answer", "retry", "next", "reassign",
        ];
        let changes = |line: &&String| words(line).first().is_some_and(|v| verbs.contains(&&**v));
        let good: Vec<&String> = good.iter().filter(changes).collect();
        if good.is_empty() || self.dice.percent(40) {
            self.mishap();
        } else {
            let line = (*self.dice.one(&good)).clone();
            let repo = self.env.repo();
            let (Ok(ran) | Err(ran)) = self.accepted(&repo, &line);
            let words = words(&line);
            self.hear(&line, &ran, option(&words, "--as").unwrap_or_default());
        }
    }

    /// Remembers what a step or its refusal printed.
    fn hear(&mut self, line: &str, ran: &Ran, agent: &str) {
        let hints = hinted(ran, agent);
        for command in said(ran).into_iter().chain(hints) {
            let view = (format!("after {line}"), None);
            self.said.entry(command).or_insert(view);
        }
    }

    /// What happens besides: failures, questions, refusals, pauses, time.
    fn mishap(&mut self) {
        let open = self.open();
        let all: Vec<&String> = open.values().flatten().collect();
        if all.is_empty() {
            return;
        }
        let id = (*self.dice.one(&all)).clone();
        let issue = id.rsplit_once('.').unwrap().0.to_owned();
        let shown = self.env.data(&["show", &id]);
        let shown = &shown["handoff"];
        let to = shown["to"].as_str().unwrap().to_owned();
        let usage = r#"{"model":"m","cost":2,"currency":"USD","input_tokens":1}"#;
        let kinds = [
            format!("fail {id}|--message|it broke"),
            format!("fail {id}|--message|it broke|--recoverable"),
            format!("fail {id}|--message|it broke|--recoverable|--usage|{usage}"),
            format!("block {id}|--reason|unclear|--needs|colour"),
            format!("block {id}|--reason|unclear"),
            format!("reject {id}|--reason|not mine"),
            format!("cancel {id}|--reason|too late"),
            format!("release {id}"),
            format!("claim {id}"),
            format!("pause {issue}|--reason|a holiday"),
            format!("next {issue}|--apply"),
            format!("complete {id}"),
        ];
        let agents = self.agents();
        let agent = if self.dice.percent(80) {
            &to
        } else {
            self.dice.one(&agents)
        };
        let line = self.dice.one(&kinds).replacen(' ', "|", 1);
        let mut args: Vec<&str> = line.split('|').collect();
        args.extend(["--as", agent]);
        let ran = self.env.handoff(&args);
        self.hear(&args.join(" "), &ran, agent);
        if self.dice.percent(15) {
            let minutes = *self.dice.one(&[3, 40, 130, 1500]);
            self.env.wait_minutes(minutes);
            // What was printed before is of another time.
            self.said.clear();
        }
    }
}

/// Fills in another value where a refusal says that one does not do.
fn otherwise(slots: &mut [Slot], ran: &Ran) -> bool {
    let Ok(document) = serde_json::from_str::<Value>(&ran.stdout) else {
        return false;
    };
    let error = &document["error"];
    let mut places: Vec<String> = Vec::new();
    for finding in error["findings"].as_array().into_iter().flatten() {
        let path = finding["path"].as_str().unwrap_or_default();
        places.push(path.to_owned());
        // In XML without the root element, and counted from one.
        let rest: Vec<&str> = path.split('/').skip(2).collect();
        places.push(
            format!("/{}", rest.join("/"))
                .replace('[', "/")
                .replace(']', ""),
        );
    }
    let message = error["message"].as_str().unwrap_or_default();
    let mut changed = false;
    for slot in slots.iter_mut() {
        let said = message.starts_with(&format!("{} is ", slot.field))
            || message.contains(&format!("`{}`", slot.field));
        let own = said.then(|| slot.pointer.clone());
        let named = places.iter().filter(|place| place.len() > 1).chain(&own);
        let named: Vec<String> = named.cloned().collect();
        for place in named {
            changed |= slot.change(&place);
        }
    }
    changed
}

#[test]
fn offers_hold() {
    let mut proof = Proof::new("offers", 5);
    let steps = if proof.is_long() { 40 } else { 4 };
    let (mut states, mut tried, mut faults) = (0, 0, BTreeSet::new());
    while let Some(seed) = proof.case() {
        let mut walk = Walk::new(seed);
        for _ in 0..steps {
            states += 1;
            walk.check_turns();
            let good = walk.try_all(!proof.is_long());
            if walk.faults.len() > 3 {
                break;
            }
            walk.env.pace(1);
            walk.go_on(&good);
            walk.env.pace(0);
        }
        walk.env.assert_sound();
        tried += walk.tried;
        let own = walk
            .faults
            .iter()
            .map(|fault| format!("seed {seed} {fault}"));
        faults.extend(own);
    }
    let all: Vec<String> = faults.into_iter().collect();
    assert!(all.is_empty(), "{}", all.join("\n"));
    proof.passed(&[("states", states), ("commands", tried)]);
}
