//! Recording and replay of runs: writes a run's journal, and rebuilds the run from it in the next
//! process.

use super::{
    SignalPayload, TaskActor,
    recorder::Unstorable,
    run_journal::{Began, RecordedRun, json, read, told},
};
use crate::tasks::{guest_port::GuestQuestion, recovery::pending_questions::is_still_asked};
use a2a_hub_agents::AgentVersion;
use a2a_hub_clock as clock;
use a2a_hub_core::task::{
    lifecycle::Signal,
    recovery::Resumability,
    replay::{Entry, Recorded},
};
use a2a_hub_protocol::{
    client::ClientCapabilities, event::TaskEvent, id::TaskId, question::Question as Asked,
};
use a2a_hub_runtime::{
    RunFacts, Work,
    port::journal::{Heard, Journal},
};
use a2a_hub_store::{StorageError, TaskStore};
use serde::Deserialize;
use std::sync::Arc;
use tokio::sync::oneshot;

/// Input of one agent run.
pub(in crate::tasks) struct Given {
    pub(in crate::tasks) work: Work,
    /// Working directory.
    pub(in crate::tasks) directory: Option<String>,
    /// Capabilities of the client.
    pub(in crate::tasks) client: ClientCapabilities,
}

impl TaskActor {
    /// Adds a journal to the run's input: that of the run which was at work when the previous
    /// process ended, or a new one. Returns the input unchanged for an agent whose runs are not
    /// recorded.
    pub(in crate::tasks) async fn recorded_run(
        &mut self,
        given: Given,
    ) -> Result<Given, StorageError> {
        self.recording = None;
        if !self.agent.replays() {
            return Ok(given);
        }
        // Boxed, for few runs are recorded.
        Box::pin(self.record_or_repeat(given)).await
    }

    async fn record_or_repeat(&mut self, given: Given) -> Result<Given, StorageError> {
        let Given { work, directory, client } = given;
        let storage = Arc::clone(self.recorder.storage());
        let task = work.task.id.clone();
        let Some(seed) = seed(&*storage, &task).await? else {
            return Ok(Given { work, directory, client });
        };
        let mut entries = storage.recorded(&task).await?.into_iter();
        let first = entries.next();
        let run = first.is_some().then_some(self.recorder.seq());
        if let Some(first) = first {
            let began: Began = read(&work, &first)?;
            let told = told(&*storage, &work, began.seq).await?;
            if !told.is_over {
                let heard = entries.map(|entry| read::<Recorded<Heard>>(&work, &entry));
                let heard = heard.collect::<Result<Vec<_>, _>>()?;
                return Ok(self.go_on(work, &client, began, told, seed, heard));
            }
        }
        let began = Began {
            seq: self.recorder.seq(),
            run,
            at_ms: clock::now_ms(),
            message: work.message.clone(),
            history: work.history.clone(),
            metadata: work.task.metadata.clone(),
            directory: directory.clone(),
            client: client.clone(),
            live: work.live,
            agent: self.agent.version(),
            settings: self.agent.settings(&work.task).as_ref().clone(),
        };
        storage.record(&task, 0, json(&began)?).await?;
        let journal = Journal {
            began_ms: began.at_ms,
            run,
            seed: seed_of_run(seed, run),
            settings: began.settings,
            heard: Vec::new(),
            told: Vec::new(),
        };
        self.answers.begin(&client);
        self.recording = Some(RecordedRun { entries: 1 });
        let work = Work { journal: Some(journal), ..work };
        Ok(Given { work, directory, client })
    }

    fn go_on(
        &mut self,
        work: Work,
        client: &ClientCapabilities,
        began: Began,
        told: RunFacts,
        seed: u64,
        heard: Vec<Recorded<Heard>>,
    ) -> Given {
        let Began { at_ms, run, message, history, metadata, directory, live, settings, .. } = began;
        // The journal has the answers to the agent's own questions that it has received.
        let is_reply =
            |it: &&Recorded<Heard>| matches!(&it.entry, Entry::Answer(_, Heard::Reply(Ok(_))));
        let mut heard_replies = heard.iter().filter(is_reply).count();
        let answers = told.answers.into_iter().filter(|(asked, _)| {
            let was_heard = asked.task.is_none() && heard_replies > 0;
            heard_replies -= usize::from(was_heard);
            !was_heard
        });
        let is_read =
            |it: &&Recorded<Heard>| matches!(&it.entry, Entry::Answer(_, Heard::Message(Ok(_))));
        self.skip_read(heard.iter().filter(is_read).count());
        let entries = heard.len() as u64 + 1;
        tracing::info!(entries, "the agent is run again, and answered what it was answered before");
        answers.for_each(|answer| self.answers.keep(answer));
        self.answers.client = client.clone();
        self.recording = Some(RecordedRun { entries });
        let (began_ms, seed, told) = (at_ms, seed_of_run(seed, run), told.emitted);
        let journal = Journal { began_ms, run, seed, settings, heard, told };
        let mut task = work.task;
        task.metadata = metadata;
        let work = Work { task, message, history, live, journal: Some(journal) };
        Given { work, directory, client: began.client }
    }

