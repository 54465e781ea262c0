//! A client for the parts of GitHub's API about commit statuses and pull requests: REST, and
//! GraphQL for what REST lacks.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::env;
use std::io::Read;
use std::time::{Duration, Instant};

use handoff::base::github_host::{api_of, host_of, is_cloud};
use handoff::base::ids::IssueKey;
use handoff::base::text::cut;
use serde_json::{Value, json};
use ureq::Agent;
use ureq::http::{HeaderMap, Uri};

use super::{address, agent, shown};
use handoff_cli::environment::now;
use handoff_cli::failure::{ErrorCode, Failure, chain};

/// The time limit of all requests of a command, including pauses that GitHub asks for.
const PATIENCE: Duration = Duration::from_secs(90);
/// The pause before a retry, unless GitHub sets one.
const PAUSE: Duration = Duration::from_millis(500);
/// How often a request is attempted if GitHub can't serve it.
const TRIES: u32 = 3;
/// The maximum size of a response that is read, in bytes.
const LONGEST: u64 = 32 << 20;
/// The maximum length of a response's text that is shown, in characters.
const SHOWN: usize = 200;
/// The maximum number of pages read of a list.
const MOST_PAGES: usize = 100;
/// The pause after a secondary rate limit, if GitHub names none.
const SECONDARY_PAUSE: Duration = Duration::from_secs(60);
/// The maximum number of pull requests per GraphQL query.
const ASKED_AT_ONCE: usize = 50;
/// The GraphQL fields per pull request: its state, the issues it closes, and the status of its newest commit.
const ABOUT: &str = "state isDraft closingIssuesReferences(first: 100) { nodes { number repository { nameWithOwner } } } \
    commits(last: 1) { nodes { commit { oid status { context(name: $context) { state description } } } } }";
/// The share (1/N) of GitHub's rate limit that less urgent requests leave to others.
const RESERVE: u64 = 10;

/// A repository on GitHub.
pub struct Github {
    agent: Agent,
    /// The API's base URL, without a trailing slash.
    base: String,
    /// `owner/name`.
    repository: String,
    authorization: String,
    until: Instant,
    /// The rate limit and the remaining requests, as last reported.
    limit: Cell<Option<(u64, u64)>>,
}

/// GitHub's answer about a pull request, besides its description.
#[derive(Debug, Default)]
pub struct About {
    /// Its `state` and whether it is a `draft`, as REST has them; null if GitHub does not say.
    pub now: Value,
    /// The issues of this repository that it closes: those named in its text, and those linked to
    /// it.
    pub closes: Vec<IssueKey>,
    /// Its newest commit, and the state and description of that commit's status, if it has one.
    pub status: Option<(String, Option<(String, String)>)>,
}

/// An error response.
#[derive(Debug)]
pub struct Refused {
    /// The HTTP status.
    pub status: u16,
    /// GitHub's reason, in one line.
    pub message: String,
}

/// Why a request failed.
#[derive(Debug)]
pub enum GithubError {
    /// GitHub refused it.
    Refused(Refused),
    /// GitHub is unreachable, or asks to wait longer than the command may take.
    Failed(Box<Failure>),
}

