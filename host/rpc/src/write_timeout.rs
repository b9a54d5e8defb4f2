//! Write timeout of a connection: disconnects clients that do not read (slow read), so that their
//! pending data does not stay in memory.

use a2a_hub_core::text::duration::Span;
use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Sleep, sleep},
};

/// A connection that fails when its client reads nothing for the timeout. The task's log keeps the
/// events that the client missed.
pub struct WriteTimeout<C> {
    connection: C,
    timeout: Duration,
    /// End of the timeout, while a write is pending.
    deadline: Option<Pin<Box<Sleep>>>,
}

impl<C> WriteTimeout<C> {
    /// Wraps a connection; `timeout` is the longest time of one write.
    pub fn new(connection: C, timeout: Duration) -> Self {
        Self { connection, timeout, deadline: None }
    }

    /// The underlying connection, to identify its peer.
    pub fn get_ref(&self) -> &C {
        &self.connection
    }

    /// Result of a write, or an error after the timeout.
    fn judge<T>(
        &mut self,
        written: Poll<io::Result<T>>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.deadline = None;
            return written;
        }
        let timeout = self.timeout;
        let deadline = self.deadline.get_or_insert_with(|| Box::pin(sleep(timeout)));
        ready!(deadline.as_mut().poll(cx));
        let why = format!("the client took nothing for {}", Span(timeout));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, why)))
    }
}

impl<C: AsyncWrite + Unpin> AsyncWrite for WriteTimeout<C> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.connection).poll_write(cx, bytes);
        self.judge(written, cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.connection).poll_write_vectored(cx, bytes);
        self.judge(written, cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.connection.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.connection).poll_flush(cx);
        self.judge(flushed, cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut = Pin::new(&mut self.connection).poll_shutdown(cx);
        self.judge(shut, cx)
    }
}

impl<C: AsyncRead + Unpin> AsyncRead for WriteTimeout<C> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.connection).poll_read(cx, into)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        time::Instant,
    };

    const PATIENCE: Duration = Duration::from_secs(30);

    #[tokio::test(start_paused = true)]
    async fn client_that_reads_nothing_is_disconnected() {
        let (hub, _client) = tokio::io::duplex(8);
        let start = Instant::now();
        let broken = WriteTimeout::new(hub, PATIENCE).write_all(&[0; 9]).await.unwrap_err();
        assert_eq!(broken.kind(), io::ErrorKind::TimedOut);
        assert_eq!(start.elapsed(), PATIENCE);
    }

    #[tokio::test(start_paused = true)]
    async fn slow_client_stays_connected() {
        let (hub, mut client) = tokio::io::duplex(1);
        let mut hub = WriteTimeout::new(hub, PATIENCE);
        let reads = async {
            for _ in 0..10 {
                sleep(PATIENCE - Duration::from_millis(1)).await;
                client.read_u8().await.unwrap();
            }
        };
        let (wrote, ()) = tokio::join!(hub.write_all(&[0; 10]), reads);
        wrote.unwrap();
    }
}
