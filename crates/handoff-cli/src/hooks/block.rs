//! The marked block in a hook's file.

use std::ops::Range;

use super::Hook;
use super::without_program::{self, FOUND};

pub(super) const BEGIN: &str = "# >>> git-handoff >>>";
pub(super) const END: &str = "# <<< git-handoff <<<";
/// The line that marks a file created for the block.
const ALONE: &str =
    "# This file was made for it: `uninstall` removes the file if nothing is added.";
const SHEBANG: &str = "#!/bin/sh\n";

/// The position of a block in a file.
#[derive(Debug, PartialEq, Eq)]
pub struct Block {
    /// Its bytes, with the final line break, if any.
    pub bytes: Range<usize>,
    /// The number of its first line, from 1.
    pub line: u32,
    /// Whether the file was created for it.
    alone: bool,
}

/// Why the block in a file can't be found without doubt.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum BlockFault {
    /// It has no end.
    #[error("the block that begins here has no end: the line that ends it is missing")]
    Unclosed {
        /// Where it begins.
        line: u32,
    },
    /// It has no beginning.
    #[error("a block ends here that does not begin: the line that begins it is missing above")]
    Unopened {
        /// Where it ends.
        line: u32,
    },
    /// There is another.
    #[error("a second block begins here; there is one already")]
    Second {
        /// Where the second begins.
        line: u32,
    },
}

/// Why a block can't be added to a file.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Foreign {
    #[error("it is a program, not a script")]
    Binary,
    /// The script is not for a POSIX shell.
    #[error("it is a script for `{interpreter}`, not for a shell")]
    Interpreter {
        /// The interpreter in its first line.
        interpreter: String,
    },
    /// CRLF line breaks.
    #[error("its first line ends with CR LF, so that no Unix runs it")]
    LineEnds,
}

/// A hook's block, with its final line break.
///
/// It forwards everything that git passes to the hook. Standard input can be read only once, so the
/// block reads it, passes it to the program, and leaves a copy for the following lines. It calls
/// the program by its own name, as git would: one process less. It skips the call if no branch
/// moves, because `git fetch` runs its hook once per ref.
fn text(hook: Hook, alone: bool) -> String {
    let mut text = format!(
        "{BEGIN}\n\
         # `git handoff hooks install` writes these lines anew, `git handoff hooks uninstall` takes them out.\n"
    );
    if alone {
        text += &format!("{ALONE}\n");
    }
    let here = "<<GIT_HANDOFF_INPUT";
    let input = "$git_handoff_input\nGIT_HANDOFF_INPUT\n";
    let call = format!("git-handoff hook {hook} \"$@\"");
    let or_else = without_program::lines(hook);
    text += &if hook == Hook::ReferenceTransaction {
        // Only one phase can refuse. Most transactions have one ref: then `read` finds out whether
        // it is a branch, without starting another process.
        format!(
            "if [ \"$1\" = prepared ]; then\n\
             IFS= read -r git_handoff_input || :\n\
             if IFS= read -r git_handoff_more; then\n\
             git_handoff_input=$(printf '%s\\n' \"$git_handoff_input\" \"$git_handoff_more\" && cat) || exit 1\n\
             fi\n\
             case $git_handoff_input in *' refs/heads/'*)\n\
             if {FOUND}; then\n\
             {call} {here} || exit 1\n{input}\
             else\n{or_else}fi ;;\nesac\n\
             if [ -n \"$git_handoff_input\" ]; then\n\
             exec {here}\n{input}else\nexec </dev/null\nfi\n\
             unset git_handoff_input git_handoff_more\nfi\n"
        )
    } else if hook.reads_input() {
        format!(
            "git_handoff_input=$(cat) || exit 1\n\
             if ! {FOUND}; then\n{or_else}\
             elif [ -n \"$git_handoff_input\" ]; then\n\
             {call} {here} || exit 1\n{input}\
             else\n{call} </dev/null || exit 1\nfi\n\
             if [ -n \"$git_handoff_input\" ]; then\n\
             exec {here}\n{input}else\nexec </dev/null\nfi\n\
             unset git_handoff_input\n"
        )
    } else {
        format!("if {FOUND}; then\n{call} || exit 1\nelse\n{or_else}fi\n")
    };
    text + END + "\n"
}

pub(super) fn new_file(hook: Hook) -> Vec<u8> {
    (SHEBANG.to_owned() + &text(hook, true)).into_bytes()
}

pub(super) fn find(bytes: &[u8]) -> Result<Option<Block>, BlockFault> {
    find_between(bytes, [BEGIN, END])
}

