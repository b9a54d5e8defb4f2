//! Tests that the hub releases the resources of slow clients and of clients that disconnected.

use crate::{
    hub::InProcessHub,
    stage::{GRANT, eventually, eventually_async, state, stream},
};
use a2a_hub_tests::{Client, message_to, test_guests};
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use std::{net::SocketAddr, time::Duration};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpSocket, TcpStream, UnixStream},
    time::{Instant, sleep, timeout},
};

/// The hub's timeout for clients.
const PATIENCE: Duration = Duration::from_millis(500);

/// Timeout of the tests.
const WITHIN: Duration = Duration::from_secs(20);

async fn impatient_hub(streams: usize) -> Result<InProcessHub> {
    let patience = PATIENCE.as_millis();
    let config = format!("max_streams = {streams}\nclients.timeout_ms = {patience}\n{GRANT}");
    InProcessHub::builder().config(config).plugin("guest", test_guests()?).start().await
}

/// Reads until the hub closes the connection; returns the data and the elapsed time.
async fn said_until_hung_up(mut connection: TcpStream) -> Result<(String, Duration)> {
    let (start, mut said) = (Instant::now(), String::new());
    timeout(WITHIN, connection.read_to_string(&mut said))
        .await
        .context("it does not hang up")??;
    Ok((said, start.elapsed()))
}

/// Waits until the hub accepts a stream.
async fn let_in(hub: &InProcessHub) -> Result<()> {
    let client = Client::http(hub);
    eventually_async(WITHIN, async || stream(&client, "guest", "flood 1").await.is_ok()).await
}

#[tokio::test]
async fn slow_http_request_times_out() -> Result<()> {
    let hub = impatient_hub(8).await?;
    for begun in ["POST / HT", "POST / HTTP/1.1\r\nhost: localhost\r\nx-slow"] {
        let mut connection = TcpStream::connect(hub.http()).await?;
        connection.write_all(begun.as_bytes()).await?;
        let (said, took) = said_until_hung_up(connection).await?;
        assert!(took >= PATIENCE && !said.contains("200"), "{took:?}: {said}");
    }
    let mut connection = TcpStream::connect(hub.http()).await?;
    let head = format!(
        "POST / HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{{",
        hub.http()
    );
    connection.write_all(head.as_bytes()).await?;
    let (said, took) = said_until_hung_up(connection).await?;
    assert!(took >= PATIENCE && said.starts_with("HTTP/1.1 408"), "{took:?}: {said}");
    let (_, body) = said.split_once("\r\n\r\n").context("no body")?;
    let error: Value = serde_json::from_str(body)?;
    assert_eq!(error["error"]["code"], -32600);
    assert_eq!(
        error["error"]["message"],
        "the request did not come to its end within 500 ms; send it in one go, or raise `clients.timeout_ms`"
    );
    Ok(())
}

#[tokio::test]
async fn slow_line_times_out_idle_does_not() -> Result<()> {
    let hub = impatient_hub(8).await?;
    let (read, mut write) = UnixStream::connect(hub.socket()).await?.into_split();
    let mut answers = BufReader::new(read).lines();
    let status = json!({"jsonrpc": "2.0", "id": 1, "method": "hub/status"}).to_string();
    let (begin, end) = status.split_at(10);
    for _ in 0..2 {
        write.write_all(begin.as_bytes()).await?;
        sleep(PATIENCE / 4).await;
        write.write_all(format!("{end}\n").as_bytes()).await?;
        let answer = answers.next_line().await?.context("hung up on")?;
        assert!(answer.contains("\"version\""), "{answer}");
        sleep(PATIENCE * 2).await;
    }
    write.write_all(begin.as_bytes()).await?;
    let answer = timeout(WITHIN, answers.next_line()).await??.context("hung up without a word")?;
    assert!(answer.contains("the line did not come to its end within 500 ms"), "{answer}");
    assert_eq!(timeout(WITHIN, answers.next_line()).await??, None, "then it is over");
    Ok(())
}

