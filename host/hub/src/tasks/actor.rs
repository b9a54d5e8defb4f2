//! One task, from its first event to its last: waits here, decides in `core`, tells what was stored.

use super::{
    at_work::{Answer, AtWork, Next},
    command::{Begin, Command, Input, Start},
    facts::{QUEUED, REASON, RECOVERY, fact, has_fact, working_directory},
    feed::Feed,
    port::{LatestClient, Question, Said, ToActor},
    recovery,
    turns::{Admitted, Place, Turn, Turns},
    unstored::{GivenUp, Unstorable},
};
use crate::{agents::Agent, clock, events::Events};
use a2a_hub_core::{question, reason::FailureReason, recovery::Hold, span::Span, task};
use a2a_hub_protocol::{
    client::ClientCapabilities,
    error::A2aError,
    event::{ArtifactUpdate, SequencedEvent, StatusUpdate, TaskEvent},
    hub::event::Happened,
    message::{Message, Metadata, Role},
    question::{QUESTION, Question as Asked},
    task::{Task, TaskState, TaskStatus},
};
use a2a_hub_runtime::{Ended, Failure, Work, port::tasks::Emitted};
use a2a_hub_store::{StorageError, TaskStore};
use futures::FutureExt as _;
use serde_json::{Value, json};
use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};
use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, sleep_until, timeout, timeout_at},
};

/// What a guest may say before it must wait for the store; also the largest batch that is stored together.
const SAID: usize = 64;

/// How long a guest that says nothing is believed to be starting; then the task is told to be at work.
const QUIET: Duration = Duration::from_millis(100);

/// How long a cancelled guest may take to come to an end by itself.
const GRACE: Duration = Duration::from_millis(500);

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
    pub(super) storage: Arc<dyn TaskStore>,
    pub(super) events: Events,
    pub(super) turns: Turns,
    pub(super) feed: Feed,
    pub(super) commands: mpsc::Receiver<Command>,
    /// How long the task may take; waiting for the client does not count.
    pub(super) patience: Duration,
    /// Whether it was told that the hub is: what cannot be stored then is left to the next hub.
    pub(super) going_down: bool,
}

impl TaskActor {
    /// Runs the task to its end.
    pub(super) async fn run(mut self, begin: Begin) {
        let is_over = match AssertUnwindSafe(self.until_its_end(begin)).catch_unwind().await {
            Ok(Ok(())) => true,
            // The next hub reads what there is, and decides.
            Ok(Err(_)) if self.going_down => false,
            Ok(Err(_)) => self.give_up(GivenUp::Unstored).await,
            Err(_) => self.give_up(GivenUp::Broken).await,
        };
        if is_over {
            self.agent.task_ended(&self.task).await;
        }
    }

    async fn until_its_end(&mut self, begin: Begin) -> Result<(), Unstorable> {
        let start = match begin {
            Begin::Work(start) => Some(*start),
            Begin::Parked => self.parked().await?,
            Begin::Follow(admitted, client) => return self.follow(admitted, client).await,
        };
        let Some(Start { message, client, directory, streamed, goes_on, admitted }) = start else {
            return Ok(());
        };
        let deadline = Instant::now() + self.patience;
        let Some(turn) = self.turn(admitted, deadline).await? else { return Ok(()) };
        // From here on the agent may have done something: one that waited until now must not be started twice.
        if has_fact(&self.task, QUEUED) || self.task.status.state.is_interrupted() {
            self.store(vec![self.working()]).await?;
        }
        let history = match self.said_before(goes_on).await {
            Ok(history) => history,
            Err(why) => {
                tracing::error!(task = %self.task.id, %why, "the conversation so far cannot be read");
                let text = "The hub cannot read what was said before; its log says why.";
                return self
                    .store(vec![self.failure(FailureReason::Internal, text.to_owned())])
                    .await;
            }
        };
        let (queue, said) = mpsc::channel(SAID);
        let client = LatestClient::new(client);
        let port = Arc::new(ToActor { queue, client: client.clone() });
        let work = Work { task: self.task.clone(), message, history, live: streamed };
        let guest = self.agent.start(port, directory, work);
        let quiet_until = Some(Instant::now() + QUIET);
        self.work(AtWork::new(guest, said, client, turn, deadline, quiet_until)).await
    }

