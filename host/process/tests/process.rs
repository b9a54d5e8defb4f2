//! Programs and their trees: output, exit, and the end of everything with its owner.
//! These tests run real minders, and find a test's processes by its data directory.

#![expect(clippy::unwrap_used, reason = "the helpers of a test fail it as the test itself would")]
#![expect(clippy::disallowed_methods, reason = "a hub to be killed has to be a process of its own")]

/// Makes two tests of each function, which takes the system to use.
macro_rules! test_on_each_system {
    ($($name:ident),* $(,)?) => {
        mod on_linux {
            $(#[tokio::test]
            async fn $name() {
                super::$name(a2a_hub_process::System::Linux).await;
            })*
        }

        mod on_posix {
            $(#[tokio::test]
            async fn $name() {
                super::$name(a2a_hub_process::System::Posix).await;
            })*
        }
    };
}

#[path = "process/confined.rs"]
mod confined;
#[path = "process/hurried.rs"]
mod hurried;
#[path = "process/kept.rs"]
mod kept;
#[path = "process/posix.rs"]
mod posix;
#[path = "process/python.rs"]
mod python;
#[path = "process/retired.rs"]
mod retired;
#[path = "process/started_in.rs"]
mod started_in;
#[path = "process/trees.rs"]
mod trees;
#[path = "process/worker.rs"]
mod worker;

use std::io::{BufRead, BufReader, Read, Write};
use std::time::{Duration, Instant};
use std::{fs, path::Path, process::Stdio, sync::Arc};

use a2a_hub_process::{
    Child, Launch, MAX_CHUNK, Output, ProgramExit, SUPERVISE, SpawnError, Supervisor, System,
    WorkingDirectory,
};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::time::{sleep, timeout};

/// Longest duration of any step, also in a debug build on a busy machine. A hang is a failure.
const PATIENCE: Duration = Duration::from_secs(30);

/// Time between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_millis(300);

/// Data directory for [`one_hub`]; set when a test starts it.
const HUB_DATA: &str = "PROCESS_TEST_HUB_DATA";

/// System of [`one_hub`].
const HUB_SYSTEM: &str = "PROCESS_TEST_HUB_SYSTEM";

/// Script that [`one_hub`] runs.
const HUB_SCRIPT: &str = "PROCESS_TEST_HUB_SCRIPT";

/// All implementations of the operating system interface.
const SYSTEMS: [System; 2] = [System::Linux, System::Posix];

struct Fixture {
    supervisor: Supervisor,
    data: TempDir,
}

impl Fixture {
    fn new(system: System) -> Self {
        let data = tempfile::tempdir().unwrap();
        Self { supervisor: supervisor(system, data.path(), GRACE), data }
    }

    fn launch(&self, program: &str, args: &[&str]) -> Launch {
        launch(self.data.path(), program, args)
    }

    async fn start(&self, program: &str, args: &[&str]) -> Child {
        self.supervisor.spawn(self.launch(program, args)).await.unwrap()
    }

    async fn sh(&self, script: &str) -> Child {
        self.start("/bin/sh", &["-c", script]).await
    }

    /// All processes of this fixture, including minders.
    fn alive(&self) -> Vec<Found> {
        alive(self.data.path())
    }
}

fn supervisor(system: System, data: &Path, grace: Duration) -> Supervisor {
    let minder = env!("CARGO_BIN_EXE_minder").into();
    Supervisor::new(minder, data.to_path_buf(), grace).with_system(system)
}

fn launch(cwd: &Path, program: &str, args: &[&str]) -> Launch {
    Launch {
        agent: "a".to_owned(),
        owner: "task-1".to_owned(),
        program: program.into(),
        args: args.iter().map(|arg| (*arg).to_owned()).collect(),
        env: vec![("PATH".to_owned(), "/usr/bin:/bin".to_owned())],
        cwd: WorkingDirectory::open(cwd).unwrap(),
        confinement: None,
    }
}

#[derive(Clone, Debug)]
struct Found {
    pid: Pid,
    command: String,
}

