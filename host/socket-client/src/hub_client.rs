//! Client of the hub's unix socket, used by the other commands.

use super::{
    failure::{CONNECTION_LOST, CommandError, HUB_HANGS, HUB_NOT_RUNNING, HUB_STARTING},
    global::Global,
    remote_hub, running_hub,
    runtime::block_on,
};
use a2a_hub_core::text::duration::Span;
use a2a_hub_process::daemon;
use a2a_hub_protocol::member;
use a2a_hub_store::sqlite::LOCK_FILE;
use a2a_hub_terminal::render::{list, shell_word, text};
use anyhow::{Context as _, anyhow, bail};
use serde_json::{Value, json};
use std::{
    io,
    path::{Path, PathBuf},
    time::Duration,
};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    net::{
        UnixStream,
        unix::{OwnedReadHalf, OwnedWriteHalf},
    },
    task::JoinSet,
    time::{Instant, sleep, timeout},
};

/// Timeout of the first answer and of lookups. A healthy hub answers within milliseconds.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// Time that a command waits for a starting hub if no terminal shows the progress. A user sees it,
/// and decides how long to wait.
const START_WAIT: Duration = Duration::from_secs(60);

/// Interval at which a starting hub is asked for its progress.
pub const START_POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Methods that only look something up, and therefore time out. All others take the time that
/// agents, programs and clients take.
const LOOKUP_METHODS: [&str; 13] = [
    "hub/agents/get",
    "hub/contexts/get",
    "hub/contexts/list",
    "hub/notices/list",
    "hub/questions/history",
    "hub/questions/list",
    "hub/search",
    "hub/speak",
    "hub/status",
    "hub/tasks/list",
    "hub/tasks/tree",
    "hub/usage",
    "tasks/get",
];

/// Error for a hub that does not answer, with the command that ends it.
fn hangs(pid: Option<i32>, timeout: Duration) -> CommandError {
    let process = pid.map(|pid| format!(" (process {pid})")).unwrap_or_default();
    let why = format!(
        "the hub{process} hangs: it has not answered for {}; `a2a-hub stop --force` kills it, then \
         `a2a-hub start` starts it again",
        Span(timeout)
    );
    CommandError::new(HUB_HANGS, why).mended_by("a2a-hub stop --force")
}

/// Error for a hub that is still starting.
fn still_starting(pid: Option<i32>, start: &str) -> CommandError {
    let process = pid.map(|pid| format!(" (process {pid})")).unwrap_or_default();
    let why = format!(
        "connect to the hub: it{process} is still starting: {start}; try again when `a2a-hub status` \
         says that it is up"
    );
    CommandError::new(HUB_STARTING, why).mended_by("a2a-hub status")
}

/// Error for a connection that ended.
fn lost(why: &str) -> CommandError {
    CommandError::new(CONNECTION_LOST, why).mended_by("a2a-hub status")
}

/// Describes the progress of a starting hub, from its answer to `hub/ping` or `hub/status`.
pub fn start_text(answer: &Value) -> Option<String> {
    let start = answer["starting"].as_object()?;
    let compiling = start.get("compiling").map(list).unwrap_or_default();
    let names: Vec<_> = compiling.iter().map(text).collect();
    let names = if names.is_empty() { String::new() } else { format!(" ({})", names.join(", ")) };
    let count = |name: &str| start.get(name).and_then(Value::as_u64).unwrap_or_default();
    Some(format!("{} of {} agents compiled{names}", count("ready"), count("agents")))
}

/// Connection to the hub.
pub struct Client {
    read: BufReader<OwnedReadHalf>,
    write: OwnedWriteHalf,
    /// Process id of the hub.
    pub pid: Option<i32>,
    requests: u64,
    /// Partial line that was read so far; [`Client::next`] is cancel-safe because of it.
    line: Vec<u8>,
    /// Tenant of all requests; `None` means the default tenant.
    tenant: Option<String>,
    /// URL of a remote hub; `None` for the hub of this machine.
    url: Option<String>,
    /// Relay to a remote hub, which ends with this client.
    _relay: Option<JoinSet<()>>,
}

