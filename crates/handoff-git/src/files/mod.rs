//! Files of git directories and working trees: reading, locking, watching and checking, without an
//! open repository.

mod durability;
mod empty_file;
mod git_directory;
mod obstacle;
mod path_check;
mod queue;
mod read_at;
mod replace;
mod scratch;
mod shared_modes;
mod watch;

pub(crate) use durability::{refs_too, waits_for_disk};
pub(crate) use empty_file::remove_if_empty;
pub use git_directory::{git_directory_of, leads_out, led_to, read_regular};
pub use obstacle::Obstacle;
pub use path_check::{is_ignored_by_hfs, is_inside};
pub use queue::Queue;
pub(crate) use read_at::{invalid, read_at};
pub use replace::{new_beside, replace};
pub use scratch::Scratch;
pub use shared_modes::SharedModes;
pub(crate) use shared_modes::share;
pub use watch::{RefWatch, Waker};
