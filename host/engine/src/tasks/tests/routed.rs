//! Agents that reject a task as their first event, even before the router subscribes.

use super::*;

fn rejecting(speaks: bool) -> Fake {
    Fake::new(move |stage: Stage| async move {
        if speaks {
            stage.report_working("at it").await.unwrap();
        }
        let message = Some(Message::text(Role::Agent, "not mine"));
        Ended::Status { state: TaskState::Rejected, message, metadata: None }
    })
}

#[tokio::test(start_paused = true)]
async fn immediate_rejection_is_found_after_end() {
    for stand in Stand::each() {
        for (fake, is_over, rejection) in [
            (rejecting(false), false, Some("not mine")),
            (rejecting(false), true, Some("not mine")),
            (rejecting(false).enclosed(), true, Some("not mine")),
            (rejecting(true), true, None),
            (curious(), false, None),
        ] {
            let task = stand.submit(&fake.agent(config()), "go").await;
            let heard = stand.tasks.follow(&task, 0).await.unwrap();
            if is_over {
                stand.until(&task, TaskState::Rejected).await;
                while stand.tasks.find(&task).is_some() {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            }
            let found = stand.tasks.rejection(&heard).await;
            assert_eq!(found.as_deref(), rejection, "{}", stand.story(&task).await);
        }
    }
}
