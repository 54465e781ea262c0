//! A runner: it starts the steps of a workflow's jobs as GitHub does, against a server that is a folder.

pub(crate) mod api;
pub(crate) mod expression;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Map, Value, json};

use crate::yaml;
use api::Api;
use expression::{evaluate, expanded, text};
use test_support::TestEnvironment;

/// The token of every run, which nothing may print or keep.
pub(crate) const TOKEN: &str = "ghs_canary0123456789abcdefghijklmnopqrs";

/// The agents' key, which only they get.
pub(crate) const KEY: &str = "key-canary-0123456789";

/// What starts a run.
#[derive(Clone)]
pub(crate) struct Event {
    pub(crate) name: &'static str,
    pub(crate) payload: Value,
    /// The run, which stays the same when it is started again.
    pub(crate) run: u32,
    pub(crate) attempt: u32,
}

impl Event {
    pub(crate) fn new(name: &'static str, run: u32, payload: Value) -> Self {
        Self {
            name,
            payload,
            run,
            attempt: 1,
        }
    }

    /// The same, started again.
    pub(crate) fn again(&self) -> Self {
        Self {
            attempt: self.attempt + 1,
            ..self.clone()
        }
    }
}

/// How a run ended.
#[derive(Default)]
pub(crate) struct Run {
    /// The result of each job: success, failure, skipped.
    pub(crate) jobs: BTreeMap<String, String>,
    pub(crate) log: String,
    pub(crate) summary: String,
}

impl Run {
    #[track_caller]
    pub(crate) fn job(&self, name: &str, result: &str) -> &Self {
        assert_eq!(self.jobs[name], result, "{}", self.log);
        self
    }

    #[track_caller]
    pub(crate) fn says(&self, text: &str) -> &Self {
        assert!(self.log.contains(text), "no {text:?} in:\n{}", self.log);
        self
    }
}

/// A server with the repository `owner/desk`, and what runs on it.
pub(crate) struct Runner {
    pub(crate) env: TestEnvironment,
    folders: AtomicU32,
    /// The name of a step, and what it runs first.
    pub(crate) sabotage: Mutex<Option<(String, String)>>,
    /// GitHub's API.
    pub(crate) api: Api,
}

/// One step's or one job's surroundings.
struct Job<'a> {
    temp: PathBuf,
    event: &'a Event,
    context: Value,
    later: BTreeMap<String, String>,
    path: Vec<String>,
    caches: Vec<(String, PathBuf)>,
    log: String,
    summary: String,
}

impl Runner {
    /// A server whose repository has this clone's branches.
    pub(crate) fn new(env: TestEnvironment) -> Self {
        env.git(env.root(), &["init", "-q", "--bare", "owner/desk"]);
        let root = env.root().to_owned();
        fs::create_dir_all(root.join("github")).unwrap();
        let fake = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/github-tools/gh");
        fs::create_dir_all(root.join("bin")).unwrap();
        std::os::unix::fs::symlink(fake, root.join("bin/gh")).unwrap();
        Self {
            api: Api::start(root.join("owner/desk"), TOKEN),
            env,
            folders: AtomicU32::default(),
            sabotage: Mutex::default(),
        }
    }

    pub(crate) fn server(&self) -> PathBuf {
        self.env.root().join("owner/desk")
    }

    /// What the stand-in for GitHub keeps: comments, issues, labels.
    pub(crate) fn kept(&self, name: &str) -> Value {
        let file = self.env.root().join("github").join(name);
        fs::read(file).map_or(json!([]), |bytes| serde_json::from_slice(&bytes).unwrap())
    }

    /// Runs a workflow of templates/github.
    pub(crate) fn run(&self, workflow: &str, event: &Event) -> Run {
        let file = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("templates/github")
            .join(workflow);
        self.run_workflow(&yaml(&file), event)
    }