/// Process id and socket of the hub that owns this data directory.
fn owner(global: &Global) -> Option<(i32, PathBuf)> {
    let dir = global.data_dir().ok()?;
    let run = running_hub::read_if_running(&dir)?;
    let socket = running_hub::socket(&run)?;
    // A hub that is starting or stopping is no problem.
    let holder = daemon::holder(&dir.join(LOCK_FILE)).ok()??;
    (run["pid"] == holder.pid).then_some((holder.pid, socket))
}

/// Error for a socket on which nothing listens. A running hub either lost this socket, or listens
/// on another one.
fn not_reached(path: &Path, is_option: bool, owner: Option<(i32, PathBuf)>) -> CommandError {
    let is_same = |socket: &Path| std::path::absolute(path).is_ok_and(|path| path == socket);
    let socket_path = path.display();
    let (why, mend) = match owner {
        Some((pid, socket)) if is_same(&socket) => (
            format!(
                "it runs (process {pid}), but its socket {socket_path} was removed; `a2a-hub stop \
                 --force` stops it"
            ),
            "a2a-hub stop --force".to_owned(),
        ),
        Some((pid, socket)) => {
            let listens = socket.display();
            let way = if is_option { "leave `--socket` out" } else { "give `--socket` with it" };
            let mend = format!("a2a-hub --socket {} status", shell_word(&listens.to_string()));
            let why = format!(
                "nothing listens on {socket_path}; the hub of this data directory (process {pid}) \
                 listens on {listens}; {way}"
            );
            (why, mend)
        }
        None => {
            let why = format!("nothing listens on {socket_path}; start it with `a2a-hub start`");
            (why, "a2a-hub start".to_owned())
        }
    };
    CommandError::new(HUB_NOT_RUNNING, format!("connect to the hub: {why}")).mended_by(mend)
}

impl Client {
    /// Connects to the hub that `global` names and waits for its first answer, at most for
    /// five seconds, and longer while it says that it is starting.
    pub async fn connect(global: &Global) -> anyhow::Result<Self> {
        Self::connect_within(global, ANSWER_TIMEOUT).await
    }

    /// Connects with another timeout, for callers that wait for a hub that is starting.
    pub async fn connect_within(global: &Global, timeout: Duration) -> anyhow::Result<Self> {
        let (mut progress, begun) = (global.progress("the hub", true), Instant::now());
        loop {
            let mut client = Self::reach(global, timeout).await?;
            let Some(start) = client.greet_within(timeout).await? else { return Ok(client) };
            if !progress.is_visible() && begun.elapsed() >= START_WAIT {
                return Err(still_starting(client.pid, &start).into());
            }
            // Its answers to other requests are worth waiting for on a new connection only.
            drop(client);
            progress.during(&format!("starting: {start}"), sleep(START_POLL_INTERVAL)).await;
        }
    }

    /// Connects to the hub even if it is still starting, when it answers `hub/status` only.
    pub async fn connect_to_any(global: &Global) -> anyhow::Result<Self> {
        let mut client = Self::reach(global, ANSWER_TIMEOUT).await?;
        client.greet().await?;
        Ok(client)
    }

    /// Connects without waiting for an answer.
    async fn reach(global: &Global, timeout: Duration) -> anyhow::Result<Self> {
        if let Some(named) = &global.hub {
            let hub = remote_hub::find(&global.data_dir()?, named)?;
            let url = Some(hub.url.clone());
            let (stream, relay) = remote_hub::connect(hub)?;
            let client = Self::of_stream(stream, None);
            let (tenant, relay) = (global.tenant.clone(), Some(relay));
            return Ok(Self { tenant, url, _relay: relay, ..client });
        }
        let path = global.socket_path()?;
        let absent = [io::ErrorKind::NotFound, io::ErrorKind::ConnectionRefused];
        let mut client = Self::to(&path).await.map_err(|why| {
            if absent.contains(&why.kind()) {
                not_reached(&path, global.socket.is_some(), owner(global)).into()
            } else if why.kind() == io::ErrorKind::WouldBlock {
                // The listen backlog is full.
                hangs(None, timeout).into()
            } else {
                anyhow!("connect to the hub on {}: {why}", path.display())
            }
        })?;
        client.tenant.clone_from(&global.tenant);
        Ok(client)
    }

    /// Waits until the hub answers, even with an error: a hub that answers once will answer other
    /// requests. Returns the progress of a hub that is starting.
    pub async fn greet(&mut self) -> anyhow::Result<Option<String>> {
        self.greet_within(ANSWER_TIMEOUT).await
    }

