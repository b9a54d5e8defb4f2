//! Repositories that an agent may have made where the user works: each is what it claims to be, or
//! is refused at once. Nothing of it runs, and nothing outside is read or written.

use super::{Place, git_in};
use a2a_hub_worktrees::{
    NewWorktree, RepositoryBounds, Target, Worktree, WorktreeError, WorktreeOwner,
};
use rustix::fs::FileType;
use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::Path,
    time::Instant,
};

/// A name, and what is put into the alternates, or the preparation.
type Case<T> = (&'static str, fn(&Place) -> T);

async fn create(place: &Place, directory: &str) -> Result<Worktree, WorktreeError> {
    let bounds = RepositoryBounds {
        workspaces: Some(vec![place.at("repo"), place.at("work")]),
        hidden: vec![place.at("work/hidden")],
    };
    let begun = Instant::now();
    let made = place.worktrees.create(NewWorktree {
        task: "t".to_owned(),
        directory: place.at(directory),
        base: "HEAD".to_owned(),
        now_ms: 1,
        owner: WorktreeOwner::default(),
        bounds,
    });
    let made = made.await;
    assert!(begun.elapsed().as_secs() < 10, "{:?}", begun.elapsed());
    made
}

fn fifo(path: &Path) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let _ = fs::remove_file(path);
    rustix::fs::mknodat(rustix::fs::CWD, path, FileType::Fifo, 0o600.into(), 0).unwrap();
}

/// A repository of the user outside the workspaces, with a secret.
fn secret(place: &Place) {
    place.write("secret/key", "hush\n");
    place.git("secret", &["init", "-q", "-b", "main"]);
    place.git("secret", &["add", "-A"]);
    place.git("secret", &["commit", "-q", "-m", "secret"]);
}

#[tokio::test]
async fn special_files_of_repository_hold_up_nobody() {
    // Each file of a git directory that is read, and whether a worktree can be made without it.
    let files = [
        (".git/HEAD", false),
        (".git/config", true),
        (".git/shallow", false),
        (".git/packed-refs", false),
        (".git/refs/heads/main", false),
        (".git/objects/info/alternates", false),
        (".git/info/exclude", true),
        (".git/info/attributes", true),
        (".git/commondir", true),
        (".git/gitdir", true),
        (".git/config.worktree", true),
    ];
    for (name, works) in files {
        for kind in ["pipe", "link", "directory"] {
            let place = Place::new();
            if name == ".git/packed-refs" {
                fs::remove_file(place.at("repo/.git/refs/heads/main")).unwrap();
            }
            let path = place.at("repo").join(name);
            let _ = fs::remove_file(&path);
            match kind {
                "pipe" => fifo(&path),
                "link" => symlink("/dev/zero", &path).unwrap(),
                _ => fs::create_dir_all(&path).unwrap(),
            }
            match create(&place, "repo").await {
                Ok(_) => assert!(works, "{name} as {kind} was accepted"),
                Err(why) => assert!(!works && why.is_callers_fault(), "{name} as {kind}: {why}"),
            }
        }
    }
    for name in [".git", "index"] {
        let place = Place::new();
        let worktree = create(&place, "repo").await.unwrap();
        fs::write(worktree.tree.join("made"), "x\n").unwrap();
        let path = if name == ".git" { place.at("repo/.git") } else { place.at("repo/.git/index") };
        let _ = fs::remove_file(&path);
        let _ = fs::remove_dir_all(&path);
        fifo(&path);
        let why = place.worktrees.apply("t", Target::Index, false, None).await.unwrap_err();
        assert!(why.is_callers_fault(), "{name}: {why}");
    }
}

