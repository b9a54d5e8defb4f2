//! Changed files between two commits, and the choice of some of them: for reviews, and for taking
//! over a part of a result.

use crate::{
    WorktreeError, Worktrees, blocking,
    git::{AS_PATCH, HubRepository},
    record::Folder,
    snapshot::{
        Diff, DiffQuery, OpenSnapshot, diff, import_stream::ImportStream, walk::plain_text,
    },
};
use std::{collections::BTreeSet, io};
use tokio::sync::mpsc;

/// Most bytes of file contents that one call reads.
const CONTENTS_LIMIT: u64 = 256 << 20;

/// Largest list of changed files that git may print, in bytes.
const LIST_LIMIT: usize = 512 << 20;

/// Largest diff of the lines of one file, in bytes.
const LINES_LIMIT: usize = 64 << 20;

/// Most parts of a stream between the hub and git.
const QUEUE: usize = 8;

/// A changed file. A renamed one has two paths, as the patch shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedFile {
    /// The file before the change; none if it is new.
    pub old: Option<FileVersion>,
    /// The file after the change; none if it is removed.
    pub new: Option<FileVersion>,
}

/// A file in a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileVersion {
    /// Path from the top of the repository.
    pub path: Vec<u8>,
    /// Mode, as git has it.
    pub mode: u32,
    /// Id of the content.
    pub id: String,
}

/// Changed files of a worktree at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedFileList {
    /// Commit with the files.
    pub commit: String,
    /// Files that differ from the base.
    pub files: Vec<ChangedFile>,
}

impl ChangedFile {
    /// True if a person who reads `name` in a patch or a list means this file, or a directory of
    /// it.
    pub fn is_named(&self, name: &str) -> bool {
        let versions = self.old.iter().chain(&self.new);
        versions.into_iter().any(|version| version.is_named(name))
    }
}

impl FileVersion {
    fn is_named(&self, name: &str) -> bool {
        let name = name.trim_start_matches("./").trim_end_matches('/');
        let is_within = |path: &[u8]| {
            let rest = path.strip_prefix(name.as_bytes());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
        };
        // A name that a terminal cannot show is meant by the one that lists show.
        !name.is_empty() && (is_within(&self.path) || is_within(plain_text(&self.path).as_bytes()))
    }

    /// True if [`name`](Self::name) is `name`.
    pub fn has_name(&self, name: &str) -> bool {
        match str::from_utf8(&self.path) {
            Ok(path) => path == name,
            Err(_) => plain_text(&self.path) == name,
        }
    }

    /// The path, if it is UTF-8; otherwise as lists show it.
    pub fn name(&self) -> String {
        String::from_utf8(self.path.clone()).unwrap_or_else(|_| plain_text(&self.path))
    }
}

impl Worktrees {
    /// The part of the present changes that a query names.
    ///
    /// # Errors
    /// As [`Worktrees::diff`]; [`WorktreeError::Refused`] if a path is of no changed file.
    pub async fn diff_of(
        &self,
        task: &str,
        query: DiffQuery,
        limit: usize,
    ) -> Result<Diff, WorktreeError> {
        let DiffQuery { as_table, since, paths } = query;
        let _guard = self.lock(task).await;
        let folder = self.folder(task)?;
        let OpenSnapshot { worktree, repository, taken, .. } =
            self.snapshot_locked(&folder).await?;
        let from = since.unwrap_or(worktree.base);
        let mut to = taken.commit.clone();
        if !paths.is_empty() {
            let files = self.changed_between(&folder, &repository, &from, &to).await?;
            if let Some(name) = unknown(&files, &paths) {
                return Err(not_changed(task, name));
            }
            let files = chosen(files, &paths);
            to = self.commit_of_files(&folder, &repository, &from, files).await?;
        }
        let form = if as_table { &["--stat=100"] } else { AS_PATCH };
        let step = diff(&repository, &from, &to, form).with_output_limit(limit);
        let bytes = self.0.git.run(folder.path(), step).await?.stdout;
        Ok(Diff { snapshot: taken, bytes })
    }

    /// Files that differ from the base: now, or in an earlier snapshot.
    ///
    /// # Errors
    /// As [`Worktrees::snapshot`].
    pub async fn changed_files(
        &self,
        task: &str,
        commit: Option<&str>,
    ) -> Result<ChangedFileList, WorktreeError> {
        let _guard = self.lock(task).await;
        let folder = self.folder(task)?;
        let (worktree, repository, commit) = match commit {
            Some(commit) => {
                let (worktree, repository) = self.open(&folder).await?;
                (worktree, repository, commit.to_owned())
            }
            None => {
                let open = self.snapshot_locked(&folder).await?;
                (open.worktree, open.repository, open.taken.commit)
            }
        };
        let files = self.changed_between(&folder, &repository, &worktree.base, &commit).await?;
        Ok(ChangedFileList { commit, files })
    }

