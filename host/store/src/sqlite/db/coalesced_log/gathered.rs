//! Buffer of a write-ahead log: consecutive frames, until one of them ends a transaction.

use rusqlite::ffi::{SQLITE_IOERR_WRITE, SQLITE_OK};
use std::{ffi::c_int, ops::Range};

/// Size of a frame's header, which precedes its page (SQLite's documentation, "WAL-mode File
/// Format", section 2.2). Nothing else in a log is as short.
const FRAME_HEADER: usize = 24;

/// Bytes of the header that are not all 0 in the last frame of a transaction: the size of the
/// database in pages after the commit.
const PAGES_AFTER_COMMIT: Range<usize> = 4..8;

/// Limit of the buffer in bytes: SQLite's own VFS writes no more at once (`seekAndWriteFd` in its
/// source), since no page is as large.
const MOST: usize = (128 << 10) - 1;

/// Frames that SQLite has written and the file does not have yet. The callback that writes to the
/// file gets bytes and their offset, and returns a result code of SQLite.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    /// Offset of the buffer in the file.
    offset: i64,
    bytes: Vec<u8>,
    /// Kind of the frame whose page comes next; none between two frames.
    frame: Option<Frame>,
    /// Offset of a write that the file refused. SQLite has received the error, and writes again
    /// from this offset or before.
    lacks: Option<i64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Frame {
    OfMany,
    LastOfTransaction,
}

impl Gathered {
    /// Accepts a write of SQLite.
    pub(super) fn write(
        &mut self,
        piece: &[u8],
        offset: i64,
        to_file: impl Fn(&[u8], i64) -> c_int,
    ) -> c_int {
        if self.lacks.is_some_and(|from| offset > from) {
            return SQLITE_IOERR_WRITE;
        }
        self.lacks = None;
        if offset != self.end() || self.bytes.len() + piece.len() > MOST {
            let flushed = self.flush(&to_file);
            if flushed != SQLITE_OK {
                return flushed;
            }
        }
        if piece.len() == FRAME_HEADER {
            let is_last = piece[PAGES_AFTER_COMMIT].iter().any(|byte| *byte != 0);
            self.gather(piece, offset);
            self.frame = Some(if is_last { Frame::LastOfTransaction } else { Frame::OfMany });
            return SQLITE_OK;
        }
        match self.frame.take() {
            Some(Frame::OfMany) => {
                self.gather(piece, offset);
                SQLITE_OK
            }
            Some(Frame::LastOfTransaction) => {
                self.gather(piece, offset);
                self.flush(to_file)
            }
            None => match self.flush(&to_file) {
                SQLITE_OK => to_file(piece, offset),
                failed => failed,
            },
        }
    }

    fn gather(&mut self, piece: &[u8], offset: i64) {
        if self.bytes.is_empty() {
            self.offset = offset;
        }
        self.bytes.extend_from_slice(piece);
    }

    /// Writes the buffer to the file.
    pub(super) fn flush(&mut self, to_file: impl Fn(&[u8], i64) -> c_int) -> c_int {
        if self.bytes.is_empty() {
            return SQLITE_OK;
        }
        let written = to_file(&self.bytes, self.offset);
        if written != SQLITE_OK {
            self.lacks = Some(self.offset);
        }
        self.bytes.clear();
        self.frame = None;
        written
    }

