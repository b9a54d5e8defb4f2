//! Messages that an agent reads while it works on the task.

use super::*;
use crate::tests::scripted_agent::Journals;
use a2a_hub_core::task::replay::{CallIdentity, Entry, Recorded};
use a2a_hub_runtime::port::{
    delegate::{ChildRequest, Update},
    journal::JournalAnswer,
    tasks::Need,
};

/// Reads messages until one is `end`, or none arrives for five seconds.
fn reader() -> Fake {
    Fake::new(|stage: Stage| async move {
        let mut read = vec![stage.work.message.joined_text()];
        loop {
            match stage.port.next_message(Some(Duration::from_secs(5))).await {
                Ok(next) => read.push(next.message.joined_text()),
                Err(Failure::Timeout) => break,
                Err(why) => return Ended::Failed(why),
            }
            if read.last().is_some_and(|last| last == "end") {
                break;
            }
        }
        tokio::time::sleep(Duration::from_secs(5)).await;
        completed(&read.join("+"))
    })
}

#[tokio::test(start_paused = true)]
async fn agent_at_work_reads_messages() {
    for stand in Stand::each() {
        let fake = reader();
        let task = stand.submit(&fake.agent(config()), "first").await;
        stand.until(&task, TaskState::Working).await;
        for text in ["second", "end", "late"] {
            stand.answer(&task, text).await.unwrap();
        }
        let done = stand.until(&task, TaskState::Completed).await;
        let story = stand.story(&task).await;
        // `late` was not read, and starts another run.
        assert!(story.contains("said “second”, working, "), "{story}");
        assert!(
            story
                .ends_with("working “first+second+end”, said “first+second+end”, completed “late”"),
            "{story}"
        );
        let seen = fake.seen.lock().unwrap().join(", ");
        assert_eq!(seen, "start: first, forget, start: late, forget");
        let end = done.history.iter().find(|said| said.joined_text() == "end").unwrap();
        let received = &done.metadata.unwrap()["received"];
        assert_eq!(received, end.message_id.as_str());
    }
}

/// A message that arrives as the wait for it ends is read, or left for the next run.
#[tokio::test(start_paused = true)]
async fn timeout_of_reader_loses_no_message() {
    let stand = Stand::new();
    for delay in 4_990..5_010 {
        let task = stand.submit(&reader().agent(config()), "first").await;
        stand.until(&task, TaskState::Working).await;
        tokio::time::sleep(Duration::from_millis(delay)).await;
        let taken = stand.answer(&task, "end").await;
        stand.until(&task, TaskState::Completed).await;
        let story = stand.story(&task).await;
        let is_read = story.ends_with("completed “first+end”");
        let is_left = story.ends_with("said “first”, completed “end”");
        assert_eq!(taken.is_ok(), is_read || is_left, "{delay}: {story}");
    }
}

#[tokio::test(start_paused = true)]
async fn open_question_gets_message_before_reader() {
    let stand = Stand::new();
    let fake = Fake::new(|stage: Stage| async move {
        let prompt = Message::text(Role::Agent, "may I?");
        let (answer, read) = tokio::join!(
            stage.port.pose(Need::Input, prompt, None),
            stage.port.next_message(Some(Duration::from_secs(60)))
        );
        let [answer, read] = [answer, read].map(|it| it.unwrap().message.joined_text());
        completed(&format!("answer {answer}, read {read}"))
    });
    let task = stand.submit(&fake.agent(config()), "go").await;
    stand.until(&task, TaskState::InputRequired).await;
    stand.answer(&task, "yes").await.unwrap();
    stand.until(&task, TaskState::Working).await;
    stand.answer(&task, "more").await.unwrap();
    stand.until(&task, TaskState::Completed).await;
    let story = stand.story(&task).await;
    assert!(story.ends_with("completed “answer yes, read more”"), "{story}");
}

/// Sends its child two messages, and ends with the results and the child's end.
fn feeder() -> Fake {
    let fake = Fake::new(|stage: Stage| async move {
        let request = ChildRequest::new("b", Message::text(Role::User, "go"));
        let mut call = stage.call(request).await.unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
        let mut told = Vec::new();
        for text in ["one", "end"] {
            let message = Message::text(Role::User, text);
            told.push(format!(
                "{:?}",
                call.send(message.clone()).await.map_err(|why| why.to_string())
            ));
            // A replayed caller sends it again.
            assert_eq!(call.send(message).await.is_ok(), told.last().unwrap() == "Ok(())");
        }
        loop {
            match call.next().await.unwrap() {
                Update::Status(update) if update.status.state.is_interrupted() => break,
                Update::Finished(end) => {
                    told.push(format!("{end:?}"));
                    break;
                }
                Update::Status(_) | Update::Artifact(_) => {}
            }
        }
        completed(&told.join(" "))
    });
    fake.calling_others()
}

