//! A task at a scripted remote agent: without network, second hub or real time.

use super::*;
use crate::remote::peer::RemoteClient;
use a2a_hub_protocol::{
    error::A2aError,
    event::StatusUpdate,
    id::{AgentId, ArtifactId},
    message::{Part, joined_text},
    task::{Artifact, TaskState as State},
    trace::{TRACEPARENT, TraceContext},
};
use a2a_hub_runtime::Limits;
use a2a_hub_store::memory::MemoryStorage;
use futures::stream;
use parking_lot::Mutex;
use serde_json::Value;
use std::{
    collections::VecDeque,
    sync::atomic::{AtomicBool, Ordering},
};

/// Scripted remote agent: the responses to each request, and the requests received.
#[derive(Default)]
struct ScriptedRemote {
    tells: Mutex<VecDeque<Vec<StreamResponse>>>,
    heard: Mutex<Vec<String>>,
    /// Trace contexts received with messages.
    traces: Mutex<Vec<TraceContext>>,
    /// Successive states of the task for polling.
    now: Mutex<VecDeque<Task>>,
    /// Answers that the agent refuses.
    refuses: Mutex<Vec<&'static str>>,
    /// True if the stream closes after the scripted events.
    hangs_up: AtomicBool,
}

impl ScriptedRemote {
    fn new<const N: usize>(tells: [Vec<StreamResponse>; N]) -> Arc<Self> {
        Arc::new(Self { tells: Mutex::new(tells.into()), ..Self::default() })
    }

    fn asked(&self, what: String) -> Responses {
        self.heard.lock().push(what);
        let told = self.tells.lock().pop_front();
        let told = stream::iter(told.into_iter().flatten().map(Ok));
        let hangs_up = self.hangs_up.load(Ordering::Relaxed);
        if hangs_up { told.boxed() } else { told.chain(stream::pending()).boxed() }
    }

    fn heard(&self) -> Vec<String> {
        self.heard.lock().clone()
    }
}

#[async_trait::async_trait]
impl RemoteClient for ScriptedRemote {
    async fn stream(&self, send: SendMessage) -> Result<Responses, ClientError> {
        let Message { task_id, context_id, metadata, .. } = &send.message;
        let said = send.message.joined_text();
        self.traces.lock().push(TraceContext::of_metadata(metadata.as_ref()));
        let facts = metadata.clone().map(without_trace).filter(|facts| !facts.is_empty());
        let facts = facts.map(Value::Object);
        if self.refuses.lock().contains(&&*said) {
            self.heard.lock().push(format!("refused “{said}”"));
            let why = A2aError::new(ErrorKind::UnsupportedOperation, "it is gone");
            return Err(ClientError::Refused(why));
        }
        Ok(self.asked(format!(
            "“{said}” task={} context={} {}",
            task_id.as_ref().map_or("-", TaskId::as_str),
            context_id.as_ref().map_or("-", ContextId::as_str),
            facts.unwrap_or_default(),
        )))
    }

    fn subscribe(&self, task: TaskId) -> Responses {
        self.asked(format!("subscribe {task}"))
    }

    async fn get(&self, task: TaskId) -> Result<Task, ClientError> {
        self.heard.lock().push(format!("get {task}"));
        let mut now = self.now.lock();
        let last = now.len() == 1;
        let task = if last { now.front().cloned() } else { now.pop_front() };
        task.ok_or_else(|| ClientError::Broken("there is nothing to look at".to_owned()))
    }

    async fn cancel(&self, task: TaskId) -> Result<(), ClientError> {
        drop(self.asked(format!("cancel {task}")));
        Ok(())
    }
}

/// Local side of the task: records its events, and answers questions from a list whose last entry
/// repeats.
#[derive(Default)]
struct ScriptedPort {
    lines: Mutex<Vec<String>>,
    answers: Mutex<VecDeque<&'static str>>,
}

impl ScriptedPort {
    fn push(&self, line: String) {
        self.lines.lock().push(line);
    }
}

