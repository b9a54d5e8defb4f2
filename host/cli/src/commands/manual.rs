//! `man` and `completions`: the command line described for other programs.

use super::completion::VARIABLE;
use crate::{
    client::global::Global,
    command_line::CommandLine,
    ui::{
        exit::{EXIT_CODES, Exit},
        pager::read_by,
    },
};
use anyhow::Context as _;
use clap::{Command, CommandFactory as _};
use clap_complete::{
    Shell,
    env::{CompleteEnv, Shells},
};
use std::ffi::OsStr;

/// Prints the shell script that makes a shell call this program for completions.
pub(crate) fn completions(global: &Global, shell: Shell) -> anyhow::Result<Exit> {
    let shells = Shells::builtins();
    let name = shell.to_string();
    let shell = shells.completer(&name).with_context(|| format!("complete in {name}"))?;
    let mut script = Vec::new();
    shell.write_registration(VARIABLE, "a2a-hub", "a2a-hub", "a2a-hub", &mut script)?;
    global.console().print(&String::from_utf8(script)?.into())?;
    Ok(Exit::Done)
}

/// Answers a completion request of a shell; returns true if the process was called for one.
pub(crate) fn complete() -> clap::error::Result<bool> {
    let here = std::env::current_dir().ok();
    // The shell's script passes the typed words; the last one is being completed.
    let wants_options = is_option(std::env::args_os().next_back().as_deref());
    let command = || match wants_options {
        true => CommandLine::command(),
        false => without_options(CommandLine::command()),
    };
    let complete = CompleteEnv::with_factory(command).var(VARIABLE);
    complete.try_complete(std::env::args_os(), here.as_deref())
}

fn is_option(word: Option<&OsStr>) -> bool {
    word.is_some_and(|word| word.as_encoded_bytes().starts_with(b"-"))
}

/// Hides the options of a command and of those below it: they are offered after a `-`.
fn without_options(command: Command) -> Command {
    let command = command.disable_help_flag(true).disable_version_flag(true);
    command
        .mut_args(|arg| if arg.is_positional() { arg } else { arg.hide(true) })
        .mut_subcommands(without_options)
}

pub(crate) fn man(global: &Global, command: Option<&str>) -> anyhow::Result<Exit> {
    let page = page(command)?;
    let is_read = global.console().columns().is_some() && read_by("man", &["-l", "-"], &page);
    if !is_read {
        global.console().print(&page.into())?;
    }
    Ok(Exit::Done)
}

/// Renders the manual page of the program, or of one of its commands.
fn page(command: Option<&str>) -> anyhow::Result<String> {
    let mut described = CommandLine::command();
    described.build();
    if let Some(name) = command {
        let found = described.find_subcommand(name).cloned();
        described =
            found.with_context(|| format!("describe `{name}`: there is no such command"))?;
        described = described.display_name(format!("a2a-hub-{name}"));
    }
    // The page has a section for the text that ends the help.
    let manual = clap_mangen::Man::new(described.after_long_help(None::<&str>));
    let mut page = Vec::new();
    manual.render(&mut page)?;
    let mut page = String::from_utf8(page)?;
    page.push_str(".SH EXIT STATUS\n");
    for (code, meaning) in EXIT_CODES.lines().skip(1).filter_map(|line| line.trim().split_once(' '))
    {
        page.push_str(&format!(".TP\n{code}\n{}\n", meaning.trim()));
    }
    Ok(page)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manual_lists_commands_and_exit_codes() {
        let whole = page(None).unwrap();
        for told in
            ["a2a\\-hub\\-doctor(1)", ".SH EXIT STATUS\n.TP\n0\nthe command succeeded\n", "\n130\n"]
        {
            assert!(whole.contains(told), "{told}: {whole}");
        }
        let send = page(Some("send")).unwrap();
        assert!(send.contains("\\-\\-file"), "{send}");
        assert!(page(Some("fly")).is_err());
    }
}
