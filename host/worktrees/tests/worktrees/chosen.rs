//! Chosen files: a part of the changes is shown, or taken over, and the rest stays.

use super::{Place, text_of};
use a2a_hub_worktrees::{Applied, DiffQuery, Target, WorktreeError};
use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
};

async fn apply(place: &Place, names: &[&str]) -> Result<Applied, WorktreeError> {
    let names: Vec<_> = names.iter().map(|&name| name.to_owned()).collect();
    place.worktrees.apply_files("t1", Target::Files, false, None, &names).await
}

fn status(place: &Place) -> String {
    let status = place.git("repo", &["status", "--porcelain", "-z", "-uall"]).replace('\0', " ");
    status.trim().to_owned()
}

/// Changes of all kinds, each of which is applied alone.
#[tokio::test]
async fn each_kind_of_change_is_applied_alone() {
    let place = Place::new();
    for file in ["gone", "mode", "binary", "moved", "dir/x"] {
        place.write(&format!("repo/{file}"), &format!("{file}\n").repeat(9));
    }
    place.git("repo", &["add", "-A"]);
    place.git("repo", &["commit", "-q", "-m", "kinds"]);
    let tree = place.create("t1", "repo").await.unwrap().tree;
    fs::write(tree.join("a"), "one\n2\n3\n4\n5\n6\n7\n8\n9\n").unwrap();
    fs::remove_file(tree.join("gone")).unwrap();
    fs::set_permissions(tree.join("mode"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(tree.join("binary"), [0, 1, 255]).unwrap();
    fs::rename(tree.join("moved"), tree.join("new\n\"name\x1b")).unwrap();
    fs::remove_dir_all(tree.join("dir")).unwrap();
    fs::write(tree.join("dir"), "a file\n").unwrap();
    symlink("a", tree.join("link")).unwrap();
    fs::create_dir(tree.join("src/deep")).unwrap();
    fs::write(tree.join("src/deep/file"), "new\n").unwrap();

    for (names, expected) in [
        (vec!["gone"], "D gone"),
        (vec!["binary"], "M binary"),
        // Both names mean the whole renaming.
        (vec!["moved"], "D moved ?? new\n\"name\x1b"),
        (vec!["src"], "?? src/deep/file"),
        (vec!["a", "src/deep/"], "M a ?? src/deep/file"),
        (vec!["dir"], "D dir/x ?? dir"),
    ] {
        apply(&place, &names).await.unwrap();
        assert_eq!(status(&place), expected, "{names:?}");
        // The next one begins anew.
        place.git("repo", &["reset", "-q", "--hard"]);
        place.git("repo", &["clean", "-qfd"]);
    }
    // A sensitive file is asked about only if it is chosen.
    let why = apply(&place, &["link"]).await.unwrap_err();
    assert!(matches!(&why, WorktreeError::Sensitive { paths, .. } if paths[0].starts_with("link")));
    for name in ["../repo/a", "/etc/passwd", "nothing", "*", ":/a", "sr", ".git/config"] {
        let why = apply(&place, &["a", name]).await.unwrap_err().to_string();
        assert!(why.contains("changed no file"), "{name}: {why}");
    }
    assert_eq!(status(&place), "", "a refusal changes nothing");
}

/// Files are taken over one after the other; what was taken over before stays.
#[tokio::test]
async fn parts_add_up_to_whole_result() {
    let place = Place::new();
    let tree = place.create("t1", "repo").await.unwrap().tree;
    fs::write(tree.join("a"), "1\n2\n3\n4\nfive\n6\n7\n8\n9\n").unwrap();
    fs::write(tree.join("src/b"), "B\n").unwrap();
    fs::write(tree.join("c"), "c\n").unwrap();
    assert_eq!(apply(&place, &["a"]).await.unwrap().files, ["a"]);
    // The user goes on with it, elsewhere in the file.
    place.write("repo/a", "user\n2\n3\n4\nfive\n6\n7\n8\n9\n");
    assert_eq!(apply(&place, &["src/b"]).await.unwrap().files, ["src/b"]);
    assert_eq!(place.read("repo/a"), "user\n2\n3\n4\nfive\n6\n7\n8\n9\n");
    assert_eq!(apply(&place, &["a"]).await.unwrap().files, Vec::<String>::new());
    // The agent goes back to the old text of one file, which is a change since then.
    fs::write(tree.join("src/b"), "b\n").unwrap();
    assert_eq!(apply(&place, &["src/b"]).await.unwrap().files, ["src/b"]);
    assert_eq!(status(&place), "M a");
    let rest = place.worktrees.apply("t1", Target::Files, false, None).await.unwrap();
    assert_eq!((rest.files, status(&place)), (vec!["c".to_owned()], "M a ?? c".to_owned()));
}

#[tokio::test]
async fn conflict_of_chosen_file_changes_nothing() {
    let place = Place::new();
    let tree = place.create("t1", "repo").await.unwrap().tree;
    fs::write(tree.join("a"), "task\n").unwrap();
    fs::write(tree.join("src/b"), "task\n").unwrap();
    place.write("repo/a", "user\n");
    let why = apply(&place, &["a", "src/b"]).await.unwrap_err();
    assert!(matches!(&why, WorktreeError::Conflict { paths, .. } if paths == &["a"]), "{why}");
    assert_eq!(status(&place), "M a");
    apply(&place, &["src/b"]).await.unwrap();
    assert_eq!(
        (place.read("repo/a"), place.read("repo/src/b")),
        ("user\n".into(), "task\n".into())
    );
}

#[tokio::test]
async fn chosen_files_become_commit_or_branch() {
    let place = Place::new();
    let tree = place.create("t1", "repo").await.unwrap().tree;
    fs::write(tree.join("a"), "task\n").unwrap();
    fs::write(tree.join("src/b"), "task\n").unwrap();
    let names = ["src/b".to_owned()];
    let to = |target| place.worktrees.apply_files("t1", target, false, None, &names);
    to(Target::Branch("part".to_owned())).await.unwrap();
    assert_eq!(place.git("repo", &["diff", "--name-only", "main", "part"]).trim(), "src/b");
    to(Target::Commit { message: "Part".to_owned() }).await.unwrap();
    assert_eq!(place.git("repo", &["show", "--name-only", "--format=%s"]).trim(), "Part\n\nsrc/b");
    assert_eq!(status(&place), "");
}

#[tokio::test]
async fn diff_shows_files_and_changes_since_snapshot() {
    let place = Place::new();
    let tree = place.create("t1", "repo").await.unwrap().tree;
    fs::write(tree.join("a"), "task\n").unwrap();
    fs::write(tree.join("src/b"), "first\n").unwrap();
    let first = place.worktrees.changed_files("t1", None).await.unwrap();
    fs::write(tree.join("src/b"), "second\n").unwrap();
    let query = DiffQuery { since: Some(first.commit.clone()), ..DiffQuery::default() };
    let since = text_of(&place.worktrees.diff_of("t1", query.clone(), 9_999).await.unwrap());
    assert!(since.contains("-first\n+second\n") && !since.contains("task"), "{since}");
    let only = DiffQuery { paths: vec!["a".to_owned()], as_table: true, ..DiffQuery::default() };
    let only = text_of(&place.worktrees.diff_of("t1", only, 9_999).await.unwrap());
    assert!(only.contains("1 file changed") && only.starts_with(" a "), "{only}");
    let none = DiffQuery { paths: vec!["a".to_owned()], ..query };
    let why = place.worktrees.diff_of("t1", none, 9_999).await.unwrap_err().to_string();
    assert!(why.contains("changed no file `a`"), "{why}");

    let then = place.worktrees.changed_files("t1", Some(&first.commit)).await.unwrap();
    assert_eq!(then, first);
    let now = place.worktrees.changed_files("t1", None).await.unwrap();
    let id = |list: &a2a_hub_worktrees::ChangedFileList| {
        let file = list.files.iter().find(|file| file.is_named("src/b")).unwrap();
        file.new.as_ref().unwrap().id.clone()
    };
    let diff = place.worktrees.line_diff("t1", &id(&then), &id(&now)).await.unwrap().unwrap();
    assert!(String::from_utf8(diff).unwrap().contains("@@ -1 +1 @@\n-first\n+second\n"));
    let contents = place.worktrees.file_contents("t1", &[id(&then), id(&now)]).await.unwrap();
    assert_eq!(contents, [b"first\n".to_vec(), b"second\n".to_vec()]);
}