#[async_trait::async_trait]
impl TaskPort for ScriptedPort {
    async fn emit(&self, events: Vec<Emitted>) -> Result<(), Failure> {
        for event in events {
            self.push(match event {
                Emitted::Working { message, .. } => {
                    format!("working “{}”", message.map(|it| it.joined_text()).unwrap_or_default())
                }
                Emitted::Artifact { artifact, append, last_chunk } => {
                    let text = joined_text(&artifact.parts);
                    format!("{} “{text}” append={append} last={last_chunk}", artifact.artifact_id)
                }
            });
        }
        Ok(())
    }

    async fn ask(
        &self,
        need: Need,
        prompt: Message,
        _timeout: Option<Duration>,
    ) -> Result<ClientAnswer, Failure> {
        let (theirs, text) = (prompt.task_id.is_some(), prompt.joined_text());
        let facts = Value::Object(prompt.metadata.unwrap_or_default());
        self.push(format!("{} “{text}” {facts} theirs={theirs}", need.state().name()));
        let answer = {
            let mut answers = self.answers.lock();
            if answers.len() > 1 { answers.pop_front() } else { answers.front().copied() }
        };
        let Some(answer) = answer else { return std::future::pending().await };
        let mut message = Message::text(Role::User, answer);
        message.metadata = serde_json::from_value(json!({ QUESTION: "ours", "kept": true })).ok();
        Ok(ClientAnswer { message, client: Default::default() })
    }
}

/// One local task and the remote agent that works on it.
struct RemoteBench {
    elsewhere: Arc<ScriptedRemote>,
    told: Arc<ScriptedPort>,
    peer: RemotePeer,
}

impl RemoteBench {
    fn new<const N: usize>(tells: [Vec<StreamResponse>; N], answer: Option<&'static str>) -> Self {
        let elsewhere = ScriptedRemote::new(tells);
        let storage = Arc::new(MemoryStorage::default());
        let peer = RemotePeer::new(AgentId::parse("there").unwrap(), elsewhere.clone(), storage);
        let told = ScriptedPort {
            answers: Mutex::new(answer.into_iter().collect()),
            ..ScriptedPort::default()
        };
        Self { elsewhere, told: Arc::new(told), peer }
    }

    fn call(&self) -> Call {
        let agent = AgentId::parse("there").unwrap();
        let tasks = Some(Arc::clone(&self.told) as Arc<dyn TaskPort>);
        let ports = Arc::new(Ports { tasks, ..Ports::default() });
        Call { ports, ..Call::bare(agent, Limits::default()) }
    }

    fn start(&self) -> RemoteRun {
        let mut message = Message::text(Role::User, "go");
        let other = Trace::begun(&TaskId::new("other")).traceparent();
        let facts = json!({
            "targetAgent": "there", "workingDirectory": "/", "additionalDirectories": ["/"],
            "model": "m", TRACEPARENT: other,
        });
        message.metadata = serde_json::from_value(facts).ok();
        let work = Work { task: ours(), message, history: Vec::new(), live: true, journal: None };
        RemoteRun::start(self.peer.clone(), &self.call(), work)
    }

    async fn end_of(&self, mut run: RemoteRun) -> Ended {
        timeout(Duration::from_secs(60), (&mut run as &mut dyn Run).ended()).await.unwrap()
    }

    fn told(&self) -> String {
        self.told.lines.lock().join("\n")
    }
}

fn ours() -> Task {
    Task {
        id: TaskId::new("ours"),
        context_id: ContextId::new("our-context"),
        status: TaskStatus { state: State::Submitted, message: None, timestamp: String::new() },
        artifacts: Vec::new(),
        history: Vec::new(),
        metadata: None,
    }
}

fn status(state: State, text: &str) -> TaskStatus {
    let mut message = Message::text(Role::Agent, text);
    message.task_id = Some(TaskId::new("theirs"));
    TaskStatus { state, message: Some(message), timestamp: String::new() }
}

fn tells(state: State, text: &str) -> StreamResponse {
    tells_of(state, text, None)
}