/// Finds the block between two marker lines.
///
/// # Errors
/// [`BlockFault`] if a marker is missing or there twice.
pub fn find_between(bytes: &[u8], [begin, end]: [&str; 2]) -> Result<Option<Block>, BlockFault> {
    let mut found: Option<Block> = None;
    let mut open: Option<(usize, u32, bool)> = None;
    let mut start = 0;
    for (line, number) in bytes.split_inclusive(|b| *b == b'\n').zip(1..) {
        let words = line.trim_ascii();
        if words == begin.as_bytes() {
            if found.is_some() {
                return Err(BlockFault::Second { line: number });
            }
            if let Some((_, line, _)) = open {
                return Err(BlockFault::Unclosed { line });
            }
            open = Some((start, number, false));
        } else if words == ALONE.as_bytes() {
            if let Some((_, _, alone)) = &mut open {
                *alone = true;
            }
        } else if words == end.as_bytes() {
            let Some((from, first, alone)) = open.take() else {
                return Err(BlockFault::Unopened { line: number });
            };
            found = Some(Block {
                bytes: from..start + line.len(),
                line: first,
                alone,
            });
        }
        start += line.len();
    }
    match open {
        Some((_, line, _)) => Err(BlockFault::Unclosed { line }),
        None => Ok(found),
    }
}

/// The length of the first line, with its line break.
fn line_length(bytes: &[u8]) -> usize {
    let end = bytes.iter().position(|b| *b == b'\n');
    end.map_or(bytes.len(), |at| at + 1)
}

/// The file with this version's block.
pub(super) fn with(bytes: &[u8], block: Option<&Block>, hook: Hook) -> Result<Vec<u8>, Foreign> {
    is_shell(bytes)?;
    let (before, after, alone) = match block {
        Some(block) => (
            &bytes[..block.bytes.start],
            &bytes[block.bytes.end..],
            block.alone,
        ),
        // Directly below the first line, no `exit` or `exec` can skip the block, and it is never
        // inside another tool's block.
        None => {
            let first = if bytes.starts_with(b"#!") {
                line_length(bytes)
            } else {
                0
            };
            (&bytes[..first], &bytes[first..], false)
        }
    };
    let mut text = text(hook, alone);
    let mut file = before.to_vec();
    // If the file had no line break at its end, it gets none.
    let unended = match block {
        Some(block) => !bytes[block.bytes.clone()].ends_with(b"\n"),
        None => !before.is_empty() && !before.ends_with(b"\n"),
    };
    if unended {
        text.pop();
        if block.is_none() {
            file.push(b'\n');
        }
    }
    file.extend_from_slice(text.as_bytes());
    file.extend_from_slice(after);
    Ok(file)
}

/// The file without the block; `None` if nothing else was in it.
pub(super) fn without(bytes: &[u8], block: &Block) -> Option<Vec<u8>> {
    let mut start = block.bytes.start;
    // The block was added with a line break before it, which is removed, too.
    if !bytes[block.bytes.clone()].ends_with(b"\n") && start > 0 {
        start -= 1;
    }
    let mut rest = bytes[..start].to_vec();
    rest.extend_from_slice(&bytes[block.bytes.end..]);
    (!block.alone || rest != SHEBANG.as_bytes()).then_some(rest)
}

pub(super) fn is_current(bytes: &[u8], block: &Block, hook: Hook) -> bool {
    let expected = text(hook, block.alone);
    bytes[block.bytes.clone()].trim_ascii_end() == expected.trim_end().as_bytes()
}

/// The number of a line before the block that exits or execs, from 1.
pub(super) fn early_end(bytes: &[u8], block: &Block) -> Option<u32> {
    end_of(&String::from_utf8_lossy(&bytes[..block.bytes.start]))
}

/// The number of the first line that unconditionally exits or execs, from 1.
pub(super) fn end_of(script: &str) -> Option<u32> {
    let found = script.lines().zip(1..).find(|(line, _)| {
        let mut words = line.split_whitespace();
        // An indented line counts as conditional. An `exec` with only redirections continues.
        match (line.starts_with([' ', '\t']), words.next()) {
            (false, Some("exit")) => true,
            (false, Some("exec")) => words.next().is_some_and(|word| {
                !word.starts_with(|c: char| c == '<' || c == '>' || c.is_ascii_digit())
            }),
            _ => false,
        }
    });
    found.map(|(_, number)| number)
}

/// Checks that a POSIX-compatible shell runs the file.
fn is_shell(bytes: &[u8]) -> Result<(), Foreign> {
    if bytes.contains(&0) {
        return Err(Foreign::Binary);
    }
    let first = &bytes[..line_length(bytes)];
    let Some(command) = first.strip_prefix(b"#!") else {
        // git runs a script without a shebang in the shell.
        return Ok(());
    };
    if command.ends_with(b"\r\n") {
        return Err(Foreign::LineEnds);
    }
    let command = String::from_utf8_lossy(command);
    let mut words = command.split_whitespace();
    let name = |word: &str| word.rsplit('/').next().unwrap_or_default().to_owned();
    let mut interpreter = words.next().map(name).unwrap_or_default();
    if interpreter == "env" || interpreter == "busybox" {
        let program = words.find(|word| !word.starts_with('-') && !word.contains('='));
        interpreter = program.map(name).unwrap_or_default();
    }
    if ["sh", "bash", "dash", "ash", "ksh", "mksh", "zsh"].contains(&interpreter.as_str()) {
        Ok(())
    } else {
        Err(Foreign::Interpreter { interpreter })
    }
}

