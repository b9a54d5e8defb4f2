//! Agents that try to reach the user through git: by hooks, filters, settings, links and rewritten
//! repositories. Nothing outside the worktree may run or change.

use super::{Place, git_in};
use a2a_hub_worktrees::{Target, Worktree, WorktreeError};
use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::Path,
};

/// One attack: its name, and what the agent does in its worktree. The script creates the file that
/// must not exist.
type Attack = (&'static str, fn(&Worktree, script: &Path));

fn set(tree: &Path, name: &str, value: &str) {
    git_in(tree, &["config", name, value]);
}

fn program(script: &Path) -> String {
    script.display().to_string()
}

fn hooks(worktree: &Worktree, script: &Path) {
    for hook in ["pre-commit", "post-checkout", "reference-transaction", "post-index-change"] {
        let hook = worktree.tree.join(".git/hooks").join(hook);
        fs::create_dir_all(hook.parent().unwrap()).unwrap();
        fs::copy(script, &hook).unwrap();
        fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    }
}

const ATTACKS: &[Attack] = &[
    ("hooks", hooks),
    ("hooks below another path", |worktree, script| {
        hooks(worktree, script);
        set(&worktree.tree, "core.hooksPath", "hooks");
        fs::rename(worktree.tree.join(".git/hooks"), worktree.tree.join("hooks")).unwrap();
    }),
    ("file system monitor", |worktree, script| {
        set(&worktree.tree, "core.fsmonitor", &program(script));
    }),
    ("filter", |worktree, script| {
        for step in ["clean", "smudge", "process"] {
            set(&worktree.tree, &format!("filter.evil.{step}"), &program(script));
        }
        fs::write(worktree.tree.join(".gitattributes"), "* filter=evil diff=evil merge=evil\n")
            .unwrap();
        set(&worktree.tree, "diff.evil.textconv", &program(script));
        set(&worktree.tree, "diff.evil.command", &program(script));
        set(&worktree.tree, "merge.evil.driver", &program(script));
    }),
    ("commands in settings", |worktree, script| {
        for name in [
            "core.sshCommand",
            "core.pager",
            "core.editor",
            "core.askPass",
            "diff.external",
            "uploadpack.packObjectsHook",
            "gpg.program",
            "sequence.editor",
        ] {
            set(&worktree.tree, name, &program(script));
        }
        set(&worktree.tree, "alias.add", &format!("!{}", program(script)));
        set(&worktree.tree, "commit.gpgSign", "true");
    }),
    ("settings of the hub's own directory by a link", |worktree, _| {
        let _ = fs::remove_dir_all(worktree.tree.join(".git"));
        symlink("../git", worktree.tree.join(".git")).unwrap();
    }),
    ("rewritten git file", |worktree, _| {
        fs::remove_dir_all(worktree.tree.join(".git")).unwrap();
        let user = worktree.repository.display();
        fs::write(worktree.tree.join(".git"), format!("gitdir: {user}\n")).unwrap();
    }),
    ("another store of objects", |worktree, _| {
        let alternates = worktree.tree.join(".git/objects/info/alternates");
        fs::write(alternates, "/nonexistent\n/proc/self/root\n").unwrap();
    }),
    ("repository below with settings", |worktree, script| {
        let sub = worktree.tree.join("sub");
        fs::create_dir(&sub).unwrap();
        git_in(&sub, &["init", "-q"]);
        fs::write(sub.join("x"), "x").unwrap();
        git_in(&sub, &["add", "x"]);
        git_in(&sub, &["commit", "-q", "-m", "x"]);
        set(&sub, "core.fsmonitor", &program(script));
        set(&sub, "core.worktree", "/");
    }),
    ("repository below without a commit", |worktree, script| {
        let sub = worktree.tree.join("sub");
        fs::create_dir(&sub).unwrap();
        git_in(&sub, &["init", "-q"]);
        set(&sub, "core.fsmonitor", &program(script));
    }),
    ("submodule with a command", |worktree, script| {
        let update =
            format!("[submodule \"s\"]\n\tpath = s\n\turl = .\n\tupdate = !{}\n", program(script));
        fs::write(worktree.tree.join(".gitmodules"), update).unwrap();
    }),
    ("link in place of a directory", |worktree, _| {
        fs::remove_dir_all(worktree.tree.join("src")).unwrap();
        symlink("/etc", worktree.tree.join("src")).unwrap();
    }),
    ("link to the checkout", |worktree, _| {
        symlink(worktree.checkout.as_ref().unwrap(), worktree.tree.join("up")).unwrap();
    }),
    ("broken head", |worktree, _| {
        fs::write(worktree.tree.join(".git/HEAD"), "f".repeat(40)).unwrap();
    }),
    ("head at a foreign commit", |worktree, _| {
        git_in(&worktree.tree, &["checkout", "-q", "--orphan", "other"]);
        git_in(&worktree.tree, &["commit", "-q", "-m", "other"]);
    }),
    ("broken index and objects", |worktree, _| {
        fs::write(worktree.tree.join(".git/index"), "nonsense").unwrap();
        fs::create_dir_all(worktree.tree.join(".git/objects/pack")).unwrap();
        fs::write(worktree.tree.join(".git/objects/pack/pack-1.idx"), "nonsense").unwrap();
    }),
    ("locks", |worktree, _| {
        for lock in ["index.lock", "HEAD.lock", "config.lock"] {
            fs::write(worktree.tree.join(".git").join(lock), "").unwrap();
        }
    }),
    ("pipe", |worktree, _| {
        rustix::fs::mknodat(
            rustix::fs::CWD,
            worktree.tree.join("pipe"),
            rustix::fs::FileType::Fifo,
            0o600.into(),
            0,
        )
        .unwrap();
        let head = worktree.tree.join(".git/HEAD");
        fs::remove_file(&head).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, head, rustix::fs::FileType::Fifo, 0o600.into(), 0)
            .unwrap();
    }),
    ("replaced commit", |worktree, _| {
        let base = worktree.base.clone();
        fs::write(worktree.tree.join("a"), "replaced\n").unwrap();
        git_in(&worktree.tree, &["commit", "-q", "-a", "-m", "replacement"]);
        git_in(&worktree.tree, &["replace", "-f", &base, "HEAD"]);
    }),
    ("grafts and settings of branches", |worktree, script| {
        set(&worktree.tree, "branch.main.remote", "ext::sh");
        set(&worktree.tree, "remote.origin.url", &format!("ext::{}", program(script)));
        fs::write(worktree.tree.join(".git/info/attributes"), "* filter=evil\n").unwrap();
        set(&worktree.tree, "filter.evil.clean", &program(script));
    }),
];

