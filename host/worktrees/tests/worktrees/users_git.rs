//! The user's git: ignore rules, identity, modes and line ends count; its programs never run.

use super::{Place, git_in, text_of};
use a2a_hub_worktrees::Target;
use std::{fs, os::unix::fs::PermissionsExt as _};

fn commit() -> Target {
    Target::Commit { message: "Work".to_owned() }
}

#[tokio::test]
async fn ignore_rules_of_user_count() {
    let place = Place::new();
    place.write("repo/.git/info/exclude", "node_modules/\n");
    place.write("ignored", "*.mine\n");
    place.write(
        ".gitconfig",
        &format!("[core]\n\texcludesFile = {}\n", place.at("ignored").display()),
    );
    let worktree = place.create("t1", "repo").await.unwrap();
    for name in ["node_modules/x.js", "a.mine", "b.xdg", "made"] {
        fs::create_dir_all(worktree.tree.join(name).parent().unwrap()).unwrap();
        fs::write(worktree.tree.join(name), "x\n").unwrap();
    }
    // The agent's own git ignores the same.
    assert_eq!(git_in(&worktree.tree, &["status", "--porcelain"]), "?? b.xdg\n?? made");
    let applied = place.worktrees.apply("t1", Target::Files, false, None).await.unwrap();
    assert_eq!(applied.files, ["b.xdg", "made"]);
    // The default file of the user counts if no other one is named.
    place.write(".gitconfig", "");
    place.write(".config/git/ignore", "*.xdg\n");
    let diff = place.worktrees.diff("t1", true, 1 << 20).await.unwrap();
    assert!(
        !text_of(&diff).contains("node_modules") && text_of(&diff).contains("a.mine"),
        "{diff:?}"
    );
}

#[tokio::test]
async fn author_comes_from_included_settings() {
    let user =
        |name: &str| format!("[user]\n\tname = {name}\n\temail = {}@a.b\n", name.to_lowercase());
    let cases: [(&str, &[(&str, String)]); 5] = [
        ("Xdg", &[(".gitconfig", String::new()), (".config/git/config", user("Xdg"))]),
        (
            "Inc",
            &[(".gitconfig", "[include]\n\tpath = ~/more\n".to_owned()), ("more", user("Inc"))],
        ),
        (
            "Work",
            &[
                (".gitconfig", user("Private") + "[includeIf \"gitdir:~/repo/\"]\n\tpath = work\n"),
                ("work", user("Work")),
            ],
        ),
        (
            "Branch",
            &[
                (".gitconfig", user("Private") + "[includeIf \"onbranch:ma*\"]\n\tpath = ./work\n"),
                ("work", user("Branch")),
            ],
        ),
        (
            "Own",
            &[
                (".gitconfig", user("Private")),
                ("repo/.git/more", user("Own")),
                (
                    "repo/.git/config",
                    "[core]\n\tbare = false\n[include]\n\tpath = more\n".to_owned(),
                ),
            ],
        ),
    ];
    for (wanted, files) in cases {
        let place = Place::new();
        for (name, text) in files {
            place.write(name, text);
        }
        let worktree = place.create("t", "repo").await.unwrap();
        fs::write(worktree.tree.join("a"), "changed\n").unwrap();
        place.worktrees.apply("t", commit(), false, None).await.unwrap();
        let by = place.git("repo", &["log", "-1", "--format=%an <%ae> %cn"]);
        assert_eq!(by, format!("{wanted} <{}@a.b> {wanted}", wanted.to_lowercase()));
    }
}

