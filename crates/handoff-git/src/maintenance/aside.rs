//! Quarantines damaged object files in a separate folder, so that git fetches the objects again.
//! Nothing is deleted.

use std::collections::{BTreeSet, HashSet};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use handoff_base::ObjectId;

use crate::objects::is_damaged;
use crate::process::{self, Ended};
use crate::repository::Repository;

/// The quarantine folder, below the git directory.
const FOLDER: &str = "handoff/damaged";

/// The quarantined files.
#[derive(Debug)]
pub struct Aside {
    folder: PathBuf,
    /// The loose objects among them: id, original and current path.
    loose: Vec<(ObjectId, PathBuf, PathBuf)>,
    /// The pack files among them, by current path.
    packs: Vec<PathBuf>,
}

impl Aside {
    /// The current paths of all files.
    pub fn files(&self) -> Vec<PathBuf> {
        let loose = self.loose.iter().map(|(.., to)| to);
        loose.chain(&self.packs).cloned().collect()
    }

    fn take(&mut self, id: ObjectId, from: PathBuf) -> io::Result<()> {
        fs::create_dir_all(&self.folder)?;
        let to = self.folder.join(id.to_string());
        fs::rename(&from, &to)?;
        self.loose.push((id, from, to));
        Ok(())
    }

    /// Restores damaged loose objects that nothing has replaced, all or only these. Returns the
    /// restored ones.
    ///
    /// # Errors
    /// When a file can't be moved.
    pub fn put_back(&mut self, only: Option<&HashSet<ObjectId>>) -> io::Result<Vec<ObjectId>> {
        let mut back = Vec::new();
        for (id, from, to) in &self.loose {
            if only.is_none_or(|only| only.contains(id)) && !from.exists() {
                // git may have removed an empty folder.
                fs::create_dir_all(from.parent().unwrap_or(from))?;
                fs::rename(to, from)?;
                back.push(*id);
            }
        }
        self.loose.retain(|(id, ..)| !back.contains(id));
        // The folder stays if anything is left in it.
        let _ = fs::remove_dir(&self.folder);
        Ok(back)
    }
}

impl Repository {
    /// Quarantines the damaged loose objects.
    ///
    /// # Errors
    /// When a file can't be read or moved; then all are back in place.
    pub fn set_loose_aside(&self) -> io::Result<Aside> {
        let folder = self.common_dir().join(FOLDER);
        let folders = (1..).map(|number| folder.join(number.to_string()));
        let mut aside = Aside {
            folder: folders.into_iter().find(|f| !f.exists()).unwrap_or(folder),
            loose: Vec::new(),
            packs: Vec::new(),
        };
        let mut damaged = Vec::new();
        for (id, file) in self.loose_files()? {
            if is_damaged(&file, id)? {
                damaged.push((id, file));
            }
        }
        for (id, file) in damaged {
            if let Err(error) = aside.take(id, file) {
                aside.put_back(None)?;
                return Err(error);
            }
        }
        Ok(aside)
    }

    /// The missing objects that other branches, tags or the index need.
    ///
    /// # Errors
    /// When git can't say.
    pub fn missing_of_refs(&self) -> io::Result<HashSet<ObjectId>> {
        let mut command = self.git();
        command.args(["rev-list", "--objects", "--quiet", "--missing=print"]);
        command.args(["--all", "--indexed-objects"]);
        let ended = succeeded(command)?;
        let lines = String::from_utf8_lossy(&ended.stdout);
        let missing = lines.lines().filter_map(|line| line.strip_prefix('?'));
        Ok(missing.filter_map(|id| id.parse().ok()).collect())
    }

    /// Quarantines damaged packs, after repacking every readable object.
    ///
    /// # Errors
    /// When a file can't be read or written, or git fails; readable objects stay available.
    pub fn set_packs_aside(&self, aside: &mut Aside) -> io::Result<()> {
        let packs = self.common_dir().join("objects/pack");
        for entry in fs::read_dir(&packs)? {
            let index = entry?.path();
            if index.extension().is_some_and(|ending| ending == "idx") {
                let mut command = self.git();
                command.arg("verify-pack").arg(&index).env("LC_ALL", "C");
                let said = ended(command)?;
                if !said.status.success() {
                    self.renew_pack(&index, &ids_in(&said.stderr), aside)?;
                }
            }
        }
        if !aside.packs.is_empty() {
            // git regenerates it.
            move_pack_files(&packs, "multi-pack-index", &BTreeSet::new(), aside)?;
        }
        Ok(())
    }

