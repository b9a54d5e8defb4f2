//! Listings of files with their modes and ids, and the index of git that holds one
//! (gitformat-index(5), version 2).
//!
//! The hub writes an index for the agent's git, and reads the one that it keeps for itself: its
//! metadata of files tells which ones were changed since. It reads no index of anybody else.

use crate::reader::OpenDirectory;
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, SHA256, digest};
use rustix::fs::Stat;
use std::{
    collections::BTreeMap,
    fs, io,
    path::Path,
    time::{Duration, SystemTime},
};

/// Modes of files, as git has them.
pub(crate) const FILE: u32 = 0o100_644;
pub(crate) const EXECUTABLE: u32 = 0o100_755;
pub(crate) const LINK: u32 = 0o120_000;
pub(crate) const SUBMODULE: u32 = 0o160_000;

/// Largest index that is read, in bytes.
const INDEX_LIMIT: u64 = 1 << 30;

/// A file that was changed so shortly before it was looked at may change again without another
/// time: the clock of a file system ticks in milliseconds ("racy git").
const TICK: Duration = Duration::from_millis(50);

/// Mode and id of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ListedFile {
    pub(crate) mode: u32,
    pub(crate) id: String,
}

/// Files by their paths, which git separates by slashes.
pub(crate) type Listing = BTreeMap<Vec<u8>, ListedFile>;

/// Metadata of a file, as an index has it; all zero if it is unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FileStat {
    ctime: (u32, u32),
    mtime: (u32, u32),
    dev: u32,
    ino: u32,
    uid: u32,
    gid: u32,
    size: u32,
}

impl FileStat {
    /// Metadata for an index; times and numbers are cut to 32 bits, as git does.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the format of an index"
    )]
    pub(crate) fn from_stat(stat: &Stat) -> Self {
        Self {
            ctime: (stat.st_ctime as u32, stat.st_ctime_nsec as u32),
            mtime: (stat.st_mtime as u32, stat.st_mtime_nsec as u32),
            dev: stat.st_dev as u32,
            ino: stat.st_ino as u32,
            uid: stat.st_uid,
            gid: stat.st_gid,
            size: stat.st_size as u32,
        }
    }

    /// The same, or unknown if the file was changed just before `now`.
    pub(crate) fn unless_changed_just_now(self, now: SystemTime) -> Self {
        if self.is_older_than(now, TICK) { self } else { Self::default() }
    }

    fn is_older_than(&self, time: SystemTime, by: Duration) -> bool {
        let changed = Duration::new(self.ctime.0.into(), self.ctime.1);
        let time = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        changed.saturating_add(by) <= time
    }

    const fn is_known(&self) -> bool {
        self.ctime.0 != 0
    }
}

/// A listing with the metadata of its files.
#[derive(Clone, Debug, Default)]
pub(crate) struct GitIndex {
    pub(crate) files: BTreeMap<Vec<u8>, (ListedFile, FileStat)>,
    /// Time at which it was written, by the clock of the file system.
    written: Option<SystemTime>,
}

impl GitIndex {
    pub(crate) fn new(files: BTreeMap<Vec<u8>, (ListedFile, FileStat)>) -> Self {
        Self { files, written: None }
    }

    /// Reads an index that the hub wrote; none if it is missing, or not one.
    pub(crate) fn read(directory: &Path, name: &str) -> Option<Self> {
        let bytes = OpenDirectory::open(directory).ok()?.bytes(name, INDEX_LIMIT).ok()??;
        let written = fs::metadata(directory.join(name)).ok()?.modified().ok();
        Some(Self { files: parse(&bytes)?, written })
    }

    /// True if the file has the content that the index says, by its metadata.
    pub(crate) fn is_unchanged(&self, of: &(ListedFile, FileStat), now: &Stat) -> bool {
        let is_before = |written| of.1.is_older_than(written, Duration::from_nanos(1));
        of.1.is_known()
            && self.written.is_some_and(is_before)
            && of.1 == FileStat::from_stat(now)
            && of.0.mode == mode_of(now.st_mode)
    }

    /// The index as a file.
    pub(crate) fn to_bytes(&self, is_sha256: bool) -> Vec<u8> {
        let mut bytes = b"DIRC\0\0\0\x02".to_vec();
        let count = u32::try_from(self.files.len()).unwrap_or(u32::MAX);
        bytes.extend(count.to_be_bytes());
        for (path, (file, stat)) in &self.files {
            let begin = bytes.len();
            let FileStat { ctime, mtime, dev, ino, uid, gid, size } = *stat;
            for number in [ctime.0, ctime.1, mtime.0, mtime.1, dev, ino, file.mode, uid, gid, size]
            {
                bytes.extend(number.to_be_bytes());
            }
            bytes.extend(hex::decode(&file.id).unwrap_or_default());
            let length = u16::try_from(path.len()).unwrap_or(u16::MAX).min(0x0fff);
            bytes.extend(length.to_be_bytes());
            bytes.extend(path);
            // One to eight NUL, up to a multiple of eight.
            let padding = 8 - (bytes.len() - begin) % 8;
            bytes.resize(bytes.len() + padding, 0);
        }
        let algorithm = if is_sha256 { &SHA256 } else { &SHA1_FOR_LEGACY_USE_ONLY };
        let sum = digest(algorithm, &bytes);
        bytes.extend(sum.as_ref());
        bytes
    }
}

/// Mode of git for the mode of a file: only the owner's right to execute counts.
pub(crate) const fn mode_of(mode: u32) -> u32 {
    match mode & 0o170_000 {
        LINK => LINK,
        _ if mode & 0o100 != 0 => EXECUTABLE,
        _ => FILE,
    }
}

