//! The object database: ids, loose objects and packs. libgit2 is the fallback reader and the
//! general writer; which repository the objects belong to is decided in `repository`.

mod bulk;
mod cache;
mod id;
mod loose;
mod new_objects;
mod pack_index;
mod pack_reader;
mod pack_writer;
mod reader;

pub(crate) use bulk::Bulk;
pub use cache::{ById, Recent};
pub use id::blob_id;
pub(crate) use id::{ToOid, git2_format, hash, object_format, object_id};
pub(crate) use loose::{file_of, is_cut_off, is_damaged, is_object_name, write as write_file};
pub(crate) use new_objects::{Fresh, Grown, Written};
pub(crate) use pack_reader::Reads;
pub(crate) use reader::{Check, ObjectReader};

use std::rc::Rc;

use git2::ObjectType;

pub(crate) type Object = (ObjectType, Rc<[u8]>);

/// The maximum size of an object that is read here, a hundred times what a step writes.
const MOST_BYTES: usize = 1 << 20;
