//! Bytes that come in pieces, taken apart into lines.

use std::collections::VecDeque;

/// Agent CLIs put whole files into one JSON line; beyond this, whoever writes it is taken to be broken.
pub(crate) const MAX_LINE: usize = 16 * 1024 * 1024;

/// A line is longer than [`MAX_LINE`].
#[derive(Debug)]
pub(crate) struct LineTooLong;

/// Lines that are whole, and the beginning of the next.
#[derive(Debug, Default)]
pub(crate) struct LineBuffer {
    lines: VecDeque<String>,
    partial: Vec<u8>,
}

impl LineBuffer {
    /// Takes a piece in. Lines end at a byte that is part of no other UTF-8 character, so a character split between pieces is whole
    /// again.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<(), LineTooLong> {
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

    /// Nothing more comes: what was begun is a line as well.
    pub(crate) fn end(&mut self) {
        if !self.partial.is_empty() {
            self.end_line();
        }
    }

    /// The next whole line.
    pub(crate) fn pop(&mut self) -> Option<String> {
        self.lines.pop_front()
    }

    /// Whether no line is whole.
    pub(crate) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Whether a line has begun and is not whole.
    pub(crate) fn is_amid(&self) -> bool {
        !self.partial.is_empty()
    }

    /// Forgets the lines that are whole.
    pub(crate) fn clear(&mut self) {
        self.lines.clear();
    }

    fn end_line(&mut self) {
        let line = String::from_utf8_lossy(&self.partial);
        let line = line.strip_suffix('\n').unwrap_or(&line);
        self.lines.push_back(line.strip_suffix('\r').unwrap_or(line).to_owned());
        self.partial.clear();
    }
}
