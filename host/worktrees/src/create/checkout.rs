//! Files of a commit, written to a new work tree by the hub itself. Git only prints them.

use crate::{
    WorktreeError, Worktrees, blocking,
    git::HubRepository,
    listing::{EXECUTABLE, FileStat, GitIndex, LINK, ListedFile, Listing, SUBMODULE},
    reader::{OpenDirectory, as_path},
    repository::refs::make_directories,
    snapshot::line_ends::{Attributes, Conversion},
    snapshot::walk::plain_text,
};
use rustix::fs::{AtFlags, Mode, OFlags, ResolveFlags, fstat, openat2, statat, symlinkat};
use std::{
    collections::{BTreeMap, VecDeque},
    fs::File,
    io::{self, Write as _},
    path::{Path, PathBuf},
};
use tokio::sync::mpsc;

/// Most parts of files between git and the disk.
const QUEUE: usize = 64;

/// Name of the files that say how others are converted.
const ATTRIBUTES: &[u8] = b".gitattributes";

/// A part of the content of objects, in the order in which they were asked for.
#[derive(Debug, PartialEq, Eq)]
enum BatchPart {
    /// The next object begins.
    Begin {
        size: u64,
    },
    Bytes(Vec<u8>),
    /// The repository does not have the object.
    Missing,
}

/// Reads the output of `git cat-file --batch`: `ID TYPE SIZE`, the content, and a line end.
#[derive(Default)]
struct BatchReader {
    line: Vec<u8>,
    /// Bytes of the object that are left, with the line end behind it.
    remaining: Option<u64>,
}

impl BatchReader {
    fn read(&mut self, mut bytes: &[u8], found: &mut Vec<BatchPart>) -> io::Result<()> {
        while !bytes.is_empty() {
            if let Some(remaining) = self.remaining {
                let length = usize::try_from(remaining).unwrap_or(usize::MAX).min(bytes.len());
                let (now, rest) = bytes.split_at(length);
                let remaining = remaining - now.len() as u64;
                // The last byte is the line end.
                let content =
                    if remaining == 0 { &now[..now.len().saturating_sub(1)] } else { now };
                if !content.is_empty() {
                    found.push(BatchPart::Bytes(content.to_vec()));
                }
                self.remaining = (remaining > 0).then_some(remaining);
                bytes = rest;
                continue;
            }
            let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else {
                self.line.extend(bytes);
                return Ok(());
            };
            self.line.extend(&bytes[..end]);
            bytes = &bytes[end + 1..];
            let line = String::from_utf8_lossy(&self.line).into_owned();
            self.line.clear();
            let size = line.rsplit(' ').next().and_then(|size| size.parse::<u64>().ok());
            match size {
                Some(size) => {
                    found.push(BatchPart::Begin { size });
                    self.remaining = Some(size + 1);
                }
                None if line.ends_with(" missing") => found.push(BatchPart::Missing),
                None => return Err(io::Error::other("git prints an object in another form")),
            }
        }
        Ok(())
    }
}

