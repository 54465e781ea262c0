//! Recognizes by the end of a run that it could not take place, or that a person must decide
//! something. Profiles define the phrases of their programs.

use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::time::Duration;

use handoff::base::Moment;
use handoff::base::text::one_line;
use regex::{Captures, Regex};
use serde::Deserialize;
use serde_json::Value;

use super::documents::{Found, Picked, PlaceSet, Splitter};
use super::usage::{Places, ensure_places, ensure_when, fits};

/// The exit code by which any command asks for a retry (`EX_TEMPFAIL`).
const TRY_LATER: i32 = 75;

/// The maximum length of a reason, in characters.
const LONGEST: usize = 500;

/// How many lines at the end of the output are searched.
const SEARCHED: usize = 12;

/// The maximum output of a program that refuses its options, in bytes.
const REFUSAL: usize = 16 * 1024;

/// The maximum wait that a program may ask for.
const LONGEST_WAIT: Duration = Duration::from_secs(7 * 24 * 3600);

/// Why a run could not take place; its work did not fail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unavailable {
    /// The reason in the program's words, on one line: `429: rate limited`.
    pub reason: String,
    /// When to retry, if the program says so.
    pub retry_after: Option<Duration>,
    /// Whether the obstacle passes by itself, as when the provider is busy.
    pub passes: bool,
}

/// What a person has to decide.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// The tool and the command that was denied, or the line with the question.
    pub text: String,
    /// The line for the file of roles that allows it.
    pub rule: Option<String>,
}

/// A regular expression of a profile, compiled when needed.
#[derive(Clone, Debug, Deserialize)]
#[serde(from = "String")]
pub(super) struct Pattern {
    text: String,
    compiled: OnceLock<Option<Regex>>,
}

impl From<String> for Pattern {
    fn from(text: String) -> Self {
        Self {
            text,
            compiled: OnceLock::new(),
        }
    }
}

impl Pattern {
    /// Checks that the expression is valid.
    pub(super) fn ensure(&self) -> Result<(), String> {
        let compiled = Regex::new(&self.text);
        // The error shows the expression and the position.
        compiled.map(drop).map_err(|error| error.to_string())
    }

    fn regex(&self) -> Option<&Regex> {
        let compiled = self.compiled.get_or_init(|| Regex::new(&self.text).ok());
        compiled.as_ref()
    }

    pub(super) fn find<'a>(&self, text: &'a str) -> Option<regex::Match<'a>> {
        self.regex()?.find(text)
    }

    fn captures<'a>(&self, text: &'a str) -> Option<Captures<'a>> {
        self.regex()?.captures(text)
    }

    pub(super) fn all<'a>(&'a self, text: &'a str) -> impl Iterator<Item = Captures<'a>> {
        let regex = self.regex().into_iter();
        regex.flat_map(|regex| regex.captures_iter(text))
    }
}

/// How a program shows that it can't work now: in the last JSON document of its output or, if no
/// places are given, in one of its last lines.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Sign {
    /// The values that the document must have, by place.
    #[serde(default)]
    when: BTreeMap<String, Value>,
    /// The place of the HTTP status.
    status: Option<String>,
    /// The places of the message; the first existing one counts.
    #[serde(default)]
    reason: Places,
    /// The place of the seconds to wait, or of the time to retry.
    retry_after: Option<String>,
    /// Patterns of which one has to match the message; their groups `status` and `reason` are used.
    #[serde(default)]
    patterns: Vec<Pattern>,
}

/// How a program shows that it was denied something.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Denial {
    /// The values that a document must have, by place; without any, the text is searched.
    #[serde(default)]
    when: BTreeMap<String, Value>,
    /// The place of the tool's name.
    tool: Option<String>,
    /// The places of the denied command; the first existing one counts.
    #[serde(default)]
    command: Places,
    /// With `when`: the place of the message that the pattern has to match.
    said: Option<String>,
    /// The pattern; in a text, its groups `tool` and `command` are used.
    pattern: Option<Pattern>,
}

/// The tool and the command that were denied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Denied {
    pub(super) tool: String,
    pub(super) command: Option<String>,
}

impl Sign {
    pub(super) fn ensure(&self) -> Result<(), String> {
        ensure_when(&self.when)?;
        let named = [&self.status, &self.retry_after];
        ensure_places(self.reason.all().iter().chain(named.into_iter().flatten()))?;
        self.patterns.iter().try_for_each(Pattern::ensure)?;
        if self.when.is_empty() && self.status.is_none() && self.patterns.is_empty() {
            return Err("unavailable takes `when`, `status` or `patterns`".to_owned());
        }
        Ok(())
    }

