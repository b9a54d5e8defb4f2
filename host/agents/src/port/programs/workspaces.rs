//! Workspaces of one agent. A requested directory is checked after it has been opened.

use a2a_hub_core::text::shell::shell_word;
use a2a_hub_process::WorkingDirectory;
use a2a_hub_runtime::Failure;
use a2a_hub_worktrees::WorktreeAccess;
use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// The workspaces of an agent, resolved when the agent joined. A link that replaces one later is
/// not followed, because a program that works above it could have created it.
pub(super) struct Workspaces {
    /// Workspaces, with links resolved.
    granted: Vec<PathBuf>,
    /// Home of the agent, with links resolved. Its programs start here if it has no workspace.
    home: PathBuf,
}

impl Workspaces {
    pub(super) fn new(granted: &[PathBuf], home: &Path) -> Self {
        let granted = granted.iter().map(|workspace| resolve_links(workspace)).collect();
        let home = match (home.parent(), home.file_name()) {
            (Some(parent), Some(name)) => resolve_links(parent).join(name),
            _ => home.to_owned(),
        };
        Self { granted, home }
    }

    /// True if the agent has no workspace, so that its programs start in its home.
    pub(super) fn is_home_alone(&self) -> bool {
        self.granted.is_empty()
    }

    /// The workspaces, with links resolved.
    pub(super) fn granted(&self) -> &[PathBuf] {
        &self.granted
    }

    /// Default working directory of a program.
    pub(super) fn first(&self) -> &Path {
        self.granted.first().unwrap_or(&self.home)
    }

    /// Workspace that contains `directory`, or the home if none does. In a worktree, all of its
    /// files.
    pub(super) fn holding<'p>(
        &'p self,
        directory: &Path,
        worktree: Option<&'p WorktreeAccess>,
    ) -> &'p Path {
        if let Some(worktree) = worktree {
            return &worktree.tree;
        }
        let holds = |workspace: &&PathBuf| directory.starts_with(workspace);
        self.granted.iter().find(holds).unwrap_or(&self.home)
    }

    /// Opens the requested directory if a workspace contains it, or by default the first workspace.
    /// A task in a worktree works there and nowhere else. The check applies to the opened
    /// directory, even if its path has been replaced meanwhile. Blocks on the disk.
    pub(super) fn open(
        &self,
        requested: Option<&str>,
        worktree: Option<&WorktreeAccess>,
    ) -> Result<WorkingDirectory, Failure> {
        let Some(requested) = requested else { return self.open_first() };
        let refused = |why: String| Failure::Denied(format!("work in `{requested}`: {why}"));
        if !Path::new(requested).is_absolute() {
            return Err(refused("it is not an absolute path".to_owned()));
        }
        let opened = WorkingDirectory::open(Path::new(requested));
        let opened = opened.map_err(|why| refused(why.to_string()))?;
        if let Some(WorktreeAccess { tree, origin, .. }) = worktree {
            return match opened.path().starts_with(tree) {
                true if self.contains(origin) => Ok(opened),
                true => Err(refused(format!(
                    "it is a worktree of `{}`, which lies outside the granted workspaces",
                    origin.display()
                ))),
                false => Err(refused(format!(
                    "the task has a worktree, `{}`, and works nowhere else",
                    tree.display()
                ))),
            };
        }
        if self.contains(opened.path()) {
            return Ok(opened);
        }
        let granted: Vec<_> = self.granted.iter().map(|w| w.display().to_string()).collect();
        Err(refused(format!(
            "it lies outside the granted workspaces ({}); `a2a-hub workspace add {}` allows it, or \
             `agents.<id>.workspaces` if the agent has its own",
            if granted.is_empty() { "there are none".to_owned() } else { granted.join(", ") },
            shell_word(requested),
        )))
    }

    fn contains(&self, directory: &Path) -> bool {
        self.granted.iter().any(|workspace| directory.starts_with(workspace))
    }

    fn open_first(&self) -> Result<WorkingDirectory, Failure> {
        let first = self.first();
        let unopened = |why: io::Error| {
            let why = format!("{why}; create the directory or let the hub enter it");
            Failure::Unavailable(format!("work in {}: {why}", first.display()))
        };
        let opened = WorkingDirectory::open(first).map_err(unopened)?;
        if opened.path() != first {
            return Err(Failure::Denied(format!(
                "work in `{}`: a link took its place after the agent had joined, and leads to `{}`; remove the link, or name what it \
                 leads to among the workspaces",
                first.display(),
                opened.path().display()
            )));
        }
        Ok(opened)
    }
}

