//! Summaries in few bytes, which are read without copying text: numbers of variable length, times
//! as differences, text apart from the numbers, and names that many summaries share by number.
//!
//! What [`Packed`] writes in `brief`, [`Unpacking`] reads in the same order.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use handoff_base::ids::{AgentName, HandoffId, IdError, IssueKey};
use handoff_base::{Amount, Currency, Moment};
use handoff_model::spending::AgentSpending;
use handoff_model::{IssueStatus, Spent, TraceParent};
use handoff_protocol::{Action, Event, State};

use super::types::{
    ChangeSurvey, DecisionSurvey, HandoffSurvey, IssueSurvey, PauseSurvey, RoundSurvey, UsageSurvey,
};

const STATUSES: [IssueStatus; 3] = [
    IssueStatus::Open,
    IssueStatus::Completed,
    IssueStatus::Cancelled,
];

const ACTIONS: [Action; 9] = [
    Action::Advance,
    Action::Ask,
    Action::Retry,
    Action::Reassign,
    Action::ProceedPartial,
    Action::Skip,
    Action::FallBack,
    Action::Escalate,
    Action::Terminate,
];

/// The names of agents and the other words that summaries share, by number.
#[derive(Clone, Debug, Default)]
pub(super) struct Table {
    pub(super) agents: Vec<AgentName>,
    pub(super) words: Vec<String>,
}

/// Finds the numbers of names, and adds new names to a table that several threads share.
pub(super) struct Names<'t> {
    shared: &'t Mutex<Table>,
    agents: HashMap<String, u64>,
    words: HashMap<String, u64>,
}

impl<'t> Names<'t> {
    pub(super) fn new(shared: &'t Mutex<Table>) -> Self {
        Self {
            shared,
            agents: HashMap::new(),
            words: HashMap::new(),
        }
    }

    fn agent(&mut self, name: &str) -> Result<u64, IdError> {
        if let Some(known) = self.agents.get(name) {
            return Ok(*known);
        }
        let parsed: AgentName = name.parse()?;
        let mut table = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        let number = number_of(&mut table.agents, parsed);
        self.agents.insert(name.to_owned(), number);
        Ok(number)
    }

    fn word(&mut self, word: &str) -> u64 {
        if let Some(known) = self.words.get(word) {
            return *known;
        }
        let mut table = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        let number = number_of(&mut table.words, word.to_owned());
        self.words.insert(word.to_owned(), number);
        number
    }
}

fn number_of<T: PartialEq>(table: &mut Vec<T>, name: T) -> u64 {
    let found = table.iter().position(|known| *known == name);
    let number = found.unwrap_or_else(|| {
        table.push(name);
        table.len() - 1
    });
    number as u64
}

/// An issue or a handoff: its numbers and its text.
#[derive(Debug, Default)]
pub(super) struct Packed {
    pub(super) numbers: Vec<u8>,
    pub(super) text: String,
    /// Whether something in it may still need somebody.
    pub(super) is_active: bool,
    /// The last of all times in it, in milliseconds since 1970.
    pub(super) newest: i64,
    /// The time before, in milliseconds since 1970.
    time: i64,
}

impl Packed {
    pub(super) fn byte(&mut self, byte: u8) {
        self.numbers.push(byte);
    }

    pub(super) fn number(&mut self, number: impl Into<u64>) {
        write_number(&mut self.numbers, number.into());
    }

    pub(super) fn count(&mut self, count: usize) {
        self.number(count as u64);
    }

    pub(super) fn time(&mut self, at: Moment) {
        let at = at.timestamp_millis();
        let length = at.wrapping_sub(self.time);
        self.time = at;
        self.newest = self.newest.max(at);
        // The sign is the lowest bit.
        self.number(((length << 1) ^ (length >> 63)).cast_unsigned());
    }

    pub(super) fn text(&mut self, text: &str) {
        self.count(text.len());
        self.text.push_str(text);
    }

    pub(super) fn agent(&mut self, names: &mut Names<'_>, name: &str) -> Result<(), IdError> {
        let number = names.agent(name)?;
        self.number(number);
        Ok(())
    }

