//! git's settings for colours and the pager.

use handoff::git::{Program, Setting};

/// The user's settings for all programs that git runs, and for this one.
#[derive(Default)]
pub struct Wishes {
    /// Disables colours: `color.handoff`, else `color.ui`.
    pub no_color: bool,
    /// Disables colours in the pager: `color.pager`.
    pub no_color_in_pager: bool,
    /// The value of `pager.handoff`.
    pub pager: Option<String>,
}

impl Wishes {
    /// Reads the settings through git, which includes `git -c`. An unreadable configuration is
    /// reported by other commands.
    pub fn read() -> Self {
        let names = r"^(color\.(handoff|ui|pager)|pager\.handoff)$";
        let settings = Program::here().settings(names).unwrap_or_default();
        Self::of(&settings)
    }

    fn of(settings: &[Setting]) -> Self {
        let last = |key: &str| {
            let found = settings.iter().rev().find(|setting| setting.key == key)?;
            // A key without a value means true.
            Some(found.value.clone().unwrap_or_else(|| "true".to_owned()))
        };
        let refused = |value: String| {
            let value = value.to_ascii_lowercase();
            matches!(value.as_str(), "never" | "false" | "no" | "off" | "0")
        };
        Self {
            no_color: last("color.handoff")
                .or_else(|| last("color.ui"))
                .is_some_and(refused),
            no_color_in_pager: last("color.pager").is_some_and(refused),
            pager: last("pager.handoff"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Setting, Wishes};

    fn wishes(settings: &[(&str, Option<&str>)]) -> Wishes {
        let one = |(key, value): &(&str, Option<&str>)| Setting {
            scope: "local".to_owned(),
            origin: "file:.git/config".to_owned(),
            key: (*key).to_owned(),
            value: value.map(str::to_owned),
        };
        Wishes::of(&settings.iter().map(one).collect::<Vec<_>>())
    }

    #[test]
    fn the_nearer_and_later_word_counts() {
        assert!(!wishes(&[]).no_color);
        assert!(wishes(&[("color.ui", Some("Never"))]).no_color);
        assert!(!wishes(&[("color.ui", None)]).no_color);
        assert!(!wishes(&[("color.ui", Some("false")), ("color.ui", Some("auto"))]).no_color);
        assert!(!wishes(&[("color.handoff", Some("auto")), ("color.ui", Some("no"))]).no_color);
        assert!(wishes(&[("color.handoff", Some("off")), ("color.ui", Some("true"))]).no_color);
        assert!(wishes(&[("color.pager", Some("0"))]).no_color_in_pager);
        assert_eq!(
            wishes(&[("pager.handoff", None)]).pager.as_deref(),
            Some("true")
        );
    }
}