fn tells_of(state: State, text: &str, metadata: Option<Value>) -> StreamResponse {
    let metadata = metadata.and_then(|facts| serde_json::from_value(facts).ok());
    let (task, context) = (TaskId::new("theirs"), ContextId::new("their-context"));
    let update = StatusUpdate { status: status(state, text), metadata };
    StreamResponse::Status { task, context, update }
}

fn whole(state: State, text: &str, artifact: &str) -> StreamResponse {
    StreamResponse::Task(Box::new(Task {
        id: TaskId::new("theirs"),
        context_id: ContextId::new("their-context"),
        status: status(state, text),
        artifacts: vec![answer(artifact)],
        ..ours()
    }))
}

fn answer(text: &str) -> Artifact {
    Artifact::new(ArtifactId::new("answer"), vec![Part::text(text)])
}

fn done(text: &str) -> String {
    format!("completed “{text}”")
}

fn shown(ended: Ended) -> String {
    match ended {
        Ended::Status { state, message, .. } => {
            let message = message.unwrap();
            assert_eq!(message.task_id, None, "its names are none of ours");
            format!("{} “{}”", state.name(), message.joined_text())
        }
        Ended::Reply(message) => format!("reply “{}”", message.joined_text()),
        Ended::Failed(why) => why.to_string(),
    }
}

