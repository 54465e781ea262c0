//! The clock, the environment and the user's name, for recorded steps. What a terminal or a
//! collector needs from the environment is read elsewhere.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::hash::{BuildHasher, RandomState};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::rc::Rc;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use chrono::{DateTime, FixedOffset, Local};
use handoff::base::Moment;
use handoff::base::ids::{HandoffId, IdError, WorkerId};
use handoff::base::text::{quoted, word};
use handoff::git::{Person, Pins, Repository, Surroundings};
use handoff::ledger::{Clock, Session};
use handoff::model::{Host, NoTraceParent, TraceParent};

use crate::failure::{ErrorCode, Failure, chain};

/// The project folder that a harness sets.
pub fn project_of_harness() -> Option<PathBuf> {
    let folder = env::var_os("CLAUDE_PROJECT_DIR")?;
    Some(PathBuf::from(folder))
}

/// The system's clock, overridden by `GIT_AUTHOR_DATE` and `GIT_COMMITTER_DATE`.
pub struct SystemClock {
    author: Option<DateTime<FixedOffset>>,
    committer: Option<DateTime<FixedOffset>>,
}

impl SystemClock {
    /// Reads the environment.
    ///
    /// # Errors
    /// A usage [`Failure`] for a date that git can't parse, or a clock outside of git's range.
    pub fn from_environment() -> Result<Self, Failure> {
        let clock = Self {
            author: date("GIT_AUTHOR_DATE")?,
            committer: date("GIT_COMMITTER_DATE")?,
        };
        let system = local_time();
        if can_be_recorded(&system) {
            return Ok(clock);
        }
        let told = format!("the system's clock says {system}, which git can't record");
        Err(Failure::usage(told).hint("set the clock"))
    }

    /// The earlier of a step's time and its recording's: a deadline has passed when both say so.
    pub fn earlier(&self) -> DateTime<FixedOffset> {
        self.author().min(self.committer())
    }
}

/// The date in an environment variable, if it is set.
fn date(name: &str) -> Result<Option<DateTime<FixedOffset>>, Failure> {
    let Some(text) = env::var(name).ok().filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    let date = parse_date(&text).filter(can_be_recorded);
    date.map(Some).ok_or_else(|| {
        let told = format!("{name} is {}, which is not a date", quoted(&text));
        Failure::usage(told)
            .hint("write it as 2026-03-04T05:06:07Z, or as seconds and zone: 1772600767 +0000")
    })
}

impl Clock for SystemClock {
    fn author(&self) -> DateTime<FixedOffset> {
        self.author.unwrap_or_else(local_time)
    }

    fn committer(&self) -> DateTime<FixedOffset> {
        self.committer.unwrap_or_else(local_time)
    }
}

/// The local time. (`Local::now` panics before 1970.)
fn local_time() -> DateTime<FixedOffset> {
    DateTime::<Local>::from(SystemTime::now()).fixed_offset()
}

/// Whether git accepts this date in a commit: since 1970, with a four-digit year.
fn can_be_recorded(at: &DateTime<FixedOffset>) -> bool {
    const YEAR_10000: i64 = 253_402_300_800;
    (0..YEAR_10000).contains(&at.timestamp())
}

/// Parses a date like git: common forms here, others by running git.
fn parse_date(text: &str) -> Option<DateTime<FixedOffset>> {
    let text = text.trim();
    let known = raw_date(text)
        .or_else(|| DateTime::parse_from_rfc3339(text).ok())
        .or_else(|| DateTime::parse_from_rfc2822(text).ok());
    known.or_else(|| {
        let mut git = Command::new("git");
        git.args(["var", "GIT_COMMITTER_IDENT"]);
        git.env("GIT_COMMITTER_DATE", text);
        git.envs([("GIT_COMMITTER_NAME", "x"), ("GIT_COMMITTER_EMAIL", "x")]);
        let output = git.output().ok().filter(|ran| ran.status.success())?;
        let ident = String::from_utf8(output.stdout).ok()?;
        raw_date(ident.trim().rsplit_once("> ")?.1)
    })
}

/// Parses git's raw date: `seconds zone`, with or without `@`.
fn raw_date(text: &str) -> Option<DateTime<FixedOffset>> {
    let raw = text.strip_prefix('@').unwrap_or(text);
    let (seconds, zone) = raw.split_once(' ').unwrap_or((raw, "+0000"));
    let zone: FixedOffset = zone.parse().ok()?;
    let at = DateTime::from_timestamp(seconds.parse().ok()?, 0)?;
    Some(at.with_timezone(&zone))
}