    fn is_of_document(&self) -> bool {
        !self.when.is_empty() || self.status.is_some() || !self.reason.all().is_empty()
    }

    fn insert_places(&self, set: &mut PlaceSet) {
        let named = [&self.status, &self.retry_after];
        let places = self.when.keys().chain(self.reason.all());
        for place in places.chain(named.into_iter().flatten()) {
            set.insert(place);
        }
    }

    fn in_document(&self, document: &Picked, now: Moment) -> Option<Unavailable> {
        if !self.is_of_document() || !fits(&self.when, document) {
            return None;
        }
        let scalar = |place: &String| document.at(place)?.scalar().map(plain);
        let status = self.status.as_ref().and_then(scalar);
        let said = self.reason.all().iter().find_map(scalar);
        let wait = self.retry_after.as_ref().and_then(scalar);
        let wait = wait.and_then(|text| waiting_time(&text, now));
        self.told(&said.unwrap_or_default(), status, wait, now)
    }

    fn in_line(&self, line: &str, now: Moment) -> Option<Unavailable> {
        if self.is_of_document() {
            return None;
        }
        self.told(line, None, None, now)
    }

    fn told(
        &self,
        said: &str,
        status: Option<String>,
        wait: Option<Duration>,
        now: Moment,
    ) -> Option<Unavailable> {
        let found = self
            .patterns
            .iter()
            .find_map(|pattern| pattern.captures(said));
        if found.is_none() && !self.patterns.is_empty() {
            return None;
        }
        let status = status.or_else(|| group(found.as_ref(), "status"));
        let must_have = self.status.is_some();
        if !status.as_deref().map_or(!must_have, passes) {
            return None;
        }
        let reason = group(found.as_ref(), "reason").unwrap_or_else(|| said.to_owned());
        Some(Unavailable {
            retry_after: wait
                .or_else(|| asked_to_wait(said, now))
                .map(|wait| wait.min(LONGEST_WAIT)),
            reason: reason_of(status.as_deref(), &reason),
            passes: status.as_deref().is_some_and(is_busy),
        })
    }
}

