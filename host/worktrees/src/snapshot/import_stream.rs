//! Streams for `git fast-import`, by which files become commits (git-fast-import(1)).

use crate::{
    WorktreeError,
    listing::{FileStat, LINK, now},
    reader::{OpenDirectory, as_path},
    snapshot::line_ends::{Attributes, Conversion},
    snapshot::walk::{PresentFile, TreeWalk},
};
use rustix::fs::fstat;
use std::{collections::BTreeMap, fs::File, io::Read as _};
use tokio::sync::mpsc;

/// Arguments of the program.
pub(crate) const FAST_IMPORT: &[&str] =
    &["fast-import", "--quiet", "--done", "--force", "--date-format=now"];

/// Largest file of a result, in bytes.
const FILE_LIMIT: u64 = 1 << 30;

/// Most bytes of changed files that one snapshot reads.
const TOTAL_LIMIT: u64 = 4 << 30;

/// Largest file whose line ends are converted, in bytes.
const TEXT_LIMIT: u64 = 64 << 20;

/// Size of the parts of a stream, in bytes.
const PART: usize = 256 << 10;

/// The text of a stream, which is sent in parts.
pub(crate) struct ImportStream {
    sender: mpsc::Sender<Vec<u8>>,
    part: Vec<u8>,
    /// True once nobody reads the stream any more.
    is_closed: bool,
}

impl ImportStream {
    pub(crate) fn new(sender: mpsc::Sender<Vec<u8>>) -> Self {
        Self { sender, part: Vec::new(), is_closed: false }
    }

    pub(crate) fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.part.extend(bytes);
        if self.part.len() >= PART {
            self.flush();
        }
    }

    fn flush(&mut self) {
        let part = std::mem::take(&mut self.part);
        if !part.is_empty() && !self.is_closed {
            self.is_closed = self.sender.blocking_send(part).is_err();
        }
    }

    /// Begins a commit. `mark` names it in this stream.
    pub(crate) fn commit(&mut self, branch: &str, mark: u8, message: &str, parent: Option<&str>) {
        let length = message.len();
        self.text(&format!(
            "commit {branch}\nmark :{mark}\ncommitter a2a-hub <a2a-hub@localhost> now\ndata {length}\n{message}\n"
        ));
        if let Some(parent) = parent {
            self.text(&format!("from {parent}\n"));
        }
    }

    /// Has the commit take a whole tree.
    pub(crate) fn root_tree(&mut self, id: &str) {
        self.text(&format!("M 040000 {id} \n"));
    }

    pub(crate) fn remove(&mut self, path: &[u8]) {
        let path = quoted(path);
        self.bytes(&[b"D ", &path[..], b"\n"].concat());
    }

    pub(crate) fn known(&mut self, mode: u32, id: &str, path: &[u8]) {
        self.text(&format!("M {mode:06o} {id} "));
        self.bytes(&quoted(path));
        self.text("\n");
    }

    pub(crate) fn content(&mut self, mode: u32, path: &[u8], content: &[u8]) {
        self.begin_content(mode, path, content.len() as u64);
        self.bytes(content);
        self.text("\n");
    }

    fn begin_content(&mut self, mode: u32, path: &[u8], length: u64) {
        self.text(&format!("M {mode:06o} inline "));
        self.bytes(&quoted(path));
        self.text(&format!("\ndata {length}\n"));
    }

    /// Adds a large file as it is. One that is cut meanwhile is filled with NUL; its length is
    /// promised already.
    fn long_content(&mut self, mode: u32, path: &[u8], mut file: File, length: u64) -> bool {
        self.begin_content(mode, path, length);
        let mut remaining = length;
        let mut buffer = vec![0; PART];
        let mut is_complete = true;
        while remaining > 0 {
            let chunk_len = usize::try_from(remaining).unwrap_or(usize::MAX).min(PART);
            let count =
                if is_complete { file.read(&mut buffer[..chunk_len]).unwrap_or(0) } else { 0 };
            if count == 0 {
                is_complete = false;
                buffer.fill(0);
            }
            let count = if count == 0 { chunk_len } else { count };
            self.bytes(&buffer[..count]);
            remaining -= count as u64;
        }
        self.text("\n");
        is_complete
    }

    /// Ends the stream, and has the program print the ids of the commits with these marks.
    pub(crate) fn done(mut self, marks: &[u8]) {
        for mark in marks {
            self.text(&format!("get-mark :{mark}\n"));
        }
        self.text("done\n");
        self.flush();
    }
}

