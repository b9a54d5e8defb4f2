//! Reader of SQLite's write-ahead log (WAL) and its index, used before SQLite opens the database.
//!
//! SQLite uses a log up to its last complete transaction and silently ignores the rest (its
//! documentation, "WAL-mode File Format"). A killed process leaves such a rest: the transaction
//! that it was writing. A log that was cut short looks the same, and only the index (`-shm`)
//! distinguishes them: it names the last committed frame, and SQLite writes it once that frame is
//! on the disk. It survives the process like any other mapped file.

use std::{
    fs::File,
    io::{self, BufReader},
    ops::Range,
    path::Path,
};

/// Size in bytes of a log's header, and of the header of each of its frames.
const HEADER: usize = 32;
const FRAME_HEADER: usize = 24;

/// Version of both formats, unchanged since SQLite 3.7.0.
const VERSION: u32 = 3_007_000;

/// Magic number of a log; its lowest bit says that the checksums use big-endian words.
const MAGIC: u32 = 0x377f_0682;

/// Positions of the two copies of the index's header; the second is written first.
const INDEX_HEADERS: [Range<usize>; 2] = [48..96, 0..48];

/// Size of the part of the index that is read.
const INDEX: usize = 136;

/// Condition of a log.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::sqlite) enum LogCondition {
    /// All committed frames are in the log, as far as can be known; or no log exists.
    Complete,
    /// The log ends in the middle of a write, and no index tells whether that write was committed.
    Torn,
    /// Committed frames are missing.
    Cut(Cut),
}

/// Remaining frames of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::sqlite) struct Cut {
    /// Number of committed frames.
    pub(in crate::sqlite) committed: u32,
    /// Number of remaining frames, up to the end of a transaction.
    pub(in crate::sqlite) remaining: u32,
    /// Number of frames that a finished checkpoint has copied to the database.
    pub(in crate::sqlite) checkpointed: u32,
    /// Number of frames that an unfinished checkpoint may have copied to the database.
    pub(in crate::sqlite) perhaps_checkpointed: u32,
}

impl Cut {
    /// True if the database is complete without the log.
    pub(in crate::sqlite) fn is_harmless(&self) -> bool {
        self.checkpointed >= self.committed
    }

    /// True if the rest of the log fits the database, which means that the database has no pages of
    /// later transactions.
    pub(in crate::sqlite) fn is_usable(&self) -> bool {
        self.perhaps_checkpointed.max(self.checkpointed) <= self.remaining
    }
}

/// Compares the log of a database that nobody has open with its index. Both may be absent.
pub(in crate::sqlite) fn inspect(log: &Path, index: &Path) -> io::Result<LogCondition> {
    let Some(file) = open(log)? else { return Ok(LogCondition::Complete) };
    let index = open(index)?.map(read_index).transpose()?.flatten();
    let frames = Frames::read(file)?;
    let Some(index) = index else {
        return Ok(if frames.ends_in_a_write {
            LogCondition::Torn
        } else {
            LogCondition::Complete
        });
    };
    // After a power failure the index may belong to an earlier log, and says nothing of this one.
    let is_same = frames.salt.is_none_or(|salt| salt == index.salt);
    if !is_same || frames.committed >= index.committed {
        return Ok(LogCondition::Complete);
    }
    Ok(LogCondition::Cut(Cut {
        committed: index.committed,
        remaining: frames.committed,
        checkpointed: index.checkpointed,
        perhaps_checkpointed: index.perhaps_checkpointed,
    }))
}

fn open(path: &Path) -> io::Result<Option<File>> {
    match File::open(path) {
        Ok(file) => Ok(Some(file)),
        Err(why) if why.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(why) => Err(why),
    }
}

/// Frames of a log that SQLite would use.
struct Frames {
    /// Salt of the log, which each of its frames repeats; none if the log has no valid header.
    salt: Option<[u8; 8]>,
    /// Last valid frame that ends a transaction, counted from 1.
    committed: u32,
    /// True if the file ends within an unfinished transaction.
    ends_in_a_write: bool,
}

