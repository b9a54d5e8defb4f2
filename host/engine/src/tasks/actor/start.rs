//! Starts the agent's run, and ends child tasks when the task ends.

use super::{
    GUEST_CHANNEL_CAPACITY, SignalPayload, TaskActor, replay::RunSetup, running_task::RunningTask,
};
use crate::tasks::{
    command::RunInput,
    guest_port::ActorPort,
    ports::{Handoff, RunKind},
    run_queue::Asking,
};
use crate::worktree_runs::{self, PATCH, WorktreeOfRun};
use a2a_hub_agents::TaskPorts;
use a2a_hub_core::{
    access_control::Principal,
    identity::LoginUser,
    routing::ROUTING,
    task::{
        lifecycle::{Fault, Record, Signal},
        list_limits::{ListLimits, TaskLists},
        metadata,
        tree_budget::Usage,
    },
};
use a2a_hub_protocol::event::TaskEvent;
use a2a_hub_runtime::{Ended, Failure, Limits, Run, RunAfter, StartAgent, Work};
use futures::future::BoxFuture;
use parking_lot::Mutex;
use std::sync::{Arc, atomic::Ordering};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

impl TaskActor {
    /// Requests the run permit that the task released while it waited for its client.
    pub(in crate::tasks) fn requeue(&mut self, payload: &mut SignalPayload) -> Option<Signal> {
        match (&mut self.guest, payload.start.take()) {
            (Some(guest), _) => guest.answer = payload.answer.take(),
            (None, Some(start)) => self.start = Some(self.recorded(start)),
            (None, None) => {}
        }
        self.permits.request(Asking::for_task(self.recorder.task(), &self.agent))
    }

    /// Starts the agent on the task.
    pub(in crate::tasks) async fn start(&mut self) -> Result<(), Fault> {
        // Every start comes with its input; without one, the agent cannot continue.
        let Some(start) = self.start.take() else { return Err(Fault::AgentReplaced) };
        let RunInput { message, client, directory, live, goes_on, at, by } = *start;
        self.quota.client.clone_from(&client);
        let pending_indexes: Vec<_> =
            [at].into_iter().chain(self.pending_inputs.iter().map(|start| start.at)).collect();
        let limit = if goes_on { self.agent.config.history } else { 0 };
        let history =
            self.recorder.earlier_messages(limit, &pending_indexes).await.map_err(|why| {
                let task = &self.recorder.task().id;
                tracing::error!(%task, %why, "cannot read the conversation history");
                Fault::Unreadable
            })?;
        let memory_by = match &by {
            Some(by) => Some(by.clone()),
            // A recovered task. Taken for the operator's, it would have all of the memory.
            None => self.recorder.begun_by().await.map_err(|why| {
                let task = &self.recorder.task().id;
                tracing::error!(%task, %why, "cannot read who began the task");
                Fault::Unreadable
            })?,
        };
        let login_user = if self.agent.may_have_logins() {
            let found = self.recorder.login_user().await;
            found.map_err(|why| {
                let task = &self.recorder.task().id;
                tracing::error!(%task, %why, "cannot read who began the tree of the task");
                Fault::Unreadable
            })?
        } else {
            LoginUser::Operator
        };
        let (queue, requests) = mpsc::channel(GUEST_CHANNEL_CAPACITY);
        let mut task = self.recorder.task().clone();
        // The routing facts name the alternatives. They are for the client; an agent may not be
        // granted any of those agents.
        task.metadata.as_mut().map(|facts| facts.remove(ROUTING));
        let work = Work { task, message, history, live, journal: None };
        let begun = self.recorded_run(RunSetup { work, directory, client }).await;
        let RunSetup { work, directory, client } = begun.map_err(|why| {
            let task = &self.recorder.task().id;
            tracing::error!(%task, %why, "cannot use the journal of the task's run");
            Fault::Unreadable
        })?;
        let tasks = self.tasks.as_ref().filter(|_| self.agent.delegates());
        let task = self.recorder.task();
        // A run that is replayed after a restart rejoins its children itself.
        let follows_another = std::mem::take(&mut self.goes_on);
        let run = RunKind { is_recorded: self.recording.is_some(), follows_another };
        let delegation = tasks.map(|tasks| tasks.delegation(&self.agent, task, queue.clone(), run));
        self.update_repeated_bytes();
        let has_worktree = metadata::has(self.recorder.task(), metadata::WORKTREE);
        let repeated_bytes = Arc::clone(&self.repeated_bytes);
        let of_hub = has_worktree.then_some(PATCH);
        let (hubs_queue, hub_repeated_bytes) = (queue.clone(), Arc::clone(&repeated_bytes));
        let hubs = ActorPort {
            queue: hubs_queue,
            repeated_bytes: hub_repeated_bytes,
            of_hub: None,
            lists: None,
            rules: None,
        };
        let lists = Some(self.lists());
        let task = self.recorder.task();
        let rules = self.tasks.as_ref().map(|it| it.rules(&self.agent, task));
        let port = Arc::new(ActorPort { queue, repeated_bytes, of_hub, lists, rules });
        let journal = self.recording.is_some().then(|| Arc::clone(&port) as _);
        let worktrees = self.tasks.as_ref().filter(|_| has_worktree);
        let worktrees = worktrees.and_then(|tasks| tasks.worktrees()).cloned();
        let (task, events) = (self.recorder.task(), self.recorder.events().clone());
        let worktree = worktrees.map(|worktrees| WorktreeOfRun {
            worktrees,
            task: task.id.clone(),
            context: task.context_id.clone(),
            publish: Arc::new(move |event| events.publish(event)),
            port: Arc::new(hubs),
            has_patch: task.artifacts.iter().any(|it| it.artifact_id.as_str() == PATCH),
        });
        let handoff = Handoff::from_task(self.recorder.task(), &self.agent.id, by.as_ref());
        let over = self.tasks.as_ref().zip(handoff).map(|(tasks, of)| tasks.old_task_over(of));
        let ports = TaskPorts { task: port, delegation, journal, by, memory_by, login_user };
        let agent = Arc::clone(&self.agent);
        let task = self.recorder.task();
        let hand_on = self.tasks.as_ref().and_then(|tasks| tasks.hand_on(&self.agent, task));
        let start = move || {
            let run = agent.start(ports, directory, client, work);
            if let Some(wrap) = hand_on { wrap(run) } else { run }
        };
        let start: StartAgent = match worktree {
            Some(worktree) => Box::new(|| worktree_runs::start(worktree, Box::new(start))),
            None => Box::new(start),
        };
        let run = match over {
            Some(over) => start_after(over, start),
            None => start(),
        };
        self.guest = Some(RunningTask::new(run, requests));
        Ok(())
    }

