//! Detects git directories by their content, to keep written files out of them.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

/// The maximum number of links followed in a row, as on Linux.
const MOST_LINKS: usize = 40;

/// The git directory that a path is in, if it is below this folder. Links are not followed.
pub fn git_directory_of<'p>(path: &'p Path, below: &Path) -> Option<&'p Path> {
    let folders = path.ancestors().take_while(|folder| *folder != below);
    folders.filter(|folder| looks_like_one(folder)).last()
}

fn looks_like_one(folder: &Path) -> bool {
    let is_named = folder
        .file_name()
        .is_some_and(|name| name.eq_ignore_ascii_case(".git"));
    let has = |name: &str| folder.join(name).symlink_metadata().is_ok();
    !folder.is_symlink()
        && (is_named || has("HEAD") && (has("commondir") || has("objects") && has("refs")))
}

/// Whether a path below a folder leads out of it through a link, or into a git directory.
pub fn leads_out(path: &Path, below: &Path) -> bool {
    let led = led_to(path);
    let below = below.canonicalize().unwrap_or_else(|_| below.to_owned());
    !led.starts_with(&below) || git_directory_of(&led, &below).is_some()
}

/// Reads a regular file of a working tree; a pipe or device in its place is refused without
/// blocking.
///
/// # Errors
/// The system's, or that it is something else, or too large.
pub fn read_regular(path: &Path) -> io::Result<Vec<u8>> {
    const MOST: u64 = 64 << 20;
    let mut options = File::options();
    options.read(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        let flags = rustix::fs::OFlags::NONBLOCK.bits();
        options.custom_flags(i32::try_from(flags).unwrap_or_default());
    }
    let file = options.open(path)?;
    let found = file.metadata()?;
    if !found.is_file() || found.len() > MOST {
        let text = format!("it is not a regular file of at most {MOST} bytes");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    let mut bytes = Vec::new();
    file.take(MOST).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Resolves all links in a path, whose last parts may not exist yet.
pub fn led_to(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        let mut folders = path.ancestors();
        let existing = folders.find_map(|folder| {
            let rest = path.strip_prefix(folder).ok()?.to_owned();
            Some((folder.canonicalize().ok()?, rest))
        });
        let Some((led, rest)) = existing else {
            return path;
        };
        let mut parts = rest.components();
        let Some(first) = parts.next() else {
            return led;
        };
        // Any part may be a link to a path that does not exist yet.
        let Ok(to) = led.join(first).read_link() else {
            return joined(led, &rest);
        };
        path = led.join(to).join(parts.as_path());
    }
    path
}

/// Joins a folder with parts that do not exist: each `..` then removes the part before it.
fn joined(mut folder: PathBuf, missing: &Path) -> PathBuf {
    for part in missing.components() {
        if part == Component::ParentDir {
            folder.pop();
        } else {
            folder.push(part);
        }
    }
    folder
}

#[cfg(all(test, unix))]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::leads_out;

    #[test]
    fn what_leads_out_is_found_in_any_part_of_a_path() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("root");
        fs::create_dir_all(root.join("a")).unwrap();
        for (to, link) in [
            ("..", "up"),
            ("../nowhere", "dangling"),
            ("a", "in"),
            ("b/c", "later"),
            ("loop", "loop"),
        ] {
            symlink(to, root.join(link)).unwrap();
        }
        for path in [
            "../x",
            "a/../../x",
            "missing/../../x",
            "missing/further/../../../x",
            "up/x",
            "dangling",
            "dangling/x/y",
            "in/../../x",
            "later/../../../x",
            ".git/x",
        ] {
            assert!(leads_out(&root.join(path), &root), "{path}");
        }
        for path in [
            "a",
            "x/y",
            "missing/../x",
            "in/x",
            "later/x",
            "later/../x",
            "loop/x",
        ] {
            assert!(!leads_out(&root.join(path), &root), "{path}");
        }
    }
}
