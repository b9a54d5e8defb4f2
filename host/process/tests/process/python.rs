//! What programs in Python do that no shell can.

/// Ends the first thread of a Python program, which goes on as long as another of its threads does.
pub(super) const HEADLESS: &str = "import ctypes, os\nctypes.CDLL(None).syscall(93 if os.uname().machine == 'aarch64' else 60, 0)";

/// Has Python do this in a thread of its own.
pub(super) fn in_a_thread(lines: &str) -> String {
    let lines = lines.replace('\n', "\n    ");
    format!("import threading\ndef work():\n    {lines}\nthreading.Thread(target=work).start()")
}
