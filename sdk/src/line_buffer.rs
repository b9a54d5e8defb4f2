//! Splits bytes that arrive in pieces into lines.

use std::collections::VecDeque;

/// Maximum length of a line. Agent CLIs put whole files into one JSON line; a program that exceeds
/// even this is considered broken.
pub(crate) const MAX_LINE: usize = 16 * 1024 * 1024;

/// Error: a line is longer than [`MAX_LINE`].
#[derive(Debug)]
pub(crate) struct LineTooLong;

/// Complete lines, and the beginning of the next.
#[derive(Debug, Default)]
pub(crate) struct LineBuffer {
    lines: VecDeque<String>,
    partial: Vec<u8>,
    /// True after the first line, which may begin with a byte order mark.
    has_begun: bool,
    /// True after a CR, if the lines are those of a stream of events.
    event_ends: Option<bool>,
}

/// Replaces each line ending of server-sent events, which is CRLF, LF or CR, by LF (WHATWG HTML,
/// section 9.2.6). `is_after_return` is true after a CR: an LF that follows belongs to it.
fn unify(is_after_return: &mut bool, bytes: &[u8]) -> Vec<u8> {
    let mut unified = Vec::with_capacity(bytes.len());
    for &byte in bytes {
        let is_after_return = std::mem::replace(is_after_return, byte == b'\r');
        match byte {
            b'\n' if is_after_return => {}
            b'\r' => unified.push(b'\n'),
            other => unified.push(other),
        }
    }
    unified
}

impl LineBuffer {
    /// Adds a piece. The newline byte is part of no other UTF-8 character, so a character that is
    /// split between pieces stays intact.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<(), LineTooLong> {
        match &mut self.event_ends {
            Some(is_after_return) => {
                let unified = unify(is_after_return, bytes);
                self.split(&unified)
            }
            None => self.split(bytes),
        }
    }

    /// Follows the line rules of server-sent events from now on.
    pub(crate) fn follow_events(&mut self) -> Result<(), LineTooLong> {
        if self.event_ends.is_some() {
            return Ok(());
        }
        self.event_ends = Some(false);
        let partial = std::mem::take(&mut self.partial);
        self.push(&partial)
    }

    fn split(&mut self, bytes: &[u8]) -> Result<(), LineTooLong> {
        for piece in bytes.split_inclusive(|&byte| byte == b'\n') {
            self.partial.extend(piece);
            if self.partial.len() > MAX_LINE {
                return Err(LineTooLong);
            }
            if piece.ends_with(b"\n") {
                self.end_line();
            }
        }
        Ok(())
    }

    /// Ends the input: the incomplete last line becomes a line.
    pub(crate) fn end(&mut self) {
        if !self.partial.is_empty() {
            self.end_line();
        }
    }

    /// Removes the next complete line.
    pub(crate) fn pop(&mut self) -> Option<String> {
        self.lines.pop_front()
    }

    /// True if no complete line is buffered.
    pub(crate) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// True if an incomplete line is buffered.
    pub(crate) fn is_amid(&self) -> bool {
        !self.partial.is_empty()
    }

    /// Discards the complete lines.
    pub(crate) fn clear(&mut self) {
        self.lines.clear();
    }

    fn end_line(&mut self) {
        let line = String::from_utf8_lossy(&self.partial);
        let line = line.strip_suffix('\n').unwrap_or(&line);
        let mark = if std::mem::replace(&mut self.has_begun, true) { "" } else { "\u{feff}" };
        let line = line.strip_prefix(mark).unwrap_or(line);
        self.lines.push_back(line.strip_suffix('\r').unwrap_or(line).to_owned());
        self.partial.clear();
    }
}
