//! Results of worktrees: all files are in them, or are named as left out, and nothing that is left
//! out is removed without consent.

use super::{Place, git_in, text_of};
use a2a_hub_worktrees::{Target, WorktreeError};
use std::{fs, os::unix::fs::symlink, path::Path};

#[tokio::test]
async fn nested_repositories_are_files_of_result() {
    let place = Place::new();
    let worktree = place.create("t", "repo").await.unwrap();
    let tree = &worktree.tree;
    for (name, commits) in [("unborn", false), ("born", true)] {
        fs::create_dir(tree.join(name)).unwrap();
        git_in(&tree.join(name), &["init", "-q"]);
        fs::write(tree.join(name).join("file"), "x\n").unwrap();
        if commits {
            git_in(&tree.join(name), &["add", "-A"]);
            git_in(&tree.join(name), &["commit", "-q", "-m", "x"]);
        }
    }
    git_in(tree, &["worktree", "add", "-q", ".wt/x", "-b", "feature"]);
    fs::write(tree.join(".wt/x/a"), "y\n").unwrap();
    let applied = place.worktrees.apply("t", Target::Files, true, None).await.unwrap();
    let wanted = [".wt/x/a", ".wt/x/src/b", "born/file", "unborn/file"];
    assert_eq!(applied.files, wanted);
    assert!(!place.at("repo/born/.git").exists());
}

#[tokio::test]
async fn left_out_parts_are_named_and_kept() {
    let place = Place::new();
    place.git("repo", &["submodule", "--quiet", "add", "../repo", "sub"]);
    place.git("repo", &["commit", "-q", "-m", "sub"]);
    let worktree = place.create("t", "repo").await.unwrap();
    let tree = &worktree.tree;
    fs::write(tree.join("a"), "changed\n").unwrap();
    fs::write(tree.join("sub/work"), "x\n").unwrap();
    fs::write(tree.join("git~1"), "x\n").unwrap();
    fs::File::create(tree.join("huge")).unwrap().set_len(2 << 30).unwrap();
    git_in(tree, &["checkout", "-q", "-b", "feature"]);
    git_in(tree, &["commit", "-q", "-a", "-m", "on a branch"]);
    git_in(tree, &["checkout", "-q", "a2a-hub/t"]);
    fs::write(tree.join("made"), "made\n").unwrap();
    let left = place.worktrees.snapshot("t").await.unwrap().left_out;
    let named = |name: &str| left.iter().find(|it| it.name == name).map(|it| it.reason.as_str());
    assert!(named("sub/work").unwrap().contains("a submodule"), "{left:?}");
    assert!(named("git~1").unwrap().contains("renamed"), "{left:?}");
    assert!(named("huge").unwrap().contains("larger than"), "{left:?}");
    assert!(named("feature").unwrap().contains("one commit that is not in the result"), "{left:?}");
    assert_eq!(left.len(), 4, "{left:?}");
    // The same once more, when nothing was changed since.
    assert_eq!(place.worktrees.snapshot("t").await.unwrap().left_out.len(), 4);
    for why in [
        place.worktrees.discard("t", false).await.unwrap_err(),
        place.worktrees.retire("t", false).await.map(drop).unwrap_err(),
    ] {
        assert!(
            matches!(why, WorktreeError::Refused(_)) && why.to_string().contains("--force"),
            "{why}"
        );
    }
    assert!(tree.join("huge").exists());
    place.worktrees.apply("t", Target::Files, false, None).await.unwrap();
    place.worktrees.discard("t", true).await.unwrap();
    assert!(!tree.exists());
}

#[tokio::test]
async fn result_without_changes_names_branch_with_work() {
    let place = Place::new();
    let worktree = place.create("t", "repo").await.unwrap();
    git_in(&worktree.tree, &["checkout", "-q", "-b", "feature"]);
    fs::write(worktree.tree.join("a"), "x\n").unwrap();
    git_in(&worktree.tree, &["commit", "-q", "-a", "-m", "x"]);
    git_in(&worktree.tree, &["checkout", "-q", "-"]);
    let why = place.worktrees.apply("t", Target::Files, true, None).await.unwrap_err().to_string();
    assert!(why.contains("changed no file; but `feature` has one commit"), "{why}");
    // A branch that was merged is in the result.
    git_in(&worktree.tree, &["merge", "-q", "--ff-only", "feature"]);
    let snapshot = place.worktrees.snapshot("t").await.unwrap();
    assert_eq!((snapshot.commits, snapshot.files, snapshot.left_out), (1, 1, Vec::new()));
}