/// A value without quotes.
fn plain(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

fn group(found: Option<&Captures<'_>>, name: &str) -> Option<String> {
    let text = found?.name(name)?.as_str().trim();
    Some(text.to_owned()).filter(|text| !text.is_empty())
}

/// A custom command's last line if its provider is busy.
const BUSY: &str = r"(?i)\b(?<status>429|503|529)\b.*\b(?:too many requests|unavailable|overloaded|rate.?limit)|\b(?:too many requests|overloaded_error|rate.?limited|rate.?limit (?:was )?(?:exceeded|reached))\b";

/// Whether an HTTP status means that the run could not take place: a later retry or another login
/// may help.
fn passes(status: &str) -> bool {
    matches!(
        status,
        "401" | "402" | "403" | "407" | "408" | "425" | "429" | "500" | "502" | "503" | "504"
    ) || status.len() == 3 && status.starts_with("52")
}

/// Whether an HTTP status says that the provider is busy now.
fn is_busy(status: &str) -> bool {
    matches!(status, "408" | "425" | "429") || status.starts_with('5')
}

fn reason_of(status: Option<&str>, reason: &str) -> String {
    let reason = one_line(reason.trim());
    let text = match status {
        Some(status) if reason.is_empty() => status.to_owned(),
        Some(status) if !reason.contains(status) => format!("{status}: {reason}"),
        _ => reason,
    };
    text.chars().take(LONGEST).collect()
}

/// How long a text asks to wait: `try again in 3 hours`, `retry after 34s`.
fn asked_to_wait(said: &str, now: Moment) -> Option<Duration> {
    const ASKED: &str = r"(?i)\b(?:try again|retry|retrying|resets?|reset)[ -]?(?:in|after|at)[:= ]+(?<time>[^,;()]+)";
    // A time in seconds since 1970, at which a limit ends.
    const EPOCH: &str = r"\|(?<time>\d{10})\b";
    [ASKED, EPOCH].into_iter().find_map(|pattern| {
        let found = Regex::new(pattern).ok()?.captures(said)?;
        waiting_time(&found["time"], now)
    })
}

/// Parses a wait: seconds, a number with a unit, or the moment of its end.
fn waiting_time(text: &str, now: Moment) -> Option<Duration> {
    let text = text.trim();
    let until = |end: Moment| (end - now).to_std().ok();
    if let Ok(end) = chrono::DateTime::parse_from_rfc3339(text)
        .or_else(|_| chrono::DateTime::parse_from_rfc2822(text))
    {
        return until(end.into());
    }
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.');
    let (number, unit) = text.split_at(digits.unwrap_or(text.len()));
    let number: f64 = number.trim_end_matches('.').parse().ok()?;
    if number >= 1e9 {
        #[expect(clippy::cast_possible_truncation, reason = "a number of ten digits")]
        let seconds = number.min(1e10) as i64;
        return until(Moment::from_timestamp_millis(seconds * 1000)?);
    }
    let unit = unit.split_whitespace().next().unwrap_or_default();
    let seconds = match unit.trim_end_matches('.').to_ascii_lowercase().as_str() {
        "" | "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
        "ms" | "milliseconds" => 0.001,
        "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
        "h" | "hour" | "hours" => 3600.0,
        "d" | "day" | "days" => 86_400.0,
        _ => return None,
    };
    Duration::try_from_secs_f64(number * seconds).ok()
}

/// Why a run could not take place, if its end says so.
pub(super) fn unavailable(
    signs: &[Sign],
    command: &[String],
    (exit, tail): (Option<i32>, &str),
    now: Moment,
) -> Option<Unavailable> {
    if exit == Some(0) {
        return None;
    }
    let mut lines = tail.lines().map(str::trim).filter(|line| !line.is_empty());
    let last: Vec<&str> = lines.by_ref().rev().take(SEARCHED).collect();
    let mut places = PlaceSet::default();
    signs
        .iter()
        .for_each(|sign| sign.insert_places(&mut places));
    let document = documents(tail, &places).pop();
    let in_document = || {
        let document = document.as_ref()?;
        signs
            .iter()
            .find_map(|sign| sign.in_document(document, now))
    };
    let in_line = || {
        let of_line = |line: &&str| signs.iter().find_map(|sign| sign.in_line(line, now));
        last.iter().find_map(of_line)
    };
    let told = in_document().or_else(in_line);
    if told.is_some() {
        return told;
    }
    if exit == Some(TRY_LATER) {
        let line = last.first().copied().unwrap_or_default();
        let said = format!("exit {TRY_LATER}: {line}");
        return Some(Unavailable {
            reason: reason_of(None, said.trim_end_matches([':', ' '])),
            retry_after: asked_to_wait(line, now),
            passes: false,
        });
    }
    // A custom command has no signs of its own: search for common phrases.
    if signs.is_empty()
        && let Some(line) = last.first()
        && let Some(found) = Regex::new(BUSY).ok().and_then(|busy| busy.captures(line))
    {
        return Some(Unavailable {
            reason: reason_of(group(Some(&found), "status").as_deref(), line),
            retry_after: asked_to_wait(line, now),
            passes: true,
        });
    }
    // Only if there is no other output of note: the program has done nothing else.
    (tail.len() <= REFUSAL && document.is_none())
        .then(|| refused_option(command, tail))
        .flatten()
}

/// The reason if a program does not know an option that it was given: it is too old, or another
/// program.
fn refused_option(command: &[String], output: &str) -> Option<Unavailable> {
    const REFUSED: &str = r#"(?i)(?:unknown|unexpected|unrecognized|invalid) (?:option|argument|flag)s?:? ?['"`]?(?<option>[\w-]+)"#;
    let pattern = Regex::new(REFUSED).ok()?;
    let bare = |word: &str| {
        word.trim_start_matches('-')
            .split('=')
            .next()
            .map(str::to_owned)
    };
    let has = |option: &str| {
        let mut options = command.iter().filter(|word| word.starts_with('-'));
        options.any(|word| bare(word) == bare(option))
    };
    let line = output.lines().find(|line| {
        let found = pattern.captures(line);
        found.is_some_and(|found| has(&found["option"]))
    })?;
    let program = program(command);
    Some(Unavailable {
        reason: reason_of(
            None,
            &format!(
                "{program} refuses an option of its profile; another version may know it: {line}"
            ),
        ),
        retry_after: None,
        passes: false,
    })
}

/// The file name of the program that a command runs, also after `env NAME=VALUE`.
pub(super) fn program(command: &[String]) -> &str {
    let name = |word: &'_ String| word.rfind('/').map_or(0, |at| at + 1);
    let shown = |word| &String::as_str(word)[name(word)..];
    let mut words = command.iter();
    let first = words.next().map_or("", shown);
    if first != "env" {
        return first;
    }
    let behind = words.find(|word| !word.contains('=') && !word.starts_with('-'));
    behind.map_or(first, shown)
}

/// The JSON documents of a text.
fn documents(text: &str, places: &PlaceSet) -> Vec<Picked> {
    let mut found = Vec::new();
    Splitter::default().feed(text.as_bytes(), |document| {
        if let Found::Document(json) = document {
            found.extend(Picked::read(json, places));
        }
    });
    found
}

impl Denial {
    pub(super) fn ensure(&self) -> Result<(), String> {
        ensure_when(&self.when)?;
        ensure_places(self.places())?;
        self.pattern.iter().try_for_each(Pattern::ensure)?;
        let is_right = match (self.when.is_empty(), &self.said) {
            (true, None) => self.pattern.is_some(),
            (true, Some(_)) => false,
            (false, said) => said.is_some() == self.pattern.is_some(),
        };
        if is_right {
            return Ok(());
        }
        Err("denied takes `pattern`, `when`, or `when` with `said` and `pattern`".to_owned())
    }

    fn places(&self) -> impl Iterator<Item = &String> {
        let named = self.command.all().iter().chain(&self.tool);
        named.chain(&self.said)
    }

    fn in_document(&self, document: &Picked) -> Option<Denied> {
        if self.when.is_empty() || !fits(&self.when, document) {
            return None;
        }
        let text = |place: &String| document.at(place)?.scalar().map(plain);
        if let (Some(said), Some(pattern)) = (&self.said, &self.pattern)
            && pattern.find(&text(said)?).is_none()
        {
            return None;
        }
        Some(Denied {
            tool: self.tool.as_ref().and_then(text)?,
            command: self.command.all().iter().find_map(text),
        })
    }

    fn in_text(&self, text: &str) -> Option<Denied> {
        let pattern = self.pattern.as_ref().filter(|_| self.when.is_empty())?;
        let found = pattern.all(text).last()?;
        Some(Denied {
            tool: group(Some(&found), "tool").unwrap_or_else(|| one_line(&found[0])),
            command: group(Some(&found), "command"),
        })
    }
}

/// The last denied action.
pub(super) fn denied(denials: &[Denial], tail: &str) -> Option<Denied> {
    let mut places = PlaceSet::default();
    for denial in denials {
        let named = denial.when.keys().chain(denial.places());
        named.for_each(|place| places.insert(place));
    }
    let found = documents(tail, &places);
    let mut found = found.iter().rev();
    let in_document = found.find_map(|document| {
        let mut all = denials.iter();
        all.find_map(|denial| denial.in_document(document))
    });
    in_document.or_else(|| denials.iter().find_map(|denial| denial.in_text(tail)))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{asked_to_wait, waiting_time};
    use crate::roles::tests::role;

    /// The outputs of each program's runs that could not take place, with the recorded reason.
    const ENDS: &[(&str, &str, &str)] = &[
        (
            "claude",
            r#"{"subtype":"success","is_error":true,"api_error_status":401,"result":"Failed to authenticate. API Error: 401 stub says 401","type":"result"}"#,
            "Failed to authenticate. API Error: 401 stub says 401",
        ),
        (
            "claude",
            r#"{"is_error":true,"api_error_status":529,"result":"API Error: Repeated 529 Overloaded errors. The API is at capacity — this is usually temporary.","type":"result"}"#,
            "API Error: Repeated 529 Overloaded errors. The API is at capacity — this is usually temporary.",
        ),
        (
            "claude",
            r#"{"is_error":true,"api_error_status":null,"terminal_reason":"api_error","result":"Not logged in · Please run /login","type":"result"}"#,
            "Not logged in · Please run /login",
        ),
        (
            "claude",
            r#"{"type":"system","subtype":"api_retry","attempt":7,"max_retries":10,"retry_delay_ms":34747,"error_status":429,"error":"rate_limit"}"#,
            "429: rate_limit",
        ),
        (
            "codex",
            r#"{"type":"turn.failed","error":{"message":"unexpected status 401 Unauthorized: stub says 401, url: http://127.0.0.1:8765/v1/responses"}}"#,
            "stub says 401",
        ),
        (
            "codex",
            r#"{"type":"turn.failed","error":{"message":"exceeded retry limit, last status: 429 Too Many Requests"}}"#,
            "exceeded retry limit, last status: 429 Too Many Requests",
        ),
        (
            "codex",
            r#"{"type":"turn.failed","error":{"message":"We’re currently experiencing high demand, which may cause temporary errors."}}"#,
            "We’re currently experiencing high demand, which may cause temporary errors.",
        ),
        (
            "codex",
            r#"{"type":"error","message":"Reconnecting... waiting for network (Connection failed: error sending request)"}"#,
            "Connection failed: error sending request",
        ),
        (
            "copilot",
            "Failed to get response from the AI model; retried 5 times (total retry wait time: 57.67 seconds) Last error: 429 stub says 429\n\n\nChanges    +0 -0\nDuration   1m 1s\nResume     copilot --resume=e9df\n",
            "stub says 429",
        ),
        (
            "copilot",
            "Authentication failed with provider at http://127.0.0.1:8765/v1 (HTTP 401).\n  Check your COPILOT_PROVIDER_API_KEY.\n\nChanges    +0 -0\n",
            "Authentication failed with provider at http://127.0.0.1:8765/v1 (HTTP 401)",
        ),
        (
            "copilot",
            "Could not connect to local model provider at http://127.0.0.1:9/v1.\n  Check that the service is running and the port is correct.\n\nChanges    +0 -0\n",
            "Could not connect to local model provider at http://127.0.0.1:9/v1.",
        ),
        (
            "gemini",
            "  status: 429\n}\n{\n  \"session_id\": \"72ae\",\n  \"error\": {\n    \"type\": \"Error\",\n    \"message\": \"stub says 503\",\n    \"code\": 503\n  }\n}\n",
            "stub says 503",
        ),
        (
            "gemini",
            "{\n  \"error\": {\n    \"type\": \"Error\",\n    \"message\": \"Please set an Auth method\",\n    \"code\": 41\n  }\n}\n",
            "Please set an Auth method",
        ),
        (
            "gemini",
            r#"{"error":{"type":"Error","message":"{\"error\":{\"code\":401,\"message\":\"stub says 401\",\"status\":\"UNAUTHENTICATED\"}}","code":401}}"#,
            "stub says 401",
        ),
        (
            "qwen",
            r#"{"type":"result","subtype":"error_during_execution","is_error":true,"error":{"message":"[API Error: 500 stub says 500]"}}"#,
            "stub says 500",
        ),
        (
            "qwen",
            r#"{"type":"result","is_error":true,"error":{"message":"[API Error: 429 stub says 429]\nPossible quota limitations in place or slow response times detected. Please wait and try again later."}}"#,
            "stub says 429",
        ),
        (
            "qwen",
            r#"{"type":"result","is_error":true,"error":{"message":"[API Error: Connection error. (cause: fetch failed)]"}}"#,
            "Connection error. (cause: fetch failed)",
        ),
        (
            "qwen",
            "{\"type\":\"system\",\"subtype\":\"retry\"}\nRetrying in 120s (attempt 2/10): [API Error: 429 stub says 429]\nRetrying provider attempt\n",
            "stub says 429",
        ),
        (
            "opencode",
            r#"{"type":"error","error":{"name":"APIError","data":{"message":"no such key","statusCode":401,"responseHeaders":{"retry-after":"34"}}}}"#,
            "401: no such key",
        ),
        (
            "opencode",
            r#"{"type":"error","error":{"name":"APIError","data":{"message":"Cannot connect to API: Unable to connect.","isRetryable":true}}}"#,
            "Cannot connect to API: Unable to connect.",
        ),
    ];

    #[test]
    fn what_programs_print_when_their_model_is_away_is_no_failed_attempt() {
        for (name, end, wanted) in ENDS {
            let role = role(name);
            let before = "{\"type\":\"turn.started\"}\n";
            let told = role.unavailable(Some(1), &format!("{before}{end}"));
            let told = told.unwrap_or_else(|| panic!("{name}: {end}"));
            assert_eq!(told.reason, *wanted, "{name}");
            // A run that succeeded: such phrases in its output are about its work.
            assert_eq!(role.unavailable(Some(0), end), None, "{name}");
        }
        let asks = |end: &&(&str, &'static str, &str)| end.1.contains("\"34\"");
        let asking = ENDS.iter().find(asks).expect("one asks to wait").1;
        let told = role("opencode").unavailable(Some(1), asking);
        assert_eq!(
            told.and_then(|told| told.retry_after),
            Some(Duration::from_secs(34))
        );
    }

    #[test]
    fn what_is_only_about_such_errors_is_a_failure() {
        for (name, end) in [
            (
                "claude",
                r#"{"type":"result","is_error":true,"api_error_status":400,"terminal_reason":"api_error","result":"API Error: 400 bad"}"#,
            ),
            (
                "claude",
                r#"{"type":"result","is_error":true,"api_error_status":null,"terminal_reason":"max_turns","result":"I met a 429 in the tests"}"#,
            ),
            (
                "claude",
                "{\"type\":\"result\",\"is_error\":true,\"api_error_status\":429,\"result\":\"x\"}\n{\"type\":\"result\",\"is_error\":true,\"api_error_status\":null,\"result\":\"y\"}",
            ),
            (
                "codex",
                r#"{"type":"item.completed","item":{"type":"agent_message","text":"unexpected status 429: x"}}"#,
            ),
            (
                "copilot",
                "● the test printed: Last error: 429 Too Many Requests\n",
            ),
            ("gemini", "429 Too Many Requests: quota\n"),
            (
                "qwen",
                r#"{"type":"result","is_error":true,"error":{"message":"it failed: 429"}}"#,
            ),
            (
                "opencode",
                r#"{"type":"error","error":{"data":{"message":"bad request","statusCode":400}}}"#,
            ),
        ] {
            assert_eq!(role(name).unavailable(Some(1), end), None, "{name}: {end}");
        }
    }

    #[test]
    fn any_command_can_say_that_it_is_to_be_run_later() {
        let role = role("amp");
        let told = role.unavailable(Some(75), "the disk\nis full, try again in 2 hours\n\n");
        let told = told.expect("it says so");
        assert_eq!(told.reason, "exit 75: is full, try again in 2 hours");
        assert_eq!(told.retry_after, Some(Duration::from_secs(7200)));
        let silent = role.unavailable(Some(75), "").expect("it says so");
        assert_eq!(silent.reason, "exit 75");
        assert_eq!(
            role.unavailable(Some(1), "is full, try again in 2 hours"),
            None
        );
        let long = role.unavailable(Some(75), &"x".repeat(5000));
        assert_eq!(long.map(|told| told.reason.len()), Some(500));
    }

    #[test]
    fn a_program_that_does_not_know_an_option_of_its_profile_is_named_with_it() {
        for (name, said) in [
            ("claude", "error: unknown option '--max-budget-usd'\n"),
            (
                "codex",
                "error: unexpected argument '--sandbox' found\n\nUsage: codex exec [OPTIONS]\n",
            ),
            (
                "gemini",
                "Unknown arguments: approval-mode, approvalMode\nUsage: gemini [options]\n",
            ),
        ] {
            let told = role(name).unavailable(Some(1), said);
            let reason = told.map(|told| told.reason).unwrap_or_default();
            let wanted = format!("{name} refuses an option of its profile");
            assert!(reason.starts_with(&wanted), "{reason}");
        }
        let other = "error: unknown option '--coverage'\n";
        assert_eq!(role("claude").unavailable(Some(1), other), None);
    }

    #[test]
    fn times_to_wait_are_read_in_the_forms_that_services_give_them() {
        let now = "2026-11-26T20:00:00Z".parse().expect("it is a moment");
        let seconds = |text: &str| waiting_time(text, now).map(|time| time.as_millis());
        for (text, wanted) in [
            ("34", Some(34_000)),
            ("11.054s", Some(11_054)),
            ("250ms", Some(250)),
            ("3 hours.", Some(10_800_000)),
            ("1 minute", Some(60_000)),
            ("Thu, 26 Nov 2026 20:00:10 GMT", Some(10_000)),
            ("2026-11-26T20:01:00+00:00", Some(60_000)),
            ("1795723230", Some(30_000)),
            ("2026-11-26T19:00:00Z", None),
            ("soon", None),
            ("9e999", None),
            ("", None),
        ] {
            assert_eq!(seconds(text), wanted, "{text}");
        }
        for (said, wanted) in [
            (
                "You've hit your usage limit. Try again in 3 hours.",
                Some(10_800),
            ),
            ("429: rate limited: retry after 3600 s", Some(3600)),
            ("AI usage limit reached|1795723230", Some(30)),
            ("retry the test in a day", None),
        ] {
            let found = asked_to_wait(said, now).map(|time| time.as_secs());
            assert_eq!(found, wanted, "{said}");
        }
    }
}