    /// The workflows that the default branch on the server has, by their files' names.
    pub(crate) fn pushed(&self) -> BTreeMap<String, Value> {
        let args = ["ls-tree", "--name-only", "main:.github/workflows"];
        let names = self.env.git(&self.server(), &args);
        let read = |name: &str| {
            let path = format!("main:.github/workflows/{name}");
            let file = self.env.root().join("pushed.yml");
            fs::write(&file, self.env.git(&self.server(), &["show", &path])).unwrap();
            (name.to_owned(), yaml(&file))
        };
        names.lines().map(read).collect()
    }

    /// Runs each workflow of the default branch that an event starts there.
    pub(crate) fn starts(&self, event: &Event) -> BTreeMap<String, Run> {
        let pushed = self.pushed();
        let started = pushed.iter().filter(|(_, file)| is_started(file, event));
        let run = |(name, file): (&String, &Value)| (name.clone(), self.run_workflow(file, event));
        started.map(run).collect()
    }

    pub(crate) fn run_workflow(&self, workflow: &Value, event: &Event) -> Run {
        // What is told first is how it is; a run that is started again tells what is over.
        if event.attempt == 1 {
            if let Some(described) = event.payload.get("pull_request") {
                self.api.knows(described);
            }
            if let Some(described) = event.payload.get("issue") {
                self.api.knows_issue(described);
            }
        }
        let mut run = Run::default();
        let mut needs = Map::new();
        for (name, job) in workflow["jobs"].as_object().unwrap() {
            let declared = job["needs"].as_array().cloned();
            let declared = declared.unwrap_or_else(|| vec![job["needs"].clone()]);
            let mut needed = needs.clone();
            needed.retain(|name, _| declared.contains(&json!(name)));
            let (result, outputs) = self.job(workflow, job, event, &needed, &mut run);
            run.jobs.insert(name.clone(), result.clone());
            needs.insert(
                name.clone(),
                json!({ "result": result, "outputs": outputs }),
            );
        }
        run
    }

    fn job(
        &self,
        workflow: &Value,
        job: &Value,
        event: &Event,
        needs: &Map<String, Value>,
        run: &mut Run,
    ) -> (String, Value) {
        let number = self.folders.fetch_add(1, Ordering::Relaxed);
        let temp = self.env.root().join(format!("runner-{number}"));
        fs::create_dir(&temp).unwrap();
        fs::write(temp.join("event.json"), event.payload.to_string()).unwrap();
        let context = json!({
            "github": {
                "event": event.payload,
                "event_name": event.name,
                "server_url": format!("file://{}", self.env.root().display()),
                "repository": "owner/desk",
                "token": TOKEN,
                "run_id": event.run.to_string(),
                "run_attempt": event.attempt.to_string(),
                "action_repository": "",
            },
            "runner": { "temp": temp, "os": "Linux", "arch": "X64" },
            "env": workflow["env"],
            "secrets": { "HANDOFF_AGENT_KEY": KEY },
            "vars": { "HANDOFF_REPORT": "https://octo.github.io/desk/" },
            "needs": needs,
            "steps": {},
            "status": if needs.values().all(|n| n["result"] == "success") { "success" } else { "failure" },
        });
        let condition = job["if"].as_str().unwrap_or("success()");
        if !(asks_status(condition) || context["status"] == "success")
            || !holds(condition, &context)
        {
            return ("skipped".to_owned(), json!({}));
        }
        let mut here = Job {
            temp,
            event,
            context,
            later: BTreeMap::new(),
            path: Vec::new(),
            caches: Vec::new(),
            log: String::new(),
            summary: String::new(),
        };
        here.context["status"] = json!("success");
        self.steps(&job["steps"], &mut here);
        let result = here.context["status"].as_str().unwrap().to_owned();
        if result == "success" {
            for (key, folder) in &here.caches {
                self.keep(key, folder);
            }
        }
        let outputs = job["outputs"].as_object().into_iter().flatten();
        let outputs: Map<String, Value> = outputs
            .map(|(name, value)| {
                (
                    name.clone(),
                    expanded(value.as_str().unwrap(), &here.context).into(),
                )
            })
            .collect();
        run.log += &here.log;
        run.summary += &here.summary;
        (result, outputs.into())
    }

