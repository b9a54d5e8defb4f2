//! What waits to be written, in two queues: what takes the writer a moment, and what takes it long. What is short goes first (shortest job first);
//! what is long goes along a little at a time while anything short is about, and all at once otherwise. So whoever stores a line does not wait until the
//! floods of others are stored, and what is long is never put off for ever.

use std::fmt;
use tokio::sync::mpsc::{self, Receiver, Sender, error::TryRecvError};

/// How many changes of each length may wait; then whoever asks waits too. Some milliseconds of work.
const QUEUE: usize = 1024;

/// How many changes share a transaction, so that the first does not wait long for the last.
pub(super) const BATCH: usize = 256;

/// How many long changes share a transaction while short ones are about.
const LONG_BESIDE_SHORT: usize = 2;

/// For how many transactions after the last short change another one is expected.
const ABOUT: u32 = 32;

/// As many rows are few: what a task that is answered at once tells.
const FEW_ROWS: usize = 8;

/// As many bytes are little.
const FEW_BYTES: usize = 16 << 10;

/// How long a change takes the writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Length {
    /// A few rows.
    Short,
    /// Many rows, or much to be written in them.
    Long,
}

impl Length {
    /// That of so many rows with so many bytes together.
    pub(super) fn of(rows: usize, bytes: usize) -> Self {
        if rows <= FEW_ROWS && bytes <= FEW_BYTES { Self::Short } else { Self::Long }
    }
}

/// Both queues, for those who ask.
pub(super) struct Queues<T> {
    short: Sender<T>,
    long: Sender<T>,
}

impl<T> fmt::Debug for Queues<T> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{} changes wait", self.len())
    }
}

impl<T> Queues<T> {
    /// Empty ones, and what they hold.
    pub(super) fn new() -> (Self, Waiting<T>) {
        let ((short, short_waiting), (long, long_waiting)) =
            (mpsc::channel(QUEUE), mpsc::channel(QUEUE));
        let waiting = Waiting { short: short_waiting, long: long_waiting, expected: 0 };
        (Self { short, long }, waiting)
    }

    /// That of what takes so long.
    pub(super) fn of(&self, length: Length) -> &Sender<T> {
        match length {
            Length::Short => &self.short,
            Length::Long => &self.long,
        }
    }

    /// How many changes wait.
    pub(super) fn len(&self) -> usize {
        2 * QUEUE - self.short.capacity() - self.long.capacity()
    }
}

/// What there is left in queues of which was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Left {
    /// More than was taken, perhaps.
    More,
    /// Nothing, for now.
    Nothing,
    /// Nothing, and nothing will come any more.
    Ended,
}

/// What waits in both queues, for the writer.
pub(super) struct Waiting<T> {
    short: Receiver<T>,
    long: Receiver<T>,
    /// For how many more transactions something short is expected.
    expected: u32,
}

impl<T> Waiting<T> {
    /// Takes what is to share a transaction.
    pub(super) fn take(&mut self, batch: &mut Vec<T>) -> Left {
        let short = take(&mut self.short, batch, BATCH);
        self.expected = if batch.is_empty() { self.expected.saturating_sub(1) } else { ABOUT };
        let most = if self.expected > 0 { LONG_BESIDE_SHORT } else { BATCH };
        let long = take(&mut self.long, batch, most);
        if batch.is_empty() {
            // Whoever has slept waits for nobody.
            self.expected = 0;
        }
        match (short, long) {
            (Left::More, _) | (_, Left::More) => Left::More,
            (Left::Ended, Left::Ended) => Left::Ended,
            (Left::Nothing | Left::Ended, Left::Nothing | Left::Ended) => Left::Nothing,
        }
    }
}

/// Takes that many of a queue, if they are there.
fn take<T>(queue: &mut Receiver<T>, batch: &mut Vec<T>, most: usize) -> Left {
    for _ in 0..most {
        match queue.try_recv() {
            Ok(change) => batch.push(change),
            Err(TryRecvError::Empty) => return Left::Nothing,
            Err(TryRecvError::Disconnected) => return Left::Ended,
        }
    }
    Left::More
}

#[cfg(test)]
mod tests {
    use super::{Left::*, *};

    /// Queues in which so many changes wait, told by their length.
    fn waiting(short: usize, long: usize) -> (Queues<Length>, Waiting<Length>) {
        let (queues, waiting) = Queues::new();
        for (length, times) in [(Length::Short, short), (Length::Long, long)] {
            (0..times).for_each(|_| queues.of(length).try_send(length).unwrap());
        }
        (queues, waiting)
    }

    fn next(waiting: &mut Waiting<Length>) -> (usize, usize, Left) {
        let mut batch = Vec::new();
        let left = waiting.take(&mut batch);
        let short = batch.iter().filter(|length| **length == Length::Short).count();
        let first = batch.iter().take(short);
        assert!(first.into_iter().all(|length| *length == Length::Short), "short ones first");
        (short, batch.len() - short, left)
    }

    #[test]
    fn a_line_is_short_and_a_bulk_is_long() {
        assert_eq!(Length::of(FEW_ROWS, FEW_BYTES), Length::Short);
        assert_eq!(Length::of(FEW_ROWS + 1, 0), Length::Long);
        assert_eq!(Length::of(1, FEW_BYTES + 1), Length::Long);
    }

    #[test]
    fn what_is_long_goes_along_a_little_at_a_time_while_something_short_is_about() {
        let (queues, mut waiting) = waiting(3, 100);
        assert_eq!(queues.len(), 103);
        assert_eq!(next(&mut waiting), (3, LONG_BESIDE_SHORT, More));
        // Who has just stored something will do so again.
        assert_eq!(next(&mut waiting), (0, LONG_BESIDE_SHORT, More));
        queues.of(Length::Short).try_send(Length::Short).unwrap();
        assert_eq!(next(&mut waiting), (1, LONG_BESIDE_SHORT, More));
        for _ in 1..ABOUT {
            assert_eq!(next(&mut waiting), (0, LONG_BESIDE_SHORT, More));
        }
        let left = 100 - LONG_BESIDE_SHORT * (ABOUT as usize + 2);
        assert_eq!(next(&mut waiting), (0, left, Nothing), "nobody else is there");
        assert_eq!((next(&mut waiting), queues.len()), ((0, 0, Nothing), 0));
    }

    #[test]
    fn what_is_long_goes_all_at_once_where_nothing_is_short() {
        let (queues, mut waiting) = waiting(0, BATCH + 1);
        assert_eq!(next(&mut waiting), (0, BATCH, More));
        assert_eq!(next(&mut waiting), (0, 1, Nothing));
        drop(queues);
        assert_eq!(next(&mut waiting), (0, 0, Ended));
    }

    #[test]
    fn no_more_share_a_transaction_than_may() {
        let (queues, mut waiting) = waiting(BATCH + 1, 1);
        assert_eq!(next(&mut waiting), (BATCH, 1, More));
        drop(queues);
        assert_eq!(next(&mut waiting), (1, 0, Ended), "what was asked for is done before the end");
    }
}