#[tokio::test]
async fn moved_data_directory_keeps_worktrees() {
    let place = Place::new();
    let worktree = place.create("t", "repo/src").await.unwrap();
    fs::write(worktree.tree.join("made"), "x\n").unwrap();
    place.worktrees.snapshot("t").await.unwrap();
    let below = worktree.directory.strip_prefix(&place.root).unwrap().to_str().unwrap().to_owned();
    place.create("below", &below).await.unwrap();
    fs::rename(place.at("hub"), place.at("moved")).unwrap();
    fs::create_dir(place.at("hub")).unwrap();
    let minder = env!("CARGO_BIN_EXE_worktree_minder").into();
    let supervisor = a2a_hub_process::Supervisor::new(
        minder,
        place.at("moved"),
        std::time::Duration::from_millis(300),
    );
    let home = a2a_hub_worktrees::GitHome::default();
    let moved = a2a_hub_worktrees::Worktrees::new(
        place.at("moved/worktrees"),
        supervisor,
        super::find,
        home,
    );
    moved.sweep().unwrap();
    let found = moved.find("t").unwrap();
    assert_eq!(found.directory, place.at("moved/worktrees/t/tree/src"));
    assert_eq!(moved.snapshot("t").await.unwrap().files, 1);
    // The agent's git finds the commits of the worktree that this one was made of.
    let child = moved.find("below").unwrap();
    assert_eq!(git_in(&child.tree, &["status", "--porcelain"]), "");
    moved.apply("t", Target::Files, false, None).await.unwrap();
    assert!(place.at("repo/made").exists());
}

/// A tree as names, modes and contents, without git directories.
fn listing(root: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut left = vec![root.to_owned()];
    while let Some(at) = left.pop() {
        for entry in fs::read_dir(&at).unwrap().map(|entry| entry.unwrap()) {
            let path = entry.path();
            let meta = fs::symlink_metadata(&path).unwrap();
            if entry.file_name() == ".git" {
                continue;
            }
            let name = path.strip_prefix(root).unwrap().to_string_lossy().into_owned();
            let content = if meta.is_dir() {
                left.push(path);
                continue;
            } else if meta.is_symlink() {
                format!("link {:?}", fs::read_link(&path).unwrap())
            } else {
                let mode = std::os::unix::fs::PermissionsExt::mode(&meta.permissions()) & 0o100;
                format!("{mode:o} {:?}", fs::read(&path).unwrap())
            };
            found.push((name, content));
        }
    }
    found.sort();
    found
}

/// Edits by numbers, each of another kind.
fn edit(tree: &Path, next: &mut impl FnMut(usize) -> usize) {
    let names = ["a", "src/b", "n", "d/e", "d/f/g", "src/c", "ä ö", "x.bin", ".hidden", "d"];
    let path = tree.join(names[next(names.len())]);
    let remove = |path: &Path| {
        if fs::symlink_metadata(path).is_ok_and(|meta| meta.is_dir()) {
            fs::remove_dir_all(path).unwrap();
        } else {
            let _ = fs::remove_file(path);
        }
    };
    let mut above = path.parent().unwrap();
    while above.starts_with(tree) && above != tree {
        if fs::symlink_metadata(above).is_ok_and(|meta| !meta.is_dir()) {
            remove(above);
        }
        above = above.parent().unwrap();
    }
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    match next(9) {
        0 => remove(&path),
        1 => {
            remove(&path);
            symlink("anything", &path).unwrap();
        }
        2 => {
            remove(&path);
            fs::create_dir(&path).unwrap();
            git_in(&path, &["init", "-q"]);
            fs::write(path.join("inner"), format!("{}\n", next(1_000))).unwrap();
        }
        3 => {
            remove(&path);
            fs::write(&path, [0, 1, u8::try_from(next(255)).unwrap(), b'\r', b'\n']).unwrap();
        }
        4 => {
            remove(&path);
            fs::write(&path, "#!/bin/sh\n").unwrap();
            std::os::unix::fs::PermissionsExt::set_mode(
                &mut fs::metadata(&path).unwrap().permissions(),
                0o755,
            );
            fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755))
                .unwrap();
        }
        5 => {
            // Git refuses a repository without a commit, and adds the rest.
            for args in
                [&["add", "-A", "--ignore-errors", "."][..], &["commit", "-q", "-m", "some"]]
            {
                let mut git = std::process::Command::new("git");
                let by = ["user.name=x", "user.email=x@y"].map(|it| ["-c", it]).concat();
                git.current_dir(tree).args(by).args(args).output().unwrap();
            }
        }
        6 => {
            let to = tree.join(format!("moved{}", next(3)));
            if fs::symlink_metadata(&path).is_ok_and(|meta| !meta.is_dir()) {
                remove(&to);
                fs::rename(&path, to).unwrap();
            }
        }
        _ => {
            remove(&path);
            let text: String = (0..next(40)).map(|line| format!("{line} {}\n", next(9))).collect();
            fs::write(&path, text).unwrap();
        }
    }
}

