//! What a terminal is shown: the command line on a real pseudoterminal, made by `script` of util-linux.

use crate::{
    command_line::{Ran, command, finish, run},
    stage::hub_with_guest,
};
use a2a_hub_tests::TestHub;
use anyhow::{Context as _, Result};
use std::{process::Stdio, time::Duration};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    process::Command,
    time::timeout,
};

/// Clears the screen, sets the title and the clipboard, turns text round, and asks in the hub's name.
const HOSTILE: &str =
    "\x1b[2J\x1b]0;title\x07\x1b]52;c;aGk=\x07\u{9b}31m\u{202e}gpj.exe\rover\n┇ echo asks:";

/// `a2a-hub` with these words, as typed at a terminal that knows colours.
fn typed(hub: &TestHub, words: &[&str]) -> Result<Command> {
    let plain = command(hub.socket(), &hub.home(), words)?;
    let plain = plain.as_std();
    let quoted =
        |word: &std::ffi::OsStr| format!("'{}'", word.to_string_lossy().replace('\'', r"'\''"));
    let line: Vec<_> =
        std::iter::once(plain.get_program()).chain(plain.get_args()).map(quoted).collect();
    let mut script = terminal(hub)?;
    script.args(["-qec", &line.join(" "), "/dev/null"]);
    Ok(script)
}

#[expect(clippy::disallowed_methods, reason = "the terminal is a program of the system")]
fn terminal(hub: &TestHub) -> Result<Command> {
    let mut script = Command::new("script");
    script.env_clear().env("HOME", hub.home()).env("TERM", "xterm").env("SHELL", "/bin/sh");
    script.env("PATH", std::env::var_os("PATH").context("no PATH")?);
    script.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    script.current_dir(hub.workspace()).kill_on_drop(true);
    Ok(script)
}

/// What a terminal would obey of `shown`, beside line ends and what the command line itself writes.
fn obeyed(shown: &str) -> Vec<char> {
    let ours = [
        "\x1b[2K", "\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[36m",
    ];
    let rest = ours.iter().fold(shown.to_owned(), |rest, ours| rest.replace(ours, ""));
    rest.chars().filter(|c| c.is_control() && !"\r\n\t".contains(*c)).collect()
}

#[tokio::test]
async fn a_terminal_obeys_no_agent() -> Result<()> {
    let hub = hub_with_guest().await?;
    for words in [
        vec!["send", "echo", HOSTILE],
        vec!["send", "echo", HOSTILE, "--stream"],
        vec!["send", "guest", "sh printf '\\033[2J\\033]0;x\\007 said'"],
        vec!["send", "echo", HOSTILE, "--context", "c\x1b[2J"],
        vec!["tasks"],
        vec!["contexts"],
        vec!["--format", "json", "send", "echo", HOSTILE],
        vec!["--format", "json", "tasks"],
        vec!["send", HOSTILE, "hi"],
        vec!["fly", HOSTILE],
    ] {
        let Ran { stdout: shown, .. } = finish(typed(&hub, &words)?).await?;
        assert!(obeyed(&shown).is_empty(), "{words:?}: {shown:?}");
        for deceptive in ["\u{202e}", "\u{9b}", "┇ echo", "\rover"] {
            assert!(!shown.contains(deceptive), "{words:?}: {shown:?}");
        }
    }
    let shown = finish(typed(&hub, &["send", "echo", HOSTILE])?).await?.stdout;
    assert!(
        shown.contains(r"\u{1b}[2J\u{1b}]0;title\u{7}")
            && shown.contains(r"\u{202e}gpj.exe\u{d}over"),
        "{shown:?}"
    );
    Ok(())
}

#[tokio::test]
async fn a_pipe_gets_every_byte_and_so_does_who_wants_them() -> Result<()> {
    let hub = hub_with_guest().await?;
    assert_eq!(run(&hub, &["send", "echo", HOSTILE]).await?.stdout, format!("{HOSTILE}\n"));
    let shown = finish(typed(&hub, &["send", "echo", HOSTILE, "--raw"])?).await?.stdout;
    assert!(shown.contains("\x1b[2J\x1b]0;title\x07"), "{shown:?}");
    Ok(())
}

/// However a task ends, its conversation can go on.
#[tokio::test]
async fn who_sits_at_a_terminal_is_told_the_conversation_of_every_task_that_is_over() -> Result<()>
{
    let hub = hub_with_guest().await?;
    for words in [["send", "echo", "hi"], ["send", "guest", "fail"], ["send", "guest", "panic"]] {
        let shown = finish(typed(&hub, &words)?).await?.stdout;
        assert!(shown.contains(": go on with --context, or --continue"), "{words:?}: {shown:?}");
    }
    Ok(())
}

/// What an agent had typed by a question of its own making does not answer the one that it asks then.
#[tokio::test]
async fn what_was_typed_before_the_question_is_no_answer() -> Result<()> {
    let hub = hub_with_guest().await?;
    let mut script = typed(&hub, &["send", "guest", "ask"])?;
    let mut child = script.stdin(Stdio::piped()).spawn()?;
    let mut keys = child.stdin.take().context("no stdin")?;
    let mut screen = child.stdout.take().context("no stdout")?;
    // Before the hub is asked at all.
    keys.write_all(b"typed ahead\n").await?;
    let mut shown = String::new();
    let mut seen = [0; 4096];
    let answered = async {
        let mut asked = false;
        loop {
            let read = screen.read(&mut seen).await?;
            shown.push_str(&String::from_utf8_lossy(&seen[..read]));
            if read == 0 {
                return anyhow::Ok(());
            }
            if !asked && shown.contains("> ") {
                asked = true;
                keys.write_all(b"the real answer\n").await?;
            }
        }
    };
    timeout(Duration::from_secs(30), answered).await??;
    assert!(shown.contains("guest asks:") && shown.contains("│ "), "{shown:?}");
    assert!(shown.contains("what do you say?"), "{shown:?}");
    // Once as it was typed, and once as the agent says it again.
    let after = shown.rsplit_once("> ").map(|(_, after)| after).unwrap_or_default();
    assert_eq!(after.matches("the real answer").count(), 2, "{shown:?}");
    assert!(!after.contains("typed ahead"), "{shown:?}");
    Ok(())
}
