//! The comment about an issue in its pull request, which is updated in place.

use handoff::base::ids::IssueKey;
use handoff::base::ledger_names::suffix;
use handoff::base::text::quoted;
use serde::Deserialize;
use serde_json::Value;

use super::text::line;

/// The maximum length of an invalid list in an error, in characters.
const MOST_SHOWN: usize = 60;

/// GitHub's limit for the body of a comment, an issue or a pull request, in characters. Pages are
/// truncated to this many bytes, which is never more.
pub const MOST_COMMENT: usize = 65_536;

/// The author of comments that a workflow writes with its own token.
pub const AUTHOR: &str = "github-actions[bot]";

/// Returns the invisible first line of an issue's comment, of the ledger on this branch.
pub fn marker(issue: &IssueKey, branch: &str) -> String {
    format!("<!-- git-handoff:{issue}{} -->", suffix('@', branch))
}

/// Why a list of comments is invalid.
#[derive(Debug, thiserror::Error)]
pub enum CommentsFault {
    /// Neither a list of comments nor pages of them.
    #[error("it is not a list of comments as GitHub's REST API returns it")]
    Unreadable {
        /// The position of the fault.
        #[source]
        source: serde_json::Error,
    },
    /// Other JSON, such as an error of the API.
    #[error("it is not a list of comments as GitHub's REST API returns it, but {what}")]
    Other {
        /// A description of that JSON.
        what: String,
    },
}

/// A comment, as the REST API lists it.
#[derive(Debug, Deserialize)]
pub struct Comment {
    /// Its number.
    pub id: u64,
    body: Option<String>,
    user: Option<User>,
}

impl Comment {
    /// Whether its body equals this text, apart from line ends: GitHub may keep those that forms
    /// send.
    pub fn is(&self, body: &str) -> bool {
        let own = self.body.as_deref().unwrap_or_default();
        own.replace("\r\n", "\n").trim_end() == body.trim_end()
    }
}

#[derive(Debug, Deserialize)]
struct User {
    login: String,
}

fn comments(page: Value) -> Result<Vec<Comment>, CommentsFault> {
    let listed = match page {
        Value::Array(listed) => listed,
        Value::Object(fields) => {
            let message = fields.get("message").and_then(Value::as_str);
            let what = match message {
                Some(message) => format!("an answer that says {}", quoted(message)),
                None => "an object".to_owned(),
            };
            return Err(CommentsFault::Other { what });
        }
        other => {
            let what = format!("`{}`", line(&other.to_string(), MOST_SHOWN));
            return Err(CommentsFault::Other { what });
        }
    };
    let mut found = Vec::new();
    for one in listed {
        match one {
            Value::Array(_) => found.extend(comments(one)?),
            one => {
                let comment = serde_json::from_value(one);
                found.push(comment.map_err(|source| CommentsFault::Unreadable { source })?);
            }
        }
    }
    Ok(found)
}

/// Finds the comment about an issue in a pull request's comments from the REST API: one page,
/// several in a row, or a list of pages. It must begin with the [`marker`] and have this author, so
/// that nobody else's comment with the marker is overwritten. If there are several, the oldest
/// counts.
///
/// # Errors
/// [`CommentsFault`] if the text is not a list of comments.
pub fn existing(json: &[u8], marker: &str, author: &str) -> Result<Option<Comment>, CommentsFault> {
    let is_it = |comment: &Comment| {
        let by = comment.user.as_ref().map(|user| user.login.as_str());
        let body = comment.body.as_deref().unwrap_or_default();
        // GitHub ignores the case of logins.
        by.is_some_and(|by| by.eq_ignore_ascii_case(author)) && body.starts_with(marker)
    };
    let mut found = Vec::new();
    for page in serde_json::Deserializer::from_slice(json).into_iter::<Value>() {
        let page = page.map_err(|source| CommentsFault::Unreadable { source })?;
        found.extend(comments(page)?.into_iter().filter(is_it));
    }
    Ok(found.into_iter().min_by_key(|comment| comment.id))
}

#[cfg(test)]
mod tests {
    use super::{AUTHOR, existing};

    const MARKER: &str = "<!-- git-handoff:87 -->";

    fn found(json: &str) -> Option<u64> {
        let found = existing(json.as_bytes(), MARKER, AUTHOR).expect("comments");
        found.map(|comment| comment.id)
    }

    fn comment(id: u64, login: &str, body: &str) -> String {
        serde_json::json!({ "id": id, "user": { "login": login, "type": "Bot" }, "body": body })
            .to_string()
    }

    #[test]
    fn only_its_own_author_wrote_it() {
        let own = "<!-- git-handoff:87 -->\nhello";
        let mallory = comment(1, "mallory", own);
        let quoted = comment(2, AUTHOR, &format!("> {own}"));
        let other = comment(3, AUTHOR, "<!-- git-handoff:870 -->");
        let first = comment(4, AUTHOR, own);
        let second = comment(5, AUTHOR, own);
        let gone = r#"{ "id": 6, "user": null, "body": null }"#;
        assert_eq!(found("[]"), None);
        assert_eq!(found(""), None);
        let large = comment(4, "GitHub-Actions[bot]", own);
        assert_eq!(found(&format!("[{large}]")), Some(4));
        assert_eq!(found(&format!("[{mallory},{quoted},{other},{gone}]")), None);
        assert_eq!(found(&format!("[{mallory},{second}]\n[{first}]")), Some(4));
        assert_eq!(
            found(&format!("[[{mallory}],[{gone},{second}],[]]")),
            Some(5)
        );
    }

    #[test]
    fn anything_else_is_refused() {
        for text in ["{", "[1]", "[null]", "[{}]", "[] x"] {
            assert!(existing(text.as_bytes(), MARKER, AUTHOR).is_err(), "{text}");
        }
        for (text, what) in [
            ("null", "`null`"),
            ("{}", "an object"),
            (
                r#"{"message":"Not Found"}"#,
                r#"an answer that says "Not Found""#,
            ),
            (r#""x""#, r#"`"x"`"#),
        ] {
            let fault = existing(text.as_bytes(), MARKER, AUTHOR).expect_err(text);
            assert!(
                fault.to_string().ends_with(&format!(", but {what}")),
                "{fault}"
            );
        }
    }
}
