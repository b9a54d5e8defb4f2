//! Agents that try to reach the user through git: by hooks, filters, settings, links and rewritten
//! repositories. Nothing outside the worktree may run or change.

use super::{Place, git_in, text_of};
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

fn fifo(path: impl AsRef<Path>) {
    let path = path.as_ref();
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let _ = fs::remove_file(path);
    rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, 0o600.into(), 0)
        .unwrap();
}

/// A repository in a directory, with a commit and a filter that runs a program.
fn nested(at: &Path, script: &Path) {
    fs::create_dir_all(at).unwrap();
    git_in(at, &["init", "-q"]);
    fs::write(at.join("inner"), "inner\n").unwrap();
    git_in(at, &["add", "-A"]);
    git_in(at, &["commit", "-q", "-m", "inner"]);
    for step in ["clean", "smudge", "process"] {
        set(at, &format!("filter.evil.{step}"), &program(script));
    }
    set(at, "core.fsmonitor", &program(script));
    fs::write(at.join(".git/info/attributes"), "* filter=evil\n").unwrap();
    fs::write(at.join("inner"), "inner changed\n").unwrap();
}

/// A commit of the agent whose tree has one entry with this name, which git would not make.
fn commit_with_entry(worktree: &Worktree, mode: &str, name: &[u8]) {
    let tree = &worktree.tree;
    fs::write(tree.join("blob"), "x\n").unwrap();
    let blob = git_in(tree, &["hash-object", "-w", "blob"]);
    fs::remove_file(tree.join("blob")).unwrap();
    let mut raw = [mode.as_bytes(), b" ", name, b"\0"].concat();
    raw.extend(
        (0..blob.len()).step_by(2).map(|at| u8::from_str_radix(&blob[at..at + 2], 16).unwrap()),
    );
    fs::write(tree.join("raw"), raw).unwrap();
    let made = git_in(tree, &["hash-object", "-t", "tree", "-w", "--literally", "raw"]);
    fs::remove_file(tree.join("raw")).unwrap();
    let commit = git_in(tree, &["commit-tree", &made, "-p", "HEAD", "-m", "crafted"]);
    git_in(tree, &["update-ref", "HEAD", &commit]);
}

/// Swaps two entries again and again, until the worktree is gone.
fn swap_for_ever(tree: &Path, one: &'static str, two: &'static str) {
    let tree = tree.to_owned();
    std::thread::spawn(move || {
        let (one, two) = (tree.join(one), tree.join(two));
        let end = std::time::Instant::now() + std::time::Duration::from_secs(20);
        let flags = rustix::fs::RenameFlags::EXCHANGE;
        while std::time::Instant::now() < end
            && rustix::fs::renameat_with(rustix::fs::CWD, &one, rustix::fs::CWD, &two, flags)
                .is_ok()
        {}
    });
}

