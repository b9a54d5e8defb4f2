//! Where HTTP connections come in: so many at once, each with what can be known of its other end.

use super::patience::Patient;
use crate::auth;
use axum::{
    extract::connect_info::Connected,
    serve::{IncomingStream, Listener},
};
use std::{
    io,
    net::SocketAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
    sync::{OnceCell, OwnedSemaphorePermit, Semaphore},
    task::spawn_blocking,
};

/// Connections at once; each costs some ten kilobytes. Others wait with the system until one is over.
const MAX_CONNECTIONS: usize = 4_000;

/// How long to wait when the system has no file descriptors left.
const BREATH: Duration = Duration::from_millis(100);

/// A listener that counts who is in.
pub(super) struct Door {
    listener: TcpListener,
    room: Arc<Semaphore>,
}

impl Door {
    pub(super) fn new(listener: TcpListener) -> Self {
        Self { listener, room: Arc::new(Semaphore::new(MAX_CONNECTIONS)) }
    }
}

impl Listener for Door {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection, SocketAddr) {
        loop {
            // The room is never closed.
            let permit = Arc::clone(&self.room).acquire_owned().await.ok();
            match self.listener.accept().await {
                Ok((stream, remote)) => {
                    let local = stream.local_addr().ok();
                    // An event must not wait for the client to acknowledge the one before it.
                    if let Err(why) = stream.set_nodelay(true) {
                        tracing::debug!(%why, "small answers may be late");
                    }
                    let stream = Patient::new(stream);
                    return (Connection { stream, local, _permit: permit }, remote);
                }
                Err(why) => {
                    tracing::warn!(%why, "cannot accept a connection");
                    tokio::time::sleep(BREATH).await;
                }
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// A connection, which gives back its room when it is over.
pub(super) struct Connection {
    stream: Patient<TcpStream>,
    local: Option<SocketAddr>,
    _permit: Option<OwnedSemaphorePermit>,
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, into)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// The other end of a connection.
#[derive(Clone)]
pub(super) struct Caller(Arc<Ends>);

struct Ends {
    local: Option<SocketAddr>,
    remote: SocketAddr,
    /// Found out once: a connection does not change hands.
    is_own_user: OnceCell<bool>,
}

impl Caller {
    /// Whether a program of the hub's own user is at the other end.
    pub(super) async fn is_own_user(&self) -> bool {
        let Ends { local, remote, is_own_user } = &*self.0;
        let (Some(local), remote) = (*local, *remote) else { return false };
        let look = || async move {
            let own = spawn_blocking(move || auth::is_own_user(local, remote)).await;
            own.unwrap_or(false)
        };
        *is_own_user.get_or_init(look).await
    }
}

impl Connected<IncomingStream<'_, Door>> for Caller {
    fn connect_info(incoming: IncomingStream<'_, Door>) -> Self {
        let (local, remote) = (incoming.io().local, *incoming.remote_addr());
        Self(Arc::new(Ends { local, remote, is_own_user: OnceCell::new() }))
    }
}
