//! Worktrees of real repositories: their forms, what is taken over, and what agents try.

#![expect(clippy::unwrap_used, reason = "the helpers of a test fail it as the test itself would")]
#![expect(clippy::disallowed_methods, reason = "the test is the user, who runs git")]

#[path = "worktrees/apply.rs"]
mod apply;
#[path = "worktrees/chosen.rs"]
mod chosen;
#[path = "worktrees/conflicts.rs"]
mod conflicts;
#[path = "worktrees/forms.rs"]
mod forms;
#[path = "worktrees/hostile.rs"]
mod hostile;
#[path = "worktrees/hostile_repositories.rs"]
mod hostile_repositories;
#[path = "worktrees/own_file.rs"]
mod own_file;
#[path = "worktrees/prepared.rs"]
mod prepared;
#[path = "worktrees/results.rs"]
mod results;
#[path = "worktrees/users_git.rs"]
mod users_git;

use a2a_hub_process::Supervisor;
use a2a_hub_worktrees::{
    Diff, GitHome, NewWorktree, RepositoryBounds, Target, Worktree, WorktreeError, Worktrees,
};
use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};
use tempfile::TempDir;

/// A user with a repository, and the worktrees of a hub.
struct Place {
    worktrees: Worktrees,
    root: PathBuf,
    _removed: TempDir,
}

impl Place {
    /// A repository `repo` with the files `a` (lines 1 to 9) and `src/b`.
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("hub")).unwrap();
        fs::create_dir_all(root.join("repo/src")).unwrap();
        let worktrees = Self::worktrees_at(&root);
        fs::write(root.join(".gitconfig"), "[user]\n\tname = Eve\n\temail = eve@a.b\n").unwrap();
        let place = Self { worktrees, root, _removed: dir };
        place.git("repo", &["init", "-q", "-b", "main"]);
        place.write("repo/a", "1\n2\n3\n4\n5\n6\n7\n8\n9\n");
        place.write("repo/src/b", "b\n");
        place.git("repo", &["add", "-A"]);
        place.git("repo", &["commit", "-q", "-m", "start"]);
        place
    }

    /// The worktrees of a hub whose user's home is `root`.
    fn worktrees_at(root: &Path) -> Worktrees {
        let grace = Duration::from_millis(300);
        let minder = env!("CARGO_BIN_EXE_worktree_minder").into();
        let supervisor = Supervisor::new(minder, root.join("hub"), grace);
        let home = GitHome { home: Some(root.to_owned()), config: None };
        Worktrees::new(root.join("hub/worktrees"), supervisor, find, home)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::create_dir_all(self.at(name).parent().unwrap()).unwrap();
        fs::write(self.at(name), text).unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.at(name)).unwrap()
    }

    /// Runs git as the user does.
    fn git(&self, directory: &str, args: &[&str]) -> String {
        git_in(&self.at(directory), args)
    }

    async fn create(&self, task: &str, directory: &str) -> Result<Worktree, WorktreeError> {
        self.worktrees
            .create(NewWorktree {
                task: task.to_owned(),
                directory: self.at(directory),
                base: "HEAD".to_owned(),
                now_ms: 1,
                owner: a2a_hub_worktrees::WorktreeOwner::default(),
                bounds: RepositoryBounds::default(),
            })
            .await
    }

    /// All files of a directory with their contents, modes and targets of links.
    fn contents(&self, name: &str) -> Vec<(PathBuf, u32, Vec<u8>)> {
        let mut found = Vec::new();
        let mut left = vec![self.at(name)];
        while let Some(path) = left.pop() {
            let meta = fs::symlink_metadata(&path).unwrap();
            let bytes = if meta.is_dir() {
                left.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
                Vec::new()
            } else if meta.is_symlink() {
                fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes()
            } else {
                fs::read(&path).unwrap()
            };
            found.push((path, meta.permissions().mode(), bytes));
        }
        found.sort();
        found
    }
}

