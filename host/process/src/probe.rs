//! A program that is asked one short question, such as its version.

use std::{io, path::Path, process::Stdio, time::Duration};

/// How long it may take to answer. Some CLIs start two runtimes before they tell their version, and on a machine that has
/// never read them from its disk, that is half a minute.
const PATIENCE: Duration = Duration::from_secs(45);

/// The first line that `program` prints when it is called so; an error if it fails, or takes too long.
#[expect(
    clippy::disallowed_methods,
    reason = "asked by the user's own command: it is no guest's program"
)]
pub async fn first_line(program: &Path, args: &[&str]) -> io::Result<String> {
    let mut command = tokio::process::Command::new(program);
    command.args(args).stdin(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    let answered = tokio::time::timeout(PATIENCE, command.output()).await;
    let output = answered.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
    if !output.status.success() {
        return Err(io::Error::other(format!("it ended with {}", output.status)));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.lines().next().unwrap_or_default().trim().to_owned())
}
