//! Load generator: sends requests as fast as a server answers, over plain sockets, so that the
//! generator is not the bottleneck.

use a2a_hub_tests::message_to;
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use std::{net::SocketAddr, str, sync::Arc, time::Duration};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    task::JoinSet,
    time::Instant,
};

/// Number of chunks of a stream.
pub(crate) const CHUNKS: u32 = 100;

/// Number and interval of the events of a slow stream.
pub(crate) const TICKS: u32 = 10;
pub(crate) const PACE: Duration = Duration::from_secs(1);

/// Repeated piece of work.
#[derive(Clone, Debug)]
pub(crate) enum Work {
    /// Task with a single response.
    Send,
    /// Task of an agent with a text; it must complete.
    Say(&'static str, Arc<str>),
    /// Task with [`CHUNKS`] streamed chunks.
    Stream,
    /// Fixed request.
    Ask(Arc<str>),
    /// Read of one of these tasks, at its own path on a baseline server.
    Get(&'static str, Arc<[String]>),
}

/// Measured speed of a server.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sample {
    /// Requests per second; for streams, chunks per second.
    pub(crate) per_second: f64,
    /// Latency of a request; for streams, of the first chunk.
    pub(crate) p50: Duration,
    pub(crate) p99: Duration,
    /// Duration of the measurement.
    pub(crate) took: Duration,
}

impl Sample {
    fn of(mut latencies: Vec<Duration>, each: u32, took: Duration) -> Self {
        latencies.sort_unstable();
        let percentile = |p: usize| latencies.get(latencies.len() * p / 100).copied();
        Self {
            per_second: latencies.len() as f64 * f64::from(each) / took.as_secs_f64(),
            p50: percentile(50).unwrap_or_default(),
            p99: percentile(99).unwrap_or_default(),
            took,
        }
    }

