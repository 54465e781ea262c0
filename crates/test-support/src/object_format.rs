//! How the repositories of the tests name their objects.

use std::process::Command;
use std::sync::LazyLock;

/// `sha1`, or what `GIT_HANDOFF_TEST_OBJECT_FORMAT` says.
static FORMAT: LazyLock<String> = LazyLock::new(|| {
    std::env::var("GIT_HANDOFF_TEST_OBJECT_FORMAT").unwrap_or_else(|_| "sha1".to_owned())
});

pub fn is_sha256() -> bool {
    *FORMAT == "sha256"
}

/// How many digits an id has.
pub fn digits() -> usize {
    if is_sha256() { 64 } else { 40 }
}

/// Lets a git that makes a repository make it of this format.
pub(crate) fn set(command: &mut Command) {
    command.env("GIT_DEFAULT_HASH", &*FORMAT);
}
