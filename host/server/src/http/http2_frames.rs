//! Counter of a connection's HTTP/2 frames (RFC 9113, section 4.1), for flood protection. The HTTP
//! library answers every control frame and does not limit them.

use super::http2_flood::{ControlFrames, Flood};
use tokio::time::Instant;

/// Size of a frame header in bytes: three for the length, one for the type, and five that are not
/// used here.
const HEAD: usize = 9;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const CONTINUATION: u8 = 9;

/// Frame counts of a connection in both directions.
pub(crate) struct FrameCounter {
    received: FrameReader,
    went: FrameReader,
    control: ControlFrames,
}

impl FrameCounter {
    /// Creates a counter for a connection whose client sends a preface of this many bytes first.
    pub(crate) fn new(preface: usize) -> Self {
        let control = ControlFrames::new(Instant::now().into_std());
        Self { received: FrameReader::after(preface), went: FrameReader::after(0), control }
    }

    /// Counts frames from the client; an error means a flood.
    pub(crate) fn received(&mut self, bytes: &[u8]) -> Result<(), Flood> {
        let (mut control, mut requests) = (0, 0);
        self.received.read(bytes, |kind| match kind {
            // The library limits these itself.
            DATA | CONTINUATION => {}
            HEADERS => requests += 1,
            _ => control += 1,
        });
        self.control.earn(requests);
        if control > 0 { self.control.spend(control, Instant::now().into_std()) } else { Ok(()) }
    }

    /// Counts frames to the client.
    pub(crate) fn went(&mut self, bytes: &[u8]) {
        let mut data = 0;
        self.went.read(bytes, |kind| data += u32::from(kind == DATA));
        self.control.earn(data);
    }
}

/// Parser that finds frame headers in chunked input.
struct FrameReader {
    /// Number of payload bytes before the next header.
    skip: usize,
    head: [u8; HEAD],
    /// Number of received bytes of the next header.
    have: usize,
}

impl FrameReader {
    fn after(skip: usize) -> Self {
        Self { skip, head: [0; HEAD], have: 0 }
    }

    /// Reports the type of each frame whose header is completed by these bytes.
    fn read(&mut self, mut bytes: &[u8], mut on_frame: impl FnMut(u8)) {
        loop {
            let skipped = self.skip.min(bytes.len());
            (self.skip, bytes) = (self.skip - skipped, &bytes[skipped..]);
            let taken = (HEAD - self.have).min(bytes.len());
            self.head[self.have..self.have + taken].copy_from_slice(&bytes[..taken]);
            (self.have, bytes) = (self.have + taken, &bytes[taken..]);
            if self.have < HEAD {
                return;
            }
            let [high, middle, low, kind, ..] = self.head;
            self.skip = usize::from(high) << 16 | usize::from(middle) << 8 | usize::from(low);
            self.have = 0;
            on_frame(kind);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW_UPDATE: u8 = 8;

    fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
        let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
        [&length[1..], &[kind, 0, 0, 0, 0, 0], payload].concat()
    }

    #[test]
    fn frame_headers_are_found_across_chunks() {
        let sent = [
            b"PREFACE".to_vec(),
            frame(4, b""),
            frame(HEADERS, &[b'x'; 300]),
            frame(WINDOW_UPDATE, &[0, 0, 0, 1]),
            frame(DATA, &[WINDOW_UPDATE; 70_000]),
            frame(6, &[0; 8]),
        ]
        .concat();
        for piece in [1, 2, 8, 9, 10, 1_000, sent.len()] {
            let mut kinds = Vec::new();
            let mut reader = FrameReader::after(7);
            sent.chunks(piece).for_each(|bytes| reader.read(bytes, |kind| kinds.push(kind)));
            assert_eq!(kinds, [4, HEADERS, WINDOW_UPDATE, DATA, 6], "in pieces of {piece}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn unearned_window_updates_are_a_flood() {
        let update = frame(WINDOW_UPDATE, &[0, 0, 0, 1]);
        let mut idle = FrameCounter::new(0);
        let taken = (0..100_000).take_while(|_| idle.received(&update).is_ok()).count();
        assert!((100..10_000).contains(&taken), "{taken}");
        // A client sends up to two window updates for each data frame.
        let (data, mut busy) = (frame(DATA, b"an event"), FrameCounter::new(0));
        for _ in 0..100_000 {
            busy.went(&data);
            assert!(busy.received(&update).is_ok() && busy.received(&update).is_ok());
        }
    }
}
