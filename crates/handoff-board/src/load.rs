//! A thread that reads the ledger initially and after every change.

use std::cell::OnceCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use handoff::base::Moment;
use handoff::base::ids::AgentName;
use handoff::git::Waker;
use handoff::ledger::attention::{Attention, Watched, protocols};
use handoff::ledger::{Ledger, Snapshot};
use handoff::model::acts_as_person;
use handoff::protocol::Protocol;

use super::Message;
use super::data::{Board, Card, Found};
use handoff_cli::args::filter::Query;
use handoff_cli::args::remote::PollArgs;
use handoff_cli::context::lookout::{Lookout, Place};
use handoff_cli::context::{Context, Global};
use handoff_cli::environment::now;
use handoff_cli::failure::Failure;
use handoff_cli::output::Output;
use handoff_cli::render::{policies, policies_text, policy_line};

/// How often the board is read again without a change: handoffs become late as time passes.
const FRESH: Duration = Duration::from_secs(300);

/// A handle to the thread.
pub(super) struct Loader {
    stop: Arc<AtomicBool>,
    query: Arc<Mutex<Query>>,
    ready: Receiver<Waker>,
    waker: OnceCell<Waker>,
    thread: JoinHandle<()>,
}

impl Loader {
    /// Starts the thread, for the agent that acts here.
    pub(super) fn start(
        (global, query): (Global, Query),
        looks: PollArgs,
        acting: Option<AgentName>,
        to: Sender<Message>,
    ) -> Self {
        let stop = Arc::<AtomicBool>::default();
        let (to_wake, ready) = channel();
        let stopped = Arc::clone(&stop);
        let query = Arc::new(Mutex::new(query));
        let asked = Arc::clone(&query);
        let thread = thread::spawn(move || {
            let context = Context::new(global);
            let reader = Reader {
                acting,
                stopped,
                query: asked,
                watched: Watched::default(),
            };
            if let Err(failure) = reader.follow(&context, looks, &to_wake, &to) {
                // If nobody receives, the board is closed.
                let _ = to.send(Message::Failed(failure.message));
            }
        });
        Self {
            stop,
            query,
            ready,
            waker: OnceCell::new(),
            thread,
        }
    }

    /// From now on, loads only what matches a query.
    pub(super) fn filter(&self, query: Query) {
        *self.query.lock().unwrap_or_else(PoisonError::into_inner) = query;
        // A thread that is still starting reads the query anyway.
        if let Ok(waker) = self.ready.try_recv() {
            let _ = self.waker.set(waker);
        }
        self.waker.get().into_iter().for_each(Waker::wake);
    }

    /// Stops the thread.
    pub(super) fn stop(self) {
        self.stop.store(true, Ordering::SeqCst);
        if let Some(waker) = self.waker.into_inner().or_else(|| self.ready.recv().ok()) {
            waker.wake();
        }
        // A panic was already reported.
        let _ = self.thread.join();
    }
}

struct Reader {
    acting: Option<AgentName>,
    stopped: Arc<AtomicBool>,
    query: Arc<Mutex<Query>>,
    watched: Watched,
}