/// The API's base URL, and the variables whose token it gets, as `gh` has them: no host gets another's.
#[derive(Debug)]
struct Access {
    base: String,
    tokens: [&'static str; 2],
}

impl Access {
    /// Of `GITHUB_API_URL`, else of the host `GH_HOST`, else of `GITHUB_SERVER_URL`, else github.com.
    ///
    /// # Errors
    /// A usage [`Failure`] if the first two name different hosts.
    fn from(set: impl Fn(&str) -> Option<String>) -> Result<Self, Failure> {
        let named = set("GH_HOST").map(|host| api_of(host.trim()));
        let server = || set("GITHUB_SERVER_URL").and_then(|url| host_of(&url));
        let base = set("GITHUB_API_URL").or_else(|| named.clone());
        let base = base.unwrap_or_else(|| api_of(server().as_deref().unwrap_or("github.com")));
        let base = base.trim().trim_end_matches('/').to_owned();
        let host = |url: &str| {
            let uri: Uri = url.parse().unwrap_or_default();
            uri.host().unwrap_or_default().to_lowercase()
        };
        let own = host(&base);
        if let Some(other) = named.as_deref().map(host)
            && other != own
        {
            let text = format!("GITHUB_API_URL is on {own}, and GH_HOST asks for {other}");
            return Err(Failure::usage(text).hint("unset the one that is not meant"));
        }
        let tokens = if is_cloud(&own) {
            ["GH_TOKEN", "GITHUB_TOKEN"]
        } else {
            ["GH_ENTERPRISE_TOKEN", "GITHUB_ENTERPRISE_TOKEN"]
        };
        Ok(Self { base, tokens })
    }
}

impl Github {
    /// The repository of the current workflow: `GITHUB_REPOSITORY` at `GITHUB_API_URL`, else on
    /// `GH_HOST`, with the token that `gh` takes for that host.
    ///
    /// # Errors
    /// A [`Failure`] if one of them is missing or invalid.
    pub fn from_environment() -> Result<Self, Failure> {
        let set = |name: &str| env::var(name).ok().filter(|text| !text.trim().is_empty());
        let missing = |what: &str, names: &str| {
            let text = format!("{what} is missing: {names} is not set");
            Failure::new(ErrorCode::NoWorkflow, text).hint(format!(
                "a workflow on GitHub sets it, elsewhere set {names}"
            ))
        };
        let repository = set("GITHUB_REPOSITORY")
            .ok_or_else(|| missing("the repository on GitHub", "GITHUB_REPOSITORY"))?;
        let access = Access::from(set)?;
        let example = "write GITHUB_API_URL as https://api.github.com, and GH_HOST as github.com";
        let secrets = "the token belongs into GH_TOKEN, or GH_ENTERPRISE_TOKEN";
        address(
            "API",
            &access.base,
            (example, secrets),
            cfg!(feature = "https"),
        )?;
        let token = access.tokens.into_iter().find_map(set);
        let token = token.ok_or_else(|| missing("the token", access.tokens[0]))?;
        let is_part = |part: &str| {
            let fits = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
            !part.is_empty() && !part.starts_with('.') && part.bytes().all(fits)
        };
        let parts = repository.trim().split_once('/');
        if !parts.is_some_and(|(owner, name)| is_part(owner) && is_part(name)) {
            let text = "GITHUB_REPOSITORY is not the name of a repository";
            return Err(Failure::usage(text).hint("write it as owner/name"));
        }
        Ok(Self {
            agent: agent(None)?,
            base: access.base,
            repository: repository.trim().to_owned(),
            authorization: format!("Bearer {}", token.trim()),
            until: Instant::now() + PATIENCE,
            limit: Cell::default(),
        })
    }

    /// Sets the time limit of all requests together, if one is given.
    #[must_use]
    pub fn within(self, patience: Option<Duration>) -> Self {
        let until = patience.map_or(self.until, |patience| Instant::now() + patience);
        Self { until, ..self }
    }

    /// Whether few requests are left of those that GitHub accepts per hour: then less urgent ones
    /// should wait.
    pub fn is_short(&self) -> bool {
        let said = self.limit.get();
        said.is_some_and(|(limit, left)| left <= limit / RESERVE)
    }

    /// Gets the document at a path below the repository.
    pub fn get(&self, path: &str) -> Result<Value, GithubError> {
        Ok(self.request(&self.url(path), None)?.0)
    }

    /// Gets a list below the repository, all pages of it.
    pub fn list(&self, path: &str) -> Result<Vec<Value>, GithubError> {
        let mut found = Vec::new();
        let mut next = Some(self.url(path));
        for _ in 0..MOST_PAGES {
            let Some(url) = next else { break };
            let (page, headers) = self.request(&url, None)?;
            let Value::Array(page) = page else {
                return Err(self.failed("it does not answer with a list"));
            };
            found.extend(page);
            next = next_page(&headers).filter(|url| url.starts_with(&format!("{}/", self.base)));
        }
        Ok(found)
    }

