//! Results with the changes of some files alone, for a merge.

use crate::{ChangedFile, WorktreeError, apply::merge::Merge, selection};
use std::collections::BTreeSet;

impl Merge<'_> {
    /// Refuses a name that means no changed file. A file that is as it was before the task counts
    /// if the checkout got another state of it.
    pub(crate) async fn require_changed(
        &self,
        commit: &str,
        names: &[String],
    ) -> Result<(), WorktreeError> {
        let mut unknown = names.to_vec();
        let applied = self.worktree.applied_to(&self.receiving.user.git_dir);
        for base in [&self.worktree.base[..]].into_iter().chain(applied) {
            if unknown.is_empty() {
                return Ok(());
            }
            let all = self.all.changed_between(self.folder, self.repository, base, commit).await?;
            unknown.retain(|name| !all.iter().any(|file| file.is_named(name)));
        }
        match unknown.first() {
            Some(name) => Err(selection::not_changed(&self.worktree.task, name)),
            None => Ok(()),
        }
    }

    /// The result, or one on `base` with the changes of the named files alone; with the paths of
    /// those.
    pub(crate) async fn result_on(
        &self,
        base: &str,
        commit: &str,
        names: &[String],
    ) -> Result<(String, BTreeSet<Vec<u8>>), WorktreeError> {
        if names.is_empty() {
            return Ok((commit.to_owned(), BTreeSet::new()));
        }
        let all = self.all.changed_between(self.folder, self.repository, base, commit).await?;
        let files = selection::chosen(all, names);
        let version = |file: &ChangedFile| file.new.clone().or_else(|| file.old.clone());
        let paths = files.iter().filter_map(version).map(|version| version.path).collect();
        let result = self.all.commit_of_files(self.folder, self.repository, base, files).await?;
        Ok((result, paths))
    }

    /// Tree of a commit.
    pub(crate) async fn tree_of(&self, commit: &str) -> Result<String, WorktreeError> {
        let step = self.repository.step(&["rev-parse", &format!("{commit}^{{tree}}")]);
        Ok(self.git(step).await?.text())
    }
}
