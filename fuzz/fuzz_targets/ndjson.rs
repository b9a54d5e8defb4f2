//! Cutting bytes into lines: `cargo fuzz run ndjson`. It does not matter in which pieces they come.
#![no_main]

use a2a_hub_protocol::binding::ndjson::{Lines, TooLong};

const MAX: usize = 16;

fn lines<'a>(chunks: impl Iterator<Item = &'a [u8]>) -> Vec<Result<Vec<u8>, TooLong>> {
    let mut lines = Lines::new(MAX);
    let mut found = Vec::new();
    for chunk in chunks {
        lines.push(chunk);
        found.extend(std::iter::from_fn(|| lines.next_line()));
    }
    found.extend(lines.take_rest().map(Ok));
    found
}

libfuzzer_sys::fuzz_target!(|input: (u8, &[u8])| {
    let (size, bytes) = input;
    let whole = lines(std::iter::once(bytes));
    assert_eq!(lines(bytes.chunks(usize::from(size).max(1))), whole);
    assert!(whole.iter().flatten().all(|line| line.len() <= MAX && !line.contains(&b'\n')));
});
