//! Tests of hostile guests: each fails its own task with a clear error, and affects nothing else.

use crate::stage::{hub_with_guest, said, send, state};
use a2a_hub_tests::Client;
use anyhow::Result;
use tokio::{
    task::JoinSet,
    time::{Duration, Instant},
};

#[tokio::test(flavor = "multi_thread")]
async fn guest_fault_fails_task_with_reason() -> Result<()> {
    let hub = hub_with_guest().await?;
    let client = Client::http(&hub);
    for (text, reason, word) in [
        ("panic", "agent_crashed", "it panicked; the hub's log has the panic's text"),
        ("trap", "agent_crashed", "unreachable"),
        ("recurse", "agent_crashed", ""),
        ("spin", "limit_exceeded", "CPU time"),
        ("flood-forever", "limit_exceeded", "output limit"),
        ("big 20000000", "agent_crashed", ""),
        ("open-outcome", "invalid_request", "returned while working"),
    ] {
        let task = send(&client, "guest", text).await?;
        assert_eq!(state(&task), "failed", "{text}");
        assert_eq!(task["metadata"]["reason"], reason, "{text}: {}", said(&task));
        assert!(said(&task).contains(word), "{text}: {}", said(&task));
    }
    let bomb = send(&client, "guest", "bomb").await?;
    assert!(said(&bomb).starts_with("refused after"), "{}", said(&bomb));
    Ok(())
}

/// A panic's text names a file of the build machine, and may contain anything.
#[tokio::test(flavor = "multi_thread")]
async fn panic_text_is_logged_not_returned() -> Result<()> {
    let hub = hub_with_guest().await?;
    let client = Client::http(&hub);
    let before = hub.log().len();
    let task = send(&client, "guest", "panic with words").await?;
    let told = task.to_string();
    assert!(!told.contains("panicked at") && !told.contains("as told"), "{told}");
    let log = hub.log().split_off(before);
    assert!(log.contains("panicked at") && log.contains("as told: with words"), "{log}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn guest_log_output_is_limited() -> Result<()> {
    let hub = hub_with_guest().await?;
    let client = Client::http(&hub);
    for (text, done) in [("log-flood 100000", "100000 lines"), ("log-nothing", "said nothing")] {
        let before = hub.log().len();
        assert_eq!(said(&send(&client, "guest", text).await?), done);
        let log = hub.log().split_off(before);
        assert_eq!(log.matches("log limit reached").count(), 1, "{text}");
        assert!(log.len() < 200_000, "{text}: {} bytes", log.len());
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn misbehaving_guests_do_not_delay_others() -> Result<()> {
    let hub = hub_with_guest().await?;
    let client = Client::http(&hub);
    let mut bad = JoinSet::new();
    for text in ["spin", "spin", "spin", "flood-forever", "bomb", "log-flood 100000"] {
        let client = client.clone();
        bad.spawn(async move { send(&client, "guest", text).await });
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
    let begun = Instant::now();
    for n in 0..10 {
        let answer = send(&client, "echo", &format!("hello {n}")).await?;
        assert_eq!(said(&answer), format!("hello {n}"));
    }
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    while let Some(ended) = bad.join_next().await {
        ended??;
    }
    Ok(())
}
