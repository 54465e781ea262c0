//! What was read not long ago, by object.

use std::collections::HashMap;

use super::repository::ObjectId;

/// A bounded memory: what was asked for lately stays, the rest goes.
pub struct Recent<V> {
    young: HashMap<ObjectId, (V, usize)>,
    old: HashMap<ObjectId, (V, usize)>,
    weight: usize,
    limit: usize,
}

impl<V: Clone> Recent<V> {
    /// A memory for values of this weight, and for as much again that is about
    /// to be forgotten.
    pub fn new(limit: usize) -> Self {
        Self {
            young: HashMap::new(),
            old: HashMap::new(),
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
