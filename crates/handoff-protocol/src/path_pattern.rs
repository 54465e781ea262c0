//! Patterns for the paths of a repository that an agent may touch.

/// A path pattern: `*` and `?` match within one name, `**` matches any number of folders.
pub struct PathPattern(glob::Pattern);

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
        // A folder matches everything in it.
        let (folder, whole) = match text.strip_suffix('/') {
            Some(folder) => (folder, format!("{text}**")),
            None => (text, text.to_owned()),
        };
        if !folder.split('/').all(plain) {
            return Err(PatternError::NoPath);
        }
        let pattern = glob::Pattern::new(&whole);
        pattern
            .map(Self)
            .map_err(|e| PatternError::Malformed(e.msg))
    }

    /// Whether a path matches.
    pub fn matches(&self, path: &str) -> bool {
        let options = glob::MatchOptions {
            case_sensitive: true,
            require_literal_separator: true,
            require_literal_leading_dot: false,
        };
        self.0.matches_with(path, options)
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
    }
}