    /// Posts a document to a path below the repository.
    pub fn post(&self, path: &str, document: &Value) -> Result<(), GithubError> {
        self.request(&self.url(path), Some(document)).map(|_| ())
    }

    /// Queries these pull requests: the issues they close, and the status with this name.
    pub fn about(
        &self,
        numbers: &[u64],
        context: &str,
    ) -> Result<BTreeMap<u64, About>, GithubError> {
        let graphql = match self.base.strip_suffix("/api/v3") {
            Some(server) => format!("{server}/api/graphql"),
            None => format!("{}/graphql", self.base),
        };
        let (owner, name) = self.repository.split_once('/').unwrap_or_default();
        let mut found = BTreeMap::new();
        for some in numbers.chunks(ASKED_AT_ONCE) {
            let asked = some
                .iter()
                .map(|number| format!("p{number}: pullRequest(number: {number}) {{ {ABOUT} }} "));
            let asked: String = asked.collect();
            let query = format!(
                "query($owner: String!, $name: String!, $context: String!) {{ repository(owner: $owner, name: $name) {{ {asked}}} }}"
            );
            let variables = json!({ "owner": owner, "name": name, "context": context });
            let document = json!({ "query": query, "variables": variables });
            let (answer, _) = self.request(&graphql, Some(&document))?;
            if let Some(error) = answer.pointer("/errors/0") {
                let message = error["message"].as_str().unwrap_or("an error");
                return Err(self.failed(&format!("it answers: {}", cut(message, SHOWN))));
            }
            for number in some {
                let own = &answer["data"]["repository"][format!("p{number}")];
                let about = self.read_about(own);
                let why = "it does not say what the pull requests close";
                found.insert(*number, about.ok_or_else(|| self.failed(why))?);
            }
        }
        Ok(found)
    }

    fn read_about(&self, described: &Value) -> Option<About> {
        let nodes = described.pointer("/closingIssuesReferences/nodes")?;
        let own = nodes.as_array()?.iter().filter(|node| {
            let of = node["repository"]["nameWithOwner"].as_str();
            of.is_some_and(|of| of.eq_ignore_ascii_case(&self.repository))
        });
        let numbers = own.filter_map(|node| node["number"].as_u64());
        let closes = numbers.filter_map(|number| number.to_string().parse().ok());
        let commit = described.pointer("/commits/nodes/0/commit");
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let status = |commit: &Value| {
            let known = &commit["status"]["context"];
            let known = text(&known["state"]).map(|state| {
                let description = text(&known["description"]).unwrap_or_default();
                (state.to_lowercase(), description)
            });
            Some((text(&commit["oid"])?, known))
        };
        let state = described["state"].as_str().map(|state| match state {
            "OPEN" => "open",
            _ => "closed",
        });
        Some(About {
            now: state.map_or(
                Value::Null,
                |state| json!({ "state": state, "draft": described["isDraft"] }),
            ),
            closes: closes.collect(),
            status: commit.and_then(status),
        })
    }

    fn url(&self, path: &str) -> String {
        format!("{}/repos/{}/{path}", self.base, self.repository)
    }

