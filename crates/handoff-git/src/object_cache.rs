//! What was read not long ago, by object.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use handoff_base::ObjectId;

/// The first bytes of an id, which is a hash already. A memory is small: ids that
/// were made to collide slow it down, and nothing worse.
#[derive(Default)]
pub struct Start(u64);

impl Hasher for Start {
    fn write(&mut self, bytes: &[u8]) {
        if let Some(start) = bytes.first_chunk() {
            self.0 = u64::from_ne_bytes(*start);
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// Values by the ids of objects.
pub type ById<V> = HashMap<ObjectId, V, BuildHasherDefault<Start>>;

type Values<V> = ById<(V, usize)>;

/// A bounded memory: what was asked for lately stays, the rest goes.
pub struct Recent<V> {
    young: Values<V>,
    old: Values<V>,
    weight: usize,
    limit: usize,
}

impl<V: Clone> Recent<V> {
    /// A memory for values of this weight, and for as much again that is about
    /// to be forgotten.
    pub fn new(limit: usize) -> Self {
        Self {
            young: Values::default(),
            old: Values::default(),
            weight: 0,
            limit,
        }
    }

    /// What is remembered of this object.
    pub fn get(&mut self, id: ObjectId) -> Option<V> {
        if let Some((value, _)) = self.young.get(&id) {
            return Some(value.clone());
        }
        let (value, weight) = self.old.remove(&id)?;
        self.put(id, value.clone(), weight);
        Some(value)
    }

    /// Remembers a value of this weight.
    pub fn put(&mut self, id: ObjectId, value: V, weight: usize) {
        if self.weight + weight > self.limit {
            self.old = std::mem::take(&mut self.young);
            self.weight = 0;
        }
        self.weight += weight;
        self.young.insert(id, (value, weight));
    }
}
