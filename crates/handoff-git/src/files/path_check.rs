//! Checks that paths stay inside their folder, on any file system.

/// Whether a path stays inside its folder and outside of `.git` on any file system. All three of
/// git's protections apply (`.git` itself, `core.protectNTFS`, `core.protectHFS`) on every system,
/// because the folder may be shared or moved.
pub fn is_inside(path: &[u8]) -> bool {
    path.split(|&b| b == b'/').all(|name| {
        let odd = name.contains(&0) || ["", ".", ".."].map(str::as_bytes).contains(&name);
        let windows = cfg!(windows) && is_no_name_on_windows(name);
        !odd && !windows && !is_git_on_hfs(name) && !is_git_on_ntfs(name)
    })
}

/// Whether NTFS may resolve a name to `.git`: by its short name, ignored trailing characters or a
/// stream. Backslashes separate parts.
fn is_git_on_ntfs(name: &[u8]) -> bool {
    name.split(|&b| b == b'\\').any(|part| {
        let part = part.split(|&b| b == b':').next().unwrap_or_default();
        let end = part.iter().rposition(|b| !b". ".contains(b));
        let plain = &part[..end.map_or(0, |at| at + 1)];
        [&b".git"[..], b"git~1"]
            .iter()
            .any(|git| plain.eq_ignore_ascii_case(git))
    })
}

/// Whether Windows would read a name as a path, a stream or nothing.
fn is_no_name_on_windows(name: &[u8]) -> bool {
    name.contains(&b'\\') || name.contains(&b':') || name.iter().all(|b| b". ".contains(b))
}

/// Whether HFS+ may resolve a name to `.git`.
fn is_git_on_hfs(name: &[u8]) -> bool {
    let text = String::from_utf8_lossy(name);
    let seen: String = text.chars().filter(|c| !is_ignored_by_hfs(*c)).collect();
    seen.eq_ignore_ascii_case(".git")
}

/// Characters that HFS+ ignores when it compares names.
pub fn is_ignored_by_hfs(c: char) -> bool {
    matches!(c, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::{is_inside, is_no_name_on_windows};

    #[test]
    fn paths_that_lead_out_are_told() {
        for path in [
            "a",
            "a/b",
            ".gitignore",
            "a/.github/x",
            "...",
            "git",
            "\u{1}\n",
        ] {
            assert!(is_inside(path.as_bytes()), "{path:?}");
        }
        for path in [
            "",
            "/a",
            "a/",
            "a//b",
            ".",
            "..",
            "a/../b",
            ".git",
            "a/.GIT/b",
            ".git/config",
            "a\0b",
        ] {
            assert!(!is_inside(path.as_bytes()), "{path:?}");
        }
        assert!(is_inside(b"\xff\xfe"));
        for name in [
            "git~1",
            "GIT~1/config",
            ".git.",
            ".git .",
            "a/.git::$INDEX_ALLOCATION",
            "a\\.git\\b",
            ".g\u{200c}it",
            ".\u{feff}GIT/hooks",
        ] {
            assert!(!is_inside(name.as_bytes()), "{name:?}");
        }
        for name in ["git~2", "a.", "a:b", "a\\b", ".gitx", "git~1x"] {
            assert!(is_inside(name.as_bytes()), "{name:?}");
        }
        assert!(
            ["a\\b", "a:b", ". ."]
                .iter()
                .all(|name| is_no_name_on_windows(name.as_bytes()))
        );
    }
}