impl Reader {
    fn follow(
        mut self,
        context: &Context,
        looks: PollArgs,
        ready: &Sender<Waker>,
        to: &Sender<Message>,
    ) -> Result<(), Failure> {
        let repository = context.repository()?;
        let ledger = context.ledger(&repository)?;
        let place = Place::of(looks, context, &repository)?;
        let mut lookout = Lookout::open(ledger, place, looks.poll, None)?;
        // If nobody receives, the thread is about to be stopped.
        let _ = ready.send(lookout.waker());
        // Capture the output: the terminal belongs to the board.
        let mut output = Output::kept();
        let mut shown = None;
        while !self.stopped.load(Ordering::SeqCst) {
            let heard = lookout.tips(&mut output).err();
            let heard = heard.map(|failure| failure.message);
            let trouble = heard.or_else(|| lookout.trouble().map(str::to_owned));
            let now = now()?;
            let tip = lookout.ledger().newest();
            let query = self
                .query
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .clone();
            let current = tip.as_ref().ok();
            let current = current.map(|tip| (tip.commit(), trouble.clone(), query.clone()));
            let is_same = matches!(&shown, Some((seen, until)) if *seen == current && now < *until);
            if !is_same {
                let board = tip
                    .map_err(Failure::from)
                    .and_then(|tip| self.board(lookout.ledger(), &tip, query, now));
                let message = match board {
                    _ if self.stopped.load(Ordering::SeqCst) => break,
                    Ok((board, until)) => {
                        shown = Some((current, until));
                        Message::Loaded(Board {
                            trouble: trouble.or(board.trouble),
                            ..board
                        })
                    }
                    Err(failure) => Message::Failed(failure.message),
                };
                if to.send(message).is_err() {
                    break;
                }
            }
            let until = shown.as_ref().map(|(_, until)| *until - now);
            let pause = until.and_then(|left| left.to_std().ok()).unwrap_or(FRESH);
            lookout.pause(
                Some(pause.clamp(Duration::from_millis(100), FRESH)),
                &mut output,
            );
        }
        lookout.leave_fetched();
        Ok(())
    }

    /// The board, and the moment at which it becomes outdated without a step.
    fn board(
        &mut self,
        ledger: &Ledger<'_>,
        tip: &Snapshot<'_>,
        query: Query,
        now: Moment,
    ) -> Result<(Board, Moment), Failure> {
        let protocols = protocols(tip, now)?;
        let stopped = || self.stopped.load(Ordering::SeqCst);
        let query = query.known(tip)?;
        let mut standing = self.watched.look(tip, &protocols, now, stopped)?;
        query.retain(tip, &mut standing.open)?;
        let mut needs = Vec::new();
        for (found, record) in standing.needs {
            let is_for_another = found.takes_nothing && self.acting.as_ref() != Some(&found.turn);
            if !is_for_another && query.holds(tip, &record)? {
                needs.push((found, record));
            }
        }
        let attention = needs.into_iter().map(|(found, record)| {
            let is_own = self.is_own(&found, &protocols[&record.protocol]);
            let attention = Some(Arc::new(found));
            let card = Card {
                record,
                attention,
                paused: None,
            };
            (is_own, card)
        });
        let paused = tip.paused_among(standing.open.iter().map(|open| open.id.issue()))?;
        let latest = now + FRESH;
        let until = standing.until.map_or(latest, |end| end.min(latest));
        let found = Found {
            attention: attention.collect(),
            paused: (paused.into_iter())
                .map(|(key, paused)| (key, Arc::new(paused)))
                .collect(),
            open: standing.open,
            agents: agents(tip)?,
        };
        let board = Board {
            ledger: format!(
                "{} at {}{}",
                ledger.branch(),
                tip.commit().short(),
                policy(tip)?
            ),
            trouble: tip.manifest().paused.first().map(ToString::to_string),
            columns: found.columns(),
        };
        Ok((board, until))
    }

    /// Whether it is the turn of a person, or of the agent that acts here.
    fn is_own(&self, found: &Attention, protocol: &Protocol) -> bool {
        self.acting.as_ref() == Some(&found.turn) || acts_as_person(protocol, &found.turn)
    }
}

/// The policy of the protocols in force, if they check anything.
fn policy(tip: &Snapshot<'_>) -> Result<String, Failure> {
    let policy = policies_text(&policies(tip)?);
    let is_shown = !policy_line(&policy).is_empty();
    Ok(if is_shown {
        format!(", statements: {policy}")
    } else {
        String::new()
    })
}

/// The agents of every protocol, the default one's first.
fn agents(tip: &Snapshot<'_>) -> Result<Vec<AgentName>, Failure> {
    let mut agents = Vec::new();
    for name in tip.protocols()? {
        let rules = tip.rules(&name)?;
        let defined = rules.protocol().definition().agents.iter();
        agents.extend(defined.map(|agent| agent.id.clone()));
    }
    Ok(agents)
}
