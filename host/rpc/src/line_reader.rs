//! Reader for a client's lines (NDJSON), with a maximum length and a deadline for each line, to
//! withstand slow clients (slow loris).

use crate::dispatcher::request_timeout;
use a2a_hub_protocol::error::{A2aError, ErrorKind};
use bytes::{Bytes, BytesMut};
use std::{io, time::Duration};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _},
    time::{Instant, error::Elapsed, timeout_at},
};
use tokio_util::codec::{AnyDelimiterCodec, AnyDelimiterCodecError, Decoder as _};

/// Number of bytes of one read.
const READ: usize = 16 << 10;

/// Reads lines from a connection.
pub struct LineReader<R> {
    read: R,
    codec: AnyDelimiterCodec,
    /// Bytes that are not part of a complete line yet.
    buffer: BytesMut,
    /// Maximum time from a line's first bytes to its end.
    timeout: Duration,
    /// Deadline of the current line.
    deadline: Option<Instant>,
    /// True if the last read ended inside a line.
    is_within: bool,
    /// True after the end of the input or a timeout.
    is_over: bool,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    /// Creates a reader for lines of at most `max` bytes.
    pub fn new(read: R, max: usize, timeout: Duration) -> Self {
        Self {
            read,
            codec: AnyDelimiterCodec::new_with_max_length(b"\n".into(), b"\n".into(), max),
            buffer: BytesMut::new(),
            timeout,
            deadline: None,
            is_within: false,
            is_over: false,
        }
    }

    /// The underlying connection.
    pub fn get_ref(&self) -> &R {
        &self.read
    }

    /// Next line without its terminator; `None` at the end of the input. A line that is overlong or
    /// not UTF-8 yields an error and is skipped. A timeout yields an error and ends the input.
    /// Cancel-safe.
    pub async fn next_line(&mut self) -> Result<Option<String>, A2aError> {
        let line = self.next_bytes().await?.map(|line| String::from_utf8(line.into()));
        line.transpose().map_err(|_| A2aError::new(ErrorKind::Parse, "the line is not in UTF-8"))
    }

    /// Next line of another protocol's client, as [`next_line`](Self::next_line); U+FFFD replaces
    /// bytes that are not UTF-8, since the request's id is readable nevertheless.
    pub async fn next_lossy_line(&mut self) -> Result<Option<String>, A2aError> {
        let line = self.next_bytes().await?;
        Ok(line.map(|line| String::from_utf8_lossy(&line).into_owned()))
    }

    async fn next_bytes(&mut self) -> Result<Option<Bytes>, A2aError> {
        while !self.is_over {
            if let Some(line) = self.codec.decode(&mut self.buffer).transpose() {
                self.deadline = None;
                return line.map(without_return).map(Some).map_err(|why| self.refusal(&why));
            }
            if self.buffer.is_empty() {
                // Frees the capacity of a long line, which would otherwise stay allocated for the
                // connection's lifetime.
                self.buffer = BytesMut::new();
            }
            self.buffer.reserve(READ);
            let Ok(read) = self.read().await else {
                self.is_over = true;
                return Err(request_timeout("line", self.timeout));
            };
            // A read error or the end of the input.
            let Ok(1..) = read else {
                self.is_over = true;
                let last = self.codec.decode_eof(&mut self.buffer);
                return last.map(|line| line.map(without_return)).map_err(|why| self.refusal(&why));
            };
            self.is_within = self.buffer.last() != Some(&b'\n');
        }
        Ok(None)
    }

    /// Between lines, a client may be silent without limit.
    async fn read(&mut self) -> Result<io::Result<usize>, Elapsed> {
        if !self.is_within {
            return Ok(self.read.read_buf(&mut self.buffer).await);
        }
        let deadline = *self.deadline.get_or_insert_with(|| Instant::now() + self.timeout);
        timeout_at(deadline, self.read.read_buf(&mut self.buffer)).await
    }

    fn refusal(&self, why: &AnyDelimiterCodecError) -> A2aError {
        match why {
            AnyDelimiterCodecError::MaxChunkLengthExceeded => {
                let max = self.codec.max_length();
                let why = format!("the line is longer than {max} bytes; it was left out");
                A2aError::new(ErrorKind::InvalidRequest, why)
            }
            // Reading from memory does not fail.
            AnyDelimiterCodecError::Io(why) => A2aError::new(ErrorKind::Parse, why.to_string()),
        }
    }
}

