//! Whether writes are synced to disk: `core.fsync` and related settings, as git interprets them.

/// The values of `core.fsync` that sync loose objects or refs. Those with a minus exclude
/// components that git's default excludes anyway.
const SYNCING: [&str; 6] = [
    "loose-object",
    "objects",
    "reference",
    "committed",
    "added",
    "all",
];

/// Whether writes are synced, by these settings. `value` returns a setting.
///
/// libgit2 has one option for objects and refs, so both are synced if either is: a ref that
/// survives a power cut without its objects is worse than losing both. It has no batches, so
/// `core.fsyncMethod = batch` syncs each file; `writeout-only` syncs nothing.
pub(crate) fn waits_for_disk(value: impl Fn(&str) -> Option<String>) -> bool {
    if value("core.fsyncMethod").as_deref() == Some("writeout-only") {
        return false;
    }
    match value("core.fsync") {
        Some(listed) => {
            let separators = [',', ' ', '\t', '\n', '\r'];
            listed.split(separators).any(|one| SYNCING.contains(&one))
        }
        // `core.fsyncObjectFiles`, its predecessor: libgit2 itself applies it to objects and refs.
        None => false,
    }
}

/// The setting under which git syncs refs too, if it syncs anything.
///
/// git configures refs separately from objects. In reftables, one update that is not synced can
/// lose all refs.
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