/// Adds the changed files of a walk to a stream, and returns the metadata that they had.
pub(crate) struct ChangedFiles<'c> {
    pub(crate) top: &'c OpenDirectory,
    pub(crate) attributes: Attributes<'c>,
    /// Contents in the base of those files for whose line ends they count.
    pub(crate) old: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl ChangedFiles<'_> {
    pub(crate) fn add(
        &mut self,
        walk: &mut TreeWalk,
        changed: Vec<(Vec<u8>, PresentFile)>,
        stream: &mut ImportStream,
    ) -> BTreeMap<Vec<u8>, FileStat> {
        let mut stats = BTreeMap::new();
        let mut total = 0;
        for (path, file) in changed {
            match self.add_one(&path, &file, stream, &mut total) {
                Ok((stat, is_complete)) => {
                    if !is_complete {
                        walk.leave_out(&path, "was cut while it was read");
                    }
                    stats.insert(path, stat);
                }
                Err(why) => walk.leave_out(&path, why),
            }
        }
        stats
    }

    fn add_one(
        &mut self,
        path: &[u8],
        present: &PresentFile,
        stream: &mut ImportStream,
        total: &mut u64,
    ) -> Result<(FileStat, bool), String> {
        if present.mode == LINK {
            let target = self.top.link(as_path(path)).map_err(|why| why.to_string())?;
            stream.content(LINK, path, &target);
            let stat = FileStat::from_stat(&present.stat);
            return Ok((stat.unless_changed_just_now(now()), true));
        }
        let file = self.top.file(as_path(path)).map_err(|why| why.to_string())?;
        let file = file.ok_or("went away while it was read")?;
        let stat = fstat(&file).map_err(|why| format!("cannot be read: {why}"))?;
        let length = u64::try_from(stat.st_size).unwrap_or_default();
        if length > FILE_LIMIT {
            return Err(format!("is larger than {} MiB", FILE_LIMIT >> 20));
        }
        *total += length;
        if *total > TOTAL_LIMIT {
            return Err(format!(
                "does not fit: all changed files together may have {} MiB",
                TOTAL_LIMIT >> 20
            ));
        }
        // A file that a filter would change is taken as it is: no program runs.
        let conversion = self.attributes.conversion(path);
        let mut is_complete = true;
        let is_text = matches!(conversion, Conversion::Text { .. }) && length <= TEXT_LIMIT;
        if is_text || length <= PART as u64 {
            let mut bytes = Vec::new();
            let read = file.take(FILE_LIMIT).read_to_end(&mut bytes);
            read.map_err(|why| format!("cannot be read: {why}"))?;
            let bytes = conversion.to_git(bytes, self.old.get(path).map(Vec::as_slice));
            stream.content(present.mode, path, &bytes);
        } else {
            is_complete = stream.long_content(present.mode, path, file, length);
        }
        Ok((FileStat::from_stat(&stat).unless_changed_just_now(now()), is_complete))
    }
}

/// A path in double quotes (git-fast-import(1), `path`).
fn quoted(path: &[u8]) -> Vec<u8> {
    let mut quoted = vec![b'"'];
    for byte in path {
        match byte {
            b'"' | b'\\' => quoted.extend([b'\\', *byte]),
            0..32 | 127 => quoted.extend(format!("\\{byte:03o}").bytes()),
            _ => quoted.push(*byte),
        }
    }
    quoted.push(b'"');
    quoted
}

/// Ids that `get-mark` printed, one a line.
pub(crate) fn ids_of(output: &[u8], count: usize) -> Result<Vec<String>, WorktreeError> {
    let text = String::from_utf8_lossy(output);
    let ids: Vec<_> = text.lines().filter_map(crate::repository::refs::id).collect();
    if ids.len() == count {
        return Ok(ids);
    }
    Err(WorktreeError::Git {
        step: "fast-import".to_owned(),
        stderr: "it names no commit".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_quoted_whatever_is_in_them() {
        assert_eq!(quoted("src/ä b".as_bytes()), "\"src/ä b\"".as_bytes());
        assert_eq!(quoted(b"a\"b\\c\n\xff"), b"\"a\\\"b\\\\c\\012\xff\"");
    }
}