/// Processes with the directory in their environment or command line that have not ended.
fn alive(data: &Path) -> Vec<Found> {
    let ourselves = rustix::process::getpid();
    let marker = data.to_str().unwrap();
    let named = |pid: &Pid, file: &str| {
        let text = fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
        String::from_utf8_lossy(&text).replace('\0', " ")
    };
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let pid = entry.file_name().to_str().and_then(|name| name.parse().ok());
        let Some(pid) = pid.and_then(Pid::from_raw).filter(|pid| *pid != ourselves) else {
            continue;
        };
        let command = named(&pid, "cmdline"); // empty once ended
        let marked = command.contains(marker) || named(&pid, "environ").contains(marker);
        if marked && !command.is_empty() {
            found.push(Found { pid, command });
        }
    }
    found
}

async fn nobody_within(data: &Path, limit: Duration) {
    let deadline = Instant::now() + limit;
    while !alive(data).is_empty() {
        assert!(Instant::now() < deadline, "still there after {limit:?}: {:#?}", alive(data));
        sleep(Duration::from_millis(5)).await;
    }
}

async fn count_reaches(data: &Path, count: usize, part: &str) -> Vec<Found> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let mut found = alive(data);
        found.retain(|it| it.command.contains(part));
        if found.len() >= count {
            return found;
        }
        assert!(Instant::now() < deadline, "{} of {count} {part:?}: {found:#?}", found.len());
        sleep(Duration::from_millis(5)).await;
    }
}

async fn next(child: &mut Child) -> Output {
    timeout(PATIENCE, child.next()).await.expect("the program says something, or ends")
}

/// All output, then the exit.
async fn finish(child: &mut Child) -> (Vec<u8>, Vec<u8>, ProgramExit) {
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    loop {
        match next(child).await {
            Output::Stdout(chunk) => stdout.extend(chunk),
            Output::Stderr(chunk) => stderr.extend(chunk),
            Output::MemoryExceeded(why) => panic!("{why:?}"),
            Output::Exited(exit) => return (stdout, stderr, exit),
        }
    }
}

/// Standard output up to and including `end`.
async fn read_to(child: &mut Child, end: &str) -> String {
    let mut text = String::new();
    while !text.ends_with(end) {
        match next(child).await {
            Output::Stdout(chunk) => text.push_str(&String::from_utf8(chunk).unwrap()),
            other @ (Output::Stderr(_) | Output::MemoryExceeded(_) | Output::Exited(_)) => {
                panic!("{other:?} after {text:?}")
            }
        }
    }
    text
}

test_on_each_system! {
    cat_echoes_its_input,
    five_megabyte_line_round_trips,
    write_to_closed_stdin_fails,
    exit_codes_and_signals_are_distinguished,
    start_failure_names_its_reason,
    environment_is_given_variables_and_markers,
    program_starts_with_default_signals,
    unread_output_blocks_the_program,
    dropped_waits_lose_nothing,
    stranger_holding_pipe_loses_no_output,
    interrupt_reaches_program,
    inherited_descriptors_do_not_reach_programs,
}

async fn cat_echoes_its_input(system: System) {
    let hub = Fixture::new(system);
    let mut cat = hub.start("/bin/cat", &[]).await;
    cat.write_stdin(b"hello, ").await.unwrap();
    cat.write_stdin(b"world\n").await.unwrap();
    assert_eq!(read_to(&mut cat, "\n").await, "hello, world\n");
    cat.close_stdin();
    assert_eq!(finish(&mut cat).await, (vec![], vec![], ProgramExit::Code(0)));
    assert_eq!(
        next(&mut cat).await,
        Output::Exited(ProgramExit::Code(0)),
        "asked again, it says so again"
    );
    let closed = cat.write_stdin(b"too late").await.unwrap_err();
    assert_eq!(closed.kind(), std::io::ErrorKind::BrokenPipe);
}