    fn renew_pack(
        &self,
        index: &Path,
        damaged: &HashSet<ObjectId>,
        aside: &mut Aside,
    ) -> io::Result<()> {
        let pack = index.with_extension("pack");
        let folder = index.parent().unwrap_or(index);
        let stem = index.file_stem().unwrap_or_default().display().to_string();
        let new = aside.folder.join("new");
        fs::create_dir_all(&new)?;
        let mut command = self.git();
        command.args(["index-pack", "-o"]);
        command.arg(new.join(format!("{stem}.idx"))).arg(&pack);
        let keeps_pack = ended(command)?.status.success();
        if !keeps_pack {
            self.save_objects(index, damaged, &new)?;
        }
        let files = fs::read_dir(&new)?.map(|file| Ok(file?.path()));
        let mut files = files.collect::<io::Result<Vec<PathBuf>>>()?;
        // The index is last: once git sees it, it needs the pack.
        files.sort_by_key(|file| file.extension().is_some_and(|ending| ending == "idx"));
        let names = files.iter().filter_map(|f| Some(f.file_name()?.to_owned()));
        let mut placed: BTreeSet<OsString> = names.collect();
        if keeps_pack {
            placed.extend(pack.file_name().map(ToOwned::to_owned));
        }
        copy_pack_files(folder, &stem, aside)?;
        for file in &files {
            fs::rename(file, folder.join(file.file_name().unwrap_or_default()))?;
        }
        fs::remove_dir_all(&new)?;
        move_pack_files(folder, &stem, &placed, aside)
    }

    /// Repacks the readable objects of a damaged pack into a folder.
    fn save_objects(
        &self,
        index: &Path,
        damaged: &HashSet<ObjectId>,
        new: &Path,
    ) -> io::Result<()> {
        let mut command = self.git();
        command.arg("show-index").stdin(File::open(index)?);
        let listed = ids_in(&ended(command)?.stdout);
        let mut good: Vec<ObjectId> = listed.difference(damaged).copied().collect();
        // An index without its pack would dangle.
        while index.with_extension("pack").exists() && !good.is_empty() {
            let said = self.pack_of(&good, new)?;
            if said.status.success() {
                return Ok(());
            }
            let (bad, before) = (ids_in(&said.stderr), good.len());
            good.retain(|id| !bad.contains(id));
            if good.len() == before && damaged.is_empty() {
                break;
            }
            if good.len() == before {
                return Err(io::Error::other(said.complaint()));
            }
        }
        if let Ok(pack) = File::open(index.with_extension("pack")) {
            // git reads nothing from a pack with a damaged header or trailer; this salvages what it
            // can.
            let mut command = self.git();
            command.args(["unpack-objects", "-r", "-q"]).stdin(pack);
            ended(command)?;
        }
        Ok(())
    }

    /// Packs objects into a folder.
    fn pack_of(&self, objects: &[ObjectId], folder: &Path) -> io::Result<Ended> {
        let mut command = self.git();
        command
            .args(["pack-objects", "-q"])
            .arg(folder.join("pack"));
        command.env("LC_ALL", "C");
        let listed: String = objects.iter().map(|id| format!("{id}\n")).collect();
        let ended = process::run_until(None, command, Some(listed.into_bytes()));
        ended.map_err(io::Error::other)
    }
}

fn copy_pack_files(folder: &Path, stem: &str, aside: &mut Aside) -> io::Result<()> {
    for file in files_of(folder, stem)? {
        let to = aside.folder.join(file.file_name().unwrap_or_default());
        if fs::hard_link(&file, &to).is_err() {
            fs::copy(&file, &to)?;
        }
        aside.packs.push(to);
    }
    Ok(())
}

/// Moves a pack's files into quarantine, except the `placed` ones, which are new.
fn move_pack_files(
    folder: &Path,
    stem: &str,
    placed: &BTreeSet<OsString>,
    aside: &mut Aside,
) -> io::Result<()> {
    for file in files_of(folder, stem)? {
        let name = file.file_name().unwrap_or_default();
        if placed.contains(name) {
            continue;
        }
        let to = aside.folder.join(name);
        fs::rename(&file, &to)?;
        // Renaming does nothing if both are hard links to one file.
        if file.exists() {
            fs::remove_file(&file)?;
        }
        if !aside.packs.contains(&to) {
            aside.packs.push(to);
        }
    }
    Ok(())
}

/// The files of a pack: the pack, its index, and git's auxiliary files.
fn files_of(folder: &Path, stem: &str) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.file_stem().is_some_and(|found| found == stem) && path.is_file() {
            files.push(path);
        }
    }
    // The index is first: without it, git does not look for the pack.
    files.sort_by_key(|file| file.extension().is_none_or(|ending| ending != "idx"));
    Ok(files)
}

/// The words of a text that are object ids.
fn ids_in(text: &[u8]) -> HashSet<ObjectId> {
    let text = String::from_utf8_lossy(text);
    let words = text.split(|c: char| !c.is_ascii_alphanumeric());
    words.filter_map(|word| word.parse().ok()).collect()
}

fn ended(command: Command) -> io::Result<Ended> {
    process::run_to_end(command).map_err(io::Error::other)
}

fn succeeded(command: Command) -> io::Result<Ended> {
    let ended = ended(command)?;
    if ended.status.success() {
        Ok(ended)
    } else {
        Err(io::Error::other(ended.complaint()))
    }
}