impl Frames {
    fn read(file: File) -> io::Result<Self> {
        let mut file = BufReader::with_capacity(1 << 18, file);
        let mut header = [0; HEADER];
        let length = fill(&mut file, &mut header)?;
        let Some((page, mut sum)) = header_of(&header).filter(|_| length == HEADER) else {
            return Ok(Self { salt: None, committed: 0, ends_in_a_write: length > 0 });
        };
        let salt = array(&header[16..24]);
        let mut frame = vec![0; FRAME_HEADER + page];
        let (mut valid, mut committed) = (0, 0);
        let ends_in_a_write = loop {
            let length = fill(&mut file, &mut frame)?;
            if length < frame.len() {
                break length > 0 || valid > committed;
            }
            let word = |at: usize| u32::from_be_bytes(array(&frame[at..at + 4]));
            sum.add(&frame[..8]);
            sum.add(&frame[FRAME_HEADER..]);
            let is_valid = frame[8..16] == salt && word(0) > 0 && sum.is(word(16), word(20));
            if !is_valid {
                break false;
            }
            valid += 1;
            if word(4) > 0 {
                committed = valid;
            }
        };
        Ok(Self { salt: Some(salt), committed, ends_in_a_write })
    }
}

/// Page size of a log with this header, and the checksum so far; none if the header is invalid.
fn header_of(header: &[u8; HEADER]) -> Option<(usize, Checksum)> {
    let word = |at: usize| u32::from_be_bytes(array(&header[at..at + 4]));
    let page = usize::try_from(word(8)).ok()?;
    let mut sum = Checksum { is_big_endian: word(0) & 1 == 1, words: [0; 2] };
    sum.add(&header[..24]);
    let is_valid = word(0) & !1 == MAGIC
        && word(4) == VERSION
        && page.is_power_of_two()
        && (512..=65_536).contains(&page)
        && sum.is(word(24), word(28));
    is_valid.then_some((page, sum))
}

/// SQLite's checksum of a log, which continues from frame to frame.
struct Checksum {
    is_big_endian: bool,
    words: [u32; 2],
}

impl Checksum {
    fn add(&mut self, bytes: &[u8]) {
        let [mut first, mut second] = self.words;
        for pair in bytes.chunks_exact(8) {
            let words = [array(&pair[..4]), array(&pair[4..])];
            let [a, b] = words.map(match self.is_big_endian {
                true => u32::from_be_bytes,
                false => u32::from_le_bytes,
            });
            first = first.wrapping_add(a).wrapping_add(second);
            second = second.wrapping_add(b).wrapping_add(first);
        }
        self.words = [first, second];
    }

    fn is(&self, first: u32, second: u32) -> bool {
        self.words == [first, second]
    }
}

/// Part of an index that names the committed frames.
struct WalIndex {
    salt: [u8; 8],
    committed: u32,
    checkpointed: u32,
    perhaps_checkpointed: u32,
}

/// Reads an index as left by the process that had mapped it; none if it contains nothing valid.
fn read_index(mut file: File) -> io::Result<Option<WalIndex>> {
    let mut bytes = [0; INDEX];
    if fill(&mut file, &mut bytes)? < INDEX {
        return Ok(None);
    }
    let word = |at: usize| u32::from_ne_bytes(array(&bytes[at..at + 4]));
    let is_valid = |at: &Range<usize>| {
        let mut sum = Checksum { is_big_endian: cfg!(target_endian = "big"), words: [0; 2] };
        sum.add(&bytes[at.start..at.start + 40]);
        let is_initialized = bytes[at.start + 12] == 1;
        word(at.start) == VERSION
            && is_initialized
            && sum.is(word(at.start + 40), word(at.start + 44))
    };
    Ok(INDEX_HEADERS.into_iter().find(is_valid).map(|header| WalIndex {
        salt: array(&bytes[header.start + 32..header.start + 40]),
        committed: word(header.start + 16),
        checkpointed: word(96),
        perhaps_checkpointed: word(128),
    }))
}

/// Reads until the buffer is full or the file ends, and returns the number of bytes read.
fn fill(file: &mut impl io::Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut length = 0;
    while length < buffer.len() {
        match file.read(&mut buffer[length..]) {
            Ok(0) => break,
            Ok(more) => length += more,
            Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
            Err(why) => return Err(why),
        }
    }
    Ok(length)
}

/// First bytes of a slice that is long enough.
fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut array = [0; N];
    array.copy_from_slice(&bytes[..N]);
    array
}
