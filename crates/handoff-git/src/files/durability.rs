//! Whether writes wait for the disk: `core.fsync` and its relatives, as git reads them.

/// The components of `core.fsync` that have loose objects or refs written through. Those with a
/// minus leave something out that git's default leaves out anyway.
const SYNCING: [&str; 6] = [
    "loose-object",
    "objects",
    "reference",
    "committed",
    "added",
    "all",
];

/// Whether writes wait for the disk, by these settings. `value` returns a setting.
///
/// libgit2 has one option for objects and refs: a ref that survives a power cut while its objects do
/// not would be worse than neither. It has no batches, so `core.fsyncMethod = batch` waits for each
/// file; `writeout-only` does not wait at all.
pub(crate) fn waits_for_disk(value: impl Fn(&str) -> Option<String>) -> bool {
    if value("core.fsyncMethod").as_deref() == Some("writeout-only") {
        return false;
    }
    match value("core.fsync") {
        Some(listed) => {
            let separators = [',', ' ', '\t', '\n', '\r'];
            listed.split(separators).any(|one| SYNCING.contains(&one))
        }
        // Its predecessor, which libgit2 honours itself, for objects and refs.
        None => false,
    }
}

/// The setting under which git writes refs through to the disk as well, where writes wait for it.
///
/// git counts refs apart from what they lead to. In tables, a change that is not written through
/// takes all of them along.
pub(crate) fn refs_too(value: impl Fn(&str) -> Option<String>) -> Option<String> {
    let listed = value("core.fsync");
    waits_for_disk(value).then(|| format!("core.fsync={},reference", listed.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::waits_for_disk;

    fn waits(fsync: Option<&str>, method: Option<&str>) -> bool {
        waits_for_disk(|key| match key {
            "core.fsync" => fsync.map(str::to_owned),
            "core.fsyncMethod" => method.map(str::to_owned),
            _ => None,
        })
    }

    #[test]
    fn the_components_that_git_documents_are_honoured() {
        for fsync in [
            "committed",
            "all",
            "reference",
            "-index, loose-object",
            "none,added",
        ] {
            assert!(waits(Some(fsync), None), "{fsync}");
            assert!(waits(Some(fsync), Some("batch")), "{fsync}");
            assert!(!waits(Some(fsync), Some("writeout-only")), "{fsync}");
        }
        for fsync in [
            "",
            "none",
            "pack,pack-metadata",
            "derived-metadata",
            "-reference",
            "index",
        ] {
            assert!(!waits(Some(fsync), Some("fsync")), "{fsync}");
        }
        assert!(
            !waits(None, None),
            "git's default does not wait for loose objects or refs"
        );
    }
}