#[tokio::test]
async fn borrowed_objects_are_stores_in_workspaces() {
    let cases: [(Case<String>, &str); 6] = [
        (
            ("outside", |place| place.at("secret/.git/objects").display().to_string()),
            "outside the agent's workspaces",
        ),
        (("no store", |place| place.at("work/plain").display().to_string()), "no store of objects"),
        (("hidden", |place| place.at("work/hidden/objects").display().to_string()), "is hidden"),
        (
            ("link", |place| place.at("work/link").display().to_string()),
            "outside the agent's workspaces",
        ),
        (("missing", |_| "/nonexistent".to_owned()), "cannot be opened"),
        (("of a process", |_| "/proc/self/root".to_owned()), "is hidden"),
    ];
    for ((name, target), wanted) in cases {
        let place = Place::new();
        secret(&place);
        place.write("work/plain/key", "hush\n");
        fs::create_dir_all(place.at("work/hidden/objects/pack")).unwrap();
        symlink(place.at("secret/.git/objects"), place.at("work/link")).unwrap();
        place.write("repo/.git/objects/info/alternates", &format!("{}\n", target(&place)));
        let why = create(&place, "repo").await.expect_err(name).to_string();
        assert!(why.contains(wanted) && why.contains("alternates"), "{name}: {why}");
        // One that borrows from such a store is no better.
        place.git(".", &["init", "-q", "work/other"]);
        place.write("work/other/.git/objects/info/alternates", &format!("{}\n", target(&place)));
        let other = format!("{}\n", place.at("work/other/.git/objects").display());
        place.write("repo/.git/objects/info/alternates", &other);
        let why = create(&place, "repo").await.expect_err(name).to_string();
        assert!(why.contains(wanted), "{name}: {why}");
    }
    // A store in a workspace is borrowed from.
    let place = Place::new();
    place.git(".", &["clone", "-q", "--shared", "repo", "work/clone"]);
    let worktree = create(&place, "work/clone").await.unwrap();
    assert_eq!(worktree.objects.len(), 2);
    // Later on, a store that became something else is refused.
    let pack = place.at("repo/.git/objects");
    fs::write(pack.join("key"), "hush").unwrap();
    assert!(place.worktrees.snapshot("t").await.is_err());
}

#[tokio::test]
async fn git_file_counts_if_directory_names_it() {
    let forge: [Case<()>; 5] = [
        ("another repository", |place| {
            let git = place.at("secret/.git").display().to_string();
            place.write("work/fake/.git", &format!("gitdir: {git}\n"));
        }),
        ("a worktree of another repository", |place| {
            place.git("secret", &["worktree", "add", "-q", "../secret-tree"]);
            let git = place.at("secret/.git/worktrees/secret-tree").display().to_string();
            place.write("work/fake/.git", &format!("gitdir: {git}\n"));
        }),
        ("an own directory with a foreign common one", |place| {
            let own = place.at("work/fake/own");
            fs::create_dir_all(own.join("objects")).unwrap();
            fs::create_dir_all(own.join("refs")).unwrap();
            fs::write(own.join("HEAD"), "ref: refs/heads/main\n").unwrap();
            fs::write(own.join("commondir"), place.at("secret/.git").display().to_string())
                .unwrap();
            fs::write(own.join("gitdir"), place.at("work/fake/.git").display().to_string())
                .unwrap();
            place.write("work/fake/.git", "gitdir: own\n");
        }),
        ("a directory that names it, but lies outside", |place| {
            place.git(
                "secret",
                &["config", "core.worktree", &place.at("work/fake").display().to_string()],
            );
            let git = place.at("secret/.git").display().to_string();
            place.write("work/fake/.git", &format!("gitdir: {git}\n"));
        }),
        ("a link to another repository", |place| {
            fs::create_dir_all(place.at("work/fake")).unwrap();
            symlink(place.at("secret/.git"), place.at("work/fake/.git")).unwrap();
        }),
    ];
    for (name, make) in forge {
        let place = Place::new();
        secret(&place);
        fs::create_dir_all(place.at("work")).unwrap();
        make(&place);
        let before = place.contents("secret/.git");
        let why = create(&place, "work/fake").await.expect_err(name);
        assert!(matches!(why, WorktreeError::Unsupported(_)), "{name}: {why}");
        assert_eq!(before, place.contents("secret/.git"), "{name}");
    }
}

#[tokio::test]
async fn submodule_and_linked_checkout_work() {
    let place = Place::new();
    place.git(".", &["init", "-q", "-b", "main", "work/lib"]);
    place.write("work/lib/l", "l\n");
    place.git("work/lib", &["add", "-A"]);
    place.git("work/lib", &["commit", "-q", "-m", "l"]);
    place.git("repo", &["submodule", "--quiet", "add", "../work/lib", "sub"]);
    let worktree = create(&place, "repo/sub").await.unwrap();
    fs::write(worktree.tree.join("l"), "changed\n").unwrap();
    place.worktrees.apply("t", Target::Index, false, None).await.unwrap();
    assert_eq!(place.git("repo/sub", &["status", "--porcelain"]), "M  l");
    place.worktrees.discard("t", false).await.unwrap();
    place.git("repo", &["worktree", "add", "-q", "../work/linked"]);
    create(&place, "work/linked").await.unwrap();
}

