//! `man` and `completions`: the command line described for other programs.

use super::completion::VARIABLE;
use crate::{
    client::global::Global,
    command_line::CommandLine,
    ui::exit::{EXIT_CODES, Exit},
};
use anyhow::Context as _;
use clap::CommandFactory as _;
use clap_complete::{
    Shell,
    env::{CompleteEnv, Shells},
};

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
    let complete = CompleteEnv::with_factory(CommandLine::command).var(VARIABLE);
    complete.try_complete(std::env::args_os(), here.as_deref())
}

pub(crate) fn man(global: &Global, command: Option<&str>) -> anyhow::Result<Exit> {
    global.console().print(&page(command)?.into())?;
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
