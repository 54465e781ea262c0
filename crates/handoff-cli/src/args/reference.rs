//! References to an issue or a handoff: its key or id, `#13`, or the issue's URL.

use std::any::TypeId;
use std::convert::Infallible;

use handoff::base::ids::{IdError, IssueKey};

/// Makes an argument accept every form of reference.
pub fn accepted(argument: clap::Arg) -> clap::Arg {
    let names = argument.get_value_names().unwrap_or_default();
    let is_meant = names.iter().any(|name| {
        ["ISSUE", "ID", "ID|ISSUE"].contains(&name.as_str()) && !argument.is_global_set()
    });
    if is_meant && argument.get_value_parser().type_id() == TypeId::of::<String>() {
        argument.value_parser(|text: &str| Ok::<_, Infallible>(plain(text).to_owned()))
    } else {
        argument
    }
}

/// Parses an issue's key from any form of reference.
///
/// # Errors
/// [`IdError`] if it is invalid.
pub fn issue(text: &str) -> Result<IssueKey, IdError> {
    plain(text).parse()
}

/// The key or id in a reference; other text unchanged.
pub fn plain(text: &str) -> &str {
    let number = text.strip_prefix('#').or_else(|| in_address(text));
    number.filter(|rest| !rest.is_empty()).unwrap_or(text)
}

/// The repository in an issue's URL: `octo/parcels`.
pub fn repository_in(text: &str) -> Option<&str> {
    in_address(text)?;
    let (_, rest) = text.split_once("://")?;
    let (_, path) = rest.split_once('/')?;
    let (path, _) = path.split_once("/issues/")?;
    Some(path.trim_end_matches("/-"))
}

/// The issue in a URL such as `https://github.com/octo/parcels/issues/13#issuecomment-1`.
fn in_address(text: &str) -> Option<&str> {
    let (scheme, rest) = text.split_once("://")?;
    let (_, rest) = rest.split_once("/issues/")?;
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    ["http", "https"].contains(&scheme).then_some(&rest[..end])
}

#[cfg(test)]
mod tests {
    use super::{plain, repository_in};

    #[test]
    fn an_address_names_its_repository() {
        for (address, path) in [
            (
                "https://github.com/octo/parcels/issues/13",
                Some("octo/parcels"),
            ),
            ("https://gitlab.com/a/b/c/-/issues/13", Some("a/b/c")),
            ("https://github.com/octo/parcels/pull/13", None),
            ("13", None),
        ] {
            assert_eq!(repository_in(address), path, "{address}");
        }
    }

    #[test]
    fn every_form_of_an_issue_is_its_key() {
        for (form, key) in [
            ("13", "13"),
            ("#13", "13"),
            ("#13.2", "13.2"),
            ("https://github.com/octo/parcels/issues/13", "13"),
            (
                "https://github.com/octo/parcels/issues/13#issuecomment-4",
                "13",
            ),
            ("https://gitlab.com/octo/parcels/-/issues/13?x=1", "13"),
            (
                "https://github.com/octo/parcels/pull/13",
                "https://github.com/octo/parcels/pull/13",
            ),
            ("#", "#"),
            ("loans", "loans"),
        ] {
            assert_eq!(plain(form), key, "{form}");
        }
    }
}