#[tokio::test]
async fn programs_of_repository_never_run() {
    let place = Place::new();
    let marker = place.at("marker");
    let script = place.at("script");
    fs::write(&script, format!("#!/bin/sh\ntouch '{}'\ncat\n", marker.display())).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let script = script.display().to_string();
    for name in [
        "core.fsmonitor",
        "core.sshCommand",
        "core.editor",
        "core.pager",
        "core.askPass",
        "gpg.program",
        "filter.evil.clean",
        "filter.evil.smudge",
        "filter.evil.process",
        "merge.evil.driver",
        "diff.evil.textconv",
        "diff.external",
        "uploadpack.packObjectsHook",
        "core.alternateRefsCommand",
    ] {
        place.git("repo", &["config", name, &script]);
    }
    place.git("repo", &["config", "commit.gpgSign", "true"]);
    place.write("repo/.git/info/attributes", "src/* merge=evil diff=evil\n");
    for hook in [
        "pre-commit",
        "post-commit",
        "post-checkout",
        "reference-transaction",
        "post-index-change",
        "pre-auto-gc",
    ] {
        let hook = place.at("repo/.git/hooks").join(hook);
        fs::create_dir_all(hook.parent().unwrap()).unwrap();
        fs::copy(place.at("script"), hook).unwrap();
    }
    let worktree = create(&place, "repo").await.unwrap();
    fs::write(worktree.tree.join("a"), "changed\n").unwrap();
    fs::write(worktree.tree.join("src/b"), "changed\n").unwrap();
    let branch = Target::Branch("b".to_owned());
    place.worktrees.apply("t", branch, false, None).await.unwrap();
    let commit = Target::Commit { message: "x".to_owned() };
    place.worktrees.apply("t", commit, false, None).await.unwrap();
    place.worktrees.retire("t", false).await.unwrap();
    assert!(!marker.exists(), "a program of the repository ran");
}

#[tokio::test]
async fn settings_of_repository_show_no_other_file() {
    let place = Place::new();
    place.write("hush", "hush-hush\n[user]\n\tname = hush-hush\n\temail = h@h\n");
    let hush = place.at("hush").display().to_string();
    place.write(".gitconfig", "");
    for name in ["core.excludesFile", "core.attributesFile", "include.path"] {
        place.git("repo", &["config", name, &hush]);
    }
    let worktree = create(&place, "repo").await.unwrap();
    let text = |name: &str| fs::read_to_string(worktree.tree.join(".git").join(name)).unwrap();
    assert!(!text("info/exclude").contains("hush") && !text("config").contains("hush"));
    assert_eq!(git_in(&worktree.tree, &["status", "--porcelain"]), "");
}

#[tokio::test]
async fn dangerous_paths_of_base_are_refused() {
    let place = Place::new();
    fs::write(place.at("blob"), "x").unwrap();
    let blob = place.git("repo", &["hash-object", "-w", "../blob"]);
    for (mode, name) in
        [("100644", ".git"), ("100644", ".."), ("120000", ".gitmodules"), ("100644", "git~1")]
    {
        let id: Vec<u8> = (0..40)
            .step_by(2)
            .map(|at| u8::from_str_radix(&blob[at..at + 2], 16).unwrap())
            .collect();
        fs::write(place.at("raw"), [format!("{mode} {name}\0").as_bytes(), &id].concat()).unwrap();
        let tree = place.git("repo", &["hash-object", "-t", "tree", "-w", "--literally", "../raw"]);
        let commit = place.git("repo", &["commit-tree", &tree, "-m", "x"]);
        place.git("repo", &["update-ref", "HEAD", &commit]);
        let why = create(&place, "repo").await.expect_err(name);
        assert!(why.to_string().contains("a path that git refuses"), "{name}: {why}");
    }
}
