//! Byte stream of an HTTP connection, with or without TLS, and the handshake that begins it.

use super::http2_frames::FrameCounter;
use crate::starting::refuse;
use a2a_hub_rpc::write_timeout::WriteTimeout;
use a2a_hub_tls::{ClientCertificate, ServerTls};
use std::{
    io,
    net::SocketAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, ReadBuf},
    net::TcpStream,
    time::{sleep, timeout},
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};
use tokio_util::either::Either;

/// HTTP/2 connection preface, which is not a valid HTTP/1 method (RFC 9113, section 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Polling interval while the preface is incomplete.
const PREFACE_WAIT: Duration = Duration::from_millis(100);

/// Longest time from the connection to the end of the handshake. `clients.timeout_ms` may shorten
/// it.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// First byte of a TLS connection: the record type of handshakes (RFC 8446, section 5.1).
const HANDSHAKE_RECORD: u8 = 22;

/// Protocol of ALPN for HTTP/2 (RFC 9113, section 3.2).
const H2: &[u8] = b"h2";

/// Response to plain HTTP at a port with TLS.
const USE_HTTPS: &str = "this port speaks HTTPS: write https:// in place of http://\n";

/// Accepted connection, before any handshake.
pub(super) struct PlainConnection {
    stream: WriteTimeout<TcpStream>,
    local: Option<SocketAddr>,
}

/// Connection after its handshake, if it needs one.
pub(super) struct Secured {
    pub(super) connection: HttpConnection,
    /// Certificate of the client.
    pub(super) certificate: Option<Arc<ClientCertificate>>,
}

impl PlainConnection {
    /// Connection with this local address.
    pub(super) fn new(stream: WriteTimeout<TcpStream>, local: Option<SocketAddr>) -> Self {
        Self { stream, local }
    }

    /// Local address.
    pub(super) fn local(&self) -> Option<SocketAddr> {
        self.local
    }

    /// Performs the handshake, unless the server has no TLS. `None` if it fails or takes too long.
    /// Before the client's first byte, the connection holds no memory for TLS.
    pub(super) async fn secure(
        self,
        tls: Option<&ServerTls>,
        client_timeout: Duration,
    ) -> Option<Secured> {
        let Some(tls) = tls else {
            let connection = HttpConnection::new(Either::Left(self.stream));
            return Some(Secured { connection, certificate: None });
        };
        let limit = client_timeout.min(HANDSHAKE_TIMEOUT);
        match timeout(limit, self.handshake(tls)).await {
            Ok(Ok(secured)) => secured,
            Ok(Err(why)) => {
                tracing::debug!(%why, "a TLS handshake failed");
                None
            }
            Err(_) => {
                tracing::debug!("a TLS handshake took too long");
                None
            }
        }
    }

    async fn handshake(mut self, tls: &ServerTls) -> io::Result<Option<Secured>> {
        let mut first = [0];
        if self.stream.get_ref().peek(&mut first).await? == 0 {
            return Ok(None);
        }
        if first[0] != HANDSHAKE_RECORD {
            let is_http = first[0].is_ascii_uppercase();
            tracing::debug!(is_http, "a client speaks no TLS");
            if is_http {
                refuse(&mut self.stream, use_https().as_bytes()).await;
            }
            return Ok(None);
        }
        // Read for each handshake, so that a renewed certificate counts at once.
        let acceptor = TlsAcceptor::from(tls.server_config());
        let stream = Box::new(acceptor.accept(self.stream).await?);
        let chain = stream.get_ref().1.peer_certificates().unwrap_or_default();
        let certificate = ClientCertificate::of_chain(chain).map(Arc::new);
        let connection = HttpConnection::new(Either::Right(stream));
        Ok(Some(Secured { connection, certificate }))
    }
}

/// Refusal of plain HTTP at a port with TLS.
fn use_https() -> String {
    format!(
        "HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain; charset=utf-8\r\n\
         connection: close\r\ncontent-length: {}\r\n\r\n{USE_HTTPS}",
        USE_HTTPS.len()
    )
}

/// Byte stream without TLS, or with it. The latter is boxed: it is thirty times as large.
type HttpStream = Either<WriteTimeout<TcpStream>, Box<TlsStream<WriteTimeout<TcpStream>>>>;

/// Byte stream of a connection.
pub(super) struct HttpConnection {
    stream: HttpStream,
    /// Bytes that were read from the stream, and that its reader gets first.
    unread: Vec<u8>,
    /// Counter of HTTP/2 frames.
    frames: Option<FrameCounter>,
}

impl HttpConnection {
    fn new(stream: HttpStream) -> Self {
        Self { stream, unread: Vec::new(), frames: None }
    }

    /// Returns true if the client speaks HTTP/2: it chose that in the handshake or, without TLS, it
    /// begins with the preface. The reader of the connection gets these bytes again.
    ///
    /// After that choice, it waits until the client has sent as many bytes as the preface has: the
    /// HTTP library waits for them without a limit, also during shutdown.
    pub(super) async fn speaks_http2(&mut self) -> io::Result<bool> {
        let stream = match &mut self.stream {
            Either::Left(stream) => stream,
            Either::Right(stream) => {
                let is_http2 = stream.get_ref().1.alpn_protocol() == Some(H2);
                if is_http2 {
                    let mut preface = [0; PREFACE.len()];
                    stream.read_exact(&mut preface).await?;
                    self.unread = preface.to_vec();
                }
                return Ok(is_http2);
            }
        };
        let mut first = [0; PREFACE.len()];
        loop {
            let length = stream.get_ref().peek(&mut first).await?;
            if length == 0 || length == PREFACE.len() || !PREFACE.starts_with(&first[..length]) {
                return Ok(length > 0 && first == PREFACE);
            }
            // The rest of the preface is still in transit.
            sleep(PREFACE_WAIT).await;
        }
    }

    /// Counts frames from now on. The next bytes are the preface.
    pub(super) fn count_http2_frames(&mut self) {
        self.frames = Some(FrameCounter::new(PREFACE.len()));
    }
}

impl AsyncRead for HttpConnection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        let read = match self.unread.len().min(into.remaining()) {
            0 => ready!(Pin::new(&mut self.stream).poll_read(cx, into)),
            length => {
                into.put_slice(&self.unread[..length]);
                self.unread.drain(..length);
                Ok(())
            }
        };
        let bytes = into.filled().get(before..).unwrap_or_default();
        let counted = self.frames.as_mut().map_or(Ok(()), |frames| frames.received(bytes));
        if let Err(flood) = counted {
            tracing::warn!(%flood, "HTTP/2 connection was closed");
            return Poll::Ready(Err(io::Error::other(flood)));
        }
        Poll::Ready(read)
    }
}

impl AsyncWrite for HttpConnection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write(cx, bytes));
        if let (Ok(length), Some(frames)) = (&written, &mut self.frames) {
            frames.went(&bytes[..*length]);
        }
        Poll::Ready(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write_vectored(cx, bytes));
        if let (Ok(length), Some(frames)) = (&written, &mut self.frames) {
            let mut remaining = *length;
            for piece in bytes {
                let (sent, _) = piece.split_at(remaining.min(piece.len()));
                frames.went(sent);
                remaining -= sent.len();
            }
        }
        Poll::Ready(written)
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
