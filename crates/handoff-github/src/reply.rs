//! The reply to the commands in a comment: a reaction, and the reasons for what was refused.

use handoff::base::ledger_names::suffix;
use handoff::protocol::Command;

use super::event::{Commanded, Event};
use super::text::{block, code};

// Limits, in characters and bytes.
const MOST_LINE: usize = 200;
const MOST_WHY: usize = 600;
const MOST_NEXT: usize = 2000;

/// The reply to the commands of a comment or a review.
#[derive(Debug, PartialEq, Eq)]
pub struct Reply {
    /// GitHub's word for the reaction to the comment.
    pub reaction: &'static str,
    /// Whether a command was refused.
    pub refused: bool,
    /// The body of the reply, which begins with [`marker`].
    pub body: String,
}

/// The invisible first line of a ledger's reply to a comment or a review, by its name: `comment-17`.
pub fn marker(said_in: &str, branch: &str) -> String {
    format!(
        "<!-- git-handoff-reply:{said_in}{} -->",
        suffix('@', branch)
    )
}

impl Reply {
    /// The reply of the ledger on this branch to an event's commands; `None` without any.
    pub fn of(event: &Event, commands: &[Commanded], branch: &str) -> Option<Self> {
        let said_in = event.said_in()?;
        let refused = commands.iter().any(|one| !one.accepted);
        let only_asks = commands
            .iter()
            .all(|one| one.command == Some(Command::Status));
        let reaction = match () {
            () if commands.is_empty() => return None,
            () if refused => "confused",
            () if only_asks => "+1",
            () => "rocket",
        };
        let mut body = marker(&said_in, branch) + "\n";
        for one in commands {
            let mark = if one.accepted { "✓" } else { "✗ refused:" };
            let (said, sentence) = (code(&one.said, MOST_LINE), code(&one.sentence, MOST_WHY));
            body += &format!("{said}  \n{mark} {sentence}\n\n");
            if let Some(next) = &one.next {
                body += &format!("Instead:\n\n{}\n", block(next, MOST_NEXT));
            }
        }
        Some(Self {
            reaction,
            refused,
            body,
        })
    }
}
