//! Applies that fail, race, or are killed: the checkout has all of a result, or is as before.

use super::{Place, git_in};
use a2a_hub_worktrees::{Applied, Target, WorktreeError};
use std::{
    collections::BTreeSet,
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

/// Files of a checkout, its index and its branches, without what git may add at any time.
type CheckoutState = (Vec<(PathBuf, u32, Vec<u8>)>, String, String);

/// State of a checkout, to be compared.
fn state(place: &Place, name: &str) -> CheckoutState {
    let git = place.at(name).join(".git");
    let files = place.contents(name).into_iter().filter(|it| !it.0.starts_with(&git)).collect();
    let staged = place.git(name, &["ls-files", "--stage", "-v"]);
    let refs = place.git(name, &["for-each-ref", "refs/heads"]);
    (files, staged, refs + &place.read(&format!("{name}/.git/HEAD")))
}

/// Work of all kinds: changed, new, removed, executable, a link, a directory in place of a file,
/// and the other way round.
fn all_kinds(tree: &Path) {
    fs::write(tree.join("a"), "1\n2\n3\n4\n5\n6\n7\n8\nnine\n").unwrap();
    fs::create_dir_all(tree.join("new/deep")).unwrap();
    fs::write(tree.join("new/deep/file"), "new\n").unwrap();
    fs::remove_file(tree.join("gone")).unwrap();
    fs::set_permissions(tree.join("run"), fs::Permissions::from_mode(0o755)).unwrap();
    symlink("a", tree.join("link")).unwrap();
    fs::remove_file(tree.join("file")).unwrap();
    fs::create_dir(tree.join("file")).unwrap();
    fs::write(tree.join("file/inside"), "inside\n").unwrap();
    fs::remove_dir_all(tree.join("dir")).unwrap();
    fs::write(tree.join("dir"), "a file\n").unwrap();
    fs::write(tree.join("binary"), [0, 1, 255]).unwrap();
}

fn with_kinds() -> Place {
    let place = Place::new();
    for file in ["gone", "run", "file", "dir/x", "dir/deep/y", "binary"] {
        place.write(&format!("repo/{file}"), file);
    }
    place.git("repo", &["add", "-A"]);
    place.git("repo", &["commit", "-q", "-m", "kinds"]);
    place
}

fn commit() -> Target {
    Target::Commit { message: "Work".to_owned() }
}

#[tokio::test]
async fn failed_write_leaves_checkout_unchanged() {
    fail_each_write(Target::Files).await;
}

#[tokio::test]
async fn failed_write_leaves_index_unchanged() {
    fail_each_write(Target::Index).await;
}

#[tokio::test]
async fn failed_write_leaves_branch_unchanged() {
    fail_each_write(commit()).await;
}

async fn fail_each_write(target: Target) {
    let place = with_kinds();
    let worktree = place.create("t", "repo").await.unwrap();
    all_kinds(&worktree.tree);
    let before = state(&place, "repo");
    let mut failed = 0;
    for number in 1.. {
        place.worktrees.fail_write(number, false);
        let applied = place.worktrees.apply("t", target.clone(), true, None).await;
        if place.worktrees.is_failure_pending() {
            applied.unwrap_or_else(|why| panic!("{target:?} {number}: {why}"));
            break;
        }
        let why = applied.expect_err("the call failed");
        assert!(why.to_string().contains("nothing was changed"), "{number}: {why}");
        assert_eq!(before, state(&place, "repo"), "{target:?}: call {number}");
        assert!(!place.at("repo/.git/.a2a-hub-apply").exists(), "{number}");
        assert!(!place.at("repo/.git/index.lock").exists(), "{number}");
        failed += 1;
    }
    assert!(failed > 15, "{failed} calls that write");
    assert_eq!(place.read("repo/dir"), "a file\n");
    assert_eq!(place.read("repo/file/inside"), "inside\n");
    assert!(!place.at("repo/gone").exists());
    place.git("repo", &["fsck", "--strict"]);
    let status = place.git("repo", &["status", "--porcelain"]);
    match target {
        Target::Commit { .. } => assert_eq!(status, ""),
        Target::Index => assert_eq!(status.lines().count(), 11, "{status}"),
        Target::Files | Target::Branch(_) => assert_eq!(status.lines().count(), 10, "{status}"),
    }
}

#[tokio::test]
async fn things_in_the_way_leave_checkout_unchanged() {
    // What is in the way, and which path it is in the way of.
    type InTheWay = (&'static str, fn(&Path));
    let cases: &[InTheWay] = &[
        ("directory with a file", |repo| {
            fs::create_dir(repo.join("new")).unwrap();
            fs::create_dir(repo.join("new/deep")).unwrap();
            fs::create_dir(repo.join("new/deep/file")).unwrap();
            fs::write(repo.join("new/deep/file/q"), "q").unwrap();
        }),
        ("file where a directory is needed", |repo| fs::write(repo.join("new"), "mine").unwrap()),
        ("link where a directory is needed", |repo| symlink("/tmp", repo.join("new")).unwrap()),
        ("untracked file in a directory that becomes a file", |repo| {
            fs::write(repo.join("dir/mine"), "mine").unwrap();
        }),
        ("pipe", |repo| {
            fs::create_dir_all(repo.join("new/deep")).unwrap();
            let pipe = repo.join("new/deep/file");
            rustix::fs::mknodat(rustix::fs::CWD, pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0)
                .unwrap();
        }),
        ("changed file that is to be removed", |repo| {
            fs::write(repo.join("gone"), "mine").unwrap();
        }),
    ];
    for (name, put) in cases {
        for target in [Target::Files, Target::Index, commit()] {
            let place = with_kinds();
            let worktree = place.create("t", "repo").await.unwrap();
            all_kinds(&worktree.tree);
            put(&place.at("repo"));
            let files = |place: &Place| {
                let git = place.at("repo/.git");
                let mut left = vec![place.at("repo")];
                let mut found = BTreeSet::new();
                while let Some(path) = left.pop() {
                    let meta = fs::symlink_metadata(&path).unwrap();
                    if meta.is_dir() && path != git {
                        left.extend(fs::read_dir(&path).unwrap().map(|it| it.unwrap().path()));
                    }
                    let bytes = meta.is_file().then(|| fs::read(&path).unwrap());
                    found.insert((path, meta.permissions().mode(), bytes));
                }
                found
            };
            let before = files(&place);
            let applied = place.worktrees.apply("t", target.clone(), true, None).await;
            let why = applied.expect_err(name);
            assert!(why.is_callers_fault(), "{name}: {why}");
            assert!(
                why.to_string().contains("nothing was changed")
                    || why.to_string().contains("leave `--commit` out"),
                "{name}: {why}"
            );
            let ignores_git = |all: BTreeSet<(PathBuf, u32, Option<Vec<u8>>)>| {
                all.into_iter().filter(|it| it.0 != place.at("repo/.git")).collect::<Vec<_>>()
            };
            assert_eq!(ignores_git(before), ignores_git(files(&place)), "{name} {target:?}");
        }
    }
}

#[tokio::test]
async fn simultaneous_applies_are_one_commit_each() {
    let place = Place::new();
    for number in 0..20 {
        let worktree = place.create(&format!("t{number}"), "repo").await.unwrap();
        fs::write(worktree.tree.join(format!("n{number}")), "x\n").unwrap();
    }
    let applies = (0..20).map(|number| {
        let worktrees = place.worktrees.clone();
        tokio::spawn(
            async move { worktrees.apply(&format!("t{number}"), commit(), false, None).await },
        )
    });
    for applied in applies.collect::<Vec<_>>() {
        applied.await.unwrap().unwrap();
    }
    let log = place.git("repo", &["log", "--format=%H", "HEAD"]);
    assert_eq!(log.lines().count(), 21);
    for commit in log.lines().take(20) {
        let files = place.git("repo", &["show", "--name-only", "--format=", commit]);
        assert_eq!(files.lines().count(), 1, "{files}");
    }
    assert_eq!(place.git("repo", &["status", "--porcelain"]), "");
    assert_eq!(place.git("repo", &["reflog"]).lines().count(), 21);
    place.git("repo", &["fsck", "--strict"]);
}

#[tokio::test]
async fn later_changes_of_user_are_never_reverted() {
    // The agent's history names a later commit of the user as merged, with its own files.
    let place = Place::new();
    let worktree = place.create("t", "repo").await.unwrap();
    place.write("repo/src/b", "fixed by the user\n");
    place.git("repo", &["commit", "-q", "-a", "-m", "fix"]);
    let fix = place.git("repo", &["rev-parse", "HEAD"]);
    fs::write(worktree.tree.join("made"), "made\n").unwrap();
    git_in(&worktree.tree, &["add", "-A"]);
    let tree = git_in(&worktree.tree, &["write-tree"]);
    let merge =
        git_in(&worktree.tree, &["commit-tree", &tree, "-p", "HEAD", "-p", &fix, "-m", "evil"]);
    git_in(&worktree.tree, &["reset", "-q", "--soft", &merge]);
    let diff = place.worktrees.diff("t", true, 1 << 20).await.unwrap();
    assert_eq!(diff.snapshot.files, 1);
    let applied = place.worktrees.apply("t", Target::Files, true, None).await.unwrap();
    assert_eq!(applied.files, ["made"]);
    assert_eq!(place.read("repo/src/b"), "fixed by the user\n");
}

#[tokio::test]
async fn second_apply_continues_from_first() {
    let place = Place::new();
    let worktree = place.create("t", "repo").await.unwrap();
    let write = |text: &str| fs::write(worktree.tree.join("src/b"), text).unwrap();
    let apply = async |target| -> Result<Applied, WorktreeError> {
        place.worktrees.apply("t", target, false, None).await
    };
    write("B\n");
    apply(commit()).await.unwrap();
    write("B!\n");
    assert_eq!(apply(Target::Files).await.unwrap().files, ["src/b"]);
    assert_eq!(place.read("repo/src/b"), "B!\n");
    // The user takes it back, and wants it after all.
    place.git("repo", &["checkout", "-q", "src/b"]);
    assert_eq!(apply(Target::Files).await.unwrap().files, ["src/b"]);
    // The agent takes its own change back.
    write("b\n");
    fs::write(worktree.tree.join("other"), "other\n").unwrap();
    assert_eq!(apply(Target::Files).await.unwrap().files, ["other", "src/b"]);
    assert_eq!(place.read("repo/src/b"), "b\n");
}

#[tokio::test]
async fn interrupted_apply_is_taken_back_at_start() {
    let place = with_kinds();
    let worktree = place.create("t", "repo").await.unwrap();
    all_kinds(&worktree.tree);
    let before = state(&place, "repo");
    for number in 1..40 {
        place.worktrees.fail_write(number, true);
        let worktrees = place.worktrees.clone();
        let _ = tokio::spawn(async move { worktrees.apply("t", Target::Index, true, None).await })
            .await;
        place.worktrees.sweep().unwrap();
        if place.worktrees.is_failure_pending() {
            return;
        }
        assert_eq!(before, state(&place, "repo"), "{number}");
    }
    panic!("the apply never ends");
}

/// Number of kills. `A2A_HUB_APPLY_KILLS` sets it for a long proof.
fn kills() -> u32 {
    std::env::var("A2A_HUB_APPLY_KILLS").ok().and_then(|it| it.parse().ok()).unwrap_or(12)
}

const PLACE: &str = "A2A_HUB_TEST_PLACE";

/// Applies in another process, which the test below kills.
#[tokio::test]
async fn process_that_applies() {
    let Some(root) = std::env::var_os(PLACE) else { return };
    let worktrees = Place::worktrees_at(Path::new(&root));
    fs::write(Path::new(&root).join("begins"), "").unwrap();
    let _ = worktrees.apply("t", commit(), true, None).await;
}

#[tokio::test]
async fn killed_apply_is_whole_or_nothing() {
    let place = with_kinds();
    let worktree = place.create("t", "repo").await.unwrap();
    all_kinds(&worktree.tree);
    for number in 0..60 {
        fs::write(worktree.tree.join(format!("more{number}")), "x\n").unwrap();
    }
    let before = state(&place, "repo");
    let (mut whole, mut longest) = (0, Duration::from_millis(600));
    for number in 0..kills() {
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        child.args(["apply::process_that_applies", "--exact", "--nocapture"]);
        child.env(PLACE, &place.root).stdout(std::process::Stdio::null());
        let mut child = child.stderr(std::process::Stdio::null()).spawn().unwrap();
        while fs::remove_file(place.at("begins")).is_err() {
            assert!(child.try_wait().unwrap().is_none(), "the process ended");
            std::thread::sleep(Duration::from_millis(1));
        }
        let begun = Instant::now();
        let wait = longest * number / kills();
        std::thread::sleep(wait);
        child.kill().unwrap();
        child.wait().unwrap();
        place.worktrees.sweep().unwrap();
        let after = state(&place, "repo");
        if after != before {
            whole += 1;
            longest = longest.min(begun.elapsed());
            assert_eq!(place.git("repo", &["status", "--porcelain"]), "", "{number}");
            assert_eq!(place.git("repo", &["show", "HEAD:new/deep/file"]), "new");
            assert!(place.at("repo/more59").exists() && !place.at("repo/gone").exists());
            place.git("repo", &["reset", "-q", "--hard", "HEAD~"]);
            place.git("repo", &["clean", "-q", "-f", "-d"]);
            assert_eq!(state(&place, "repo").0, before.0, "{number}");
            place.git("repo", &["update-ref", "refs/heads/main", "HEAD"]);
        }
        assert!(!place.at("repo/.git/index.lock").exists(), "{number}");
        place.worktrees.snapshot("t").await.unwrap();
    }
    assert!(whole < kills(), "no kill came in time");
    place.git("repo", &["fsck", "--strict"]);
}
