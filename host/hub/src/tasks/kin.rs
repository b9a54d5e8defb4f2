//! What a task's actor does about other tasks: its agent may give some to others, and none of them outlives it.

use super::{
    actor::{Payload, RunningTask, SAID, TaskActor},
    command::Start,
    port::ToActor,
    relations::RunKind,
    replay::Given,
};
use a2a_hub_agents::TaskPorts;
use a2a_hub_core::{
    access::Principal,
    facts,
    lifecycle::{Fault, Record},
    routing::ROUTING,
    tree::Usage,
};
use a2a_hub_protocol::event::TaskEvent;
use a2a_hub_runtime::Work;
use std::sync::{Arc, atomic::Ordering};
use tokio::sync::mpsc;

impl TaskActor {
    /// Gives the task to its agent.
    pub(super) async fn start(&mut self) -> Result<(), Fault> {
        // A task comes to its agent with what it was queued with.
        let Some(start) = self.start.take() else { return Err(Fault::AgentReplaced) };
        let Start { message, client, directory, streamed, goes_on, at, by } = *start;
        let unheard: Vec<_> =
            [at].into_iter().chain(self.unheard.iter().map(|start| start.at)).collect();
        let limit = if goes_on { self.agent.config.history } else { 0 };
        let history = self.recorder.said_before(limit, &unheard).await.map_err(|why| {
            let task = &self.recorder.task().id;
            tracing::error!(%task, %why, "the conversation so far cannot be read");
            Fault::Unreadable
        })?;
        let (queue, said) = mpsc::channel(SAID);
        let mut task = self.recorder.task().clone();
        // Which others could have had it is for its client, and no agent's to know that is granted none.
        task.metadata.as_mut().map(|facts| facts.remove(ROUTING));
        let work = Work { task, message, history, live: streamed, journal: None };
        let begun = self.recorded_run(Given { work, directory, client }).await;
        let Given { work, directory, client } = begun.map_err(|why| {
            let task = &self.recorder.task().id;
            tracing::error!(%task, %why, "the journal of the task's run cannot be used");
            Fault::Unreadable
        })?;
        let tasks = self.tasks.as_ref().filter(|_| self.agent.delegates());
        let task = self.recorder.task();
        // In the next hub a run that begins anew joins its children itself.
        let follows_another = std::mem::take(&mut self.goes_on);
        let run = RunKind { is_recorded: self.recording.is_some(), follows_another };
        let delegation = tasks.map(|tasks| tasks.delegation(&self.agent, task, queue.clone(), run));
        self.count_beside();
        let port = Arc::new(ToActor { queue, beside: Arc::clone(&self.beside) });
        let journal = self.recording.is_some().then(|| Arc::clone(&port) as _);
        let ports = TaskPorts { task: port, delegation, journal, by };
        let run = self.agent.start(ports, directory, client, work);
        self.guest = Some(RunningTask::new(run, said));
        Ok(())
    }

    /// Hears of a task at an agent elsewhere what happened to it since the hub before this one ended.
    pub(super) fn follow(&mut self) -> Result<(), Fault> {
        let (queue, said) = mpsc::channel(SAID);
        let run = self.agent.follow(
            Arc::new(ToActor { queue, beside: Arc::default() }),
            self.recorder.task().clone(),
        );
        let run = run.ok_or(Fault::AgentReplaced)?;
        self.guest = Some(RunningTask::new(run, said));
        Ok(())
    }

    /// Ends what the agent gave to others and is still at work: no child outlives its parent. Tells whether there were any.
    pub(super) async fn end_children(&mut self, by: Option<&Principal>) -> bool {
        let Some(tasks) = &self.tasks else { return false };
        let task = self.recorder.task().id.clone();
        let own = || Principal::AgentTask { agent: self.agent.id.clone(), task: task.clone() };
        tasks.end_children(&task, &by.cloned().unwrap_or_else(own)).await
    }

    /// Has the agent's account know what is told once more behind a status of its.
    pub(super) fn count_beside(&self) {
        let own = self.own_question_stands();
        let bytes = facts::bytes_beside_question(self.recorder.task(), own);
        self.beside.store(bytes, Ordering::Relaxed);
    }

    /// Tells those above what the task has used up by now, where that is something new.
    pub(super) fn report(&mut self) {
        let used = Usage::of(self.recorder.task().metadata.as_ref());
        if used != self.reported
            && let Some(tasks) = &self.tasks
        {
            self.reported = used;
            tasks.report(&self.recorder.task().id, used);
        }
    }
}

impl Payload {
    /// Has the events happen at this time.
    pub(super) fn stamp(&mut self, now: &str) {
        for event in &mut self.events {
            if let TaskEvent::Status(update) = event {
                now.clone_into(&mut update.status.timestamp);
            }
        }
    }

    /// Whether this is the end of the task.
    pub(super) fn is_last(&self, record: Record) -> bool {
        match record {
            Record::Canceled | Record::Failed(_) => true,
            Record::Itself => self.events.iter().any(|event| match event {
                TaskEvent::Status(update) => update.status.state.is_final(),
                TaskEvent::Reply(_) => true,
                TaskEvent::Created(_) | TaskEvent::Artifact(_) | TaskEvent::Input(_) => false,
            }),
            Record::Working
            | Record::Interim
            | Record::Interrupted
            | Record::Stranded
            | Record::Parked => false,
        }
    }
}