/// The committer by git's rules; `None` without a name or an address. In a workflow, the person who
/// started the run.
fn identity(repository: &Repository) -> Option<(String, String)> {
    let given = |name: &str| env::var(name).ok().filter(|text| !text.trim().is_empty());
    let configured = |key: &str| {
        repository
            .config(key)
            .filter(|text| !text.trim().is_empty())
    };
    let actor = || given("GITHUB_ACTOR").filter(|_| is_in_workflow());
    let name = given("GIT_COMMITTER_NAME")
        .or_else(|| configured("committer.name"))
        .or_else(|| configured("user.name"))
        .or_else(actor);
    let email = given("GIT_COMMITTER_EMAIL")
        .or_else(|| configured("committer.email"))
        .or_else(|| configured("user.email"))
        .or_else(|| given("EMAIL"))
        .or_else(|| actor().map(|actor| format!("{actor}@users.noreply.github.com")));
    let user = || given("USER").or_else(|| given("LOGNAME"));
    Some((name.or_else(user)?, email?))
}

/// The webhook URL in the environment.
pub fn webhook() -> Option<String> {
    env::var("GIT_HANDOFF_WEBHOOK")
        .ok()
        .filter(|url| !url.trim().is_empty())
}

/// The worker id in the environment.
pub fn worker() -> Option<String> {
    env::var("GIT_HANDOFF_WORKER")
        .ok()
        .filter(|id| !id.is_empty())
}

/// The environment variable that marks an agent's processes.
pub const MARK: &str = "GIT_HANDOFF_RUN";

/// The run of `work` that this process belongs to.
pub struct Run {
    /// The handoff that it works on.
    pub id: HandoffId,
    /// The file in which to leave its contract.
    pub contract: PathBuf,
    /// The branch that it works on.
    pub branch: Option<String>,
}

/// The run of `work` that this process belongs to, if any.
pub fn run_of_work() -> Option<Run> {
    let contract = env::var_os("GIT_HANDOFF_CONTRACT").filter(|path| !path.is_empty())?;
    Some(Run {
        id: env::var("GIT_HANDOFF_ID").ok()?.parse().ok()?,
        contract: PathBuf::from(contract),
        branch: env::var("GIT_HANDOFF_BRANCH").ok(),
    })
}

/// The worker id of a GitHub workflow run, if this is one.
///
/// # Errors
/// A usage [`Failure`] if the run's id is malformed.
pub fn workflow_worker() -> Result<Option<WorkerId>, Failure> {
    let given = |name: &str| env::var(name).ok().filter(|text| !text.is_empty());
    let Some(run) = given("GITHUB_RUN_ID") else {
        return Ok(None);
    };
    let attempt = given("GITHUB_RUN_ATTEMPT").map(|attempt| format!("-{attempt}"));
    let id = format!("github-run-{run}{}", attempt.unwrap_or_default());
    let id = id.parse().map_err(|error: IdError| {
        Failure::from(error).hint("it comes from GITHUB_RUN_ID; --worker ID names another")
    });
    id.map(Some)
}

/// The session for a write, from the environment.
///
/// # Errors
/// A [`Failure`] of usage if the environment sets an invalid date, and one of the environment if git
/// knows no name or address.
pub fn session(repository: &Repository) -> Result<Session, Failure> {
    let sign = repository.wants_signatures().map_err(|error| {
        Failure::new(ErrorCode::SigningFailed, chain(&error))
            .hint("nothing was written; set handoff.sign or commit.gpgSign to true or false")
    })?;
    let (name, email) = identity(repository).ok_or_else(|| {
        let text = "git does not know who you are: no name or no e-mail address is set";
        Failure::new(ErrorCode::NoIdentity, text).hint(
            "nothing was written; run `git config user.name NAME` and `git config user.email ADDRESS`, with --global for all repositories",
        )
    })?;
    Ok(Session {
        sign,
        name,
        email,
        ..reader()?
    })
}

/// The session for a command that writes no step.
///
/// # Errors
/// A [`Failure`] of usage if the environment sets an invalid date.
pub fn reader() -> Result<Session, Failure> {
    let jitter = |below: u64| RandomState::new().hash_one(below) % below.max(1);
    let clock = Rc::new(SystemClock::from_environment()?);
    Ok(Session {
        patience: Duration::ZERO,
        quarantined: is_set(&QUARANTINE),
        is_run: env::var_os(MARK).is_some(),
        ..Session::new(clock, ("", ""), SystemTime::now, jitter)
    })
}