    /// Stores a journal entry before the agent receives its content. If the content answers the
    /// open question, the task continues first.
    pub(in crate::tasks) async fn about_to_hear(
        &mut self,
        heard: &Recorded<Heard>,
        kept: oneshot::Sender<()>,
    ) -> Result<(), Unstorable> {
        if self.lifecycle.stands() {
            let stands = Asked::of(self.recorder.task().metadata.as_ref());
            if !is_still_asked(Arc::clone(self.recorder.storage()), stands).await {
                self.carry_out(Signal::WentOn, &mut SignalPayload::default()).await?;
            }
        }
        self.record_heard(heard, kept).await
    }

    /// Stores a journal entry, after the agent's earlier output.
    async fn record_heard(
        &mut self,
        heard: &Recorded<Heard>,
        kept: oneshot::Sender<()>,
    ) -> Result<(), Unstorable> {
        self.recorder.flush(None).await?;
        let Some(recording) = &mut self.recording else { return Ok(()) };
        let task = &self.recorder.task().id;
        let entry = json(heard).map_err(Unstorable)?;
        if let Err(why) = self.recorder.storage().record(task, recording.entries, entry).await {
            tracing::error!(%task, %why, "what an agent is to hear could not be recorded");
            return Err(Unstorable(why));
        }
        recording.entries += 1;
        // The guest may have ended.
        let _ = kept.send(());
        Ok(())
    }

    /// Downgrades the agent's resumability if the run is not recorded: such a run cannot be
    /// replayed.
    pub(in crate::tasks) fn recordable(&self, hold: Resumability) -> Resumability {
        let is_lost = hold == Resumability::Replay && self.recording.is_none();
        if is_lost { Resumability::Nothing } else { hold }
    }

    /// Answers a question that the client has already answered, before the restart or since.
    /// Returns any other question.
    pub(in crate::tasks) fn answered_before(
        &mut self,
        question: Box<GuestQuestion>,
    ) -> Option<Box<GuestQuestion>> {
        let answer = self.answers.to(question.of_child.as_ref());
        let Some(answer) = answer else { return Some(question) };
        // A guest that has ended needs no answer.
        let _ = question.answer.send(Ok(answer));
        None
    }
}

/// Random seed for a new task's agent.
pub(in crate::tasks) fn fresh_seed() -> Option<u64> {
    getrandom::u64().ok()
}

/// Random seed of one run; every run gets a different one.
fn seed_of_run(seed: u64, run: Option<u64>) -> u64 {
    // The golden ratio in 64 bits, which spreads multiples (Fibonacci hashing).
    run.map_or(seed, |run| seed ^ run.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// Random seed of the task's agent; none if its runs are not recorded.
pub(in crate::tasks) async fn seed(
    storage: &dyn TaskStore,
    task: &TaskId,
) -> Result<Option<u64>, StorageError> {
    let first = storage.events(task, 0, 1).await?.pop();
    let Some(TaskEvent::Created(created)) = first.map(|first| first.event) else {
        return Ok(None);
    };
    Ok(created.seed)
}

/// Component that began the task's current run; none if no run is recorded, or its journal does not
/// name the component.
pub(in crate::tasks) async fn version(
    storage: &dyn TaskStore,
    task: &TaskId,
) -> Result<Option<AgentVersion>, StorageError> {
    #[derive(Deserialize)]
    struct Begun {
        #[serde(default)]
        agent: Option<AgentVersion>,
    }
    if seed(storage, task).await?.is_none() {
        return Ok(None);
    }
    let first = storage.recorded(task).await?.into_iter().next();
    // An unreadable entry is reported when the run begins.
    let begun = first.and_then(|first| serde_json::from_str::<Begun>(&first).ok());
    Ok(begun.and_then(|begun| begun.agent))
}