#[cfg(test)]
mod tests {
    use super::{Block, BlockFault, Foreign, early_end, find, is_current, with, without};
    use crate::hooks::Hook;

    fn block(bytes: &[u8]) -> Block {
        find(bytes)
            .ok()
            .flatten()
            .unwrap_or_else(|| panic!("no block"))
    }

    #[test]
    fn what_was_there_is_there_again() {
        let files: [&[u8]; 9] = [
            b"#!/bin/sh\necho one\n",
            b"#!/bin/sh",
            b"#!/bin/sh\n",
            b"#!/usr/bin/env bash\n\n# a comment\nset -eu\nexec tool \"$@\"",
            b"echo no first line\n",
            b"echo no line break",
            b"",
            b"#!/bin/sh\necho \xff\xfe\r\n\r\n\n\n",
            b"#!/usr/bin/env -S bash -e\n# >>> other >>>\n# <<< other <<<\n",
        ];
        for hook in Hook::ALL {
            for file in files {
                let installed = with(file, None, hook).unwrap_or_else(|e| panic!("{e}"));
                let found = block(&installed);
                assert!(is_current(&installed, &found, hook));
                let again = with(&installed, Some(&found), hook);
                assert_eq!(again.as_ref(), Ok(&installed));
                assert_eq!(without(&installed, &found).as_deref(), Some(file));
                let first = file.starts_with(b"#!");
                assert_eq!(found.line, if first { 2 } else { 1 });
            }
        }
    }

    #[test]
    fn a_file_of_its_own_goes_unless_something_was_added() {
        let file = super::new_file(Hook::PrePush);
        assert_eq!(without(&file, &block(&file)), None);
        let added = [&file[..], b"make test\n"].concat();
        let rest = without(&added, &block(&added));
        assert_eq!(rest.as_deref(), Some(&b"#!/bin/sh\nmake test\n"[..]));
    }

    #[test]
    fn bounds_that_are_not_clear_are_named_by_line() {
        let begin = "# >>> git-handoff >>>\n";
        let end = "# <<< git-handoff <<<\n";
        let fault = |text: String| find(text.as_bytes()).err();
        assert_eq!(
            fault(format!("#!/bin/sh\n{begin}x\n")),
            Some(BlockFault::Unclosed { line: 2 })
        );
        assert_eq!(
            fault(format!("{begin}{begin}{end}")),
            Some(BlockFault::Unclosed { line: 1 })
        );
        assert_eq!(
            fault(format!("\n{end}")),
            Some(BlockFault::Unopened { line: 2 })
        );
        assert_eq!(
            fault(format!("{begin}{end}{end}")),
            Some(BlockFault::Unopened { line: 3 })
        );
        assert_eq!(
            fault(format!("{begin}{end}\n{begin}{end}")),
            Some(BlockFault::Second { line: 4 })
        );
    }

    #[test]
    fn other_programs_are_left_alone() {
        let refused = |bytes: &[u8]| with(bytes, None, Hook::PreCommit).err();
        let interpreter = |name: &str| {
            let interpreter = name.to_owned();
            Some(Foreign::Interpreter { interpreter })
        };
        assert_eq!(refused(b"\x7fELF\0\0"), Some(Foreign::Binary));
        assert_eq!(refused(b"#!/usr/bin/python3\n"), interpreter("python3"));
        assert_eq!(refused(b"#!/usr/bin/env -S node\n"), interpreter("node"));
        assert_eq!(refused(b"#!/usr/bin/fish\n"), interpreter("fish"));
        assert_eq!(refused(b"#!/bin/sh\r\n"), Some(Foreign::LineEnds));
        for shell in [
            "#! /bin/sh -e",
            "#!/bin/busybox sh",
            "#!/usr/bin/env A=b zsh",
        ] {
            assert_eq!(refused(shell.as_bytes()), None, "{shell}");
        }
    }

    #[test]
    fn an_end_before_the_block_is_seen() {
        let ends = |before: &str| {
            let file = [before.as_bytes(), &super::new_file(Hook::PreCommit)[10..]].concat();
            early_end(&file, &block(&file))
        };
        assert_eq!(ends("#!/bin/sh\nexit 0\n"), Some(2));
        assert_eq!(ends("#!/bin/sh\n\nexec make check\n"), Some(3));
        assert_eq!(
            ends("#!/bin/sh\nexec 2>&1\nexec <log\nif a; then\n  exit 1\nfi\n"),
            None
        );
    }
}