    /// Counts the lists of the task, to which the agent's run adds.
    fn lists(&self) -> Mutex<TaskLists> {
        let Limits { events, output_bytes, .. } = self.agent.limits();
        let limits = ListLimits::for_runs_of(events, output_bytes);
        Mutex::new(TaskLists::new(self.recorder.task(), self.recorder.seq(), limits))
    }

    /// Follows a task at a remote agent, and receives what happened since the previous process
    /// ended.
    pub(in crate::tasks) fn follow(&mut self) -> Result<(), Fault> {
        let (queue, requests) = mpsc::channel(GUEST_CHANNEL_CAPACITY);
        let lists = Some(self.lists());
        let run = self.agent.follow(
            Arc::new(ActorPort {
                queue,
                repeated_bytes: Arc::default(),
                of_hub: None,
                lists,
                rules: None,
            }),
            self.recorder.task().clone(),
        );
        let run = run.ok_or(Fault::AgentReplaced)?;
        let task = self.recorder.task();
        let hand_on = self.tasks.as_ref().and_then(|tasks| tasks.hand_on(&self.agent, task));
        let run = if let Some(wrap) = hand_on { wrap(run) } else { run };
        self.guest = Some(RunningTask::new(run, requests));
        Ok(())
    }

    /// Ends the task's running children: no child outlives its parent. Returns true if there were
    /// any.
    pub(in crate::tasks) async fn end_children(&mut self, by: Option<&Principal>) -> bool {
        let Some(tasks) = &self.tasks else { return false };
        let task = self.recorder.task().id.clone();
        let as_agent = || Principal::AgentTask { agent: self.agent.id.clone(), task: task.clone() };
        tasks.end_children(&task, &by.cloned().unwrap_or_else(as_agent)).await
    }

    /// Updates the size of what is repeated beside a status, for the agent's accounting.
    pub(in crate::tasks) fn update_repeated_bytes(&self) {
        let agent_asks = self.agent_question_is_open();
        let bytes = metadata::repeated_question_bytes(self.recorder.task(), agent_asks);
        self.repeated_bytes.store(bytes, Ordering::Relaxed);
    }

    /// Reports the task's usage to its ancestors, if it has changed.
    pub(in crate::tasks) fn report(&mut self) {
        let used = Usage::from_metadata(self.recorder.task().metadata.as_ref());
        if used != self.reported
            && let Some(tasks) = &self.tasks
        {
            self.reported = used;
            tasks.report(&self.recorder.task().id, used);
        }
    }
}

/// Starts the agent once the old task of a handoff is over.
fn start_after(over: BoxFuture<'static, Option<Ended>>, agent: StartAgent) -> Box<dyn Run> {
    let cancelled = CancellationToken::new();
    let cancellation = cancelled.clone();
    let before = async move {
        let ended = cancellation.run_until_cancelled(over).await;
        ended.unwrap_or(Some(Ended::Failed(Failure::Cancelled)))
    };
    Box::new(RunAfter::new(before, agent, move || cancelled.cancel()))
}

impl SignalPayload {
    /// Sets the time of the events.
    pub(in crate::tasks) fn stamp(&mut self, now: &str) {
        for event in &mut self.events {
            if let TaskEvent::Status(update) = event {
                now.clone_into(&mut update.status.timestamp);
            }
        }
    }

    /// True if this record ends the task.
    pub(in crate::tasks) fn is_last(&self, record: Record) -> bool {
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
            | Record::Evicted
            | Record::Waits
            | Record::Continues
            | Record::Again => false,
        }
    }
}
