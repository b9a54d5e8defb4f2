//! Files of a task's working directory: readable and writable as granted, and nothing beyond.

use crate::stage::Stage;
use a2a_hub_core::grant::workspace::WorkspaceAccess::{self, Read, ReadWrite};
use a2a_hub_runtime::Limits;
use std::{fs, os::unix::fs::symlink, path::Path};
use tempfile::TempDir;

/// A directory with a file, and with links that lead outside.
fn place() -> (TempDir, TempDir) {
    let (place, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::write(outside.path().join("secret"), "secret").unwrap();
    fs::write(place.path().join("a.txt"), "hello").unwrap();
    symlink(outside.path(), place.path().join("out")).unwrap();
    symlink(outside.path().join("secret"), place.path().join("absolute")).unwrap();
    let up = Path::new("..").join(outside.path().file_name().unwrap()).join("secret");
    symlink(up, place.path().join("relative")).unwrap();
    symlink("a.txt", place.path().join("inside")).unwrap();
    (place, outside)
}

fn stage(place: &TempDir, access: WorkspaceAccess) -> Stage {
    let mut stage = Stage::granting();
    stage.grant.workspace = Some(access);
    Stage { workspace: Some(place.path().to_owned()), ..stage }
}

#[tokio::test]
async fn workspace_granted() {
    let (place, _outside) = place();
    let stage = stage(&place, ReadWrite);
    assert_eq!(stage.said("list /workspace").await, "a.txt absolute inside out relative");
    assert_eq!(stage.said("show /workspace/inside").await, "hello");
    assert_eq!(stage.said("write /workspace/b.txt one two").await, "7 bytes");
    assert_eq!(fs::read_to_string(place.path().join("b.txt")).unwrap(), "one two");
}

#[tokio::test]
async fn workspace_denied() {
    let (place, _outside) = place();
    let mut none = stage(&place, Read);
    none.grant.workspace = None;
    for attempt in ["list /workspace", "list /", "show /workspace/a.txt", "write /workspace/b x"] {
        let said = none.said(attempt).await;
        assert!(said.starts_with("refused: "), "{attempt}: {said}");
    }
    let reader = stage(&place, Read);
    assert_eq!(reader.said("show /workspace/a.txt").await, "hello");
    for attempt in
        ["write /workspace/b x", "write /workspace/a.txt x", "make-many 1", "link a.txt b"]
    {
        let said = reader.said(attempt).await;
        assert!(said.starts_with("refused: "), "{attempt}: {said}");
    }
    assert_eq!(fs::read_to_string(place.path().join("a.txt")).unwrap(), "hello");
}

#[tokio::test]
async fn paths_outside_workspace_are_refused() {
    let (place, outside) = place();
    let stage = stage(&place, ReadWrite);
    for attempt in [
        "show /workspace/absolute",
        "show /workspace/relative",
        "show /workspace/out/secret",
        "show /workspace/../etc/passwd",
        "show /workspace/out/../a.txt",
        "list /workspace/out",
        "list /workspace/..",
        "list /",
        "write /workspace/out/new x",
        "write /workspace/absolute x",
        "write /workspace/relative x",
        "link /etc/passwd link",
        "link ../.. link",
        "link a.txt link",
        "touch ../a.txt",
        "touch absolute",
        "touch out/secret",
        "touch /etc/passwd",
        "move /workspace/a.txt /workspace/../a.txt",
        "move /workspace/a.txt /workspace/out/a.txt",
        "move /workspace/a.txt /tmp/a.txt",
        "move /workspace/out/secret /workspace/mine",
        "show /workspace/%2e%2e/etc/passwd",
        "show /workspace/..%2fsecret",
        "show /workspace/..\\secret",
        "show /workspace//../../etc/passwd",
        "show /proc/self/environ",
        "show /dev/stdin",
    ] {
        let said = stage.said(attempt).await;
        assert!(said.starts_with("refused: "), "{attempt}: {said}");
    }
    assert_eq!(fs::read_to_string(outside.path().join("secret")).unwrap(), "secret");
    assert!(!outside.path().join("new").exists() && !place.path().join("link").exists());
}

/// Its other end may never open, and the hub's thread that waits for it cannot be stopped.
#[tokio::test]
async fn fifo_is_not_opened() {
    let (place, _outside) = place();
    let pipe = place.path().join("pipe");
    let kind = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, kind, rustix::fs::Mode::RWXU, 0).unwrap();
    symlink("pipe", place.path().join("to-pipe")).unwrap();
    let stage = stage(&place, ReadWrite);
    for attempt in [
        "show /workspace/pipe",
        "write /workspace/pipe x",
        "show /workspace/to-pipe",
        "touch pipe",
        "touch to-pipe",
    ] {
        let said = stage.said(attempt).await;
        assert!(said.starts_with("refused: "), "{attempt}: {said}");
    }
}

#[tokio::test]
async fn revocation_refuses_access_at_once() {
    let (place, _outside) = place();
    let stage = stage(&place, ReadWrite);
    // The guest causes the revocation itself, in the middle of its write.
    let said = stage.said("write /workspace/revoked now").await;
    assert!(said.starts_with("refused: "), "{said}");
    for attempt in ["show /workspace/a.txt", "list /workspace", "write /workspace/b x"] {
        let said = stage.said(attempt).await;
        assert!(said.starts_with("refused: "), "{attempt}: {said}");
    }
}

#[tokio::test]
async fn workspace_writes_are_limited() {
    let (place, _outside) = place();
    let limits = Limits { workspace_bytes: 3 << 20, workspace_files: 10, ..Limits::default() };
    let stage = Stage { limits, ..stage(&place, ReadWrite) };
    assert_eq!(stage.said("write-on 2").await, "2 MiB");
    let said = stage.said("write-on 300").await;
    assert!(said.starts_with("refused: "), "{said}");
    assert!(fs::metadata(place.path().join("long")).unwrap().len() <= 3 << 20);
    assert_eq!(stage.said("make-many 10").await, "10 files");
    assert!(stage.said("make-many 11").await.starts_with("refused: "));
    assert_eq!(stage.said("stretch 1000000").await, "1000000 bytes");
    assert!(stage.said("stretch 4000000000").await.starts_with("refused: "), "a hole counts, too");
    assert!(fs::metadata(place.path().join("hole")).unwrap().len() <= 3 << 20);
}