    /// Median of each figure.
    #[expect(clippy::needless_pass_by_value, reason = "maps an array of lists to one of medians")]
    pub(crate) fn median(samples: Vec<Self>) -> Self {
        Self {
            per_second: middle(samples.iter().map(|sample| sample.per_second), f64::total_cmp),
            p50: middle(samples.iter().map(|sample| sample.p50), Duration::cmp),
            p99: middle(samples.iter().map(|sample| sample.p99), Duration::cmp),
            took: middle(samples.iter().map(|sample| sample.took), Duration::cmp),
        }
    }
}

/// Median, or the default without figures.
pub(crate) fn middle<T: Copy + Default>(
    figures: impl Iterator<Item = T>,
    order: impl FnMut(&T, &T) -> std::cmp::Ordering,
) -> T {
    let mut figures: Vec<T> = figures.collect();
    figures.sort_by(order);
    figures.get(figures.len() / 2).copied().unwrap_or_default()
}

/// Generates load for that duration: each connection sends the next request after the last
/// response.
pub(crate) async fn run(
    address: SocketAddr,
    work: &Work,
    concurrency: usize,
    duration: Duration,
) -> Result<Sample> {
    let start = Instant::now();
    let mut clients = JoinSet::new();
    for _ in 0..concurrency {
        clients.spawn(client(address, work.clone(), start + duration));
    }
    let mut latencies = Vec::new();
    while let Some(client) = clients.join_next().await {
        latencies.extend(client??);
    }
    let each = if matches!(work, Work::Stream) { CHUNKS } else { 1 };
    Ok(Sample::of(latencies, each, start.elapsed()))
}

async fn client(address: SocketAddr, work: Work, deadline: Instant) -> Result<Vec<Duration>> {
    let mut connection = Connection::open(address).await?;
    let mut latencies = Vec::new();
    loop {
        let start = Instant::now();
        if start >= deadline {
            return Ok(latencies);
        }
        latencies.push(match &work {
            Work::Send => {
                let answer = connection.post("/", &send()).await?;
                check(answer)?;
                start.elapsed()
            }
            Work::Say(agent, text) => {
                let answer = connection.post("/", &message(agent, text)()).await?;
                check(answer)?;
                let completed = br#""state":"completed""#;
                let is_done = answer.windows(completed.len()).any(|bytes| bytes == completed);
                ensure!(is_done, "{}", String::from_utf8_lossy(answer));
                start.elapsed()
            }
            Work::Ask(request) => {
                check(connection.post("/", request).await?)?;
                start.elapsed()
            }
            Work::Stream => {
                let stream = connection.post_stream(&stream()).await?;
                ensure!(stream.chunks >= CHUNKS as usize, "only {} chunks came", stream.chunks);
                stream.first - start
            }
            Work::Get(path, tasks) => {
                let task = &tasks[latencies.len() % tasks.len()];
                let answer = connection.post(path, &get(task)).await?;
                check(answer)?;
                start.elapsed()
            }
        });
    }
}

fn check(answer: &[u8]) -> Result<()> {
    let result = answer.windows(8).any(|bytes| bytes == b"\"result\"");
    ensure!(result, "refused: {}", String::from_utf8_lossy(answer));
    Ok(())
}

/// Request with a message for the echo agent, with a fresh id.
pub(crate) fn send() -> String {
    call("message/send", &message_to("echo", "hi"))
}

/// Requests with a text for an agent, each with a fresh id.
pub(crate) fn message(agent: &str, text: &str) -> impl Fn() -> String + Clone + Send + use<> {
    let (agent, text) = (agent.to_owned(), text.to_owned());
    move || call("message/send", &message_to(&agent, &text))
}

/// Request for a stream from the echo agent, with as many words as chunks.
pub(crate) fn stream() -> String {
    let words = ["word"; CHUNKS as usize].join(" ");
    message_stream("echo", &format!("stream {words}"))
}

/// Request for a stream of an agent's answer.
pub(crate) fn message_stream(agent: &str, text: &str) -> String {
    call("message/stream", &message_to(agent, text))
}

/// Request for a slow stream from the test guest.
pub(crate) fn ticks() -> String {
    message_stream("guest", &format!("tick {TICKS} {}", PACE.as_millis()))
}

/// Request that reads a task.
pub(crate) fn get(task: &str) -> String {
    call("tasks/get", &json!({ "id": task }))
}

/// JSON-RPC request.
pub(crate) fn call(method: &str, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string()
}

/// Persistent HTTP/1.1 connection, for responses with a length and for streams of events.
pub(crate) struct Connection {
    stream: TcpStream,
    address: SocketAddr,
    buffer: Vec<u8>,
}

/// Result of a stream.
pub(crate) struct Streamed {
    /// Number of chunks.
    pub(crate) chunks: usize,
    /// Arrival of the first chunk.
    first: Instant,
    /// Size of the longest event in bytes.
    pub(crate) longest: usize,
}

impl Connection {
    pub(crate) async fn open(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, address, buffer: Vec::new() })
    }

    /// Sends a request and returns the body of the response.
    pub(crate) async fn post(&mut self, path: &str, body: &str) -> Result<&[u8]> {
        let head = self.ask(path, body).await?;
        let length = content_length(str::from_utf8(&self.buffer[..head])?)?;
        let body = head..head + length;
        while self.buffer.len() < body.end {
            self.read().await?;
        }
        Ok(&self.buffer[body])
    }

    /// Reads a stream of events to its end.
    pub(crate) async fn post_stream(&mut self, body: &str) -> Result<Streamed> {
        let mut first = None;
        self.post_until_end("/stream", body, |read| {
            if first.is_none() && chunks(read).next().is_some() {
                first = Some(Instant::now());
            }
        })
        .await?;
        let first = first.unwrap_or_else(Instant::now);
        let (chunks, longest) = chunks(&self.buffer)
            .fold((0, 0), |(number, longest), chunk| (number + 1, longest.max(chunk.len())));
        Ok(Streamed { chunks, first, longest })
    }

    /// Reads a stream of events to its end, and returns the arrival time of its first event.
    pub(crate) async fn post_first(&mut self, path: &str, body: &str) -> Result<Instant> {
        let mut first = None;
        self.post_until_end(path, body, |read| {
            if first.is_none() && read.windows(6).any(|bytes| bytes == b"\ndata:") {
                first = Some(Instant::now());
            }
        })
        .await?;
        first.context("the stream has no event")
    }

    /// Reads a stream of events to its end, and returns the arrival time of each chunk.
    pub(crate) async fn post_ticks(&mut self, path: &str, body: &str) -> Result<Vec<Instant>> {
        let mut ticks = Vec::new();
        let note = |read: &[u8]| ticks.resize(chunks(read).count(), Instant::now());
        self.post_until_end(path, body, note).await?;
        Ok(ticks)
    }

    /// Reads a stream of events to its end; `note` sees everything read so far, after each read.
    async fn post_until_end(
        &mut self,
        path: &str,
        body: &str,
        mut note: impl FnMut(&[u8]),
    ) -> Result<()> {
        self.ask(path, body).await?;
        loop {
            note(&self.buffer);
            // The last HTTP chunk is empty, and nothing follows it.
            if self.buffer.ends_with(b"\r\n0\r\n\r\n") {
                return Ok(());
            }
            self.read().await?;
        }
    }

    /// Sends a request and reads the head of the response; returns the head's length.
    async fn ask(&mut self, path: &str, body: &str) -> Result<usize> {
        let (address, length) = (self.address, body.len());
        let request = format!(
            "POST {path} HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        self.stream.write_all(request.as_bytes()).await?;
        self.buffer.clear();
        loop {
            self.read().await?;
            if let Some(end) = self.buffer.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                let head = &self.buffer[..end];
                let told = || String::from_utf8_lossy(&self.buffer);
                ensure!(head.starts_with(b"HTTP/1.1 200"), "answered with {}", told());
                return Ok(end + 4);
            }
        }
    }

    async fn read(&mut self) -> Result<()> {
        let read = self.stream.read_buf(&mut self.buffer).await?;
        ensure!(read > 0, "the server closed the connection");
        Ok(())
    }
}

/// Events that are chunks of an artifact.
fn chunks(stream: &[u8]) -> impl Iterator<Item = &[u8]> {
    let is_chunk = |line: &&[u8]| {
        line.starts_with(b"data:") && line.windows(17).any(|bytes| bytes == b"\"artifact-update\"")
    };
    stream.split(|byte| *byte == b'\n').filter(is_chunk)
}

fn content_length(head: &str) -> Result<usize> {
    let headers = head.lines().filter_map(|line| line.split_once(':'));
    let mut lengths = headers.filter(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let (_, length) = lengths.next().context("the answer has no content-length")?;
    Ok(length.trim().parse()?)
}
