//! Stands in for GitHub's API: pull requests, what they close, and statuses of commits, as GitHub documents them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};
use tiny_http::{Header, Method, Request, Response, Server};

/// Pull requests that a page of a list has.
const PAGE: usize = 2;

/// What a request gets in place of its answer.
#[derive(Clone)]
pub(crate) struct Fault {
    /// A part of the method and the path: `POST /repos/owner/desk/statuses`.
    pub(crate) at: &'static str,
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    /// How often.
    pub(crate) times: usize,
}

#[derive(Default)]
struct Kept {
    pulls: Vec<Value>,
    /// As they were told; the newest counts.
    issues: Vec<Value>,
    /// The oldest first.
    statuses: Vec<Value>,
    faults: Vec<Fault>,
    /// How many requests are answered before some are refused, how, and how many are left of those.
    refused: Option<(usize, u16, usize)>,
    /// Reviews, with their pull requests.
    reviews: Vec<(u64, Value)>,
    /// Pull requests, and the issues that somebody linked to them.
    linked: Vec<(u64, u64)>,
    /// Each request, in order.
    asked: Vec<String>,
}

/// The server, for the repository `owner/desk`.
pub(crate) struct Api {
    url: String,
    kept: Arc<Mutex<Kept>>,
}

impl Api {
    /// Starts it for the commits of a repository, and this token.
    pub(crate) fn start(repository: PathBuf, token: &'static str) -> Self {
        let server = Server::http("127.0.0.1:0").unwrap();
        let url = format!("http://{}", server.server_addr());
        let kept = Arc::new(Mutex::new(Kept::default()));
        let (own, base) = (Arc::clone(&kept), url.clone());
        thread::spawn(move || {
            for mut request in server.incoming_requests() {
                let mut body = String::new();
                request.as_reader().read_to_string(&mut body).unwrap();
                let mut kept = own.lock().unwrap();
                let kept = &mut *kept;
                let asked = format!("{} {}", request.method(), request.url());
                let fault = kept
                    .faults
                    .iter_mut()
                    .find(|fault| fault.times > 0 && asked.starts_with(fault.at));
                let refused = match &mut kept.refused {
                    Some((0, status, times @ 1..)) => {
                        *times -= 1;
                        Some(*status)
                    }
                    Some((before @ 1.., ..)) => {
                        *before -= 1;
                        None
                    }
                    _ => None,
                };
                let (status, answer, mut headers) = match fault {
                    _ if refused.is_some() => {
                        let status = refused.unwrap();
                        let wait = vec![("retry-after", "3600".to_owned())];
                        let wait = if status == 429 { wait } else { Vec::new() };
                        (status, json!({ "message": "Not now" }), wait)
                    }
                    Some(fault) => {
                        fault.times -= 1;
                        let message = json!({ "message": "Not now" });
                        (fault.status, message, fault.headers.clone())
                    }
                    None if !has_token(&request, token) => {
                        (401, json!({ "message": "Bad credentials" }), Vec::new())
                    }
                    None => {
                        let (status, answer, next) = kept.answer(&request, &body, &repository);
                        let next =
                            next.map(|next| ("link", format!("<{base}{next}>; rel=\"next\"")));
                        (status, answer, next.into_iter().collect())
                    }
                };
                kept.asked.push(asked);
                headers.push(("content-type", "application/json".to_owned()));
                let mut response =
                    Response::from_string(answer.to_string()).with_status_code(status);
                for (name, value) in headers {
                    response.add_header(Header::from_bytes(name, value).unwrap());
                }
                let _ = request.respond(response);
            }
        });
        Self { url, kept }
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// A pull request as it is now.
    pub(crate) fn knows(&self, described: &Value) {
        let mut kept = self.kept.lock().unwrap();
        let pulls = &mut kept.pulls;
        pulls.retain(|pull| pull["number"] != described["number"]);
        pulls.push(described.clone());
    }

    /// An issue as it is now.
    pub(crate) fn knows_issue(&self, described: &Value) {
        self.kept.lock().unwrap().issues.push(described.clone());
    }

    /// Somebody links an issue to a pull request, in the sidebar.
    pub(crate) fn links(&self, pull_request: u64, issue: u64) {
        self.kept.lock().unwrap().linked.push((pull_request, issue));
    }

    pub(crate) fn fails(&self, fault: Fault) {
        self.kept.lock().unwrap().faults.push(fault);
    }

    /// Refuses one request, once so many were answered, and those that try it again at once; returns whether the one
    /// before was refused.
    pub(crate) fn refuses(&self, after: usize, status: u16) -> bool {
        let tries = |status| if status >= 500 { 3 } else { 1 };
        let new = (after, status, tries(status));
        let before = self.kept.lock().unwrap().refused.replace(new);
        before.is_none_or(|(_, status, left)| left < tries(status))
    }

    /// Somebody reviews a pull request.
    pub(crate) fn is_reviewed(&self, pull_request: u64, review: Value) {
        let reviews = &mut self.kept.lock().unwrap().reviews;
        reviews.retain(|(_, known)| known["id"] != review["id"]);
        reviews.push((pull_request, review));
    }

    /// Somebody sets a status.
    pub(crate) fn is_set(&self, status: Value) {
        self.kept.lock().unwrap().statuses.push(status);
    }

    /// The newest state and description of `handoff gate` on a commit.
    pub(crate) fn status(&self, commit: &str) -> Option<(String, String)> {
        self.status_named(commit, "handoff gate")
    }

    /// The same of another name.
    pub(crate) fn status_named(&self, commit: &str, context: &str) -> Option<(String, String)> {
        let kept = self.kept.lock().unwrap();
        let mut all = kept.statuses.iter().rev();
        let found = all.find(|one| one["sha"] == commit && one["context"] == context)?;
        let text = |name: &str| found[name].as_str().unwrap().to_owned();
        Some((text("state"), text("description")))
    }

    /// How many statuses were set.
    pub(crate) fn count(&self) -> usize {
        self.kept.lock().unwrap().statuses.len()
    }

    /// What was asked since the last time.
    pub(crate) fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.kept.lock().unwrap().asked)
    }
}

