//! Test environment for guests: the hub's side of each capability, scripted.

use a2a_hub_core::{
    grant::{EffectiveGrant, Grant, intersect, workspace::WorkspaceAccess},
    text::redact::Secrets,
};
use a2a_hub_protocol::{
    client::ClientCapabilities,
    id::{AgentId, ContextId, TaskId},
    message::{Message, Role, joined_text},
    operation::{AgentQuery, CardPart, FoundAgent, FoundAgents, Why, WhyBy},
    task::{Task, TaskState, TaskStatus},
};
use a2a_hub_runtime::{
    Call, Ended, Failure, Limits, Run, Runtime, Work,
    port::{
        Ports,
        context_memory::EphemeralMemory,
        delegate::{CallPort, ChildRequest, ChildTask, DelegatePort, Update},
        files::FilesPort,
        http::{BodyPort, HttpPort, HttpResponse, PermittedRequest},
        journal::{Journal, JournalPort},
        memory::MemoryPort,
        process::{ChildPort, PermittedLaunch, ProcessPort, ProgramEvent},
        tasks::{ClientAnswer, Emitted, Need, TaskPort},
        workspace::{OpenWorkspace, WorkspacePort},
    },
};
use a2a_hub_sandbox::{CacheKey, CacheSettings, Engine, EngineSettings, Plugin};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    sync::{Arc, LazyLock, Mutex},
    time::Duration,
};
use tokio::time::{Instant, timeout};

/// Longest wait of a test.
pub(crate) const DEADLINE: Duration = Duration::from_secs(20);

/// Each test is a separate process, and compiling a component takes seconds: the compiled code is
/// cached for the other tests.
pub(crate) static ENGINE: LazyLock<Engine> = LazyLock::new(|| {
    let beside = std::env::current_exe().unwrap().with_file_name("compiled-guests");
    let cache = CacheSettings { dir: beside, key: CacheKey::new(b"of the tests") };
    Engine::new(&EngineSettings { cache: Some(cache), ..EngineSettings::default() }).unwrap()
});

static TEST_GUEST: LazyLock<Plugin> =
    LazyLock::new(|| Plugin::compile(&ENGINE, &component("test-guests")).unwrap());

/// Component of a package, as built by `cargo xtask guests`.
pub(crate) fn component(package: &str) -> Vec<u8> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let file = root.join("target/components").join(package).with_extension("wasm");
    fs::read(&file).unwrap_or_else(|why| {
        panic!("read {}: {why}; `cargo xtask guests` builds it", file.display())
    })
}

pub(crate) fn agent() -> AgentId {
    AgentId::parse("test-guest").unwrap()
}

/// Effects of a run as seen by the hub.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) events: Vec<Emitted>,
    pub(crate) asked: Vec<(Need, String)>,
    pub(crate) launched: Vec<PermittedLaunch>,
    pub(crate) logged: Vec<String>,
    pub(crate) files: BTreeMap<String, Vec<u8>>,
    /// Grace periods of the programs that the guest retired.
    pub(crate) retired: Vec<Duration>,
    pub(crate) settled: usize,
    pub(crate) kept: BTreeSet<String>,
    /// Requests that were sent.
    pub(crate) sent: Vec<PermittedRequest>,
    /// Refused capabilities, one entry for each refusal.
    pub(crate) refused: Vec<String>,
    /// Questions that were withdrawn.
    pub(crate) withdrawn: usize,
    /// Bytes repeated with each status.
    pub(crate) beside: u64,
}

/// The hub's side of every capability.
#[derive(Default)]
pub(crate) struct Stage {
    pub(crate) limits: Limits,
    pub(crate) grant: Grant,
    pub(crate) engine: Option<Engine>,
    pub(crate) seen: Arc<Mutex<Seen>>,
    pub(crate) values: Arc<Mutex<BTreeMap<String, Vec<u8>>>>,
    pub(crate) mind: Arc<EphemeralMemory>,
    pub(crate) settings: BTreeMap<String, String>,
    pub(crate) secrets: Arc<Secrets>,
    pub(crate) workspace: Option<PathBuf>,
    /// Replacement for the agent that repeats its input.
    pub(crate) delegate: Option<Arc<dyn DelegatePort>>,
    /// Journal of the guest's run, if it is recorded.
    pub(crate) journal: Option<Arc<dyn JournalPort>>,
}