    fn request(
        &self,
        url: &str,
        document: Option<&Value>,
    ) -> Result<(Value, HeaderMap), GithubError> {
        let mut tries = 0;
        loop {
            tries += 1;
            let left = self.until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(self.failed("it did not answer in time"));
            }
            let sent = match document {
                None => self.headed(self.agent.get(url), left).call(),
                Some(document) => {
                    let request = self.headed(self.agent.post(url), left);
                    let request = request.header("content-type", "application/json");
                    request.send(document.to_string())
                }
            };
            let mut response = match sent {
                Ok(response) => response,
                // The failed request may have arrived; setting a status twice is harmless.
                Err(_) if tries < TRIES => {
                    std::thread::sleep(PAUSE * tries);
                    continue;
                }
                Err(error) => return Err(self.failed(&cut(&chain(&error), SHOWN))),
            };
            let status = response.status();
            let headers = response.headers().clone();
            let counted =
                |name| number(&headers, name).and_then(|number| u64::try_from(number).ok());
            if let Some(known) = counted("x-ratelimit-limit").zip(counted("x-ratelimit-remaining"))
            {
                self.limit.set(Some(known));
            }
            let mut body = Vec::new();
            let read = response.body_mut().as_reader().take(LONGEST);
            let read = { read }.read_to_end(&mut body);
            if status.is_success() {
                let value = serde_json::from_slice(&body);
                return match (read, value) {
                    (Ok(_), Ok(value)) => Ok((value, headers)),
                    (Ok(_), Err(_)) if document.is_some() => Ok((Value::Null, headers)),
                    _ => Err(self.failed("its answer is not JSON, or broke off")),
                };
            }
            let refused = Refused {
                status: status.as_u16(),
                message: said(&body),
            };
            let wait = match (status.as_u16(), asked_to_wait(&headers, &refused.message)) {
                (403 | 429, Some(wait)) => wait,
                (429 | 500.., None) if tries < TRIES => PAUSE * tries,
                (500.., Some(wait)) if tries < TRIES => wait,
                _ => return Err(GithubError::Refused(refused)),
            };
            if wait >= self.until.saturating_duration_since(Instant::now()) {
                let seconds = wait.as_secs();
                return Err(self.failed(&format!(
                    "it answers {}, and asks to wait {seconds} s: run the command again then",
                    refused.status
                )));
            }
            std::thread::sleep(wait);
        }
    }

    fn headed<B>(
        &self,
        request: ureq::RequestBuilder<B>,
        left: Duration,
    ) -> ureq::RequestBuilder<B> {
        let request = request.config().timeout_global(Some(left)).build();
        request
            .header("accept", "application/vnd.github+json")
            .header("authorization", &self.authorization)
            .header("x-github-api-version", "2022-11-28")
    }

    fn failed(&self, why: &str) -> GithubError {
        let base: Uri = self.base.parse().unwrap_or_default();
        let text = format!(
            "GitHub can't be asked at {}: {why}",
            shown(&base, base.path())
        );
        let failure = Failure::new(ErrorCode::GithubUnreachable, text);
        GithubError::Failed(Box::new(
            failure.hint("nothing in the ledger changed: run the command again"),
        ))
    }
}

impl From<GithubError> for Failure {
    fn from(error: GithubError) -> Self {
        let refused = match error {
            GithubError::Failed(failure) => return *failure,
            GithubError::Refused(refused) => refused,
        };
        let Refused { status, message } = refused;
        let hint = match status {
            401 => {
                "see that the token is valid: GH_TOKEN, or GH_ENTERPRISE_TOKEN for a GitHub Enterprise Server"
            }
            403 => {
                "the job needs `statuses: write`, `pull-requests: read` and `issues: read`; `git handoff help github.md` has the workflow"
            }
            404 => {
                "see that it exists, and that the token may see it: the job needs `pull-requests: read`"
            }
            300..=399 => "the repository has moved: set GITHUB_REPOSITORY to its new name",
            _ => "nothing in the ledger changed",
        };
        Failure::new(
            ErrorCode::GithubRefused,
            format!("GitHub answers {status}{message}"),
        )
        .hint(hint)
    }
}

/// How long GitHub asks to wait because a rate limit is reached.
fn asked_to_wait(headers: &HeaderMap, message: &str) -> Option<Duration> {
    let number = |name: &str| number(headers, name);
    if let Some(seconds) = number("retry-after") {
        return u64::try_from(seconds).ok().map(Duration::from_secs);
    }
    if number("x-ratelimit-remaining") != Some(0) {
        // Only these words distinguish a secondary rate limit from a missing permission.
        return message
            .contains("secondary rate limit")
            .then_some(SECONDARY_PAUSE);
    }
    let at = number("x-ratelimit-reset")?;
    let left = at.saturating_sub(now().ok()?.timestamp()).max(1);
    u64::try_from(left).ok().map(Duration::from_secs)
}

fn number(headers: &HeaderMap, name: &str) -> Option<i64> {
    headers.get(name)?.to_str().ok()?.trim().parse().ok()
}

