//! Client of the hub, used by the other commands.

#[cfg(feature = "hub")]
mod local;

use super::{
    failure::{CONNECTION_LOST, CommandError, HUB_HANGS, HUB_STARTING},
    global::Global,
    remote_hub,
    runtime::block_on,
};
use a2a_hub_config::JoinedHub;
use a2a_hub_core::text::duration::Span;
use a2a_hub_protocol::member;
use a2a_hub_terminal::render::{list, text};
use anyhow::{Context as _, bail};
use serde_json::{Value, json};
use std::{io, time::Duration};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader, split},
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
const LOOKUP_METHODS: [&str; 14] = [
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
    "hub/tasks/timeline",
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

/// Responses of the hub.
pub type HubReader = BufReader<Box<dyn AsyncRead + Send + Unpin>>;

/// Requests to the hub.
pub type HubWriter = Box<dyn AsyncWrite + Send + Unpin>;

/// Connection to the hub.
pub struct Client {
    read: HubReader,
    write: HubWriter,
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
            let joined = Self::to_joined(remote_hub::find(&global.data_dir()?, named)?)?;
            return Ok(Self { tenant: global.tenant.clone(), ..joined });
        }
        Self::reach_unnamed(global, timeout).await
    }

    /// Connects to the only hub that this user joined.
    #[cfg(not(feature = "hub"))]
    async fn reach_unnamed(global: &Global, _: Duration) -> anyhow::Result<Self> {
        let joined = Self::to_joined(remote_hub::find_only(&global.data_dir()?)?)?;
        Ok(Self { tenant: global.tenant.clone(), ..joined })
    }

    /// Connects to a remote hub, without waiting for an answer.
    ///
    /// # Errors
    ///
    /// A file for TLS is unusable.
    pub fn to_joined(hub: JoinedHub) -> anyhow::Result<Self> {
        let url = Some(hub.url.clone());
        let (stream, relay) = remote_hub::connect(hub)?;
        let (read, write) = split(stream);
        Ok(Self { url, _relay: Some(relay), ..Self::of_halves(read, write, None) })
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

    fn of_halves(
        read: impl AsyncRead + Send + Unpin + 'static,
        write: impl AsyncWrite + Send + Unpin + 'static,
        pid: Option<i32>,
    ) -> Self {
        let (read, write) = (BufReader::new(Box::new(read) as _), Box::new(write) as _);
        let (requests, line, tenant, url, _relay) = Default::default();
        Self { read, write, pid, requests, line, tenant, url, _relay }
    }

    /// True for a remote hub.
    pub fn is_remote(&self) -> bool {
        self.url.is_some()
    }

    /// Returns the raw connection, for another protocol.
    pub fn into_halves(self) -> (HubReader, HubWriter) {
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
    use a2a_hub_config::ClientTlsFiles;
    use tokio::{io::AsyncReadExt as _, net::TcpListener};

    #[test]
    fn start_text_counts_and_names_agents() {
        let starting = json!({ "agents": 6, "ready": 3, "compiling": ["notes"] });
        let told = start_text(&json!({ "version": "0.1.0", "starting": starting }));
        assert_eq!(told.as_deref(), Some("3 of 6 agents compiled (notes)"));
        assert_eq!(start_text(&json!({ "version": "0.1.0" })), None);
    }

    /// The request is larger than the pipes of the relay.
    #[tokio::test]
    async fn joined_hub_answers_through_relay() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let hub = JoinedHub {
            name: "team".to_owned(),
            url: format!("http://{}", listener.local_addr().unwrap()),
            person: "ada".to_owned(),
            key: "a2ah_1".to_owned(),
            tls: ClientTlsFiles::default(),
        };
        let serving = async {
            let mut stream = BufReader::new(listener.accept().await.unwrap().0);
            let (mut head, mut length) = (String::new(), 0);
            while !head.ends_with("\r\n\r\n") {
                let start = head.len();
                stream.read_line(&mut head).await.unwrap();
                if let Some(bytes) = head[start..].strip_prefix("content-length:") {
                    length = bytes.trim().parse().unwrap();
                }
            }
            let mut body = vec![0; length];
            stream.read_exact(&mut body).await.unwrap();
            let request: Value = serde_json::from_slice(&body).unwrap();
            let sent = text(&request["params"]["text"]).len();
            let answer = json!({ "jsonrpc": "2.0", "id": request["id"], "result": sent });
            let (answer, media) = (answer.to_string(), "application/json");
            let length = answer.len();
            let response = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: {media}\r\ncontent-length: {length}\r\n\r\n{answer}"
            );
            stream.write_all(response.as_bytes()).await.unwrap();
            head
        };
        let mut client = Client::to_joined(hub).unwrap();
        assert!(client.is_remote());
        let params = json!({ "text": "x".repeat(1 << 20) });
        let (head, answer) = tokio::join!(serving, client.call("hub/search", params));
        assert_eq!(answer.unwrap(), 1 << 20);
        assert!(head.starts_with("POST /stream "), "{head}");
        assert!(head.contains("\r\nauthorization: Bearer a2ah_1\r\n"), "{head}");
    }
}
