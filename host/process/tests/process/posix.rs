//! Limits of a system with POSIX only. `docs/decisions/0015-a-port-to-macos.md` lists them.

use super::*;
use a2a_hub_process::{
    ProcessOrigin, TreeOwner,
    confine::{Confinement, Network, Shortfall, Step},
};

/// Starts a process in a new session, and waits until it has left the program's group.
const ESCAPE: &str = "setsid sh -c 'echo ready; sleep 1001' >&2 & echo started; wait";

/// Waits for the escaped process, which prints to standard error.
async fn escaped(hub: &Fixture) -> Pid {
    let found = count_reaches(hub.data.path(), 1, "sleep 1001").await;
    let sessions = || {
        let found = hub.alive().into_iter().filter(|it| it.command.starts_with("sleep 1001"));
        found.map(|it| it.pid).next()
    };
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(pid) = sessions() {
            return pid;
        }
        assert!(Instant::now() < deadline, "{found:#?}");
        sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn new_session_outlives_its_program() {
    let hub = Fixture::new(System::Posix);
    let mut child = hub.sh(ESCAPE).await;
    read_to(&mut child, "started\n").await;
    let left = escaped(&hub).await;
    child.kill();
    assert_eq!(finish(&mut child).await.2, ProgramExit::Signal(15));
    assert_eq!(hub.supervisor.running(), 0);
    let alive: Vec<_> = hub.alive().iter().map(|it| it.pid).collect();
    assert!(alive.contains(&left), "no minder finds it");
    let path = hub.data.path().to_path_buf();
    let sweep = |system| {
        let path = path.clone();
        tokio::task::spawn_blocking(move || Supervisor::sweep_leftovers(system, &path))
    };
    assert_eq!(sweep(System::Posix).await.unwrap(), 0);
    assert!(sweep(System::Linux).await.unwrap() >= 1, "Linux finds its marker");
    nobody_within(hub.data.path(), PATIENCE).await;
}

#[tokio::test]
async fn confined_program_is_refused() {
    let hub = Fixture::new(System::Posix);
    let ran = hub.data.path().join("ran");
    let script = format!("echo > {}", ran.display());
    let confinement = Some(Confinement::default());
    let launch = Launch { confinement, ..hub.launch("/bin/sh", &["-c", &script]) };
    let refused = hub.supervisor.spawn(launch).await.unwrap_err();
    assert_eq!(
        refused.to_string(),
        "start /bin/sh: it was not confined, so it was not started: failed to confine programs on \
         this system: Function not implemented (os error 38)"
    );
    assert!(!ran.exists());

    let support = hub.supervisor.support().await.unwrap();
    let why = support.allows(&Network::Nothing).unwrap_err();
    let of_system = matches!(&why, Shortfall::Step { why } if why.step == Step::System);
    assert!(of_system && why.to_string().contains("run the hub on Linux"), "{why}");
    assert_eq!(hub.supervisor.running(), 0);
    assert!(hub.alive().is_empty(), "{:#?}", hub.alive());
}

#[tokio::test]
async fn tree_is_neither_pruned_nor_measured() {
    let hub = Fixture::new(System::Posix);
    let mut child = hub.start("/bin/cat", &[]).await;
    child.mark_baseline().await;
    assert_eq!((child.prune().await, child.resident().await), (None, None));
    child.close_stdin();
    assert_eq!(finish(&mut child).await.2, ProgramExit::Code(0));
}

#[tokio::test]
async fn callers_are_known_by_session_only() {
    let hub = Fixture::new(System::Posix);
    let supervisor = hub.supervisor.clone().adopting_orphans().unwrap();
    let mut child = supervisor.spawn(hub.launch("/bin/sh", &["-c", ESCAPE])).await.unwrap();
    read_to(&mut child, "started\n").await;
    let left = escaped(&hub).await;
    let program = hub.alive().into_iter().find(|it| it.command.starts_with("/bin/sh -c")).unwrap();
    let kin = |pid: Pid| supervisor.origin(pid.as_raw_pid());
    let is_tree = |kin: &ProcessOrigin| matches!(kin, ProcessOrigin::Tree(TreeOwner { owner, .. }) if owner == "task-1");
    assert!(is_tree(&kin(program.pid)), "{:?}", kin(program.pid));
    assert_eq!(kin(left), ProcessOrigin::Unknown, "it left the session");
    let parent = rustix::process::getppid().unwrap();
    assert_eq!(kin(parent), ProcessOrigin::Unknown, "it looks the same as an escaped program");
    assert_eq!(kin(rustix::process::getpid()), ProcessOrigin::Hub);
    assert_eq!(
        supervisor.origins_of_sockets(&[1, 2]),
        [ProcessOrigin::Unknown, ProcessOrigin::Unknown]
    );
    child.kill();
    finish(&mut child).await;
    kill_process(left, Signal::KILL).unwrap();
    nobody_within(hub.data.path(), PATIENCE).await;
}
