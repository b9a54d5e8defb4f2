//! Tests of notifiers with a store in memory, real time, and servers on loopback.

use super::*;
use crate::{signer::HubSigner, tasks::Directory, webhooks::Sender};
use a2a_hub_agents::{Agent, AgentVersion, FindAgent};
use a2a_hub_config::SecretStore;
use a2a_hub_core::{
    access_control::Principal, push::receiver_policy::Rules, task::metadata::REASON,
};
use a2a_hub_process::Supervisor;
use a2a_hub_protocol::{
    event::{Created, StatusUpdate, TaskEvent},
    id::{AgentId, ContextId, TaskId},
    message::{Message, Metadata, Role},
    operation::ReadNotices,
    task::{Task, TaskState, TaskStatus},
};
use a2a_hub_store::{NoticeStore as _, TaskLog as _, memory::MemoryStorage};
use parking_lot::Mutex;
use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    thread,
};
use tempfile::TempDir;
use tokio::time::timeout;

/// Time within which each step of a test happens.
const WAIT: Duration = Duration::from_secs(20);

/// Server that records its requests, and answers each with the next status; with 200 after the
/// last. The status 0 stands for no answer.
struct MessageReceiver {
    url: String,
    requests: Arc<Mutex<Vec<String>>>,
}

impl MessageReceiver {
    fn start(statuses: &'static [u16]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::<Mutex<Vec<String>>>::default();
        let taken = Arc::clone(&requests);
        thread::spawn(move || {
            let mut unanswered = Vec::new();
            for connection in listener.incoming() {
                let mut connection = connection.unwrap();
                let request = read_request(&connection);
                let count = {
                    let mut taken = taken.lock();
                    taken.push(request);
                    taken.len()
                };
                match statuses.get(count - 1).copied().unwrap_or(200) {
                    0 => unanswered.push(connection),
                    status => {
                        let text = format!(
                            "HTTP/1.1 {status} X\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
                        );
                        let _ = connection.write_all(text.as_bytes());
                    }
                }
            }
        });
        Self { url, requests }
    }

    /// Requests so far, once it has that number of them.
    async fn requests(&self, count: usize) -> Vec<String> {
        let arrived = async {
            while self.requests.lock().len() < count {
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(WAIT, arrived).await.unwrap();
        self.requests.lock().clone()
    }
}

fn read_request(connection: &TcpStream) -> String {
    let (mut reader, mut text, mut length) = (BufReader::new(connection), String::new(), 0);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 || line == "\r\n" {
            break;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        text.push_str(&line);
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    text + "\n" + &String::from_utf8(body).unwrap()
}

/// Value of a header of a recorded request.
fn header<'r>(request: &'r str, name: &str) -> Option<&'r str> {
    let mut lines = request.lines().take_while(|line| !line.is_empty());
    lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
}

struct NoAgents;

#[async_trait::async_trait]
impl FindAgent for NoAgents {
    fn find(&self, _: &AgentId) -> Option<Arc<Agent>> {
        None
    }

    fn is_settled(&self) -> bool {
        true
    }

    async fn settled(&self) {}

    async fn version(&self, id: &AgentId, _: &AgentVersion) -> Result<Arc<Agent>, String> {
        Err(format!("there is no other {id}"))
    }
}

struct NotifyBench {
    storage: Arc<MemoryStorage>,
    events: Events,
    dir: TempDir,
}

impl NotifyBench {
    fn new() -> Self {
        let (storage, dir) = (Arc::default(), tempfile::tempdir().unwrap());
        Self { storage, events: Events::default(), dir }
    }

