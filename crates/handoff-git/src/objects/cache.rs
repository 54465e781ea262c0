//! A bounded cache of objects.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};

use handoff_base::ObjectId;

/// Hashes a key by its first bytes, because an object id is a hash already. Crafted collisions only
/// slow down a small cache.
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

type Values<V, K> = HashMap<K, (V, usize), BuildHasherDefault<Start>>;

/// A bounded cache that evicts what was not used recently.
pub struct Recent<V, K = ObjectId> {
    young: Values<V, K>,
    old: Values<V, K>,
    weight: usize,
    limit: usize,
}

impl<V: Clone, K: Copy + Eq + Hash> Recent<V, K> {
    /// Creates a cache of this total weight. Up to the same amount of older values is kept until it
    /// is evicted.
    pub fn new(limit: usize) -> Self {
        Self {
            young: Values::default(),
            old: Values::default(),
            weight: 0,
            limit,
        }
    }

    /// The cached value of a key.
    pub fn get(&mut self, id: K) -> Option<V> {
        if let Some((value, _)) = self.young.get(&id) {
            return Some(value.clone());
        }
        let (value, weight) = self.old.remove(&id)?;
        self.put(id, value.clone(), weight);
        Some(value)
    }

    /// Adds a value of this weight.
    pub fn put(&mut self, id: K, value: V, weight: usize) {
        if self.weight + weight > self.limit {
            self.old = std::mem::take(&mut self.young);
            self.weight = 0;
        }
        self.weight += weight;
        self.young.insert(id, (value, weight));
    }
}
