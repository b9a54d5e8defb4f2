//! HTTP responses that are read while they arrive: in chunks, in lines, or as server-sent events.

use std::time::Duration;

use crate::host::{ExchangeHandle, Host};
use crate::hub::Hub;
use crate::line_buffer::{LineBuffer, LineTooLong, MAX_LINE};
use crate::{Context, Failure, Request};

/// Response whose body is streamed. Dropping it closes the connection.
pub struct Exchange {
    pub(crate) handle: <Hub as Host>::Exchange,
    lines: LineBuffer,
    has_ended: bool,
}

/// Event of a `text/event-stream`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ServerEvent {
    /// Type of the event; `message` unless the server sets it.
    pub event: String,
    /// Data lines of the event, joined.
    pub data: String,
    /// Id of the event, if the server sets one.
    pub id: Option<String>,
}

impl Context {
    /// Sends a request and waits for the head of the response. The body is read as it arrives.
    pub fn exchange(&self, request: &Request) -> Result<Exchange, Failure> {
        let handle = self.hub.exchange(request)?;
        Ok(Exchange { handle, lines: LineBuffer::default(), has_ended: false })
    }
}

impl Exchange {
    /// Status of the response, such as 200.
    pub fn status(&self) -> u16 {
        ExchangeHandle::status(&self.handle)
    }

    /// First header of that name, case-insensitive.
    pub fn header(&self, name: &str) -> Option<String> {
        let headers = ExchangeHandle::headers(&self.handle).into_iter();
        { headers }.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// Next chunk of the body as it arrived; `None` at the end.
    ///
    /// If no chunk arrives within the timeout, the result is [`Failure::Timeout`]; the next call
    /// continues from there. Bytes that the line reader already buffered are not returned again.
    pub fn next_piece(&mut self, timeout: Option<Duration>) -> Result<Option<Vec<u8>>, Failure> {
        if self.has_ended {
            return Ok(None);
        }
        let piece = ExchangeHandle::next(&self.handle, timeout)?;
        self.has_ended = piece.is_none();
        Ok(piece)
    }

    /// Next line of the body without its line ending; `None` after the last.
    pub fn next_line(&mut self, timeout: Option<Duration>) -> Result<Option<String>, Failure> {
        loop {
            if let Some(line) = self.lines.pop() {
                return Ok(Some(line));
            }
            let Some(piece) = self.next_piece(timeout)? else {
                self.lines.end();
                return Ok(self.lines.pop());
            };
            self.lines.push(&piece).map_err(too_long)?;
        }
    }

    /// Next server-sent event; `None` at the end of the stream. The timeout applies to each line.
    pub fn next_event(
        &mut self,
        timeout: Option<Duration>,
    ) -> Result<Option<ServerEvent>, Failure> {
        self.lines.follow_events().map_err(too_long)?;
        let (mut event, mut data, mut id) = (None, Vec::new(), None);
        while let Some(line) = self.next_line(timeout)? {
            let (field, value) = line.split_once(':').unwrap_or((&line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value).to_owned();
            match field {
                "event" => event = Some(value),
                "data" => data.push(value),
                "id" => id = Some(value),
                _ if line.is_empty() => {
                    // The standard dispatches no event without data; its name and id are not those
                    // of the next one.
                    let (event, id) = (event.take(), id.take());
                    let data = std::mem::take(&mut data).join("\n");
                    if !data.is_empty() {
                        let event = event.unwrap_or_else(|| "message".to_owned());
                        return Ok(Some(ServerEvent { event, data, id }));
                    }
                }
                _ => {}
            }
        }
        // An event without its final blank line is discarded, as the specification of server-sent
        // events says.
        Ok(None)
    }

    /// Rest of the body as text.
    pub fn rest(mut self) -> Result<String, Failure> {
        let mut bytes = Vec::new();
        while let Some(piece) = self.next_piece(None)? {
            bytes.extend(piece);
        }
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// True if a line is buffered.
    pub(crate) fn has_line(&self) -> bool {
        !self.lines.is_empty()
    }
}

fn too_long(_: LineTooLong) -> Failure {
    Failure::Exhausted(format!("the answer has a line of more than {MAX_LINE} bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::ScriptedHost;

    fn scripted(pieces: &[&str]) -> Exchange {
        let host = ScriptedHost::new();
        host.respond_in_pieces(200, pieces);
        host.context().exchange(&Request::get("https://example.com")).unwrap()
    }

    #[test]
    fn lines_are_joined_across_chunks() {
        let mut answer = scripted(&["one\r\ntw", "o\n\nthr", "ee"]);
        let lines: Vec<_> = std::iter::from_fn(|| answer.next_line(None).unwrap()).collect();
        assert_eq!(lines, ["one", "two", "", "three"]);
        assert_eq!((answer.status(), answer.header("X-None")), (200, None));
    }

    #[test]
    fn server_events_are_parsed_like_browsers() {
        let mut answer = scripted(&[
            "\u{feff}: hello\n\nevent: ping\n\nevent: ping\ndata:\n\nevent: del",
            "ta\nid: 7\ndata: {\"a\":1}\n\ndata:x\ndata: y\n\n",
            "data: not ended",
        ]);
        let events: Vec<_> = std::iter::from_fn(|| answer.next_event(None).unwrap()).collect();
        let event = |event: &str, data: &str, id: Option<&str>| ServerEvent {
            event: event.into(),
            data: data.into(),
            id: id.map(Into::into),
        };
        assert_eq!(
            events,
            [event("delta", "{\"a\":1}", Some("7")), event("message", "x\ny", None)]
        );
        assert_eq!(scripted(&["a", "b"]).rest().unwrap(), "ab");
    }

    #[test]
    fn event_lines_end_with_any_line_ending() {
        let text = "\u{feff}data: a\rdata: b\r\n\r\nevent: lost\nid: 1\n\nevent: ping\rdata: c\r\r";
        let cuts = (0..=text.len()).filter(|cut| text.is_char_boundary(*cut));
        for cut in cuts {
            let mut answer = scripted(&[&text[..cut], &text[cut..]]);
            let events = std::iter::from_fn(|| answer.next_event(None).unwrap());
            let told: Vec<_> = events.map(|it| (it.event, it.data, it.id)).collect();
            let expected = [("message", "a\nb"), ("ping", "c")];
            assert_eq!(
                told,
                expected.map(|(event, data)| (event.into(), data.into(), None)),
                "{cut}"
            );
        }
        let mut lines = scripted(&["50%\r100%\n"]);
        assert_eq!(lines.next_line(None).unwrap().as_deref(), Some("50%\r100%"));
    }
}
