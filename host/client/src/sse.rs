//! Decoder of server-sent events (WHATWG HTML, section 9.2.6). A2A needs their data and, for errors
//! over REST, their names.

use bytes::Bytes;

/// Maximum size of an event in bytes: twice what the hub accepts in one request.
const MAX_EVENT: usize = 16 << 20;

/// Byte order mark in UTF-8, which may precede the first line.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// Event with data.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ServerEvent {
    /// Name of the event; empty unless the server sets it.
    pub name: String,
    /// Data lines of the event, joined by line feeds.
    pub data: Bytes,
}

/// Joins the chunks of a stream and splits them into events.
#[derive(Debug, Default)]
pub struct EventDecoder {
    /// Beginning of an incomplete line.
    line: Vec<u8>,
    /// Name of the current event so far.
    name: String,
    /// Data of the current event so far, each line with a line feed.
    data: Vec<u8>,
    /// True after a carriage return: a line feed that follows belongs to the same line ending.
    after_return: bool,
    /// True after the first line.
    begun: bool,
}

/// Error of an event that exceeds the size limit.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("an event is longer than {} MiB", MAX_EVENT >> 20)]
pub struct TooLong;

impl EventDecoder {
    /// Decodes a chunk, and returns the events that are complete by now. Events without data are
    /// left out.
    pub fn decode(&mut self, piece: &[u8]) -> Result<Vec<ServerEvent>, TooLong> {
        let mut events = Vec::new();
        for part in piece.split_inclusive(|byte| matches!(byte, b'\n' | b'\r')) {
            let after_return = std::mem::take(&mut self.after_return);
            if after_return && part == b"\n" {
                continue;
            }
            let (text, end) = match part.split_last() {
                Some((end @ (b'\n' | b'\r'), text)) => (text, Some(*end)),
                Some(_) | None => (part, None),
            };
            if self.line.len() + self.data.len() + text.len() > MAX_EVENT {
                return Err(TooLong);
            }
            self.line.extend_from_slice(text);
            if let Some(end) = end {
                self.after_return = end == b'\r';
                let line = std::mem::take(&mut self.line);
                events.extend(self.end_of_line(&line));
            }
        }
        Ok(events)
    }

    /// Handles a line without its line ending, and returns the event after its last line.
    fn end_of_line(&mut self, line: &[u8]) -> Option<ServerEvent> {
        let is_first = !std::mem::replace(&mut self.begun, true);
        let line = line.strip_prefix(MARK).filter(|_| is_first).unwrap_or(line);
        if line.is_empty() {
            let (name, mut data) = (std::mem::take(&mut self.name), std::mem::take(&mut self.data));
            data.pop();
            let data = Bytes::from(data);
            return (!data.trim_ascii().is_empty()).then_some(ServerEvent { name, data });
        }
        let colon = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
        let (field, value) = line.split_at(colon);
        let value = value.strip_prefix(b":").unwrap_or(value);
        let value = value.strip_prefix(b" ").unwrap_or(value);
        // Lines without a field are comments, which keep the connection alive. A2A does not need
        // ids and retry times.
        match field {
            b"data" => {
                self.data.extend_from_slice(value);
                self.data.push(b'\n');
            }
            b"event" => self.name = String::from_utf8_lossy(value).into_owned(),
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Each kind of line ending, a comment, an event without data, and one that is not ended.
    const STREAM: &[u8] =
        b"\xef\xbb\xbfdata: {\"n\":1}\r\n\r\nid: 7\nevent: x\ndata:{\"n\":\ndata: 2}\n\n: end\n\ndata\rdata\r\revent: ping\r\rdata: 3\r\rretry: 1\ndata:  4\n\r\ndata: \xef\xbb\xbf\n\ndata: cut";

    fn told(stream: &[u8]) -> Vec<String> {
        let events = EventDecoder::default().decode(stream).unwrap();
        let line = |event: ServerEvent| format!("{}|{}", event.name, event.data.escape_ascii());
        events.into_iter().map(line).collect()
    }

    #[test]
    fn line_endings_and_fields_follow_standard() {
        let expected = ["|{\\\"n\\\":1}", "x|{\\\"n\\\":\\n2}", "|3", "| 4", "|\\xef\\xbb\\xbf"];
        assert_eq!(told(STREAM), expected);
        for (stream, expected) in [
            (&b"data: a\r\rdata: b\r\r"[..], &["|a", "|b"][..]),
            (b"data: a\n\ndata: \n\ndata\n\ndata: b\n\n", &["|a", "|b"]),
            (b"data: a\r\r", &["|a"]),
            (b"event: error\ndata: a\n\ndata: b\n\n", &["error|a", "|b"]),
            (b"event: error\n\ndata: b\n\n", &["|b"]),
            (b"Data: a\ndata : a\n data: a\n\n", &[]),
            (b"data:a\ndata:\ndata:b\n\n", &["|a\\n\\nb"]),
            (b"data: a\n\xef\xbb\xbfdata: b\n\n", &["|a"]),
            (b"data: a\n", &[]),
        ] {
            assert_eq!(told(stream), expected, "{}", stream.escape_ascii());
        }
    }

    #[test]
    fn endless_event_is_refused() {
        let mut decoder = EventDecoder::default();
        let piece = vec![b'x'; 1 << 20];
        let taken = (0..32).map_while(|_| decoder.decode(&piece).ok()).count();
        assert_eq!(taken, MAX_EVENT >> 20);
    }

    proptest! {
        #[test]
        fn chunk_boundaries_do_not_affect_events(mut cuts in proptest::collection::vec(0..STREAM.len(), 0..9)) {
            cuts.sort_unstable();
            let (mut decoder, mut events, mut from) = (EventDecoder::default(), Vec::new(), 0);
            for cut in cuts.into_iter().chain([STREAM.len()]) {
                events.extend(decoder.decode(&STREAM[from..cut]).unwrap());
                from = cut;
            }
            prop_assert_eq!(events, EventDecoder::default().decode(STREAM).unwrap());
        }
    }
}
