//! Terminals of systems other than Unix, with the means of the standard library and of tokio.
//!
//! A console cannot be asked there whether it has a line, so a thread reads it on request.

use super::OutputStream;
use std::{
    io,
    sync::{Arc, LazyLock, mpsc as requests},
};
use tokio::{
    signal::ctrl_c,
    sync::{
        Mutex, Notify,
        mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    },
    task::JoinSet,
};

/// True unless the console prints escape sequences as text, as that of an old Windows does.
pub(crate) fn understands_escapes() -> bool {
    static UNDERSTANDS: LazyLock<bool> =
        LazyLock::new(|| anstyle_query::windows::enable_ansi_colors().unwrap_or(true));
    *UNDERSTANDS
}

/// Columns and rows of the terminal of this process; `None` if it has none. All streams that are
/// terminals are the same one.
pub(crate) fn size(_: OutputStream) -> Option<(usize, usize)> {
    let (columns, rows) = terminal_size::terminal_size()?;
    Some((columns.0.into(), rows.0.into()))
}

/// Unknown until a write fails.
pub(crate) fn is_stdout_closed() -> bool {
    false
}

/// Discards the lines that the user typed and nobody read. The beginning of a line stays: only
/// the console knows it.
pub(crate) fn discard_input() -> io::Result<()> {
    if let Ok(mut console) = CONSOLE.try_lock() {
        console.discard();
    }
    Ok(())
}

/// Reads the next line that the user types, or an empty one at the end of the input. Cancel-safe:
/// the next call gets the line.
pub(crate) async fn read_line() -> io::Result<String> {
    CONSOLE.lock().await.next().await
}

/// Lines of standard input.
static CONSOLE: LazyLock<Mutex<ConsoleReader>> = LazyLock::new(|| {
    Mutex::new(ConsoleReader::new(|| {
        let mut line = String::new();
        io::stdin().read_line(&mut line)?;
        Ok(line)
    }))
});

/// Thread that reads a line whenever one is wanted. Between prompts it reads nothing, so that other
/// readers of standard input get what is for them.
struct ConsoleReader {
    requests: requests::Sender<()>,
    lines: UnboundedReceiver<io::Result<String>>,
    /// True while the thread reads: a prompt that was withdrawn leaves it reading.
    is_reading: bool,
}

impl ConsoleReader {
    fn new(read: impl FnMut() -> io::Result<String> + Send + 'static) -> Self {
        let (requests, wanted) = requests::channel();
        let (typed, lines) = unbounded_channel();
        // Nobody can wait for a thread that waits for a console: it ends with the process.
        std::thread::spawn(move || read_on_request(read, &wanted, &typed));
        Self { requests, lines, is_reading: false }
    }

    /// Discards a line that came while no prompt waited for it.
    fn discard(&mut self) {
        if self.lines.try_recv().is_ok() {
            self.is_reading = false;
        }
    }

    async fn next(&mut self) -> io::Result<String> {
        if !self.is_reading {
            self.requests.send(()).map_err(|_| ended())?;
            self.is_reading = true;
        }
        let line = self.lines.recv().await.ok_or_else(ended)?;
        self.is_reading = false;
        line
    }
}

fn read_on_request(
    mut read: impl FnMut() -> io::Result<String>,
    wanted: &requests::Receiver<()>,
    typed: &UnboundedSender<io::Result<String>>,
) {
    while wanted.recv().is_ok() {
        if typed.send(read()).is_err() {
            return;
        }
    }
}

fn ended() -> io::Error {
    io::Error::new(io::ErrorKind::BrokenPipe, "the reader of the console ended")
}

/// Interrupts by the user: Ctrl-C, which no longer ends the process.
#[derive(Debug)]
pub struct CtrlCListener {
    notify: Arc<Notify>,
    /// Task that waits for Ctrl-C. It ends with this value.
    _listener: JoinSet<()>,
}

impl CtrlCListener {
    /// Installs the handler.
    ///
    /// # Errors
    ///
    /// None: a system that refuses the handler ends the process by Ctrl-C.
    pub fn new() -> io::Result<Self> {
        let notify = Arc::new(Notify::new());
        let mut listener = JoinSet::new();
        let noted = Arc::clone(&notify);
        listener.spawn(async move {
            while ctrl_c().await.is_ok() {
                noted.notify_one();
            }
        });
        Ok(Self { notify, _listener: listener })
    }

    /// Waits for the next interrupt. Cancel-safe.
    pub async fn next(&mut self) {
        self.notify.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio::time::timeout;

    /// Time within which nothing is typed.
    const WHILE: Duration = Duration::from_millis(50);

    fn reader() -> (requests::Sender<&'static str>, ConsoleReader) {
        let (keyboard, typed) = requests::channel();
        let read = move || Ok(typed.recv().map(str::to_owned).unwrap_or_default());
        (keyboard, ConsoleReader::new(read))
    }

    #[tokio::test]
    async fn withdrawn_prompt_leaves_line_to_next_one() {
        let (keyboard, mut reader) = reader();
        assert!(timeout(WHILE, reader.next()).await.is_err(), "nothing is typed yet");
        keyboard.send("yes\n").unwrap();
        assert_eq!(reader.next().await.unwrap(), "yes\n");
        keyboard.send("no\n").unwrap();
        assert_eq!(reader.next().await.unwrap(), "no\n");
        drop(keyboard);
        assert_eq!(reader.next().await.unwrap(), "", "the input ended");
    }

    #[tokio::test]
    async fn line_between_prompts_is_discarded() {
        let (keyboard, mut reader) = reader();
        assert!(timeout(WHILE, reader.next()).await.is_err());
        keyboard.send("for the withdrawn prompt\n").unwrap();
        while reader.lines.is_empty() {
            tokio::task::yield_now().await;
        }
        reader.discard();
        keyboard.send("for the next one\n").unwrap();
        assert_eq!(reader.next().await.unwrap(), "for the next one\n");
    }

    #[tokio::test]
    async fn reader_takes_no_line_before_prompt() {
        let (keyboard, mut reader) = reader();
        keyboard.send("for others\n").unwrap();
        tokio::time::sleep(WHILE).await;
        assert!(reader.lines.is_empty());
        reader.discard();
        assert_eq!(reader.next().await.unwrap(), "for others\n");
    }

    #[tokio::test]
    async fn interrupt_is_awaited() {
        let mut interrupts = CtrlCListener::new().unwrap();
        assert!(timeout(WHILE, interrupts.next()).await.is_err());
        interrupts.notify.notify_one();
        interrupts.next().await;
    }
}