    /// Hears of a task at an agent elsewhere what happened to it since the hub before this one ended.
    async fn follow(
        &mut self,
        admitted: Admitted,
        client: ClientCapabilities,
    ) -> Result<(), Unstorable> {
        let deadline = Instant::now() + self.patience;
        let Some(turn) = self.turn(admitted, deadline).await? else { return Ok(()) };
        let (queue, said) = mpsc::channel(SAID);
        let client = LatestClient::new(client);
        let port = Arc::new(ToActor { queue, client: client.clone() });
        let Some(guest) = self.agent.follow(port, self.task.clone()) else {
            let text = "The agent that had this task is another one now.".to_owned();
            return self.store(vec![self.failure(FailureReason::HubRestarted, text)]).await;
        };
        self.work(AtWork::new(guest, said, client, turn, deadline, None)).await
    }

    /// The task's turn; nothing if the task ends before it comes, or the hub does.
    async fn turn(
        &mut self,
        admitted: Admitted,
        deadline: Instant,
    ) -> Result<Option<Turn>, Unstorable> {
        match admitted {
            Admitted::Now(turn) => Ok(Some(turn)),
            Admitted::Later(place) => self.queued(place, deadline).await,
        }
    }

    /// Waits for the client; nothing if the task ends meanwhile, or the hub does.
    async fn parked(&mut self) -> Result<Option<Start>, Unstorable> {
        let until = Instant::now() + self.agent.config.answer_timeout();
        let start = loop {
            match timeout_at(until, self.commands.recv()).await {
                Ok(Some(Command::Input(input))) => {
                    let Some(input) = self.admit(*input) else { continue };
                    if let Some(start) = self.go_on_with(input).await? {
                        break start;
                    }
                    continue;
                }
                Ok(Some(Command::Cancel)) => {
                    self.agent.clean_up(&self.task.id).await;
                    self.store(vec![self.status(TaskState::Canceled, None, None)]).await?;
                }
                // It is left as it is, for the next hub.
                Ok(Some(Command::Shutdown) | None) => {}
                Err(_) => {
                    let text = "Nobody answered in time.".to_owned();
                    self.store(vec![self.failure(FailureReason::Timeout, text)]).await?;
                }
            }
            return Ok(None);
        };
        Ok(Some(start))
    }

    /// What the agent is given once the client has answered a task that waited without it; nothing if the answer could not be
    /// stored, and so was not said.
    async fn go_on_with(&mut self, input: Input) -> Result<Option<Start>, Unstorable> {
        let Input { message, client, told, .. } = input;
        let replaced = Asked::of(self.task.metadata.as_ref()).and_then(|asked| asked.replaces);
        if let Err(why) = self.store(vec![TaskEvent::Input(message.clone())]).await {
            self.unsaid(why, told).await?;
            return Ok(None);
        }
        let _ = told.send(Ok(()));
        let message = match replaced {
            Some(lost) => question::heard_after_restart(message, lost),
            None => message,
        };
        // It was admitted by the hub that ran it.
        let admitted = self.turns.come_back(&self.agent);
        let directory = working_directory(&self.task);
        let (streamed, goes_on) = (true, true);
        Ok(Some(Start { message, client, directory, streamed, goes_on, admitted }))
    }

    /// Waits for the task's turn; nothing if the task ends meanwhile, or the hub does.
    async fn queued(
        &mut self,
        mut place: Place,
        deadline: Instant,
    ) -> Result<Option<Turn>, Unstorable> {
        loop {
            let command = tokio::select! {
                biased;
                command = self.commands.recv() => command,
                turn = place.turn() => return Ok(Some(turn)),
                () = sleep_until(deadline) => {
                    let text = format!(
                        "The agent was busy for longer than the {} that the task was given.",
                        Span(self.patience)
                    );
                    self.store(vec![self.failure(FailureReason::Timeout, text)]).await?;
                    return Ok(None);
                }
            };
            match command {
                Some(Command::Input(input)) => self.refuse(input.told),
                Some(Command::Cancel) => {
                    // One that is elsewhere may be at work on it.
                    if !has_fact(&self.task, QUEUED) {
                        self.agent.clean_up(&self.task.id).await;
                    }
                    self.store(vec![self.status(TaskState::Canceled, None, None)]).await?;
                    return Ok(None);
                }
                Some(Command::Shutdown) | None => return Ok(None),
            }
        }
    }