    pub(super) fn word(&mut self, names: &mut Names<'_>, word: &str) {
        let number = names.word(word);
        self.number(number);
    }

    pub(super) fn state(&mut self, state: State) {
        self.byte(position(&State::ALL, state));
    }

    pub(super) fn status(&mut self, status: IssueStatus) {
        self.byte(position(&STATUSES, status));
    }

    pub(super) fn action(&mut self, action: Action) {
        self.byte(position(&ACTIONS, action));
    }

    /// The head of a change: its event, the state after it, and whether it has more than times and
    /// an agent.
    pub(super) fn change(&mut self, event: Option<Event>, to: State, has_more: bool) {
        let event = event.map_or(0, |event| position(&Event::ALL, event) + 1);
        self.byte(event | position(&State::ALL, to) << 4 | u8::from(has_more) << 7);
    }

    pub(super) fn trace(&mut self, trace: TraceParent) {
        self.numbers.extend(trace.to_bytes());
    }

    /// Appends another's numbers and text.
    pub(super) fn append(&mut self, other: &Self) {
        self.numbers.extend(&other.numbers);
        self.text.push_str(&other.text);
        self.is_active |= other.is_active;
        self.newest = self.newest.max(other.newest);
    }
}

/// The position of one of a few values. Each list has all of them, and fewer than fifteen.
fn position<T: PartialEq>(all: &[T], one: T) -> u8 {
    let found = all.iter().position(|known| *known == one);
    found
        .and_then(|at| u8::try_from(at).ok())
        .unwrap_or(u8::MAX)
}

pub(super) fn write_number(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// What a handoff has besides what all of them have.
pub(super) mod has {
    pub(in crate::survey) const OTHER_RECEIVER: u64 = 1;
    pub(in crate::survey) const INTENDED: u64 = 1 << 1;
    pub(in crate::survey) const PRIORITY: u64 = 1 << 2;
    pub(in crate::survey) const STATUS: u64 = 1 << 3;
    pub(in crate::survey) const FOLLOWS: u64 = 1 << 4;
    pub(in crate::survey) const ANSWERS: u64 = 1 << 5;
    pub(in crate::survey) const REPLACES: u64 = 1 << 6;
    pub(in crate::survey) const TASK: u64 = 1 << 7;
    pub(in crate::survey) const WAITS_FOR: u64 = 1 << 8;
    pub(in crate::survey) const NOT_BEFORE: u64 = 1 << 9;
    pub(in crate::survey) const EXPIRES_AT: u64 = 1 << 10;
    pub(in crate::survey) const LEASE: u64 = 1 << 11;
    pub(in crate::survey) const FAULTS: u64 = 1 << 12;
    pub(in crate::survey) const ATTEMPTS: u64 = 1 << 13;
    pub(in crate::survey) const USAGE: u64 = 1 << 14;
}

/// What a change has besides what all of them have.
pub(super) mod tells {
    pub(in crate::survey) const RECEIVER: u8 = 1;
    pub(in crate::survey) const FAILURE: u8 = 1 << 1;
    pub(in crate::survey) const REASON: u8 = 1 << 2;
    pub(in crate::survey) const RAN_OUT: u8 = 1 << 3;
    pub(in crate::survey) const TRACE: u8 = 1 << 4;
}

/// Reads what was packed; `None` where it is not as it was written.
pub(super) struct Unpacking<'a> {
    pub(super) numbers: &'a [u8],
    pub(super) text: &'a str,
    pub(super) table: &'a Table,
    pub(super) time: i64,
}