/// The stream exceeds the system's socket buffers.
#[tokio::test]
async fn client_that_never_reads_is_disconnected() -> Result<()> {
    let hub = impatient_hub(1).await?;
    let address: SocketAddr = hub.http().parse()?;
    let socket = TcpSocket::new_v4()?;
    socket.set_recv_buffer_size(4096)?;
    let mut deaf = socket.connect(address).await?;
    let params = message_to("guest", "flood-forever");
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "message/stream", "params": params});
    let body = body.to_string();
    let request = format!(
        "POST /stream HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    deaf.write_all(request.as_bytes()).await?;
    deaf.readable().await?;
    let refused = stream(&Client::unix(&hub), "guest", "flood 1").await;
    ensure!(refused.is_err(), "the only stream there may be is taken");
    let_in(&hub).await
}

#[tokio::test]
async fn closed_idle_stream_frees_its_slot() -> Result<()> {
    let hub = impatient_hub(1).await?;
    let client = Client::unix(&hub);
    let (task, quiet) = stream(&client, "guest", "nap 600000").await?;
    drop(quiet);
    let_in(&hub).await?;
    let task = client.call("tasks/get", json!({ "id": task })).await?;
    let goes_on = matches!(state(&task), "submitted" | "working");
    assert!(goes_on, "the task does without its listener: {task}");
    Ok(())
}

/// Like `echo ... | socat`: closes its writing half and goes on reading.
#[tokio::test]
async fn half_closed_socket_still_gets_events() -> Result<()> {
    let hub = impatient_hub(1).await?;
    let (read, mut write) = UnixStream::connect(hub.socket()).await?.into_split();
    let params = message_to("guest", "tick 5 300");
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": "message/stream", "params": params});
    write.write_all(request.to_string().as_bytes()).await?;
    write.shutdown().await?;
    let mut heard = String::new();
    timeout(WITHIN, BufReader::new(read).read_to_string(&mut heard)).await??;
    assert!(heard.contains("ticked 5 times") && heard.contains("stream-end"), "{heard}");
    Ok(())
}

/// Sends an absolute URI, as to a proxy, with another Host header.
#[tokio::test]
async fn absolute_uri_with_foreign_host_fails() -> Result<()> {
    let hub = InProcessHub::start().await?;
    for (target, status) in [("/health", "200"), ("http://evil.example/health", "403")] {
        let mut connection = TcpStream::connect(hub.http()).await?;
        let request =
            format!("GET {target} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\r\n", hub.http());
        connection.write_all(request.as_bytes()).await?;
        let (said, _) = said_until_hung_up(connection).await?;
        assert!(said.starts_with(&format!("HTTP/1.1 {status}")), "{target}: {said}");
    }
    Ok(())
}

/// HTTP/2 frames without a request: each costs the hub more than its sender.
#[tokio::test]
async fn http2_control_flood_is_disconnected() -> Result<()> {
    let hub = InProcessHub::start().await?;
    let window_update: &[u8] = &[0, 0, 4, 8, 0, 0, 0, 0, 0, 0, 0, 0, 1];
    let ping: &[u8] = &[0, 0, 8, 6, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8];
    let settings: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];
    for frame in [window_update, ping, settings] {
        let mut connection = TcpStream::connect(hub.http()).await?;
        connection.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await?;
        connection.write_all(settings).await?;
        let (mut read, mut write) = connection.into_split();
        let flood = async {
            for _ in 0..2_000 {
                // The hub closed the connection.
                if write.write_all(&frame.repeat(100)).await.is_err() {
                    break;
                }
            }
            let mut said = Vec::new();
            // The read ends or fails with a reset.
            let _ = read.read_to_end(&mut said).await;
        };
        let begun = Instant::now();
        timeout(WITHIN, flood).await.with_context(|| format!("type {} goes on", frame[3]))?;
        ensure!(begun.elapsed() < WITHIN / 2, "it takes {:?}", begun.elapsed());
    }
    // The log is written asynchronously.
    let cut_off = || hub.log().matches("a flood of HTTP/2 control frames").count() == 3;
    eventually(WITHIN, cut_off).await?;
    Client::http(&hub).call("hub/status", json!({})).await?;
    Ok(())
}