impl Worktrees {
    /// Contents of objects, whole, at most `limit` bytes together.
    pub(crate) async fn contents(
        &self,
        scratch_dir: &Path,
        repository: &HubRepository,
        ids: &[String],
        limit: u64,
    ) -> Result<Vec<Vec<u8>>, WorktreeError> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let mut all: Vec<Vec<u8>> = Vec::with_capacity(ids.len());
        let mut bytes = 0;
        let (mut reader, mut parts) = (BatchReader::default(), Vec::new());
        let mut step =
            self.0.git.start(scratch_dir, repository.step(&["cat-file", "--batch"])).await?;
        step.write(&requests(ids)).await?;
        step.close_input();
        while let Some(output) = step.next().await? {
            reader.read(&output, &mut parts).map_err(WorktreeError::disk)?;
            for part in parts.drain(..) {
                match part {
                    BatchPart::Begin { size } => {
                        bytes += size;
                        if bytes > limit {
                            let limit = usize::try_from(limit).unwrap_or(usize::MAX);
                            return Err(WorktreeError::TooLarge {
                                step: "cat-file".to_owned(),
                                limit,
                            });
                        }
                        all.push(Vec::new());
                    }
                    BatchPart::Bytes(bytes) => {
                        if let Some(last) = all.last_mut() {
                            last.extend(bytes);
                        }
                    }
                    BatchPart::Missing => return Err(lacks_objects("a changed file")),
                }
            }
        }
        step.finish().await?;
        if all.len() == ids.len() { Ok(all) } else { Err(lacks_objects("a changed file")) }
    }

    /// Writes the files of a listing below `tree`, an empty directory, and returns them with their
    /// metadata.
    pub(crate) async fn check_out(
        &self,
        scratch_dir: &Path,
        repository: &HubRepository,
        listing: &Listing,
        tree: PathBuf,
    ) -> Result<GitIndex, WorktreeError> {
        // Those that say how others are converted come first.
        let is_attributes =
            |path: &[u8]| path.rsplit(|byte| *byte == b'/').next() == Some(ATTRIBUTES);
        let (first, others): (Vec<_>, Vec<_>) = listing
            .iter()
            .filter(|(_, file)| file.mode != SUBMODULE)
            .partition(|(path, _)| is_attributes(path));
        let has_attributes = !first.is_empty();
        let files = first.into_iter().chain(others);
        let files: VecDeque<_> = files.map(|(path, file)| (path.clone(), file.clone())).collect();
        let ids: Vec<_> = files.iter().map(|(_, file)| file.id.clone()).collect();
        let submodules = listing.iter().filter(|(_, file)| file.mode == SUBMODULE);
        let submodules = submodules.map(|(path, file)| (path.clone(), file.clone())).collect();
        let (sender, receiver) = mpsc::channel(QUEUE);
        let write = blocking(move || {
            CheckoutWriter { tree, files, has_attributes, receiver }.write_all(submodules)
        });
        let read = self.send_contents(scratch_dir, repository, &ids, sender);
        let (written, read) = tokio::join!(write, read);
        // A writer that failed takes no more parts, and the reader ends without an error.
        read?;
        written?
    }

    async fn send_contents(
        &self,
        scratch_dir: &Path,
        repository: &HubRepository,
        ids: &[String],
        sender: mpsc::Sender<BatchPart>,
    ) -> Result<(), WorktreeError> {
        if ids.is_empty() {
            return Ok(());
        }
        let (mut reader, mut parts) = (BatchReader::default(), Vec::new());
        let args = ["cat-file", "--batch", "--buffer"];
        let mut step = self.0.git.start(scratch_dir, repository.step(&args)).await?;
        step.write(&requests(ids)).await?;
        step.close_input();
        while let Some(output) = step.next().await? {
            reader.read(&output, &mut parts).map_err(WorktreeError::disk)?;
            for part in parts.drain(..) {
                if sender.send(part).await.is_err() {
                    return Ok(());
                }
            }
        }
        step.finish().await.map(drop)
    }
}

fn requests(ids: &[String]) -> Vec<u8> {
    ids.iter().flat_map(|id| [id.as_bytes(), b"\n"].concat()).collect()
}

fn lacks_objects(subject: &str) -> WorktreeError {
    WorktreeError::Unsupported(format!(
        "the repository does not have the content of {subject}: it is a partial clone, or damaged; fetch all files first (`git fetch \
         --refetch --no-filter`), or look for the damage (`git fsck`)"
    ))
}

/// Writes files in the order in which their contents come.
struct CheckoutWriter {
    tree: PathBuf,
    files: VecDeque<(Vec<u8>, ListedFile)>,
    has_attributes: bool,
    receiver: mpsc::Receiver<BatchPart>,
}

/// A file that is being written.
struct OpenFile {
    path: Vec<u8>,
    listed: ListedFile,
    remaining: u64,
    /// Whole content of a link, or of a file that is to be converted.
    buffer: Option<(Vec<u8>, Conversion)>,
    file: Option<File>,
}

impl CheckoutWriter {
    fn write_all(
        mut self,
        submodules: Vec<(Vec<u8>, ListedFile)>,
    ) -> Result<GitIndex, WorktreeError> {
        let top = OpenDirectory::open(&self.tree).map_err(WorktreeError::disk)?;
        let mut index = BTreeMap::new();
        for (path, listed) in submodules {
            make_directories(&top, as_path(&path)).map_err(|why| unwritten(&path, &why))?;
            index.insert(path, (listed, FileStat::default()));
        }
        let mut attributes = None;
        let mut current_dir: Option<(PathBuf, OpenDirectory)> = None;
        let mut open: Option<OpenFile> = None;
        loop {
            if let Some(done) = open.take_if(|file| file.remaining == 0) {
                let (_, directory) = current_dir
                    .as_ref()
                    .ok_or_else(|| WorktreeError::disk(io::ErrorKind::NotFound.into()))?;
                let path = done.path.clone();
                let listed = done.listed.clone();
                let stat = done.finish(directory).map_err(|why| unwritten(&path, &why))?;
                index.insert(path, (listed, stat));
            }
            let Some(part) = self.receiver.blocking_recv() else { break };
            match part {
                BatchPart::Missing => {
                    let name =
                        self.files.front().map(|(path, _)| plain_text(path)).unwrap_or_default();
                    return Err(lacks_objects(&format!("`{name}`")));
                }
                BatchPart::Bytes(bytes) => {
                    if let Some(file) = &mut open {
                        file.add(bytes).map_err(|why| unwritten(&file.path, &why))?;
                    }
                }
                BatchPart::Begin { size } => {
                    let Some((path, listed)) = self.files.pop_front() else { break };
                    let parent = as_path(&path).parent().unwrap_or(Path::new("")).to_owned();
                    if current_dir.as_ref().is_none_or(|(known, _)| *known != parent) {
                        let created = make_directories(&top, &parent)
                            .map_err(|why| unwritten(&path, &why))?;
                        current_dir = Some((parent, created));
                    }
                    let is_attributes = path.ends_with(ATTRIBUTES);
                    let conversion = if self.has_attributes && !is_attributes && listed.mode != LINK
                    {
                        attributes
                            .get_or_insert_with(|| Attributes::new(&top, b"", None))
                            .conversion(&path)
                    } else {
                        Conversion::Binary
                    };
                    let is_buffered = listed.mode == LINK
                        || matches!(conversion, Conversion::Text { is_crlf: true, .. });
                    let buffer = is_buffered.then(|| (Vec::new(), conversion));
                    let mut file = OpenFile { path, listed, remaining: size, buffer, file: None };
                    if file.buffer.is_none()
                        && let Some((_, directory)) = &current_dir
                    {
                        file.file = Some(
                            file.create(directory).map_err(|why| unwritten(&file.path, &why))?,
                        );
                    }
                    open = Some(file);
                }
            }
        }
        if open.is_none() && self.files.is_empty() {
            return Ok(GitIndex::new(index));
        }
        Err(WorktreeError::Git {
            step: "cat-file".to_owned(),
            stderr: "it ended too early".to_owned(),
        })
    }
}

