//! Exchanges with a folder that other programs write to as well: imports their changes, and exports
//! the ledger's.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use handoff::base::ids::HandoffId;
use handoff::git::git_directory_of;
use handoff::ledger::{Ledger, LedgerError, Session};
use handoff::model::View;

use super::deliver::{Import, Imported};
use super::folders::PutOut;
use super::places::{CONTEXT, HANDOFFS, STATES, inside};
use super::records::Reader;
use super::shared_folder::SharedFolder;
use super::{ExchangeError, Layout, Source, folders, replay, unreadable, unwritable};

/// The hidden file whose lock keeps a second process from the folder; the system releases it when
/// the process ends.
const LOCK: &str = ".git-handoff.lock";

/// A folder that only this process exchanges with.
pub struct Exchanger {
    root: PathBuf,
    _lock: File,
}

impl Exchanger {
    /// Opens a folder; creates it if it does not exist.
    ///
    /// # Errors
    /// [`ExchangeError`] if it is not a folder, is inside a git directory, can't be read or
    /// written, or is locked by another process.
    pub fn open(path: &Path) -> Result<Self, ExchangeError> {
        let unfit = |why| ExchangeError::Unfit {
            path: path.to_owned(),
            why,
        };
        let named = std::path::absolute(path).map_err(unreadable(path))?;
        let existing = named
            .ancestors()
            .find_map(|above| above.canonicalize().ok());
        let is_in_git = |path: &Path| git_directory_of(path, Path::new("")).is_some();
        if is_in_git(&named) || existing.is_some_and(|above| is_in_git(&above)) {
            return Err(unfit("lies in a git directory"));
        }
        match fs::metadata(path) {
            Ok(found) if !found.is_dir() => return Err(unfit("is not a folder")),
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                fs::create_dir_all(path).map_err(unwritable(path))?;
            }
            Err(error) => return Err(unreadable(path)(error)),
        }
        fs::read_dir(path).map_err(unreadable(path))?;
        let root = path.canonicalize().map_err(unreadable(path))?;
        let place = root.join(LOCK);
        if fs::symlink_metadata(&place).is_ok_and(|found| !found.is_file()) {
            return Err(ExchangeError::Foreign { path: place });
        }
        let mut options = File::options();
        let options = options.create(true).truncate(false).write(true);
        let lock = options.open(&place).map_err(unwritable(&place))?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { root, _lock: lock }),
            Err(TryLockError::WouldBlock) => Err(ExchangeError::Busy {
                path: path.to_owned(),
            }),
            Err(TryLockError::Error(error)) => Err(unwritable(&place)(error)),
        }
    }

    /// The existing folders that other programs write to.
    pub fn folders(&self) -> Vec<PathBuf> {
        let mut all = vec![self.root.clone()];
        let tops = ["", HANDOFFS];
        let states = tops.iter().flat_map(|top| {
            let states = STATES.iter().map(|state| inside(top, state));
            states.chain([(*top).to_owned()])
        });
        all.extend(
            states
                .chain([CONTEXT.to_owned()])
                .map(|path| self.root.join(path)),
        );
        all.retain(|path| path.is_dir());
        all.dedup();
        all
    }

    /// Imports what other programs moved and wrote since the last call.
    ///
    /// # Errors
    /// [`ExchangeError`]; earlier imports stay.
    pub fn take_in(
        &self,
        ledger: &mut Ledger<'_>,
        session: Session,
        wanted: Import,
    ) -> Result<Imported, ExchangeError> {
        let tip = ledger.tip()?;
        let mut has_profile = false;
        for name in tip.protocols()? {
            has_profile |= !tip.rules(&name)?.protocol().definition().imports.is_empty();
        }
        if !has_profile {
            return Err(ExchangeError::NoProfile);
        }
        let shared = SharedFolder::open(&self.root, ledger.repository().common_dir())?;
        let wanted = Import {
            source: Some(Source::Layout(Layout::Folders)),
            ..wanted
        };
        replay::import_known(ledger, session, &self.root, wanted, Some(shared))
    }

    /// Exports the ledger to the folders of states.
    ///
    /// # Errors
    /// [`ExchangeError`]; files written before stay.
    pub fn put_out(&self, ledger: &Ledger<'_>) -> Result<PutOut, ExchangeError> {
        let tip = ledger.tip()?;
        let mut folder = SharedFolder::open(&self.root, ledger.repository().common_dir())?;
        let mut sent: Vec<HandoffId> = Vec::new();
        for key in tip.issues()? {
            let issue = tip.issue(&key)?.issue()?;
            let Some(issue) = issue else { continue };
            let imports = |name: &str| -> Result<bool, LedgerError> {
                Ok(!tip.rules(name)?.protocol().definition().imports.is_empty())
            };
            if imports(issue.protocol.as_str())? {
                sent.extend((1..=issue.handoffs).map(|n| HandoffId::new(key.clone(), n)));
            }
        }
        let top = folder.top();
        folders::write(&mut folder, top, &mut Reader::new(&tip), &mut sent, true)
    }
}
