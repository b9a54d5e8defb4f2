//! Decoder of server-sent events (WHATWG HTML, section 9.2.6): A2A needs only their data.

/// Maximum size of an event in bytes: twice what the hub accepts in one request.
const MAX_EVENT: usize = 16 << 20;

/// Joins the chunks of a stream and splits them into events.
#[derive(Debug, Default)]
pub(crate) struct EventDecoder {
    /// Beginning of an incomplete line.
    line: Vec<u8>,
    /// Data of the current event so far.
    data: Vec<u8>,
    has_data: bool,
}

/// The event exceeds the size limit.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("an event is longer than {} MiB", MAX_EVENT >> 20)]
pub(crate) struct TooLong;

impl EventDecoder {
    /// Decodes a chunk, and returns the data of the events that are complete by now.
    pub(crate) fn take(&mut self, piece: &[u8]) -> Result<Vec<Vec<u8>>, TooLong> {
        let mut whole = Vec::new();
        for part in piece.split_inclusive(|byte| *byte == b'\n') {
            if self.line.len() + self.data.len() + part.len() > MAX_EVENT {
                return Err(TooLong);
            }
            self.line.extend_from_slice(part);
            if part.ends_with(b"\n") {
                let line = std::mem::take(&mut self.line);
                whole.extend(self.end_of_line(&line));
            }
        }
        Ok(whole)
    }

    /// Handles a line with its line ending, and returns the event's data after the last line.
    fn end_of_line(&mut self, line: &[u8]) -> Option<Vec<u8>> {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.is_empty() {
            let data = std::mem::take(&mut self.data);
            return std::mem::take(&mut self.has_data).then_some(data);
        }
        // Comments keep the connection alive; A2A does not need event names, ids and retry times.
        if let Some(data) = line.strip_prefix(b"data:") {
            if self.has_data {
                self.data.push(b'\n');
            }
            self.data.extend_from_slice(data.strip_prefix(b" ").unwrap_or(data));
            self.has_data = true;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const STREAM: &[u8] =
        b": ping\r\ndata: {\"n\":1}\r\n\r\nid: 7\nevent: x\ndata:{\"n\":\ndata: 2}\n\n: end\n\ndata: cut";

    #[test]
    fn event_data_is_decoded_without_comments() {
        let events = EventDecoder::default().take(STREAM).unwrap();
        assert_eq!(events, [b"{\"n\":1}".to_vec(), b"{\"n\":\n2}".to_vec()]);
    }

    #[test]
    fn endless_event_is_refused() {
        let mut decoder = EventDecoder::default();
        let piece = vec![b'x'; 1 << 20];
        let taken = (0..32).map_while(|_| decoder.take(&piece).ok()).count();
        assert_eq!(taken, MAX_EVENT >> 20);
    }

    proptest! {
        #[test]
        fn chunk_boundaries_do_not_affect_events(mut cuts in proptest::collection::vec(0..STREAM.len(), 0..9)) {
            cuts.sort_unstable();
            let (mut decoder, mut events, mut from) = (EventDecoder::default(), Vec::new(), 0);
            for cut in cuts.into_iter().chain([STREAM.len()]) {
                events.extend(decoder.take(&STREAM[from..cut]).unwrap());
                from = cut;
            }
            prop_assert_eq!(events, EventDecoder::default().take(STREAM).unwrap());
        }
    }
}
