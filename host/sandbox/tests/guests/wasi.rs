//! WASI for a guest: available functions, and refusals with a message for all others; none ends the
//! guest.

use crate::stage::Stage;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};

#[tokio::test]
async fn clock_random_and_sleep_work() {
    let stage = Stage::default();
    assert!(stage.said("clock").await.parse::<u32>().unwrap() >= 2025);
    assert_eq!(stage.said("dice").await, "10");
    assert_eq!(stage.said("nap 50").await, "slept");
}

#[tokio::test]
async fn other_wasi_functions_are_refused() {
    let stage = Stage::granting();
    let sockets = stage.said("connect").await;
    assert_eq!(sockets.matches("access-denied").count(), 2, "{sockets}");
    let names = stage.said("resolve localhost").await;
    assert!(names.starts_with("Err("), "{names}");
    assert_eq!(stage.said("arguments").await, "0 arguments, 0 variables");
    assert_eq!(stage.said("stdin").await, "0 bytes");
    assert!(stage.said("read /").await.starts_with("refused"));
}

/// A sleeping guest blocks neither a thread nor its task's end.
#[tokio::test]
async fn sleep_blocks_no_thread() {
    let stage = Stage::default();
    let begun = Instant::now();
    let mut sleepers: Vec<_> = (0..50).map(|_| stage.start("nap 600000")).collect();
    while stage.seen().events.len() < sleepers.len() {
        sleep(Duration::from_millis(5)).await;
        assert!(begun.elapsed() < Duration::from_secs(15), "sleepers hold up each other");
    }
    assert_eq!(stage.said("nap 1").await, "slept");
    for sleeper in &mut sleepers {
        sleeper.cancel();
        timeout(Duration::from_secs(1), sleeper.end()).await.expect("it sleeps on");
    }
}
