//! The board's data: a column of handoffs that need attention, and one for each agent with open
//! handoffs.

use std::collections::BTreeMap;
use std::sync::Arc;

use handoff::base::ids::{AgentName, IssueKey};
use handoff::ledger::attention::Attention;
use handoff::model::{Paused, Record};
use handoff::protocol::State;

/// The title of the first column.
pub(super) const ATTENTION: &str = "needs attention";

/// The board at one commit of the ledger.
#[derive(Debug, Default)]
pub(super) struct Board {
    /// The ledger's branch and commit.
    pub(super) ledger: String,
    /// Why the board is incomplete or out of date, if it is.
    pub(super) trouble: Option<String>,
    pub(super) columns: Vec<Column>,
}

/// A column: needs, or the handoffs of one agent.
#[derive(Debug)]
pub(super) struct Column {
    pub(super) title: String,
    pub(super) cards: Vec<Card>,
}

/// A handoff in a column.
#[derive(Clone, Debug)]
pub(super) struct Card {
    pub(super) record: Arc<Record>,
    /// Its need, if it has one.
    pub(super) attention: Option<Arc<Attention>>,
    /// The pause of its issue.
    pub(super) paused: Option<Arc<Paused>>,
}

/// The data read for a board.
#[derive(Default)]
pub(super) struct Found {
    /// The open handoffs.
    pub(super) open: Vec<Arc<Record>>,
    /// The pauses of the paused issues among those of the open handoffs.
    pub(super) paused: BTreeMap<IssueKey, Arc<Paused>>,
    /// The needs, each with whether it is the turn of a person or of the agent acting here.
    pub(super) attention: Vec<(bool, Card)>,
    /// The agents, in the order of their protocols.
    pub(super) agents: Vec<AgentName>,
}

impl Found {
    /// Sorts the data into columns.
    pub(super) fn columns(self) -> Vec<Column> {
        let Self {
            open,
            paused,
            mut attention,
            agents,
        } = self;
        attention.sort_by_key(|(is_own, card)| {
            let needed = card.attention.as_ref();
            (!is_own, needed.map(|a| (a.need, a.since, a.id.clone())))
        });
        let cards: Vec<Card> = attention.into_iter().map(|(_, card)| card).collect();
        let needs: BTreeMap<_, _> = cards
            .iter()
            .filter_map(|card| Some((card.record.id.clone(), card.attention.clone()?)))
            .collect();
        let mut by_agent: BTreeMap<AgentName, Vec<Card>> = BTreeMap::new();
        for record in open {
            let attention = needs.get(&record.id).cloned();
            let cards = by_agent.entry(record.to.clone()).or_default();
            cards.push(Card {
                paused: paused.get(record.id.issue()).cloned(),
                record,
                attention,
            });
        }
        let mut columns = vec![Column {
            title: ATTENTION.to_owned(),
            cards,
        }];
        let mut by_agent: Vec<_> = by_agent.into_iter().collect();
        let place = |agent: &AgentName| agents.iter().position(|known| known == agent);
        by_agent.sort_by_key(|(agent, _)| place(agent).unwrap_or(usize::MAX));
        columns.extend(by_agent.into_iter().map(|(agent, mut cards)| {
            cards.sort_by_cached_key(Card::order);
            Column {
                title: agent.to_string(),
                cards,
            }
        }));
        columns
    }
}

impl Card {
    /// The sort key of a card: needs first, then by state, then by age.
    fn order(&self) -> impl Ord + use<> {
        let record = &self.record;
        let state = State::ALL.iter().position(|state| *state == record.state);
        let since = record.latest().map(|last| last.at);
        (self.attention.is_none(), state, since, record.id.clone())
    }

    /// Whether a text occurs in the card's data.
    pub(super) fn has(&self, text: &str) -> bool {
        let record = &self.record;
        let worker = record.lease.as_ref().map(|lease| lease.worker.as_str());
        let need = self.attention.as_ref().map(|found| found.need.title());
        let texts = [
            Some(record.id.to_string()),
            Some(record.state.to_string()),
            Some(record.to.to_string()),
            Some(record.from.to_string()),
            Some(record.title.clone()),
            Some(record.contract_type.to_string()),
            record.code.as_ref().map(|code| code.branch.clone()),
            Some(record.subject().to_owned()),
            record.priority.clone(),
            worker.map(str::to_owned),
            need.map(str::to_owned),
        ];
        let text = text.to_lowercase();
        let mut texts = texts.into_iter().flatten();
        texts.any(|other| other.to_lowercase().contains(&text))
    }
}
