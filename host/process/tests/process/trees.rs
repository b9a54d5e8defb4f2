//! Ends of process trees: by their owner, their hub, or a killed minder.

use super::*;

test_on_each_system! {
    group_dies_with_program,
    group_dies_by_kill,
    killed_minder_ends_only_its_group,
    killed_hub_leaves_no_group,
    fork_storm_of_group_ends,
    program_heeding_sigterm_exits_early,
    shutdown_ends_trees_and_refuses_starts,
}

/// Starts children in the program's group, with a program that ignores SIGTERM.
const GROUP: &str = "trap '' TERM; (sleep 1000 & wait) & (sh -c 'sleep 1000 & echo ready; wait' &) ; \
    while :; do sleep 1000; done";

async fn group_dies_with_program(system: System) {
    let hub = Fixture::new(system);
    let mut child = hub.sh("sleep 1000 & nohup sleep 1000 & (sleep 1000 &) ; echo done").await;
    // The children hold the pipe as well, so `finish` would not return before their end.
    let (stdout, _, exit) = finish(&mut child).await;
    assert_eq!((&*stdout, exit), (&b"done\n"[..], ProgramExit::Code(0)));
    assert!(hub.alive().is_empty(), "{:#?}", hub.alive());
}

/// Kills a program that says that it is ready; nothing of it is left after the grace.
async fn dies_by_kill(hub: &Fixture, script: &str) {
    let mut child = hub.sh(script).await;
    read_to(&mut child, "ready\n").await;
    let begin = Instant::now();
    child.kill();
    assert_eq!(finish(&mut child).await.2, ProgramExit::Signal(9));
    let took = begin.elapsed();
    assert!(took >= GRACE && took < GRACE + Duration::from_secs(5), "{took:?}");
    assert!(hub.alive().is_empty(), "{:#?}", hub.alive());
}

async fn group_dies_by_kill(system: System) {
    let hub = Fixture::new(system);
    dies_by_kill(&hub, GROUP).await;
}

/// The group is known to the hub, also without its leader.
async fn killed_minder_ends_only_its_group(system: System) {
    let hub = Fixture::new(system);
    let mut sibling = hub.start("/bin/cat", &[]).await;
    for keeps_leader in [true, false] {
        let mut child = hub.sh(GROUP).await;
        read_to(&mut child, "ready\n").await;
        let found = hub.alive();
        let of = |minds: bool| {
            let ours = |it: &&Found| it.command.contains("echo ready");
            let mut ours =
                found.iter().filter(ours).filter(|it| it.command.contains(SUPERVISE) == minds);
            ours.next().unwrap().pid
        };
        kill_process(of(true), Signal::STOP).unwrap();
        if !keeps_leader {
            kill_process(of(false), Signal::KILL).unwrap();
        }
        kill_process(of(true), Signal::KILL).unwrap();
        assert_eq!(finish(&mut child).await.2, ProgramExit::Signal(9));
        assert_eq!(hub.alive().len(), 2, "the sibling and its minder: {:#?}", hub.alive());
    }
    sibling.write_stdin(b"still here\n").await.unwrap();
    read_to(&mut sibling, "still here\n").await;
    sibling.close_stdin();
    assert_eq!(finish(&mut sibling).await.2, ProgramExit::Code(0));
    assert_eq!(hub.supervisor.running(), 0);
}

async fn killed_hub_leaves_no_group(system: System) {
    let data = tempfile::tempdir().unwrap();
    let (mut hub, _stdout) = another_hub(system, data.path(), "", GROUP);
    assert!(alive(data.path()).len() >= 5, "hub, minder, program, and what it started");
    hub.kill().unwrap();
    hub.wait().unwrap();
    // Without a subreaper, the group exists until the first process has reaped its members.
    nobody_within(data.path(), PATIENCE).await;
}