impl<'a> Unpacking<'a> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.numbers.split_first()?;
        self.numbers = rest;
        Some(*first)
    }

    fn number(&mut self) -> Option<u64> {
        read_number(&mut self.numbers)
    }

    fn small(&mut self) -> Option<u32> {
        u32::try_from(self.number()?).ok()
    }

    fn count(&mut self) -> Option<usize> {
        // Each item takes a byte at least.
        let count = usize::try_from(self.number()?).ok()?;
        (count <= self.numbers.len()).then_some(count)
    }

    fn time(&mut self) -> Option<Moment> {
        let length = self.number()?;
        let length = (length >> 1).cast_signed() ^ -((length & 1).cast_signed());
        self.time = self.time.wrapping_add(length);
        Moment::from_timestamp_millis(self.time)
    }

    fn text(&mut self) -> Option<&'a str> {
        let length = usize::try_from(self.number()?).ok()?;
        let (text, rest) = self.text.split_at_checked(length)?;
        self.text = rest;
        Some(text)
    }

    fn agent(&mut self) -> Option<&'a AgentName> {
        let number = usize::try_from(self.number()?).ok()?;
        self.table.agents.get(number)
    }

    fn word(&mut self) -> Option<&'a str> {
        let number = usize::try_from(self.number()?).ok()?;
        self.table.words.get(number).map(String::as_str)
    }

    fn some<T>(
        &mut self,
        is_there: bool,
        read: impl FnOnce(&mut Self) -> Option<T>,
    ) -> Option<Option<T>> {
        if is_there {
            read(self).map(Some)
        } else {
            Some(None)
        }
    }

    fn list<T>(&mut self, mut read: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let count = self.count()?;
        let mut list = Vec::with_capacity(count);
        for _ in 0..count {
            list.push(read(self)?);
        }
        Some(list)
    }

    fn awaiting(&mut self) -> Option<(u32, &'a AgentName)> {
        Some((self.small()?, self.agent()?))
    }

    /// Reads an issue and its handoffs.
    pub(super) fn issue(mut self, key: &'a IssueKey) -> Option<IssueSurvey<'a>> {
        let title = self.text()?;
        let protocol = self.agent()?;
        let status = *STATUSES.get(usize::from(self.byte()?))?;
        let opened_at = self.time()?;
        let counts_since = self.time()?;
        let updated_at = self.time()?;
        let is_completed = self.byte()? == 1;
        let completed_at = self.some(is_completed, Self::time)?;
        let is_paused = self.byte()? == 1;
        let paused = self.some(is_paused, |own| {
            Some(PauseSurvey {
                at: own.time()?,
                by: own.agent()?,
                reason: own.text()?,
                except: own.list(Self::agent)?,
            })
        })?;
        let (steps, reopened, counts_after) = (self.small()?, self.small()?, self.small()?);
        let rounds = self.list(|own| {
            let (name, number) = (own.word()?, own.small()?);
            Some(RoundSurvey { name, number })
        })?;
        let unfollowed = self.list(Self::small)?;
        let awaiting = self.list(Self::awaiting)?;
        let to_tell = self.list(Self::awaiting)?;
        let decisions = self.list(|own| {
            let (at, number) = (own.time()?, own.small()?);
            let action = *ACTIONS.get(usize::from(own.byte()?))?;
            Some(DecisionSurvey { at, number, action })
        })?;
        let (findings, unsettled) = (self.small()?, self.small()?);
        let spent = self.list(|own| {
            let (agent, ended) = (own.agent()?.clone(), own.spent()?);
            let held = own.list(|own| {
                let id = HandoffId::new(key.clone(), own.small()?);
                Some((id, own.spent()?))
            })?;
            let held = held.into_iter().collect();
            Some((agent, AgentSpending { ended, held }))
        })?;
        Some(IssueSurvey {
            key,
            title,
            protocol,
            status,
            opened_at,
            counts_since,
            updated_at,
            completed_at,
            paused,
            steps,
            reopened,
            counts_after,
            rounds,
            unfollowed,
            awaiting,
            to_tell,
            decisions,
            findings,
            unsettled,
            spent: spent.into_iter().collect(),
            handoffs: self.list(Self::handoff)?,
        })
    }

    fn handoff(&mut self) -> Option<HandoffSurvey<'a>> {
        // Each handoff's times begin anew.
        self.time = 0;
        let more = self.number()?;
        let is_there = |what: u64| more & what != 0;
        let number = self.small()?;
        let state = *State::ALL.get(usize::from(self.byte()?))?;
        let contract_type = self.word()?;
        let (from, to) = (self.agent()?, self.agent()?);
        let summary = self.text()?;
        let changes = self.list(Self::change)?;
        let sent_to = self.some(is_there(has::OTHER_RECEIVER), Self::agent)?;
        let intended = self.some(is_there(has::INTENDED), Self::agent)?;
        let priority = self.some(is_there(has::PRIORITY), Self::word)?;
        let status = self.some(is_there(has::STATUS), Self::word)?;
        let follows = self.some(is_there(has::FOLLOWS), Self::small)?;
        let answers = self.some(is_there(has::ANSWERS), Self::small)?;
        let replaces = self.some(is_there(has::REPLACES), Self::small)?;
        let task = self.some(is_there(has::TASK), Self::text)?;
        let waits_for = self.some(is_there(has::WAITS_FOR), |own| own.list(Self::small))?;
        let not_before = self.some(is_there(has::NOT_BEFORE), Self::time)?;
        let expires_at = self.some(is_there(has::EXPIRES_AT), Self::time)?;
        let lease_seconds = self.some(is_there(has::LEASE), Self::number)?;
        let faults = |own: &mut Self| Some((own.small()?, own.small()?));
        let faults = self.some(is_there(has::FAULTS), faults)?;
        let attempt = self.some(is_there(has::ATTEMPTS), Self::small)?;
        let usage = self.some(is_there(has::USAGE), |own| own.list(Self::usage))?;
        let (contradicted, violations) = faults.unwrap_or_default();
        Some(HandoffSurvey {
            number,
            contract_type,
            from,
            to,
            sent_to: Cow::Borrowed(sent_to.unwrap_or(to)),
            intended,
            state,
            priority,
            status,
            summary,
            follows,
            answers,
            replaces,
            task,
            waits_for: waits_for.unwrap_or_default(),
            attempt: attempt.unwrap_or(1),
            not_before,
            expires_at,
            lease_seconds,
            contradicted,
            violations,
            usage: usage.unwrap_or_default(),
            changes,
        })
    }

    fn usage(&mut self) -> Option<UsageSurvey<'a>> {
        Some(UsageSurvey {
            at: self.time()?,
            by: self.agent()?,
            token: self.small()?,
            provider: self.word()?,
            model: self.word()?,
            spent: self.spent()?,
        })
    }

    fn spent(&mut self) -> Option<Spent> {
        Some(Spent {
            attempts: self.number()?,
            seconds: self.number()?,
            input_tokens: self.number()?,
            output_tokens: self.number()?,
            cached_tokens: self.number()?,
            turns: self.number()?,
            cost: {
                let costs = self.list(|own| {
                    let currency = Currency::try_from(own.word()?.to_owned()).ok()?;
                    Some((currency, Amount::from_billionths(own.number()?)))
                })?;
                costs.into_iter().collect()
            },
        })
    }

    fn change(&mut self) -> Option<ChangeSurvey<'a>> {
        let head = self.byte()?;
        let event = match head & 15 {
            0 => None,
            event => Some(*Event::ALL.get(usize::from(event - 1))?),
        };
        let to = *State::ALL.get(usize::from(head >> 4 & 7))?;
        let (at, by) = (self.time()?, self.agent()?);
        let more = if head >> 7 == 1 { self.byte()? } else { 0 };
        let is_there = |what: u8| more & what != 0;
        Some(ChangeSurvey {
            at,
            by,
            event,
            to,
            receiver: self.some(is_there(tells::RECEIVER), Self::agent)?,
            failure: self.some(is_there(tells::FAILURE), Self::word)?,
            reason: self
                .some(is_there(tells::REASON), Self::text)?
                .map(Cow::Borrowed),
            ran_out_at: self.some(is_there(tells::RAN_OUT), Self::time)?,
            traceparent: self.some(is_there(tells::TRACE), Self::trace)?,
        })
    }

    fn trace(&mut self) -> Option<TraceParent> {
        let (bytes, rest) = self.numbers.split_first_chunk()?;
        self.numbers = rest;
        TraceParent::from_bytes(*bytes)
    }
}

/// Reads a number of variable length.
pub(super) fn read_number(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(first & 0x7f) << shift;
        if *first < 0x80 {
            return Some(number);
        }
    }
    None
}