    /// Contents of files, by their ids.
    ///
    /// # Errors
    /// The task has no worktree, the files are too large together, or git fails.
    pub async fn file_contents(
        &self,
        task: &str,
        ids: &[String],
    ) -> Result<Vec<Vec<u8>>, WorktreeError> {
        let _guard = self.lock(task).await;
        let folder = self.folder(task)?;
        let (_, repository) = self.open(&folder).await?;
        self.contents(folder.path(), &repository, ids, CONTENTS_LIMIT).await
    }

    /// Unified diff without context of two contents, by their ids; none if it is too large.
    ///
    /// # Errors
    /// The task has no worktree, or git fails.
    pub async fn line_diff(
        &self,
        task: &str,
        old: &str,
        new: &str,
    ) -> Result<Option<Vec<u8>>, WorktreeError> {
        let _guard = self.lock(task).await;
        let folder = self.folder(task)?;
        let (_, repository) = self.open(&folder).await?;
        // A binary file would have no lines in the diff, and its lines would look unchanged.
        let step = diff(&repository, old, new, &["-U0", "--text"]).with_output_limit(LINES_LIMIT);
        match self.0.git.run(folder.path(), step).await {
            Ok(output) => Ok(Some(output.stdout)),
            Err(WorktreeError::TooLarge { .. }) => Ok(None),
            Err(why) => Err(why),
        }
    }

    async fn open(
        &self,
        folder: &Folder,
    ) -> Result<(crate::Worktree, HubRepository), WorktreeError> {
        let reader = folder.clone();
        let worktree = blocking(move || reader.read()).await??;
        let repository = HubRepository::at(folder.git(), &worktree.stores);
        Ok((worktree, repository))
    }

    /// Files that differ between two commits. Renamed files are found as for a patch.
    pub(crate) async fn changed_between(
        &self,
        folder: &Folder,
        repository: &HubRepository,
        from: &str,
        to: &str,
    ) -> Result<Vec<ChangedFile>, WorktreeError> {
        let step = diff(repository, from, to, &["--raw", "-z", "--no-abbrev"]);
        let listed = self.0.git.run(folder.path(), step.with_output_limit(LIST_LIMIT)).await?;
        changed_files(&listed.stdout).map_err(WorktreeError::disk)
    }

    /// A commit on `from` with the changes of these files alone. A file in place of a directory
    /// replaces what is in it, as it does in a checkout.
    pub(crate) async fn commit_of_files(
        &self,
        folder: &Folder,
        repository: &HubRepository,
        from: &str,
        files: Vec<ChangedFile>,
    ) -> Result<String, WorktreeError> {
        let (sender, receiver) = mpsc::channel(QUEUE);
        let (from, message) = (from.to_owned(), format!("Chosen files of task {}", folder.task()));
        let send = blocking(move || {
            let mut stream = ImportStream::new(sender);
            stream.commit("refs/heads/chosen", 1, &message, Some(&from));
            let new: BTreeSet<_> =
                files.iter().filter_map(|file| Some(&file.new.as_ref()?.path)).collect();
            // Removals first: a file may take the place of a directory, and the other way round.
            let old = files.iter().filter_map(|file| file.old.as_ref());
            for version in old.filter(|version| !new.contains(&version.path)) {
                stream.remove(&version.path);
            }
            for version in files.iter().filter_map(|file| file.new.as_ref()) {
                stream.known(version.mode, &version.id, &version.path);
            }
            stream.done(&[1]);
            Ok::<_, WorktreeError>(())
        });
        let ((), ids) = self.import(folder, repository, send, receiver, 1).await?;
        let unnamed = || WorktreeError::NotFound(folder.task().to_owned());
        ids.into_iter().next().ok_or_else(unnamed)
    }
}

/// Files that one of the names means.
pub(crate) fn chosen(files: Vec<ChangedFile>, names: &[String]) -> Vec<ChangedFile> {
    let is_chosen = |file: &ChangedFile| names.iter().any(|name| file.is_named(name));
    files.into_iter().filter(is_chosen).collect()
}

/// First of the names that means no file.
pub(crate) fn unknown<'n>(files: &[ChangedFile], names: &'n [String]) -> Option<&'n String> {
    names.iter().find(|name| !files.iter().any(|file| file.is_named(name)))
}

