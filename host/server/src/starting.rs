//! Connections to a hub that is still starting. Status and health are answered from the first
//! moment; everything else waits, and is served when the hub has started. A request that waits for
//! long is refused, and its client may try again.
//!
//! The bytes of a connection are looked at without taking them (`MSG_PEEK`), so that the hub reads
//! the whole request later.

use a2a_hub_protocol::{
    dialect::Dialect,
    error::{A2aError, ErrorKind},
    operation::HubStart,
};
use a2a_hub_rpc::{jsonrpc, retry_after::RETRY_AFTER_SECONDS};
use rustix::{io::Errno, net::RecvFlags};
use serde_json::json;
use std::{io, os::fd::AsFd, sync::Arc, time::Duration};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, copy, sink},
    task::JoinSet,
    time::{Instant, sleep, timeout},
};
use tokio_util::sync::CancellationToken;

/// Progress of the start, read for each answer.
pub type StartProgress = Arc<dyn Fn() -> HubStart + Send + Sync>;

/// Time that a request waits for the start before it is refused; most starts are much shorter.
const WAIT: Duration = Duration::from_secs(20);

/// Time for sending a refusal, and for the client to read it.
pub(crate) const REFUSAL_TIMEOUT: Duration = Duration::from_secs(1);

/// Interval at which a waiting connection is looked at.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Bytes of a request that are looked at: the requests that are answered are shorter.
const MAX_PEEK: usize = 4 << 10;

/// Most connections that wait at once; further ones wait in the kernel.
const MAX_WAITING: usize = 256;

/// Reason of a refusal.
const STARTING: &str = "starting";

/// Reaction to the bytes that a client has sent so far.
pub(crate) enum StartReaction {
    /// Nothing, or the beginning of a request.
    Incomplete,
    /// A request that is answered now: its length, and the answer.
    Now(usize, Vec<u8>),
    /// A request for the started hub, and its refusal.
    Later(Vec<u8>),
}

/// Accepts connections until `started`, and answers what `reaction` answers. Returns the
/// connections that the hub has to serve.
pub(crate) async fn accept_until_started<S>(
    accept: impl AsyncFn() -> io::Result<S>,
    reaction: impl Fn(&[u8]) -> StartReaction + Clone + Send + 'static,
    started: CancellationToken,
) -> Vec<S>
where
    S: AsFd + AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut waiting = JoinSet::new();
    let mut to_serve = Vec::new();
    while !started.is_cancelled() {
        tokio::select! {
            accepted = accept(), if waiting.len() < MAX_WAITING => match accepted {
                Ok(stream) => {
                    waiting.spawn(attend(stream, reaction.clone(), started.clone()));
                }
                // A lack of descriptors, for example.
                Err(why) => {
                    tracing::debug!(%why, "cannot accept a connection during the start");
                    sleep(POLL_INTERVAL).await;
                }
            },
            // A connection that ended makes room. At the end of the start, it is one to serve.
            Some(ended) = waiting.join_next() => to_serve.extend(ended.ok().flatten()),
            () = started.cancelled() => {}
        }
    }
    to_serve.extend(waiting.join_all().await.into_iter().flatten());
    to_serve
}

/// Answers one connection until `started`; none if it has ended.
async fn attend<S>(
    mut stream: S,
    reaction: impl Fn(&[u8]) -> StartReaction,
    started: CancellationToken,
) -> Option<S>
where
    S: AsFd + AsyncRead + AsyncWrite + Unpin,
{
    let mut since = None;
    loop {
        let (bytes, has_ended) = peek(&stream);
        if has_ended {
            return None;
        }
        match reaction(&bytes) {
            StartReaction::Now(length, answer) => {
                let mut taken = vec![0; length];
                stream.read_exact(&mut taken).await.ok()?;
                stream.write_all(&answer).await.ok()?;
                since = None;
                continue;
            }
            StartReaction::Later(refusal) => {
                let since = *since.get_or_insert_with(Instant::now);
                if since.elapsed() >= WAIT {
                    refuse(&mut stream, &refusal).await;
                    return None;
                }
            }
            StartReaction::Incomplete => {}
        }
        tokio::select! {
            () = sleep(POLL_INTERVAL) => {}
            () = started.cancelled() => return Some(stream),
        }
    }
}

