//! A folder as a file system has it: names that lead to files, folders and links. What a crash may
//! leave of a row of operations on it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use test_support::dice::Dice;

/// A file's number, which stays when it is renamed.
pub(crate) type Inode = usize;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Node {
    Folder,
    Link(PathBuf),
    File(Inode),
}

#[derive(Clone, Default)]
struct File {
    bytes: Vec<u8>,
    executable: bool,
}

/// A folder's contents, by path.
#[derive(Clone, Default)]
pub(crate) struct Disk {
    root: PathBuf,
    nodes: BTreeMap<PathBuf, Node>,
    files: Vec<File>,
}

/// One operation of a process on the disk.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    /// A name for a new, empty file.
    Create(PathBuf, Inode),
    Folder(PathBuf),
    Link(PathBuf, PathBuf),
    /// Another name for the file.
    Name(PathBuf, PathBuf),
    Rename(PathBuf, PathBuf),
    Remove(PathBuf),
    Write(Inode, usize, Vec<u8>),
    Resize(Inode, usize),
    Mode(Inode, bool),
    /// The file is written through to the disk.
    Sync(Inode),
    /// The folder's names are written through to the disk.
    SyncFolder(PathBuf),
}

impl Op {
    /// The folder in which it changes a name, if it does.
    fn folder(&self) -> Option<&Path> {
        match self {
            Self::Create(path, _)
            | Self::Folder(path)
            | Self::Link(_, path)
            | Self::Name(_, path)
            | Self::Rename(_, path)
            | Self::Remove(path) => path.parent(),
            _ => None,
        }
    }

    /// The file whose contents it changes, if it does.
    fn file(&self) -> Option<Inode> {
        match self {
            Self::Write(file, ..) | Self::Resize(file, _) => Some(*file),
            _ => None,
        }
    }
}

