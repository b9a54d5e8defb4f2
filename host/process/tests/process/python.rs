//! Python snippets for process states that a shell cannot produce.

/// Ends the first thread of a Python program, which continues as long as another thread runs.
pub(super) const HEADLESS: &str = "import ctypes, os\nctypes.CDLL(None).syscall(93 if os.uname().machine == 'aarch64' else 60, 0)";

/// Runs lines of Python in a new thread.
pub(super) fn in_a_thread(lines: &str) -> String {
    let lines = lines.replace('\n', "\n    ");
    format!("import threading\ndef work():\n    {lines}\nthreading.Thread(target=work).start()")
}