fn has_token(request: &Request, token: &str) -> bool {
    let mut headers = request.headers().iter();
    let sent = headers.find(|header| header.field.equiv("authorization"));
    sent.is_some_and(|sent| sent.value.as_str() == format!("Bearer {token}"))
}

impl Kept {
    /// What events have told, and what was made with `gh`, which keeps it beside the repository.
    fn pulls(&self, repository: &Path) -> Vec<Value> {
        let file = repository.join("../../github/pulls.json");
        let made =
            fs::read(file).map_or(Value::Null, |bytes| serde_json::from_slice(&bytes).unwrap());
        let mut pulls = made.as_array().cloned().unwrap_or_default();
        for told in &self.pulls {
            if !pulls.iter().any(|one| one["number"] == told["number"]) {
                pulls.push(told.clone());
            }
        }
        pulls
    }

    /// The answer to the one question that is asked of GraphQL: what pull requests close.
    fn closing(&self, body: &str, repository: &Path) -> Value {
        let asked: Value = serde_json::from_str(body).unwrap();
        let context = asked["variables"]["context"].as_str().unwrap();
        assert_eq!(
            asked["variables"],
            json!({ "owner": "owner", "name": "desk", "context": context })
        );
        let query = asked["query"].as_str().unwrap();
        let question = "query($owner: String!, $name: String!, $context: String!) { repository(owner: $owner, name: $name) { ";
        let mut rest = query
            .strip_prefix(question)
            .and_then(|rest| rest.strip_suffix("} }"))
            .unwrap();
        let (mut data, mut errors) = (json!({}), Vec::new());
        let here = json!({ "nameWithOwner": "Owner/Desk" });
        while !rest.is_empty() {
            let (number, after) = rest[1..].split_once(": pullRequest(number: ").unwrap();
            let fields = format!(
                "{number}) {{ state isDraft closingIssuesReferences(first: 100) {{ nodes {{ number repository {{ nameWithOwner }} }} }} \
                 commits(last: 1) {{ nodes {{ commit {{ oid status {{ context(name: $context) {{ state description }} }} }} }} }} }} "
            );
            rest = after.strip_prefix(&fields).unwrap();
            let name = format!("p{number}");
            let number: u64 = number.parse().unwrap();
            let pulls = self.pulls(repository);
            let Some(pull) = pulls.iter().find(|pull| pull["number"] == number) else {
                data[&name] = Value::Null;
                errors.push(json!({ "type": "NOT_FOUND", "message": format!("Could not resolve to a PullRequest with the number of {number}.") }));
                continue;
            };
            let text = pull["body"].as_str().unwrap_or_default();
            let named = text.split("Closes #").skip(1);
            let named = named.filter_map(|rest| {
                rest.split(|c: char| !c.is_ascii_digit())
                    .next()?
                    .parse()
                    .ok()
            });
            let linked = self.linked.iter().filter(|(pull, _)| *pull == number);
            let mut nodes: Vec<Value> = named
                .chain(linked.map(|(_, issue)| *issue))
                .map(|issue: u64| json!({ "number": issue, "repository": here }))
                .collect();
            // One of another repository.
            nodes.push(json!({ "number": 9, "repository": { "nameWithOwner": "owner/other" } }));
            let head = pull["head"]["sha"].as_str().unwrap();
            let mut statuses = self.statuses.iter().rev().filter(|one| one["sha"] == head);
            let status = statuses.clone().next().map(|_| {
                let own = statuses.find(|one| one["context"] == context);
                let own = own.map(|own| {
                    let state = own["state"].as_str().unwrap().to_uppercase();
                    json!({ "state": state, "description": own["description"] })
                });
                json!({ "context": own })
            });
            let commits = json!({ "nodes": [{ "commit": { "oid": head, "status": status } }] });
            let state = match (&pull["merged"], pull["state"].as_str().unwrap()) {
                (Value::Bool(true), _) => "MERGED".to_owned(),
                (_, state) => state.to_uppercase(),
            };
            data[&name] = json!({ "state": state, "isDraft": pull["draft"],
                "closingIssuesReferences": { "nodes": nodes }, "commits": commits });
        }
        let mut answer = json!({ "data": { "repository": data } });
        if !errors.is_empty() {
            answer["errors"] = errors.into();
        }
        answer
    }