    async fn greet_within(&mut self, max_wait: Duration) -> anyhow::Result<Option<String>> {
        let late = self.late(max_wait);
        let answered = timeout(max_wait, async {
            self.ask("hub/ping", json!({})).await?;
            self.next().await
        });
        let (_, pong) = answered.await.map_err(|_| late)??;
        match pong {
            Ok(pong) => Ok(start_text(&pong)),
            // A remote hub that refuses this refuses all.
            Err(why) if self.url.is_some() => Err(why),
            Err(_) => Ok(None),
        }
    }

    /// Error for an answer that does not come within this time.
    fn late(&self, max_wait: Duration) -> CommandError {
        match &self.url {
            None => hangs(self.pid, max_wait),
            Some(url) => {
                let why = format!("the hub at {url} has not answered for {}", Span(max_wait));
                CommandError::new(HUB_HANGS, why)
            }
        }
    }

    /// Connects to the socket at `path`, which must belong to this user.
    pub async fn to(path: &Path) -> io::Result<Self> {
        let stream = UnixStream::connect(path).await?;
        let peer = stream.peer_cred()?;
        if peer.uid() != rustix::process::geteuid().as_raw() {
            let why = "the socket belongs to another user";
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
        }
        Ok(Self::of_stream(stream, peer.pid()))
    }

    fn of_stream(stream: UnixStream, pid: Option<i32>) -> Self {
        let (read, write) = stream.into_split();
        let (requests, line, tenant, url, _relay) = Default::default();
        Self { read: BufReader::new(read), write, pid, requests, line, tenant, url, _relay }
    }

    /// True for a remote hub.
    pub fn is_remote(&self) -> bool {
        self.url.is_some()
    }

    /// Returns the raw connection, for another protocol.
    pub fn into_halves(self) -> (BufReader<OwnedReadHalf>, OwnedWriteHalf) {
        (self.read, self.write)
    }

    /// Calls a method and returns its result. Fails with `HUB_HANGS` if a lookup exceeds
    /// five seconds.
    pub async fn call(&mut self, method: &str, params: Value) -> anyhow::Result<Value> {
        if !LOOKUP_METHODS.contains(&method) {
            return self.answered(method, params).await;
        }
        let late = self.late(ANSWER_TIMEOUT);
        let answered = timeout(ANSWER_TIMEOUT, self.answered(method, params)).await;
        answered.map_err(|_| late)?
    }

    async fn answered(&mut self, method: &str, params: Value) -> anyhow::Result<Value> {
        let id = self.ask(method, params).await?;
        loop {
            let (of, result) = self.next().await?;
            if of == id {
                return result;
            }
        }
    }

    /// Sends a request and returns its id.
    pub async fn ask(&mut self, method: &str, mut params: Value) -> anyhow::Result<u64> {
        self.requests += 1;
        if let Some(tenant) = &self.tenant {
            member::set(&mut params, "tenant", tenant.as_str());
        }
        let request =
            json!({ "jsonrpc": "2.0", "id": self.requests, "method": method, "params": params });
        let sent = self.write.write_all(format!("{request}\n").as_bytes()).await;
        match sent {
            // The hub may have sent the reason before it disconnected: `next` reads that. As an
            // error, a broken pipe would end the command without a message, like one of standard
            // output.
            Err(why) if why.kind() == io::ErrorKind::BrokenPipe => {}
            sent => sent.map_err(|why| lost(&format!("send the request to the hub: {why}")))?,
        }
        Ok(self.requests)
    }

    /// Returns the next response: the id of its request, and its result. Cancel-safe.
    pub async fn next(&mut self) -> anyhow::Result<(u64, anyhow::Result<Value>)> {
        let read = self.read.read_until(b'\n', &mut self.line).await;
        if read.map_err(|why| lost(&format!("read the hub's answer: {why}")))? == 0 {
            let why = "the hub closed the connection before it answered; `a2a-hub status` shows if \
                       it still runs";
            bail!(lost(why));
        }
        let line = std::mem::take(&mut self.line);
        let mut answer: Value = serde_json::from_slice(&line).context("read the hub's answer")?;
        // A response without an id answers a request that the hub could not parse: the latest
        // request.
        let id = answer["id"].as_u64().unwrap_or(self.requests);
        let result = match answer.get("error") {
            Some(error) => Err(CommandError::refused(error).into()),
            None => Ok(member::take(&mut answer, "result")),
        };
        Ok((id, result))
    }
}

