//! Git directories by their looks: what a program that writes files has to stay out of.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// How many links in a row are followed, as by Linux.
const MOST_LINKS: usize = 40;

/// The git directory that a path is in, or is, if there is one below this folder. Links are not
/// followed.
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

/// Reads a regular file of a working tree; a pipe or a device in its place makes nobody wait.
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

/// Where a path leads, with every link followed; the last parts may not exist yet.
pub fn led_to(path: &Path) -> PathBuf {
    // The last part may be a link to what is not there yet.
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        match path.read_link() {
            Ok(to) => path = path.parent().unwrap_or(Path::new("")).join(to),
            Err(_) => break,
        }
    }
    for folder in path.ancestors() {
        if let Ok(led) = folder.canonicalize() {
            let rest = path.strip_prefix(folder).unwrap_or(Path::new(""));
            let is_whole = rest.as_os_str().is_empty();
            return if is_whole { led } else { led.join(rest) };
        }
    }
    path
}
