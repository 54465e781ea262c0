//! The objects written by this process.

use std::cell::Cell;
use std::rc::Rc;

use git2::ObjectType;
use handoff_base::ObjectId;

/// A shared flag: objects were added since the repository was opened.
#[derive(Clone, Debug, Default)]
pub(crate) struct Grown(Rc<Cell<bool>>);

impl Grown {
    pub(crate) fn note(&self) {
        self.0.set(true);
    }

    pub(crate) fn is_noted(&self) -> bool {
        self.0.get()
    }
}

/// How many bytes of written objects are kept for writing them again.
const KEPT_BYTES: usize = 32 << 20;

/// Objects written since a ref last moved, which may still be unreachable.
#[derive(Default)]
pub(crate) struct Fresh {
    pub(crate) objects: Vec<Written>,
    bytes: usize,
    /// Whether objects are written only to memory; then they are not tracked.
    pub(crate) in_memory: bool,
}

pub(crate) struct Written {
    pub(crate) id: ObjectId,
    pub(crate) kind: ObjectType,
    /// `None` beyond [`KEPT_BYTES`].
    pub(crate) bytes: Option<Box<[u8]>>,
}

impl Fresh {
    /// Tracks nothing: the objects of a dry run are discarded.
    pub(crate) fn in_memory() -> Self {
        Self {
            in_memory: true,
            ..Self::default()
        }
    }

    pub(crate) fn take(&mut self) -> Vec<Written> {
        self.bytes = 0;
        std::mem::take(&mut self.objects)
    }

    pub(crate) fn note(&mut self, id: ObjectId, kind: ObjectType, bytes: &[u8]) {
        if self.in_memory {
            return;
        }
        let kept = self.bytes + bytes.len() <= KEPT_BYTES;
        if kept {
            self.bytes += bytes.len();
        }
        let bytes = kept.then(|| bytes.into());
        self.objects.push(Written { id, kind, bytes });
    }
}
