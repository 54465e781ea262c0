//! The scenarios that a protocol must handle.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use handoff::base::finding::Finding;
use handoff::base::ids::AgentName;
use handoff::contract::FILL;
use handoff::model::{EventArgs, Failure as Reported, IssueStatus, Record};
use handoff::protocol::{AgentKind, ContractType, Event, RoundLimit, State, Style};
use handoff_graph::{Graph, protocol_graph};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use super::Trial;
use super::contract::{Ask, Sent, remove, set};
use super::play::{Move, ask};
use handoff_cli::failure::{ErrorCode, Failure};

/// The number of failures after which retries count as unlimited.
const MOST_FAILURES: u32 = 25;

/// The time limit of the load scenario.
const LONGEST: Duration = Duration::from_secs(5);

/// A scenario, and whether the protocol handled it.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "TrialScenario")]
pub struct Scenario {
    /// what was played
    pub name: String,
    /// whether everything was as expected
    pub ok: bool,
    /// whether it was played; it is also false if it failed for another reason than it is about
    pub played: bool,
    /// what happened; what was unexpected, if `ok` is false
    pub about: String,
}

/// The throughput over many issues.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "TrialLoad")]
pub struct Load {
    /// how many issues were taken to their end
    pub issues: u32,
    /// how many steps that took
    pub steps: u32,
    /// how long they took, in milliseconds
    pub milliseconds: u64,
}

impl Load {
    /// The steps per second.
    pub fn rate(&self) -> u64 {
        u64::from(self.steps) * 1000 / self.milliseconds.max(1)
    }
}

/// The result of a trial.
pub struct Played {
    /// The scenarios.
    pub scenarios: Vec<Scenario>,
    /// The routes, and how often the scenarios took them.
    pub graph: Graph,
    /// The throughput; `None` if an issue does not end.
    pub load: Option<Load>,
}

/// What happened; `Err` if it was unexpected.
type Outcome = Result<Told, Untold>;

/// What happened as expected.
enum Told {
    Played(String),
    /// Nothing in the protocol is of that kind.
    NothingToPlay(String),
}

/// What did not happen as expected.
enum Untold {
    Unexpected(String),
    /// It was refused, for another reason than the one that the scenario is about.
    NotPlayed(String),
}

impl From<String> for Untold {
    fn from(text: String) -> Self {
        Self::Unexpected(text)
    }
}

fn played(text: impl Into<String>) -> Outcome {
    Ok(Told::Played(text.into()))
}

fn nothing_to_play(text: impl Into<String>) -> Outcome {
    Ok(Told::NothingToPlay(text.into()))
}

fn unexpected(text: impl Into<String>) -> Outcome {
    Err(Untold::Unexpected(text.into()))
}

/// A refusal, which must have this code.
fn refused_by(failure: &Failure, code: ErrorCode) -> Outcome {
    if failure.code == Some(code) {
        return played(word_of(failure));
    }
    Err(Untold::NotPlayed(said(failure)))
}

