//! The notices to a person.

use handoff::base::text::{cut, plain};
use handoff::base::words;
use handoff::contract::Secrets;
use handoff::ledger::attention::Attention;
use handoff::protocol::State;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// The maximum length of foreign text in a notice, in characters.
const LONGEST: usize = 500;

words! {
    /// Whether a need is new, changed, or over.
    pub enum Kind {
        /// New: something needs attention.
        Opened = "opened",
        /// Changed: for another reason.
        Updated = "updated",
        /// Over.
        Settled = "settled",
    }
}

/// A notice: what needs somebody, or does not any more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Notice {
    /// whether it is `opened`, `updated` or `settled`
    pub event: Kind,
    /// what all events about the same need have in common
    pub notice: String,
    /// the same for an event that is delivered once more, and different for each other one
    pub delivery: String,
    /// the ledger, by the same name in every clone: `urn:uuid:…`
    pub ledger: String,
    /// What needs somebody.
    #[serde(flatten)]
    pub about: Attention,
    /// the handoff's state, once the need is settled
    pub state: Option<State>,
    /// all of it in a line
    pub text: String,
}

impl Notice {
    /// The notice of a new need. Foreign texts in it are plain, short, and have secrets masked.
    pub fn opened(found: &Attention, ledger: &str) -> Self {
        let mut about = found.clone();
        let secrets = Secrets::in_value(&json!([about.title, about.why]));
        for text in [&mut about.title, &mut about.why] {
            secrets.mask_text(text);
            *text = cut(&plain(text), LONGEST);
        }
        let since = found.since.format("%Y-%m-%dT%H:%M:%S%.3fZ");
        let notice = format!("{}@{since}", found.id);
        Self {
            event: Kind::Opened,
            delivery: String::new(),
            notice,
            ledger: ledger.to_owned(),
            about,
            state: None,
            text: String::new(),
        }
        .worded()
    }

    /// Makes this notice an update of an earlier one.
    pub fn updating(self, earlier: &Self) -> Self {
        Self {
            event: Kind::Updated,
            notice: earlier.notice.clone(),
            ..self
        }
        .worded()
    }

    /// Sets the handoff's current state.
    pub fn in_state(self, state: Option<State>) -> Self {
        Self { state, ..self }.worded()
    }

    /// The notice that this need is settled.
    pub fn settled(&self) -> Self {
        Self {
            event: Kind::Settled,
            ..self.clone()
        }
        .worded()
    }

    /// Whether it is settled.
    pub fn is_settled(&self) -> bool {
        self.event == Kind::Settled
    }

    /// Whether another notice has the same content, so that it need not be sent.
    pub fn says(&self, other: &Self) -> bool {
        let (own, other) = (&self.about, &other.about);
        (own.need, &own.turn, &own.why, own.attempt)
            == (other.need, &other.turn, &other.why, other.attempt)
    }

    fn worded(mut self) -> Self {
        let Attention {
            id,
            title,
            turn,
            why,
            ..
        } = &self.about;
        let need = self.about.need.title();
        self.text = match self.event {
            Kind::Settled => {
                let state = self.state.map_or("gone", State::as_str);
                format!("{id} is settled, and {state} now ({title})")
            }
            _ if why.is_empty() || why == title => {
                format!("{id} {need}: {title} ({turn}'s turn)")
            }
            _ => format!("{id} {need}: {why} ({turn}'s turn; {title})"),
        };
        self.delivery = format!(
            "{}/{}/{}/{}",
            self.notice,
            self.event.as_str(),
            self.about.need.as_str(),
            self.about.attempt
        );
        self
    }
}
