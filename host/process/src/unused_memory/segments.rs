//! Memory segments of this program's file, from its ELF program headers (64 bits), whose address
//! the system provides.

use object::{
    NativeEndian,
    elf::{FileHeader64, PF_W, PT_LOAD, PT_PHDR},
    read::elf::{FileHeader as _, ProgramHeader as _},
};
use std::{
    fs::{self, File},
    io::Read as _,
};

/// Key of the program headers' address in the auxiliary vector (`getauxval(3)`).
const AT_PHDR: u64 = 3;

/// Bytes read of a file for its program headers; a program has a dozen.
const MOST: u64 = 16 << 10;

/// Page size, in bytes. A machine with larger pages aligns the segments of its programs to those.
const PAGE: usize = 4096;

/// Addresses and lengths in bytes of the read-only mappings of this program's file; none if the
/// system does not report them.
pub(super) fn of_this_program() -> Option<Vec<(usize, usize)>> {
    let told = fs::read("/proc/self/auxv").ok()?;
    let mut file = Vec::new();
    File::open("/proc/self/exe").ok()?.take(MOST).read_to_end(&mut file).ok()?;
    read_only(table_at(&told)?, &file)
}

/// Address of the program headers in the auxiliary vector, which has pairs of a key and a value.
fn table_at(told: &[u8]) -> Option<usize> {
    let (words, _) = told.as_chunks::<8>();
    let (pairs, _) = words.as_chunks::<2>();
    let [_, at] = pairs.iter().find(|[key, _]| u64::from_ne_bytes(*key) == AT_PHDR)?;
    usize::try_from(u64::from_ne_bytes(*at)).ok()
}

/// Read-only segments of a file with this start, whose program headers are loaded at that address.
fn read_only(table_at: usize, file: &[u8]) -> Option<Vec<(usize, usize)>> {
    let header = FileHeader64::<NativeEndian>::parse(file).ok()?;
    let endian = header.endian().ok()?;
    let rows = header.program_headers(endian, file).ok()?;
    let table = rows.iter().find(|row| row.p_type(endian) == PT_PHDR)?;
    let base = table_at.checked_sub(usize::try_from(table.p_vaddr(endian)).ok()?)?;
    let mut found = Vec::new();
    for row in rows.iter().filter(|row| row.p_type(endian) == PT_LOAD) {
        if row.p_flags(endian) & PF_W == 0 {
            let from = base.checked_add(usize::try_from(row.p_vaddr(endian)).ok()?)?;
            let to = from.checked_add(usize::try_from(row.p_memsz(endian)).ok()?)?;
            // Whole pages only: the page in which a segment ends can also be the start of the next
            // one, which may be writable.
            let (from, to) = (from.next_multiple_of(PAGE), to / PAGE * PAGE);
            found
                .extend(to.checked_sub(from).filter(|bytes| *bytes > 0).map(|bytes| (from, bytes)));
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sizes in bytes of the file's header, and of a program header.
    const HEADER: usize = 64;
    const ROW: usize = 56;

    /// A program header: type, flags, address and length in memory.
    fn row(kind: u32, flags: u32, address: u64, bytes: u64) -> Vec<u8> {
        let (kind, flags) = (kind.to_ne_bytes(), flags.to_ne_bytes());
        let words = [0, address, address, bytes, bytes, 4096].map(u64::to_ne_bytes);
        [&kind[..], &flags, &words.concat()].concat()
    }

    fn file(rows: &[Vec<u8>]) -> Vec<u8> {
        let number = |of: usize| u16::try_from(of).unwrap().to_ne_bytes();
        let mut header = vec![0; HEADER];
        let ours = if cfg!(target_endian = "little") { 1 } else { 2 };
        header[..7].copy_from_slice(&[0x7f, b'E', b'L', b'F', 2, ours, 1]);
        header[32..40].copy_from_slice(&(HEADER as u64).to_ne_bytes());
        header[54..56].copy_from_slice(&number(ROW));
        header[56..58].copy_from_slice(&number(rows.len()));
        [header, rows.concat()].concat()
    }

    #[test]
    fn only_whole_read_only_pages_count() {
        let rows = [
            row(PT_PHDR, 4, 0x40, 0x200),
            row(PT_LOAD, 4, 0, 0x3123),
            row(PT_LOAD, 5, 0x4123, 0x2000),
            row(PT_LOAD, 6, 0x8000, 0x4000),
            row(PT_LOAD, 4, 0xd010, 0x100),
            row(4, 4, 0x300, 0x5000),
        ];
        let program = file(&rows);
        let found = read_only(0x70_0040, &program).unwrap();
        assert_eq!(found, [(0x70_0000, 0x3000), (0x70_5000, 0x1000)]);
        for cut in [0, 10, HEADER, HEADER + ROW, program.len() - 1] {
            assert_eq!(read_only(0x70_0040, &program[..cut]), None, "cut off at {cut}");
        }
        assert_eq!(read_only(0x10, &program), None, "the table cannot be there");
        assert_eq!(read_only(0x70_0040, &file(&rows[1..])), None, "nothing says where it is");
        assert_eq!(read_only(0x70_0040, &[b"#!/bin/sh\n", &[0; 200][..]].concat()), None);
    }

    #[test]
    fn segments_match_proc_maps() {
        let found = of_this_program().unwrap();
        let maps = fs::read_to_string("/proc/self/maps").unwrap();
        let here = of_this_program as fn() -> _ as usize;
        assert!(found.iter().any(|(at, bytes)| (*at..at + bytes).contains(&here)), "{found:x?}");
        for (at, _) in found {
            let is_in = |line: &&str| {
                let (from, rest) = line.split_once('-').unwrap();
                let (to, _) = rest.split_once(' ').unwrap();
                let hex = |text| usize::from_str_radix(text, 16).unwrap();
                (hex(from)..hex(to)).contains(&at)
            };
            let line = maps.lines().find(is_in).unwrap();
            assert!(line.contains(" r-xp ") || line.contains(" r--p "), "{line}");
        }
    }
}