async fn fork_storm_of_group_ends(system: System) {
    let hub = Fixture::new(system);
    let storm = "trap '' TERM; i=0; while [ $i -lt 50 ]; do i=$((i+1)); \
        sh -c 'sleep 1000 & sleep 1000' & done; echo ready; while :; do sh -c 'sleep 1000 &'; done";
    let mut child = hub.sh(storm).await;
    read_to(&mut child, "ready\n").await;
    count_reaches(hub.data.path(), 100, "sleep 1000").await;
    child.kill();
    assert_eq!(finish(&mut child).await.2, ProgramExit::Signal(9));
    assert!(hub.alive().is_empty(), "{:#?}", hub.alive());
}

#[tokio::test]
async fn background_children_die_with_program() {
    let hub = Fixture::new(System::Linux);
    let mut child = hub.sh("sleep 1000 & setsid sleep 1000 & echo done").await;
    // The children hold the pipe as well, so `finish` would not return before their end.
    assert_eq!(finish(&mut child).await, (b"done\n".to_vec(), vec![], ProgramExit::Code(0)));
    assert!(hub.alive().is_empty(), "{:#?}", hub.alive());
}

#[tokio::test]
async fn kill_ends_sessions_and_daemons() {
    let hub = Fixture::new(System::Linux);
    dies_by_kill(&hub, STUBBORN).await;
    assert_eq!(hub.supervisor.running(), 0);
}

async fn program_heeding_sigterm_exits_early(system: System) {
    let data = tempfile::tempdir().unwrap();
    let hub = Fixture { supervisor: supervisor(system, data.path(), PATIENCE * 2), data };
    let mut child =
        hub.sh("trap 'echo bye; exit 5' TERM; echo ready; while :; do sleep 0.02; done").await;
    read_to(&mut child, "ready\n").await;
    child.kill();
    let (stdout, _, exit) = finish(&mut child).await; // the shell reports its `sleep` on stderr
    assert_eq!((&stdout[..], exit), (&b"bye\n"[..], ProgramExit::Code(5)));
}

async fn shutdown_ends_trees_and_refuses_starts(system: System) {
    let hub = Fixture::new(system);
    let mut children = Vec::new();
    for owner in ["task-1", "task-2", "task-2"] {
        let launch = Launch { owner: owner.to_owned(), ..hub.launch("/bin/sleep", &["1000"]) };
        children.push(hub.supervisor.spawn(launch).await.unwrap());
    }
    assert_eq!(hub.supervisor.running(), 3);
    drop(children.remove(0));
    timeout(PATIENCE, hub.supervisor.ended("task-1")).await.unwrap();
    assert_eq!(hub.supervisor.running(), 2);

    timeout(PATIENCE, hub.supervisor.shutdown()).await.unwrap();
    assert_eq!(hub.supervisor.running(), 0);
    assert!(hub.alive().is_empty(), "{:#?}", hub.alive());
    assert_eq!(finish(&mut children[0]).await.2, ProgramExit::Signal(15));
    let error = hub.supervisor.spawn(hub.launch("/bin/true", &[])).await.unwrap_err();
    assert!(matches!(error, SpawnError::ShuttingDown { .. }), "{error}");
}

