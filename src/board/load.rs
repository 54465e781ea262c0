//! The thread that reads the ledger: once, and again whenever it changed.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use handoff_base::ids::AgentName;
use handoff_base::{Moment, ObjectId};
use handoff_git::Waker;
use handoff_ledger::attention::{Attention, of_record, protocols};
use handoff_ledger::{Ledger, Listed, Snapshot};
use handoff_model::{Record, person};
use handoff_protocol::{AgentKind, Protocol};

use super::Message;
use super::data::{Board, Card, Found};
use crate::args::remote::PollArgs;
use crate::context::lookout::{Lookout, Place};
use crate::context::{Context, Global};
use crate::environment::now;
use crate::failure::Failure;
use crate::output::Output;

/// How long a board is shown at most before it is judged again: a handoff becomes late without a
/// step.
const FRESH: Duration = Duration::from_secs(300);

/// The running thread.
pub(super) struct Loader {
    stop: Arc<AtomicBool>,
    waker: Receiver<Waker>,
    thread: JoinHandle<()>,
}

impl Loader {
    /// Starts reading for the agent that acts here.
    pub(super) fn start(
        global: Global,
        looks: PollArgs,
        acting: Option<AgentName>,
        to: Sender<Message>,
    ) -> Self {
        let stop = Arc::<AtomicBool>::default();
        let (ready, waker) = channel();
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            let context = Context::new(global);
            let reader = Reader {
                acting,
                stopped,
                records: HashMap::new(),
            };
            if let Err(failure) = reader.follow(&context, looks, &ready, &to) {
                // Without a receiver, nobody looks.
                let _ = to.send(Message::Failed(failure.message));
            }
        });
        Self {
            stop,
            waker,
            thread,
        }
    }

    /// Ends it.
    pub(super) fn stop(self) {
        self.stop.store(true, Ordering::SeqCst);
        if let Ok(waker) = self.waker.recv() {
            waker.wake();
        }
        // A panic was already reported.
        let _ = self.thread.join();
    }
}

struct Reader {
    acting: Option<AgentName>,
    stopped: Arc<AtomicBool>,
    /// The records that the last board was made of: only what changed is read again.
    records: HashMap<ObjectId, Arc<Record>>,
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
        let place = if looks.offline {
            Place::Here
        } else {
            Place::Both(context.remote(&repository)?)
        };
        let mut lookout = Lookout::open(ledger, place, looks.poll, None)?;
        // Without a receiver, it is to stop.
        let _ = ready.send(lookout.waker());
        // It prints nothing: the terminal is the board's.
        let mut output = Output::kept();
        let mut shown = None;
        while !self.stopped.load(Ordering::SeqCst) {
            let heard = lookout.tips(&mut output).err();
            let heard = heard.map(|failure| failure.message);
            let trouble = heard.or_else(|| lookout.trouble().map(str::to_owned));
            let now = now()?;
            let tip = lookout.ledger().newest();
            let current = tip.as_ref().ok().map(|tip| (tip.commit(), trouble.clone()));
            let is_same = matches!(&shown, Some((seen, until)) if *seen == current && now < *until);
            if !is_same {
                let board = tip
                    .map_err(Failure::from)
                    .and_then(|tip| self.board(lookout.ledger(), &tip, now));
                let message = match board {
                    _ if self.stopped.load(Ordering::SeqCst) => break,
                    Ok((board, until)) => {
                        shown = Some((current, until));
                        Message::Loaded(Board { trouble, ..board })
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

    /// The board, and until when it holds if nobody does anything.
    fn board(
        &mut self,
        ledger: &Ledger<'_>,
        tip: &Snapshot<'_>,
        now: Moment,
    ) -> Result<(Board, Moment), Failure> {
        let before = std::mem::take(&mut self.records);
        let mut read = |listed: Vec<Listed>| -> Result<Vec<(Listed, Arc<Record>)>, Failure> {
            let mut records = Vec::with_capacity(listed.len());
            for listed in listed {
                let known = before.get(&listed.content());
                let record = match known {
                    Some(record) => Arc::clone(record),
                    None if self.stopped.load(Ordering::SeqCst) => break,
                    None => Arc::new(tip.open_record(&listed)?),
                };
                self.records.insert(listed.content(), Arc::clone(&record));
                records.push((listed, record));
            }
            Ok(records)
        };
        let (open, awaiting) = (read(tip.open()?)?, read(tip.awaiting()?)?);
        let protocols = protocols(tip)?;
        let mut attention = Vec::new();
        let all = open.iter().map(|(_, record)| (record, None));
        let ended = awaiting
            .iter()
            .map(|(entry, record)| (record, Some(&entry.to)));
        for (record, awaited) in all.chain(ended) {
            let Some(protocol) = protocols.get(&record.protocol) else {
                continue;
            };
            if let Some(found) = of_record(tip, record, awaited, protocol, now)? {
                let is_own = self.is_own(&found, protocol);
                let card = Card {
                    record: Arc::clone(record),
                    attention: Some(Arc::new(found)),
                };
                attention.push((is_own, card));
            }
        }
        let ends = open.iter().filter_map(|(_, record)| {
            let waits = record.waits_until(now);
            record.expires_at().filter(|end| *end > now).or(waits)
        });
        let latest = now + FRESH;
        let until = ends.min().map_or(latest, |end| end.min(latest));
        let found = Found {
            open: open.into_iter().map(|(_, record)| record).collect(),
            attention,
            agents: agents(tip)?,
        };
        let board = Board {
            ledger: format!("{} at {}", ledger.branch(), tip.commit().short()),
            trouble: None,
            columns: found.columns(),
        };
        Ok((board, until))
    }

    /// Whether it is the turn of a person, or of the agent that acts here.
    fn is_own(&self, found: &Attention, protocol: &Protocol) -> bool {
        self.acting.as_ref() == Some(&found.turn)
            || person(protocol) == Some(&found.turn)
            || protocol.is_kind(found.turn.as_str(), AgentKind::Human)
    }
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