/// Finds a program as the hub does.
fn find(name: &str) -> Option<PathBuf> {
    let paths = ["/usr/local/bin", "/usr/bin", "/bin"].map(|path| Path::new(path).join(name));
    paths.into_iter().find(|path| path.is_file())
}

/// Text of a patch or a table.
fn text_of(diff: &Diff) -> String {
    String::from_utf8(diff.bytes.clone()).unwrap()
}

fn git_in(directory: &Path, args: &[&str]) -> String {
    let mut git = Command::new("git");
    git.current_dir(directory).args(["-c", "protocol.file.allow=always"]).args(args);
    git.env("GIT_CONFIG_GLOBAL", "/dev/null");
    for role in ["AUTHOR", "COMMITTER"] {
        git.env(format!("GIT_{role}_NAME"), "Ann").env(format!("GIT_{role}_EMAIL"), "ann@a.b");
    }
    text(&mut git)
}

fn text(command: &mut Command) -> String {
    let done = command.output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{command:?}: {said}");
    String::from_utf8_lossy(&done.stdout).trim().to_owned()
}

/// The agent's work: one commit, one file that is not committed, one removed.
fn work(worktree: &Worktree) {
    let tree = &worktree.tree;
    fs::write(tree.join("a"), "1\n2\n3\n4\n5\n6\n7\n8\nnine\n").unwrap();
    git_in(tree, &["commit", "-q", "-a", "-m", "nine"]);
    fs::write(tree.join("new"), "new\n").unwrap();
    fs::remove_file(tree.join("src/b")).unwrap();
}

#[tokio::test]
async fn changes_are_merged_with_those_of_checkout() {
    let place = Place::new();
    let worktree = place.create("t1", "repo/src").await.unwrap();
    assert_eq!(worktree.directory, worktree.tree.join("src"));
    assert_eq!(worktree.from.as_deref(), Some("main"));
    let before = place.contents("repo");
    work(&worktree);
    let diff = place.worktrees.diff("t1", false, 1 << 20).await.unwrap();
    let counted = &diff.snapshot;
    assert_eq!((counted.commits, counted.files, counted.dirty), (1, 3, true), "{diff:?}");
    assert_eq!((counted.insertions, counted.deletions), (2, 2));
    assert!(
        text_of(&diff).contains("+nine") && text_of(&diff).contains("+++ b/new"),
        "{}",
        text_of(&diff)
    );
    let table = text_of(&place.worktrees.diff("t1", true, 1 << 20).await.unwrap());
    assert!(table.contains("3 files changed"), "{table}");
    let after: Vec<_> = place.contents("repo");
    let outside_git = |all: Vec<(PathBuf, u32, Vec<u8>)>| {
        let git = place.at("repo/.git");
        all.into_iter().filter(|it| !it.0.starts_with(&git)).collect::<Vec<_>>()
    };
    assert_eq!(outside_git(before), outside_git(after), "nothing is changed before `apply`");

    // The user works on: a commit, and a change that is not committed.
    place.write("repo/c", "c\n");
    place.git("repo", &["add", "c"]);
    place.git("repo", &["commit", "-q", "-m", "more"]);
    place.write("repo/a", "one\n2\n3\n4\n5\n6\n7\n8\n9\n");
    let applied = place.worktrees.apply("t1", Target::Files, false, None).await.unwrap();
    assert_eq!(applied.files, ["a", "new", "src/b"]);
    assert_eq!(place.read("repo/a"), "one\n2\n3\n4\n5\n6\n7\n8\nnine\n");
    assert_eq!((place.read("repo/new"), place.at("repo/src/b").exists()), ("new\n".into(), false));
    let index = place.git("repo", &["diff", "--cached", "--name-only"]);
    assert_eq!(index, "", "only the files are changed");

    // Once more: nothing is left to be changed.
    let again = place.worktrees.apply("t1", Target::Files, false, None).await.unwrap();
    assert_eq!(again.files, Vec::<String>::new());
    place.git("repo", &["fsck", "--strict"]);
}

