//! Queue of the log: a bounded buffer in front of a writer thread, so that logging never blocks and
//! never fails. Lines that exceed the bound or cannot be written are shed, counted, and reported
//! once writing succeeds again (load shedding).

use parking_lot::{Condvar, Mutex, MutexGuard};
use std::{
    collections::VecDeque,
    io::{self, Write},
    mem,
    sync::Arc,
    thread,
    time::Duration,
};

/// Maximum size, in bytes, of buffered lines: seconds of a busy log, for a disk or a reader that
/// stalls.
const MAX_WAITING: usize = 1 << 20;

/// Sender side of the queue. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct LineQueue(Arc<LineQueueInner>);

#[derive(Debug, Default)]
struct LineQueueInner {
    waiting: Mutex<QueuedLines>,
    /// Signalled when a line is queued or the queue is closed.
    come: Condvar,
    /// Signalled when all lines are written or shed.
    done: Condvar,
}

#[derive(Debug, Default)]
struct QueuedLines {
    lines: VecDeque<Vec<u8>>,
    bytes: usize,
    /// Number of lines shed since the writer last took one.
    shed: u64,
    /// True while the writer writes a line.
    is_writing: bool,
    is_closed: bool,
}

impl LineQueue {
    /// Creates a queue and a thread that writes its lines to `out`. The thread calls `tell` with
    /// the number of lost lines once a line can be written again; `tell` may log.
    pub(crate) fn before(
        out: impl Write + Send + 'static,
        tell: impl Fn(u64) + Send + 'static,
    ) -> io::Result<Self> {
        let queue = Self(Arc::default());
        let lines = queue.clone();
        let writer = LineWriter { out, is_torn: false };
        thread::Builder::new().name("log".to_owned()).spawn(move || writer.run(&lines, &tell))?;
        Ok(queue)
    }

    /// Queues a line, or sheds it if the buffer is full.
    fn offer(&self, line: &[u8]) {
        let mut waiting = self.waiting();
        if waiting.is_closed || waiting.bytes + line.len() > MAX_WAITING {
            waiting.shed += 1;
            return;
        }
        waiting.bytes += line.len();
        waiting.lines.push_back(line.to_vec());
        self.0.come.notify_one();
    }

    /// Waits for the next line and returns it with the number of lines shed since the one before;
    /// `None` once the queue is closed and empty.
    fn next_line(&self) -> Option<(Vec<u8>, u64)> {
        let mut waiting = self.waiting();
        waiting.is_writing = false;
        loop {
            if let Some(line) = waiting.lines.pop_front() {
                waiting.bytes -= line.len();
                waiting.is_writing = true;
                return Some((line, mem::take(&mut waiting.shed)));
            }
            self.0.done.notify_all();
            if waiting.is_closed {
                return None;
            }
            self.0.come.wait(&mut waiting);
        }
    }

    /// Closes the queue and waits at most `timeout` until all queued lines are written. Later
    /// lines are shed.
    pub(crate) fn close(&self, timeout: Duration) {
        let mut waiting = self.waiting();
        waiting.is_closed = true;
        self.0.come.notify_one();
        let is_busy = |waiting: &mut QueuedLines| waiting.is_writing || !waiting.lines.is_empty();
        self.0.done.wait_while_for(&mut waiting, is_busy, timeout);
    }

    fn waiting(&self) -> MutexGuard<'_, QueuedLines> {
        self.0.waiting.lock()
    }
}