#[tokio::test]
async fn a_fork_storm_ends() {
    let hub = Fixture::new(System::Linux);
    let storm = "trap '' TERM; i=0; while [ $i -lt 50 ]; do i=$((i+1)); \
        setsid sh -c 'sleep 1000 & sleep 1000' & done; echo ready; \
        while :; do sh -c 'setsid sleep 1000 &'; done";
    let mut child = hub.sh(storm).await;
    read_to(&mut child, "ready\n").await;
    count_reaches(hub.data.path(), 100, "sleep 1000").await;
    let begin = Instant::now();
    child.kill();
    assert_eq!(finish(&mut child).await.2, ProgramExit::Signal(9));
    assert!(begin.elapsed() < GRACE + Duration::from_secs(6), "{:?}", begin.elapsed());
    assert!(hub.alive().is_empty(), "{:#?}", hub.alive());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_programs_run_at_once() {
    for system in SYSTEMS {
        a_hundred_programs_run(system).await;
    }
}

async fn a_hundred_programs_run(system: System) {
    let hub = Fixture::new(system);
    let mut runs = tokio::task::JoinSet::new();
    for number in 0..100 {
        let owner = format!("task-{number}");
        let launch = Launch { owner, ..hub.launch("/bin/cat", &[]) };
        let supervisor = hub.supervisor.clone();
        runs.spawn(async move {
            let mut child = supervisor.spawn(launch).await.unwrap();
            let line = format!("{number}\n");
            child.write_stdin(line.as_bytes()).await.unwrap();
            assert_eq!(read_to(&mut child, "\n").await, line);
            child
        });
    }
    let mut children = timeout(PATIENCE, runs.join_all()).await.expect("all answer");
    assert_eq!(hub.supervisor.running(), 100);
    for child in &mut children {
        child.close_stdin();
    }
    for child in &mut children {
        assert_eq!(finish(child).await.2, ProgramExit::Code(0));
    }
    assert_eq!(hub.supervisor.running(), 0);
    nobody_within(hub.data.path(), PATIENCE).await;
}

#[tokio::test]
async fn killed_minder_takes_only_its_tree() {
    let hub = Fixture::new(System::Linux);
    let mut sibling = hub.start("/bin/cat", &[]).await;
    let path = hub.data.path().display();
    // The last process sheds its environment; its session still identifies it.
    let script = format!(
        "setsid sleep 1000 & env -i /bin/sh -c 'echo ready; while :; do /bin/sleep 1; done' {path}"
    );
    let mut child = hub.sh(&script).await;
    read_to(&mut child, "ready\n").await;
    let minders = count_reaches(hub.data.path(), 2, SUPERVISE).await;
    let minder = minders.into_iter().find(|it| it.command.contains("env -i")).unwrap();
    kill_process(minder.pid, Signal::KILL).unwrap();
    assert_eq!(finish(&mut child).await.2, ProgramExit::Signal(9));

    sibling.write_stdin(b"still here\n").await.unwrap();
    read_to(&mut sibling, "still here\n").await;
    sibling.close_stdin();
    assert_eq!(finish(&mut sibling).await.2, ProgramExit::Code(0));
    assert_eq!(hub.supervisor.running(), 0);
    nobody_within(hub.data.path(), Duration::from_secs(1)).await;
}

#[tokio::test]
async fn killed_hub_leaves_no_process() {
    let data = tempfile::tempdir().unwrap();
    let (mut hub, _stdout) = another_hub(System::Linux, data.path(), "", STUBBORN);
    assert!(alive(data.path()).len() >= 5, "hub, minder, program, and what it started");
    hub.kill().unwrap();
    hub.wait().unwrap();
    nobody_within(data.path(), GRACE + Duration::from_secs(1)).await;
}

#[tokio::test]
async fn leftovers_are_swept_at_next_start() {
    let data = tempfile::tempdir().unwrap();
    let other = Fixture::new(System::Linux);
    let _other_hubs = other.start("/bin/sleep", &["1000"]).await;
    let mut users = tokio::process::Command::new("/bin/sleep");
    let users = users.arg("1000").env("A2A_HUB_DATA", data.path()).kill_on_drop(true).spawn();
    let mut users = users.unwrap();
    let (mut hub, _stdout) = another_hub(System::Linux, data.path(), "", STUBBORN);
    // Stopped, so that the hub cannot clean up after its minder.
    kill_process(Pid::from_child(&hub), Signal::STOP).unwrap();
    let minder = count_reaches(data.path(), 1, SUPERVISE).await.remove(0);
    kill_process(minder.pid, Signal::KILL).unwrap();
    hub.kill().unwrap();
    hub.wait().unwrap();
    assert!(alive(data.path()).len() >= 4, "{:#?}", alive(data.path()));

    let path = data.path().to_path_buf();
    let swept =
        tokio::task::spawn_blocking(move || Supervisor::sweep_leftovers(System::Linux, &path));
    assert!(swept.await.unwrap() >= 4);
    assert_eq!(users.try_wait().unwrap(), None, "the user's own program is no hub's");
    users.kill().await.unwrap();
    nobody_within(data.path(), Duration::from_secs(1)).await;
    assert_eq!(other.alive().len(), 2, "another hub's program, and its minder, are left alone");
}
