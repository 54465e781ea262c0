//! A one-line text input.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use unicode_segmentation::UnicodeSegmentation;

/// The maximum length, in bytes.
const MOST: usize = 16 * 1024;

/// The text, and the cursor's offset.
#[derive(Clone, Debug, Default)]
pub(super) struct Line {
    before: String,
    after: String,
}

impl Line {
    pub(super) fn text(&self) -> String {
        format!("{}{}", self.before, self.after)
    }

    /// The text before and after the cursor.
    pub(super) fn parts(&self) -> (&str, &str) {
        (&self.before, &self.after)
    }

    /// Inserts text; line breaks become blanks.
    pub(super) fn insert(&mut self, text: &str) {
        let text = text.trim_end_matches(['\r', '\n']);
        for c in text.chars() {
            if self.before.len() + self.after.len() < MOST {
                self.before.push(if c.is_control() { ' ' } else { c });
            }
        }
    }

    /// Handles an editing key.
    pub(super) fn key(&mut self, key: KeyEvent) {
        let last = |text: &str| text.graphemes(true).next_back().map_or(0, str::len);
        let first = |text: &str| text.graphemes(true).next().map_or(0, str::len);
        let is_held = key
            .modifiers
            .intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
        match key.code {
            KeyCode::Char('u') if is_held => self.before.clear(),
            KeyCode::Char(c) if !is_held => self.insert(c.encode_utf8(&mut [0; 4])),
            KeyCode::Backspace => self.before.truncate(self.before.len() - last(&self.before)),
            KeyCode::Delete => drop(self.after.drain(..first(&self.after))),
            KeyCode::Left => {
                let moved = self
                    .before
                    .split_off(self.before.len() - last(&self.before));
                self.after.insert_str(0, &moved);
            }
            KeyCode::Right => self.before.extend(self.after.drain(..first(&self.after))),
            KeyCode::Home => {
                let all = std::mem::take(&mut self.before);
                self.after.insert_str(0, &all);
            }
            KeyCode::End => self.before.push_str(&std::mem::take(&mut self.after)),
            _ => {}
        }
    }
}
