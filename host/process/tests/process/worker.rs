//! Work with limits, done by a process that can be killed.

use crate::PATIENCE;
use a2a_hub_process::{WorkError, WorkLimits, Worker, WorkerPriority};
use bytes::Bytes;
use rustix::process::{Pid, test_kill_process};
use std::time::Duration;
use tokio::time::{sleep, timeout};

const LIMITS: WorkLimits = WorkLimits {
    cpu: Duration::from_secs(1),
    memory: 1 << 30,
    output: 1 << 20,
    stall: Duration::from_secs(60),
    priority: WorkerPriority::Low,
};

fn worker() -> Worker {
    Worker { program: env!("CARGO_BIN_EXE_worker").into(), word: "__work" }
}

async fn done(job: &str, input: &'static [u8]) -> Result<Vec<u8>, WorkError> {
    let (worker, arguments) = (worker(), [job]);
    let run = worker.run(&arguments, Bytes::from_static(input), LIMITS);
    timeout(PATIENCE, run).await.unwrap()
}

#[tokio::test]
async fn worker_returns_result() {
    assert_eq!(done("upper", b"some words").await.unwrap(), b"SOME WORDS");
    assert_eq!(done("upper", b"").await.unwrap(), b"");
    static LARGE: [u8; 1 << 20] = [b'a'; 1 << 20];
    let answer = done("upper", &LARGE).await.unwrap();
    assert!(answer.len() == LARGE.len() && answer.iter().all(|byte| *byte == b'A'));
}

/// Work that exceeds a limit fails with that limit, and would fail again.
#[tokio::test]
async fn exceeded_limit_fails_the_work() {
    let told = async |job| {
        let why = done(job, b"x").await.unwrap_err();
        assert!(why.is_of_the_work(), "{why}");
        why.to_string()
    };
    assert_eq!(told("spin").await, "it took more than 1 s of time on the processor");
    assert_eq!(told("eat").await, "it took more than 1024 MiB of memory");
    assert_eq!(told("flood").await, "it made more than 1 MiB");
    assert_eq!(told("refuse").await, "it is not to my taste");
    let crashed = told("unheard of").await;
    assert!(crashed.starts_with("the worker crashed: "), "{crashed}");
}

/// On a busy machine the work takes long, and each of its moments on the processor counts.
#[tokio::test]
async fn slow_worker_may_take_its_time() {
    let limits = WorkLimits { stall: Duration::from_secs(2), ..LIMITS };
    for (priority, lower) in [(WorkerPriority::Normal, 0), (WorkerPriority::Low, 10)] {
        let (worker, limits) = (worker(), WorkLimits { priority, ..limits });
        let done = worker.run(&["crawl"], Bytes::from_static(b"x"), limits).await.unwrap();
        let own = rustix::process::getpriority_process(None).unwrap();
        assert_eq!(str::from_utf8(&done).unwrap(), (own + lower).min(19).to_string());
    }
}

/// A worker that does not run at all is ended, which is not the work's fault.
#[tokio::test]
async fn stuck_worker_is_ended_for_a_retry() {
    let limits = WorkLimits { stall: Duration::from_secs(1), ..LIMITS };
    let (worker, arguments) = (worker(), ["sleep"]);
    let run = worker.run(&arguments, Bytes::from_static(b"x"), limits);
    let why = timeout(PATIENCE, run).await.unwrap().unwrap_err();
    assert!(matches!(why, WorkError::Starved(_)) && !why.is_of_the_work(), "{why}");
}

/// The code in a worker may be taken over by its input.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn worker_is_confined_to_its_socket() {
    let can = String::from_utf8(done("pry", b"x").await.unwrap()).unwrap();
    assert_eq!(can, "start a thread");
}

#[tokio::test]
async fn start_failure_is_not_work_fault() {
    let missing = Worker { program: "/nonexistent/worker".into(), word: "__work" };
    let why = missing.run(&["upper"], Bytes::new(), LIMITS).await.unwrap_err();
    assert!(!why.is_of_the_work() && why.to_string().contains("/nonexistent/worker"), "{why}");
    // `true` exits at once, without reading.
    let deaf = Worker { program: "/bin/true".into(), word: "__work" };
    let why = deaf.run(&["upper"], Bytes::new(), LIMITS).await.unwrap_err();
    assert!(matches!(why, WorkError::Crashed(_)), "{why}");
}

/// The worker of a dropped future is gone at once, and does not use up its CPU time.
#[tokio::test]
async fn dropped_future_kills_worker() {
    let limits = WorkLimits { cpu: Duration::from_secs(3_600), ..LIMITS };
    let own = std::process::id();
    let working = || {
        let children = std::fs::read_to_string(format!("/proc/{own}/task/{own}/children"));
        let all = std::fs::read_dir(format!("/proc/{own}/task")).unwrap();
        let of_threads = all
            .flatten()
            .filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
        let all: String = children.into_iter().chain(of_threads).collect();
        all.split_whitespace().next().and_then(|pid| Pid::from_raw(pid.parse().ok()?))
    };
    let worker = worker();
    let mut run = Box::pin(worker.run(&["spin"], Bytes::from_static(b"x"), limits));
    let mut pid = None;
    while pid.is_none() {
        tokio::select! {
            done = &mut run => panic!("it ended: {done:?}"),
            () = sleep(Duration::from_millis(20)) => pid = working(),
        }
    }
    drop(run);
    let gone = async {
        while pid.is_some_and(|pid| test_kill_process(pid).is_ok()) {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, gone).await.unwrap();
}
