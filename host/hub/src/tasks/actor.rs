//! One task, from its first event to its last: waits here, decides in `core`, tells what was stored.

use super::{
    feed::Feed,
    port::{Question, Said, ToActor},
};
use crate::{agents::Agent, events::Events, storage::Storage, telemetry};
use a2a_hub_core::task;
use a2a_hub_protocol::{
    error::A2aError,
    event::{ArtifactUpdate, Recorded, StatusUpdate, TaskEvent},
    hub_event::Happened,
    id::TaskId,
    message::{Message, Metadata, Role},
    task::{Task, TaskState, TaskStatus},
};
use a2a_hub_sandbox::{Ended, Failure, Guest, capability::tasks::Emitted, guest::Work};
use serde_json::json;
use std::{sync::Arc, time::Duration};
use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, sleep_until, timeout},
};

/// What a guest may say before it must wait for the store; also the largest batch that is stored together.
const SAID: usize = 64;

/// How long a guest that says nothing is believed to be starting; then the task is told to be at work.
const QUIET: Duration = Duration::from_millis(100);

/// How long a cancelled guest may take to come to an end by itself.
const GRACE: Duration = Duration::from_millis(500);

/// How long the programs of a task that is over may take to be gone, before that is reported and left.
const PROGRAMS_GONE: Duration = Duration::from_secs(8);

/// What somebody asks of a task.
pub(super) enum Command {
    /// Stop, and answer once it has.
    Cancel,
    /// The client says more; the answer tells whether the task was waiting for it.
    Input(Message, oneshot::Sender<Result<(), A2aError>>),
    /// The hub is going down.
    Shutdown,
}

/// Why a guest's work is cut short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cut {
    Cancelled,
    Timeout,
    Shutdown,
}

pub(super) struct TaskActor {
    pub(super) task: Task,
    pub(super) seq: u64,
    pub(super) agent: Arc<Agent>,
    pub(super) storage: Arc<dyn Storage>,
    pub(super) events: Events,
    pub(super) feed: Feed,
    pub(super) commands: mpsc::Receiver<Command>,
    /// How long the guest may work; waiting for the client does not count.
    pub(super) patience: Duration,
}

/// The store refused: nothing more can be told of the task.
struct Unstorable;

/// The state of a task whose guest is at work.
struct AtWork {
    guest: Guest,
    said: mpsc::Receiver<Said>,
    deadline: Instant,
    quiet_until: Option<Instant>,
    waiting: Option<Waiting>,
}

/// The guest waits for the client.
struct Waiting {
    answer: oneshot::Sender<Result<Message, Failure>>,
    until: Instant,
    since: Instant,
}

enum Next {
    Said(Said),
    Ended(Ended),
    Command(Option<Command>),
    Quiet,
    Deadline,
    NoAnswer,
}

impl TaskActor {
    /// Runs the task to its end. `work` is what the guest is given.
    pub(super) async fn run(mut self, work: Work, directory: Option<String>) {
        let (to_actor, said) = mpsc::channel(SAID);
        let id = self.task.id.clone();
        let call = self.agent.call(id.as_str(), Some(Arc::new(ToActor(to_actor))), directory);
        let at_work = AtWork {
            guest: Guest::start(self.agent.plugin(), call, work),
            said,
            deadline: Instant::now() + self.patience,
            quiet_until: Some(Instant::now() + QUIET),
            waiting: None,
        };
        // A store that fails ends the feed early: listeners never hear what may be lost.
        if self.work(at_work).await.is_err() {
            tracing::error!(task = %id, "a task was given up because the store failed");
        }
        self.agent.task_ended(&self.task);
    }

    async fn work(&mut self, mut at_work: AtWork) -> Result<(), Unstorable> {
        loop {
            match at_work.next(&mut self.commands).await {
                Next::Said(Said::Emit(emitted)) => {
                    at_work.quiet_until = None;
                    self.take(emitted, &mut at_work).await?;
                }
                Next::Said(Said::Ask(question)) => {
                    at_work.quiet_until = None;
                    self.ask(question, &mut at_work).await?;
                }
                Next::Ended(ended) => return self.end(ended, at_work).await,
                Next::Command(Some(Command::Input(message, told))) => {
                    self.input(message, told, &mut at_work).await?;
                }
                Next::Command(Some(Command::Cancel)) => {
                    return self.cut(Cut::Cancelled, at_work).await;
                }
                Next::Command(Some(Command::Shutdown) | None) => {
                    return self.cut(Cut::Shutdown, at_work).await;
                }
                Next::Quiet => {
                    at_work.quiet_until = None;
                    self.store(vec![self.status(TaskState::Working, None, None)]).await?;
                }
                Next::Deadline => return self.cut(Cut::Timeout, at_work).await,
                Next::NoAnswer => {
                    at_work.answer(Err(Failure::Timeout));
                    self.store(vec![self.status(TaskState::Working, None, None)]).await?;
                }
            }
        }
    }