async fn five_megabyte_line_round_trips(system: System) {
    let hub = Fixture::new(system);
    let mut cat = hub.start("/bin/cat", &[]).await;
    let mut line = b"0123456789abcdef".repeat(5 * 1024 * 1024 / 16);
    line.push(b'\n');
    timeout(PATIENCE, cat.write_stdin(&line)).await.expect("does not wait for the answer").unwrap();
    cat.close_stdin();
    let (stdout, stderr, exit) = finish(&mut cat).await;
    assert!(stdout == line, "{} of {} bytes, or others", stdout.len(), line.len());
    assert_eq!((stderr, exit), (vec![], ProgramExit::Code(0)));
}

async fn write_to_closed_stdin_fails(system: System) {
    let hub = Fixture::new(system);
    let mut child = hub.sh("exec 0</dev/null; echo closed; sleep 1000").await;
    read_to(&mut child, "closed\n").await;
    let refused = timeout(PATIENCE, async {
        while child.write_stdin(b"anybody?").await.is_ok() {
            sleep(Duration::from_millis(1)).await;
        }
    });
    refused.await.expect("the closed pipe is noticed");
}

async fn exit_codes_and_signals_are_distinguished(system: System) {
    let hub = Fixture::new(system);
    for (script, expected) in [
        ("exit 0", ProgramExit::Code(0)),
        ("exit 7", ProgramExit::Code(7)),
        ("exit 255", ProgramExit::Code(255)),
        ("kill -KILL $$", ProgramExit::Signal(9)),
        ("kill -TERM $$", ProgramExit::Signal(15)),
        ("kill -SEGV $$", ProgramExit::Signal(11)),
    ] {
        let mut child = hub.sh(&format!("echo out; echo err >&2; {script}")).await;
        let expected = (b"out\n".to_vec(), b"err\n".to_vec(), expected);
        assert_eq!(finish(&mut child).await, expected, "{script}");
    }
    assert_eq!(hub.supervisor.running(), 0);
}

async fn start_failure_names_its_reason(system: System) {
    let hub = Fixture::new(system);
    let plain = hub.data.path().join("plain");
    fs::write(&plain, "text").unwrap();
    let plain = plain.to_str().unwrap();

    let cat = || hub.launch("/bin/cat", &[]);
    let with = |name: &str, value: &str| Launch {
        env: vec![(name.to_owned(), value.to_owned())],
        ..cat()
    };
    let long = "x".repeat(200_000);
    for (launch, reason) in [
        (hub.launch("/no/such/program", &[]), "start /no/such/program: it, or the interpreter"),
        (hub.launch(plain, &[]), "may not be executed"),
        (hub.launch("cat", &[]), "not an absolute path"),
        (hub.launch("/bin/cat", &[&long]), "too long"),
        (with("LONG", &long), "too long"),
        (hub.launch("/bin/cat", &["a\0b"]), "nul byte"),
        (with("", "x"), "the variable \"\""),
        (with("A=B", "x"), "the variable \"A=B\""),
        (with("A\0", "x"), "the variable \"A\\0\""),
        (with("A", "x\0y"), "the variable \"A\""),
    ] {
        let error = hub.supervisor.spawn(launch).await.unwrap_err().to_string();
        assert!(error.contains(reason), "{error:?} does not say {reason:?}");
    }
    for minder in ["/no/such/hub", "/bin/true"] {
        let mute = Supervisor::new(minder.into(), hub.data.path().to_path_buf(), GRACE)
            .with_system(system);
        let error = mute.spawn(cat()).await.unwrap_err();
        assert!(matches!(error, SpawnError::Minder { .. }), "{error}");
    }
    assert_eq!(hub.supervisor.running(), 0);
    nobody_within(hub.data.path(), PATIENCE).await;
}

