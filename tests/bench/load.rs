//! The load: as many requests as a server answers, over plain sockets, so that the generator does not set the pace.

use a2a_hub_tests::message_to;
use anyhow::{Context as _, Result, ensure};
use serde_json::json;
use std::{net::SocketAddr, str, time::Duration};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    task::JoinSet,
    time::Instant,
};

/// How fast a server was.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    pub(crate) per_second: f64,
    pub(crate) p50: Duration,
    pub(crate) p99: Duration,
}

impl Sample {
    fn of(mut latencies: Vec<Duration>, took: Duration) -> Self {
        latencies.sort_unstable();
        let percentile = |p: usize| latencies.get(latencies.len() * p / 100).copied();
        Self {
            per_second: latencies.len() as f64 / took.as_secs_f64(),
            p50: percentile(50).unwrap_or_default(),
            p99: percentile(99).unwrap_or_default(),
        }
    }

    /// The median of each figure by itself.
    #[expect(clippy::needless_pass_by_value, reason = "maps an array of lists to one of medians")]
    pub(crate) fn median(samples: Vec<Self>) -> Self {
        Self {
            per_second: middle(samples.iter().map(|sample| sample.per_second), f64::total_cmp),
            p50: middle(samples.iter().map(|sample| sample.p50), Duration::cmp),
            p99: middle(samples.iter().map(|sample| sample.p99), Duration::cmp),
        }
    }
}

fn middle<T: Copy + Default>(
    figures: impl Iterator<Item = T>,
    order: impl FnMut(&T, &T) -> std::cmp::Ordering,
) -> T {
    let mut figures: Vec<T> = figures.collect();
    figures.sort_by(order);
    figures.get(figures.len() / 2).copied().unwrap_or_default()
}

/// Sends requests for that long, each connection the next as soon as it has the answer to the last.
pub(crate) async fn run(
    address: SocketAddr,
    concurrency: usize,
    duration: Duration,
) -> Result<Sample> {
    let start = Instant::now();
    let mut clients = JoinSet::new();
    for _ in 0..concurrency {
        clients.spawn(client(address, start + duration));
    }
    let mut latencies = Vec::new();
    while let Some(client) = clients.join_next().await {
        latencies.extend(client??);
    }
    Ok(Sample::of(latencies, start.elapsed()))
}

async fn client(address: SocketAddr, deadline: Instant) -> Result<Vec<Duration>> {
    let mut connection = Connection::open(address).await?;
    let mut latencies = Vec::new();
    loop {
        let request = request();
        let start = Instant::now();
        if start >= deadline {
            return Ok(latencies);
        }
        let answer = connection.post(&request).await?;
        latencies.push(start.elapsed());
        let result = answer.windows(8).any(|bytes| bytes == b"\"result\"");
        ensure!(result, "refused: {}", String::from_utf8_lossy(answer));
    }
}

/// A greeting for the echo, under a name of its own.
pub(crate) fn request() -> String {
    let params = message_to("echo", "hi");
    json!({"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": params}).to_string()
}

/// An HTTP/1.1 connection that is kept alive, for answers with a length.
pub(crate) struct Connection {
    stream: TcpStream,
    address: SocketAddr,
    buffer: Vec<u8>,
}

impl Connection {
    pub(crate) async fn open(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, address, buffer: Vec::new() })
    }

    /// The body of the answer.
    pub(crate) async fn post(&mut self, body: &str) -> Result<&[u8]> {
        let Self { stream, address, buffer } = self;
        let length = body.len();
        let request = format!(
            "POST / HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).await?;
        buffer.clear();
        let body = loop {
            read(stream, buffer).await?;
            if let Some(end) = buffer.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                let head = str::from_utf8(&buffer[..end])?;
                ensure!(head.starts_with("HTTP/1.1 200"), "answered with {head}");
                break end + 4..end + 4 + content_length(head)?;
            }
        };
        while buffer.len() < body.end {
            read(stream, buffer).await?;
        }
        Ok(&buffer[body])
    }
}

async fn read(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Result<()> {
    ensure!(stream.read_buf(buffer).await? > 0, "the server closed the connection");
    Ok(())
}

fn content_length(head: &str) -> Result<usize> {
    let headers = head.lines().filter_map(|line| line.split_once(':'));
    let mut lengths = headers.filter(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let (_, length) = lengths.next().context("the answer has no content-length")?;
    Ok(length.trim().parse()?)
}
