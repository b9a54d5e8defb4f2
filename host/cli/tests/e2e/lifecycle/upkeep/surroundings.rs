//! Tests of commands in odd surroundings: a directory whose name is not UTF-8, a home that cannot
//! be written, a message in another encoding, and an output that nobody reads.

use crate::{
    command_line::{Ran, command, finish},
    stage::home,
};
use anyhow::Result;
use std::{
    ffi::OsStr,
    fs::{self, File},
    io::pipe,
    os::unix::{ffi::OsStrExt as _, fs::symlink},
    path::Path,
    process::Stdio,
};

/// Runs a command of the hub of `home` in another directory, with `input` on standard input.
async fn typed(home: &Path, within: &Path, args: &[&str], input: &[u8]) -> Result<Ran> {
    let file = home.join("input");
    fs::write(&file, input)?;
    let mut command = command(&home.join("hub.sock"), home, args)?;
    command.current_dir(within).stdin(Stdio::from(File::open(file)?));
    finish(command).await
}

#[tokio::test]
async fn hub_starts_in_directory_that_is_no_utf8() -> Result<()> {
    let dir = home()?;
    let home = dir.path();
    let within = home.join(OsStr::from_bytes(b"caf\xe9"));
    fs::create_dir(&within)?;
    let run = async |args: &[&str]| typed(home, &within, args, b"").await;
    for step in [&["start", "--no-http"][..], &["restart"], &["status"]] {
        let ran = run(step).await?;
        assert_eq!(ran.code, Some(0), "{step:?}: {}", ran.stderr);
    }
    let refused = run(&["send", "echo", "hello"]).await?;
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("`--cwd`"), "{}", refused.stderr);

    let refused = typed(home, home, &["send", "echo", "-"], b"caf\xe9").await?;
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("byte 4 of it is not UTF-8"), "{}", refused.stderr);
    assert!(refused.stderr.contains("iconv"), "{}", refused.stderr);
    let marked = "\u{feff}café".as_bytes();
    let sent = typed(home, home, &["send", "echo", "-"], marked).await?;
    assert_eq!((sent.code, sent.stdout.as_str()), (Some(0), "café\n"), "{}", sent.stderr);

    let (reader, writer) = pipe()?;
    drop(reader);
    let mut unread = command(&home.join("hub.sock"), home, &["tasks"])?;
    let status = unread.stdout(writer).status().await?;
    assert_eq!(status.code(), Some(0), "as with `tasks | head -1`");
    assert_eq!(run(&["stop"]).await?.code, Some(0));
    Ok(())
}

#[tokio::test]
async fn unusable_data_directory_is_named() -> Result<()> {
    let dir = home()?;
    symlink(dir.path().join("none/none"), dir.path().join("dangling"))?;
    let odd = dir.path().join(OsStr::from_bytes(b"caf\xe9"));
    fs::create_dir(&odd)?;
    for (within, data, why) in [
        (dir.path(), "dangling", "make its data directory"),
        (&*odd, "data", "the path of its data directory"),
    ] {
        let args = ["--data-dir", data, "start", "--no-http"];
        let refused = typed(dir.path(), within, &args, b"").await?;
        assert_eq!(refused.code, Some(2));
        let shown = within.join(data).display().to_string();
        for part in [why, &shown, "`--data-dir`"] {
            assert!(refused.stderr.contains(part), "{part}: {}", refused.stderr);
        }
    }
    Ok(())
}