#[tokio::test(start_paused = true)]
async fn remote_events_carry_local_ids() {
    let at_it = || tells(State::Working, "at it");
    let stage =
        RemoteBench::new([vec![at_it(), whole(State::Completed, "done", "all of it")]], None);
    assert_eq!(shown(stage.end_of(stage.start()).await), done("done"));
    assert_eq!(stage.elsewhere.heard(), [r#"“go” task=- context=- {"model":"m"}"#]);
    assert_eq!(stage.told(), "working “at it”\nanswer “all of it” append=false last=true");
    let kept = stage.peer.context(&ContextId::new("our-context")).await;
    assert_eq!(
        kept.as_ref().map(ContextId::as_str),
        Some("their-context"),
        "the conversation goes on"
    );
}

#[tokio::test(start_paused = true)]
async fn answer_carries_remote_question_id() {
    let asked = json!({ QUESTION: { "id": "their-question", "kind": "permission" } });
    let asks = tells_of(State::InputRequired, "may I?", Some(asked));
    let stage = RemoteBench::new([vec![asks], vec![tells(State::Completed, "done")]], Some("yes"));
    assert_eq!(shown(stage.end_of(stage.start()).await), done("done"));
    let prompt = r#"input-required “may I?” {"question":{"kind":"permission"}} theirs=false"#;
    assert_eq!(stage.told(), prompt);
    let heard = stage.elsewhere.heard();
    // Independent of the client's metadata: the remote work is part of the local task's trace.
    let of_ours = Trace::begun(&ours().id).context();
    assert_eq!(*stage.elsewhere.traces.lock(), [of_ours.clone(), of_ours]);
    assert_eq!(
        heard[1],
        r#"“yes” task=theirs context=- {"kept":true,"question":"their-question"}"#
    );
}

/// Events stored before the restart are not repeated: both the remote snapshot and the local log
/// contain them.
#[tokio::test(start_paused = true)]
async fn restart_resumes_without_repeated_events() {
    let stage = RemoteBench::new([vec![whole(State::Completed, "done", "one two")]], None);
    let names = (&TaskId::new("theirs"), &ContextId::new("their-context"));
    stage.peer.remember((&ours().id, &ours().context_id), names).await;
    let mut before = ours();
    before.status = status(State::Working, "at it");
    before.artifacts = vec![answer("one ")];
    let run = RemoteRun::follow(stage.peer.clone(), &stage.call(), before);
    assert_eq!(shown(stage.end_of(run).await), done("done"));
    assert_eq!(stage.elsewhere.heard(), ["subscribe theirs"]);
    let told = stage.told();
    assert!(told.contains("two") && !told.contains("at it"), "{told}");
}

#[tokio::test(start_paused = true)]
async fn unknown_remote_task_fails_as_lost() {
    let stage = RemoteBench::new([], None);
    let run = RemoteRun::follow(stage.peer.clone(), &stage.call(), ours());
    assert_eq!(shown(stage.end_of(run).await), LOST);
    assert!(stage.elsewhere.heard().is_empty(), "nobody is asked about a task without a name");
}

#[tokio::test(start_paused = true)]
async fn early_stream_end_fails_task() {
    let stage = RemoteBench::new([vec![tells(State::Working, "at it")]], None);
    stage.elsewhere.hangs_up.store(true, Ordering::Relaxed);
    let ended = shown(stage.end_of(stage.start()).await);
    assert_eq!(ended, "it hung up before the task ended");
    assert_eq!(stage.elsewhere.heard().last().unwrap(), "cancel theirs", "it may go on in vain");
}

#[tokio::test(start_paused = true)]
async fn cancel_spares_interrupted_remote_task() {
    for (state, stops) in [(State::Working, true), (State::InputRequired, false)] {
        let stage = RemoteBench::new([vec![tells(state, "well?")]], None);
        let run = stage.start();
        while stage.told().is_empty() {
            sleep(Duration::from_millis(1)).await;
        }
        run.cancel();
        let ended = stage.end_of(run).await;
        assert!(matches!(ended, Ended::Failed(_)), "{ended:?}");
        let stopped = stage.elsewhere.heard().iter().any(|heard| heard == "cancel theirs");
        assert_eq!(stopped, stops, "{}", state.name());
    }
}

fn now(told: StreamResponse) -> Task {
    let StreamResponse::Task(task) = told else { panic!("{told:?}") };
    *task
}

/// The remote hub was restarted and asks anew: a late answer loses no work.
#[tokio::test(start_paused = true)]
async fn refused_answer_asks_current_question() {
    let tells =
        [vec![tells(State::InputRequired, "which?")], vec![tells(State::Completed, "done")]];
    let stage = RemoteBench::new(tells, Some("first"));
    stage.told.answers.lock().push_back("second");
    stage.elsewhere.refuses.lock().push("first");
    stage.elsewhere.now.lock().push_back(now(whole(State::InputRequired, "which then?", "")));
    assert_eq!(shown(stage.end_of(stage.start()).await), done("done"));
    let told = stage.told();
    assert!(told.contains("did not take the answer") && told.contains("which then?"), "{told}");
    let heard = stage.elsewhere.heard();
    assert!(heard.iter().any(|it| it.starts_with("“second” task=theirs")), "{heard:?}");
    assert!(!heard.iter().any(|it| it.starts_with("cancel")), "{heard:?}");
}

/// Another client answered, or the remote timeout expired.
#[tokio::test(start_paused = true)]
async fn remote_completion_without_answer_ends_task() {
    for answer in [Some("late"), None] {
        let over = || whole(State::Completed, "without you", "all of it");
        let tells = [vec![tells(State::InputRequired, "which?")], vec![over()]];
        let stage = RemoteBench::new(tells, answer);
        stage.elsewhere.refuses.lock().push("late");
        stage.elsewhere.now.lock().push_back(now(over()));
        assert_eq!(shown(stage.end_of(stage.start()).await), done("without you"), "{answer:?}");
        assert!(stage.told().contains("all of it"));
    }
}

#[tokio::test(start_paused = true)]
async fn oldest_context_mappings_are_dropped() {
    let stage = RemoteBench::new([], None);
    let long = "c".repeat(900);
    for at in 0..2_000 {
        let ours = (TaskId::new(format!("t{at}")), ContextId::new(format!("{at:04}")));
        let theirs = (TaskId::new("theirs"), ContextId::new(&*long));
        stage.peer.remember((&ours.0, &ours.1), (&theirs.0, &theirs.1)).await;
        assert!(stage.peer.has(&ours.0).await, "{at}");
        stage.peer.forget(&ours.0).await;
    }
    let known = async |at: &str| stage.peer.context(&ContextId::new(at)).await.is_some();
    assert!(known("1999").await && !known("0000").await);
    let endless = (&TaskId::new("t"), &ContextId::new("e".repeat(2_000)));
    stage.peer.remember((&TaskId::new("ours"), &ContextId::new("ours")), endless).await;
    assert!(!known("ours").await);
}
