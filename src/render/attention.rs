//! What needs somebody, as lines: what, whose turn, since when; why; and the command to run.

use handoff_base::text::cut;
use handoff_ledger::attention::Attention;

use crate::view::Look;

/// The longest reason, in characters.
const REASON: usize = 74;

/// Lists the most urgent of them, at most this many.
pub(crate) fn attention_text(attention: &[Attention], most: usize, look: &Look) -> String {
    if attention.is_empty() {
        return String::new();
    }
    let mut text = format!("{}\n", look.heading("needs attention"));
    for one in attention.iter().take(most) {
        text += &entry(one, look);
    }
    match attention.len().saturating_sub(most) {
        0 => {}
        more => text += &format!("  and {more} more\n"),
    }
    text + "\n"
}

fn entry(one: &Attention, look: &Look) -> String {
    let attempt = match one.attempt {
        0 | 1 => String::new(),
        attempt => format!(", attempt {attempt}"),
    };
    let mut text = format!(
        "{} {}{attempt}, {}'s turn, since {}\n",
        look.urgent(&format!("! {}", one.id)),
        one.need.title(),
        one.turn,
        look.moment(one.since),
    );
    for line in [&one.title, &one.why] {
        let line = look.cell(line);
        if !line.is_empty() {
            text += &format!("    {}\n", cut(&line, REASON));
        }
        if one.title == one.why {
            break;
        }
    }
    text + &format!("    next: {}\n", one.next)
}
