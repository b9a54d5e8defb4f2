//! Shutdown while tasks begin.

use super::*;

/// An operation that was admitted before the shutdown may start its task after all others got their
/// commands.
#[tokio::test(start_paused = true)]
async fn task_started_during_shutdown_is_interrupted() {
    for fake in [Fake::new(|_: Stage| pending()), Fake::new(|_: Stage| pending()).enclosed()] {
        for stand in Stand::each() {
            let agent = fake.agent(config());
            let early = stand.submit(&agent, "go").await;
            stand.until(&early, TaskState::Working).await;
            let begins = async {
                let late = stand.submit(&agent, "go").await;
                stand.until(&late, TaskState::Failed).await;
                late
            };
            // In this order: the shutdown has commanded the early task when the late one begins.
            let (cut, late) = tokio::join!(stand.tasks.shutdown(), begins);
            assert!(cut.contains(&early), "{cut:?}");
            assert!(cut.contains(&late), "{cut:?}");
        }
    }
}
