//! Recording and replay of runs: writes a run's journal, and rebuilds the run from it in the next
//! process.

use super::{
    SignalPayload, TaskActor,
    recorder::Unstorable,
    run_journal::{Began, RecordedRun, json, read, run_facts},
};
use crate::tasks::{guest_port::GuestQuestion, recovery::pending_questions::child_still_asks};
use a2a_hub_agents::AgentVersion;
use a2a_hub_clock as clock;
use a2a_hub_core::task::{
    lifecycle::Signal,
    recovery::Resumability,
    replay::{Entry, Recorded},
};
use a2a_hub_protocol::{
    client::ClientCapabilities, event::TaskEvent, id::TaskId, question::Question as AgentQuestion,
};
use a2a_hub_runtime::{
    RunFacts, Work,
    port::journal::{Journal, JournalAnswer},
};
use a2a_hub_store::{StorageError, TaskStore};
use serde::Deserialize;
use std::sync::Arc;
use tokio::sync::oneshot;

/// Input of one agent run.
pub(in crate::tasks) struct RunSetup {
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
        setup: RunSetup,
    ) -> Result<RunSetup, StorageError> {
        self.recording = None;
        if !self.agent.replays() {
            return Ok(setup);
        }
        // Boxed, for few runs are recorded.
        Box::pin(self.record_or_repeat(setup)).await
    }

    async fn record_or_repeat(&mut self, setup: RunSetup) -> Result<RunSetup, StorageError> {
        let RunSetup { work, directory, client } = setup;
        let storage = Arc::clone(self.recorder.storage());
        let task = work.task.id.clone();
        let Some(seed) = seed(&*storage, &task).await? else {
            return Ok(RunSetup { work, directory, client });
        };
        let mut entries = storage.recorded(&task).await?.into_iter();
        let first = entries.next();
        let run = first.is_some().then_some(self.recorder.seq());
        if let Some(first) = first {
            let began: Began = read(&work, &first)?;
            let facts = run_facts(&*storage, &work, began.seq).await?;
            if !facts.is_over {
                let recorded = entries.map(|entry| read::<Recorded<JournalAnswer>>(&work, &entry));
                let recorded = recorded.collect::<Result<Vec<_>, _>>()?;
                return Ok(self.go_on(work, &client, began, facts, seed, recorded));
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
            answers: Vec::new(),
            emitted: Vec::new(),
        };
        self.answers.begin(&client);
        self.recording = Some(RecordedRun { entries: 1 });
        let work = Work { journal: Some(journal), ..work };
        Ok(RunSetup { work, directory, client })
    }

    fn go_on(
        &mut self,
        work: Work,
        client: &ClientCapabilities,
        began: Began,
        facts: RunFacts,
        seed: u64,
        recorded: Vec<Recorded<JournalAnswer>>,
    ) -> RunSetup {
        let Began { at_ms, run, message, history, metadata, directory, live, settings, .. } = began;
        // The journal has the answers to the agent's own questions that it has received.
        let is_reply = |it: &&Recorded<JournalAnswer>| {
            matches!(&it.entry, Entry::Answer(_, JournalAnswer::Reply(Ok(_))))
        };
        let mut recorded_replies = recorded.iter().filter(is_reply).count();
        let answers = facts.answers.into_iter().filter(|(question, _)| {
            let was_received = question.task.is_none() && recorded_replies > 0;
            recorded_replies -= usize::from(was_received);
            !was_received
        });
        let is_read = |it: &&Recorded<JournalAnswer>| {
            matches!(&it.entry, Entry::Answer(_, JournalAnswer::Message(Ok(_))))
        };
        self.skip_read(recorded.iter().filter(is_read).count());
        let entries = recorded.len() as u64 + 1;
        tracing::info!(entries, "replaying the agent's run from its journal");
        answers.for_each(|answer| self.answers.push(answer));
        self.answers.client = client.clone();
        self.recording = Some(RecordedRun { entries });
        let (began_ms, seed, emitted) = (at_ms, seed_of_run(seed, run), facts.emitted);
        let journal = Journal { began_ms, run, seed, settings, answers: recorded, emitted };
        let mut task = work.task;
        task.metadata = metadata;
        let work = Work { task, message, history, live, journal: Some(journal) };
        RunSetup { work, directory, client: began.client }
    }

    /// Stores a journal entry before the agent receives its content. If the content answers the
    /// open question, the task continues first.
    pub(in crate::tasks) async fn record_entry(
        &mut self,
        recorded: &Recorded<JournalAnswer>,
        stored_tx: oneshot::Sender<()>,
    ) -> Result<(), Unstorable> {
        if self.lifecycle.has_pending_question() {
            let question = AgentQuestion::from_metadata(self.recorder.task().metadata.as_ref());
            if !child_still_asks(Arc::clone(self.recorder.storage()), question).await {
                self.carry_out(Signal::WentOn, &mut SignalPayload::default()).await?;
            }
        }
        self.append_entry(recorded, stored_tx).await
    }

    /// Stores a journal entry, after the agent's earlier output.
    async fn append_entry(
        &mut self,
        recorded: &Recorded<JournalAnswer>,
        stored_tx: oneshot::Sender<()>,
    ) -> Result<(), Unstorable> {
        self.recorder.flush(None).await?;
        let Some(recording) = &mut self.recording else { return Ok(()) };
        let task = &self.recorder.task().id;
        let entry = json(recorded).map_err(Unstorable)?;
        if let Err(why) = self.recorder.storage().record(task, recording.entries, entry).await {
            tracing::error!(%task, %why, "cannot store journal entry");
            return Err(Unstorable(why));
        }
        recording.entries += 1;
        // The guest may have ended.
        let _ = stored_tx.send(());
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
