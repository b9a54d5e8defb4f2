//! Directories and files that are swapped for links while the hub uses them (CWE-367, CWE-59): no
//! program starts outside of its workspaces, no confined program sees a file that its agent was not
//! granted, and the hub writes no file through such a link.

use crate::{
    hub::InProcessHub,
    stage::{GRANT, artifact, hub_with_guest, said, send},
};
use a2a_hub_tests::{Client, message_to, test_guests};
use anyhow::{Result, ensure};
use serde_json::json;
use std::{
    fs, io,
    os::unix::fs::symlink,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread,
};

/// Number of programs to start while their directory is swapped.
const STARTS: usize = 20;

/// Maximum number of attempts: while the directory is missing, or a link to the outside, no program
/// starts.
const MOST_TRIES: usize = 2_000;

/// Alternates `place` between the directory `inside` and a link to `outside`, until `stop`.
fn swap(place: &Path, inside: &Path, outside: &Path, stop: &AtomicBool) -> io::Result<()> {
    while !stop.load(Relaxed) {
        fs::rename(place, inside)?;
        symlink(outside, place)?;
        fs::remove_file(place)?;
        fs::rename(inside, place)?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn no_plain_program_starts_behind_swapped_link() -> Result<()> {
    let config = format!("{GRANT}\n[agents.plain]\nconfine = false\ngrant.process.sh = {{}}");
    let hub = InProcessHub::builder().config(config).plugin("plain", test_guests()?);
    let hub = hub.start().await?;
    let (outside, client) = (tempfile::tempdir()?, Client::http(&hub));
    let (place, inside) = (hub.workspace().join("place"), hub.workspace().join("inside"));
    fs::create_dir(&place)?;
    let stop = Arc::new(AtomicBool::new(false));
    let (stops, to) = (Arc::clone(&stop), outside.path().canonicalize()?);
    let (swapped, forth) = (place.clone(), to.clone());
    let swapping = thread::spawn(move || swap(&swapped, &inside, &forth, &stops));
    let mut started = 0;
    for _ in 0..MOST_TRIES {
        let mut message = message_to("plain", "sh pwd -P");
        message["message"]["metadata"]["workingDirectory"] = json!(place);
        let task = client.call("message/send", message).await?;
        if said(&task) == "exit 0" {
            started += 1;
            let directory = artifact(&task);
            ensure!(Path::new(directory.trim_end()) != to, "it started outside: {task}");
        }
        if started == STARTS {
            break;
        }
    }
    stop.store(true, Relaxed);
    swapping.join().expect("the thread that swaps")?;
    assert_eq!(started, STARTS);
    Ok(())
}

/// A program sees the directory of its instance, and may write there.
#[tokio::test]
async fn next_program_sees_nothing_behind_planted_link() -> Result<()> {
    let hub = hub_with_guest().await?;
    let client = Client::http(&hub);
    let outside = tempfile::tempdir()?;
    fs::write(outside.path().join("secret"), "hush")?;
    let script = format!(
        "shells cd $TMPDIR/.. && mv tmp moved && ln -s {} tmp && echo planted\ncat /tmp/secret; echo x > /tmp/planted",
        outside.path().display()
    );
    let task = send(&client, "guest", &script).await?;
    assert_eq!(artifact(&task), "planted\n", "{task}");
    assert!(said(&task).starts_with("unavailable: "), "{task}");
    assert!(!outside.path().join("planted").exists());
    Ok(())
}

#[tokio::test]
async fn hub_writes_no_file_through_planted_link() -> Result<()> {
    let hub = hub_with_guest().await?;
    let client = Client::http(&hub);
    let outside = tempfile::tempdir()?;
    let script = format!(
        "sh-and-put cd $TMPDIR/.. && mv given moved && ln -s {} given",
        outside.path().display()
    );
    let task = send(&client, "guest", &script).await?;
    assert!(said(&task).starts_with("unavailable: write the file"), "{task}");
    assert_eq!(fs::read_dir(outside.path())?.count(), 0);
    Ok(())
}