async fn environment_is_given_variables_and_markers(system: System) {
    let hub = Fixture::new(system);
    let env = [("A", "1"), ("EMPTY", ""), ("A2A_HUB_OWNER", "somebody else"), ("A", "2=3")];
    let env = env.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    let launch = Launch { env, ..hub.launch("/usr/bin/env", &["-0"]) };
    let mut child = hub.supervisor.spawn(launch).await.unwrap();
    let (stdout, _, _) = finish(&mut child).await;
    let mut variables: Vec<_> = str::from_utf8(&stdout).unwrap().split_terminator('\0').collect();
    variables.sort_unstable();
    let tree = variables.iter().position(|it| it.starts_with("A2A_HUB_TREE="));
    variables.remove(tree.unwrap());
    let data = format!("A2A_HUB_DATA={}", hub.data.path().canonicalize().unwrap().display());
    let mut expected = ["A2A_HUB_OWNER=task-1", &data, "A=2=3", "EMPTY="];
    expected.sort_unstable();
    assert_eq!(variables, expected);
}

async fn program_starts_with_default_signals(system: System) {
    let hub = Fixture::new(system);
    let mut child = hub.sh("pwd -P; grep -E '^Sig(Blk|Ign)' /proc/self/status").await;
    let (stdout, _, _) = finish(&mut child).await;
    let text = String::from_utf8(stdout).unwrap();
    let [cwd, blocked, ignored] = text.lines().collect::<Vec<_>>()[..] else { panic!("{text}") };
    assert_eq!(Path::new(cwd), hub.data.path().canonicalize().unwrap());
    let mask =
        |line: &str| u64::from_str_radix(line.split_whitespace().last().unwrap(), 16).unwrap();
    assert_eq!(mask(blocked), 0, "no signal is blocked");
    assert_eq!(mask(ignored) & (1 << (13 - 1)), 0, "SIGPIPE ends it, as `yes | head` expects");
}

async fn unread_output_blocks_the_program(system: System) {
    let hub = Fixture::new(system);
    let mut child = hub.start("/usr/bin/yes", &[]).await;
    for _ in 0..100 {
        let Output::Stdout(chunk) = next(&mut child).await else { panic!("yes has ended") };
        assert!(!chunk.is_empty() && chunk.len() <= MAX_CHUNK);
    }
    let yes = count_reaches(hub.data.path(), 1, "/usr/bin/yes").await;
    let yes = yes.into_iter().find(|it| !it.command.contains(SUPERVISE)).unwrap().pid;
    // `wchar` counts the written bytes: constant once its pipe is full.
    let written = || fs::read_to_string(format!("/proc/{yes}/io")).unwrap();
    let deadline = Instant::now() + PATIENCE;
    let (mut before, mut after) = (String::new(), written());
    while before != after {
        assert!(Instant::now() < deadline, "it never comes to rest");
        sleep(Duration::from_millis(50)).await;
        (before, after) = (after, written());
    }
    child.kill();
    assert_eq!(finish(&mut child).await.2, ProgramExit::Signal(15));
}

async fn dropped_waits_lose_nothing(system: System) {
    let hub = Fixture::new(system);
    let mut child = hub.sh("seq 1 3000; sleep 0.05; seq 3001 6000; seq 1 500 >&2").await;
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let deadline = Instant::now() + PATIENCE;
    loop {
        assert!(Instant::now() < deadline);
        match timeout(Duration::from_micros(50), child.next()).await {
            Err(_) => {}
            Ok(Output::Stdout(chunk)) => stdout.extend(chunk),
            Ok(Output::Stderr(chunk)) => stderr.extend(chunk),
            Ok(Output::MemoryExceeded(why)) => panic!("{why:?}"),
            Ok(Output::Exited(exit)) => break assert_eq!(exit, ProgramExit::Code(0)),
        }
    }
    let numbers = |to: u32| (1..=to).map(|number| format!("{number}\n")).collect::<String>();
    assert!(stdout == numbers(6000).as_bytes() && stderr == numbers(500).as_bytes());
}

async fn stranger_holding_pipe_loses_no_output(system: System) {
    let hub = Fixture::new(system);
    let mut child = hub.sh("read line; echo last words; exit 3").await;
    let program = count_reaches(hub.data.path(), 2, "last words").await;
    let program = program.into_iter().find(|it| !it.command.contains(SUPERVISE)).unwrap();
    let stranger = fs::OpenOptions::new().write(true).open(format!("/proc/{}/fd/1", program.pid));
    child.write_stdin(b"go\n").await.unwrap();
    timeout(PATIENCE, hub.supervisor.ended("task-1")).await.unwrap();
    assert_eq!(finish(&mut child).await, (b"last words\n".to_vec(), vec![], ProgramExit::Code(3)));
    drop(stranger.unwrap());
}

