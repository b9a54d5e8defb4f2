//! A shell in a terminal: types as a person would, waits for what is shown, and records it.

use crate::cast::{Cast, Output};
use anyhow::{Context as _, Result, bail, ensure};
use std::{path::Path, process::Stdio, time::Duration};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    process::{Child, ChildStdin, ChildStdout, Command},
    time::{Instant, timeout_at},
};

/// Terminal type, as the programs learn it.
pub(crate) const TERM: &str = "xterm-256color";

/// Prompt of the shell.
pub(crate) const PROMPT: &str = "$";

/// Columns and rows.
pub(crate) const SIZE: (usize, usize) = (96, 32);

/// Longest wait for an answer.
const LONGEST: Duration = Duration::from_secs(60);

/// A running shell.
pub(crate) struct Terminal {
    child: Child,
    keys: ChildStdin,
    shown: ChildStdout,
    screen: avt::Terminal,
    /// Bytes of a character whose rest has not arrived.
    rest: Vec<u8>,
    start: Instant,
    cast: Cast,
}

impl Terminal {
    /// Starts a shell for the user with this home, with this environment only.
    #[expect(clippy::disallowed_methods, reason = "the terminal is a program of the system")]
    pub(crate) async fn start(title: &str, home: &Path, env: &[(&str, String)]) -> Result<Self> {
        // Neither brackets around pasted text, nor a bell.
        let settings = "set enable-bracketed-paste off\nset bell-style none\n";
        std::fs::write(home.join(".inputrc"), settings)?;
        let (columns, rows) = SIZE;
        let shell = format!(
            "stty cols {columns} rows {rows}; PS1='{PROMPT} ' exec bash --norc --noprofile -i"
        );
        let mut script = Command::new("script");
        script.args(["-qec", &shell, "/dev/null"]).current_dir(home).kill_on_drop(true);
        script.env_clear().env("HOME", home).env("TERM", TERM).env("LANG", "C.UTF-8");
        script.env("SHELL", "/bin/bash").envs(env.iter().map(|(name, value)| (name, value)));
        script.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = script.spawn().context("`script` of util-linux provides the terminal")?;
        let keys = child.stdin.take().context("the terminal has keys")?;
        let shown = child.stdout.take().context("the terminal has a screen")?;
        let mut terminal = Self {
            child,
            keys,
            shown,
            screen: avt::Terminal::with_scrollback(columns, rows, None)?,
            rest: Vec::new(),
            start: Instant::now(),
            cast: Cast::new(title, SIZE),
        };
        terminal.until(PROMPT).await?;
        terminal.start = Instant::now();
        terminal.cast.outputs.iter_mut().for_each(|output| output.at_ms = 0);
        Ok(terminal)
    }

    /// Types a line at the speed of a person, and presses Enter.
    pub(crate) async fn enter(&mut self, line: &str) -> Result<()> {
        self.watch(Duration::from_millis(600)).await?;
        for key in line.chars() {
            self.press(key.encode_utf8(&mut [0; 4])).await?;
            self.watch(Duration::from_millis(35)).await?;
        }
        self.watch(Duration::from_millis(300)).await?;
        self.press("\n").await
    }

    /// Types a command, and waits for the next prompt.
    pub(crate) async fn command(&mut self, line: &str) -> Result<()> {
        self.enter(line).await?;
        self.until(PROMPT).await
    }

    /// Waits until the last line is `expected`.
    pub(crate) async fn until(&mut self, expected: &str) -> Result<()> {
        let deadline = Instant::now() + LONGEST;
        while self.last_line() != expected {
            if !self.read(deadline).await? {
                bail!(
                    "waited for `{expected}`, and see: {}",
                    self.screen.screen().text().join("\n")
                );
            }
        }
        Ok(())
    }

    /// Ends the shell, and returns the recording.
    pub(crate) async fn end(mut self) -> Result<Cast> {
        self.watch(Duration::from_millis(600)).await?;
        let cast = self.cast.clone();
        self.press("exit\n").await?;
        let deadline = Instant::now() + LONGEST;
        while self.read(deadline).await? {}
        ensure!(self.child.wait().await?.success(), "the shell failed");
        Ok(cast)
    }

    async fn press(&mut self, keys: &str) -> Result<()> {
        self.keys.write_all(keys.as_bytes()).await?;
        Ok(self.keys.flush().await?)
    }

    /// Records for a while.
    async fn watch(&mut self, time: Duration) -> Result<()> {
        let deadline = Instant::now() + time;
        while self.read(deadline).await? {}
        Ok(())
    }

    /// Records the next output; false if none arrives until the deadline.
    async fn read(&mut self, deadline: Instant) -> Result<bool> {
        let mut buffer = [0; 4096];
        let Ok(read) = timeout_at(deadline, self.shown.read(&mut buffer)).await else {
            return Ok(false);
        };
        let read = read?;
        if read == 0 {
            return Ok(false);
        }
        self.rest.extend(&buffer[..read]);
        let whole = match std::str::from_utf8(&self.rest) {
            Ok(all) => all.len(),
            Err(cut) => cut.valid_up_to(),
        };
        let bytes: Vec<u8> = self.rest.drain(..whole).collect();
        let text = String::from_utf8(bytes)?;
        if !text.is_empty() {
            self.screen.feed(text.as_str());
            let at_ms = u64::try_from(self.start.elapsed().as_millis())?;
            self.cast.outputs.push(Output { at_ms, text });
        }
        Ok(true)
    }

    /// Last line that is not empty.
    fn last_line(&self) -> String {
        let lines = self.screen.screen().text();
        lines
            .iter()
            .rfind(|line| !line.trim().is_empty())
            .map_or("", |line| line.trim_end())
            .to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::picture;

    #[tokio::test]
    async fn typed_command_is_recorded_and_parsed() {
        let home = tempfile::tempdir().unwrap();
        let path = [("PATH", "/usr/bin:/bin".to_owned())];
        let mut terminal = Terminal::start("a test", home.path(), &path).await.unwrap();
        terminal.command("printf '\\033[1mbold\\033[0m é\\n'; tput cols").await.unwrap();
        let cast = terminal.end().await.unwrap();
        let read = Cast::parse(&cast.to_string()).unwrap();
        assert_eq!(read, cast);
        let shown = picture::text(&read).unwrap();
        assert_eq!(shown, "$ printf '\\033[1mbold\\033[0m é\\n'; tput cols\nbold é\n96\n$\n");
    }
}
