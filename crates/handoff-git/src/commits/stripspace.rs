//! How git cleans up a commit message.

/// The modes of `commit.cleanup`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cleanup {
    /// No changes.
    Verbatim,
    /// Trims lines and the message, and merges empty lines.
    Whitespace,
    /// Also removes comments, and everything from a scissors line on.
    Strip,
    /// As `Whitespace`, and removes everything from a scissors line on.
    Scissors,
}

impl Cleanup {
    /// The mode that git would use, by its configuration and whether the message was edited.
    pub fn of(configured: Option<&str>, edited: bool) -> Self {
        match (configured, edited) {
            (Some("verbatim"), _) => Self::Verbatim,
            (Some("strip"), _) => Self::Strip,
            (Some("whitespace"), _) | (_, false) => Self::Whitespace,
            (Some("scissors"), true) => Self::Scissors,
            (_, true) => Self::Strip,
        }
    }
}

/// Cleans up a message. `comment` is the comment prefix.
pub fn cleaned(message: &[u8], cleanup: Cleanup, comment: &[u8]) -> Vec<u8> {
    if cleanup == Cleanup::Verbatim {
        return message.to_vec();
    }
    let scissors = [
        comment,
        b" ------------------------ >8 ------------------------",
    ]
    .concat();
    let mut kept = Vec::with_capacity(message.len() + 1);
    let mut empty = false;
    for line in message.split(|&b| b == b'\n') {
        if cleanup != Cleanup::Whitespace && line == scissors {
            break;
        }
        if cleanup == Cleanup::Strip && !comment.is_empty() && line.starts_with(comment) {
            continue;
        }
        let line = line.trim_ascii_end();
        if line.is_empty() {
            empty = !kept.is_empty();
            continue;
        }
        if std::mem::take(&mut empty) {
            kept.push(b'\n');
        }
        kept.extend_from_slice(line);
        kept.push(b'\n');
    }
    kept
}

/// The comment prefix of a message template: the configured one, or the one that git picked.
pub fn comment_of<'m>(configured: Option<&'m str>, message: &'m [u8]) -> &'m [u8] {
    const CHOICE: &[u8] = b"#;@!$%^&|:";
    match configured {
        None | Some("") => b"#",
        Some("auto") => {
            let mut lines = message.split(|&b| b == b'\n').rev();
            let last = lines.find(|line| !line.is_empty());
            match last.and_then(|line| line.get(..1)) {
                Some(first) if CHOICE.contains(&first[0]) => first,
                _ => b"#",
            }
        }
        Some(other) => other.as_bytes(),
    }
}

#[cfg(test)]
mod tests {
    use super::{Cleanup, cleaned, comment_of};

    #[test]
    fn a_message_is_cleaned_as_git_does_it() {
        let message = b"\n\n s  \n\n\n# a\nb\t\n;c\n# ------------------------ >8 ------------------------\nd";
        let text = |cleanup, comment: &[u8]| {
            String::from_utf8_lossy(&cleaned(message, cleanup, comment)).into_owned()
        };
        assert_eq!(text(Cleanup::Strip, b"#"), " s\n\nb\n;c\n");
        assert_eq!(text(Cleanup::Scissors, b"#"), " s\n\n# a\nb\n;c\n");
        let whole = " s\n\n# a\nb\n;c\n# ------------------------ >8 ------------------------\nd\n";
        assert_eq!(text(Cleanup::Whitespace, b"#"), whole);
        assert_eq!(text(Cleanup::Strip, b";"), whole.replace(";c\n", ""));
        assert_eq!(text(Cleanup::Verbatim, b"#").as_bytes(), message);
        assert!(cleaned(b" \n#\n", Cleanup::Strip, b"#").is_empty());
    }

    #[test]
    fn what_git_does_depends_on_the_editor() {
        assert_eq!(Cleanup::of(None, true), Cleanup::Strip);
        assert_eq!(Cleanup::of(Some("default"), true), Cleanup::Strip);
        assert_eq!(Cleanup::of(None, false), Cleanup::Whitespace);
        assert_eq!(Cleanup::of(Some("scissors"), false), Cleanup::Whitespace);
        assert_eq!(Cleanup::of(Some("strip"), false), Cleanup::Strip);
    }

    #[test]
    fn a_comment_begins_as_it_is_configured() {
        assert_eq!(comment_of(None, b""), b"#");
        assert_eq!(comment_of(Some("//"), b""), b"//");
        assert_eq!(comment_of(Some("auto"), b"# s\n\n; a\n"), b";");
        assert_eq!(comment_of(Some("auto"), b"s\n"), b"#");
    }
}
