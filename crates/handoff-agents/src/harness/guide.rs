//! The marked block in an instructions file, shared by all harnesses that read the file.

use handoff_cli::hooks::{BlockFault, find_between};

const BEGIN: &str = "<!-- >>> git-handoff >>> -->";
const END: &str = "<!-- <<< git-handoff <<< -->";
const FOR: &str = "<!-- `git handoff agents` writes these lines anew; they are for: ";
const TEXT: &str = include_str!("../../agents/instructions.md");

fn block(names: &[String], import: Option<&str>) -> String {
    let text = import.map_or_else(|| TEXT.to_owned(), |line| format!("{line}\n"));
    format!("{BEGIN}\n{FOR}{} -->\n\n{text}\n{END}\n", names.join(", "))
}

/// The content of the file that instructions import.
pub(super) fn imported() -> String {
    let mark = super::SKILL.lines().last().unwrap_or_default();
    format!("{TEXT}\n{mark}\n")
}

/// The harnesses named in the block; `None` if there is no block.
pub(super) fn names(bytes: &[u8]) -> Result<Option<Vec<String>>, BlockFault> {
    let Some(block) = find_between(bytes, [BEGIN, END])? else {
        return Ok(None);
    };
    let text = String::from_utf8_lossy(&bytes[block.bytes]);
    let line = text.lines().find_map(|line| line.strip_prefix(FOR));
    let names = line
        .and_then(|line| line.strip_suffix(" -->"))
        .unwrap_or_default();
    let names = names.split(", ").filter(|name| !name.is_empty());
    Ok(Some(names.map(str::to_owned).collect()))
}

/// Whether the block is the one that this version writes, with either kind of line break.
pub(super) fn is_current(bytes: &[u8], import: Option<&str>) -> bool {
    let (Ok(Some(found)), Ok(Some(names))) = (find_between(bytes, [BEGIN, END]), names(bytes))
    else {
        return false;
    };
    let text = String::from_utf8_lossy(&bytes[found.bytes]).replace("\r\n", "\n");
    text.trim_end() == block(&names, import).trim_end()
}

/// Whether a file equals this text, with either kind of line break.
pub(super) fn is_same(bytes: &[u8], text: &str) -> bool {
    String::from_utf8_lossy(bytes).replace("\r\n", "\n") == text
}

/// The file with a block for these harnesses (the text, or a line that imports it), or without a
/// block if there are none; `None` if nothing else was in the file.
pub(super) fn with(
    bytes: Option<&[u8]>,
    names: &[String],
    import: Option<&str>,
) -> Result<Option<Vec<u8>>, BlockFault> {
    let text = (!names.is_empty()).then(|| block(names, import));
    put(bytes, [BEGIN, END], text.as_deref())
}

/// The file with this block, or without one; `None` if nothing else was in the file.
pub(super) fn put(
    bytes: Option<&[u8]>,
    marks: [&str; 2],
    block: Option<&str>,
) -> Result<Option<Vec<u8>>, BlockFault> {
    let old = bytes.unwrap_or_default();
    let found = find_between(old, marks)?;
    let new = block.unwrap_or_default();
    let file = match found {
        Some(found) => {
            let (mut start, end) = (found.bytes.start, found.bytes.end);
            if block.is_none() && end == old.len() {
                // Above the block, user text is followed by a blank line that was added.
                if start == 0 {
                    return Ok(None);
                }
                // That blank line is removed with the block.
                start -= added_above(&old[..start]);
            }
            [&old[..start], new.as_bytes(), &old[end..]].concat()
        }
        None if block.is_none() => return Ok(bytes.map(<[u8]>::to_vec)),
        None if bytes.is_none() => new.as_bytes().to_vec(),
        // The blank line above the block shows that the file existed, even if it was empty.
        None if old.is_empty() || old.ends_with(b"\n") => [old, b"\n", new.as_bytes()].concat(),
        None => [old, UNENDED.as_bytes(), new.as_bytes()].concat(),
    };
    Ok(Some(file))
}

/// How many bytes were added above a block; git may have converted their line breaks.
fn added_above(above: &[u8]) -> usize {
    let crlf = UNENDED.replace('\n', "\r\n");
    let endings = [UNENDED, &crlf, "\r\n", "\n"];
    let ending = endings.iter().find(|end| above.ends_with(end.as_bytes()));
    ending.map_or(0, |end| end.len())
}

/// Separates the block from a last line without a line break. These blanks occur in no other text,
/// so they show that the line break was added.
const UNENDED: &str = "\n \n\n";

#[cfg(test)]
mod tests {
    use super::{BEGIN, END, is_current, names, with};

    #[test]
    fn the_users_text_is_as_before() {
        let two = ["codex".to_owned(), "cursor".to_owned()];
        for text in [
            "# Ours\n",
            "# Ours",
            "a\r\nb\r\n",
            "\n\n",
            "a\n\n",
            "\u{feff}x\n",
            "\0\n",
            "",
        ] {
            let one = with(Some(text.as_bytes()), &two[..1], None)
                .ok()
                .flatten()
                .unwrap_or_default();
            assert!(
                one.starts_with(text.as_bytes()) && is_current(&one, None),
                "{text:?}"
            );
            let both = with(Some(&one), &two, None)
                .ok()
                .flatten()
                .unwrap_or_default();
            assert_eq!(names(&both).ok().flatten().as_deref(), Some(&two[..]));
            assert_eq!(
                with(Some(&both), &two, None).ok().flatten().as_ref(),
                Some(&both)
            );
            assert_eq!(
                with(Some(&both), &two[..1], None).ok().flatten().as_ref(),
                Some(&one)
            );
            let none = with(Some(&one), &[], None)
                .ok()
                .flatten()
                .unwrap_or_default();
            assert_eq!(none, text.as_bytes(), "{text:?}");
            if !text.contains('\r') {
                // As after a checkout with CRLF line breaks.
                let crlf = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace('\n', "\r\n");
                let none = with(Some(crlf(&one).as_bytes()), &[], None).ok().flatten();
                assert_eq!(none, Some(crlf(text.as_bytes()).into_bytes()), "{text:?}");
            }
            let below = [&one[..], b"below\n"].concat();
            let left = with(Some(&below), &[], None)
                .ok()
                .flatten()
                .unwrap_or_default();
            assert!(left.starts_with(text.as_bytes()) && left.ends_with(b"below\n"));
        }
        let import = Some("@./a.md");
        let new = with(None, &two, import).ok().flatten().unwrap_or_default();
        assert!(is_current(&new, import) && !is_current(&new, None));
        assert!(String::from_utf8_lossy(&new).contains("\n\n@./a.md\n\n<!--"));
        assert_eq!(with(Some(&new), &[], import).ok(), Some(None));
        let alone = with(None, &two, None).ok().flatten().unwrap_or_default();
        assert_eq!(with(Some(&alone), &[], None).ok(), Some(None));
    }

    #[test]
    fn unclear_bounds_are_refused() {
        for text in [
            BEGIN.to_owned(),
            END.to_owned(),
            format!("{BEGIN}\n{END}\n{BEGIN}\n{END}\n"),
        ] {
            assert!(
                with(Some(text.as_bytes()), &["codex".to_owned()], None).is_err(),
                "{text}"
            );
        }
    }
}