/// Each write is one line. Writing never fails, because the logging code could not handle an error.
impl Write for LineQueue {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.offer(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// State of the writer thread.
struct LineWriter<W> {
    out: W,
    /// True if the last line was written in part: the next one must start on a new line.
    is_torn: bool,
}

impl<W: Write> LineWriter<W> {
    fn run(mut self, queue: &LineQueue, tell: &impl Fn(u64)) {
        let mut lost = 0;
        while let Some((line, shed)) = queue.next_line() {
            lost += shed;
            match self.write(&line) {
                Ok(()) if lost > 0 => tell(mem::take(&mut lost)),
                Ok(()) => {}
                Err(_) => lost += 1,
            }
        }
    }

    fn write(&mut self, line: &[u8]) -> io::Result<()> {
        if self.is_torn {
            self.out.write_all(b"\n")?;
            self.is_torn = false;
        }
        let mut rest = line;
        while !rest.is_empty() {
            match self.out.write(rest) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => {
                    rest = &rest[written..];
                    self.is_torn = !rest.is_empty();
                }
                Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
                Err(why) => return Err(why),
            }
        }
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    const SOON: Duration = Duration::from_secs(10);

    /// Writer with a capacity in bytes, and the bytes written to it.
    #[derive(Clone, Default)]
    struct Disk(Arc<Mutex<(usize, Vec<u8>)>>);

    impl Disk {
        fn with_room(room: usize) -> Self {
            Self(Arc::new(Mutex::new((room, Vec::new()))))
        }

        fn make_room(&self, room: usize) {
            self.0.lock().0 = room;
        }

        fn text(&self) -> String {
            String::from_utf8(self.0.lock().1.clone()).unwrap()
        }
    }

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let (room, written) = &mut *self.0.lock();
            let fits = bytes.len().min(*room);
            if fits == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            *room -= fits;
            written.extend_from_slice(&bytes[..fits]);
            Ok(fits)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn lines_lost_to_full_disk_are_reported() {
        let disk = Disk::with_room(6);
        let (told, hears) = mpsc::channel();
        let queue = LineQueue::before(disk.clone(), move |lost| told.send(lost).unwrap()).unwrap();
        let log = |line: &str| {
            queue.offer(line.as_bytes());
            let mut waiting = queue.waiting();
            let is_busy = |it: &mut QueuedLines| it.is_writing || !it.lines.is_empty();
            queue.0.done.wait_while_for(&mut waiting, is_busy, SOON);
        };
        ["one\n", "two\n", "three\n"].iter().for_each(|line| log(line));
        assert_eq!(disk.text(), "one\ntw", "the second broke off");
        assert!(hears.try_recv().is_err(), "it cannot be told yet");
        disk.make_room(100);
        log("four\n");
        assert_eq!(disk.text(), "one\ntw\nfour\n", "what broke off stays a line of its own");
        assert_eq!(hears.recv_timeout(SOON), Ok(2));
        log("five\n");
        assert!(hears.try_recv().is_err(), "each loss is told once");
    }

    /// Pipe whose reader stalls.
    struct Stalled(mpsc::Receiver<()>);

    impl Write for Stalled {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let _ = self.0.recv();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn stalled_reader_sheds_lines_without_blocking() {
        let (read, reads) = mpsc::channel();
        let (told, hears) = mpsc::channel();
        let queue =
            LineQueue::before(Stalled(reads), move |lost| told.send(lost).unwrap()).unwrap();
        let line = vec![b'x'; MAX_WAITING / 4];
        // The writer holds at most one line; four more fit into the queue.
        (0..10).for_each(|_| queue.offer(&line));
        let shed = queue.waiting().shed;
        assert!((5..=6).contains(&shed), "{shed} were shed");
        queue.close(Duration::from_millis(10));
        drop(read);
        assert_eq!(hears.recv_timeout(SOON), Ok(shed));
    }

    #[test]
    fn close_flushes_queued_lines() {
        let disk = Disk::with_room(1 << 20);
        let queue = LineQueue::before(disk.clone(), |_| {}).unwrap();
        (0..1_000).for_each(|n| queue.offer(format!("{n}\n").as_bytes()));
        queue.close(SOON);
        assert_eq!(disk.text().lines().count(), 1_000);
        queue.offer(b"late\n");
        assert_eq!(disk.text().lines().count(), 1_000);
    }
}