impl Stage {
    pub(crate) fn limited(limits: Limits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Grants everything that the guest requests, except what no test grants.
    pub(crate) fn granting() -> Self {
        let mut grant = Grant::everything(TEST_GUEST.ask());
        grant.process.remove("never-granted");
        grant.delegate.allow("*".to_owned());
        grant.http = serde_json::from_value(json!({ "web.test": { "paths": ["/v1"] } })).unwrap();
        Self { grant, ..Self::default() }
    }

    fn plugin(&self) -> Plugin {
        match &self.engine {
            Some(engine) => Plugin::compile(engine, &component("test-guests")).unwrap(),
            None => TEST_GUEST.clone(),
        }
    }

    fn call(&self, plugin: &Plugin) -> Call {
        let held = intersect(plugin.ask(), &self.grant);
        let (seen, refused) = (Arc::clone(&self.seen), Arc::clone(&self.seen));
        let log = move |_, line: &str| seen.lock().unwrap().logged.push(line.to_owned());
        let memory = held.memory_bytes.map(|_| Arc::new(Values(Arc::clone(&self.values))) as _);
        let files = held.files_bytes.map(|_| Arc::new(Shelf(Arc::clone(&self.seen))) as _);
        let ports = Ports {
            tasks: Some(Arc::new(Listener(Arc::clone(&self.seen)))),
            process: Some(Arc::new(Sleeper(Arc::clone(&self.seen)))),
            memory,
            context_memory: held.memory_bytes.map(|_| Arc::clone(&self.mind) as _),
            files,
            workspace: held
                .workspace
                .zip(self.workspace.clone())
                .map(|(access, path)| Arc::new(Place(path, access)) as _),
            http: Some(Arc::new(Web(Arc::clone(&self.seen)))),
            delegate: held
                .may_call("parrot")
                .then(|| self.delegate.clone().unwrap_or_else(|| Arc::new(Parrot))),
            journal: self.journal.clone(),
            tools: None,
            settings: Arc::new(self.settings.clone()),
            log: Some(Arc::new(log)),
            refused: Some(Arc::new(move |what: &str| {
                refused.lock().unwrap().refused.push(what.to_owned());
            })),
        };
        Call {
            agent: agent(),
            limits: self.limits,
            grant: Arc::new(EffectiveGrant { ..held }),
            ports: Arc::new(ports),
            secrets: Arc::clone(&self.secrets),
            working_directory: None,
            client: client(),
        }
    }

    /// Starts a guest with `text`.
    pub(crate) fn start(&self, text: &str) -> Box<dyn Run> {
        let plugin = self.plugin();
        Runtime::start(&plugin, self.call(&plugin), work(text))
    }

    /// Starts another guest with `text`, and records its run from the beginning.
    pub(crate) fn start_recorded(&self, plugin: &Plugin, text: &str) -> Box<dyn Run> {
        let journal = Journal {
            began_ms: 0,
            run: None,
            seed: 0,
            settings: BTreeMap::new(),
            answers: Vec::new(),
            emitted: Vec::new(),
        };
        let work = Work { journal: Some(journal), ..work(text) };
        Runtime::start(plugin, self.call(plugin), work)
    }

    /// Runs a guest to its end.
    pub(crate) async fn run(&self, text: &str) -> Ended {
        timeout(DEADLINE, self.start(text).ended()).await.expect("the guest hangs")
    }

    /// Runs a guest to its end; returns the text of its final status.
    pub(crate) async fn said(&self, text: &str) -> String {
        match self.run(text).await {
            Ended::Status { message: Some(message), .. } => message.joined_text(),
            other => panic!("{text}: {other:?}"),
        }
    }

    pub(crate) async fn failure(&self, text: &str) -> Failure {
        match self.run(text).await {
            Ended::Failed(failure) => failure,
            other => panic!("{text}: {other:?}"),
        }
    }

    pub(crate) fn seen(&self) -> std::sync::MutexGuard<'_, Seen> {
        self.seen.lock().unwrap()
    }
}

fn work(text: &str) -> Work {
    let message = Message::text(Role::User, text);
    let status =
        TaskStatus { state: TaskState::Submitted, message: None, timestamp: String::new() };
    let task = Task {
        id: TaskId::new("t"),
        context_id: ContextId::new("c"),
        status,
        artifacts: Vec::new(),
        history: vec![message.clone()],
        metadata: None,
    };
    Work { task, message, history: Vec::new(), live: true, journal: None }
}

/// Accepts everything, and answers every question with its text.
struct Listener(Arc<Mutex<Seen>>);

