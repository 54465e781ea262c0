//! A shallow clone's boundary.
//!
//! git keeps it in a file that any fetch may change. libgit2 reads that file once, and ignores it
//! in linked worktrees and when it compares histories, so it is read here.

use std::cell::RefCell;
use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::rc::Rc;
use std::time::SystemTime;

use handoff_base::ObjectId;

/// The commits whose parents are missing, and the file's stamp when they were read.
#[derive(Default)]
pub(crate) struct Boundary(RefCell<Option<(Stamp, Rc<HashSet<ObjectId>>)>>);

/// Identifies a version of the file, which is always replaced as a whole.
type Stamp = (Option<SystemTime>, u64);

impl Boundary {
    /// Whether a commit's parents are missing from the repository with this folder.
    pub(crate) fn holds(&self, common_dir: &Path, id: ObjectId) -> bool {
        let path = common_dir.join("shallow");
        let Ok(found) = fs::metadata(&path) else {
            return false;
        };
        let stamp = (found.modified().ok(), found.len());
        let mut known = self.0.borrow_mut();
        if let Some((at, ids)) = &*known
            && *at == stamp
        {
            return ids.contains(&id);
        }
        let text = fs::read_to_string(&path).unwrap_or_default();
        let ids: HashSet<ObjectId> = text.lines().filter_map(|line| line.parse().ok()).collect();
        let is = ids.contains(&id);
        *known = Some((stamp, Rc::new(ids)));
        is
    }
}
