//! Attention entries as lines: the need, whose turn, since when; why; and the command to run.

use handoff::base::text::counted_as;
use handoff::ledger::attention::Attention;

use crate::view::Look;

/// The width at which an entry's first line breaks without a terminal.
const WIDTH: usize = 80;

/// The indentation of an entry's further lines.
const INDENT: &str = "    ";

/// The prefix of foreign lines in an entry, which could imitate ours.
const BAR: &str = "    | ";

/// The maximum width of an agent's name.
const NAME: usize = 30;

/// Lists the most urgent entries, at most this many, and the number of the rest of `total`, with
/// what lists `all`.
pub fn attention_text(
    attention: &[Attention],
    (most, total, all): (usize, usize, &str),
    look: &Look,
) -> String {
    if attention.is_empty() || most == 0 {
        return String::new();
    }
    let mut text = format!("{}\n", look.heading("needs attention"));
    for one in attention.iter().take(most) {
        text += &entry(one, look);
    }
    match total.saturating_sub(most) {
        0 => {}
        more => text += &format!("  and {more} more ({all} lists all)\n"),
    }
    text + "\n"
}

/// A line about refused steps of this clone; `None` without any.
pub fn rejected_text(count: usize) -> Option<String> {
    let ending = [
        " made here was refused and is kept",
        "s made here were refused and are kept",
    ];
    let steps = (count > 0).then(|| counted_as(count, "step", ending))?;
    Some(format!("{steps}: `git handoff refused`"))
}

fn entry(one: &Attention, look: &Look) -> String {
    let attempt = match one.attempt {
        0 | 1 => String::new(),
        attempt => format!(", attempt {attempt}"),
    };
    let width = look.width(WIDTH);
    let need = format!("! {} {}{attempt}", one.id, one.what());
    let turn = look.cut(&look.cell(one.turn.as_str()), NAME);
    let turn = format!("{turn}'s turn, {}", look.age(one.since));
    let between = if need.len() + turn.len() + ", ".len() <= width {
        ", ".to_owned()
    } else {
        format!("\n{INDENT}")
    };
    let mut text = format!("{}{between}{turn}\n", look.urgent(&need));
    let mut about = vec![&one.title];
    about.extend(Some(&one.why).filter(|why| **why != one.title));
    for line in about {
        let mut line = look.cell(line);
        if look.is_for_terminal() {
            line = look.cut(&line, width.saturating_sub(BAR.len()));
        }
        if !line.is_empty() {
            text += &format!("{BAR}{line}\n");
        }
    }
    if let Some(read) = &one.read {
        text += &format!("{INDENT}read it first: {read}\n");
    }
    text + &format!("{INDENT}next: {}\n", one.next)
}