/// The trace context in the environment, if there is one.
///
/// # Errors
/// A message about an invalid `TRACEPARENT`.
pub fn traceparent() -> Result<Option<TraceParent>, String> {
    let text = env::var_os("TRACEPARENT").filter(|text| !text.is_empty());
    let Some(text) = text else { return Ok(None) };
    let text = text.to_string_lossy();
    let parsed = text.parse().map(Some);
    parsed.map_err(|error: NoTraceParent| {
        format!("TRACEPARENT is ignored: {} is {error}", quoted(&text))
    })
}

/// The service name for traces.
pub fn service_name() -> String {
    let named = env::var("OTEL_SERVICE_NAME").ok();
    let named = named.filter(|name| !name.trim().is_empty());
    named.unwrap_or_else(|| "git-handoff".to_owned())
}

/// Variables that git sets while a push's objects are in quarantine.
const QUARANTINE: [&str; 2] = ["GIT_QUARANTINE_PATH", "GIT_OBJECT_DIRECTORY"];

/// Whether this process seems to run within another git command, usually as a hook.
pub fn is_within_git() -> bool {
    is_set(&QUARANTINE) || is_set(&["GIT_DIR", "GIT_INDEX_FILE"])
}

/// The environment's overrides of git's settings for the repository.
pub fn surroundings() -> Surroundings {
    Surroundings {
        name_repository: is_set(&["GIT_DIR"]),
        work_tree: env::var_os("GIT_WORK_TREE").map(PathBuf::from),
        name_objects: is_set(&["GIT_OBJECT_DIRECTORY"]),
        change_settings: is_set(&["GIT_CONFIG_COUNT", "GIT_CONFIG_PARAMETERS"])
            || env::var_os("GIT_CONFIG_GLOBAL").is_some_and(|file| file.is_empty() || has_second()),
        pinned: env::var(PINNED).ok().and_then(|all| {
            let (settings, addresses) = serde_json::from_str(&all).ok()?;
            Some(Pins {
                settings,
                addresses,
            })
        }),
    }
}

/// The variable with what a worker pins for its own commands, as JSON: settings and addresses.
const PINNED: &str = "GIT_HANDOFF_PINNED";

/// Pins what git runs, trusts and pushes to now, for this process and the commands that get
/// [`pinned_variable`].
///
/// # Errors
/// A [`Failure`] when git can't read its configuration.
pub fn pin_programs(repository: &Repository) -> Result<(), Failure> {
    let given = |name: &str| env::var(name).unwrap_or_default();
    let ssh = Some(given("GIT_SSH")).filter(|ssh| !ssh.is_empty());
    let ssh = ssh.map_or_else(|| "ssh".to_owned(), |ssh| word(&ssh).into_owned());
    handoff::git::pin(handoff::git::programs(
        repository,
        &ssh,
        &given("SSH_ASKPASS"),
    )?);
    Ok(())
}

/// The variable that passes on to a command of the program what is pinned, if anything is.
pub fn pinned_variable() -> Option<(&'static str, String)> {
    let pins = handoff::git::pins()?;
    let both = serde_json::json!([pins.settings, pins.addresses]);
    Some((PINNED, both.to_string()))
}

/// Whether the user's second global configuration exists, which git ignores if `GIT_CONFIG_GLOBAL`
/// is set.
fn has_second() -> bool {
    let folder = folder("XDG_CONFIG_HOME").or_else(|| Some(home()?.join(".config")));
    folder.is_some_and(|folder| folder.join("git/config").exists())
}

/// Whether one of these variables is set.
pub fn is_set(names: &[&str]) -> bool {
    names.iter().any(|name| env::var_os(name).is_some())
}

/// The time by which everything is shown and judged.
///
/// # Errors
/// A [`Failure`] of usage if the environment sets an invalid date.
pub fn now() -> Result<Moment, Failure> {
    Ok(Moment::from(SystemClock::from_environment()?.earlier()))
}

/// The system's time, regardless of the environment.
pub fn system_time() -> Moment {
    SystemTime::now().into()
}

/// The index that git passes to a hook, if it is not the repository's own.
pub fn index() -> Option<PathBuf> {
    let named = env::var_os("GIT_INDEX_FILE");
    named.filter(|name| !name.is_empty()).map(PathBuf::from)
}

/// Whether an editor was used for a message passed to a hook: if not, git sets GIT_EDITOR to `:`.
pub fn is_edited() -> bool {
    env::var_os("GIT_EDITOR").is_none_or(|editor| editor != ":")
}