impl Trial<'_> {
    /// Plays every scenario.
    pub(super) fn scenarios(&mut self, issues: u32) -> Result<Played, Failure> {
        let mut all = Vec::new();
        let mut add = |name: &str, outcome: Outcome| {
            let name = name.to_owned();
            let ok = outcome.is_ok();
            let (played, about) = match outcome {
                Ok(Told::Played(about)) | Err(Untold::Unexpected(about)) => (true, about),
                Ok(Told::NothingToPlay(about)) | Err(Untold::NotPlayed(about)) => (false, about),
            };
            all.push(Scenario {
                name,
                ok,
                played,
                about,
            });
            ok
        };
        let ends = add("the usual way", self.usual_way());
        if self.steps == 0 {
            let text = "no issue can be opened".to_owned();
            add("everything else", Err(Untold::NotPlayed(text)));
            return Ok(Played {
                scenarios: all,
                graph: self.graph()?,
                load: None,
            });
        }
        add("a wrong receiver is refused", self.wrong_receiver());
        add("unclaimed work is not handed on", self.unclaimed());
        add("an incomplete contract is refused", self.incomplete());
        add("claimed work is not claimed again", self.second_claim());
        for (name, outcome) in self.limits() {
            add(&name, outcome);
        }
        add("failed work is retried until it is dead", self.failures());
        add(
            "every other type of contract can be sent",
            self.other_types(),
        );
        let graph = self.graph()?;
        let mut load = None;
        if ends {
            let outcome = self.load(issues).map(|done| {
                let about = format!("{} issues, {} steps", done.issues, done.steps);
                load = Some(done);
                Told::Played(about)
            });
            add("many issues", outcome);
        }
        Ok(Played {
            scenarios: all,
            graph,
            load,
        })
    }

    /// The graph of the routes, with how often they were taken.
    fn graph(&self) -> Result<Graph, Failure> {
        let tip = self.ledger.tip()?;
        let mut surveys = Vec::new();
        for key in tip.issues()? {
            surveys.extend(tip.issue(&key)?.survey()?);
        }
        let issues = surveys.iter().flat_map(|survey| survey.iter());
        Ok(protocol_graph(&self.protocol, issues, None, self.now()))
    }

    /// Plays an issue to its end through every agent that does usual work.
    fn usual_way(&mut self) -> Outcome {
        let opened = self.open().map_err(|failure| said(&failure))?;
        let key = opened.record.id.issue().clone();
        let mut way = vec![opened.record.from.clone()];
        let mut seen = BTreeSet::from([opened.record.from]);
        let ended = self.walk(&key, &mut |trial, held| {
            seen.insert(held.to.clone());
            way.push(held.to.clone());
            trial.usual_move(held, &seen)
        });
        let path = |way: &[AgentName]| {
            let names: Vec<&str> = way.iter().map(AgentName::as_str).collect();
            names.join(" → ")
        };
        match ended {
            Ok(issue) if issue.status == IssueStatus::Completed => {
                let end = self.protocol.definition().agents.iter();
                let closes = self.protocol.ends() == handoff::protocol::Ends::ClosingContract;
                way.extend(
                    end.filter(|a| closes && a.kind == AgentKind::End)
                        .map(|a| a.id.clone()),
                );
                played(path(&way))
            }
            Ok(issue) => {
                let open = issue.open.iter();
                let open =
                    open.map(|open| format!("{} is {} with {}", open.id, open.state, open.to));
                let open: Vec<String> = open.collect();
                unexpected(format!(
                    "after {}, the issue does not end: {}",
                    path(&way),
                    listed(&open)
                ))
            }
            Err(failure) => unexpected(format!("after {}: {}", path(&way), said(&failure))),
        }
    }

    /// Sends the opening contract to an agent to which its sender has no route.
    fn wrong_receiver(&mut self) -> Outcome {
        let opened = self.open().map_err(|failure| said(&failure))?;
        let from = opened.record.from.clone();
        let receivers = self.protocol.receivers(from.as_str());
        let all = self
            .protocol
            .definition()
            .agents
            .iter()
            .map(|agent| &agent.id);
        let mut others = all.filter(|agent| **agent != from && !receivers.contains(agent));
        let kind = self.kind(&opened.record.contract_type);
        let at = self.protocol.field(kind, |f| &f.to).map(str::to_owned);
        let Some((other, at)) = others.next().cloned().zip(at) else {
            return nothing_to_play(format!("{from} may send to every agent"));
        };
        let mut value = opened.value.clone();
        set(&mut value, &at, json!(other));
        let ask = Ask {
            to: other.clone(),
            ..again(&opened)
        };
        let what = format!("{from} → {other}");
        self.must_refuse(&ask, &value, &what, ErrorCode::RouteRefused)
    }

    /// Sends on from a handoff that was not claimed.
    fn unclaimed(&mut self) -> Outcome {
        let opened = self.open().map_err(|failure| said(&failure))?;
        let seen = BTreeSet::from([opened.record.from.clone()]);
        let Move::Send(ask) = self.usual_move(&opened.record, &seen) else {
            return nothing_to_play("its receiver sends nothing on");
        };
        match self.send(&ask) {
            Ok(_) => unexpected(format!("{} sent {} without a claim", ask.from, ask.kind)),
            Err(failure) => refused_by(&failure, ErrorCode::NotClaimed),
        }
    }

    /// Sends the opening contract without a required field, and with an unfilled placeholder.
    fn incomplete(&mut self) -> Outcome {
        let opened = self.open().map_err(|failure| said(&failure))?;
        let schema = self
            .schemas
            .get(&self.kind(&opened.record.contract_type).schema);
        let required = schema.and_then(|schema| schema["required"].as_array());
        let required: Vec<String> = required
            .into_iter()
            .flatten()
            .filter_map(|name| Some(format!("/{}", name.as_str()?)))
            .collect();
        let Some(last) = required.last() else {
            return nothing_to_play("its schema requires nothing");
        };
        let mut without = opened.value.clone();
        remove(&mut without, last);
        let ask = again(&opened);
        let code = ErrorCode::ContractRefused;
        let told = self.must_refuse(&ask, &without, &format!("without {last}"), code)?;
        let mut unfilled = opened.value.clone();
        set(&mut unfilled, last, json!(format!("{FILL}: this}}}}")));
        self.must_refuse(&ask, &unfilled, &format!("with a mark at {last}"), code)?;
        Ok(told)
    }

    /// Claims a handoff that another worker of the same agent holds.
    fn second_claim(&mut self) -> Outcome {
        let opened = self.open().map_err(|failure| said(&failure))?;
        let claimed = self.claim(&opened.record, "1");
        claimed.map_err(|error| said(&error.into()))?;
        match self.claim(&opened.record, "2") {
            Ok(_) => unexpected(format!(
                "two workers of {} hold {}",
                opened.record.to, opened.record.id
            )),
            Err(error) => refused_by(&error.into(), ErrorCode::AlreadyClaimed),
        }
    }

    /// Plays each round until its limit is reached.
    fn limits(&mut self) -> Vec<(String, Outcome)> {
        let Some(limits) = self.protocol.definition().limits.clone() else {
            return Vec::new();
        };
        let mut played: Vec<(String, Outcome)> = Vec::new();
        for (name, round) in &limits.rounds {
            played.push((
                format!("{name} are limited to {}", round.most),
                self.rounds(name, round),
            ));
        }
        let item = limits.item.as_ref().map(|item| item.handoffs);
        let cycle = limits.cycle.as_ref().map(|cycle| cycle.most);
        let least = [limits.handoffs, item, cycle].into_iter().flatten().min();
        if let Some(most) = least {
            let outcome = match self.protocol.definition().style() {
                Style::Call => self.requests(most),
                Style::Relay => self.circles(most),
            };
            played.push(("work that goes round reaches a limit".to_owned(), outcome));
        }
        played
    }

    /// Sends the contracts of a round until one is refused.
    fn rounds(&mut self, name: &str, round: &RoundLimit) -> Outcome {
        let opened = self.open().map_err(|failure| said(&failure))?;
        let key = opened.record.id.issue().clone();
        let ended = self.walk(&key, &mut |trial, held| {
            let starts = trial.starting(held, round);
            let is_sender = |agent: &str| trial.may_start(agent, round);
            match starts.or_else(|| trial.toward(held, &is_sender)) {
                Some(ask) => Move::Send(ask),
                None => Move::Stop,
            }
        });
        let issue = self.issue(&key).map_err(|failure| said(&failure))?;
        let sent = issue.rounds(name);
        match ended {
            Err(failure) if is_limit(&failure) && sent == round.most => played(word_of(&failure)),
            Err(failure) if is_limit(&failure) => {
                nothing_to_play(format!("not reached, after {sent}: {}", failure.message))
            }
            Err(failure) => unexpected(said(&failure)),
            Ok(_) if sent > round.most => unexpected(format!("{sent} were accepted")),
            Ok(_) => nothing_to_play(format!("no way leads back after {sent}")),
        }
    }

    fn may_start(&self, agent: &str, round: &RoundLimit) -> bool {
        let kinds = |name: &String| round.contracts.contains(name);
        self.protocol
            .routes_from(agent)
            .any(|route| route.contracts.iter().any(kinds))
    }

    /// The contract that starts another round, back to the earlier sender if possible.
    fn starting(&self, held: &Record, round: &RoundLimit) -> Option<Ask> {
        let routes = self.protocol.routes_from(held.to.as_str());
        let found = routes.filter_map(|route| {
            let mut kinds = route.contracts.iter();
            let kind = kinds.find(|kind| round.contracts.contains(kind))?;
            let ends = self.protocol.is_kind(route.to.as_str(), AgentKind::End);
            (!ends).then(|| ask(held, &route.to, kind))
        });
        let back = |ask: &Ask| ask.to != held.from;
        let mut ask = found.min_by_key(back)?;
        let fixed = round.when.iter().filter_map(|(at, words)| {
            let word = words.texts().iter().find(|word| *word != "*")?;
            Some((at.clone(), json!(word)))
        });
        ask.fixed.extend(fixed);
        Some(ask)
    }

    /// Sends the same request in one issue until a limit refuses it.
    fn requests(&mut self, most: u32) -> Outcome {
        let mut opened = self.open().map_err(|failure| said(&failure))?;
        for made in 1..=most.saturating_add(1) {
            let claimed = self.claim(&opened.record, "1");
            let held = claimed.map_err(|error| said(&error.into()))?;
            match self.answer(&held) {
                Some(ask) => drop(self.send(&ask).map_err(|failure| said(&failure))?),
                None => return nothing_to_play("its requests have no answer"),
            }
            let ask = again(&opened);
            let number = opened.record.id.number();
            opened = match self.send(&ask) {
                Ok(sent) if sent.record.id.number() > number => sent,
                Ok(_) => return nothing_to_play("the same request again is the first one"),
                Err(failure) if is_limit(&failure) => {
                    return played(format!("{} after {made}", word_of(&failure)));
                }
                Err(failure) => return unexpected(said(&failure)),
            };
        }
        unexpected(format!("{} requests were accepted", most + 2))
    }

    /// Hands work on in a cycle until a limit refuses it.
    fn circles(&mut self, most: u32) -> Outcome {
        let opened = self.open().map_err(|failure| said(&failure))?;
        let key = opened.record.id.issue().clone();
        let ended = self.walk(&key, &mut |trial, held| {
            let own = held.to.clone();
            let goes_back = |agent: &str| agent == own.as_str();
            trial
                .toward(held, &goes_back)
                .map_or(Move::Stop, Move::Send)
        });
        match ended {
            Err(failure) if is_limit(&failure) => played(word_of(&failure)),
            Err(failure) => unexpected(said(&failure)),
            Ok(issue) if issue.handoffs > most => {
                unexpected(format!("{} were accepted", issue.handoffs))
            }
            Ok(_) => nothing_to_play("no way leads back"),
        }
    }

    /// Fails the first handoff until its retries are spent, then redrives it.
    fn failures(&mut self) -> Outcome {
        let opened = self.open().map_err(|failure| said(&failure))?;
        let retry = self.protocol.definition().retry().cloned();
        let own = opened.record.max_retries;
        let most = own.or(retry.as_ref().and_then(|retry| retry.max_retries));
        let dies = retry.is_some();
        let never = retry.map(|retry| retry.never).unwrap_or_default();
        let mut codes = self.protocol.definition().words.errors.keys();
        let code = codes.find(|code| !never.contains(code)).cloned();
        let failure = Reported {
            code: code.unwrap_or_else(|| "TRIAL".to_owned()),
            message: "It failed in a trial".to_owned(),
            details: None,
            recoverable: true,
            suggested_action: None,
            no_retry: false,
            run: None,
        };
        let sender = opened.record.from.clone();
        let mut record = opened.record;
        for failures in 1..=MOST_FAILURES {
            if let Some(at) = record.not_before {
                self.wait_until(at);
            }
            let claimed = self.claim(&record, "1");
            record = claimed.map_err(|error| said(&error.into()))?;
            let args = EventArgs {
                failure: Some(failure.clone()),
                ..EventArgs::default()
            };
            let agent = record.to.clone();
            let failed = self.apply(&record, &agent, Event::Fail, args);
            record = failed.map_err(|failure| said(&failure))?;
            if record.state == State::Dead {
                let expected = most.map(|most| most + 1);
                if expected != Some(failures) {
                    return unexpected(format!("it is dead after {failures} attempts"));
                }
                let args = EventArgs::because("a new start");
                let redriven = self.apply(&record, &sender, Event::Redrive, args);
                redriven.map_err(|failure| said(&failure))?;
                return played(format!("dead after {failures} attempts, then redriven"));
            }
            if most.is_some_and(|most| failures > most) {
                // Without `limits.retry`, only the next retry is refused.
                let again = self.apply(&record, &sender, Event::Retry, EventArgs::default());
                return match again {
                    Err(failure) if !dies => {
                        played(format!("{} after {failures} attempts", word_of(&failure)))
                    }
                    _ => unexpected(format!("it is {} after {failures} attempts", record.state)),
                };
            }
            let args = EventArgs {
                jitter: Some(500),
                ..EventArgs::default()
            };
            let issue = self.issue(record.id.issue());
            let issue = issue.map_err(|failure| said(&failure))?;
            let is_spent = issue.attempts_spent(&self.protocol, &record.contract_type);
            record = match self.apply(&record, &sender, Event::Retry, args) {
                Ok(retried) => retried,
                Err(failure) if is_spent.is_some() => {
                    return played(format!("{} after {failures} attempts", word_of(&failure)));
                }
                Err(failure) => return unexpected(said(&failure)),
            };
        }
        played(format!("there is no limit: {MOST_FAILURES} attempts"))
    }

    /// Sends a contract of each type that was not sent yet.
    fn other_types(&mut self) -> Outcome {
        let definition = self.protocol.definition();
        let first = definition.formats.first();
        let known: BTreeSet<&String> = self.learned.keys().map(|(kind, ..)| kind).collect();
        let usual =
            |kind: &&ContractType| !kind.note && first.is_none_or(|format| kind.has_format(format));
        let kinds = definition.contracts.iter().filter(usual);
        let kinds = kinds
            .map(|kind| &kind.name)
            .filter(|name| !known.contains(name));
        let kinds: Vec<String> = kinds.cloned().collect();
        let mut sent = Vec::new();
        for kind in kinds {
            if self.send_once(&kind)? {
                sent.push(kind);
            }
        }
        match &sent[..] {
            [] => nothing_to_play("there is none"),
            sent => played(sent.join(", ")),
        }
    }

    /// Brings work to an agent that sends contracts of a type, and has it send one; returns whether
    /// such an agent exists.
    fn send_once(&mut self, kind: &str) -> Result<bool, String> {
        let of_type = |failure: &Failure| format!("{kind}: {}", said(failure));
        if self.opening(|name| name == kind).is_some() {
            let opened = self.open_with(|name| name == kind);
            return opened.map(|_| true).map_err(|failure| of_type(&failure));
        }
        let opened = self.open().map_err(|failure| of_type(&failure))?;
        let mut is_sent = false;
        let walked = self.walk(&opened.record.id.issue().clone(), &mut |trial, held| {
            if is_sent {
                return Move::Stop;
            }
            match trial.own_contract(held, kind) {
                Some(ask) => {
                    is_sent = true;
                    Move::Send(ask)
                }
                None => {
                    let sends = |agent: &str| trial.receiver_of(agent, kind).is_some();
                    trial.toward(held, &sends).map_or(Move::Stop, Move::Send)
                }
            }
        });
        walked.map_err(|failure| of_type(&failure))?;
        Ok(is_sent)
    }

    /// A contract of this type that an agent can send about the handoff it holds.
    fn own_contract(&self, held: &Record, kind: &str) -> Option<Ask> {
        if self.kind(kind).answers.contains(&held.contract_type) {
            return Some(Ask {
                answers: Some(held.id.number()),
                ..ask(held, &held.from, kind)
            });
        }
        let to = self.receiver_of(held.to.as_str(), kind)?;
        Some(ask(held, &to, kind))
    }

    /// The first receiver to which an agent may send contracts of a type.
    fn receiver_of(&self, agent: &str, kind: &str) -> Option<AgentName> {
        let mut routes = self.protocol.routes_from(agent);
        let route = routes.find(|route| route.contracts.iter().any(|name| name == kind))?;
        Some(route.to.clone())
    }

    /// Plays many issues to their end and measures the time.
    fn load(&mut self, issues: u32) -> Result<Load, Untold> {
        let (before, start) = (self.steps, Instant::now());
        let mut done = 0;
        while done < issues && start.elapsed() < LONGEST {
            self.usual_way()?;
            done += 1;
        }
        Ok(Load {
            issues: done,
            steps: self.steps - before,
            milliseconds: u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX),
        })
    }

    /// Sends a contract that must be refused with this code.
    fn must_refuse(&mut self, ask: &Ask, value: &Value, what: &str, code: ErrorCode) -> Outcome {
        match self.offer(ask, value) {
            Ok(_) => unexpected(format!("{what} was accepted")),
            Err(error) => {
                let failure = Failure::from(error);
                refused_by(&failure, code)?;
                played(format!("{what}: {}", word_of(&failure)))
            }
        }
    }
}