impl OpenFile {
    fn name(&self) -> &Path {
        let name = self.path.rsplit(|byte| *byte == b'/').next();
        as_path(name.unwrap_or_default())
    }

    fn create(&self, directory: &OpenDirectory) -> io::Result<File> {
        let mode = if self.listed.mode == EXECUTABLE { 0o777 } else { 0o666 };
        create_new(directory, self.name(), mode)
    }

    fn add(&mut self, bytes: Vec<u8>) -> io::Result<()> {
        self.remaining = self.remaining.saturating_sub(bytes.len() as u64);
        match (&mut self.file, &mut self.buffer) {
            (Some(file), _) => file.write_all(&bytes),
            (None, Some((buffer, _))) => {
                buffer.extend(bytes);
                Ok(())
            }
            (None, None) => Ok(()),
        }
    }

    fn finish(mut self, directory: &OpenDirectory) -> io::Result<FileStat> {
        let name = self.name().to_owned();
        let buffer = self.buffer.take();
        if self.listed.mode == LINK {
            let (target, _) = buffer.unwrap_or((Vec::new(), Conversion::Binary));
            symlinkat(as_path(&target), directory.handle(), &name)?;
            let stat = statat(directory.handle(), &name, AtFlags::SYMLINK_NOFOLLOW)?;
            return Ok(FileStat::from_stat(&stat));
        }
        let mut file = match self.file.take() {
            Some(file) => file,
            None => self.create(directory)?,
        };
        if let Some((bytes, conversion)) = buffer {
            file.write_all(&conversion.to_checkout(bytes))?;
        }
        Ok(FileStat::from_stat(&fstat(&file)?))
    }
}

/// Creates a file that must not exist.
pub(crate) fn create_new(directory: &OpenDirectory, name: &Path, mode: u32) -> io::Result<File> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    Ok(File::from(openat2(directory.handle(), name, flags, Mode::from_raw_mode(mode), resolve)?))
}

fn unwritten(path: &[u8], why: &io::Error) -> WorktreeError {
    let name = plain_text(path);
    WorktreeError::disk(io::Error::new(why.kind(), format!("cannot write `{name}`: {why}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_are_read_in_any_pieces() {
        let text = b"aa blob 3\nx\ny\nbb missing\ncc blob 0\n\ndd commit 2\nzz\n";
        let mut whole = Vec::new();
        BatchReader::default().read(text, &mut whole).unwrap();
        let wanted = [
            BatchPart::Begin { size: 3 },
            BatchPart::Bytes(b"x\ny".to_vec()),
            BatchPart::Missing,
            BatchPart::Begin { size: 0 },
            BatchPart::Begin { size: 2 },
            BatchPart::Bytes(b"zz".to_vec()),
        ];
        assert_eq!(whole, wanted);
        for size in 1..8 {
            let (mut reader, mut parts) = (BatchReader::default(), Vec::new());
            for piece in text.chunks(size) {
                reader.read(piece, &mut parts).unwrap();
            }
            let bytes = |parts: &[BatchPart]| -> Vec<u8> {
                let bytes = parts.iter().map(|part| {
                    if let BatchPart::Bytes(it) = part { it.clone() } else { b"|".to_vec() }
                });
                bytes.collect::<Vec<_>>().concat()
            };
            assert_eq!(bytes(&parts), bytes(&wanted), "{size}");
        }
        assert!(BatchReader::default().read(b"nonsense\n", &mut Vec::new()).is_err());
    }
}
