//! A tree that is transferred from one owner to the next, without its background processes.

use super::python::{HEADLESS, in_a_thread};
use super::*;
use a2a_hub_process::{ProcessOrigin, TreeOwner};

/// All ways of a shell to start a process that outlives it.
const BACKGROUND: &str = "\
    sleep 1001 & \
    nohup sleep 1002 >/dev/null 2>&1 & \
    setsid sleep 1003 & \
    (setsid sh -c 'sleep 1004 & sleep 1005 & wait' & ) ; \
    sh -c 'trap \"\" TERM INT HUP; sleep 1006' & \
    (sh -c '(exec setsid nohup sleep 1007) & ') & ";

/// Runs each line of its input and prints a dot after each.
const SHELL: &str = "while read -r line; do eval \"$line\"; echo .; done";

fn sleepers(hub: &Fixture) -> usize {
    hub.alive().iter().filter(|found| found.command.starts_with("sleep 100")).count()
}

/// Waits for this number of sleepers: a shell continues before its forked child runs `exec`.
async fn sleepers_are(hub: &Fixture, wanted: usize) {
    let deadline = Instant::now() + PATIENCE;
    while sleepers(hub) < wanted && Instant::now() < deadline {
        sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(sleepers(hub), wanted, "{:#?}", hub.alive());
}

async fn does(child: &mut Child, line: &str) -> String {
    child.write_stdin(format!("{line}\n").as_bytes()).await.unwrap();
    read_to(child, ".\n").await
}

#[tokio::test]
async fn prune_kills_background_and_spares_helpers() {
    let hub = Fixture::new(System::Linux);
    let mut child = hub.sh(&format!("sleep 2000 & {SHELL}")).await;
    let pid = does(&mut child, "echo $$").await;
    child.mark_baseline().await;
    let before = child.resident().await.unwrap();
    assert!(before > 1 << 20, "a shell and its helper take up memory: {before}");

    does(&mut child, BACKGROUND).await;
    sleepers_are(&hub, 7).await;
    let pruned = child.prune().await.unwrap();
    assert!(pruned.killed >= 7 && pruned.resident > 1 << 20, "{pruned:?}");
    assert_eq!(sleepers(&hub), 0, "{:#?}", hub.alive());
    let helpers = hub.alive().iter().filter(|it| it.command.starts_with("sleep 2000")).count();
    assert_eq!(helpers, 1, "what it had before stays");
    assert_eq!(does(&mut child, "echo $$").await, pid, "and so does it");
    assert_eq!(child.prune().await.unwrap().killed, 0);

    // Before the first `mark_baseline`, only the program itself is its own.
    let mut plain = hub.sh(&format!("sleep 0.3; sleep 1000 & {SHELL}")).await;
    does(&mut plain, ":").await;
    sleepers_are(&hub, 1).await;
    assert_eq!(plain.prune().await.unwrap().killed, 1);
    drop((child, plain));
    timeout(PATIENCE, hub.supervisor.ended("task-1")).await.unwrap();
    assert!(hub.alive().is_empty(), "{:#?}", hub.alive());
}

/// The kernel reports a process whose first thread has ended as a zombie without memory, variables
/// and descriptors.
#[tokio::test]
async fn process_without_first_thread_is_killed() {
    let hub = Fixture::new(System::Linux);
    let mut child = hub.sh(SHELL).await;
    does(&mut child, ":").await;
    child.mark_baseline().await;
    let ticks = hub.data.path().join("ticks");
    let tick = "import time\nwhile True:\n    open('ticks', 'a').write('.')\n    time.sleep(0.01)";
    let script = format!("{}\n{HEADLESS}\n", in_a_thread(tick));
    fs::write(hub.data.path().join("headless.py"), script).unwrap();
    let length = || fs::metadata(&ticks).map_or(0, |file| file.len());
    for prunes in [true, false] {
        let begun = length();
        does(&mut child, "python3 headless.py >/dev/null 2>&1 &").await;
        while length() < begun + 20 {
            sleep(Duration::from_millis(10)).await;
        }
        if prunes {
            assert_eq!(child.prune().await.unwrap().killed, 1);
        } else {
            child.kill();
            timeout(PATIENCE, hub.supervisor.ended("task-1")).await.unwrap();
        }
        let last = length();
        sleep(Duration::from_millis(200)).await;
        assert_eq!(length(), last, "it has ended");
    }
}

/// A program that forks as fast as it can and exits: no process of it lives long.
#[tokio::test]
async fn rapidly_forking_program_dies_with_tree() {
    let hub = Fixture::new(System::Linux);
    let mut child = hub.sh(SHELL).await;
    does(&mut child, ":").await;
    child.mark_baseline().await;
    let hop = hub.data.path().join("hop");
    fs::write(&hop, "#!/bin/sh\nsetsid ./hop &\n").unwrap();
    fs::set_permissions(&hop, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    does(&mut child, "./hop").await;
    sleep(Duration::from_millis(200)).await;
    let _ = child.prune().await;
    drop(child);
    timeout(PATIENCE, hub.supervisor.ended("task-1")).await.unwrap();
    assert!(hub.alive().is_empty(), "its tree's end is its end: {:#?}", hub.alive());
}

#[tokio::test]
async fn transferred_tree_counts_for_new_owner() {
    let hub = Fixture::new(System::Linux);
    let mut child = hub.sh(SHELL).await;
    let pid: i32 = does(&mut child, "echo $$").await.lines().next().unwrap().parse().unwrap();
    let ProcessOrigin::Tree(TreeOwner { owner, tree, .. }) = hub.supervisor.origin(pid) else {
        panic!("it is in a tree")
    };
    assert_eq!(owner, "task-1");
    assert!(child.pass_to("task-2"));
    timeout(PATIENCE, hub.supervisor.ended("task-1")).await.unwrap();
    let now = hub.supervisor.of_tree(&tree).unwrap();
    assert_eq!((now.owner.as_str(), now.agent.as_str()), ("task-2", "a"));
    let kin = hub.supervisor.origin(pid);
    assert!(matches!(kin, ProcessOrigin::Tree(TreeOwner { owner, .. }) if owner == "task-2"));
    assert_eq!(hub.supervisor.running(), 1);
    child.kill();
    while !matches!(child.next().await, Output::Exited(_)) {}
    timeout(PATIENCE, hub.supervisor.ended("task-2")).await.unwrap();
    assert!(!child.pass_to("task-3"), "nothing of it is left");
    assert_eq!((hub.supervisor.of_tree(&tree), child.prune().await), (None, None));
}
