//! NDJSON: one JSON text a line. Here are the lines, cut out of bytes as these come.

/// Cuts a stream of bytes into lines. A line that is too long is left out, and what follows is read again.
#[derive(Debug)]
pub struct Lines {
    max: usize,
    bytes: Vec<u8>,
    /// How much of `bytes` was looked through for the end of a line.
    seen: usize,
    /// Within the rest of a line that was too long.
    skips: bool,
}

/// A line was longer than it may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the line is longer than {max} bytes; it was left out")]
pub struct TooLong {
    /// The limit: how many bytes a line may have.
    pub max: usize,
}

impl Lines {
    /// Lines of at most `max` bytes each, without their ends.
    pub fn new(max: usize) -> Self {
        Self { max, bytes: Vec::new(), seen: 0, skips: false }
    }

    /// Takes in the bytes that came next.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The next line that is whole; none until more comes in.
    pub fn next_line(&mut self) -> Option<Result<Vec<u8>, TooLong>> {
        loop {
            let end = self.bytes[self.seen..].iter().position(|byte| *byte == b'\n');
            let Some(end) = end.map(|at| self.seen + at) else {
                return self.wait();
            };
            let rest = self.bytes.split_off(end + 1);
            let mut line = std::mem::replace(&mut self.bytes, rest);
            self.seen = 0;
            line.pop();
            if line.last() == Some(&b'\r') {
                line.pop();
            }
            if std::mem::take(&mut self.skips) {
                continue;
            }
            let fits = line.len() <= self.max;
            return Some(if fits { Ok(line) } else { Err(TooLong { max: self.max }) });
        }
    }

    /// Whether a line has begun that is not whole yet. True only once [`Lines::next_line`] has none left.
    pub fn is_within(&self) -> bool {
        self.skips || !self.bytes.is_empty()
    }

    /// No line ends in what there is: keeps it, or lets go of it if it is too long already.
    fn wait(&mut self) -> Option<Result<Vec<u8>, TooLong>> {
        self.seen = self.bytes.len();
        // One more than the line may have, for a `\r` that belongs to its end.
        if !self.skips && self.bytes.len() <= self.max + 1 {
            return None;
        }
        self.bytes = Vec::new();
        self.seen = 0;
        let told = std::mem::replace(&mut self.skips, true);
        (!told).then_some(Err(TooLong { max: self.max }))
    }

    /// What is left when the stream is over: a last line without an end.
    pub fn take_rest(&mut self) -> Option<Vec<u8>> {
        let rest = std::mem::take(&mut self.bytes);
        self.seen = 0;
        (!self.skips && !rest.is_empty() && rest.len() <= self.max).then_some(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all(max: usize, chunks: &[&[u8]]) -> Vec<Result<Vec<u8>, TooLong>> {
        let mut lines = Lines::new(max);
        let mut found = Vec::new();
        for chunk in chunks {
            lines.push(chunk);
            found.extend(std::iter::from_fn(|| lines.next_line()));
        }
        found.extend(lines.take_rest().map(Ok));
        found
    }

    #[test]
    fn a_line_that_is_too_long_is_left_out() {
        let long = Err(TooLong { max: 3 });
        let ok = |line: &str| Ok(line.as_bytes().to_owned());
        assert_eq!(all(3, &[b"abc\nabcd\r\nabc\r\n"]), [ok("abc"), long.clone(), ok("abc")]);
        assert_eq!(all(3, &[b"abcde", b"fgh", b"i\nab", b"c\n"]), [long, ok("abc")]);
        assert_eq!(all(3, &[b"\n", b"ab"]), [ok(""), ok("ab")]);
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let mut lines = Lines::new(10);
        for _ in 0..1_000 {
            lines.push(b"no end in sight");
            while lines.next_line().is_some() {}
            assert!(lines.bytes.len() <= 11);
        }
    }

    proptest! {
        #[test]
        fn chunks_do_not_matter(
            bytes in proptest::collection::vec(prop_oneof![Just(b'\n'), Just(b'\r'), any::<u8>()], 0..200),
            cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..20),
        ) {
            let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let chunks: Vec<_> = cuts.windows(2).map(|ends| &bytes[ends[0]..ends[1]]).collect();
            prop_assert_eq!(all(8, &chunks), all(8, &[&bytes]));
        }

        #[test]
        fn writing_then_reading_is_the_identity(
            lines in proptest::collection::vec("[^\r\n]{0,20}", 0..10),
        ) {
            let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
            let read: Vec<_> = all(100, &[text.as_bytes()]).into_iter().map(Result::unwrap).collect();
            let wrote: Vec<_> = lines.iter().map(|line| line.as_bytes().to_owned()).collect();
            prop_assert_eq!(read, wrote);
        }
    }
}
