//! Version of the C library that a program needs.

/// Newest version of the C library that the program's symbols require, as in `GLIBC_2.34`.
pub(super) fn newest(program: &[u8]) -> Option<(u32, u32)> {
    const MARK: &[u8] = b"GLIBC_";
    let found = program.windows(MARK.len()).enumerate().filter(|(_, window)| *window == MARK);
    let versions = found.filter_map(|(at, _)| {
        let rest = &program[at + MARK.len()..];
        let end = rest.iter().position(|byte| !byte.is_ascii_digit() && *byte != b'.')?;
        // A name in the table of symbol versions ends with a zero byte.
        let said = std::str::from_utf8(&rest[..end]).ok().filter(|_| rest[end] == 0)?;
        let mut numbers = said.split('.');
        Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
    });
    versions.max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newest_required_glibc_is_found() {
        let program = b"\0GLIBC_2.9\0GLIBC_2.34\0GLIBC_2.2.5\0GLIBC_PRIVATE\0GLIBC_9.9 in a text\0";
        assert_eq!(newest(program), Some((2, 34)));
        assert_eq!(newest(b"static"), None);
    }
}
