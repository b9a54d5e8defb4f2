//! The forms of repositories: each works, or is refused with the way out.

use super::{Place, git_in};
use a2a_hub_worktrees::{NewWorktree, RepositoryBounds, Target, WorktreeError};
use std::{ffi::OsStr, fs, os::unix::ffi::OsStrExt as _, path::PathBuf};

/// Creates a worktree of `directory`, changes a file, and applies that to `target`.
async fn round_trip(place: &Place, task: &str, directory: &str, target: Target) {
    let worktree = place.create(task, directory).await.unwrap();
    assert!(worktree.tree.join("a").exists(), "{task}");
    fs::write(worktree.tree.join("made"), "made\n").unwrap();
    let applied = place.worktrees.apply(task, target, false, None).await;
    applied.unwrap_or_else(|why| panic!("{task}: {why}"));
}

#[tokio::test]
async fn linked_detached_and_dirty_checkouts_work() {
    let place = Place::new();
    place.git("repo", &["worktree", "add", "-q", "../linked", "-b", "side"]);
    round_trip(&place, "linked", "linked", Target::Files).await;
    assert!(place.at("linked/made").exists() && !place.at("repo/made").exists());
    place.git("linked", &["checkout", "-q", "--detach"]);
    fs::remove_file(place.at("linked/made")).unwrap();
    round_trip(&place, "detached", "linked", Target::Index).await;
    place.write("repo/a", "dirty\n");
    place.write("repo/untracked", "");
    round_trip(&place, "dirty", "repo", Target::Files).await;
    assert_eq!(place.read("repo/a"), "dirty\n");
}

#[tokio::test]
async fn other_checkout_of_repository_gets_changes() {
    let place = Place::new();
    place.git("repo", &["worktree", "add", "-q", "../linked", "-b", "side"]);
    place.git(".", &["clone", "-q", "repo", "clone"]);
    let worktree = place.create("t", "repo").await.unwrap();
    fs::write(worktree.tree.join("made"), "made\n").unwrap();
    // An agent's directory that claims to be a checkout.
    let fake = place.at("fake/.git");
    fs::create_dir_all(fake.join("objects")).unwrap();
    fs::create_dir_all(fake.join("refs")).unwrap();
    fs::write(fake.join("HEAD"), "ref: refs/heads/main\n").unwrap();
    fs::write(fake.join("commondir"), place.at("repo/.git").display().to_string()).unwrap();
    let before = place.contents("repo");
    let apply =
        async |to: PathBuf, target| place.worktrees.apply("t", target, false, Some(to)).await;
    for (wrong, why) in [
        (place.at("clone"), "is no checkout of"),
        (place.at("fake"), "is no checkout of"),
        (worktree.tree.clone(), "is no checkout of"),
        (place.at("."), "no git repository"),
        (PathBuf::from("linked"), "not an absolute path"),
    ] {
        let refused = apply(wrong, Target::Files).await.unwrap_err().to_string();
        assert!(refused.contains(why), "{refused}");
    }
    assert_eq!(place.contents("repo"), before);
    let applied = apply(place.at("linked/src"), Target::Index).await.unwrap();
    assert_eq!(applied.checkout, Some(place.at("linked")));
    assert_eq!(place.git("linked", &["status", "--porcelain"]), "A  made");
    assert!(!place.at("repo/made").exists());
}

#[tokio::test]
async fn bare_repository_gets_branch() {
    let place = Place::new();
    place.git(".", &["clone", "-q", "--bare", "repo", "bare.git"]);
    let worktree = place.create("t", "bare.git").await.unwrap();
    fs::write(worktree.tree.join("made"), "made\n").unwrap();
    let why = place.worktrees.apply("t", Target::Files, false, None).await.unwrap_err();
    assert!(why.to_string().contains("--branch NAME"), "{why}");
    place.worktrees.apply("t", Target::Branch("made".to_owned()), false, None).await.unwrap();
    assert_eq!(place.git("bare.git", &["show", "made:made"]), "made");
}

#[tokio::test]
async fn repository_without_commit_is_refused() {
    let place = Place::new();
    fs::create_dir(place.at("empty")).unwrap();
    place.git("empty", &["init", "-q"]);
    let why = place.create("t", "empty").await.unwrap_err();
    assert!(matches!(why, WorktreeError::NoBase(_)), "{why}");
    assert!(why.to_string().contains("git commit -m start"), "{why}");
    let why = place.create("t", ".").await.unwrap_err();
    assert!(why.to_string().contains("git init"), "{why}");
    assert!(place.worktrees.list().is_empty());
    for base in ["nothing", "-rf", "", "a\nb", "HEAD:a", "--all"] {
        let new = NewWorktree {
            task: "t".to_owned(),
            directory: place.at("repo"),
            base: base.to_owned(),
            now_ms: 0,
            owner: a2a_hub_worktrees::WorktreeOwner::default(),
            bounds: RepositoryBounds::default(),
        };
        let why = place.worktrees.create(new).await.unwrap_err();
        assert!(matches!(why, WorktreeError::NoBase(_)), "{base:?}: {why}");
    }
}