async fn interrupt_reaches_program(system: System) {
    // The tests' parent may ignore SIGINT, and so its descendants. Listening ends that.
    let _listening = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::interrupt());
    let hub = Fixture::new(system);
    let mut child =
        hub.sh("trap 'echo caught; exit 42' INT; echo ready; while :; do sleep 0.02; done").await;
    read_to(&mut child, "ready\n").await;
    child.interrupt();
    let (stdout, _, exit) = finish(&mut child).await;
    assert_eq!((&stdout[..], exit), (&b"caught\n"[..], ProgramExit::Code(42)));
}

/// Starts a new session, a daemon, and a program that ignores SIGTERM.
const STUBBORN: &str = "trap '' TERM; setsid sh -c 'trap \"\" TERM; sleep 1000 & wait' & \
    (setsid sh -c 'sleep 1000 & echo ready; wait' &) ; while :; do sleep 1000; done";

/// Starts a hub process, after `before` in its shell. Returns once its program prints `ready`.
fn another_hub(
    system: System,
    data: &Path,
    before: &str,
    script: &str,
) -> (std::process::Child, impl BufRead + use<>) {
    let mut hub = std::process::Command::new("/bin/sh")
        .args(["-c", &format!("{before} exec \"$0\" --exact one_hub --nocapture")])
        .arg(std::env::current_exe().unwrap())
        .env(HUB_SYSTEM, format!("{system:?}"))
        .env(HUB_DATA, data)
        .env(HUB_SCRIPT, script)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdout = BufReader::new(hub.stdout.take().unwrap());
    let mut line = String::new();
    while !line.ends_with("ready\n") {
        line.clear();
        assert_ne!(
            stdout.read_line(&mut line).unwrap(),
            0,
            "the hub ended before its program was ready"
        );
    }
    (hub, stdout)
}

/// Not a test by itself: the hub that others start with [`another_hub`] and kill.
#[tokio::test]
async fn one_hub() {
    let (Ok(data), Ok(script)) = (std::env::var(HUB_DATA), std::env::var(HUB_SCRIPT)) else {
        return;
    };
    let named = std::env::var(HUB_SYSTEM).unwrap();
    let system = SYSTEMS.into_iter().find(|system| format!("{system:?}") == named).unwrap();
    let supervisor = supervisor(system, data.as_ref(), GRACE);
    let launch = launch(data.as_ref(), "/bin/sh", &["-c", &script]);
    let mut child = supervisor.spawn(launch).await.unwrap();
    let run = async {
        loop {
            match child.next().await {
                Output::Stdout(chunk) => std::io::stdout().write_all(&chunk).unwrap(),
                Output::Stderr(_) | Output::MemoryExceeded(_) => {}
                Output::Exited(_) => break,
            }
        }
    };
    timeout(PATIENCE * 2, run).await.expect("somebody kills this hub, or its program ends");
}

async fn inherited_descriptors_do_not_reach_programs(system: System) {
    let data = tempfile::tempdir().unwrap();
    let before = "exec 7</etc/passwd 9</etc/hostname;";
    let (mut hub, mut stdout) =
        another_hub(system, data.path(), before, "echo ready; ls -l /proc/self/fd");
    let mut listing = String::new();
    stdout.read_to_string(&mut listing).unwrap();
    hub.wait().unwrap();
    let mut pipes = 0;
    for (entry, target) in listing.lines().filter_map(|line| line.rsplit_once(" -> ")) {
        pipes += usize::from(target.starts_with("pipe:"));
        // The listing itself is the one under /proc.
        let expected = ["pipe:", "/dev/null", "/proc/"].iter().any(|it| target.starts_with(it));
        assert!(expected, "{entry} -> {target}");
    }
    assert_eq!(pipes, 3, "{listing}");
}
