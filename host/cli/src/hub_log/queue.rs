//! The log's queue: a bounded buffer before a thread that writes, so that who logs never waits and never fails. What finds
//! no room, or cannot be written, is shed, counted, and told once writing works again (load shedding).

use parking_lot::{Condvar, Mutex, MutexGuard};
use std::{
    collections::VecDeque,
    io::{self, Write},
    mem,
    sync::Arc,
    thread,
    time::Duration,
};

/// Bytes of lines that may wait to be written: seconds of a busy log, for a disk or a reader that stalls.
const MAX_WAITING: usize = 1 << 20;

/// Where lines are handed in. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Queue(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    waiting: Mutex<Waiting>,
    /// There is a line, or the queue was closed.
    come: Condvar,
    /// Everything was written, or shed.
    done: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    lines: VecDeque<Vec<u8>>,
    bytes: usize,
    /// Lines that found no room since the writer last took one.
    shed: u64,
    /// Whether the writer has a line in its hands.
    is_writing: bool,
    is_closed: bool,
}

impl Queue {
    /// A queue before a thread of its own that writes to `out`. `tell` is called on that thread with how many lines were
    /// lost, once one can be written again; it may log.
    pub(super) fn before(
        out: impl Write + Send + 'static,
        tell: impl Fn(u64) + Send + 'static,
    ) -> io::Result<Self> {
        let queue = Self(Arc::default());
        let lines = queue.clone();
        let writer = Writer { out, is_torn: false };
        thread::Builder::new().name("log".to_owned()).spawn(move || writer.run(&lines, &tell))?;
        Ok(queue)
    }

    /// Hands a line in, or sheds it if too much waits.
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

    /// The next line, and how many were shed since the one before; none once the queue is closed and empty.
    fn take(&self) -> Option<(Vec<u8>, u64)> {
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

    /// Waits until what was handed in is written, but not for ever; what comes later is shed.
    pub(super) fn close(&self, patience: Duration) {
        let mut waiting = self.waiting();
        waiting.is_closed = true;
        self.0.come.notify_one();
        let is_busy = |waiting: &mut Waiting| waiting.is_writing || !waiting.lines.is_empty();
        self.0.done.wait_while_for(&mut waiting, is_busy, patience);
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.0.waiting.lock()
    }
}

/// One write is one line. It never fails, for who logs could do nothing about it.
impl Write for Queue {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.offer(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The thread that writes.
struct Writer<W> {
    out: W,
    /// Whether a line broke off: the next one must not be taken for its rest.
    is_torn: bool,
}

impl<W: Write> Writer<W> {
    fn run(mut self, queue: &Queue, tell: &impl Fn(u64)) {
        let mut lost = 0;
        while let Some((line, shed)) = queue.take() {
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

    /// A disk of so many bytes, and what was written to it.
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
    fn lines_that_a_full_disk_took_are_counted_and_told_once_there_is_room() {
        let disk = Disk::with_room(6);
        let (told, hears) = mpsc::channel();
        let queue = Queue::before(disk.clone(), move |lost| told.send(lost).unwrap()).unwrap();
        let log = |line: &str| {
            queue.offer(line.as_bytes());
            let mut waiting = queue.waiting();
            let is_busy = |it: &mut Waiting| it.is_writing || !it.lines.is_empty();
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

    /// A pipe whose reader does nothing.
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
    fn a_reader_that_stalls_holds_up_nobody_and_costs_lines_only() {
        let (read, reads) = mpsc::channel();
        let (told, hears) = mpsc::channel();
        let queue = Queue::before(Stalled(reads), move |lost| told.send(lost).unwrap()).unwrap();
        let line = vec![b'x'; MAX_WAITING / 4];
        // One may be in the writer's hands, beside the four that fit.
        (0..10).for_each(|_| queue.offer(&line));
        let shed = queue.waiting().shed;
        assert!((5..=6).contains(&shed), "{shed} were shed");
        queue.close(Duration::from_millis(10));
        drop(read);
        assert_eq!(hears.recv_timeout(SOON), Ok(shed));
    }

    #[test]
    fn the_last_lines_are_written_before_the_end() {
        let disk = Disk::with_room(1 << 20);
        let queue = Queue::before(disk.clone(), |_| {}).unwrap();
        (0..1_000).for_each(|n| queue.offer(format!("{n}\n").as_bytes()));
        queue.close(SOON);
        assert_eq!(disk.text().lines().count(), 1_000);
        queue.offer(b"late\n");
        assert_eq!(disk.text().lines().count(), 1_000);
    }
}