#[tokio::test]
async fn conflict_leaves_everything_unchanged() {
    let place = Place::new();
    let worktree = place.create("t1", "repo").await.unwrap();
    work(&worktree);
    place.write("repo/a", "1\n2\n3\n4\n5\n6\n7\n8\nmine\n");
    let before = place.contents("repo");
    for target in [Target::Files, Target::Index] {
        let why = place.worktrees.apply("t1", target, true, None).await.unwrap_err();
        assert!(matches!(&why, WorktreeError::Conflict { paths, .. } if *paths == ["a"]), "{why}");
        assert!(why.to_string().contains("--branch NAME"), "{why}");
    }
    // Another git is at work on the index.
    place.write("repo/a", "1\n2\n3\n4\n5\n6\n7\n8\n9\n");
    place.write("repo/.git/index.lock", "");
    let why = place.worktrees.apply("t1", Target::Index, true, None).await.unwrap_err();
    assert!(why.to_string().contains("index.lock"), "{why}");
    assert!(!place.at("repo/new").exists());
    fs::remove_file(place.at("repo/.git/index.lock")).unwrap();
    // A file in the way, which the repository does not track.
    place.write("repo/a", "1\n2\n3\n4\n5\n6\n7\n8\n9\n");
    place.write("repo/new", "mine\n");
    let why = place.worktrees.apply("t1", Target::Files, true, None).await.unwrap_err();
    assert!(matches!(&why, WorktreeError::Conflict { paths, .. } if *paths == ["new"]), "{why}");
    assert_eq!(place.read("repo/new"), "mine\n");
    assert_eq!(place.read("repo/a"), "1\n2\n3\n4\n5\n6\n7\n8\n9\n");
    fs::remove_file(place.at("repo/new")).unwrap();
    place.write("repo/a", "1\n2\n3\n4\n5\n6\n7\n8\nmine\n");
    let git = place.at("repo/.git");
    let files = |all: Vec<(PathBuf, u32, Vec<u8>)>| {
        all.into_iter().filter(|it| !it.0.starts_with(&git)).collect::<Vec<_>>()
    };
    assert_eq!(files(before), files(place.contents("repo")));
}

#[tokio::test]
async fn changes_become_branch_index_or_commit() {
    let place = Place::new();
    for task in ["branch", "index", "commit"] {
        work(&place.create(task, "repo").await.unwrap());
    }
    let branch = |name: &str| Target::Branch(name.to_owned());
    let made = place.worktrees.apply("branch", branch("nine"), false, None).await.unwrap();
    assert_eq!(made.branch.as_deref(), Some("nine"));
    assert_eq!(place.git("repo", &["log", "--format=%s", "main..nine"]).lines().count(), 2);
    assert_eq!(place.git("repo", &["show", "nine:new"]), "new");
    assert_eq!(place.git("repo", &["status", "--porcelain"]), "");
    for (name, says) in [("nine", "has a branch"), ("a..b", "no name"), ("-x", "no name")] {
        let why = place.worktrees.apply("branch", branch(name), false, None).await.unwrap_err();
        assert!(why.to_string().contains(says), "{name}: {why}");
    }

    let message = || Target::Commit { message: "Nine".to_owned() };
    place.write("repo/staged", "");
    place.git("repo", &["add", "staged"]);
    let why = place.worktrees.apply("commit", message(), false, None).await.unwrap_err();
    assert!(why.to_string().contains("staged changes"), "{why}");
    place.git("repo", &["rm", "-q", "-f", "staged"]);
    place.write("repo/a", "one\n2\n3\n4\n5\n6\n7\n8\n9\n");
    let why = place.worktrees.apply("commit", message(), false, None).await.unwrap_err();
    assert!(why.to_string().contains("both changed `a`"), "{why}");
    place.git("repo", &["checkout", "-q", "a"]);
    let made = place.worktrees.apply("commit", message(), false, None).await.unwrap();
    assert_eq!(made.commit, Some(place.git("repo", &["rev-parse", "main"])));
    assert_eq!(place.git("repo", &["log", "-1", "--format=%an %s"]), "Eve Nine");
    assert_eq!(place.git("repo", &["status", "--porcelain"]), "");

    place.git("repo", &["reset", "-q", "--hard", "HEAD~"]);
    place.worktrees.apply("index", Target::Index, false, None).await.unwrap();
    let staged = place.git("repo", &["status", "--porcelain"]);
    assert_eq!(staged, "M  a\nA  new\nD  src/b");
}

