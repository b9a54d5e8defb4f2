//! Tests of the README's commands: the program knows each of them, and those under "Use it" are
//! run.

use crate::command_line::finish;
use a2a_hub_tests::{
    hub_binary,
    stage::{Home, home},
};
use anyhow::{Result, ensure};
use std::{collections::BTreeSet, fs, path::PathBuf, process::Stdio};
use tokio::process::Command;

const README: &str = include_str!("../../../../../README.md");

/// Exit code if the command line, the configuration or the hub is at fault.
const FAULT: i32 = 2;

/// A user's machine: a home with a repository below `src`, and `a2a-hub` on the `PATH`.
struct Machine {
    dir: Home,
    /// Current directory of the user.
    cwd: PathBuf,
}

impl Machine {
    async fn new() -> Result<Self> {
        let dir = home()?;
        let cwd = dir.path().join("src");
        fs::create_dir_all(cwd.join("my-project"))?;
        fs::create_dir(dir.path().join("bin"))?;
        std::os::unix::fs::symlink(hub_binary()?, dir.path().join("bin/a2a-hub"))?;
        let machine = Self { dir, cwd };
        let made = "cd my-project && git init -q && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m begin && echo begun > notes.md && git add -N notes.md";
        ensure!(machine.shell(made).await?.0 == Some(0), "there must be a repository");
        Ok(machine)
    }

    /// Runs a line in a shell; returns the exit code and all output.
    #[expect(clippy::disallowed_methods, reason = "the line is typed as a user would")]
    async fn shell(&self, line: &str) -> Result<(Option<i32>, String)> {
        let home = self.dir.path();
        let path = std::env::var("PATH").unwrap_or_default();
        let mut bash = Command::new("bash");
        bash.args(["-c", line]).env_clear().env("HOME", home).current_dir(&self.cwd);
        bash.env("PATH", format!("{}:{path}", home.join("bin").display()));
        // Separate from the user's own hub, and without a drain time.
        bash.env("A2A_HUB_SOCKET", home.join("hub.sock")).env("A2A_HUB_HTTP_PORT", "0");
        bash.env("A2A_HUB_STOP_DRAIN_MS", "0").kill_on_drop(true);
        bash.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let ran = finish(bash).await?;
        Ok((ran.code, ran.stdout + &ran.stderr))
    }

    /// Returns the help of a command.
    async fn help(&self, command: &str) -> Result<String> {
        let (code, said) = self.shell(&format!("a2a-hub {command} --help")).await?;
        ensure!(code == Some(0), "`a2a-hub {command}` is in the README only: {said}");
        Ok(said)
    }
}

/// Returns the lines of the first shell block after a heading, without comments.
fn block(heading: &str) -> Vec<&'static str> {
    let after = README.split(heading).nth(1).unwrap_or_default();
    let block = after.split("```sh\n").nth(1).unwrap_or_default();
    let lines = block.split("```").next().unwrap_or_default().lines();
    lines.map(|line| line.split("  #").next().unwrap_or(line).trim()).collect()
}

/// Starts, uses and stops a hub. A command that needs an account may fail, except for a usage
/// error.
#[tokio::test]
async fn readme_commands_succeed_as_shown() -> Result<()> {
    let mut machine = Machine::new().await?;
    let lines = block("## Use it");
    ensure!(lines.last() == Some(&"a2a-hub stop"), "where are the commands? {lines:?}");
    let mut wrong = Vec::new();
    for line in lines {
        if let Some(to) = line.strip_prefix("cd ") {
            machine.cwd = machine.dir.path().join(to.trim_start_matches("~/"));
            continue;
        }
        let (code, said) = match machine.shell(line).await {
            Ok(ran) => ran,
            Err(why) => (None, why.to_string()),
        };
        // Without its agents' programs, a hub reports the fix and keeps running.
        let needs_more = line.contains("claude-code") || line.contains("--health");
        let is_told = code != Some(FAULT) || said.contains("cannot work: ");
        let fine = if needs_more { is_told } else { code == Some(0) };
        if !fine {
            wrong.push(format!("`{line}` ended with {code:?}: {said}"));
        }
    }
    // Asserted after the last line, which stops the hub.
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

#[tokio::test]
async fn readme_commands_and_flags_exist() -> Result<()> {
    let machine = Machine::new().await?;
    let commands = commands();
    ensure!(commands.len() > 15, "where are the commands? {commands:?}");
    let everywhere = machine.help("").await?;
    for (command, flags) in commands {
        let help = machine.help(&command).await?;
        for flag in flags {
            let known = [&help, &everywhere].iter().any(|help| help.contains(&flag));
            assert!(known, "`a2a-hub {command} {flag}` is in the README only");
        }
    }
    // A flag that is mentioned alone belongs to a command mentioned before it.
    let mut told = String::new();
    for command in ["send", "start", "agents"] {
        told += &machine.help(command).await?;
    }
    for flag in spans(README).iter().filter(|span| span.starts_with("--")) {
        let name = flag.split(' ').next().unwrap_or(flag);
        assert!(told.contains(name) || everywhere.contains(name), "`{name}` is in the README only");
    }
    Ok(())
}

/// Returns the code spans of each line, and the lines themselves.
fn spans(text: &str) -> Vec<String> {
    let inline = text.lines().flat_map(|line| line.split('`').skip(1).step_by(2));
    let typed = text.lines().map(|line| line.trim_start_matches("$ "));
    inline.chain(typed).map(|span| span.replace("\\|", "|")).collect()
}

/// Returns every command in the README with its flags; alternatives are expanded.
fn commands() -> BTreeSet<(String, Vec<String>)> {
    let mut found = BTreeSet::new();
    for span in spans(README) {
        // A command starts a span, or follows a pipe or a colon.
        let pieces: Vec<&str> = span.split("a2a-hub ").collect();
        let is_typed = |before: &str| before.is_empty() || before.ends_with(['|', ':']);
        let typed = pieces.windows(2).filter(|two| is_typed(two[0].trim_end()));
        for command in typed.map(|two| two[1]) {
            let words: Vec<&str> =
                command.split([' ', '[', ']']).filter(|w| !w.is_empty()).collect();
            let typed = words.iter().take_while(|word| !["|", "#", "&&"].contains(*word));
            let flags = typed.clone().filter(|word| word.starts_with("--"));
            let flags: Vec<String> = flags.map(|&flag| flag.to_owned()).collect();
            let is_name = |word: &&&str| word.chars().all(|c| c.is_ascii_lowercase() || c == '|');
            let names: Vec<&&str> = typed.take_while(is_name).take(2).collect();
            let Some((name, rest)) = names.split_first() else { continue };
            // The word after `send` and `completions` is an argument, not a subcommand.
            let below = rest.first().filter(|_| !["send", "completions"].contains(*name));
            for below in below.map_or("", |below| **below).split('|') {
                found.insert((format!("{name} {below}").trim().to_owned(), flags.clone()));
            }
        }
    }
    found
}

#[test]
fn readme_parser_finds_commands() {
    let found = commands();
    let has = |command: &str, flag: Option<&str>| {
        found.iter().any(|(name, flags)| {
            name == command && flag.is_none_or(|flag| flags.iter().any(|it| it == flag))
        })
    };
    assert!(has("task watch", None) && has("conversations delete", None), "{found:?}");
    assert!(has("start", Some("--workspace")) && has("tasks", Some("--state")), "{found:?}");
    assert!(has("send", Some("--task")) && has("logs", Some("--follow")), "{found:?}");
    assert!(block("## Use it")[0].starts_with("a2a-hub start --workspace ~/src"));
}
