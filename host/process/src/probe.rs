//! Short query of a program, such as its version.

use std::{io, path::Path, process::Stdio, time::Duration};

/// Timeout of the query. Some CLIs start two runtimes before they print their version, which takes
/// half a minute on a machine that has never read them from its disk.
const TIMEOUT: Duration = Duration::from_secs(45);

/// First line that `program` prints with these arguments. Fails if the program fails or takes too
/// long.
#[expect(
    clippy::disallowed_methods,
    reason = "asked by the user's own command: it is no guest's program"
)]
pub async fn first_line(program: &Path, args: &[&str]) -> io::Result<String> {
    let mut command = tokio::process::Command::new(program);
    command.args(args).stdin(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    let answered = tokio::time::timeout(TIMEOUT, command.output()).await;
    let output = answered.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
    if !output.status.success() {
        return Err(io::Error::other(format!("it ended with {}", output.status)));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.lines().next().unwrap_or_default().trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        fs,
        future::ready,
        pin::{Pin, pin},
        sync::mpsc,
    };
    use tokio::{task::spawn_blocking, time::advance};

    /// Answers once the file given as argument exists.
    const SLOW: &str = "until [ -e \"$0\" ]; do sleep 0.01; done; echo ' 1.2 '; echo more";

    /// Polls the work once; true if it is still pending.
    async fn goes_on(work: &mut Pin<&mut impl Future>) -> bool {
        tokio::select! {
            biased;
            _ = work => false,
            () = ready(()) => true,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn slow_program_is_awaited_until_timeout() {
        let dir = tempfile::tempdir().unwrap();
        let go = dir.path().join("go");
        let named = go.display().to_string();
        let args = ["-c", SLOW, &named];
        // The test's clock does not advance by itself while a blocking thread runs.
        let (release, held) = mpsc::channel::<()>();
        let clock = spawn_blocking(move || held.recv());
        let mut patient = pin!(first_line(Path::new("/bin/sh"), &args));
        assert!(goes_on(&mut patient).await);
        advance(Duration::from_secs(30)).await;
        assert!(goes_on(&mut patient).await, "a cold start takes half a minute");
        fs::write(&go, "").unwrap();
        assert_eq!(patient.await.unwrap(), "1.2");

        fs::remove_file(&go).unwrap();
        let mut never = pin!(first_line(Path::new("/bin/sh"), &args));
        assert!(goes_on(&mut never).await);
        advance(TIMEOUT + Duration::from_secs(1)).await;
        assert_eq!(never.await.unwrap_err().kind(), io::ErrorKind::TimedOut);
        drop(release);
        assert!(clock.await.is_ok());
    }

    #[tokio::test]
    async fn failed_and_missing_programs_are_distinguished() {
        let ask =
            async |program: &str, script| first_line(Path::new(program), &["-c", script]).await;
        let failed = ask("/bin/sh", "echo 1.2; exit 3").await.unwrap_err();
        assert_eq!(failed.kind(), io::ErrorKind::Other);
        assert_eq!(failed.to_string(), "it ended with exit status: 3");
        let none = ask("/no/such/program", "").await.unwrap_err();
        assert_eq!(none.kind(), io::ErrorKind::NotFound);
    }
}