/// The author of the commit under way, as git passes it to hooks.
///
/// # Errors
/// A [`Failure`] of usage if the environment sets an invalid date.
pub fn author(repository: &Repository) -> Result<Person, Failure> {
    let given = |name: &str| env::var(name).ok().filter(|text| !text.trim().is_empty());
    let (name, email) = (given("GIT_AUTHOR_NAME"), given("GIT_AUTHOR_EMAIL"));
    let own = |what: &str| {
        let author = repository.config(&format!("author.{what}"));
        let own = author.or_else(|| repository.config(&format!("user.{what}")));
        own.unwrap_or_default()
    };
    Ok(Person::new(
        &name.unwrap_or_else(|| own("name")),
        &email.unwrap_or_else(|| own("email")),
        SystemClock::from_environment()?.author(),
    ))
}

/// The versions of this program and of git, if it is installed.
pub fn tools() -> BTreeMap<String, String> {
    let own = ("git-handoff", env!("CARGO_PKG_VERSION").to_owned());
    let output = Command::new("git").arg("--version").output().ok();
    let git = output.and_then(|answer| {
        let text = String::from_utf8_lossy(&answer.stdout).into_owned();
        Some(("git", text.trim().strip_prefix("git version ")?.to_owned()))
    });
    let known = std::iter::once(own).chain(git);
    known
        .map(|(name, version)| (name.to_owned(), version))
        .collect()
}

/// Where processes started by git find a program: in git's own folder first, then on the PATH.
pub fn found_on_path(program: &str, own_folder: PathBuf) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    found_in(
        program,
        std::iter::once(own_folder).chain(env::split_paths(&path)),
    )
}

/// Where a shell finds a program; a path is relative to this folder.
pub fn found_by_shell(program: &str) -> Option<PathBuf> {
    if program.contains('/') {
        let path = std::path::absolute(program).ok();
        return path.filter(|path| is_program(path));
    }
    let path = env::var_os("PATH").unwrap_or_default();
    found_in(program, env::split_paths(&path))
}

/// The version that another copy of this program reports.
pub fn version_of(program: &Path) -> Option<String> {
    let answer = Command::new(program).arg("--version").output().ok()?;
    let text = String::from_utf8_lossy(&answer.stdout).into_owned();
    Some(text.trim().rsplit_once(' ')?.1.to_owned())
}

/// The version output of a foreign program, if it responds soon.
pub fn version_text(program: &Path) -> Option<String> {
    const PATIENCE: Duration = Duration::from_secs(10);
    const PAUSE: Duration = Duration::from_millis(20);
    let mut command = Command::new(program);
    command.arg("--version").stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().ok()?;
    let until = Instant::now() + PATIENCE;
    while child.try_wait().ok()?.is_none() {
        if Instant::now() > until {
            child.kill().ok()?;
            child.wait().ok()?;
            return None;
        }
        thread::sleep(PAUSE);
    }
    let mut bytes = [0; 1 << 12];
    // Not to the end: a child process may keep the pipe open.
    let length = child.stdout?.read(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes[..length]).trim().to_owned())
}

/// The program's version.
pub fn own_version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

/// This process's environment variables, for child processes.
pub fn variables() -> impl Iterator<Item = (OsString, OsString)> {
    std::env::vars_os()
}

/// The user's home folder.
pub fn home() -> Option<PathBuf> {
    env::var_os("HOME")
        .filter(|home| !home.is_empty())
        .map(PathBuf::from)
}

/// The folder in an environment variable.
pub fn folder(variable: &str) -> Option<PathBuf> {
    let folder = env::var_os(variable).filter(|folder| !folder.is_empty())?;
    Some(PathBuf::from(folder))
}

fn found_in(program: &str, folders: impl Iterator<Item = PathBuf>) -> Option<PathBuf> {
    let mut files = folders.map(|folder| {
        let file = folder.join(program);
        match env::consts::EXE_EXTENSION {
            "" => file,
            extension => file.with_extension(extension),
        }
    });
    files.find(|file| is_program(file))
}