/// Refusal of a name that means no changed file.
pub(crate) fn not_changed(task: &str, name: &str) -> WorktreeError {
    let name = plain_text(name.as_bytes());
    WorktreeError::Refused(format!(
        "task `{task}` changed no file `{name}`; name files or directories from the top of the repository, as `a2a-hub task diff \
         {task} --stat` lists them"
    ))
}

/// Reads `git diff --raw -z --no-abbrev`: `:OLD NEW ID ID STATUS` and the path of each file, or
/// both paths of a renamed one.
fn changed_files(raw: &[u8]) -> io::Result<Vec<ChangedFile>> {
    let wrong = || io::Error::other("git prints changes in another form");
    let mut parts = raw.split(|byte| *byte == 0).filter(|part| !part.is_empty());
    let mut found = Vec::new();
    while let Some(facts) = parts.next() {
        let facts = std::str::from_utf8(facts).ok().and_then(|it| it.strip_prefix(':'));
        let words: Vec<_> = facts.ok_or_else(wrong)?.split(' ').collect();
        let [old_mode, new_mode, old_id, new_id, status] = words[..] else { return Err(wrong()) };
        let first = parts.next().ok_or_else(wrong)?.to_vec();
        let second = match status.starts_with(['R', 'C']) {
            true => parts.next().ok_or_else(wrong)?.to_vec(),
            false => first.clone(),
        };
        let version = |mode: &str, id: &str, path| {
            let mode = u32::from_str_radix(mode, 8).map_err(|_| wrong())?;
            Ok::<_, io::Error>((mode != 0).then(|| FileVersion { path, mode, id: id.to_owned() }))
        };
        // The source of a copy stays as it is.
        let old = version(old_mode, old_id, first)?.filter(|_| !status.starts_with('C'));
        found.push(ChangedFile { old, new: version(new_mode, new_id, second)? });
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(path: &[u8], mode: u32, id: &str) -> FileVersion {
        FileVersion { path: path.to_vec(), mode, id: id.to_owned() }
    }

    #[test]
    fn changes_are_read_with_any_name() {
        let raw =
            b":100644 100755 1 2 M\0a b\0:000000 120000 0 3 A\0l\n\"\0:100644 000000 4 0 D\0d\0\
                    :100644 100644 5 6 R087\0old\0new\0:100644 100644 7 7 C100\0from\0to\0";
        let file = |old, new| ChangedFile { old, new };
        let (one, two) = (version(b"a b", 0o100_644, "1"), version(b"a b", 0o100_755, "2"));
        let expected = [
            file(Some(one), Some(two)),
            file(None, Some(version(b"l\n\"", 0o120_000, "3"))),
            file(Some(version(b"d", 0o100_644, "4")), None),
            file(Some(version(b"old", 0o100_644, "5")), Some(version(b"new", 0o100_644, "6"))),
            file(None, Some(version(b"to", 0o100_644, "7"))),
        ];
        assert_eq!(changed_files(raw).unwrap(), expected);
        assert_eq!(changed_files(b"").unwrap(), []);
        for wrong in
            [&b"x\0y\0"[..], b":1 2 3 M\0a\0", b":100644 100644 1 2 R100\0a\0", b":9 8 1 2 M\0a\0"]
        {
            assert!(changed_files(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn file_is_named_by_path_directory_or_shown_name() {
        let file = |path: &[u8]| ChangedFile { old: None, new: Some(version(path, 0, "")) };
        for (path, name, expected) in [
            (&b"src/net.rs"[..], "src/net.rs", true),
            (b"src/net.rs", "src", true),
            (b"src/net.rs", "./src/", true),
            (b"src/net.rs", "src/net", false),
            (b"src/net.rs", "net.rs", false),
            (b"src/net.rs", ".", false),
            (b"src/net.rs", "/", false),
            (b"a\nb", "a\nb", true),
            (b"a\x1b\xff", "a\u{fffd}\u{fffd}", true),
            (b"a*", "a", false),
            (b"ab", "a*", false),
        ] {
            assert_eq!(file(path).is_named(name), expected, "{name:?}");
        }
        let renamed =
            ChangedFile { old: Some(version(b"old", 0, "")), new: Some(version(b"new", 0, "")) };
        let all = vec![renamed, file(b"x")];
        let names = |names: &[&str]| names.iter().map(|&it| it.to_owned()).collect::<Vec<_>>();
        for name in ["old", "new"] {
            assert_eq!(chosen(all.clone(), &names(&[name])), [all[0].clone()]);
        }
        assert_eq!(unknown(&all, &names(&["x", "y"])), Some(&"y".to_owned()));
    }
}
