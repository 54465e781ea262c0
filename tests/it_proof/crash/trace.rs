//! The operations on a folder that a command and its children make, as strace shows them.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::disk::{Disk, Inode, Op};

/// The system calls to trace: those that change files, and what is needed to know which.
pub(crate) const CALLS: &str = "trace=open,openat,creat,write,pwrite64,lseek,ftruncate,\
    rename,renameat,renameat2,link,linkat,symlink,symlinkat,unlink,unlinkat,mkdir,mkdirat,rmdir,\
    fsync,fdatasync,chmod,fchmod,fchmodat,chdir,fchdir,clone,clone3,vfork,fork";

/// What a command did to a folder.
pub(crate) struct Trace {
    pub(crate) ops: Vec<Op>,
    /// How many operations it had made when it printed its answer.
    pub(crate) acknowledged: usize,
}

impl Trace {
    /// Reads a trace of a command that was run in the folder `start`, on this disk.
    pub(crate) fn read(root: &Path, start: &Path, disk: &Disk, text: &str) -> Self {
        let mut reader = Reader {
            root,
            disk: disk.clone(),
            ops: Vec::new(),
            acknowledged: None,
            command: text.split(' ').next().unwrap().to_owned(),
            folders: HashMap::new(),
            positions: HashMap::new(),
            last_parent: None,
            start,
        };
        reader.lines(text);
        Self {
            acknowledged: reader.acknowledged.unwrap_or(reader.ops.len()),
            ops: reader.ops,
        }
    }
}

/// Reads a trace into operations below `root`.
struct Reader<'a> {
    root: &'a Path,
    disk: Disk,
    ops: Vec<Op>,
    acknowledged: Option<usize>,
    /// The process that the command began as.
    command: String,
    /// The current folder of each process.
    folders: HashMap<String, PathBuf>,
    /// Where each open file is written next.
    positions: HashMap<(String, PathBuf), usize>,
    last_parent: Option<String>,
    start: &'a Path,
}

