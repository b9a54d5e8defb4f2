//! A hub that goes down while tasks begin.

use super::*;

/// An operation that was let in before the hub went down may begin its task when all others have been told already.
#[tokio::test(start_paused = true)]
async fn a_task_that_begins_while_the_hub_goes_down_is_cut_off_like_the_others() {
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
            // In this order: who goes down has told the early one when the late one begins.
            let (cut, late) = tokio::join!(stand.tasks.shutdown(), begins);
            assert!(cut.contains(&early), "{cut:?}");
            assert!(cut.contains(&late), "{cut:?}");
        }
    }
}