#[tokio::test]
async fn modes_and_line_ends_are_kept() {
    let place = Place::new();
    place.write("repo/run.sh", "s\n");
    place.write("repo/lf", "1\n2\n");
    place.write("repo/.gitattributes", "*.bat text eol=crlf\nlf text eol=lf\n*.bin binary\n");
    place.write("repo/x.bat", "a\r\n");
    place.write("repo/x.bin", "a\r\nb\n");
    place.git("repo", &["add", "-A"]);
    place.git("repo", &["commit", "-q", "-m", "more"]);
    place.git("repo", &["config", "core.fileMode", "false"]);
    place.write(".gitconfig", "[core]\n\tautocrlf = true\n[user]\n\tname = A\n\temail = a@b\n");
    place.git("repo", &["config", "core.autocrlf", "true"]);
    fs::remove_file(place.at("repo/a")).unwrap();
    place.git("repo", &["checkout", "-q", "a"]);
    assert!(place.read("repo/a").contains("1\r\n"));
    let worktree = place.create("t", "repo").await.unwrap();
    let tree = |name: &str| worktree.tree.join(name);
    assert_eq!(fs::read(tree("x.bat")).unwrap(), b"a\r\n");
    assert_eq!(fs::read(tree("a")).unwrap(), b"1\n2\n3\n4\n5\n6\n7\n8\n9\n");
    assert_eq!(git_in(&worktree.tree, &["status", "--porcelain"]), "");
    fs::write(tree("a"), "1\n2\n3\n4\n5\n6\n7\n8\n9\nten\n").unwrap();
    fs::write(tree("lf"), "1\n2\n3\n").unwrap();
    fs::write(tree("x.bat"), "a\r\nb\r\n").unwrap();
    fs::write(tree("x.bin"), "a\r\nb\nc\n").unwrap();
    fs::write(tree("new.bat"), "n\r\n").unwrap();
    fs::set_permissions(tree("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    let diff = place.worktrees.diff("t", false, 1 << 20).await.unwrap();
    assert!(
        text_of(&diff).contains("\n+b\n") && text_of(&diff).contains("\n+ten\n"),
        "{}",
        text_of(&diff)
    );
    place.worktrees.apply("t", commit(), true, None).await.unwrap();
    assert!(place.read("repo/a").ends_with("9\r\nten\r\n"));
    assert_eq!(
        (place.read("repo/lf"), place.read("repo/x.bat")),
        ("1\n2\n3\n".into(), "a\r\nb\r\n".into())
    );
    assert_eq!(
        (place.read("repo/x.bin"), place.read("repo/new.bat")),
        ("a\r\nb\nc\n".into(), "n\r\n".into())
    );
    assert_eq!(place.git("repo", &["status", "--porcelain"]), "");
    assert!(place.git("repo", &["ls-tree", "HEAD", "run.sh"]).starts_with("100755"));
}

#[tokio::test]
async fn filters_never_run_and_are_named() {
    let place = Place::new();
    let marker = place.at("marker");
    let filter = format!("touch {}; cat", marker.display());
    for step in ["clean", "smudge"] {
        place.git("repo", &["config", &format!("filter.rot.{step}"), &filter]);
    }
    place.git("repo", &["config", "filter.rot.required", "true"]);
    place.write("repo/.git/info/attributes", "*.sec filter=rot\n");
    place.write("repo/k.sec", "secret\n");
    // The test is the user, whose filter runs here.
    place.git("repo", &["add", "-f", "k.sec"]);
    place.git("repo", &["commit", "-q", "-m", "filtered"]);
    fs::remove_file(&marker).unwrap();
    let worktree = place.create("t", "repo").await.unwrap();
    fs::write(worktree.tree.join("a"), "changed\n").unwrap();
    place.write("repo/k.sec", "touched\n");
    // Another file arrives.
    place.worktrees.apply("t", Target::Files, false, None).await.unwrap();
    fs::write(worktree.tree.join("k.sec"), "changed\n").unwrap();
    let why = place.worktrees.apply("t", Target::Files, false, None).await.unwrap_err().to_string();
    assert!(why.contains("filter `rot`") && why.contains("--branch NAME"), "{why}");
    place.worktrees.apply("t", Target::Branch("b".to_owned()), false, None).await.unwrap();
    assert!(!marker.exists(), "a filter ran");
}

#[tokio::test]
async fn patch_has_bytes_of_any_encoding() {
    let place = Place::new();
    fs::write(place.at("repo/latin"), b"gr\xfcn\nb\n").unwrap();
    place.git("repo", &["add", "-A"]);
    place.git("repo", &["commit", "-q", "-m", "latin"]);
    let worktree = place.create("t", "repo").await.unwrap();
    fs::write(worktree.tree.join("latin"), b"gr\xfcn\nwei\xdf\n").unwrap();
    let diff = place.worktrees.diff("t", false, 1 << 20).await.unwrap();
    fs::write(place.at("patch"), &diff.bytes).unwrap();
    place.git("repo", &["apply", "../patch"]);
    assert_eq!(fs::read(place.at("repo/latin")).unwrap(), b"gr\xfcn\nwei\xdf\n");
}

#[tokio::test]
async fn unfinished_or_unborn_checkout_is_named() {
    let place = Place::new();
    let worktree = place.create("t", "repo").await.unwrap();
    fs::write(worktree.tree.join("new"), "x\n").unwrap();
    let commit = async || place.worktrees.apply("t", commit(), false, None).await;
    place.write("repo/.git/MERGE_HEAD", "");
    let why = commit().await.unwrap_err().to_string();
    assert!(why.contains("git merge --abort"), "{why}");
    fs::remove_file(place.at("repo/.git/MERGE_HEAD")).unwrap();
    // The first commit was amended, and branches stand in the way.
    place.git("repo", &["commit", "-q", "--amend", "-m", "other"]);
    place.git("repo", &["branch", "feature"]);
    let branch = Target::Branch("feature/x".to_owned());
    let why = place.worktrees.apply("t", branch, false, None).await.unwrap_err().to_string();
    assert!(why.contains("has a branch `feature`"), "{why}");
    place.git("repo", &["checkout", "-q", "--orphan", "fresh"]);
    let why = commit().await.unwrap_err().to_string();
    assert!(why.contains("has no commit yet"), "{why}");
    place.worktrees.apply("t", Target::Files, false, None).await.unwrap();
    // The repository was moved.
    fs::rename(place.at("repo"), place.at("moved")).unwrap();
    let why = place.worktrees.diff("t", true, 1 << 20).await.unwrap_err();
    assert!(why.is_callers_fault() && why.to_string().contains("is gone"), "{why}");
}
