//! The comment about an issue in its pull request, which is written again in place.

use serde::Deserialize;

use crate::ids::IssueKey;

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

/// A page of comments, or pages in a list.
#[derive(Deserialize)]
#[serde(untagged)]
enum Page {
    One(Vec<Comment>),
    Several(Vec<Vec<Comment>>),
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
        by == Some(author) && body.starts_with(&marker)
    };
    let mut found = Vec::new();
    for page in serde_json::Deserializer::from_slice(json).into_iter::<Page>() {
        let page = page.map_err(|source| CommentsFault::Unreadable { source })?;
        let comments = match page {
            Page::One(comments) => comments,
            Page::Several(pages) => pages.into_iter().flatten().collect(),
        };
        found.extend(comments.iter().filter(|c| is_it(c)).map(|c| c.id));
    }
    Ok(found.into_iter().min())
}

#[cfg(test)]
mod tests {
    use super::{AUTHOR, existing};
    use crate::ids::IssueKey;

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
        for text in ["{", "{\"message\":\"Not Found\"}", "[1]", "[] x"] {
            assert!(existing(text.as_bytes(), &key, AUTHOR).is_err(), "{text}");
        }
    }
}
