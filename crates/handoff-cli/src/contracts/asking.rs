//! Questions on a terminal.

use std::io::{IsTerminal, stdin};

use handoff::base::finding::{Finding, FindingCode};

use super::settings::{is_in, next_entry};
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Output;

/// Whether a person can be asked: the command runs on a terminal.
pub fn is_possible(context: &Context, output: &Output) -> bool {
    output.is_on_terminal() && context.call().is_none() && stdin().is_terminal()
}

/// Prints a question and returns the typed line, trimmed.
///
/// # Errors
/// A usage [`Failure`] with this hint at the end of input.
pub fn answer(question: &str, hint: &str, output: &mut Output) -> Result<String, Failure> {
    output.say(question);
    let mut line = String::new();
    // A read error counts as the end of input.
    if stdin().read_line(&mut line).unwrap_or(0) == 0 {
        let text = "nothing was answered, and nothing was written";
        return Err(Failure::usage(text).hint(hint));
    }
    Ok(line.trim().to_owned())
}

/// Asks until one of the choices is named by number or first word; an empty line means the first.
/// Returns its index.
///
/// # Errors
/// As [`answer`].
pub fn choice(
    question: &str,
    choices: &[&str],
    hint: &str,
    output: &mut Output,
) -> Result<usize, Failure> {
    let listed = (1..)
        .zip(choices)
        .map(|(i, choice)| format!("\n  {i}  {choice}"));
    let question = format!("{question} (Enter: 1){}", listed.collect::<String>());
    loop {
        let typed = answer(&question, hint, output)?;
        if typed.is_empty() {
            return Ok(0);
        }
        let number = typed.parse::<usize>().ok().and_then(|n| n.checked_sub(1));
        let first_word = |choice: &&str| choice.split([' ', ':']).next() == Some(&typed);
        let named = number.filter(|place| *place < choices.len());
        if let Some(place) = named.or_else(|| choices.iter().position(first_word)) {
            return Ok(place);
        }
        output.say(&format!("type a number from 1 to {}", choices.len()));
    }
}

/// When a value is asked for, relative to the others.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// First: the other answers may make it unnecessary.
    First,
    /// Last: every other value is known.
    Last,
    /// Again: for another entry of the list.
    More,
}

/// A question for a value of a contract.
#[derive(Clone)]
pub struct Question {
    /// The field's JSON Pointer.
    pub pointer: String,
    /// Its description.
    pub about: String,
    /// When it is asked for.
    pub turn: Turn,
}

impl Question {
    /// The next question; `left` has the pointer and description of each missing value, `later`
    /// those put off. The order: another entry of the list answered last, once its entry is
    /// complete; values not put off; values put off.
    pub fn next(left: &[(String, String)], later: &[String], list: Option<&Self>) -> Option<Self> {
        if let Some(first) = list
            && let Some((whole, next)) = next_entry(&first.pointer)
            && !left.iter().any(|(pointer, _)| is_in(&whole, pointer))
        {
            return Some(Self {
                pointer: next,
                about: first.about.clone(),
                turn: Turn::More,
            });
        }
        let new = left.iter().find(|(pointer, _)| !later.contains(pointer));
        let turn = if new.is_some() && left.len() > 1 {
            Turn::First
        } else {
            Turn::Last
        };
        let (pointer, about) = new.or(left.first())?.clone();
        Some(Self {
            pointer,
            about,
            turn,
        })
    }

    /// The meaning of an empty answer.
    pub fn if_empty(&self) -> &'static str {
        match self.turn {
            Turn::First => " (Enter: later)",
            Turn::Last => "",
            Turn::More => " (Enter: no more)",
        }
    }

    /// Whether a finding refuses the answer to this question.
    pub fn refuses(&self, found: &Finding) -> bool {
        found.is_error()
            && found.code != FindingCode::FieldUnfilled
            && is_in(&self.pointer, &found.path)
    }

    /// The question that began the list entry that this one belongs to: `before` or this one
    /// itself. `None` if it belongs to no list.
    pub fn list(self, before: Option<Self>) -> Option<Self> {
        let (whole, _) = next_entry(&self.pointer)?;
        let begins = self.turn == Turn::More;
        let same = before.filter(|first| !begins && is_in(&whole, &first.pointer));
        same.or(Some(self))
    }
}
