//! The order of objects in packs. Most are stored as a delta to a neighbour, so reading them in
//! pack order finds each neighbour just unpacked.

use std::fs;

use handoff_base::ObjectId;

use super::Repository;
use crate::objects::offsets;

impl Repository {
    /// Sorts items by where their objects are stored: pack by pack, in each pack's order. Objects
    /// without a readable pack come last.
    pub fn in_storage_order<T>(&self, things: Vec<T>, id: impl Fn(&T) -> ObjectId) -> Vec<T> {
        /// After every pack.
        const NOWHERE: (usize, u32) = (usize::MAX, 0);
        let mut placed: Vec<_> = things.into_iter().map(|t| (NOWHERE, t)).collect();
        placed.sort_unstable_by_key(|(_, thing)| id(thing));
        let folder = self.common_dir().join("objects/pack");
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let indices = entries.map(|entry| entry.path());
        let is_index = |path: &std::path::PathBuf| path.extension().is_some_and(|e| e == "idx");
        for (number, path) in indices.filter(is_index).enumerate() {
            let ids = placed.iter().map(|(_, thing)| id(thing));
            // Sorting is an optimisation: an unreadable index is skipped.
            for (index, offset) in offsets(&path, self.format(), ids).unwrap_or_default() {
                placed[index].0 = (number, offset);
            }
        }
        placed.sort_by_key(|(position, _)| *position);
        placed.into_iter().map(|(_, thing)| thing).collect()
    }
}
