//! Queues of pending writes: one for short writes, one for long ones. Short ones go first (shortest
//! job first); while short ones keep coming, each transaction takes only a few long ones, and all
//! of them otherwise. So a small write need not wait for others' bulk writes, and long writes never
//! starve.

use std::fmt;
use tokio::sync::mpsc::{self, Receiver, Sender, error::TryRecvError};

/// Capacity of each queue; writers wait beyond it. Some milliseconds of work.
const QUEUE: usize = 1024;

/// Limit of writes in one transaction, so that the first does not wait long for the last.
pub(in crate::sqlite) const BATCH: usize = 256;

/// Limit of long writes in a transaction while short ones are expected.
const LONG_LIMIT: usize = 2;

/// Number of transactions after the last short write in which another one is expected.
const ABOUT: u32 = 32;

/// Most rows of a short write: the events of a task that is answered at once.
const FEW_ROWS: usize = 8;

/// Most bytes of a short write.
const FEW_BYTES: usize = 16 << 10;

/// Length of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::sqlite) enum Length {
    /// A few rows.
    Short,
    /// Many rows, or large ones.
    Long,
}

impl Length {
    /// Length of a write of this many rows and bytes.
    pub(in crate::sqlite) fn from_size(rows: usize, bytes: usize) -> Self {
        if rows <= FEW_ROWS && bytes <= FEW_BYTES { Self::Short } else { Self::Long }
    }
}

/// Sending side of both queues.
pub(in crate::sqlite) struct Queues<T> {
    short: Sender<T>,
    long: Sender<T>,
}

impl<T> fmt::Debug for Queues<T> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{} changes wait", self.len())
    }
}

impl<T> Queues<T> {
    /// Creates empty queues, and their receiving side.
    pub(in crate::sqlite) fn new() -> (Self, Waiting<T>) {
        let ((short, short_waiting), (long, long_waiting)) =
            (mpsc::channel(QUEUE), mpsc::channel(QUEUE));
        let waiting = Waiting { short: short_waiting, long: long_waiting, expected: 0 };
        (Self { short, long }, waiting)
    }

    /// Queue for writes of this length.
    pub(in crate::sqlite) fn sender(&self, length: Length) -> &Sender<T> {
        match length {
            Length::Short => &self.short,
            Length::Long => &self.long,
        }
    }

    /// Number of pending writes.
    pub(in crate::sqlite) fn len(&self) -> usize {
        2 * QUEUE - self.short.capacity() - self.long.capacity()
    }
}

/// State of the queues after a take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::sqlite) enum QueueState {
    /// More may be left.
    More,
    /// Empty for now.
    Nothing,
    /// Empty, and closed.
    Ended,
}

/// Receiving side of both queues, for the writer.
pub(in crate::sqlite) struct Waiting<T> {
    short: Receiver<T>,
    long: Receiver<T>,
    /// Number of further transactions in which a short write is expected.
    expected: u32,
}

impl<T> Waiting<T> {
    /// Takes the writes of the next transaction.
    pub(in crate::sqlite) fn take_batch(&mut self, batch: &mut Vec<T>) -> QueueState {
        let short = drain(&mut self.short, batch, BATCH);
        self.expected = if batch.is_empty() { self.expected.saturating_sub(1) } else { ABOUT };
        let limit = if self.expected > 0 { LONG_LIMIT } else { BATCH };
        let long = drain(&mut self.long, batch, limit);
        if batch.is_empty() {
            // After an idle time, no short write is expected.
            self.expected = 0;
        }
        match (short, long) {
            (QueueState::More, _) | (_, QueueState::More) => QueueState::More,
            (QueueState::Ended, QueueState::Ended) => QueueState::Ended,
            (QueueState::Nothing | QueueState::Ended, QueueState::Nothing | QueueState::Ended) => {
                QueueState::Nothing
            }
        }
    }
}

/// Takes up to `limit` writes from a queue.
fn drain<T>(queue: &mut Receiver<T>, batch: &mut Vec<T>, limit: usize) -> QueueState {
    for _ in 0..limit {
        match queue.try_recv() {
            Ok(change) => batch.push(change),
            Err(TryRecvError::Empty) => return QueueState::Nothing,
            Err(TryRecvError::Disconnected) => return QueueState::Ended,
        }
    }
    QueueState::More
}

#[cfg(test)]
mod tests {
    use super::{QueueState::*, *};

    /// Creates queues with pending writes, which are represented by their length.
    fn waiting(short: usize, long: usize) -> (Queues<Length>, Waiting<Length>) {
        let (queues, waiting) = Queues::new();
        for (length, times) in [(Length::Short, short), (Length::Long, long)] {
            (0..times).for_each(|_| queues.sender(length).try_send(length).unwrap());
        }
        (queues, waiting)
    }

    fn next(waiting: &mut Waiting<Length>) -> (usize, usize, QueueState) {
        let mut batch = Vec::new();
        let left = waiting.take_batch(&mut batch);
        let short = batch.iter().filter(|length| **length == Length::Short).count();
        let first = batch.iter().take(short);
        assert!(first.into_iter().all(|length| *length == Length::Short), "short ones first");
        (short, batch.len() - short, left)
    }

    #[test]
    fn write_length_follows_rows_and_bytes() {
        assert_eq!(Length::from_size(FEW_ROWS, FEW_BYTES), Length::Short);
        assert_eq!(Length::from_size(FEW_ROWS + 1, 0), Length::Long);
        assert_eq!(Length::from_size(1, FEW_BYTES + 1), Length::Long);
    }

    #[test]
    fn short_writes_throttle_long_writes() {
        let (queues, mut waiting) = waiting(3, 100);
        assert_eq!(queues.len(), 103);
        assert_eq!(next(&mut waiting), (3, LONG_LIMIT, More));
        // A short write is expected soon after another.
        assert_eq!(next(&mut waiting), (0, LONG_LIMIT, More));
        queues.sender(Length::Short).try_send(Length::Short).unwrap();
        assert_eq!(next(&mut waiting), (1, LONG_LIMIT, More));
        for _ in 1..ABOUT {
            assert_eq!(next(&mut waiting), (0, LONG_LIMIT, More));
        }
        let left = 100 - LONG_LIMIT * (ABOUT as usize + 2);
        assert_eq!(next(&mut waiting), (0, left, Nothing), "nobody else is there");
        assert_eq!((next(&mut waiting), queues.len()), ((0, 0, Nothing), 0));
    }

    #[test]
    fn idle_queue_takes_full_long_batch() {
        let (queues, mut waiting) = waiting(0, BATCH + 1);
        assert_eq!(next(&mut waiting), (0, BATCH, More));
        assert_eq!(next(&mut waiting), (0, 1, Nothing));
        drop(queues);
        assert_eq!(next(&mut waiting), (0, 0, Ended));
    }

    #[test]
    fn transaction_size_is_limited() {
        let (queues, mut waiting) = waiting(BATCH + 1, 1);
        assert_eq!(next(&mut waiting), (BATCH, 1, More));
        drop(queues);
        assert_eq!(next(&mut waiting), (1, 0, Ended), "what was asked for is done before the end");
    }
}
