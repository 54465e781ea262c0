//! Patterns for the paths of a repository that an agent may touch.

/// A path pattern: `*` and `?` match within one name, `**` matches any number of folders. It is
/// stored as one pattern per name, because matching a whole path takes too long for some patterns.
pub struct PathPattern(Vec<Option<glob::Pattern>>);

/// Why a text is not a path pattern.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// It can't match any path in a repository.
    #[error("it is a path from the repository's root, without a leading `/`, without `.` and `..`")]
    NoPath,
    /// It is not well formed.
    #[error("{0}")]
    Malformed(&'static str),
}

impl PathPattern {
    /// Parses a pattern.
    ///
    /// # Errors
    /// [`PatternError`] if it is invalid.
    pub fn new(text: &str) -> Result<Self, PatternError> {
        let plain = |part: &str| !matches!(part, "" | "." | "..");
        // A folder's pattern matches everything in it.
        let (folder, whole) = match text.strip_suffix('/') {
            Some(folder) => (folder, format!("{text}**")),
            None => (text, text.to_owned()),
        };
        if !folder.split('/').all(plain) {
            return Err(PatternError::NoPath);
        }
        let part = |part| match part {
            "**" => Ok(None),
            name => glob::Pattern::new(name).map(Some),
        };
        let parts: Result<_, _> = whole.split('/').map(part).collect();
        parts.map(Self).map_err(|e| PatternError::Malformed(e.msg))
    }

    /// Whether a path matches.
    pub fn matches(&self, path: &str) -> bool {
        let names: Vec<&str> = path.split('/').collect();
        // For each number of leading names, whether the parts so far match them.
        let mut matched = vec![false; names.len() + 1];
        matched[0] = true;
        for (at, part) in self.0.iter().enumerate() {
            let is_last = at + 1 == self.0.len();
            let mut has_begun = false;
            let next = (0..=names.len()).map(|count| {
                let fits = match part {
                    // A trailing `**` does not match the folder itself.
                    None => has_begun || matched[count] && !is_last,
                    Some(name) => count > 0 && matched[count - 1] && name.matches(names[count - 1]),
                };
                has_begun |= matched[count];
                fits
            });
            let next = next.collect();
            matched = next;
        }
        matched[names.len()]
    }
}

#[cfg(test)]
mod tests {
    use super::{PathPattern, PatternError};

    #[test]
    fn a_pattern_stays_within_its_folders() {
        let fits = |pattern: &str, path: &str| {
            PathPattern::new(pattern).is_ok_and(|pattern| pattern.matches(path))
        };
        assert!(fits("src/**", "src/a/b.rs") && fits("src/", "src/a/b.rs"));
        assert!(fits("**/*.md", "docs/a.md") && fits("**/*.md", "a.md"));
        assert!(fits("src/*.rs", "src/a.rs") && !fits("src/*.rs", "src/a/b.rs"));
        assert!(!fits("src/**", "srcs/a.rs") && !fits("src/", "src"));
        assert!(fits("**", ".github/workflows/test.yml"));
        for none in ["", "/src", "a//b", "../a", "./a", "/"] {
            let found = PathPattern::new(none).err();
            assert_eq!(found, Some(PatternError::NoPath), "{none}");
        }
        assert!(PathPattern::new("a[").is_err() && PathPattern::new("a**b").is_err());
        assert!(fits("a/**/b", "a/b") && fits("a/**/b", "a/x/y/b") && !fits("a/**/b", "a/xb"));
        // The time is at most the parts times the names.
        let long = "a".repeat(250);
        assert!(!fits(&("*a".repeat(100) + "b"), &format!("{long}/x")));
        let deep = vec!["a"; 1000].join("/");
        assert!(!fits(&("**/a/".repeat(50) + "b"), &deep));
    }
}