/// Attacks that git itself refuses when the changes are taken over.
const REFUSED: &[&str] = &["submodule with a command"];

#[tokio::test]
async fn agents_tricks_reach_nothing_outside() {
    for (name, attack) in ATTACKS {
        let place = Place::new();
        let marker = place.at("marker");
        let script = place.at("script");
        fs::write(&script, format!("#!/bin/sh\ntouch '{}'\ncat\n", marker.display())).unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        let worktree = place.create("t1", "repo").await.unwrap();
        fs::write(worktree.tree.join("made"), "made\n").unwrap();
        attack(&worktree, &script);
        let _ = fs::remove_file(&marker);
        let outside = |directory: &str| {
            let git = place.at("repo/.git");
            let all = place.contents(directory).into_iter();
            all.filter(|it| !it.0.starts_with(&git)).collect::<Vec<_>>()
        };
        let (before, settings) = (outside("repo"), place.read("repo/.git/config"));
        let diff = place.worktrees.diff("t1", false, 1 << 20).await;
        let diff = diff.unwrap_or_else(|why| panic!("{name}: {why}"));
        assert!(diff.text.contains("b/made"), "{name}: {}", diff.text);
        assert_eq!(before, outside("repo"), "{name}");
        assert_eq!(settings, place.read("repo/.git/config"), "{name}");
        assert!(!marker.exists(), "{name}: a program ran");

        // The user agrees to everything: still nothing runs, and the files arrive.
        match place.worktrees.apply("t1", Target::Files, true, None).await {
            Ok(_) => assert_eq!(place.read("repo/made"), "made\n", "{name}"),
            Err(why) => {
                assert!(REFUSED.contains(name), "{name}: {why}");
                assert!(matches!(why, WorktreeError::Refused(_)), "{name}: {why}");
                assert_eq!(before, outside("repo"), "{name}");
            }
        }
        assert!(!marker.exists(), "{name}: a program ran");
        assert_eq!(settings, place.read("repo/.git/config"), "{name}");
        place.git("repo", &["fsck", "--strict"]);
        place.worktrees.discard("t1").await.unwrap();
    }
}