/// Path with the links of its existing part resolved.
fn resolve_links(path: &Path) -> PathBuf {
    path.ancestors()
        .find_map(|ancestor| {
            let real = fs::canonicalize(ancestor).ok()?;
            let rest = path.strip_prefix(ancestor).ok()?;
            Some(if rest.as_os_str().is_empty() { real } else { real.join(rest) })
        })
        .unwrap_or_else(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn directory_is_judged_where_it_was_opened() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        let path = |name: &str| root.join(name);
        for directory in ["work/sub", "outside", "data/homes"] {
            fs::create_dir_all(path(directory)).unwrap();
        }
        symlink(path("work"), path("alias")).unwrap();
        symlink(path("outside"), path("work/link")).unwrap();
        symlink(path("work/sub"), path("outside/back")).unwrap();
        let workspaces = Workspaces::new(&[path("alias"), path("later")], &path("data/homes/a"));
        let open = |name: &str| {
            let opened = workspaces.open(Some(path(name).to_str().unwrap()), None);
            opened.map(|opened| opened.path().strip_prefix(&root).unwrap().to_owned())
        };
        assert_eq!(
            workspaces.open(None, None).unwrap().path(),
            path("work"),
            "behind the operator's link"
        );
        assert_eq!(open("alias/sub"), Ok("work/sub".into()));
        assert_eq!(open("outside/back"), Ok("work/sub".into()));
        assert!(matches!(open("work/link"), Err(Failure::Denied(_))));
        assert!(
            matches!(open("outside"), Err(Failure::Denied(why)) if why.contains("workspace add"))
        );
        assert!(matches!(open("missing"), Err(Failure::Denied(_))));
        assert!(matches!(workspaces.open(Some("work"), None), Err(Failure::Denied(_))));

        // A program that works above a workspace can replace it.
        fs::rename(path("work"), path("moved")).unwrap();
        symlink(path("outside"), path("work")).unwrap();
        symlink(path("outside"), path("later")).unwrap();
        for replaced in ["work", "later", "alias"] {
            assert!(matches!(open(replaced), Err(Failure::Denied(_))), "{replaced}");
        }
        let why = workspaces.open(None, None).unwrap_err().to_string();
        assert!(why.contains("a link took its place"), "{why}");
    }

    #[test]
    fn task_in_worktree_works_nowhere_else() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        for directory in ["repo/src", "data/w/t1/tree/src", "data/w/t2/tree", "data/homes/a"] {
            fs::create_dir_all(root.join(directory)).unwrap();
        }
        symlink(root.join("data/w/t2"), root.join("data/w/t1/tree/link")).unwrap();
        let access = |origin: &str| WorktreeAccess {
            tree: root.join("data/w/t1/tree"),
            objects: Vec::new(),
            origin: root.join(origin),
            port_base: None,
        };
        let workspaces = Workspaces::new(&[root.join("repo")], &root.join("data/homes/a"));
        let open = |name: &str, access: &WorktreeAccess| {
            workspaces.open(root.join(name).to_str(), Some(access)).map(drop)
        };
        let own = access("repo");
        assert_eq!(open("data/w/t1/tree/src", &own), Ok(()));
        for elsewhere in ["repo", "data/w/t2/tree", "data/w/t1/tree/link/tree", "data/w"] {
            assert!(matches!(open(elsewhere, &own), Err(Failure::Denied(_))), "{elsewhere}");
        }
        let foreign = open("data/w/t1/tree", &access("data"));
        assert!(matches!(foreign, Err(Failure::Denied(why)) if why.contains("is a worktree of")));
        let without = workspaces.open(root.join("data/w/t1/tree").to_str(), None);
        assert!(without.is_err(), "another task's run");
        assert_eq!(workspaces.holding(&root.join("data/w/t1/tree/src"), Some(&own)), own.tree);
    }

    #[test]
    fn home_that_is_a_link_is_refused() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        let home = root.join("homes/a");
        fs::create_dir_all(home.parent().unwrap()).unwrap();
        symlink("/", &home).unwrap();
        let workspaces = Workspaces::new(&[], &home);
        assert!(matches!(workspaces.open(None, None), Err(Failure::Denied(_))));
        fs::remove_file(&home).unwrap();
        assert!(
            matches!(workspaces.open(None, None), Err(Failure::Unavailable(_))),
            "it is not made yet"
        );
        fs::create_dir(&home).unwrap();
        assert_eq!(workspaces.open(None, None).unwrap().path(), home);
    }
}