#[async_trait::async_trait]
impl TaskPort for Listener {
    async fn emit(&self, events: Vec<Emitted>) -> Result<(), Failure> {
        self.0.lock().unwrap().events.extend(events);
        Ok(())
    }

    fn extra_status_bytes(&self) -> u64 {
        self.0.lock().unwrap().beside
    }

    async fn ask(
        &self,
        need: Need,
        prompt: Message,
        _timeout: Option<Duration>,
    ) -> Result<ClientAnswer, Failure> {
        let question = joined_text(&prompt.parts);
        self.0.lock().unwrap().asked.push((need, question.clone()));
        if question == "never" {
            let _withdrawn = Withdrawn(Arc::clone(&self.0));
            return std::future::pending().await;
        }
        let message = Message::text(Role::User, format!("you asked: {question}"));
        Ok(ClientAnswer { message, client: client() })
    }
}

/// Capabilities of the client.
fn client() -> ClientCapabilities {
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    ClientCapabilities { extensions: texts(&["urn:x"]), output_modes: texts(&["image/*"]) }
}

/// Counts a withdrawn question on drop.
struct Withdrawn(Arc<Mutex<Seen>>);

impl Drop for Withdrawn {
    fn drop(&mut self) {
        self.0.lock().unwrap().withdrawn += 1;
    }
}

/// Runs no program, but waits for the time in its argument, like `sleep`.
struct Sleeper(Arc<Mutex<Seen>>);

#[async_trait::async_trait]
impl ProcessPort for Sleeper {
    async fn fingerprint(&self, program: &str) -> Result<String, Failure> {
        Ok(format!("the first {program}"))
    }

    async fn spawn(&self, launch: PermittedLaunch) -> Result<Box<dyn ChildPort>, Failure> {
        let seconds = launch.args.first().and_then(|arg| arg.parse().ok()).unwrap_or(0.0);
        self.0.lock().unwrap().launched.push(launch);
        let end = Instant::now() + Duration::from_secs_f64(seconds);
        Ok(Box::new(Asleep(end, Arc::clone(&self.0))))
    }

    async fn take_up(
        &self,
        key: &str,
        launch: PermittedLaunch,
    ) -> Result<Option<Box<dyn ChildPort>>, Failure> {
        let is_kept = self.0.lock().unwrap().kept.remove(key);
        if is_kept { self.spawn(launch).await.map(Some) } else { Ok(None) }
    }
}

struct Asleep(Instant, Arc<Mutex<Seen>>);

#[async_trait::async_trait]
impl ChildPort for Asleep {
    async fn next(&mut self) -> Result<ProgramEvent, Failure> {
        tokio::time::sleep_until(self.0).await;
        Ok(ProgramEvent::Code(0))
    }

    async fn write(&mut self, _bytes: &[u8]) -> Result<(), Failure> {
        Ok(())
    }

    fn close_stdin(&mut self) {}

    fn interrupt(&mut self) {}

    fn kill(&mut self) {}

    fn retire(self: Box<Self>, within: Duration) {
        self.1.lock().unwrap().retired.push(within);
    }

    async fn settled(&mut self) {
        self.1.lock().unwrap().settled += 1;
    }

    async fn park(self: Box<Self>, key: String, _: Option<ProgramEvent>) -> Result<(), Failure> {
        self.1.lock().unwrap().kept.insert(key);
        Ok(())
    }
}

/// Answers by the last segment of the path: `/v1/endless`, or `/v1/slow/3` for three pieces 100 ms
/// apart.
struct Web(Arc<Mutex<Seen>>);

#[async_trait::async_trait]
impl HttpPort for Web {
    async fn send(&self, request: PermittedRequest) -> Result<HttpResponse, Failure> {
        let url = request.admitted.url.clone();
        self.0.lock().unwrap().sent.push(request);
        let pace = if url.contains("/slow/") { Duration::from_millis(100) } else { Duration::ZERO };
        let left = if url.contains("/endless") {
            None
        } else {
            url.rsplit('/').next().unwrap().parse().ok()
        };
        let left = left.or_else(|| (!url.contains("/endless")).then_some(1));
        let headers = vec![("x-test".to_owned(), b"y".to_vec())];
        Ok(HttpResponse {
            status: 200,
            headers,
            body: Box::new(Pieces { left, pace, at: Instant::now() + pace }),
        })
    }
}

/// Body of pieces of a kilobyte.
struct Pieces {
    left: Option<u32>,
    pace: Duration,
    /// Time of the next piece, independent of the number of waits.
    at: Instant,
}

