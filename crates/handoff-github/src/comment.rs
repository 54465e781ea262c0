//! The comment about an issue in its pull request, which is written again in place.

use handoff_base::ids::IssueKey;
use handoff_base::text::quoted;
use serde::Deserialize;
use serde_json::Value;

use super::text::line;

/// How much is shown of what is no list, in characters.
const MOST_SHOWN: usize = 60;

/// The most that a comment may have. GitHub counts characters; bytes are never fewer.
pub const MOST_COMMENT: usize = 65_536;

/// Who writes comments in a workflow with its own token.
pub const AUTHOR: &str = "github-actions[bot]";

/// The first line of an issue's comment, which nobody sees.
pub fn marker(issue: &IssueKey) -> String {
    format!("<!-- git-handoff:{issue} -->")
}

/// Why a list of comments can't be used.
#[derive(Debug, thiserror::Error)]
pub enum CommentsFault {
    /// It is no list of comments, or pages of them.
    #[error("it is no list of comments as GitHub's REST API gives it")]
    Unreadable {
        /// Where it goes wrong.
        #[source]
        source: serde_json::Error,
    },
    /// It is an answer of the API's to something else.
    #[error("it is no list of comments as GitHub's REST API gives it, but {what}")]
    Other {
        /// What it is instead.
        what: String,
    },
}

#[derive(Deserialize)]
struct Comment {
    id: u64,
    body: Option<String>,
    user: Option<User>,
}

#[derive(Deserialize)]
struct User {
    login: String,
}

/// The comments of a page, or of pages in a list.
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

/// The comment about an issue among a pull request's, as the REST API lists them: one
/// page, several one after the other, or a list of pages. Only one that this author
/// wrote, and that begins with the marker, is it: whoever pastes the marker into a
/// comment is not answered there. Of several, the oldest.
///
/// # Errors
/// [`CommentsFault`] when the text is something else.
pub fn existing(json: &[u8], issue: &IssueKey, author: &str) -> Result<Option<u64>, CommentsFault> {
    let marker = marker(issue);
    let is_it = |comment: &Comment| {
        let by = comment.user.as_ref().map(|user| user.login.as_str());
        let body = comment.body.as_deref().unwrap_or_default();
        // GitHub takes logins without regard to case.
        by.is_some_and(|by| by.eq_ignore_ascii_case(author)) && body.starts_with(&marker)
    };
    let mut found = Vec::new();
    for page in serde_json::Deserializer::from_slice(json).into_iter::<Value>() {
        let page = page.map_err(|source| CommentsFault::Unreadable { source })?;
        found.extend(comments(page)?.iter().filter(|c| is_it(c)).map(|c| c.id));
    }
    Ok(found.into_iter().min())
}

#[cfg(test)]
mod tests {
    use super::{AUTHOR, existing};
    use handoff_base::ids::IssueKey;

    fn found(json: &str) -> Option<u64> {
        let key: IssueKey = "87".parse().expect("a key");
        existing(json.as_bytes(), &key, AUTHOR).expect("comments")
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
        let key: IssueKey = "87".parse().expect("a key");
        for text in ["{", "[1]", "[null]", "[{}]", "[] x"] {
            assert!(existing(text.as_bytes(), &key, AUTHOR).is_err(), "{text}");
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
            let fault = existing(text.as_bytes(), &key, AUTHOR).expect_err(text);
            assert!(
                fault.to_string().ends_with(&format!(", but {what}")),
                "{fault}"
            );
        }
    }
}