    /// Stores what the guest emitted, together with what else is queued up behind it.
    async fn take(
        &mut self,
        emitted: Vec<Emitted>,
        at_work: &mut AtWork,
    ) -> Result<(), Unstorable> {
        let mut events = self.started();
        events.extend(emitted.into_iter().map(|emitted| self.event(emitted)));
        while events.len() < SAID
            && let Ok(said) = at_work.said.try_recv()
        {
            match said {
                Said::Emit(more) => events.extend(more.into_iter().map(|more| self.event(more))),
                Said::Ask(question) => {
                    self.store(events).await?;
                    return self.ask(question, at_work).await;
                }
            }
        }
        self.store(events).await
    }

    async fn ask(&mut self, question: Question, at_work: &mut AtWork) -> Result<(), Unstorable> {
        let Question { need, prompt, patience, answer } = question;
        let mut events = self.started();
        events.push(self.status(need.state(), Some(prompt), None));
        self.store(events).await?;
        let now = Instant::now();
        let longest = self.agent.config.answer_timeout();
        let until = now + patience.map_or(longest, |patience| patience.min(longest));
        at_work.waiting = Some(Waiting { answer, until, since: now });
        Ok(())
    }

    async fn input(
        &mut self,
        message: Message,
        told: oneshot::Sender<Result<(), A2aError>>,
        at_work: &mut AtWork,
    ) -> Result<(), Unstorable> {
        if at_work.waiting.is_none() {
            let refusal = super::not_waiting(&self.task.id, self.task.status.state);
            // Who asked may have gone; there is nobody to tell then.
            let _ = told.send(Err(refusal));
            return Ok(());
        }
        let working = self.status(TaskState::Working, None, None);
        self.store(vec![TaskEvent::Input(message.clone()), working]).await?;
        at_work.answer(Ok(message));
        let _ = told.send(Ok(()));
        Ok(())
    }

    /// The guest came to an end by itself.
    async fn end(&mut self, ended: Ended, mut at_work: AtWork) -> Result<(), Unstorable> {
        while let Ok(Said::Emit(emitted)) = at_work.said.try_recv() {
            self.take(emitted, &mut at_work).await?;
        }
        self.programs_gone().await;
        let mut events = Vec::new();
        let last = match ended {
            Ended::Reply(message) => TaskEvent::Reply(self.addressed(message)),
            Ended::Status { state, message, metadata } => self.status(state, message, metadata),
            Ended::Failed(failure) => self.failed(&failure),
        };
        if let TaskEvent::Reply(_) = last {
            events = self.started();
        }
        if let TaskEvent::Status(update) = &last
            && !task::allows(self.task.status.state, update.status.state)
        {
            events = self.started();
        }
        events.push(last);
        self.store(events).await
    }

    /// The guest is stopped: asked first, then ended; its programs with it.
    async fn cut(&mut self, why: Cut, mut at_work: AtWork) -> Result<(), Unstorable> {
        at_work.guest.cancel();
        let stopped = timeout(GRACE, async {
            loop {
                tokio::select! {
                    _ = at_work.guest.ended() => return,
                    // What it still says is not heard any more, but must not hold it up.
                    Some(_) = at_work.said.recv() => {}
                }
            }
        });
        if stopped.await.is_err() {
            tracing::warn!(task = %self.task.id, agent = %self.agent.id, "the agent did not heed cancel and was ended");
        }
        at_work.guest.end().await;
        self.programs_gone().await;
        if why == Cut::Cancelled {
            self.agent.clean_up(&self.task.id).await;
        }
        let event = match why {
            Cut::Cancelled => self.status(TaskState::Canceled, None, None),
            Cut::Timeout => {
                let text =
                    format!("The task took longer than the {:?} it was given.", self.patience);
                self.failure("timeout", text)
            }
            Cut::Shutdown => {
                let text = "The hub was stopped while the agent was at work.".to_owned();
                self.failure("hub_stopped", text)
            }
        };
        self.store(vec![event]).await
    }

    /// No program outlives its task: the last event waits until they are gone.
    async fn programs_gone(&self) {
        let gone = self.agent.programs_ended(self.task.id.as_str());
        if timeout(PROGRAMS_GONE, gone).await.is_err() {
            tracing::error!(task = %self.task.id, "programs of a task are still there after it ended");
        }
    }