/// Sends a refusal, and reads the rest of the request: closing a connection with unread bytes
/// would reset it, and the client might lose the refusal. A client that is gone, or does not read,
/// is disconnected.
pub(crate) async fn refuse<S>(stream: &mut S, refusal: &[u8])
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let send = async {
        stream.write_all(refusal).await?;
        stream.shutdown().await?;
        copy(stream, &mut sink()).await
    };
    let _ = timeout(REFUSAL_TIMEOUT, send).await;
}

/// Bytes that have arrived, and true if the client has ended the connection.
fn peek(stream: &impl AsFd) -> (Vec<u8>, bool) {
    let mut bytes = vec![0; MAX_PEEK];
    match rustix::net::recv(stream, &mut bytes[..], RecvFlags::PEEK | RecvFlags::DONTWAIT) {
        Ok((_, length)) => {
            bytes.truncate(length);
            let has_ended = length == 0;
            (bytes, has_ended)
        }
        Err(Errno::AGAIN | Errno::INTR) => (Vec::new(), false),
        Err(_) => (Vec::new(), true),
    }
}

/// Refusal of a request that has waited for too long.
pub(crate) fn refusal(start: &HubStart) -> Vec<u8> {
    let why = format!(
        "the hub is starting: {start}; try again in {RETRY_AFTER_SECONDS} s, or ask `hub/status` how far it is"
    );
    let refusal = A2aError::new(ErrorKind::AgentUnavailable, why);
    let details = json!({ "reason": STARTING, "starting": start, "retryAfterMs": RETRY_AFTER_SECONDS * 1000 });
    jsonrpc::unreadable(Dialect::Hub, &refusal.with(details))
}

#[cfg(test)]
mod tests {
    use super::*;
    use parking_lot::Mutex;
    use std::future::pending;
    use tokio::{net::UnixStream, task::yield_now};

    fn look(bytes: &[u8]) -> StartReaction {
        match bytes {
            [b'?', ..] => StartReaction::Now(1, b"!".to_vec()),
            [] => StartReaction::Incomplete,
            _ => StartReaction::Later(b"later".to_vec()),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_request_reaches_started_hub_whole() {
        let started = CancellationToken::new();
        let (mut client, hub) = UnixStream::pair().unwrap();
        let mut waiting = JoinSet::new();
        waiting.spawn(attend(hub, look, started.clone()));
        client.write_all(b"??abc").await.unwrap();
        let mut answers = [0; 2];
        client.read_exact(&mut answers).await.unwrap();
        assert_eq!(&answers, b"!!");
        started.cancel();
        let mut hub = waiting.join_next().await.unwrap().unwrap().unwrap();
        let mut request = [0; 3];
        hub.read_exact(&mut request).await.unwrap();
        assert_eq!(&request, b"abc");
    }

    #[tokio::test]
    async fn waiting_connections_are_all_handed_over() {
        // The end of the start and the ends of its connections are ready in any order.
        for _ in 0..100 {
            let started = CancellationToken::new();
            let (mut clients, mut hubs) = (Vec::new(), Vec::new());
            for _ in 0..3 {
                let (mut client, hub) = UnixStream::pair().unwrap();
                client.write_all(b"abc").await.unwrap();
                clients.push(client);
                hubs.push(hub);
            }
            let hubs = Mutex::new(hubs);
            let accept = async || {
                let hub = hubs.lock().pop();
                let Some(hub) = hub else {
                    // Lets the connections begin to wait.
                    for _ in 0..10 {
                        yield_now().await;
                    }
                    started.cancel();
                    return pending().await;
                };
                Ok(hub)
            };
            assert_eq!(
                accept_until_started(accept, look, started.clone()).await.len(),
                clients.len()
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn request_is_refused_after_long_wait() {
        let (mut client, hub) = UnixStream::pair().unwrap();
        let mut waiting = JoinSet::new();
        waiting.spawn(attend(hub, look, CancellationToken::new()));
        client.write_all(b"abc").await.unwrap();
        let begun = Instant::now();
        let mut said = String::new();
        client.read_to_string(&mut said).await.unwrap_or_default();
        assert!(said == "later" && begun.elapsed() >= WAIT, "{said}");
        assert!(waiting.join_next().await.unwrap().unwrap().is_none());
    }

    #[tokio::test]
    async fn ended_connection_is_dropped() {
        let (client, hub) = UnixStream::pair().unwrap();
        drop(client);
        assert!(attend(hub, look, CancellationToken::new()).await.is_none());
    }
}