#[cfg(unix)]
fn is_program(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    file.metadata()
        .is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_program(file: &Path) -> bool {
    file.is_file()
}

/// A random number from 0 to 1000.
pub fn drawn() -> u32 {
    u32::try_from(RandomState::new().hash_one(()) % 1001).unwrap_or(0)
}

/// An unguessable word: 32 hexadecimal digits.
pub fn random_word() -> String {
    let drawn = || RandomState::new().hash_one(());
    format!("{:016x}{:016x}", drawn(), drawn())
}

/// Whether this runs in a GitHub workflow, which parses its log for commands.
pub fn is_in_workflow() -> bool {
    env::var_os("GITHUB_ACTIONS").is_some_and(|value| value == "true")
}

/// The host name.
pub fn host() -> Host {
    let given = |name: &str| env::var(name).ok();
    let known = |path: &str| std::fs::read_to_string(path).ok();
    let name = given("HOSTNAME")
        .or_else(|| given("COMPUTERNAME"))
        .or_else(|| known("/proc/sys/kernel/hostname"))
        .or_else(|| known("/etc/hostname"));
    Host {
        name: name
            .map(|name| name.trim().to_owned())
            .filter(|name| !name.is_empty()),
        os: env::consts::OS.to_owned(),
        arch: env::consts::ARCH.to_owned(),
    }
}

/// The new name, if the parent git command renames a branch and the system reveals its arguments.
#[cfg(target_os = "linux")]
pub fn renamed_to() -> Option<String> {
    /// The maximum number of shells and hook managers between a hook and git.
    const MOST: usize = 8;
    let mut process = std::os::unix::process::parent_id().to_string();
    for _ in 0..MOST {
        let folder = Path::new("/proc").join(&process);
        let line = std::fs::read(folder.join("cmdline")).ok()?;
        let line = String::from_utf8_lossy(&line).into_owned();
        let words: Vec<&str> = line.trim_end_matches('\0').split('\0').collect();
        if let Some(name) = new_name(&words) {
            return Some(name.to_owned());
        }
        let status = std::fs::read_to_string(folder.join("status")).ok()?;
        let above = status.lines().find_map(|line| line.strip_prefix("PPid:"))?;
        process = above.trim().to_owned();
    }
    None
}

/// Other systems do not reveal another process's arguments.
#[cfg(not(target_os = "linux"))]
pub fn renamed_to() -> Option<String> {
    None
}

/// The new name in a command that renames a branch: `git branch -m [OLD] NEW`.
#[cfg(any(test, target_os = "linux"))]
fn new_name<'a>(words: &[&'a str]) -> Option<&'a str> {
    let (program, words) = words.split_first()?;
    let words = match Path::new(program).file_name()?.to_str()? {
        "git" => &words[words.iter().position(|word| *word == "branch")? + 1..],
        "git-branch" => words,
        _ => return None,
    };
    let end = words.iter().position(|word| *word == "--");
    let (options, names) = words.split_at(end.unwrap_or(words.len()));
    let moves = |word: &&str| match word.strip_prefix("--") {
        // git accepts abbreviated options.
        Some(long) => long.len() > 1 && "move".starts_with(long),
        None => word.starts_with('-') && word.contains(['m', 'M']),
    };
    if !options.iter().any(moves) {
        return None;
    }
    let names = names.iter().skip(1);
    let plain = options.iter().filter(|word| !word.starts_with('-'));
    plain.chain(names).last().copied()
}

#[cfg(test)]
mod tests {
    use super::{new_name, parse_date};

    #[test]
    fn a_branchs_new_name_is_read_from_the_command() {
        for (line, name) in [
            ("git branch -M work ledger", Some("ledger")),
            (
                "/usr/bin/git -C branch branch --move --force ledger",
                Some("ledger"),
            ),
            ("git branch work ledger -fm", Some("ledger")),
            (
                "/usr/lib/git-core/git-branch --mov -- work ledger",
                Some("ledger"),
            ),
            ("git branch -D work ledger", None),
            ("git branch --merged ledger", None),
            ("sh -c branch -m ledger", None),
            ("git update-ref -m branch", None),
            ("", None),
        ] {
            let words: Vec<&str> = line.split(' ').collect();
            assert_eq!(new_name(&words), name, "{line}");
        }
    }

    #[test]
    fn dates_are_read_as_git_reads_them() {
        for text in [
            "@1772600767 +0100",
            "1772600767 +0100",
            "2026-03-04T06:06:07+01:00",
            "2026-03-04 06:06:07 +0100",
            "Wed, 4 Mar 2026 06:06:07 +0100",
            "Wed Mar 4 06:06:07 2026 +0100",
            "04.03.2026 06:06:07 +0100",
        ] {
            let at = parse_date(text).map(|at| at.timestamp());
            assert_eq!(at, Some(1_772_600_767), "{text}");
        }
        for text in ["tomorrow", "@", "99999999999999999999 +0000"] {
            assert!(parse_date(text).is_none(), "{text}");
        }
    }
}
