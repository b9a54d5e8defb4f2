//! Server-sent events, as they come in pieces (WHATWG HTML, section 9.2.6): only their data matters to A2A.

/// The longest event, in bytes: what the hub itself takes in one request, twice.
const MAX_EVENT: usize = 16 << 20;

/// Puts the pieces of a stream together, and cuts it into events.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    /// The start of a line whose end is still to come.
    line: Vec<u8>,
    /// The data of the event so far.
    data: Vec<u8>,
    has_data: bool,
}

/// An event that is longer than anybody reads.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("an event is longer than {} MiB", MAX_EVENT >> 20)]
pub(crate) struct TooLong;

impl Decoder {
    /// Takes a piece, and returns the data of the events that are whole by now.
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

    /// Takes a line with its end, and returns the event's data if it was the last.
    fn end_of_line(&mut self, line: &[u8]) -> Option<Vec<u8>> {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.is_empty() {
            let data = std::mem::take(&mut self.data);
            return std::mem::take(&mut self.has_data).then_some(data);
        }
        // Comments keep the connection alive; names, ids and retry times say nothing that A2A needs.
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
    fn events_have_data_and_comments_have_none() {
        let events = Decoder::default().take(STREAM).unwrap();
        assert_eq!(events, [b"{\"n\":1}".to_vec(), b"{\"n\":\n2}".to_vec()]);
    }

    #[test]
    fn an_event_without_end_is_given_up() {
        let mut decoder = Decoder::default();
        let piece = vec![b'x'; 1 << 20];
        let taken = (0..32).map_while(|_| decoder.take(&piece).ok()).count();
        assert_eq!(taken, MAX_EVENT >> 20);
    }

    proptest! {
        #[test]
        fn it_does_not_matter_where_the_pieces_end(mut cuts in proptest::collection::vec(0..STREAM.len(), 0..9)) {
            cuts.sort_unstable();
            let (mut decoder, mut events, mut from) = (Decoder::default(), Vec::new(), 0);
            for cut in cuts.into_iter().chain([STREAM.len()]) {
                events.extend(decoder.take(&STREAM[from..cut]).unwrap());
                from = cut;
            }
            prop_assert_eq!(events, Decoder::default().take(STREAM).unwrap());
        }
    }
}
