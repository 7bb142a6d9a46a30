//! Text for a terminal. A workload's text, names of files and messages of tools can contain characters that a terminal
//! obeys: they could move the cursor, change what is on the screen, or make a line look like another one.

use std::borrow::Cow;
use std::fmt::Write;

/// Return whether a terminal obeys the character: control characters except tab and newline, and those that change the
/// direction of the text.
fn is_obeyed(c: char) -> bool {
    (c.is_control() && !matches!(c, '\t' | '\n'))
        || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Return the text with these characters as `\u{1b}`.
pub fn text(said: &str) -> Cow<'_, str> {
    replaced(said, |c| c.escape_unicode().to_string())
}

/// Return what is wrong with a command line, as such text; `None` if it asks for help or the version.
pub fn refusal(error: &clap::Error) -> Option<String> {
    error.use_stderr().then(|| text(&error.render().to_string()).into_owned())
}

/// Return an equal JSON document with these characters as `\u001b`: all of them are in strings.
pub fn json(document: &str) -> Cow<'_, str> {
    replaced(document, |c| format!("\\u{:04x}", u32::from(c)))
}

fn replaced(said: &str, escape: impl Fn(char) -> String) -> Cow<'_, str> {
    if !said.chars().any(is_obeyed) {
        return said.into();
    }
    let mut found = String::with_capacity(said.len() + 8);
    for c in said.chars() {
        let _ = if is_obeyed(c) { found.write_str(&escape(c)) } else { found.write_char(c) };
    }
    found.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_gets_no_control_characters() {
        let said = "a\u{1b}]0;x\u{7}\tb\nc\r\u{9b}2J\u{7f}\u{202e}é";
        assert_eq!(text(said), "a\\u{1b}]0;x\\u{7}\tb\nc\\u{d}\\u{9b}2J\\u{7f}\\u{202e}é");
        assert_eq!(json("\"\u{9b}\u{2066}\"\n"), "\"\\u009b\\u2066\"\n");
        assert_eq!(text("plain é"), "plain é");
    }
}