#[tokio::test]
async fn files_that_programs_obey_need_consent() {
    let place = Place::new();
    let worktree = place.create("t1", "repo").await.unwrap();
    fs::create_dir(worktree.tree.join(".vscode")).unwrap();
    fs::write(worktree.tree.join(".vscode/tasks.json"), "{}").unwrap();
    fs::write(worktree.tree.join("ok"), "ok").unwrap();
    fs::write(worktree.tree.join("run"), "#!/bin/sh\n").unwrap();
    fs::set_permissions(worktree.tree.join("run"), fs::Permissions::from_mode(0o755)).unwrap();
    let why =
        place.worktrees.apply("t1", Target::Files, false, None).await.unwrap_err().to_string();
    for part in [".vscode/tasks.json (editor)", "run (a new executable)", "--yes"] {
        assert!(why.contains(part), "{why}");
    }
    assert!(!place.at("repo/ok").exists());
    place.worktrees.apply("t1", Target::Files, true, None).await.unwrap();
    assert!(place.at("repo/.vscode/tasks.json").exists());
}

#[tokio::test]
async fn worktrees_are_listed_kept_and_discarded() {
    let place = Place::new();
    let worktree = place.create("t1", "repo").await.unwrap();
    let refs = || place.git("repo", &["for-each-ref", "--format=%(refname)", "refs/a2a-hub"]);
    assert_eq!(refs(), "refs/a2a-hub/t1/base");
    let why = place.create("t1", "repo").await.unwrap_err();
    assert!(why.to_string().contains("a worktree already"), "{why}");
    assert_eq!(place.worktrees.list(), std::slice::from_ref(&worktree));
    let why = place.worktrees.apply("t1", Target::Files, true, None).await.unwrap_err();
    assert!(why.to_string().contains("changed no file"), "{why}");
    work(&worktree);
    assert_eq!(
        place.worktrees.retire("t1", false).await.unwrap().as_deref(),
        Some("refs/a2a-hub/t1/result")
    );
    assert_eq!(refs(), "refs/a2a-hub/t1/result");
    assert_eq!(place.git("repo", &["show", "refs/a2a-hub/t1/result:new"]), "new");
    assert!(!worktree.tree.exists() && place.worktrees.list().is_empty());

    let unchanged = place.create("t2", "repo").await.unwrap();
    assert_eq!(place.worktrees.retire("t2", false).await.unwrap(), None);
    assert!(!unchanged.tree.exists());
    let gone = place.create("t3", "repo").await.unwrap();
    work(&gone);
    place.worktrees.discard("t3", false).await.unwrap();
    assert!(!gone.tree.exists() && !refs().contains("t3"));
    assert!(matches!(place.worktrees.discard("t3", false).await, Err(WorktreeError::NotFound(_))));
    assert!(matches!(
        place.worktrees.diff("../x", false, 9).await,
        Err(WorktreeError::NotFound(_))
    ));
}