#[tokio::test]
async fn worktree_starts_from_named_commit() {
    let place = Place::new();
    place.git("repo", &["tag", "v1"]);
    place.write("repo/a", "later\n");
    place.git("repo", &["commit", "-q", "-a", "-m", "later"]);
    let new = NewWorktree {
        task: "t".to_owned(),
        directory: place.at("repo"),
        base: "v1".to_owned(),
        now_ms: 0,
        owner: a2a_hub_worktrees::WorktreeOwner::default(),
        bounds: RepositoryBounds::default(),
    };
    let worktree = place.worktrees.create(new).await.unwrap();
    assert!(fs::read_to_string(worktree.tree.join("a")).unwrap().starts_with("1\n"));
}

#[tokio::test]
async fn submodules_sparse_shallow_and_pointers_work() {
    let place = Place::new();
    place.git("repo", &["submodule", "--quiet", "add", "../repo", "sub"]);
    place.git("repo", &["commit", "-q", "-m", "sub"]);
    round_trip(&place, "submodule", "repo", Target::Files).await;
    assert!(place.at("repo/sub/a").exists());

    place.git(".", &["clone", "-q", "repo", "sparse"]);
    place.git("sparse", &["sparse-checkout", "set", "src"]);
    round_trip(&place, "sparse", "sparse", Target::Files).await;

    let from = format!("file://{}", place.at("repo").display());
    place.git(".", &["clone", "-q", "--depth=1", &from, "shallow"]);
    round_trip(&place, "shallow", "shallow", Target::Branch("made".to_owned())).await;
    place.git("shallow", &["fsck"]);

    place.git(".", &["clone", "-q", "--shared", "repo", "borrowing"]);
    round_trip(&place, "borrowing", "borrowing", Target::Files).await;

    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n";
    place.write("borrowing/.gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n");
    place.write("borrowing/x.bin", pointer);
    place.git("borrowing", &["add", "-A"]);
    place.git("borrowing", &["commit", "-q", "-m", "pointer"]);
    let worktree = place.create("lfs", "borrowing").await.unwrap();
    assert_eq!(fs::read_to_string(worktree.tree.join("x.bin")).unwrap(), pointer);
    assert_eq!(place.worktrees.snapshot("lfs").await.unwrap().files, 0);
}

#[tokio::test]
async fn strange_names_and_hashes_survive() {
    let place = Place::new();
    fs::create_dir(place.at("ein Ort")).unwrap();
    place.git("ein Ort", &["init", "-q", "--object-format=sha256"]);
    let strange = OsStr::from_bytes(b"not\xffutf8");
    place.write("ein Ort/a", "a\n");
    place.write("ein Ort/Größe \"x\"\n", "b\n");
    fs::write(place.at("ein Ort").join(strange), "c\n").unwrap();
    place.git("ein Ort", &["add", "-A"]);
    place.git("ein Ort", &["commit", "-q", "-m", "start"]);
    let worktree = place.create("t", "ein Ort").await.unwrap();
    assert_eq!(worktree.base.len(), 64);
    fs::write(worktree.tree.join(strange), "changed\n").unwrap();
    fs::write(worktree.tree.join("binary"), [0, 159, 146, 150]).unwrap();
    place.worktrees.apply("t", Target::Branch("b".to_owned()), false, None).await.unwrap();
    let applied = place.worktrees.apply("t", Target::Files, false, None).await.unwrap();
    assert_eq!(applied.files, ["binary", "not\u{fffd}utf8"]);
    assert_eq!(fs::read(place.at("ein Ort").join(strange)).unwrap(), b"changed\n");
    place.git("ein Ort", &["stash", "-q", "-u"]);
    place.git("ein Ort", &["merge", "-q", "b"]);
    assert_eq!(fs::read(place.at("ein Ort/binary")).unwrap(), [0, 159, 146, 150]);
    assert_eq!(fs::read(place.at("ein Ort").join(strange)).unwrap(), b"changed\n");
}

#[tokio::test]
async fn worktree_of_worktree_starts_from_present_files() {
    let place = Place::new();
    let above = place.create("above", "repo").await.unwrap();
    fs::write(above.tree.join("draft"), "draft\n").unwrap();
    git_in(&above.tree, &["config", "user.name", "agent"]);
    let directory = above.tree.strip_prefix(&place.root).unwrap().to_str().unwrap().to_owned();
    let below = place.create("below", &directory).await.unwrap();
    assert_eq!(below.parent.as_deref(), Some("above"));
    assert_eq!(fs::read_to_string(below.tree.join("draft")).unwrap(), "draft\n");
    fs::write(below.tree.join("review"), "fine\n").unwrap();
    let diff = place.worktrees.diff("below", false, 1 << 20).await.unwrap();
    assert_eq!(diff.snapshot.files, 1, "{diff:?}");
    // The worktree above may go first. What is applied is what the diff shows; a branch has all.
    place.worktrees.discard("above", false).await.unwrap();
    let branch = Target::Branch("both".to_owned());
    place.worktrees.apply("below", branch, false, None).await.unwrap();
    assert_eq!(place.git("repo", &["show", "both:draft"]), "draft");
    let applied = place.worktrees.apply("below", Target::Files, false, None).await.unwrap();
    assert_eq!(applied.files, ["review"]);
}
