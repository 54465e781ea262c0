//! A bounded cache of objects.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use handoff_base::ObjectId;

/// Hashes an object id to its first bytes: it is a hash already. Ids made to collide only slow down
/// a small cache.
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

/// A map keyed by object ids.
pub type ById<V> = HashMap<ObjectId, V, BuildHasherDefault<Start>>;

type Values<V> = ById<(V, usize)>;

/// A bounded cache that keeps what was used recently.
pub struct Recent<V> {
    young: Values<V>,
    old: Values<V>,
    weight: usize,
    limit: usize,
}

impl<V: Clone> Recent<V> {
    /// Creates a cache for values of this total weight, plus as much again that is about to be
    /// dropped.
    pub fn new(limit: usize) -> Self {
        Self {
            young: Values::default(),
            old: Values::default(),
            weight: 0,
            limit,
        }
    }

    /// The cached value of an object.
    pub fn get(&mut self, id: ObjectId) -> Option<V> {
        if let Some((value, _)) = self.young.get(&id) {
            return Some(value.clone());
        }
        let (value, weight) = self.old.remove(&id)?;
        self.put(id, value.clone(), weight);
        Some(value)
    }

    /// Adds a value of this weight.
    pub fn put(&mut self, id: ObjectId, value: V, weight: usize) {
        if self.weight + weight > self.limit {
            self.old = std::mem::take(&mut self.young);
            self.weight = 0;
        }
        self.weight += weight;
        self.young.insert(id, (value, weight));
    }
}