impl Disk {
    /// What is in a folder, without following links.
    pub(crate) fn read(root: &Path) -> Self {
        let mut disk = Self {
            root: root.to_owned(),
            ..Self::default()
        };
        let mut folders = vec![root.to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                let metadata = path.symlink_metadata().unwrap();
                let node = if metadata.is_dir() {
                    folders.push(path.clone());
                    Node::Folder
                } else if metadata.is_symlink() {
                    Node::Link(fs::read_link(&path).unwrap())
                } else {
                    disk.files.push(File {
                        bytes: fs::read(&path).unwrap(),
                        executable: metadata.permissions().mode() & 0o100 != 0,
                    });
                    Node::File(disk.files.len() - 1)
                };
                disk.nodes.insert(path, node);
            }
        }
        disk
    }

    /// Writes it into another folder than the one it was read from.
    pub(crate) fn write(&self, to: &Path) {
        for (path, node) in &self.nodes {
            let path = to.join(path.strip_prefix(&self.root).unwrap());
            match node {
                Node::Folder => fs::create_dir_all(path).unwrap(),
                Node::Link(target) => symlink(target, path).unwrap(),
                Node::File(inode) => {
                    let file = &self.files[*inode];
                    fs::write(&path, &file.bytes).unwrap();
                    if file.executable {
                        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
                    }
                }
            }
        }
    }

    /// The file at a path.
    pub(crate) fn inode(&self, path: &Path) -> Option<Inode> {
        match self.nodes.get(path)? {
            Node::File(inode) => Some(*inode),
            _ => None,
        }
    }

    pub(crate) fn has_folder(&self, path: &Path) -> bool {
        self.nodes.get(path) == Some(&Node::Folder)
    }

    pub(crate) fn length(&self, inode: Inode) -> usize {
        self.files[inode].bytes.len()
    }

    /// A number for a file that is about to be created.
    pub(crate) fn new_inode(&mut self) -> Inode {
        self.files.push(File::default());
        self.files.len() - 1
    }

    /// Each path with its contents, to compare.
    pub(crate) fn contents(&self) -> BTreeMap<&Path, &[u8]> {
        let contents = self.nodes.iter().map(|(path, node)| {
            let bytes: &[u8] = match node {
                Node::Folder => b"folder",
                Node::Link(_) => b"link",
                Node::File(inode) => &self.files[*inode].bytes,
            };
            (path.as_path(), bytes)
        });
        contents.collect()
    }

    fn file(&mut self, inode: Inode) -> &mut File {
        let length = self.files.len().max(inode + 1);
        self.files.resize_with(length, File::default);
        &mut self.files[inode]
    }

    /// Carries an operation out. One whose folder or file is not there leaves nothing.
    pub(crate) fn apply(&mut self, op: &Op) {
        let has_parent = |disk: &Self, path: &Path| {
            let parent = path.parent().unwrap();
            parent == disk.root || disk.has_folder(parent)
        };
        match op {
            Op::Create(path, inode) if has_parent(self, path) => {
                self.file(*inode);
                self.nodes.insert(path.clone(), Node::File(*inode));
            }
            Op::Folder(path) if has_parent(self, path) => {
                self.nodes.insert(path.clone(), Node::Folder);
            }
            Op::Link(target, path) if has_parent(self, path) => {
                self.nodes.insert(path.clone(), Node::Link(target.clone()));
            }
            Op::Name(from, path) if has_parent(self, path) => {
                if let Some(inode) = self.inode(from) {
                    self.nodes.insert(path.clone(), Node::File(inode));
                }
            }
            Op::Rename(from, path) if has_parent(self, path) => {
                if let Some(node) = self.nodes.remove(from) {
                    let inside: Vec<PathBuf> = (self.nodes.keys())
                        .filter(|known| known.starts_with(from))
                        .cloned()
                        .collect();
                    for known in inside {
                        let moved = path.join(known.strip_prefix(from).unwrap());
                        let node = self.nodes.remove(&known).unwrap();
                        self.nodes.insert(moved, node);
                    }
                    self.nodes.insert(path.clone(), node);
                }
            }
            Op::Remove(path) => {
                self.nodes.remove(path);
            }
            Op::Write(inode, at, bytes) => {
                let file = &mut self.file(*inode).bytes;
                let end = at + bytes.len();
                file.resize(file.len().max(end), 0);
                file[*at..end].copy_from_slice(bytes);
            }
            Op::Resize(inode, length) => self.file(*inode).bytes.resize(*length, 0),
            Op::Mode(inode, executable) => self.file(*inode).executable = *executable,
            _ => {}
        }
    }

    /// What a process that is killed after so many operations leaves.
    pub(crate) fn after_kill(&self, ops: &[Op]) -> Self {
        let mut disk = self.clone();
        ops.iter().for_each(|op| disk.apply(op));
        disk
    }

    /// What a power cut after these operations may leave: contents that were not written through
    /// may be missing, or zeros, and names that were not may be missing too, from some
    /// moment on in each folder (`reordered`), as on a file system without a journal of its order.
    /// What is in the folder `apart` is on another machine.
    ///
    /// Contents that are cut off are left out: libgit2 1.9 reads an object's cut-off file for ever
    /// (libgit2 issue 7342, fixed after 1.9.7).
    pub(crate) fn after_power_cut(
        &self,
        ops: &[Op],
        reordered: bool,
        apart: &Path,
        dice: &mut Dice,
    ) -> Self {
        let created = ops.iter().filter_map(|op| match op {
            Op::Create(path, file) => Some((path.as_path(), *file)),
            _ => None,
        });
        let known = self.nodes.iter().filter_map(|(path, node)| match node {
            Node::File(file) => Some((path.as_path(), *file)),
            _ => None,
        });
        let elsewhere = created
            .chain(known)
            .filter(|(path, _)| path.starts_with(apart));
        let elsewhere: BTreeSet<Inode> = elsewhere.map(|(_, file)| file).collect();
        let synced = |file: Inode, at: usize| {
            elsewhere.contains(&file)
                || ops[at..]
                    .iter()
                    .any(|op| matches!(op, Op::Sync(known) if *known == file))
        };
        let mut lasting: BTreeMap<&Path, usize> = BTreeMap::new();
        if reordered {
            let folders = ops.iter().filter_map(Op::folder);
            let folders: BTreeSet<&Path> = folders.filter(|one| !one.starts_with(apart)).collect();
            for folder in folders {
                let through = ops.iter().rposition(
                    |op| matches!(op, Op::SyncFolder(known) if known.as_path() == folder),
                );
                let least = through.unwrap_or(0);
                let end =
                    least + usize::try_from(dice.below((ops.len() - least + 1) as u64)).unwrap();
                lasting.insert(folder, end);
            }
        }
        let mut disk = self.clone();
        let mut lost: BTreeMap<Inode, u64> = BTreeMap::new();
        for (at, op) in ops.iter().enumerate() {
            if let Some(file) = op.file()
                && !synced(file, at)
            {
                // One fate for all of a file that was not written through.
                match *lost.entry(file).or_insert_with(|| dice.below(3)) {
                    0 => {}
                    1 => {
                        let Op::Write(_, start, bytes) = op else {
                            continue;
                        };
                        disk.apply(&Op::Write(file, *start, vec![0; bytes.len()]));
                        continue;
                    }
                    _ => continue,
                }
            }
            // What is written through has its name, on the file systems that git knows.
            let named = match op {
                Op::Create(_, file) => synced(*file, at),
                Op::Folder(path) => ops[at..]
                    .iter()
                    .any(|op| matches!(op, Op::SyncFolder(known) if known.starts_with(path))),
                _ => false,
            };
            let kept = op
                .folder()
                .is_none_or(|folder| lasting.get(folder).is_none_or(|end| at < *end));
            if kept || named {
                disk.apply(op);
            }
        }
        disk
    }
}
