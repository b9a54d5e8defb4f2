//! Runs of schedules and triggers that the end of the hub interrupts: nobody is asked.

use super::*;
use a2a_hub_core::grant::Resume;
use a2a_hub_protocol::scheduled::{
    AnswerRule, AutomatedRun, RestartRule, ScheduledRun, TriggeredRun,
};
use std::future::pending;

/// Metadata of a run of a schedule and of a trigger.
fn runs(on_restart: RestartRule) -> [Metadata; 2] {
    let (answers, at, after) = (AnswerRule::Deny, "T".to_owned(), Vec::new());
    let (planned, name) = (at.clone(), "nightly".to_owned());
    let scheduled = ScheduledRun { name: name.clone(), planned, answers, on_restart };
    let triggered = TriggeredRun { name, at, answers, on_restart, after };
    [AutomatedRun::Schedule(scheduled), AutomatedRun::Trigger(triggered)].map(|run| run.facts())
}

/// Agent that calls `b` if told so, and otherwise works for ever or repeats its input.
fn fake(resume: Resume, works_on: bool) -> Fake {
    let fake = Fake::new(move |stage: Stage| async move {
        let text = stage.text();
        if let Some(rest) = text.strip_prefix("b ") {
            let message = Message::text(Role::User, rest);
            let called = stage.outcome_of(ChildRequest::new("b", message)).await;
            return called.unwrap_or_else(Ended::Failed);
        }
        stage.report_working("at it").await.unwrap();
        if works_on { pending().await } else { completed(&text) }
    });
    match resume {
        Resume::Session => fake.resuming(resume).holding(Resumability::Session),
        Resume::Nothing | Resume::Replay => fake,
    }
}

/// The next process after a kill, with these agents.
async fn next(stand: &Stand, resume: Resume, works_on: bool) -> Stand {
    let next = stand.next_hub();
    let agents = agents_of(&next, &config(), &fake(resume, works_on));
    next.recover(move |id: &AgentId| agents.0.get(id).cloned()).await;
    next
}

const FIRST: &str = "created, working, working “at it”, ";

#[tokio::test(start_paused = true)]
async fn killed_unattended_run_starts_again() {
    for (resume, input) in [
        (Resume::Nothing, "go"),
        (
            Resume::Session,
            "[Your run was ended by a restart of the hub, and nobody watches it. See what is done already, do not repeat it, and \
             finish the rest.]",
        ),
    ] {
        for facts in runs(RestartRule::Again) {
            let (stand, agents) = stand_of(&config(), &fake(resume, true));
            let task = stand.submit_run(agents.named("a"), "go", facts).await;
            stand.until(&task, TaskState::Working).await;
            tokio::time::sleep(Duration::from_secs(1)).await;
            let next = next(&stand, resume, false).await;
            next.until(&task, TaskState::Completed).await;
            let story = next.story(&task).await;
            let then = format!("said “{input}”, working, working “at it”, completed “{input}”");
            assert!(story.starts_with(FIRST) && story.ends_with(&then), "{story}");
        }
    }
}

/// The reason is the interruption, and not the missing answer.
#[tokio::test(start_paused = true)]
async fn second_interruption_fails_unattended_run() {
    for (on_restart, kills, why) in [
        (
            RestartRule::Again,
            2,
            "It was the second time, and a run without a person starts again once.",
        ),
        (
            RestartRule::Fail,
            1,
            "`trigger.nightly.on_restart` is \"fail\", so the run does not start again.",
        ),
    ] {
        for resume in [Resume::Nothing, Resume::Session] {
            let (mut stand, agents) = stand_of(&config(), &fake(resume, true));
            let [_, facts] = runs(on_restart);
            let task = stand.submit_run(agents.named("a"), "go", facts).await;
            for _ in 0..kills {
                stand.until(&task, TaskState::Working).await;
                tokio::time::sleep(Duration::from_secs(1)).await;
                stand = next(&stand, resume, true).await;
            }
            let failed = stand.until(&task, TaskState::Failed).await;
            let reason = a2a_hub_core::task::metadata::text(&failed, "reason");
            assert_eq!(reason, Some("hub_restarted"));
            let story = stand.story(&task).await;
            assert!(
                story.ends_with(&format!("what it had done by then is kept. {why}”")),
                "{story}"
            );
        }
    }
}

/// A stop in order is no other interruption than a kill.
#[tokio::test(start_paused = true)]
async fn stopped_unattended_run_starts_again_once() {
    for resume in [Resume::Nothing, Resume::Session] {
        let (stand, agents) = stand_of(&config(), &fake(resume, true));
        let [facts, _] = runs(RestartRule::Again);
        let task = stand.submit_run(agents.named("a"), "go", facts).await;
        stand.until(&task, TaskState::Working).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        stand.tasks.shutdown().await;
        let next = next(&stand, resume, true).await;
        next.until(&task, TaskState::Working).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        next.tasks.shutdown().await;
        let story = next.story(&task).await;
        let why = "failed “The hub was stopped while the agent was at work.”";
        assert!(story.contains("said “") && story.ends_with(why), "{story}");
    }
}

#[tokio::test(start_paused = true)]
async fn interrupted_child_and_parent_start_again() {
    let (stand, agents) = stand_of(&config(), &fake(Resume::Session, true));
    let [facts, _] = runs(RestartRule::Again);
    let root = stand.submit_run(agents.named("a"), "b go", facts).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let child = stand.only_child(&root).await.id;
    stand.until(&child, TaskState::Working).await;
    let next = next(&stand, Resume::Session, false).await;
    next.until(&child, TaskState::Completed).await;
    next.until(&root, TaskState::Completed).await;
    let (root, child) = (next.story(&root).await, next.story(&child).await);
    for story in [&root, &child] {
        assert!(story.contains("said “[Your run was ended by"), "{story}");
    }
}
