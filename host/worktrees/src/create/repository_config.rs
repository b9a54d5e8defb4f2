//! File `.a2a-hub/worktree.toml` of a repository: its wishes for new worktrees. It counts if the
//! operator trusts its text.
//!
//! It is read from the base commit, by the hub's own git directory: neither the files of the
//! checkout nor those of an agent count.

use crate::{
    WorktreeError, Worktrees,
    create::preparation::{RepositoryConfigTrust, RepositoryPreparation},
    git::{GitOutput, HubRepository},
    record::Folder,
    service::blocking,
};
use std::path::Path;

/// Path of the file, from the top directory of its repository.
pub const REPOSITORY_CONFIG: &str = ".a2a-hub/worktree.toml";

/// Largest file, in bytes.
pub const MAX_REPOSITORY_CONFIG: usize = 64 << 10;

/// Wishes of a repository that count, and a warning for the task if some do not.
pub(crate) type RequestedSetup = (RepositoryPreparation, Option<String>);

/// Content of the file in a commit.
enum CommittedFile {
    Missing,
    Text(String),
    /// It cannot count, for this reason.
    Refused(String),
}

impl Worktrees {
    /// Reads the repository's file in the base. Without a decision by the operator, it does not
    /// count, and nothing is said.
    pub(crate) async fn requested_setup(
        &self,
        folder: &Folder,
        (repository, checkout): (&Path, Option<&Path>),
        of: &HubRepository,
        base: &str,
    ) -> Result<RequestedSetup, WorktreeError> {
        let Some(decide) = self.0.decide.get().cloned() else {
            return Ok(RequestedSetup::default());
        };
        let run = async |args: &[&str], limit| {
            self.0.git.run(folder.path(), of.step(args).with_output_limit(limit)).await
        };
        let listed =
            run(&["ls-tree", "-z", "-l", base, "--", REPOSITORY_CONFIG], MAX_REPOSITORY_CONFIG)
                .await?;
        let found = match blob(&listed) {
            Ok(None) => CommittedFile::Missing,
            Ok(Some(id)) => {
                let text = run(&["cat-file", "blob", &id], MAX_REPOSITORY_CONFIG).await?.stdout;
                String::from_utf8(text).map_or_else(
                    |_| CommittedFile::Refused("it is not UTF-8".to_owned()),
                    CommittedFile::Text,
                )
            }
            Err(why) => CommittedFile::Refused(why),
        };
        let without = |why: String| {
            let path = checkout.unwrap_or(repository).display();
            tracing::warn!(%path, %why, "the repository's `{REPOSITORY_CONFIG}` does not count");
            let text = format!(
                "The repository's `{REPOSITORY_CONFIG}` does not count: {why}. The worktree is prepared as `[worktrees]` of the hub's \
                 configuration says."
            );
            Ok((RepositoryPreparation::default(), Some(text)))
        };
        match found {
            CommittedFile::Missing => Ok(RequestedSetup::default()),
            CommittedFile::Refused(why) => without(why),
            CommittedFile::Text(text) => match decide(repository, &text) {
                RepositoryConfigTrust::Trusted(wishes) => Ok((wishes, None)),
                RepositoryConfigTrust::Wrong(why) => without(why),
                RepositoryConfigTrust::Untrusted => {
                    let path = checkout.unwrap_or(repository).display();
                    without(format!(
                        "its text in the base is not trusted; read and trust it, in `{path}`: `a2a-hub worktrees trust`"
                    ))
                }
            },
        }
    }
}

impl Worktrees {
    /// Takes the warning of a worktree's creation, which is reported once.
    ///
    /// # Errors
    /// The task has no worktree, or the disk fails.
    pub async fn take_note(&self, task: &str) -> Result<Option<String>, WorktreeError> {
        let folder = self.folder(task)?;
        blocking(move || {
            let mut worktree = folder.read()?;
            let note = worktree.note.take();
            if note.is_some() {
                folder.write(&worktree).map_err(WorktreeError::disk)?;
            }
            Ok(note)
        })
        .await?
    }
}

/// Id of the blob in a line of `git ls-tree -l`: `MODE TYPE ID SIZE`, then the path; none without a
/// line. An error says why the file does not count.
fn blob(listed: &GitOutput) -> Result<Option<String>, String> {
    let text = listed.text();
    let Some((facts, _)) = text.split_once('\t') else { return Ok(None) };
    let mut words = facts.split_ascii_whitespace();
    let mut word = || words.next().unwrap_or_default();
    let (mode, _, id, size) = (word(), word(), word(), word());
    if !matches!(mode, "100644" | "100755") {
        return Err("it is a link or a directory; make it a plain file".to_owned());
    }
    if size.parse::<usize>().is_ok_and(|size| size <= MAX_REPOSITORY_CONFIG) {
        Ok(Some(id.to_owned()))
    } else {
        Err(format!("it is larger than {} KiB", MAX_REPOSITORY_CONFIG >> 10))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_small_plain_files_count() {
        let read = |line: &str| blob(&GitOutput { code: 0, stdout: line.as_bytes().to_vec() });
        let line =
            |mode: &str, size: &str| format!("{mode} blob abc {size}\t{REPOSITORY_CONFIG}\0");
        assert_eq!(read(""), Ok(None));
        assert_eq!(read(&line("100644", "   12")), Ok(Some("abc".to_owned())));
        assert_eq!(read(&line("100755", "65536")), Ok(Some("abc".to_owned())));
        assert!(read(&line("100644", "65537")).unwrap_err().contains("64 KiB"));
        assert!(read(&line("120000", "12")).unwrap_err().contains("a link"));
        assert!(read("160000 commit abc       -\t.a2a-hub/worktree.toml\0").is_err());
        assert!(read("040000 tree abc       -\t.a2a-hub/worktree.toml\0").is_err());
    }
}
