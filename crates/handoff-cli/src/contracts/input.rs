//! Reads contracts from files and standard input, up to the size limit.

use std::fs::File;
use std::io;
use std::io::Read;
use std::path::Path;

use handoff::base::finding::{Finding, FindingCode};
use handoff::base::text::quoted;
use handoff::contract::{MAX_BYTES, MAX_REPORT};

use crate::context::Context;
use crate::failure::{ErrorCode, Failure};

/// The maximum size of a list of comments, in bytes.
const MOST_COMMENTS: usize = 64 << 20;

/// Reads a contract: a file's bytes, or standard input for `-`.
///
/// # Errors
/// A [`Failure`]: 6 if the file does not exist, 3 if it can't be read as a contract.
pub fn contract(context: &Context, name: &str) -> Result<Vec<u8>, Failure> {
    read(context, name, MAX_BYTES)
}

/// Reads a report that accompanies a contract.
///
/// # Errors
/// A [`Failure`]: 6 if the file does not exist, 3 if it can't be read.
pub fn report(context: &Context, name: &str) -> Result<Vec<u8>, Failure> {
    read(context, name, MAX_REPORT)
}

/// Reads a list of comments.
///
/// # Errors
/// A [`Failure`] if the file does not exist, can't be read, or is too long.
pub fn comments(context: &Context, name: &str) -> Result<Vec<u8>, Failure> {
    let hint = "`gh api --paginate repos/OWNER/NAME/issues/NUMBER/comments` lists them";
    let bytes = read(context, name, MOST_COMMENTS)
        .map_err(|failure| Failure::new(ErrorCode::NoComments, failure.message).hint(hint))?;
    if bytes.len() > MOST_COMMENTS {
        let text = format!("{} is longer than 64 MiB", quoted(name));
        return Err(Failure::new(ErrorCode::NoComments, text).hint(hint));
    }
    Ok(bytes)
}

/// Reads a file, or standard input for `-`, at most one byte over the limit.
///
/// # Errors
/// A [`Failure`]: 6 if the file does not exist, 3 if it can't be read.
pub fn read(context: &Context, name: &str, most: usize) -> Result<Vec<u8>, Failure> {
    // One byte over the limit shows that it is exceeded.
    let cap = most as u64 + 1;
    let mut bytes = Vec::new();
    let unreadable = |error: &io::Error| {
        let text = format!("{} cannot be read: {error}", quoted(name));
        match error.kind() {
            io::ErrorKind::NotFound => Failure::new(ErrorCode::NoFile, text),
            _ => Failure::new(ErrorCode::ContractRefused, text.clone())
                .findings(vec![Finding::error(FindingCode::InputUnreadable, "", text)]),
        }
    };
    if name == "-" {
        let read = match context.call() {
            Some(call) => call.input().take(cap).read_to_end(&mut bytes),
            None => io::stdin().lock().take(cap).read_to_end(&mut bytes),
        };
        read.map_err(|e| unreadable(&e))?;
        return Ok(bytes);
    }
    let kind = Path::new(name)
        .metadata()
        .map_err(|e| unreadable(&e))?
        .file_type();
    if kind.is_dir() || is_device(kind) {
        let kind_name = if kind.is_dir() {
            "a folder"
        } else {
            "a device or a socket"
        };
        let text = format!("{} is {kind_name}, not a file", quoted(name));
        return Err(Failure::new(ErrorCode::ContractRefused, text.clone())
            .findings(vec![Finding::error(FindingCode::InputNotAFile, "", text)]));
    }
    let file = File::open(name).map_err(|e| unreadable(&e))?;
    file.take(cap)
        .read_to_end(&mut bytes)
        .map_err(|e| unreadable(&e))?;
    Ok(bytes)
}

#[cfg(unix)]
fn is_device(kind: std::fs::FileType) -> bool {
    use std::os::unix::fs::FileTypeExt;
    kind.is_char_device() || kind.is_block_device() || kind.is_socket()
}

#[cfg(not(unix))]
fn is_device(_: std::fs::FileType) -> bool {
    false
}