fn parse(bytes: &[u8]) -> Option<BTreeMap<Vec<u8>, (ListedFile, FileStat)>> {
    let mut input = bytes.strip_prefix(b"DIRC\0\0\0\x02")?;
    let count = number(&mut input)?;
    // The sum at the end is as long as an id, which an index of the other length lacks.
    let begin = input;
    [32, 20].into_iter().find_map(|length| parse_files(begin, count, length))
}

fn parse_files(
    mut input: &[u8],
    count: u32,
    length: usize,
) -> Option<BTreeMap<Vec<u8>, (ListedFile, FileStat)>> {
    let mut files = BTreeMap::new();
    for _ in 0..count {
        let before = input.len();
        let mut numbers = [0; 10];
        for slot in &mut numbers {
            *slot = number(&mut input)?;
        }
        let [c0, c1, m0, m1, dev, ino, mode, uid, gid, size] = numbers;
        let id = hex::encode(take_bytes(&mut input, length)?);
        let flags = take_bytes(&mut input, 2)?;
        let end = input.iter().position(|byte| *byte == 0)?;
        if flags[1] != u8::try_from(end.min(0x0fff) & 0xff).ok()? {
            return None;
        }
        let path = take_bytes(&mut input, end)?.to_vec();
        let used = before - input.len();
        take_bytes(&mut input, 8 - used % 8)?;
        let stat = FileStat { ctime: (c0, c1), mtime: (m0, m1), dev, ino, uid, gid, size };
        files.insert(path, (ListedFile { mode, id }, stat));
    }
    (input.len() == length).then_some(files)
}

fn take_bytes<'b>(input: &mut &'b [u8], count: usize) -> Option<&'b [u8]> {
    let (first, rest) = input.split_at_checked(count)?;
    *input = rest;
    Some(first)
}

fn number(input: &mut &[u8]) -> Option<u32> {
    Some(u32::from_be_bytes(take_bytes(input, 4)?.try_into().ok()?))
}

/// Listing of `git ls-tree -r -z`: `MODE TYPE ID`, a tab and the path.
pub(crate) fn of_ls_tree(bytes: &[u8]) -> io::Result<Listing> {
    let wrong = || io::Error::other("git lists a tree in another form");
    let lines = bytes.split(|byte| *byte == 0).filter(|line| !line.is_empty());
    let files = lines.map(|line| {
        let tab = line.iter().position(|byte| *byte == b'\t').ok_or_else(wrong)?;
        let facts = std::str::from_utf8(&line[..tab]).map_err(|_| wrong())?;
        let mut words = facts.split(' ');
        let mode = words.next().and_then(|it| u32::from_str_radix(it, 8).ok()).ok_or_else(wrong)?;
        let id = words.nth(1).ok_or_else(wrong)?.to_owned();
        // Trees of old programs have other modes of files.
        let mode = if mode & 0o170_000 == 0o100_000 { mode_of(mode) } else { mode };
        Ok((line[tab + 1..].to_vec(), ListedFile { mode, id }))
    });
    files.collect()
}

/// The time by the clock that file systems use.
#[expect(clippy::disallowed_methods, reason = "it is compared with the times of files on the disk")]
pub(crate) fn now() -> SystemTime {
    SystemTime::now()
}

/// Writes a file whole or not at all, also if the machine loses power.
pub(crate) fn write_atomic(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut new = path.as_os_str().to_owned();
    new.push(".new");
    let file = fs::File::create(&new)?;
    io::Write::write_all(&mut &file, bytes)?;
    file.sync_data()?;
    fs::rename(new, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn index_round_trips_in_both_formats() {
        for (length, is_sha256) in [(40, false), (64, true)] {
            let file = |mode| ListedFile { mode, id: "a1".repeat(length / 2) };
            let stat = FileStat { ctime: (7, 8), size: 3, ..FileStat::default() };
            let paths = ["a", "ab", "abcdefg", "src/ä b", &"x/".repeat(3_000)];
            let files = paths.iter().map(|path| (path.as_bytes().to_vec(), (file(FILE), stat)));
            let index = GitIndex::new(files.collect());
            let bytes = index.to_bytes(is_sha256);
            assert_eq!(parse(&bytes), Some(index.files), "{length}");
            assert_eq!(parse(&bytes[..bytes.len() - 1]), None);
        }
        assert_eq!(parse(&GitIndex::default().to_bytes(false)), Some(BTreeMap::new()));
        assert_eq!(parse(b"DIRC\0\0\0\x02\0\0\0\x01"), None);
    }

    #[test]
    fn just_changed_file_counts_as_unknown() {
        let at = |ms| SystemTime::UNIX_EPOCH + Duration::from_millis(ms);
        let stat = FileStat { ctime: (1, 0), ..FileStat::default() };
        assert!(!stat.unless_changed_just_now(at(1_020)).is_known());
        assert!(stat.unless_changed_just_now(at(1_060)).is_known());
    }

    #[test]
    fn ls_tree_is_read_with_any_name() {
        let id = "1".repeat(40);
        let text =
            format!("100644 blob {id}\ta b\t\"c\n\0100664 blob {id}\td\0160000 commit {id}\ts\0");
        let listing = of_ls_tree(text.as_bytes()).unwrap();
        let modes: Vec<_> = listing.iter().map(|(path, it)| (path.as_slice(), it.mode)).collect();
        assert_eq!(modes, [(&b"a b\t\"c\n"[..], FILE), (b"d", FILE), (b"s", SUBMODULE)]);
    }
}
