//! Routes: who may send what to whom.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;

use handoff_base::ids::AgentName;
use schemars::JsonSchema;
use serde::de::value::SeqAccessDeserializer;
use serde::de::{self, IntoDeserializer, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// A route from one agent to another.
#[derive(Clone, Debug)]
pub struct Route {
    /// The sender; `*` means every agent except the receiver.
    pub from: String,
    /// The receiver.
    pub to: AgentName,
    /// The contract types that may use it.
    pub contracts: Vec<String>,
    /// Whether a contract on this route may open an issue.
    pub opens: bool,
    /// The agent that gets the contract first and decides.
    pub via: Option<AgentName>,
    /// The time in which the receiver must claim what comes this way, in seconds.
    pub acknowledge_seconds: Option<u64>,
    /// The paths of the route, its sender and its receiver in the definition.
    pub(crate) at: Places,
}

impl Route {
    /// The path of one of its keys in the definition.
    pub fn place(&self, key: &str) -> String {
        format!("{}/{key}", self.at.route)
    }
}

/// The paths at which a route, its sender and its receiver are written.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    pub(crate) route: String,
    pub(crate) from: String,
    pub(crate) to: String,
}

/// A forbidden route, and why.
#[derive(Clone, Debug)]
pub struct Forbidden {
    /// The sender.
    pub from: String,
    /// The receiver.
    pub to: AgentName,
    /// The reason that is shown.
    pub reason: String,
    /// Its path in the definition.
    pub(crate) at: Places,
}

/// The routes of a protocol, and those that it forbids.
#[derive(Clone, Debug, Default)]
pub struct Routes {
    routes: Vec<Route>,
    /// The forbidden ones.
    pub forbidden: Vec<Forbidden>,
}

impl Deref for Routes {
    type Target = [Route];

    fn deref(&self) -> &[Route] {
        &self.routes
    }
}

impl<'r> IntoIterator for &'r Routes {
    type Item = &'r Route;
    type IntoIter = std::slice::Iter<'r, Route>;

    fn into_iter(self) -> Self::IntoIter {
        self.routes.iter()
    }
}

/// A route as it is stored: from one agent or several to one or several, none of which sends to itself.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Route")]
pub(super) struct StoredRoute {
    /// The sender, or several; `*` is every agent but the receiver.
    from: Several<String>,
    /// The receiver, or several; nobody sends to itself.
    to: Several<AgentName>,
    /// The contract types that may use it, unless `forbidden`.
    contracts: Option<Vec<String>>,
    /// Why nothing may go this way, for who tries.
    forbidden: Option<String>,
    /// Whether a contract on this route may open an issue.
    #[serde(default)]
    opens: bool,
    /// The agent that gets the contract first and decides.
    via: Option<AgentName>,
    /// Seconds in which the receiver must claim, else it fails with `NOT_ACKNOWLEDGED`; by default
    /// any; a contract's own time precedes.
    acknowledge_seconds: Option<u64>,
}

/// A stored route that is either allowed or forbidden.
#[derive(Deserialize)]
#[serde(try_from = "StoredRoute")]
struct Entry(StoredRoute);

impl TryFrom<StoredRoute> for Entry {
    type Error = &'static str;

    fn try_from(stored: StoredRoute) -> Result<Self, Self::Error> {
        let more = stored.opens || stored.via.is_some() || stored.acknowledge_seconds.is_some();
        match (&stored.contracts, &stored.forbidden) {
            (Some(_), None) => Ok(Self(stored)),
            (None, Some(_)) if !more => Ok(Self(stored)),
            (None, None) => Err("missing field `contracts`"),
            _ => Err("a forbidden route has only `from`, `to` and the reason"),
        }
    }
}

/// One or several.
#[derive(JsonSchema)]
#[serde(untagged)]
enum Several<T> {
    /// One.
    One(T),
    /// Several.
    List(Vec<T>),
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Several<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Names<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Names<T> {
            type Value = Several<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name or a list of names")
            }

            fn visit_str<E: de::Error>(self, name: &str) -> Result<Self::Value, E> {
                T::deserialize(name.into_deserializer()).map(Several::One)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Self::Value, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(list)).map(Several::List)
            }
        }
        deserializer.deserialize_any(Names(PhantomData))
    }
}

impl<T: Clone> Several<T> {
    /// Each item with its path.
    fn each(&self, at: &str) -> Vec<(String, T)> {
        match self {
            Self::One(one) => vec![(at.to_owned(), one.clone())],
            Self::List(list) => {
                let list = list.iter().enumerate();
                list.map(|(i, one)| (format!("{at}/{i}"), one.clone()))
                    .collect()
            }
        }
    }
}

impl Routes {
    /// Expands a stored route to a route from each sender to each receiver, except from an agent to
    /// itself.
    fn add(&mut self, i: usize, stored: &StoredRoute) {
        let route = format!("/routes/{i}");
        let senders = stored.from.each(&format!("{route}/from"));
        let receivers = stored.to.each(&format!("{route}/to"));
        let several = senders.len() > 1 && receivers.len() > 1;
        for (from_at, from) in &senders {
            let others = receivers.iter();
            for (to_at, to) in others.filter(|(_, to)| !several || to.as_str() != from) {
                let at = Places {
                    route: route.clone(),
                    from: from_at.clone(),
                    to: to_at.clone(),
                };
                let (from, to) = (from.clone(), to.clone());
                match stored.forbidden.clone() {
                    Some(reason) => self.forbidden.push(Forbidden {
                        from,
                        to,
                        reason,
                        at,
                    }),
                    None => self.routes.push(Route {
                        from,
                        to,
                        contracts: stored.contracts.clone().unwrap_or_default(),
                        opens: stored.opens,
                        via: stored.via.clone(),
                        acknowledge_seconds: stored.acknowledge_seconds,
                        at,
                    }),
                }
            }
        }
    }
}

impl<'de> Deserialize<'de> for Routes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut all = Self::default();
        let stored = Vec::<Entry>::deserialize(deserializer)?;
        let stored = stored.iter().enumerate();
        stored.for_each(|(i, Entry(route))| all.add(i, route));
        Ok(all)
    }
}