#[tokio::test]
async fn any_edits_arrive_in_clean_checkout() {
    let rounds =
        std::env::var("A2A_HUB_EDIT_ROUNDS").ok().and_then(|it| it.parse().ok()).unwrap_or(12);
    let place = Place::new();
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = |most: usize| {
        // xorshift: the same edits each time.
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        usize::try_from(seed >> 33).unwrap() % most.max(1)
    };
    for round in 0..rounds {
        let worktree = place.create("t", "repo").await.unwrap();
        for _ in 0..=next(12) {
            edit(&worktree.tree, &mut next);
            if next(4) == 0 {
                place.worktrees.snapshot("t").await.unwrap();
            }
        }
        let wanted = listing(&worktree.tree);
        let snapshot = place.worktrees.diff("t", false, 1 << 24).await.unwrap();
        assert_eq!(snapshot.snapshot.left_out, [], "{round}");
        let target = [Target::Files, Target::Index, Target::Commit { message: "x".to_owned() }];
        let applied = place.worktrees.apply("t", target[round % 3].clone(), true, None).await;
        match applied {
            Err(WorktreeError::Refused(why)) if why.contains("changed no file") => {}
            applied => drop(applied.unwrap_or_else(|why| panic!("{round}: {why}"))),
        }
        assert_eq!(listing(&place.at("repo")), wanted, "{round}");
        // The patch says the same.
        place.git("repo", &["reset", "-q", "--hard", &worktree.base]);
        place.git("repo", &["clean", "-q", "-f", "-f", "-d", "-x"]);
        if !snapshot.bytes.is_empty() {
            fs::write(place.at("patch"), &snapshot.bytes).unwrap();
            place.git("repo", &["apply", "--binary", "../patch"]);
        }
        assert_eq!(listing(&place.at("repo")), wanted, "{round}: {}", text_of(&snapshot));
        place.git("repo", &["reset", "-q", "--hard", &worktree.base]);
        place.git("repo", &["clean", "-q", "-f", "-f", "-d", "-x"]);
        place.worktrees.discard("t", true).await.unwrap();
    }
    place.git("repo", &["fsck", "--strict"]);
}

#[tokio::test]
async fn worktree_without_begun_run_is_orphan() {
    let place = Place::new();
    for task in ["begun", "killed"] {
        place.create(task, "repo").await.unwrap();
    }
    place.worktrees.begin("begun").await.unwrap();
    let is_orphan =
        |of: &a2a_hub_worktrees::Worktrees, task: &str| of.is_orphan(&of.find(task).unwrap());
    // The process that made them may be about to store their tasks.
    assert!(!is_orphan(&place.worktrees, "killed"));
    let next = Place::worktrees_at(&place.root);
    next.sweep().unwrap();
    assert!(is_orphan(&next, "killed") && !is_orphan(&next, "begun"));
}

#[tokio::test]
async fn worktree_of_earlier_version_is_adopted() {
    let place = Place::new();
    let worktree = place.create("t", "repo/src").await.unwrap();
    fs::write(worktree.tree.join("made"), "x\n").unwrap();
    // Its record was in its folder, with absolute paths; git had written settings and an index.
    let folder = place.at("hub/worktrees/t");
    let record = place.at("hub/worktree-records/t.json");
    let mut old: serde_json::Value = serde_json::from_slice(&fs::read(&record).unwrap()).unwrap();
    let facts = old.as_object_mut().unwrap();
    facts.remove("prefix");
    facts.insert("tree".to_owned(), worktree.tree.to_str().unwrap().into());
    facts.insert("directory".to_owned(), worktree.directory.to_str().unwrap().into());
    facts.insert("objects".to_owned(), serde_json::json!(["/etc"]));
    fs::write(folder.join("worktree.json"), old.to_string()).unwrap();
    fs::remove_file(record).unwrap();
    for name in ["index", "base.index"] {
        fs::remove_file(folder.join("git").join(name)).unwrap();
    }
    fs::create_dir_all(folder.join("git/hooks")).unwrap();
    fs::write(folder.join("git/config"), "[core]\n\tfsmonitor = /bin/false\n").unwrap();
    let next = Place::worktrees_at(&place.root);
    next.sweep().unwrap();
    let found = next.find("t").unwrap();
    assert_eq!((&found.directory, found.objects.len()), (&worktree.directory, 1));
    assert!(!folder.join("worktree.json").exists() && !folder.join("git/hooks").exists());
    assert_eq!(next.snapshot("t").await.unwrap().files, 1);
    next.apply("t", Target::Files, false, None).await.unwrap();
    assert!(place.at("repo/made").exists());
}
