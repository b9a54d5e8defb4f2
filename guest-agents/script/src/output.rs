//! Output of a program within bounds: its beginning and its end.

use std::collections::VecDeque;

/// Bytes kept of the beginning.
const HEAD: usize = 8 << 10;

/// Bytes kept of the end, where most programs say what went wrong.
const TAIL: usize = 48 << 10;

/// Beginning and end of an output.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    omitted: usize,
}

impl Tail {
    /// Adds bytes of the output.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let free = HEAD - self.head.len();
        let (head, rest) = bytes.split_at(free.min(bytes.len()));
        self.head.extend_from_slice(head);
        // Only the end of a long piece is copied.
        let skipped = rest.len().saturating_sub(TAIL);
        let excess = (self.tail.len() + rest.len() - skipped).saturating_sub(TAIL);
        self.tail.drain(..excess);
        self.tail.extend(&rest[skipped..]);
        self.omitted += skipped + excess;
    }

    /// Text of the output; says how much was left out.
    pub(crate) fn into_text(self) -> String {
        let mut bytes = self.head;
        if self.omitted > 0 {
            bytes.extend(format!("\n[{} bytes left out]\n", self.omitted).into_bytes());
        }
        bytes.extend(self.tail);
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_output_keeps_both_ends() {
        let mut tail = Tail::default();
        for part in [b"begin".as_slice(), &vec![b'.'; 10 << 20], &[b','; 100], b"end"] {
            tail.push(part);
        }
        let text = tail.into_text();
        assert!(text.starts_with("begin...") && text.ends_with(",,,end"));
        let cut = (10 << 20) + 108 - HEAD - TAIL;
        assert!(text.contains(&format!("\n[{cut} bytes left out]\n")));
        assert!(text.len() < 60 << 10, "{}", text.len());
    }
}