/// A contract that was sent, to send in the same issue again.
fn again(sent: &Sent) -> Ask {
    Ask {
        issue: sent.record.id.issue().clone(),
        from: sent.record.from.clone(),
        to: sent
            .record
            .intended
            .clone()
            .unwrap_or_else(|| sent.record.to.clone()),
        kind: sent.record.contract_type.clone(),
        answers: None,
        fixed: Vec::new(),
    }
}

fn is_limit(failure: &Failure) -> bool {
    matches!(
        failure.code,
        Some(ErrorCode::LimitReached | ErrorCode::Cycle)
    )
}

fn word_of(failure: &Failure) -> String {
    failure.word().to_owned()
}

/// A refusal in one line.
fn said(failure: &Failure) -> String {
    let first = failure.findings.iter().find(|finding| finding.is_error());
    let finding = first.map(|finding: &Finding| format!(" ({} {})", finding.code, finding.message));
    let repeats = first.is_some_and(|finding| failure.message.contains(&finding.message));
    format!(
        "{}: {}{}",
        failure.word(),
        failure.message,
        finding.filter(|_| !repeats).unwrap_or_default()
    )
}

fn listed(open: &[String]) -> String {
    if open.is_empty() {
        return "nothing in it is open".to_owned();
    }
    open.join(", ")
}
