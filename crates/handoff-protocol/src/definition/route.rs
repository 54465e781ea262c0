//! Routes: who may send what to whom.

use std::fmt;
use std::marker::PhantomData;

use handoff_base::ids::AgentName;
use schemars::JsonSchema;
use serde::de::value::SeqAccessDeserializer;
use serde::de::{self, IntoDeserializer, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_with::skip_serializing_none;

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
    /// Its place in the definition, and those of its sender and its receiver there.
    pub(crate) at: Places,
}

impl Route {
    /// The place of a key of it in the definition.
    pub fn place(&self, key: &str) -> String {
        format!("{}/{key}", self.at.route)
    }
}

/// Where a route is written.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    pub(crate) route: String,
    pub(crate) from: String,
    pub(crate) to: String,
}

/// A route as it is stored: from one agent or several to one or several, none of which sends to itself.
#[skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Route")]
pub(super) struct StoredRoute {
    /// The sender, or several; `*` is every agent but the receiver.
    from: Several<String>,
    /// The receiver, or several; nobody sends to itself.
    to: Several<AgentName>,
    /// The contract types that may use it.
    contracts: Vec<String>,
    /// Whether a contract on this route may open an issue.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    opens: bool,
    /// The agent that gets the contract first and decides.
    via: Option<AgentName>,
    /// Seconds in which the receiver must claim, else it fails with `NOT_ACKNOWLEDGED`; by default
    /// any; a contract's own time precedes.
    acknowledge_seconds: Option<u64>,
}

/// One or several.
#[derive(Clone, Debug, Serialize, JsonSchema)]
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
    /// Each, with its place under this one.
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

impl StoredRoute {
    fn routes(&self, i: usize) -> Vec<Route> {
        let route = format!("/routes/{i}");
        let senders = self.from.each(&format!("{route}/from"));
        let receivers = self.to.each(&format!("{route}/to"));
        let several = senders.len() > 1 && receivers.len() > 1;
        let mut found = Vec::new();
        for (from_at, from) in &senders {
            let others = receivers.iter();
            for (to_at, to) in others.filter(|(_, to)| !several || to.as_str() != from) {
                found.push(Route {
                    from: from.clone(),
                    to: to.clone(),
                    contracts: self.contracts.clone(),
                    opens: self.opens,
                    via: self.via.clone(),
                    acknowledge_seconds: self.acknowledge_seconds,
                    at: Places {
                        route: route.clone(),
                        from: from_at.clone(),
                        to: to_at.clone(),
                    },
                });
            }
        }
        found
    }
}

/// Routes as they are stored.
pub(super) mod stored {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::{Route, Several, StoredRoute};

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<Route>, D::Error> {
        let stored = Vec::<StoredRoute>::deserialize(deserializer)?;
        let routes = stored.iter().enumerate();
        Ok(routes.flat_map(|(i, route)| route.routes(i)).collect())
    }

    pub(in super::super) fn serialize<S: Serializer>(
        routes: &[Route],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let stored = routes.iter().map(|route| StoredRoute {
            from: Several::One(route.from.clone()),
            to: Several::One(route.to.clone()),
            contracts: route.contracts.clone(),
            opens: route.opens,
            via: route.via.clone(),
            acknowledge_seconds: route.acknowledge_seconds,
        });
        stored.collect::<Vec<_>>().serialize(serializer)
    }
}