    /// What was said in the conversation before the message that the agent is given.
    async fn said_before(&self, goes_on: bool) -> Result<Vec<Message>, StorageError> {
        let limit = self.agent.config.history;
        if !goes_on || limit == 0 {
            return Ok(Vec::new());
        }
        let mut said = self.storage.conversation(&self.task.context_id, limit).await?;
        if let [own @ .., _message] = &self.task.history[..] {
            said.extend_from_slice(own);
        }
        said.drain(..said.len().saturating_sub(limit));
        Ok(said)
    }

    async fn work(&mut self, mut at_work: AtWork) -> Result<(), Unstorable> {
        loop {
            match at_work.next(&mut self.commands).await {
                Next::Said(Said::Emit(emitted)) => {
                    at_work.heard_of();
                    self.take(emitted, &mut at_work).await?;
                }
                Next::Said(Said::Ask(question)) => self.ask(question, &mut at_work).await?,
                Next::Ended(ended) => return self.end(ended, at_work).await,
                Next::Command(Some(Command::Input(input))) => {
                    self.input(*input, &mut at_work).await?;
                }
                Next::Command(Some(Command::Cancel)) => {
                    return self.cut(Cut::Cancelled, at_work).await;
                }
                Next::Command(Some(Command::Shutdown) | None) => {
                    return self.cut(Cut::Shutdown, at_work).await;
                }
                Next::Quiet => {
                    at_work.heard_of();
                    self.store(vec![self.working()]).await?;
                }
                Next::Deadline => return self.cut(Cut::Timeout, at_work).await,
                Next::NoAnswer => {
                    self.come_back(Err(Failure::Timeout), Vec::new(), &mut at_work).await?;
                }
                Next::Turn(turn) => {
                    self.store(vec![self.working()]).await?;
                    at_work.called(turn);
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
        let asked = Asked::fresh(question::kind(need.state(), &prompt));
        let fact = Metadata::from_iter([asked.member()]);
        events.push(self.status(need.state(), Some(prompt), Some(fact)));
        self.store(events).await?;
        let longest = self.agent.config.answer_timeout();
        let patience = patience.map_or(longest, |patience| patience.min(longest));
        at_work.ask(answer, Instant::now() + patience);
        Ok(())
    }

    async fn input(&mut self, input: Input, at_work: &mut AtWork) -> Result<(), Unstorable> {
        if !at_work.asks() {
            self.refuse(input.told);
            return Ok(());
        }
        let Some(Input { message, client, told, .. }) = self.admit(input) else { return Ok(()) };
        // Before the guest hears the answer, which it may do at once.
        let before = at_work.client.replace(client);
        let said = vec![TaskEvent::Input(message.clone())];
        if let Err(why) = self.come_back(Ok(message), said, at_work).await {
            at_work.client.replace(before);
            return self.unsaid(why, told).await;
        }
        let _ = told.send(Ok(()));
        Ok(())
    }

    /// Has the guest go on with an answer once `events` are stored, now or when it is its turn.
    async fn come_back(
        &mut self,
        answer: Answer,
        mut events: Vec<TaskEvent>,
        at_work: &mut AtWork,
    ) -> Result<(), Unstorable> {
        match self.turns.come_back(&self.agent) {
            Admitted::Now(turn) => {
                events.push(self.working());
                self.store(events).await?;
                at_work.go_on(answer, turn);
            }
            Admitted::Later(place) => {
                self.store(events).await?;
                at_work.queue(answer, place);
            }
        }
        Ok(())
    }

    /// What the client says, if it is for what the task asks now; otherwise the client is told what that is.
    fn admit(&self, mut input: Input) -> Option<Input> {
        let asked = Asked::of(self.task.metadata.as_ref());
        match question::admit(asked.as_ref(), input.answers.take()) {
            Ok(()) => Some(input),
            Err(gone) => {
                let _ = input.told.send(Err(super::not_asked(&self.task, asked.as_ref(), &gone)));
                None
            }
        }
    }

    pub(super) fn refuse(&self, told: oneshot::Sender<Result<(), A2aError>>) {
        // Who asked may have gone; there is nobody to tell then.
        let _ = told.send(Err(super::not_waiting(&self.task.id, self.task.status.state)));
    }

    /// The guest came to an end by itself.
    async fn end(&mut self, ended: Ended, mut at_work: AtWork) -> Result<(), Unstorable> {
        while let Ok(Said::Emit(emitted)) = at_work.said.try_recv() {
            self.take(emitted, &mut at_work).await?;
        }
        self.agent.programs_gone(self.task.id.as_str()).await;
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
        self.going_down = why == Cut::Shutdown;
        // What goes on elsewhere is for the next hub to hear.
        if why == Cut::Shutdown && at_work.guest.leave().await {
            return Ok(());
        }
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
        self.agent.programs_gone(self.task.id.as_str()).await;
        if why == Cut::Cancelled {
            self.agent.clean_up(&self.task.id).await;
        }
        let state = self.task.status.state;
        let event = match why {
            // What waits for its client goes on waiting, for the next hub.
            Cut::Shutdown if state.is_interrupted() => return Ok(()),
            Cut::Shutdown
                if state == TaskState::Working
                    && self.agent.hold(&self.task.id).await == Hold::Session =>
            {
                recovery::interrupted(&self.task, &self.agent, TaskState::InputRequired)
            }
            Cut::Cancelled => self.status(TaskState::Canceled, None, None),
            Cut::Timeout => {
                let patience = Span(self.patience);
                let text = format!("The task took longer than the {patience} it was given.");
                self.failure(FailureReason::Timeout, text)
            }
            Cut::Shutdown => {
                let text = "The hub was stopped while the agent was at work.".to_owned();
                self.failure(FailureReason::HubStopped, text)
            }
        };
        self.store(vec![event]).await
    }

    /// Applies, stores, then publishes. What `core` does not allow is left out and logged: a guest cannot cause it.
    pub(super) async fn store(&mut self, events: Vec<TaskEvent>) -> Result<(), Unstorable> {
        let mut taken = Vec::with_capacity(events.len());
        let (mut state, mut moves) = (self.task.status.state, Vec::new());
        for mut event in events {
            task::begin_artifact(&self.task, &mut event);
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
            return Err(Unstorable(why));
        }
        let sequenced = taken.into_iter().map(|event| {
            self.seq += 1;
            Arc::new(SequencedEvent {
                task: self.task.id.clone(),
                context: self.task.context_id.clone(),
                seq: self.seq,
                event: Arc::unwrap_or_clone(event),
            })
        });
        self.feed.publish(sequenced.collect::<Vec<_>>());
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
        submitted.then(|| self.working()).into_iter().collect()
    }

    /// That the agent is at work, and no longer waits for whatever it waited for.
    fn working(&self) -> TaskEvent {
        let mut over = Metadata::new();
        if has_fact(&self.task, QUEUED) {
            over.insert(QUEUED.to_owned(), Value::Null);
        }
        if fact(&self.task, REASON) == Some(RECOVERY) {
            over.insert(REASON.to_owned(), Value::Null);
        }
        if has_fact(&self.task, QUESTION) {
            over.insert(QUESTION.to_owned(), Value::Null);
        }
        self.status(TaskState::Working, None, Some(over).filter(|over| !over.is_empty()))
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
        let status = TaskStatus { state, message, timestamp: clock::now() };
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
        match failure.reason() {
            Some(reason) => self.failure(reason, failure.to_string()),
            None => self.status(TaskState::Canceled, None, None),
        }
    }

    pub(super) fn failure(&self, reason: FailureReason, text: String) -> TaskEvent {
        let facts = Metadata::from_iter([(REASON.to_owned(), json!(reason.name()))]);
        let message = Message::text(Role::Agent, text);
        self.status(TaskState::Failed, Some(message), Some(facts))
    }
}