/// The URL of the next page.
fn next_page(headers: &HeaderMap) -> Option<String> {
    let links = headers.get("link")?.to_str().ok()?;
    links.split(',').find_map(|link| {
        let (address, relation) = link.split_once(';')?;
        let is_next = relation
            .split(';')
            .any(|part| part.trim() == "rel=\"next\"");
        let address = address.trim().strip_prefix('<')?.strip_suffix('>')?;
        is_next.then(|| address.to_owned())
    })
}

/// GitHub's reason for refusing, in one line, with its details.
fn said(body: &[u8]) -> String {
    let answer: Value = serde_json::from_slice(body).unwrap_or_default();
    match answer["message"].as_str() {
        Some(message) => format!(": {}", cut(message, SHOWN)),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::{Access, SECONDARY_PAUSE, asked_to_wait, next_page};
    use ureq::http::HeaderMap;

    #[test]
    fn a_token_goes_to_its_own_host_alone() {
        let access = |given: &[(&str, &str)]| {
            let set = |name: &str| given.iter().find(|(own, _)| *own == name);
            Access::from(|name| set(name).map(|(_, value)| (*value).to_owned()))
                .map(|found| (found.base, found.tokens[0]))
        };
        let (cloud, own) = ("GH_TOKEN", "GH_ENTERPRISE_TOKEN");
        for (given, base, token) in [
            (&[][..], "https://api.github.com", cloud),
            (
                &[("GITHUB_SERVER_URL", "https://ghe.corp.example")],
                "https://ghe.corp.example/api/v3",
                own,
            ),
            (
                &[("GITHUB_SERVER_URL", "https://octo.ghe.com")],
                "https://api.octo.ghe.com",
                cloud,
            ),
            (
                &[
                    ("GH_HOST", "ghe.corp.example"),
                    ("GITHUB_SERVER_URL", "https://github.com"),
                ],
                "https://ghe.corp.example/api/v3",
                own,
            ),
            (
                &[
                    ("GITHUB_API_URL", "https://ghe.corp.example/api/v3/"),
                    ("GH_HOST", "GHE.corp.example"),
                ],
                "https://ghe.corp.example/api/v3",
                own,
            ),
            (
                &[
                    ("GITHUB_API_URL", "https://api.octo.ghe.com"),
                    ("GH_HOST", "octo.ghe.com"),
                ],
                "https://api.octo.ghe.com",
                cloud,
            ),
            (
                &[("GITHUB_API_URL", "https://api.github.com.example")],
                "https://api.github.com.example",
                own,
            ),
        ] {
            assert_eq!(
                access(given).expect("a host"),
                (base.to_owned(), token),
                "{given:?}"
            );
        }
        let both = [
            ("GITHUB_API_URL", "https://api.github.com"),
            ("GH_HOST", "ghe.corp.example"),
        ];
        let refused = access(&both).expect_err("two hosts");
        assert!(
            refused
                .message
                .contains("GH_HOST asks for ghe.corp.example"),
            "{}",
            refused.message
        );
    }

    #[test]
    fn too_many_requests_at_once_wait_a_minute_if_no_time_is_named() {
        let mut headers = HeaderMap::new();
        let said = ": You have exceeded a secondary rate limit.";
        assert_eq!(asked_to_wait(&headers, said), Some(SECONDARY_PAUSE));
        assert_eq!(asked_to_wait(&headers, ": Resource not accessible"), None);
        headers.insert("retry-after", "7".parse().expect("a header"));
        assert_eq!(
            asked_to_wait(&headers, said).map(|wait| wait.as_secs()),
            Some(7)
        );
    }

    #[test]
    fn the_next_page_is_the_one_that_is_called_so() {
        let next = |link: &str| {
            let mut headers = HeaderMap::new();
            headers.insert("link", link.parse().expect("a header"));
            next_page(&headers)
        };
        let both = "<https://a/x?page=3>; rel=\"last\", <https://a/x?page=2>; rel=\"next\"";
        assert_eq!(next(both).as_deref(), Some("https://a/x?page=2"));
        assert_eq!(next("<https://a/x?page=1>; rel=\"prev\""), None);
        assert_eq!(next("nonsense"), None);
    }
}