impl Reader<'_> {
    fn lines(&mut self, trace: &str) {
        let mut begun: HashMap<&str, &str> = HashMap::new();
        for line in trace.lines() {
            let (process, call) = line.split_once(' ').unwrap();
            let call = call.trim_start();
            if let Some(half) = call.strip_suffix(" <unfinished ...>") {
                if is_fork(call) {
                    self.last_parent = Some(process.to_owned());
                }
                begun.insert(process, half);
            } else if call.starts_with("<... ") {
                let rest = call.split_once(" resumed>").unwrap().1;
                let whole = format!("{}{rest}", begun.remove(process).unwrap());
                self.call(process, &whole);
            } else {
                self.call(process, call);
            }
        }
    }

    fn call(&mut self, process: &str, call: &str) {
        let Some((name, rest)) = call.split_once('(') else {
            return;
        };
        let Some((arguments, result)) = rest.rsplit_once(" = ") else {
            return;
        };
        if result.starts_with("-1") || result.starts_with('?') {
            return;
        }
        if is_fork(call) {
            self.last_parent = Some(process.to_owned());
            return;
        }
        let arguments = arguments.trim_end().strip_suffix(')').unwrap_or(arguments);
        let arguments = split(arguments);
        let folder = self.folder_of(process);
        let path = |index: usize| self.path(&folder, &arguments, index);
        match name {
            "chdir" => {
                let to = path(0);
                self.folders.insert(process.to_owned(), to);
            }
            "fchdir" => {
                let to = descriptor(&arguments[0]).1;
                self.folders.insert(process.to_owned(), to);
            }
            "open" | "openat" | "creat" => self.opened(&arguments, result),
            "write" if process == self.command && arguments[0].starts_with("1<") => {
                self.acknowledged.get_or_insert(self.ops.len());
            }
            "write" | "pwrite64" => self.written(name, &arguments, result),
            "lseek" => {
                let key = descriptor(&arguments[0]);
                self.positions.insert(key, number(result));
            }
            "ftruncate" => {
                if let Some(file) = self.file(&arguments[0]) {
                    self.add(Op::Resize(file, number(&arguments[1])));
                }
            }
            "fsync" | "fdatasync" => {
                let (_, path) = descriptor(&arguments[0]);
                if self.disk.has_folder(&path) || path == self.root {
                    self.add(Op::SyncFolder(path));
                } else if let Some(file) = self.disk.inode(&path) {
                    self.add(Op::Sync(file));
                }
            }
            "rename" | "link" => self.named(name, path(0), path(1)),
            "renameat" | "renameat2" | "linkat" => self.named(name, path(1), path(3)),
            "symlink" => self.add(Op::Link(string(&arguments[0]), path(1))),
            "symlinkat" => self.add(Op::Link(string(&arguments[0]), path(2))),
            "unlink" | "rmdir" => self.add(Op::Remove(path(0))),
            "unlinkat" => self.add(Op::Remove(path(1))),
            "mkdir" => self.add(Op::Folder(path(0))),
            "mkdirat" => self.add(Op::Folder(path(1))),
            "chmod" => self.mode(&path(0), &arguments[1]),
            "fchmodat" => self.mode(&path(1), &arguments[2]),
            "fchmod" => self.mode(&descriptor(&arguments[0]).1, &arguments[1]),
            _ => {}
        }
    }

    fn folder_of(&mut self, process: &str) -> PathBuf {
        if let Some(known) = self.folders.get(process) {
            return known.clone();
        }
        let parent = self
            .last_parent
            .as_ref()
            .and_then(|one| self.folders.get(one));
        let folder = parent.map_or(self.start, PathBuf::as_path).to_owned();
        self.folders.insert(process.to_owned(), folder.clone());
        folder
    }

    /// The path that an argument names, below the folder before it or the current one.
    fn path(&self, folder: &Path, arguments: &[String], index: usize) -> PathBuf {
        let named = string(&arguments[index]);
        let before = index.checked_sub(1).map(|at| &arguments[at]);
        let base = match before.filter(|before| before.contains('<')) {
            Some(before) => descriptor(before).1,
            None => folder.to_owned(),
        };
        let mut path = PathBuf::new();
        for part in base.join(named).components() {
            match part {
                std::path::Component::ParentDir => {
                    path.pop();
                }
                std::path::Component::CurDir => {}
                part => path.push(part),
            }
        }
        path
    }

    fn opened(&mut self, arguments: &[String], result: &str) {
        let flags = arguments.iter().find(|one| one.starts_with("O_"));
        let flags = flags.map_or("O_WRONLY|O_CREAT|O_TRUNC", String::as_str);
        if flags.contains("O_RDONLY") && !flags.contains("O_CREAT") {
            return;
        }
        let (number, path) = descriptor(result);
        if !path.starts_with(self.root) || flags.contains("O_DIRECTORY") {
            return;
        }
        match self.disk.inode(&path) {
            None if flags.contains("O_CREAT") => {
                let inode = self.disk.new_inode();
                self.add(Op::Create(path.clone(), inode));
            }
            Some(inode) if flags.contains("O_TRUNC") && self.disk.length(inode) > 0 => {
                self.add(Op::Resize(inode, 0));
            }
            _ => {}
        }
        let end = self
            .disk
            .inode(&path)
            .map_or(0, |inode| self.disk.length(inode));
        let at = if flags.contains("O_APPEND") { end } else { 0 };
        self.positions.insert((number, path), at);
    }

    fn written(&mut self, name: &str, arguments: &[String], result: &str) {
        let Some(file) = self.file(&arguments[0]) else {
            return;
        };
        let key = descriptor(&arguments[0]);
        let mut bytes = bytes(&arguments[1]);
        bytes.truncate(number(result));
        let at = if name == "pwrite64" {
            number(&arguments[3])
        } else {
            // A file that was renamed is at its end: it was written from its beginning.
            let end = self.disk.length(file);
            let at = self.positions.entry(key).or_insert(end);
            std::mem::replace(at, *at + bytes.len())
        };
        self.add(Op::Write(file, at, bytes));
    }

    fn named(&mut self, name: &str, from: PathBuf, to: PathBuf) {
        self.add(match name {
            "link" | "linkat" => Op::Name(from, to),
            _ => Op::Rename(from, to),
        });
    }

    fn mode(&mut self, path: &Path, mode: &str) {
        if let Some(file) = self.disk.inode(path) {
            let mode = u32::from_str_radix(mode, 8).unwrap();
            self.add(Op::Mode(file, mode & 0o100 != 0));
        }
    }

    fn file(&self, argument: &str) -> Option<Inode> {
        self.disk.inode(&descriptor(argument).1)
    }

    fn add(&mut self, op: Op) {
        let outside = match &op {
            Op::Create(path, _)
            | Op::Folder(path)
            | Op::Link(_, path)
            | Op::Name(_, path)
            | Op::Rename(_, path)
            | Op::Remove(path) => !path.starts_with(self.root),
            _ => false,
        };
        if !outside {
            self.disk.apply(&op);
            self.ops.push(op);
        }
    }
}

fn is_fork(call: &str) -> bool {
    ["clone", "vfork(", "fork("]
        .iter()
        .any(|name| call.starts_with(name))
}

/// The arguments of a call; no string in it has a comma that is not escaped.
fn split(arguments: &str) -> Vec<String> {
    arguments.split(", ").map(str::to_owned).collect()
}

/// A number that strace prints before anything else.
fn number(text: &str) -> usize {
    let digits: String = text
        .trim()
        .chars()
        .take_while(char::is_ascii_digit)
        .collect();
    digits.parse().unwrap()
}

/// A file descriptor with the path that it is open at.
fn descriptor(text: &str) -> (String, PathBuf) {
    let (number, path) = text.split_once('<').unwrap_or((text, ">"));
    let path = path.rsplit_once('>').map_or("", |(path, _)| path);
    (number.to_owned(), from_bytes(unescaped(path)))
}

/// A string argument as a path.
fn string(argument: &str) -> PathBuf {
    from_bytes(bytes(argument))
}

fn bytes(argument: &str) -> Vec<u8> {
    let inside = argument
        .trim()
        .trim_start_matches('"')
        .trim_end_matches('"');
    unescaped(inside)
}

fn from_bytes(bytes: Vec<u8>) -> PathBuf {
    use std::os::unix::ffi::OsStringExt;
    PathBuf::from(std::ffi::OsString::from_vec(bytes))
}

/// Bytes that are printed as `\x2f`.
fn unescaped(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len() / 4);
    let mut rest = text.as_bytes();
    while let Some((&first, others)) = rest.split_first() {
        if rest.starts_with(b"\\x") {
            let digits = std::str::from_utf8(&rest[2..4]).unwrap();
            bytes.push(u8::from_str_radix(digits, 16).unwrap());
            rest = &rest[4..];
        } else {
            bytes.push(first);
            rest = others;
        }
    }
    bytes
}