const MORE_ATTACKS: &[Attack] = &[
    ("filter of a nested repository that a submodule names", |worktree, script| {
        nested(&worktree.tree.join("sub"), script);
        let modules = "[submodule \"sub\"]\n\tpath = sub\n\turl = ./sub\n\tignore = none\n";
        fs::write(worktree.tree.join(".gitmodules"), modules).unwrap();
        set(&worktree.tree, "diff.ignoreSubmodules", "none");
    }),
    ("repository in a repository", |worktree, script| {
        nested(&worktree.tree.join("sub"), script);
        nested(&worktree.tree.join("sub/sub"), script);
    }),
    ("worktree of git inside", |worktree, _| {
        git_in(&worktree.tree, &["worktree", "add", "-q", ".wt/x", "-b", "feature"]);
    }),
    ("git file below that leads to the user", |worktree, _| {
        fs::create_dir(worktree.tree.join("sub")).unwrap();
        let user = format!("gitdir: {}\n", worktree.repository.display());
        fs::write(worktree.tree.join("sub/.git"), user).unwrap();
    }),
    ("bare repository inside", |worktree, script| {
        git_in(&worktree.tree, &["init", "-q", "--bare", "bare.git"]);
        set(&worktree.tree.join("bare.git"), "core.fsmonitor", &program(script));
        set(&worktree.tree.join("bare.git"), "core.worktree", "/");
    }),
    ("settings that include a device", |worktree, _| {
        set(&worktree.tree, "include.path", "/dev/zero");
    }),
    ("common directory of the user", |worktree, _| {
        let user = worktree.repository.display().to_string();
        fs::write(worktree.tree.join(".git/commondir"), user).unwrap();
    }),
    ("head that leads out", |worktree, _| {
        fs::write(worktree.tree.join(".git/HEAD"), "ref: refs/heads/../../../../../x\n").unwrap();
    }),
    ("head at a blob", |worktree, _| {
        let blob = git_in(&worktree.tree, &["hash-object", "-w", "a"]);
        fs::write(worktree.tree.join(".git/HEAD"), blob).unwrap();
    }),
    ("pipe as packed refs", |worktree, _| fifo(worktree.tree.join(".git/packed-refs"))),
    ("pipe as branch", |worktree, _| fifo(worktree.tree.join(".git/refs/heads/x"))),
    ("pipe as pack", |worktree, _| {
        git_in(&worktree.tree, &["commit", "-q", "--allow-empty", "-m", "x"]);
        fifo(worktree.tree.join(".git/objects/pack/pack-1.pack"));
        fifo(worktree.tree.join(".git/objects/pack/pack-1.idx"));
    }),
    ("pipe as object", |worktree, _| {
        git_in(&worktree.tree, &["commit", "-q", "--allow-empty", "-m", "x"]);
        fifo(worktree.tree.join(format!(".git/objects/ab/{}", "c".repeat(38))));
    }),
    ("pipe as alternates", |worktree, _| fifo(worktree.tree.join(".git/objects/info/alternates"))),
    ("pipe as shallow and grafts", |worktree, _| {
        fifo(worktree.tree.join(".git/shallow"));
        fifo(worktree.tree.join(".git/info/grafts"));
    }),
    ("pipes as ignore rules", |worktree, _| {
        fifo(worktree.tree.join(".gitignore"));
        fifo(worktree.tree.join("src/.gitignore"));
        fifo(worktree.tree.join(".git/info/exclude"));
    }),
    ("pipes as attributes", |worktree, _| {
        fifo(worktree.tree.join(".gitattributes"));
        fifo(worktree.tree.join("src/.gitattributes"));
        fifo(worktree.tree.join(".git/info/attributes"));
    }),
    ("pipe as modules", |worktree, _| fifo(worktree.tree.join(".gitmodules"))),
    ("pipe in place of a tracked file", |worktree, _| fifo(worktree.tree.join("src/b"))),
    ("pipe as git directory", |worktree, _| {
        fs::remove_dir_all(worktree.tree.join(".git")).unwrap();
        fifo(worktree.tree.join(".git"));
    }),
    ("link as git directory", |worktree, _| {
        fs::remove_dir_all(worktree.tree.join(".git")).unwrap();
        symlink(&worktree.repository, worktree.tree.join(".git")).unwrap();
    }),
    ("no git directory", |worktree, _| fs::remove_dir_all(worktree.tree.join(".git")).unwrap()),
    ("links as rules", |worktree, _| {
        symlink("/etc/passwd", worktree.tree.join(".gitignore")).unwrap();
        symlink("/etc/passwd", worktree.tree.join(".gitattributes")).unwrap();
    }),
    ("attributes of all kinds", |worktree, script| {
        let attributes =
            "* merge=union diff=evil filter=evil ident export-subst working-tree-encoding=UTF-16\n";
        fs::write(worktree.tree.join("src/.gitattributes"), attributes).unwrap();
        set(&worktree.tree, "filter.evil.clean", &program(script));
    }),
    ("rules that take for ever", |worktree, _| {
        let costly = "*a".repeat(60) + "b\n" + &"**/x/".repeat(40) + "y\n";
        fs::write(worktree.tree.join(".gitignore"), &costly).unwrap();
        fs::write(worktree.tree.join(".gitattributes"), costly.replace('\n', " text\n")).unwrap();
        fs::write(worktree.tree.join("a".repeat(250)), "").unwrap();
    }),
    ("megabytes of rules", |worktree, _| {
        fs::write(worktree.tree.join(".gitignore"), "x*y\n".repeat(3 << 20)).unwrap();
        let macros: String = (0..200_000).map(|at| format!("[attr]m{at} m{}\n", at + 1)).collect();
        fs::write(worktree.tree.join(".gitattributes"), macros).unwrap();
    }),
    ("macros in a circle", |worktree, _| {
        fs::write(worktree.tree.join(".gitattributes"), "[attr]a b\n[attr]b a\n* a\n").unwrap();
    }),
    ("directories deeper than any path", |worktree, _| {
        let mut at = fs::File::open(&worktree.tree).unwrap();
        for _ in 0..1_500 {
            rustix::fs::mkdirat(&at, "deep", 0o755.into()).unwrap();
            let flags = rustix::fs::OFlags::DIRECTORY | rustix::fs::OFlags::RDONLY;
            at = rustix::fs::openat(&at, "deep", flags, 0.into()).unwrap().into();
        }
    }),
    ("names of all kinds", |worktree, _| {
        for name in [
            "-rf",
            "--help",
            "a\nb",
            "q\"q",
            "\\",
            "\u{1b}[2J",
            "tab\t",
            " ",
            "ä\u{202e}",
            &"n".repeat(255),
        ] {
            fs::write(worktree.tree.join(name), "x").unwrap();
        }
    }),
    ("names that git refuses", |worktree, _| {
        for name in ["git~1", ".git ", ".git.", ".gi\u{200c}t", ".git::$INDEX_ALLOCATION"] {
            fs::write(worktree.tree.join(name), "x").unwrap();
        }
        fs::create_dir(worktree.tree.join("src/.GIT")).unwrap();
        fs::write(worktree.tree.join("src/.GIT/config"), "x").unwrap();
    }),
    ("link as modules", |worktree, _| {
        symlink("/etc/passwd", worktree.tree.join(".gitmodules")).unwrap();
    }),
    ("sparse file of terabytes", |worktree, _| {
        fs::File::create(worktree.tree.join("huge")).unwrap().set_len(4 << 40).unwrap();
    }),
    ("socket", |worktree, _| {
        drop(std::os::unix::net::UnixListener::bind(worktree.tree.join("socket")).unwrap());
    }),
    ("links in a circle", |worktree, _| {
        symlink("two", worktree.tree.join("one")).unwrap();
        symlink("one", worktree.tree.join("two")).unwrap();
    }),
    ("directory and link that are swapped", |worktree, _| {
        let outside = worktree.tree.parent().unwrap().join("outside");
        fs::create_dir_all(&outside).unwrap();
        fs::write(outside.join("secret"), "hush").unwrap();
        fs::create_dir(worktree.tree.join("d")).unwrap();
        symlink(outside, worktree.tree.join("l")).unwrap();
        swap_for_ever(&worktree.tree, "d", "l");
    }),
    ("file and pipe that are swapped", |worktree, _| {
        fs::write(worktree.tree.join("f"), "f").unwrap();
        fifo(worktree.tree.join("p"));
        swap_for_ever(&worktree.tree, "f", "p");
    }),
    ("rules and link that are swapped", |worktree, _| {
        fs::write(worktree.tree.join(".gitignore"), "x\n").unwrap();
        symlink("/etc/passwd", worktree.tree.join("l")).unwrap();
        swap_for_ever(&worktree.tree, ".gitignore", "l");
    }),
    ("store of objects that is the user's", |worktree, _| {
        fs::remove_dir_all(worktree.tree.join(".git/objects")).unwrap();
        symlink(worktree.repository.join("objects"), worktree.tree.join(".git/objects")).unwrap();
    }),
    ("object with another content", |worktree, _| {
        let tree = &worktree.tree;
        git_in(tree, &["add", "-A"]);
        git_in(tree, &["commit", "-q", "-m", "made"]);
        let blob = git_in(tree, &["rev-parse", "HEAD:made"]);
        let other = git_in(tree, &["hash-object", "-w", "-t", "blob", ".git/config"]);
        let at = |id: &str| tree.join(".git/objects").join(&id[..2]).join(&id[2..]);
        fs::remove_file(at(&blob)).unwrap();
        fs::copy(at(&other), at(&blob)).unwrap();
    }),
    ("commit with a git directory", |worktree, _| commit_with_entry(worktree, "100644", b".git")),
    ("commit with a way out", |worktree, _| commit_with_entry(worktree, "100644", b"..")),
    ("commit with a slash", |worktree, _| commit_with_entry(worktree, "100644", b"../../x")),
    ("commit with a link as modules", |worktree, _| {
        commit_with_entry(worktree, "120000", b".gitmodules");
    }),
    ("commit without its objects", |worktree, _| {
        git_in(&worktree.tree, &["add", "-A"]);
        git_in(&worktree.tree, &["commit", "-q", "-m", "made"]);
        let blob = git_in(&worktree.tree, &["rev-parse", "HEAD:made"]);
        fs::remove_file(worktree.tree.join(".git/objects").join(&blob[..2]).join(&blob[2..]))
            .unwrap();
    }),
    ("message full of escapes", |worktree, _| {
        git_in(
            &worktree.tree,
            &["commit", "-q", "--allow-empty", "-m", "\u{1b}]0;x\u{7}\u{1b}[2J"],
        );
    }),
    ("branches with strange names", |worktree, _| {
        let head = fs::read(worktree.tree.join(".git/refs/heads/a2a-hub/t1")).unwrap();
        for name in ["--help", "a\nb", "x.lock", "..", "@{", "\u{1b}[2J"] {
            if name != ".." {
                fs::write(worktree.tree.join(".git/refs/heads").join(name), &head).unwrap();
            }
        }
        git_in(&worktree.tree, &["branch", "other"]);
    }),
    ("hundreds of branches", |worktree, _| {
        git_in(&worktree.tree, &["commit", "-q", "--allow-empty", "-m", "x"]);
        let head = git_in(&worktree.tree, &["rev-parse", "HEAD"]);
        git_in(&worktree.tree, &["reset", "-q", "HEAD~"]);
        let all: String = (0..500).map(|at| format!("{head} refs/heads/b{at}\n")).collect();
        fs::write(worktree.tree.join(".git/packed-refs"), all).unwrap();
    }),
    ("promised objects", |worktree, script| {
        set(&worktree.tree, "extensions.partialClone", "origin");
        set(&worktree.tree, "remote.origin.promisor", "true");
        set(&worktree.tree, "remote.origin.url", &format!("ext::{}", program(script)));
        set(&worktree.tree, "protocol.ext.allow", "always");
        fs::write(worktree.tree.join(".git/HEAD"), "e".repeat(40)).unwrap();
    }),
    ("sparse checkout and a work tree elsewhere", |worktree, _| {
        set(&worktree.tree, "core.sparseCheckout", "true");
        set(&worktree.tree, "core.worktree", "/");
        set(&worktree.tree, "core.bare", "true");
    }),
    ("rights of all kinds", |worktree, _| {
        for (name, mode) in [("setuid", 0o6777), ("closed", 0o000), ("sticky", 0o1777)] {
            fs::write(worktree.tree.join(name), "x").unwrap();
            fs::set_permissions(worktree.tree.join(name), fs::Permissions::from_mode(mode))
                .unwrap();
        }
    }),
    ("submodule that is a file, and one that is full", |worktree, _| {
        fs::create_dir_all(worktree.tree.join("module")).unwrap();
        fs::write(worktree.tree.join("module/inside"), "x").unwrap();
        let head = git_in(&worktree.tree, &["rev-parse", "HEAD"]);
        let entry = format!("160000,{head},module");
        git_in(&worktree.tree, &["update-index", "--add", "--cacheinfo", &entry]);
        git_in(&worktree.tree, &["commit", "-q", "-m", "module"]);
    }),
    ("merge with a commit of the user", |worktree, _| {
        let tree = git_in(&worktree.tree, &["write-tree"]);
        let merge =
            git_in(&worktree.tree, &["commit-tree", &tree, "-p", "HEAD", "-p", "HEAD", "-m", "x"]);
        git_in(&worktree.tree, &["update-ref", "HEAD", &merge]);
    }),
];