#[async_trait::async_trait]
impl BodyPort for Pieces {
    async fn next(&mut self) -> Result<Option<Vec<u8>>, Failure> {
        tokio::time::sleep_until(self.at).await;
        self.at = Instant::now() + self.pace;
        if self.left == Some(0) {
            return Ok(None);
        }
        self.left = self.left.map(|left| left - 1);
        Ok(Some(vec![b'x'; 1 << 10]))
    }
}

/// Opens one directory.
struct Place(PathBuf, WorkspaceAccess);

#[async_trait::async_trait]
impl WorkspacePort for Place {
    async fn open(&self, _asked: Option<&str>) -> Result<OpenWorkspace, Failure> {
        Ok(OpenWorkspace { directory: fs::File::open(&self.0).unwrap(), access: self.1 })
    }

    fn access(&self) -> Option<WorkspaceAccess> {
        // Revoked as soon as this file exists.
        (!self.0.join("revoked").exists()).then_some(self.1)
    }
}

/// Knows one agent, which repeats its input.
struct Parrot;

#[async_trait::async_trait]
impl DelegatePort for Parrot {
    async fn agents(&self) -> Vec<Value> {
        vec![json!({ "agentId": "parrot" })]
    }

    async fn find(&self, query: AgentQuery) -> Result<FoundAgents, Failure> {
        let id = AgentId::parse("parrot").unwrap();
        let asked = format!("{:?} {:?} {:?}", query.text, query.tags, query.version);
        let why = vec![Why { by: WhyBy::Word, what: asked, r#in: vec![CardPart::Tags] }];
        let card = json!({ "name": "Parrot" });
        let found = FoundAgent { id, aliases: Vec::new(), card, score: 1.5, why };
        Ok(FoundAgents { agents: vec![found], ..FoundAgents::default() })
    }

    async fn start(&self, request: ChildRequest) -> Result<Box<dyn CallPort>, Failure> {
        if request.agent != "parrot" {
            return Err(Failure::Denied(format!("call `{}`: not granted", request.agent)));
        }
        let said = Message::text(Role::Agent, request.message.joined_text());
        Ok(Box::new(Parroted { task: TaskId::new("child"), said: Some(said) }))
    }

    async fn children(&self) -> Result<Vec<ChildTask>, Failure> {
        Ok(Vec::new())
    }
}

struct Parroted {
    task: TaskId,
    said: Option<Message>,
}

#[async_trait::async_trait]
impl CallPort for Parroted {
    fn task(&self) -> &TaskId {
        &self.task
    }

    async fn next(&mut self) -> Result<Update, Failure> {
        // Longer than a guest waits before its run permit is lent.
        tokio::time::sleep(Duration::from_millis(150)).await;
        let said = self.said.take().ok_or(Failure::Timeout)?;
        Ok(Update::Finished(Ended::Reply(said)))
    }

    async fn answer(&self, _: Message) -> Result<(), Failure> {
        Err(Failure::Invalid("it asks nothing".to_owned()))
    }

    async fn cancel(&self) -> Result<(), Failure> {
        Ok(())
    }
}

/// Stores files by their names.
struct Shelf(Arc<Mutex<Seen>>);

#[async_trait::async_trait]
impl FilesPort for Shelf {
    async fn put(&self, name: &str, bytes: Vec<u8>) -> Result<String, Failure> {
        let before = self.0.lock().unwrap().files.insert(name.to_owned(), bytes);
        assert_eq!(before, None, "{name} is taken");
        Ok(format!("/shelf/{name}"))
    }
}

struct Values(Arc<Mutex<BTreeMap<String, Vec<u8>>>>);

#[async_trait::async_trait]
impl MemoryPort for Values {
    async fn get(&self, key: &str) -> Result<Option<Vec<u8>>, Failure> {
        Ok(self.0.lock().unwrap().get(key).cloned())
    }

    async fn set(&self, key: &str, value: Vec<u8>) -> Result<(), Failure> {
        self.0.lock().unwrap().insert(key.to_owned(), value);
        Ok(())
    }

    async fn delete(&self, key: &str) -> Result<(), Failure> {
        self.0.lock().unwrap().remove(key);
        Ok(())
    }

    async fn keys(&self, prefix: &str) -> Result<Vec<String>, Failure> {
        let values = self.0.lock().unwrap();
        Ok(values.keys().filter(|key| key.starts_with(prefix)).cloned().collect())
    }
}