    /// Offset behind the buffer.
    fn end(&self) -> i64 {
        self.offset.saturating_add(i64::try_from(self.bytes.len()).unwrap_or(i64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rusqlite::ffi::SQLITE_FULL;
    use std::cell::{Cell, RefCell};

    const PAGE: usize = 512;

    /// File that accepts every write, unless it is full.
    #[derive(Default)]
    struct Disk {
        bytes: RefCell<Vec<u8>>,
        pieces: Cell<usize>,
        longest: Cell<usize>,
        is_full: Cell<bool>,
    }

    impl Disk {
        fn write(&self, piece: &[u8], offset: i64) -> c_int {
            if self.is_full.get() {
                return SQLITE_FULL;
            }
            let (mut bytes, offset) = (self.bytes.borrow_mut(), usize::try_from(offset).unwrap());
            let end = offset + piece.len();
            let longer = bytes.len().max(end);
            bytes.resize(longer, 0);
            bytes[offset..end].copy_from_slice(piece);
            assert!(piece.len() <= MOST);
            self.longest.set(self.longest.get().max(piece.len()));
            self.pieces.set(self.pieces.get() + 1);
            SQLITE_OK
        }
    }

    /// The two writes of a frame by SQLite.
    fn frame(number: u8, is_last: bool) -> [Vec<u8>; 2] {
        let mut header = vec![number; FRAME_HEADER];
        header[PAGES_AFTER_COMMIT].fill(u8::from(is_last));
        [header, vec![number; PAGE]]
    }

    /// Writes frames from that offset on, and returns the result code of each write.
    fn write(to: (&mut Gathered, &Disk), offset: &mut i64, frames: &[(u8, bool)]) -> Vec<c_int> {
        let (gathered, disk) = to;
        let pieces = frames.iter().flat_map(|(number, is_last)| frame(*number, *is_last));
        pieces
            .map(|piece| {
                let told = gathered.write(&piece, *offset, |bytes, at| disk.write(bytes, at));
                *offset += i64::try_from(piece.len()).unwrap();
                told
            })
            .collect()
    }

    fn all_of(frames: &[(u8, bool)]) -> Vec<u8> {
        frames.iter().flat_map(|(number, is_last)| frame(*number, *is_last).concat()).collect()
    }

    #[test]
    fn last_frame_flushes_transaction() {
        let (mut gathered, disk, mut offset) = (Gathered::default(), Disk::default(), 0);
        let frames = [(1, false), (2, false), (3, true)];
        assert_eq!(write((&mut gathered, &disk), &mut offset, &frames[..2]), [SQLITE_OK; 4]);
        assert_eq!(disk.pieces.get(), 0);
        write((&mut gathered, &disk), &mut offset, &frames[2..]);
        assert_eq!((disk.pieces.get(), &*disk.bytes.borrow()), (1, &all_of(&frames)));
        write((&mut gathered, &disk), &mut offset, &[(4, true)]);
        assert_eq!(disk.pieces.get(), 2);
    }

    #[test]
    fn noncontiguous_write_flushes_buffer_first() {
        let (mut gathered, disk, mut offset) = (Gathered::default(), Disk::default(), 0);
        let to_file = |bytes: &[u8], at: i64| disk.write(bytes, at);
        // Header of a log that restarts.
        assert_eq!(gathered.write(&[9; 32], 0, to_file), SQLITE_OK);
        assert_eq!(disk.pieces.get(), 1, "what is no frame is written at once");
        offset += 32;
        write((&mut gathered, &disk), &mut offset, &[(1, false), (2, false)]);
        // A page of the same transaction is overwritten in place.
        let first = 32 + i64::try_from(FRAME_HEADER).unwrap();
        assert_eq!(gathered.write(&[7; PAGE], first, to_file), SQLITE_OK);
        let written = disk.bytes.borrow().clone();
        assert_eq!(written.len(), usize::try_from(offset).unwrap());
        assert_eq!(written[usize::try_from(first).unwrap()], 7);
        // A header is overwritten too, while its page stays.
        assert_eq!(gathered.write(&[5; FRAME_HEADER], 32, to_file), SQLITE_OK);
        assert_eq!(gathered.flush(to_file), SQLITE_OK);
        assert_eq!(disk.bytes.borrow()[32..57], [[5; FRAME_HEADER].as_slice(), &[7]].concat());
    }

    #[test]
    fn full_buffer_is_flushed_mid_transaction() {
        let (mut gathered, disk, mut offset) = (Gathered::default(), Disk::default(), 0);
        let frames = vec![(1, false); 3 * MOST / PAGE];
        write((&mut gathered, &disk), &mut offset, &frames);
        assert_eq!(disk.longest.get() / PAGE, MOST / PAGE);
        assert!((3..=8).contains(&disk.pieces.get()), "{}", disk.pieces.get());
        assert_eq!(gathered.flush(|bytes, at| disk.write(bytes, at)), SQLITE_OK);
        assert_eq!(*disk.bytes.borrow(), all_of(&frames));
    }

    #[test]
    fn failed_flush_refuses_writes_until_rewritten() {
        let (mut gathered, disk, mut offset) = (Gathered::default(), Disk::default(), 0);
        write((&mut gathered, &disk), &mut offset, &[(1, true)]);
        let begins = offset;
        write((&mut gathered, &disk), &mut offset, &[(2, false)]);
        disk.is_full.set(true);
        assert_eq!(gathered.flush(|bytes, at| disk.write(bytes, at)), SQLITE_FULL);
        disk.is_full.set(false);
        let told = write((&mut gathered, &disk), &mut offset, &[(3, true)]);
        assert_eq!(told, [SQLITE_IOERR_WRITE; 2], "its first frame is missing");
        assert_eq!(gathered.flush(|bytes, at| disk.write(bytes, at)), SQLITE_OK);
        offset = begins;
        let again = [(4, false), (5, true)];
        assert_eq!(write((&mut gathered, &disk), &mut offset, &again), [SQLITE_OK; 4]);
        assert_eq!(*disk.bytes.borrow(), all_of(&[(1, true), (4, false), (5, true)]));
    }

    #[test]
    fn last_frame_reports_full_disk() {
        let (mut gathered, disk, mut offset) = (Gathered::default(), Disk::default(), 0);
        disk.is_full.set(true);
        let told = write((&mut gathered, &disk), &mut offset, &[(1, false), (2, true)]);
        assert_eq!(told, [SQLITE_OK, SQLITE_OK, SQLITE_OK, SQLITE_FULL]);
        disk.is_full.set(false);
        offset = 0;
        let again = write((&mut gathered, &disk), &mut offset, &[(1, false), (2, true)]);
        assert_eq!(again, [SQLITE_OK; 4]);
    }
}