/// Attacks that git itself refuses when the changes are taken over.
const REFUSED: &[&str] = &["submodule with a command"];

#[tokio::test]
async fn agents_tricks_reach_nothing_outside() {
    try_all(ATTACKS).await;
}

#[tokio::test]
async fn crafted_repositories_of_agents_reach_nothing_outside() {
    try_all(&MORE_ATTACKS[..MORE_ATTACKS.len() / 2]).await;
}

#[tokio::test]
async fn crafted_files_of_agents_reach_nothing_outside() {
    try_all(&MORE_ATTACKS[MORE_ATTACKS.len() / 2..]).await;
}

async fn try_all(attacks: &[Attack]) {
    for (name, attack) in attacks {
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
        let begun = std::time::Instant::now();
        let diff = place.worktrees.diff("t1", false, 64 << 20).await;
        let diff = diff.unwrap_or_else(|why| panic!("{name}: {why}"));
        assert!(begun.elapsed().as_secs() < 10, "{name}: {:?}", begun.elapsed());
        assert!(!text_of(&diff).contains("hush"), "{name}: {}", text_of(&diff));
        assert!(text_of(&diff).contains("b/made"), "{name}: {}", text_of(&diff));
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
        place.worktrees.discard("t1", true).await.unwrap();
    }
}