    fn steps(&self, steps: &Value, job: &mut Job<'_>) {
        for step in steps.as_array().unwrap() {
            let condition = step["if"].as_str().unwrap_or("success()");
            let id = step["id"].as_str().unwrap_or("");
            let runs = (asks_status(condition) || job.context["status"] == "success")
                && holds(condition, &job.context);
            let (outcome, outputs) = if !runs {
                ("skipped", json!({}))
            } else {
                match step["uses"].as_str() {
                    Some(action) => self.uses(action, step, job),
                    None => self.script(step, job),
                }
            };
            if outcome == "failure" {
                job.context["status"] = json!("failure");
            }
            if !id.is_empty() {
                job.context["steps"][id] = json!({ "outcome": outcome, "outputs": outputs });
            }
        }
    }

    fn uses(&self, action: &str, step: &Value, job: &mut Job<'_>) -> (&'static str, Value) {
        let with = |name: &str, job: &Job<'_>| {
            let value = step["with"][name].clone();
            value.as_str().map(|value| expanded(value, &job.context))
        };
        let name = action.split('@').next().unwrap();
        match name {
            "actions/cache" | "actions/cache/restore" => {
                let (path, key) = (with("path", job).unwrap(), with("key", job).unwrap());
                let before = with("restore-keys", job);
                let found = self.cached(&key, before.as_deref());
                if let Some(found) = &found {
                    copy(&found.join("kept"), Path::new(&path));
                }
                if name == "actions/cache" {
                    job.caches.push((key, path.into()));
                }
                let found = found.as_deref().and_then(Path::file_name);
                let found = found.map(|name| name.to_string_lossy());
                ("success", json!({ "cache-matched-key": found }))
            }
            "actions/cache/save" => {
                let (path, key) = (with("path", job).unwrap(), with("key", job).unwrap());
                self.keep(&key, Path::new(&path));
                ("success", json!({}))
            }
            "actions/upload-artifact" => {
                let path = PathBuf::from(with("path", job).unwrap());
                let kept = self.artifact(&with("name", job).unwrap());
                if path.is_dir() {
                    copy(&path, &kept);
                } else {
                    fs::create_dir_all(&kept).unwrap();
                    fs::copy(&path, kept.join(path.file_name().unwrap())).unwrap();
                }
                ("success", json!({}))
            }
            "actions/upload-pages-artifact" => {
                let path = PathBuf::from(with("path", job).unwrap());
                copy(&path, &self.artifact("github-pages"));
                ("success", json!({}))
            }
            "actions/deploy-pages" => {
                copy(
                    &self.artifact("github-pages"),
                    &self.env.root().join("pages"),
                );
                (
                    "success",
                    json!({ "page_url": "https://octo.github.io/desk/" }),
                )
            }
            "actions/download-artifact" => {
                let kept = self.artifact(&with("name", job).unwrap());
                copy(&kept, Path::new(&with("path", job).unwrap()));
                ("success", json!({}))
            }
            "actions/setup-node" => ("success", json!({})),
            "actions/checkout" => {
                assert_eq!(step["with"]["persist-credentials"], false);
                let folder = job.temp.join(with("path", job).unwrap());
                let args = ["clone", "-q", "-b", "main"];
                let (from, to) = (self.server(), folder.display().to_string());
                let from = from.display().to_string();
                let args = [&args[..], &[&*from, &*to]].concat();
                self.env.git(self.env.root(), &args);
                ("success", json!({}))
            }
            name if name.ends_with("/git-handoff/action") => self.own_action(step, job),
            other => panic!("{other} is not an action that these workflows use"),
        }
    }

    fn artifact(&self, name: &str) -> PathBuf {
        self.env.root().join("artifacts").join(name)
    }

    /// Keeps a folder under a key, which is never given to another.
    fn keep(&self, key: &str, folder: &Path) {
        let store = self.env.root().join("caches").join(key);
        if !store.exists() {
            fs::create_dir_all(&store).unwrap();
            copy(folder, &store.join("kept"));
        }
    }

    /// A cache of this key, or the newest that begins with the other.
    fn cached(&self, key: &str, before: Option<&str>) -> Option<PathBuf> {
        let store = self.env.root().join("caches");
        let exact = store.join(key);
        if exact.is_dir() {
            return Some(exact);
        }
        let before = before?.trim();
        let entries = fs::read_dir(store).ok()?.map(|entry| entry.unwrap());
        let mut fitting: Vec<_> = entries
            .filter(|entry| entry.file_name().to_str().unwrap().starts_with(before))
            .collect();
        fitting.sort_by_key(|entry| entry.metadata().unwrap().modified().unwrap());
        fitting.pop().map(|entry| entry.path())
    }

    /// The composite action of this project, each of its steps.
    pub(crate) fn own_action_alone(&self, with: Value) -> Run {
        let event = Event::new("workflow_dispatch", 1, json!({}));
        let step = json!({ "id": "handoff", "uses": "OWNER/git-handoff/action@0", "with": with });
        let workflow = json!({ "env": {} });
        let mut run = Run::default();
        let job = json!({
            "steps": [step],
            "outputs": { "state": "${{ steps.handoff.outputs.state }}", "gate": "${{ steps.handoff.outputs.gate }}", "holder": "${{ steps.handoff.outputs.holder }}" }
        });
        let (result, outputs) = self.job(&workflow, &job, &event, &Map::new(), &mut run);
        run.jobs.insert("job".to_owned(), result);
        run.log += &format!("outputs {outputs}\n");
        run
    }

    fn own_action(&self, step: &Value, job: &mut Job<'_>) -> (&'static str, Value) {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("action");
        let action = yaml(&root.join("action.yml"));
        let mut inputs = Map::new();
        for (name, input) in action["inputs"].as_object().unwrap() {
            let given = &step["with"][name];
            let value = if given.is_null() {
                input["default"].as_str().unwrap()
            } else {
                given.as_str().unwrap()
            };
            inputs.insert(name.clone(), expanded(value, &job.context).into());
        }
        for name in step["with"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, _)| name)
        {
            assert!(inputs.contains_key(name), "the action has no input {name}");
        }
        let outer = (job.context["steps"].take(), job.context["inputs"].take());
        job.context["steps"] = json!({});
        job.context["inputs"] = inputs.into();
        self.steps(&action["runs"]["steps"], job);
        let outputs = action["outputs"].as_object().unwrap().iter();
        let outputs: Map<String, Value> = outputs
            .map(|(name, output)| {
                let value = expanded(output["value"].as_str().unwrap(), &job.context);
                (name.clone(), value.into())
            })
            .collect();
        (job.context["steps"], job.context["inputs"]) = outer;
        if job.context["status"] == "success" {
            ("success", outputs.into())
        } else {
            ("failure", outputs.into())
        }
    }

    fn script(&self, step: &Value, job: &mut Job<'_>) -> (&'static str, Value) {
        let named = |name: &str| job.temp.join(name);
        for name in ["output", "summary", "env", "path"] {
            fs::write(named(name), "").unwrap();
        }
        let mut script = step["run"].as_str().unwrap().to_owned();
        assert!(!script.contains("${{"), "{script}");
        if let Some((name, line)) = &*self.sabotage.lock().unwrap()
            && step["name"] == name.as_str()
        {
            script = format!("{line}\n{script}");
        }
        let mut command = self.env.command("bash");
        let path = command
            .get_envs()
            .find(|(name, _)| *name == "PATH")
            .unwrap()
            .1
            .unwrap();
        let mut folders = job.path.clone();
        folders.push(self.env.root().join("bin").display().to_string());
        let path = format!("{}:{}", folders.join(":"), path.to_str().unwrap());
        let root = self.env.root().display().to_string();
        command
            .args(["--noprofile", "--norc", "-eo", "pipefail", "-c", &script])
            .current_dir(&job.temp)
            .env_remove("GIT_HANDOFF_WORKER")
            .env("PATH", path)
            .env("GITHUB_ACTIONS", "true")
            .env(
                "GITHUB_ACTION_PATH",
                Path::new(env!("CARGO_MANIFEST_DIR")).join("action"),
            )
            .env("GITHUB_EVENT_NAME", job.event.name)
            .env("GITHUB_EVENT_PATH", named("event.json"))
            .env("GITHUB_RUN_ID", job.event.run.to_string())
            .env("GITHUB_RUN_ATTEMPT", job.event.attempt.to_string())
            .env("GITHUB_REPOSITORY", "owner/desk")
            .env("GITHUB_SERVER_URL", format!("file://{root}"))
            .env("GITHUB_API_URL", self.api.url())
            .env("GITHUB_OUTPUT", named("output"))
            .env("GITHUB_STEP_SUMMARY", named("summary"))
            .env("GITHUB_ENV", named("env"))
            .env("GITHUB_PATH", named("path"))
            .env("RUNNER_TEMP", &job.temp)
            .env("RUNNER_OS", "Linux")
            .env("RUNNER_ARCH", "X64")
            .env("FAKE_GITHUB", self.env.root().join("github"))
            .envs(&job.later);
        for part in [&job.context["env"], &step["env"]] {
            for (name, value) in part.as_object().into_iter().flatten() {
                command.env(name, expanded(&text(value), &job.context));
            }
        }
        let ran = self.env.run(command, &[], None);
        job.log += &format!("## {}\n{}{}", text(&step["name"]), ran.stdout, ran.stderr);
        let read = |name: &str| fs::read_to_string(job.temp.join(name)).unwrap();
        job.path.extend(read("path").lines().map(str::to_owned));
        let later = values(&read("env"));
        job.later.extend(later);
        job.summary += &read("summary");
        let outputs: Map<String, Value> = values(&read("output"))
            .into_iter()
            .map(|(name, value)| (name, value.into()))
            .collect();
        match ran.status {
            0 => ("success", outputs.into()),
            _ => ("failure", outputs.into()),
        }
    }

    /// Everything that was written while it ran, apart from the events.
    pub(crate) fn written(&self) -> Vec<(PathBuf, Vec<u8>)> {
        files(self.env.root())
    }
}