#[tokio::test]
async fn leftovers_of_killed_hub_are_swept() {
    let place = Place::new();
    place.worktrees.sweep().unwrap();
    let worktree = place.create("t1", "repo").await.unwrap();
    let root = place.worktrees.root().to_owned();
    for left in ["half-made/tree", ".step-3", ".left-other/tree"] {
        fs::create_dir_all(root.join(left)).unwrap();
    }
    place.worktrees.sweep().unwrap();
    for _ in 0..200 {
        if fs::read_dir(&root).unwrap().count() == 1 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let left: Vec<_> = fs::read_dir(&root).unwrap().map(|it| it.unwrap().file_name()).collect();
    assert_eq!(left, ["t1"]);
    assert_eq!(place.worktrees.list(), [worktree]);
    place.create("half-made", "repo").await.unwrap();
}

#[tokio::test]
async fn directory_behind_link_of_base_is_refused() {
    let place = Place::new();
    fs::create_dir(place.at("outside")).unwrap();
    place.git("repo", &["checkout", "-q", "-b", "evil"]);
    fs::remove_dir_all(place.at("repo/src")).unwrap();
    std::os::unix::fs::symlink(place.at("outside"), place.at("repo/src")).unwrap();
    place.git("repo", &["add", "-A"]);
    place.git("repo", &["commit", "-q", "-m", "link"]);
    place.git("repo", &["checkout", "-q", "main"]);
    fs::create_dir_all(place.at("repo/src/deep")).unwrap();
    for directory in ["repo/src", "repo/src/deep"] {
        let new = NewWorktree {
            task: "t1".to_owned(),
            directory: place.at(directory),
            base: "evil".to_owned(),
            now_ms: 0,
            owner: a2a_hub_worktrees::WorktreeOwner::default(),
            bounds: RepositoryBounds::default(),
        };
        let why = place.worktrees.create(new).await.unwrap_err();
        assert!(why.to_string().contains("the base has no directory"), "{why}");
    }
    // In the worktree of another task, the agent made the link, or the client says `..`.
    let above = place.create("above", "repo").await.unwrap();
    std::os::unix::fs::symlink(place.at("outside"), above.tree.join("link")).unwrap();
    for path in ["link/deep", "../../../outside/deep"] {
        let directory = above.tree.join(path);
        let new = NewWorktree {
            task: "t1".to_owned(),
            directory,
            base: "HEAD".to_owned(),
            now_ms: 0,
            owner: a2a_hub_worktrees::WorktreeOwner::default(),
            bounds: RepositoryBounds::default(),
        };
        let why = place.worktrees.create(new).await.unwrap_err();
        assert!(why.to_string().contains("the base has no directory"), "{path}: {why}");
    }
    assert_eq!(fs::read_dir(place.at("outside")).unwrap().count(), 0);
    assert_eq!(place.worktrees.list(), [above]);
    // A directory that the user made and did not commit is there, and empty.
    assert!(place.create("t2", "repo/src/deep").await.unwrap().directory.is_dir());
}

#[tokio::test]
async fn patch_beyond_limit_is_refused() {
    let place = Place::new();
    let worktree = place.create("t1", "repo").await.unwrap();
    fs::write(worktree.tree.join("big"), "x\n".repeat(100_000)).unwrap();
    let why = place.worktrees.diff("t1", false, 1_000).await.unwrap_err();
    assert!(matches!(why, WorktreeError::TooLarge { limit: 1_000, .. }), "{why}");
    let table = place.worktrees.diff("t1", true, 1_000).await.unwrap();
    assert!(text_of(&table).contains("big"));
}

#[tokio::test]
async fn missing_git_is_reported() {
    let place = Place::new();
    let supervisor = Supervisor::new("/none".into(), place.at("hub"), Duration::ZERO);
    let without = Worktrees::new(place.at("hub/other"), supervisor, |_| None, GitHome::default());
    let new = NewWorktree {
        task: "t".to_owned(),
        directory: place.at("repo"),
        base: "HEAD".to_owned(),
        now_ms: 0,
        owner: a2a_hub_worktrees::WorktreeOwner::default(),
        bounds: RepositoryBounds::default(),
    };
    assert!(matches!(without.create(new).await, Err(WorktreeError::NoGit)));
    assert!(without.list().is_empty());
}