/// Connects to the hub and makes one call.
pub fn ask(global: &Global, method: &str, params: Value) -> anyhow::Result<Value> {
    block_on(async { Client::connect(global).await?.call(method, params).await })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::to_text;
    use tokio::net::UnixListener;

    #[test]
    fn start_text_counts_and_names_agents() {
        let starting = json!({ "agents": 6, "ready": 3, "compiling": ["notes"] });
        let told = start_text(&json!({ "version": "0.1.0", "starting": starting }));
        assert_eq!(told.as_deref(), Some("3 of 6 agents compiled (notes)"));
        assert_eq!(start_text(&json!({ "version": "0.1.0" })), None);
    }

    #[test]
    fn mistyped_socket_names_right_one() {
        let told = |is_option, owner| {
            to_text(&not_reached(Path::new("/run/a.sock"), is_option, owner).into())
        };
        let at = |socket: &str| Some((7, PathBuf::from(socket)));
        let removed = told(true, at("/run/a.sock"));
        assert!(removed.contains("was removed") && removed.contains("stop --force"), "{removed}");
        for is_option in [true, false] {
            let other = told(is_option, at("/run/b.sock"));
            assert!(other.contains("(process 7) listens on /run/b.sock"), "{other}");
            assert!(other.contains("a2a-hub --socket /run/b.sock status"), "{other}");
            assert!(!other.contains("stop"), "{other}");
        }
        assert!(told(true, None).contains("a2a-hub start"));
    }

    /// The response to an unreadable request has no id (JSON-RPC 2.0, section 5) and still counts.
    #[tokio::test]
    async fn response_without_id_answers_last_request() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("hub.sock");
        let hub = UnixListener::bind(&path).unwrap();
        let refusing = async {
            let (stream, _) = hub.accept().await.unwrap();
            let mut stream = BufReader::new(stream);
            stream.read_line(&mut String::new()).await.unwrap();
            let refusal = json!({ "jsonrpc": "2.0", "id": null, "error": { "code": -32600, "message": "too long" } });
            stream.write_all(format!("{refusal}\n").as_bytes()).await.unwrap();
            stream
        };
        let calling = async {
            let mut client = Client::to(&path).await.unwrap();
            client.call("message/send", json!({})).await.unwrap_err().to_string()
        };
        let (_stream, why) = tokio::join!(refusing, calling);
        assert_eq!(why, "too long");
    }

    #[tokio::test]
    async fn refused_connection_reports_reason() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("hub.sock");
        let hub = UnixListener::bind(&path).unwrap();
        let mut client = Client::to(&path).await.unwrap();
        let (mut stream, _) = hub.accept().await.unwrap();
        let refusal = json!({ "jsonrpc": "2.0", "id": null, "error": { "code": -32004, "message": "no room" } });
        stream.write_all(format!("{refusal}\n").as_bytes()).await.unwrap();
        drop(stream);
        let why = client.call("hub/status", json!({})).await.unwrap_err();
        assert_eq!(why.to_string(), "no room");
        let why = client.call("hub/status", json!({})).await.unwrap_err();
        assert!(CommandError::from_error(&why).is(CONNECTION_LOST), "{why}");
    }

    /// The hub in this test accepts requests and never answers.
    #[tokio::test(start_paused = true)]
    async fn unanswered_lookup_reports_hanging_hub() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("hub.sock");
        let _hub = UnixListener::bind(&path).unwrap();
        let mut client = Client::to(&path).await.unwrap();
        let begun = Instant::now();
        for method in LOOKUP_METHODS {
            let why = client.call(method, json!({})).await.unwrap_err();
            assert!(CommandError::from_error(&why).is(HUB_HANGS), "{method}: {why}");
        }
        assert_eq!(begun.elapsed().as_secs(), 5 * LOOKUP_METHODS.len() as u64);
        let sent = client.call("message/send", json!({}));
        assert!(timeout(Duration::from_secs(3600), sent).await.is_err(), "agents take their time");
    }
}