    /// The status, the answer, and the path of the next page.
    fn answer(
        &mut self,
        request: &Request,
        body: &str,
        repository: &Path,
    ) -> (u16, Value, Option<String>) {
        let missing = (404, json!({ "message": "Not Found" }), None);
        if request.url() == "/graphql" {
            assert_eq!(request.method(), &Method::Post);
            return (200, self.closing(body, repository), None);
        }
        let Some(path) = request.url().strip_prefix("/repos/owner/desk/") else {
            return missing;
        };
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let has = |sha: &str| {
            let mut command = Command::new("git");
            command.arg("--git-dir").arg(repository);
            command.args(["cat-file", "-e", &format!("{sha}^{{commit}}")]);
            command.output().unwrap().status.success()
        };
        let unknown = |sha: &str| {
            let message = format!("No commit found for SHA: {sha}");
            (422, json!({ "message": message }), None)
        };
        match (
            request.method(),
            path.split('/').collect::<Vec<_>>()[..].as_ref(),
        ) {
            (Method::Get, ["pulls"]) => {
                let pulls = self.pulls(repository);
                let open = pulls.iter().filter(|pull| pull["state"] == "open");
                let page = query
                    .split("page=")
                    .last()
                    .and_then(|page| page.parse().ok());
                let page = page.filter(|_| query.contains("&page=")).unwrap_or(1);
                let rest: Vec<Value> = open.skip(PAGE * (page - 1)).cloned().collect();
                let next = format!(
                    "/repos/owner/desk/pulls?state=open&per_page=100&page={}",
                    page + 1
                );
                let next = (rest.len() > PAGE).then_some(next);
                (200, rest.into_iter().take(PAGE).collect(), next)
            }
            (Method::Get, ["pulls", number]) => {
                let pulls = self.pulls(repository);
                let mut pulls = pulls.iter();
                let found = pulls.find(|pull| pull["number"].as_u64() == number.parse().ok());
                found.map_or(missing, |found| (200, found.clone(), None))
            }
            (Method::Get, ["collaborators", login, "permission"]) => {
                let file = repository.join("../../github/collaborators.json");
                let known =
                    fs::read(file).map_or(Value::Null, |b| serde_json::from_slice(&b).unwrap());
                let mut known = known.as_array().into_iter().flatten();
                let found = known.find(|one| one[0] == *login).map(|one| &one[1]);
                match found {
                    Some(found) if found == "unknown" => missing,
                    found => (
                        200,
                        json!({ "permission": found.unwrap_or(&json!("read")) }),
                        None,
                    ),
                }
            }
            (Method::Get, ["pulls", number, "reviews"]) => {
                let own = self.reviews.iter();
                let own = own.filter(|(of, _)| Some(*of) == number.parse().ok());
                (200, own.map(|(_, review)| review.clone()).collect(), None)
            }
            (Method::Get, ["pulls", number, "reviews", id]) => {
                let mut own = self.reviews.iter();
                let found = own.find(|(of, review)| {
                    Some(*of) == number.parse().ok() && review["id"].as_u64() == id.parse().ok()
                });
                found.map_or(missing, |(_, found)| (200, found.clone(), None))
            }
            (Method::Get, ["issues", number]) => {
                let found = self.issues.iter();
                let found = found
                    .rev()
                    .find(|one| one["number"].as_u64() == number.parse().ok());
                found.map_or(missing, |found| (200, found.clone(), None))
            }
            (Method::Get, ["commits", sha, "statuses"]) => {
                if !has(sha) {
                    return unknown(sha);
                }
                let all = self.statuses.iter().rev();
                let own: Vec<Value> = all.filter(|one| one["sha"] == *sha).cloned().collect();
                (200, own.into(), None)
            }
            (Method::Post, ["statuses", sha]) => {
                if !has(sha) {
                    return unknown(sha);
                }
                let mut status: Value = serde_json::from_str(body).unwrap();
                let states = ["error", "failure", "pending", "success"];
                let description = status["description"].as_str().unwrap_or_default();
                if !states.contains(&status["state"].as_str().unwrap())
                    || description.chars().count() > 140
                {
                    return (422, json!({ "message": "Validation Failed" }), None);
                }
                status["sha"] = json!(sha);
                self.statuses.push(status.clone());
                (201, status, None)
            }
            _ => missing,
        }
    }
}