async fn fed(child: Fake) -> String {
    let stand = Stand::new();
    let child = child.agent_among("b", config(), &["a", "b"]);
    let caller = feeder().agent_among("a", config(), &["a", "b"]);
    let known = [Arc::clone(&child), Arc::clone(&caller)];
    stand.know(move |id| known.iter().find(|agent| agent.id == *id).cloned());
    let task = stand.submit(&caller, "go").await;
    stand.until(&task, TaskState::Completed).await;
    stand.story(&task).await
}

#[tokio::test(start_paused = true)]
async fn caller_sends_child_further_messages() {
    let story = fed(reader()).await;
    assert!(story.contains("Ok(()) Ok(())") && story.contains("go+one+end"), "{story}");
}

/// A further message is no answer, and an ended child takes none.
#[tokio::test(start_paused = true)]
async fn further_message_never_answers_question() {
    let asks = fed(curious()).await;
    assert!(asks.contains("asks a question") && !asks.contains("Ok("), "{asks}");
    let ended = fed(Fake::new(|_| async { completed("done") })).await;
    assert!(ended.contains("completed, and takes no message"), "{ended}");
}

/// Reads three messages, and records the first one only: as if the hub was killed before the second
/// one was recorded. A replay takes the first one from its journal.
fn recorded_reader(journals: &Journals, stops_after: usize) -> Fake {
    let of_runs = Arc::clone(journals);
    let fake = Fake::new(move |stage: Stage| {
        let journals = Arc::clone(&of_runs);
        async move {
            let journal = journals.lock().unwrap().get(&stage.work.task.id).cloned().unwrap();
            let known = stage.work.journal.as_ref().map_or(0, |journal| journal.answers.len());
            let mut read: Vec<_> = (0..known).map(|_| "journal".to_owned()).collect();
            while read.len() < stops_after {
                let next = stage.port.next_message(None).await.unwrap();
                read.push(next.message.joined_text());
                if read.len() == 1 {
                    let entry =
                        Entry::Answer(CallIdentity::new("m", ""), JournalAnswer::Message(Ok(next)));
                    journal.record(Recorded { at_ms: 1, entry }).await.unwrap();
                }
            }
            if stops_after < 3 {
                pending::<()>().await;
            }
            completed(&read.join("+"))
        }
    });
    fake.replayed(Arc::clone(journals))
}

#[tokio::test(start_paused = true)]
async fn replayed_agent_reads_unrecorded_message_again() {
    let stand = Stand::new();
    let fake = recorded_reader(&Journals::default(), 2);
    let task = stand.submit(&fake.agent(config()), "first").await;
    stand.until(&task, TaskState::Working).await;
    for text in ["one", "two"] {
        stand.answer(&task, text).await.unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    // Killed twice: the second hub reads the same message again before it is killed.
    let mut killed = stand;
    for stops_after in [2, 3] {
        let next = killed.next_hub();
        let agent = recorded_reader(&Journals::default(), stops_after).agent(config());
        next.recover(move |_| Some(Arc::clone(&agent))).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        killed = next;
    }
    killed.answer(&task, "three").await.unwrap();
    killed.until(&task, TaskState::Completed).await;
    let story = killed.story(&task).await;
    assert!(story.ends_with("completed “journal+two+three”"), "{story}");
}

/// Work that begins anew reads its messages again.
#[tokio::test(start_paused = true)]
async fn restarted_work_reads_messages_again() {
    let stand = Stand::new();
    let fake = reader().holding(Resumability::Work);
    let task = stand.submit(&fake.agent(config()), "first").await;
    stand.until(&task, TaskState::Working).await;
    for text in ["one", "two"] {
        stand.answer(&task, text).await.unwrap();
    }
    let next = stand.next_hub();
    let agent = fake.agent(config());
    next.recover(move |_| Some(Arc::clone(&agent))).await;
    next.until(&task, TaskState::Completed).await;
    let story = next.story(&task).await;
    assert!(story.ends_with("completed “first+one+two”"), "{story}");
}