/// Removes the carriage return of a line that ended with `\r\n`.
fn without_return(mut line: Bytes) -> Bytes {
    if line.ends_with(b"\r") {
        line.truncate(line.len() - 1);
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::{
        io::{AsyncWriteExt as _, DuplexStream, duplex},
        time::sleep,
    };

    const PATIENCE: Duration = Duration::from_secs(30);

    /// Reads all lines of `text`, which arrives in pieces of this size.
    async fn all(text: &[u8], piece: usize) -> Vec<Result<String, ErrorKind>> {
        let (mut client, server) = duplex(piece);
        let mut reader = LineReader::new(server, 3, PATIENCE);
        let write = async {
            client.write_all(text).await.unwrap();
            drop(client);
        };
        let read = async {
            let mut found = Vec::new();
            while let Some(line) = reader.next_line().await.transpose() {
                found.push(line.map_err(|why| why.kind));
            }
            found
        };
        tokio::join!(write, read).1
    }

    #[tokio::test]
    async fn bad_line_is_skipped_across_chunks() {
        let (ok, long) = (|line: &str| Ok(line.to_owned()), || Err(ErrorKind::InvalidRequest));
        for piece in 1..=20 {
            let told = all(b"abc\nabcd\nab\r\n\nabcdefghijk\nabc", piece).await;
            let whole = [ok("abc"), long(), ok("ab"), ok(""), long(), ok("abc")];
            assert_eq!(told, whole, "in pieces of {piece}");
            let told = all(b"\xff\nab\nabcdefghi", piece).await;
            assert_eq!(told, [Err(ErrorKind::Parse), ok("ab"), long()], "in pieces of {piece}");
        }
    }

    #[tokio::test]
    async fn lossy_line_replaces_invalid_bytes() {
        let mut reader = LineReader::new(&b"a\xe9\r\n\xff"[..], 9, PATIENCE);
        assert_eq!(reader.next_lossy_line().await.unwrap().as_deref(), Some("a\u{fffd}"));
        assert_eq!(reader.next_lossy_line().await.unwrap().as_deref(), Some("\u{fffd}"));
        assert_eq!(reader.next_lossy_line().await.unwrap(), None);
    }

    #[tokio::test]
    async fn endless_line_has_bounded_buffer() {
        let (mut client, server) = duplex(1 << 20);
        let mut reader = LineReader::new(server, 10, PATIENCE);
        for _ in 0..1_000 {
            client.write_all(&[b'x'; 1_000]).await.unwrap();
        }
        assert!(reader.next_line().await.is_err(), "it is too long");
        client.write_all(b"\nshort\n").await.unwrap();
        assert_eq!(reader.next_line().await.unwrap().as_deref(), Some("short"));
        assert!(reader.buffer.capacity() <= 2 * READ, "{}", reader.buffer.capacity());
    }

    /// Output for a client that writes this text and then nothing for a day.
    async fn silent_after(text: &str) -> Vec<String> {
        let (mut client, server): (DuplexStream, _) = duplex(64);
        let mut reader = LineReader::new(server, 3, PATIENCE);
        client.write_all(text.as_bytes()).await.unwrap();
        let mut told = Vec::new();
        let read = async {
            while let Some(line) = reader.next_line().await.transpose() {
                told.push(line.unwrap_or_else(|why| why.message));
            }
            told.push("hung up on".to_owned());
        };
        tokio::select! {
            () = read => {}
            () = sleep(Duration::from_secs(86_400)) => told.push("heard still".to_owned()),
        }
        told
    }

    #[tokio::test(start_paused = true)]
    async fn unfinished_line_times_out_unlike_silence() {
        let dawdled = request_timeout("line", PATIENCE).message;
        let long = "the line is longer than 3 bytes; it was left out";
        assert_eq!(silent_after("").await, ["heard still"]);
        assert_eq!(silent_after("ab\n").await, ["ab", "heard still"]);
        assert_eq!(silent_after("ab\nc").await, ["ab", &dawdled, "hung up on"]);
        assert_eq!(silent_after("abcde\n").await, [long, "heard still"]);
        assert_eq!(silent_after("abcde").await, [long, &dawdled, "hung up on"]);
    }
}