    /// Notifiers of a process, with this configuration.
    fn notifiers(&self, config: &str) -> Notifiers {
        #[derive(serde::Deserialize)]
        struct File {
            notify: BTreeMap<String, Notifier>,
        }
        let file: File = toml::from_str(config).unwrap();
        let directory = Directory::by_name(Arc::new(NoAgents));
        let tasks = Tasks::new(self.storage.clone(), self.events.clone(), directory);
        let rules = Rules { trusted: vec!["127.0.0.1".to_owned()] };
        let signer = HubSigner::open(self.dir.path()).unwrap();
        let grace = Duration::from_millis(100);
        let data_dir = self.dir.path().to_owned();
        let channels = NotifyChannels {
            sender: Arc::new(Sender::new(rules, Some(Arc::new(signer)))),
            supervisor: Supervisor::new("/nonexistent".into(), data_dir.clone(), grace),
            secrets: SecretStore::new(&data_dir),
            page: Some("https://hub.example/ui/".to_owned()),
        };
        let clock = Arc::new(Timestamp::now);
        let retries = Duration::from_secs(60);
        Notifiers::new(self.storage.clone(), tasks, channels, retries, clock, &file.notify)
    }

    /// A task with this request fails.
    async fn fail(&self, request: &str) {
        let (id, context) = (TaskId::fresh(), ContextId::new("c"));
        let status = |state, text: Option<&str>| TaskStatus {
            state,
            message: text.map(|text| Message::text(Role::Agent, text)),
            timestamp: a2a_hub_clock::now(),
        };
        let task = Task {
            id: id.clone(),
            context_id: context,
            status: status(TaskState::Submitted, None),
            artifacts: Vec::new(),
            history: vec![Message::text(Role::User, request)],
            metadata: None,
        };
        let created = Created::new(AgentId::parse("codex").unwrap(), task);
        let failed = StatusUpdate {
            status: status(TaskState::Failed, Some("the reason")),
            metadata: Some(Metadata::from_iter([(REASON.to_owned(), "agent_error".into())])),
        };
        let events =
            [TaskEvent::Created(Box::new(created)), TaskEvent::Status(failed)].map(Arc::new);
        self.storage.append(&id, 0, events.into()).await.unwrap();
        self.events.publish(HubEventKind::NoticesChanged { tenant: TenantId::default() });
    }
}

/// Runs the notifiers while `work` is done.
async fn running<T>(
    bench: &NotifyBench,
    notifiers: &Notifiers,
    work: impl Future<Output = T>,
) -> T {
    let begun = async {
        // A notifier that is new reports no notice from before its time.
        while bench.storage.notifiers().await.unwrap().is_empty() {
            sleep(Duration::from_millis(10)).await;
        }
        work.await
    };
    select! {
        () = notifiers.run(&bench.events) => panic!("they ended"),
        done = timeout(2 * WAIT, begun) => done.unwrap(),
    }
}

#[tokio::test]
async fn failing_server_gets_same_message_again() {
    let (bench, server) = (NotifyBench::new(), MessageReceiver::start(&[500]));
    let config = format!("[notify.chat]\nafter = '0s'\nwebhook = '{}/x'", server.url);
    let notifiers = bench.notifiers(&config);
    running(&bench, &notifiers, async {
        bench.fail("fix <!channel> the parser").await;
        bench.fail("fix the lexer").await;
        server.requests(1).await;
        while notifiers.failures().is_empty() {
            sleep(Duration::from_millis(5)).await;
        }
        let failures = notifiers.failures();
        assert!(failures[0].contains("it answered with HTTP status 500"), "{failures:?}");
        let requests = server.requests(2).await;
        let id = header(&requests[0], "webhook-id").unwrap();
        assert_eq!(header(&requests[1], "webhook-id"), Some(id));
        assert!(header(&requests[1], "webhook-signature").unwrap().starts_with("v1a,"));
        let (_, body) = requests[1].split_once("\n\n").unwrap();
        let body: serde_json::Value = serde_json::from_str(body).unwrap();
        assert_eq!(body["text"], "2 notices of a2a-hub\ncodex failed: fix ‹!channel› the parser\ncodex failed: fix the lexer");
        assert_eq!((&body["id"], &body["count"]), (&id.into(), &2.into()));
        assert!(!body.to_string().contains("the reason"), "{body}");
        while !notifiers.failures().is_empty() {
            sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    let NotifierAnswer::List(infos) = notifiers.perform(NotifierRequest::List).await.unwrap()
    else {
        panic!("they are listed")
    };
    assert_eq!((infos[0].sent, infos[0].target.as_str()), (1, server.url.as_str()));
}

/// The process is killed while the server has the request and does not answer.
#[tokio::test]
async fn killed_process_leaves_message_to_next() {
    let (bench, server) = (NotifyBench::new(), MessageReceiver::start(&[0]));
    let config = format!("[notify.phone]\nafter = '0s'\nntfy = '{}/topic'", server.url);
    running(&bench, &bench.notifiers(&config), async {
        bench.fail("größer").await;
        server.requests(1).await;
    })
    .await;
    let next = bench.notifiers(&config);
    let requests = running(&bench, &next, server.requests(2)).await;
    for name in ["webhook-id", "title", "priority", "tags", "click"] {
        assert_eq!(header(&requests[0], name), header(&requests[1], name), "{name}");
    }
    assert_eq!(header(&requests[0], "title"), Some("codex failed"));
    assert_eq!(header(&requests[0], "priority"), Some("3"));
    assert_eq!(header(&requests[0], "click"), Some("https://hub.example/ui/"));
    assert!(requests[0].ends_with("\n\ngrößer"), "{}", requests[0]);
    // It is not sent a third time.
    let last = bench.notifiers(&config);
    running(&bench, &last, sleep(Duration::from_secs(3))).await;
    assert_eq!(server.requests(2).await.len(), 2);
}

#[tokio::test]
async fn hanging_server_delays_no_other_notifier() {
    let bench = NotifyBench::new();
    let (hanging, working) = (MessageReceiver::start(&[0; 9]), MessageReceiver::start(&[]));
    let config = format!(
        "[notify.a]\nafter = '0s'\nwebhook = '{}'\n[notify.b]\nafter = '0s'\nwebhook = '{}'\n\
         [notify.c]\ncommand = ['a2a-hub-no-such-program']",
        hanging.url, working.url
    );
    let notifiers = bench.notifiers(&config);
    let failures = notifiers.failures();
    assert!(failures[0].contains("no program `a2a-hub-no-such-program`"), "{failures:?}");
    running(&bench, &notifiers, async {
        bench.fail("one").await;
        hanging.requests(1).await;
        working.requests(1).await;
        bench.fail("two").await;
        working.requests(2).await;
        assert_eq!(hanging.requests(1).await.len(), 1, "one delivery at a time");
    })
    .await;
}

#[tokio::test]
async fn read_notice_is_not_sent() {
    let (bench, server) = (NotifyBench::new(), MessageReceiver::start(&[]));
    let config = format!("[notify.chat]\nafter = '2s'\nwebhook = '{}'", server.url);
    let notifiers = bench.notifiers(&config);
    running(&bench, &notifiers, async {
        bench.fail("read at once").await;
        let (tenant, which) = (TenantId::default(), ReadNotices::All { until: None });
        let by = Principal::Operator;
        bench.storage.mark_notices_read(&tenant, which, &by).await.unwrap();
        sleep(Duration::from_secs(1)).await;
        bench.fail("unread").await;
        let requests = server.requests(1).await;
        assert!(requests[0].contains("unread") && !requests[0].contains("read at once"));
    })
    .await;
    assert_eq!(server.requests(1).await.len(), 1);
}

#[tokio::test]
async fn test_message_reports_result() {
    let (bench, server) = (NotifyBench::new(), MessageReceiver::start(&[403]));
    let config = format!(
        "[notify.chat]\nquiet = '00:00-23:59'\nwebhook = '{}/secret-path'\n\
         [notify.far]\nwebhook = 'https://127.0.0.2/'",
        server.url
    );
    let notifiers = bench.notifiers(&config);
    let test = async |name: &str| notifiers.test(name).await;
    let refused = test("chat").await.unwrap();
    assert_eq!(refused.error.as_deref(), Some("it answered with HTTP status 403"));
    assert!(!refused.delivered && refused.target == server.url, "{refused:?}");
    assert!(test("chat").await.unwrap().delivered, "also in quiet hours");
    assert!(server.requests(2).await[1].contains("\"test\":true"));
    let far = test("far").await.unwrap().error.unwrap();
    assert!(far.contains("push.trusted_hosts"), "{far}");
    assert_eq!(notifiers.failures().len(), 1, "it is known without an attempt");
    let unknown = A2aError::from(test("chatt").await.unwrap_err()).to_string();
    assert!(unknown.contains("no notifier is called `chatt`") && unknown.contains("chat"));
}

/// The URL of a chat server is its password.
#[tokio::test]
async fn unreadable_url_is_shown_nowhere() {
    let bench = NotifyBench::new();
    let url = "https://hooks.example:44x/services/T/B/SECRET";
    let notifiers = bench.notifiers(&format!("[notify.chat]\nafter = '0s'\nwebhook = '{url}'"));
    let tested = notifiers.test("chat").await.unwrap();
    let why = tested.error.clone().unwrap();
    assert!(why.contains("its URL is invalid") && why.contains("port"), "{why}");
    let obstacles = notifiers.failures();
    assert!(obstacles[0].contains("its URL is invalid"), "{obstacles:?}");
    running(&bench, &notifiers, async {
        bench.fail("fix the parser").await;
        while notifiers.failures() == obstacles {
            sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    let infos = notifiers.perform(NotifierRequest::List).await.unwrap();
    let shown = format!("{tested:?} {obstacles:?} {:?} {infos:?}", notifiers.failures());
    assert!(!shown.contains("SECRET") && !shown.contains("44x"), "{shown}");
}

/// Agents' programs and tenants may read the health of the hub.
#[tokio::test]
async fn health_has_only_number_of_failing_notifiers() {
    let bench = NotifyBench::new();
    let notifiers = bench.notifiers("[notify.ops-of-ada]\ncommand = ['a2a-hub-no-such-program']");
    assert!(notifiers.failures()[0].contains("ops-of-ada"));
    let count = notifiers.failure_count().unwrap();
    assert!(count.starts_with("notifiers that cannot send: 1; "), "{count}");
    assert!(!count.contains("ops-of-ada") && !count.contains("no-such-program"), "{count}");
    notifiers.follow(&BTreeMap::new());
    assert_eq!(notifiers.failure_count(), None);
}

/// A program may be installed, or removed, while the hub runs.
#[tokio::test]
async fn obstacle_is_found_at_each_look() {
    let bench = NotifyBench::new();
    let notifiers = bench.notifiers("[notify.chat]\nwebhook = 'https://127.0.0.2/'");
    let notifier = notifiers.configured.borrow()["chat"].clone();
    let obstacle = notifier.obstacle.lock().take().unwrap();
    assert!(notifiers.failures().is_empty(), "no probe looks for obstacles");
    notifiers.advance(&notifier).await.unwrap();
    assert_eq!(notifier.obstacle.lock().as_ref(), Some(&obstacle));
}

/// A delivery ends after its notifier was removed, or replaced by another one of the name.
#[tokio::test]
async fn state_of_removed_notifier_does_not_return() {
    let bench = NotifyBench::new();
    let config = "[notify.chat]\nwebhook = 'https://127.0.0.2/'";
    let notifiers = bench.notifiers(config);
    let before = notifiers.configured.borrow()["chat"].clone();
    let settings = |text: &str| BTreeMap::from([("chat".to_owned(), notifier_of(text))]);
    let stored = async || bench.storage.notifiers().await.unwrap().len();
    // Other settings are of the same notifier.
    notifiers.follow(&settings("command = ['x']"));
    notifiers.record(&before, NotifierState::default(), Ok(())).await;
    assert_eq!(stored().await, 1);
    notifiers.follow(&BTreeMap::new());
    notifiers.forget_removed(&ByName::new()).await;
    notifiers.record(&before, NotifierState::default(), Ok(())).await;
    assert_eq!(stored().await, 0, "it was removed");
    notifiers.follow(&settings("command = ['x']"));
    notifiers.record(&before, NotifierState::default(), Ok(())).await;
    assert_eq!(stored().await, 0, "the other one has sent nothing");
}

fn notifier_of(settings: &str) -> Notifier {
    toml::from_str(settings).unwrap()
}
