//! Programs that their owner retires or drops.

use super::*;

#[tokio::test]
async fn retired_program_exits_or_is_killed() {
    let hub = Fixture::new(System::Linux);
    // More than the capacity of a pipe: nobody reads it, and the program does not block.
    let saves = "cat >/dev/null; head -c 300000 /dev/zero; echo all >saved";
    hub.sh(saves).await.retire(PATIENCE);
    timeout(PATIENCE, hub.supervisor.ended("task-1")).await.unwrap();
    assert_eq!(fs::read_to_string(hub.data.path().join("saved")).unwrap(), "all\n");

    hub.sh("cat >/dev/null; while :; do echo more; done").await.retire(GRACE);
    hub.sh(STUBBORN).await.retire(GRACE);
    timeout(PATIENCE, hub.supervisor.ended("task-1")).await.unwrap();
    assert!(hub.alive().is_empty(), "{:#?}", hub.alive());
}

#[tokio::test]
async fn dropping_child_or_start_kills_program() {
    let hub = Fixture::new(System::Linux);
    let (held, launch) = (Arc::new(()), hub.launch("/bin/sh", &["-c", STUBBORN]));
    let mut child = hub.supervisor.spawn_holding(launch, Arc::clone(&held)).await.unwrap();
    read_to(&mut child, "ready\n").await;
    drop(child);
    assert_eq!((hub.supervisor.running(), Arc::strong_count(&held)), (1, 2));
    timeout(PATIENCE, hub.supervisor.ended("task-1")).await.unwrap();
    assert_eq!((hub.alive().len(), Arc::strong_count(&held)), (0, 1), "{:#?}", hub.alive());

    for micros in [0, 200, 1_000, 3_000] {
        let start = hub.supervisor.spawn(hub.launch("/bin/sleep", &["1000"]));
        let _ = timeout(Duration::from_micros(micros), start).await;
    }
    timeout(PATIENCE, hub.supervisor.ended("task-1")).await.unwrap();
    assert!(hub.alive().is_empty(), "{:#?}", hub.alive());
}