    /// Applies, stores, then publishes. What `core` does not allow is left out and logged: a guest cannot cause it.
    async fn store(&mut self, events: Vec<TaskEvent>) -> Result<(), Unstorable> {
        let mut taken = Vec::with_capacity(events.len());
        let (mut state, mut moves) = (self.task.status.state, Vec::new());
        for event in events {
            match task::apply(&mut self.task, &event) {
                Ok(()) => {
                    let now = self.task.status.state;
                    moves.extend((now != state).then_some(now));
                    state = now;
                    taken.push(Arc::new(event));
                }
                Err(why) => tracing::error!(task = %self.task.id, %why, "an event was left out"),
            }
        }
        if taken.is_empty() {
            return Ok(());
        }
        let stored = self.storage.append(&self.task.id, self.seq, taken.clone()).await;
        if let Err(why) = stored {
            tracing::error!(task = %self.task.id, %why, "events could not be stored");
            return Err(Unstorable);
        }
        let recorded = taken.into_iter().map(|event| {
            self.seq += 1;
            Arc::new(Recorded {
                task: self.task.id.clone(),
                context: self.task.context_id.clone(),
                seq: self.seq,
                event: Arc::unwrap_or_clone(event),
            })
        });
        self.feed.publish(recorded.collect::<Vec<_>>());
        for state in moves {
            self.events.publish(Happened::TaskState {
                task_id: self.task.id.clone(),
                context_id: self.task.context_id.clone(),
                agent_id: self.agent.id.clone(),
                state,
            });
        }
        Ok(())
    }

    /// That the agent is at work, unless that was said.
    fn started(&self) -> Vec<TaskEvent> {
        let submitted = self.task.status.state == TaskState::Submitted;
        submitted.then(|| self.status(TaskState::Working, None, None)).into_iter().collect()
    }

    fn event(&self, emitted: Emitted) -> TaskEvent {
        match emitted {
            Emitted::Working { message, metadata } => {
                self.status(TaskState::Working, message, metadata)
            }
            Emitted::Artifact { artifact, append, last_chunk } => {
                TaskEvent::Artifact(ArtifactUpdate { artifact, append, last_chunk })
            }
        }
    }

    fn status(
        &self,
        state: TaskState,
        message: Option<Message>,
        metadata: Option<Metadata>,
    ) -> TaskEvent {
        let message = message.map(|message| self.addressed(message));
        let status = TaskStatus { state, message, timestamp: telemetry::timestamp() };
        TaskEvent::Status(StatusUpdate { status, metadata })
    }

    /// A guest's message, with the task and the conversation it belongs to.
    fn addressed(&self, mut message: Message) -> Message {
        message.task_id = Some(self.task.id.clone());
        message.context_id = Some(self.task.context_id.clone());
        message
    }

    /// How the task ends when its guest did not do what it was to do.
    fn failed(&self, failure: &Failure) -> TaskEvent {
        if *failure == Failure::Cancelled {
            return self.status(TaskState::Canceled, None, None);
        }
        self.failure(failure.reason(), failure.to_string())
    }

    fn failure(&self, reason: &str, text: String) -> TaskEvent {
        let facts = Metadata::from_iter([("reason".to_owned(), json!(reason))]);
        let message = Message::text(Role::Agent, text);
        self.status(TaskState::Failed, Some(message), Some(facts))
    }
}

impl AtWork {
    async fn next(&mut self, commands: &mut mpsc::Receiver<Command>) -> Next {
        let answer_until = self.waiting.as_ref().map(|waiting| waiting.until);
        let deadline = self.waiting.is_none().then_some(self.deadline);
        tokio::select! {
            // Orders first; then what was said, which must all be heard before the end.
            biased;
            command = commands.recv() => Next::Command(command),
            Some(said) = self.said.recv() => Next::Said(said),
            ended = self.guest.ended() => Next::Ended(ended),
            () = at(self.quiet_until) => Next::Quiet,
            () = at(answer_until) => Next::NoAnswer,
            () = at(deadline) => Next::Deadline,
        }
    }

    /// Lets the guest go on; the time it waited is not counted.
    fn answer(&mut self, answer: Result<Message, Failure>) {
        if let Some(waiting) = self.waiting.take() {
            self.deadline += waiting.since.elapsed();
            // A guest that was ended meanwhile needs no answer.
            let _ = waiting.answer.send(answer);
        }
    }
}

async fn at(instant: Option<Instant>) {
    match instant {
        Some(instant) => sleep_until(instant).await,
        None => std::future::pending().await,
    }
}

/// The event that ends a task which an earlier run of the hub left unfinished.
pub(super) fn abandoned(task: &TaskId) -> TaskEvent {
    let text =
        "The hub was restarted while the agent was at work; what it had done by then is kept.";
    let mut message = Message::text(Role::Agent, text);
    message.task_id = Some(task.clone());
    let status = TaskStatus {
        state: TaskState::Failed,
        message: Some(message),
        timestamp: telemetry::timestamp(),
    };
    let facts = Metadata::from_iter([("reason".to_owned(), json!("hub_restarted"))]);
    TaskEvent::Status(StatusUpdate { status, metadata: Some(facts) })
}