/// Values as a step writes them: a line, or several between two words.
pub(crate) fn values(text: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let (name, value) = match line.split_once("<<") {
            Some((name, end)) if !name.contains('=') => {
                let value: Vec<&str> = lines.by_ref().take_while(|line| *line != end).collect();
                (name, value.join("\n"))
            }
            _ => {
                let (name, value) = line.split_once('=').unwrap();
                (name, value.to_owned())
            }
        };
        found.insert(name.to_owned(), value);
    }
    found
}

/// Every file below a folder.
pub(crate) fn files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_symlink() {
            continue;
        }
        if path.is_dir() {
            found.extend(files(&path))
        } else {
            found.push((path.clone(), fs::read(&path).unwrap_or_default()))
        }
    }
    found
}

/// Whether an event starts a workflow, by its name, what it is about, and which workflow ran.
pub(crate) fn is_started(workflow: &Value, event: &Event) -> bool {
    // YAML takes the key `on` for true.
    let Some(when) = workflow["true"].get(event.name) else {
        return false;
    };
    let lists = |name: &str, value: &Value| {
        let all = when[name].as_array();
        all.is_none_or(|all| all.contains(value))
    };
    lists("types", &event.payload["action"])
        && lists("workflows", &event.payload["workflow_run"]["name"])
}

/// Whether a condition says itself for which status it holds; otherwise for success.
fn asks_status(condition: &str) -> bool {
    let functions = ["always()", "failure()", "success()"];
    functions.iter().any(|f| condition.contains(f))
}

fn holds(condition: &str, context: &Value) -> bool {
    let inner = condition.trim();
    let inner = inner
        .strip_prefix("${{")
        .and_then(|c| c.strip_suffix("}}"))
        .unwrap_or(inner);
    expression::is_true(&evaluate(inner, context))
}

fn copy(from: &Path, to: &Path) {
    if !from.exists() {
        return;
    }
    let _ = fs::remove_dir_all(to);
    fs::create_dir_all(to.parent().unwrap()).unwrap();
    let done = std::process::Command::new("cp")
        .arg("-a")
        .args([from, to])
        .status()
        .unwrap();
    assert!(done.success());
}
