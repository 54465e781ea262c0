//! Protocols named on the command line: a built-in one, or a folder.

use std::borrow::Cow;
use std::path::{Component, Path};

use handoff::base::finding::Finding;
use handoff::base::text::quoted;
use handoff::ledger::{LedgerError, ProtocolError};
use handoff::protocol::Protocol;
use handoff::templates::{BUILT_IN, Folder, built_in, check_folder};

use crate::failure::{ErrorCode, Failure, Hint, hint};

/// The files of the built-in protocol of that name, or of the folder at that path.
///
/// # Errors
/// A [`Failure`]: 6 if neither exists, 2 if the folder cannot be read.
pub fn folder(name: &str) -> Result<Folder, Failure> {
    if let Some(folder) = built_in(name) {
        return Ok(folder);
    }
    let path = Path::new(name);
    if path.is_dir() {
        return Folder::read(path).map_err(|e| {
            let text = format!("{} cannot be read: {e}", quoted(name));
            Failure::new(ErrorCode::FolderUnreadable, text)
        });
    }
    let text = format!("no built-in protocol or folder is named {}", quoted(name));
    let hint = match path.parent().filter(|_| path.is_file()) {
        Some(parent) if parent != Path::new("") => format!("use the folder: {}", parent.display()),
        Some(_) => "use the folder: .".to_owned(),
        None => format!("built in: {}", BUILT_IN.join(", ")),
    };
    Err(Failure::new(ErrorCode::NoProtocol, text).hint(hint))
}

/// A folder's name for a command: one without `./` could be a protocol's.
pub fn as_folder(name: &str) -> Cow<'_, str> {
    match Path::new(name).components().next() {
        Some(Component::Normal(_)) => format!("./{name}").into(),
        _ => name.into(),
    }
}

/// The name of the same protocol for another command, in which a folder is told from a protocol.
pub fn again(name: &str) -> Cow<'_, str> {
    let is_folder = built_in(name).is_none() && Path::new(name).is_dir();
    if is_folder {
        as_folder(name)
    } else {
        name.into()
    }
}

/// A protocol, and its files by path.
pub type Whole = (Protocol, Vec<(String, Vec<u8>)>);

/// The protocol of that name or path, which has no fault.
///
/// # Errors
/// A [`Failure`] with every fault, as `protocol check` finds them.
pub fn sound(name: &str) -> Result<Whole, Failure> {
    let folder = folder(name)?;
    let protocol = load(name, &folder);
    let files = folder.into_files();
    let findings = check_folder(&files);
    if findings.iter().any(Finding::is_error) {
        let refused = ProtocolError::Refused(findings);
        return Err(given(name, refused.into()));
    }
    Ok((protocol?, files))
}

/// Loads the definition in a protocol's folder.
///
/// # Errors
/// A [`Failure`] with every fault.
pub fn load(name: &str, folder: &Folder) -> Result<Protocol, Failure> {
    parse(name, folder.file("protocol.json").unwrap_or_default())
}

/// Loads the definition of the protocol that has this name on the command line.
///
/// # Errors
/// A [`Failure`] with every fault.
pub fn parse(name: &str, definition: &[u8]) -> Result<Protocol, Failure> {
    Protocol::load(definition).map_err(|findings| {
        let text = "the protocol is invalid";
        Failure::new(ErrorCode::ProtocolRefused, text)
            .hint(hint!(
                "`git handoff protocol check {}` lists every fault",
                again(name)
            ))
            .findings(findings)
    })
}

/// The failure of a command to which a protocol was given by this name.
pub fn given(name: &str, error: LedgerError) -> Failure {
    let cure = hint!(
        "fix it until `git handoff protocol check {}` finds nothing",
        again(name)
    );
    refused(error, cure)
}

/// A failure with what helps, if a protocol was refused.
pub fn refused(error: LedgerError, cure: Hint) -> Failure {
    let is_refused = matches!(&error, LedgerError::Protocol(ProtocolError::Refused(_)));
    let failure = Failure::from(error);
    if is_refused {
        failure.hint(cure)
    } else {
        failure
    }
}
