//! Tests that the reference of the command line in the book is what `clap` knows. The text above
//! the marker is written by hand.

use super::{
    CommandLine,
    help::{JOBS, NAME_WIDTH, USUAL},
};
use clap::{Arg, ArgAction, Command, CommandFactory as _};
use std::{collections::BTreeSet, fmt::Write as _};

const PAGE: &str = include_str!("../../../../docs/reference/cli.md");
const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/cli.md");
const MARKER: &str = "<!-- generated: `A2A_HUB_BOOK=write cargo nextest run -p a2a-hub-cli reference` writes what follows -->\n";

#[test]
#[expect(clippy::disallowed_methods, reason = "the developer says whether to write the file")]
fn reference_matches_clap_commands() {
    let (prose, _) = PAGE.split_once(MARKER).expect("the marker stands below the prose");
    let expected = format!("{prose}{MARKER}{}", rendered());
    if std::env::var("A2A_HUB_BOOK").is_ok_and(|what| what == "write") {
        std::fs::write(PATH, &expected).expect("write the reference");
    } else {
        assert!(
            PAGE == expected,
            "docs/reference/cli.md is not what the commands say: run `A2A_HUB_BOOK=write cargo nextest run -p a2a-hub-cli reference`"
        );
    }
}

#[test]
fn option_is_rendered_with_its_values() {
    let levels = ["low", "high"];
    let level = Arg::new("level").long("level").short('l').help("How much | of `<X>` or <Y>");
    let mut command = Command::new("do")
        .arg(level.value_name("LEVEL").value_parser(levels).default_value("low"))
        .arg(Arg::new("file").required(true).help("The file [default: `a`]"))
        .arg(Arg::new("version").long("version").help("Not of the program"))
        .arg(Arg::new("hidden").long("hidden").hide(true));
    command.build();
    let rows = command.get_arguments().filter(|arg| is_told(arg)).map(row).collect::<String>();
    let expected = "| `-l`, `--level <LEVEL>` | How much \\| of `<X>` or &lt;Y>. Values: `low`, `high`. Default: `low`. |\n\
                    | `<file>` | The file. Default: `a`. |\n\
                    | `--version <version>` | Not of the program. |\n";
    assert_eq!(rows, expected);
}

#[test]
fn every_command_has_one_job() {
    let program = CommandLine::command();
    let commands: Vec<_> = program.get_subcommands().filter(|it| !it.is_hide_set()).collect();
    let names: BTreeSet<_> = commands.iter().map(|it| it.get_name()).collect();
    let listed: Vec<_> = JOBS.iter().flat_map(|(_, names)| *names).copied().collect();
    assert_eq!(listed.len(), names.len());
    assert_eq!(listed.into_iter().collect::<BTreeSet<_>>(), names);
    assert!(USUAL.iter().all(|name| names.contains(name)), "{USUAL:?}");
    // Lists fit into 80 columns.
    for command in commands {
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        assert!(command.get_name().len() < NAME_WIDTH && about.len() <= 63, "{about}");
    }
}

#[test]
fn help_groups_options_under_headings() {
    let mut program = CommandLine::command();
    program.build();
    let send = program.find_subcommand("send").expect("the command exists");
    let under = |heading: Option<&str>| {
        let options = send.get_arguments().filter(|arg| is_told(arg) && !arg.is_positional());
        let options = options.filter(|arg| arg.get_help_heading() == heading);
        options.filter_map(Arg::get_long).collect::<Vec<_>>()
    };
    assert_eq!(
        under(None),
        [
            "input", "file", "cwd", "add-dir", "worktree", "stream", "detach", "save", "timeout",
            "start"
        ]
    );
    assert_eq!(under(Some("Remote agents")), ["token-env", "allow-origin"]);
    let memory = under(Some("Within an agent's task"));
    assert!(memory.iter().all(|it| it.contains("memory") || *it == "scope"), "{memory:?}");
    for (name, command) in commands(&program, "a2a-hub") {
        for arg in command.get_arguments().filter(|arg| is_told(arg)) {
            let is_last = arg.get_help_heading() == Some("Global options");
            assert_eq!(is_last, arg.is_global_set(), "{name}: {arg}");
        }
    }
}

/// Text below the marker: the options of every command, a list of the commands, and a section for
/// each.
fn rendered() -> String {
    let mut program = CommandLine::command();
    program.build();
    let mut page =
        String::from("\n## Options of every command\n\n| option | meaning |\n| --- | --- |\n");
    for arg in program.get_arguments().filter(|arg| arg.is_global_set()) {
        page += &row(arg);
    }
    page += "\n## Commands\n\n| command | effect |\n| --- | --- |\n";
    let commands = commands(&program, "a2a-hub");
    for (name, command) in &commands {
        let anchor = name.replace(' ', "-");
        _ = writeln!(page, "| [`{name}`](#{anchor}) | {} |", about(command));
    }
    for (name, command) in commands {
        page += &section(&name, command);
    }
    page
}

/// Commands that can run without a subcommand, each with its full command line.
fn commands<'c>(above: &'c Command, typed: &str) -> Vec<(String, &'c Command)> {
    let below = above.get_subcommands().filter(|it| !it.is_hide_set() && it.get_name() != "help");
    below
        .flat_map(|command| {
            let typed = format!("{typed} {}", command.get_name());
            let below = commands(command, &typed);
            let acts = !command.is_subcommand_required_set();
            acts.then_some((typed, command)).into_iter().chain(below)
        })
        .collect()
}

fn section(name: &str, command: &Command) -> String {
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage:").lines().map(str::trim);
    let usage = usage.filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n");
    let mut section = format!("\n## `{name}`\n\n{}\n\n```text\n{usage}\n```\n", about(command));
    let told = command.get_arguments().filter(|arg| is_told(arg) && !arg.is_global_set());
    let rows = told.map(row).collect::<String>();
    if !rows.is_empty() {
        _ = write!(section, "\n| option | meaning |\n| --- | --- |\n{rows}");
    }
    if let Some(more) = command.get_after_help() {
        _ = write!(section, "\n```text\n{}\n```\n", more.to_string().trim_end());
    }
    section
}

fn is_told(arg: &Arg) -> bool {
    let is_claps = matches!(
        arg.get_action(),
        ArgAction::Help | ArgAction::HelpShort | ArgAction::HelpLong | ArgAction::Version
    );
    !arg.is_hide_set() && !is_claps
}

fn about(command: &Command) -> String {
    let about = command.get_long_about().or(command.get_about());
    sentence(&about.map(ToString::to_string).unwrap_or_default())
}

fn row(arg: &Arg) -> String {
    let short = arg.get_short().filter(|_| arg.get_long().is_some());
    let short = short.map(|short| format!("`-{short}`, ")).unwrap_or_default();
    let help = arg.get_long_help().or(arg.get_help()).map(ToString::to_string);
    let mut said = vec![sentence(&help.unwrap_or_default())];
    if arg.get_action().takes_values() {
        let values = arg.get_possible_values();
        let values = values.iter().filter(|value| !value.is_hide_set());
        let values: Vec<_> = values.map(|value| format!("`{}`", value.get_name())).collect();
        if !values.is_empty() && !arg.is_hide_possible_values_set() {
            said.push(format!("Values: {}.", values.join(", ")));
        }
        let defaults = arg.get_default_values().iter().map(|it| format!("`{}`", it.display()));
        let defaults: Vec<_> = defaults.collect();
        if !defaults.is_empty() && !arg.is_hide_default_value_set() {
            said.push(format!("Default: {}.", defaults.join(", ")));
        }
    }
    if let Some(variable) = arg.get_env() {
        said.push(format!("Environment: `{}`.", variable.display()));
    }
    let typed = arg.to_string().replace('|', "\\|");
    format!("| {short}`{typed}` | {} |\n", said.join(" ").trim())
}

/// Help text as a sentence in the cell of a table, escaped except between backticks.
fn sentence(help: &str) -> String {
    let line = help.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|");
    let pieces = line.split('`').enumerate();
    let pieces = pieces.map(|(at, piece)| match at % 2 {
        0 => piece.replace('<', "&lt;"),
        _ => piece.to_owned(),
    });
    let line = pieces.collect::<Vec<_>>().join("`");
    if let Some((before, default)) =
        line.strip_suffix(']').and_then(|it| it.split_once(" [default: "))
    {
        return format!("{before}. Default: {default}.");
    }
    if line.is_empty() || line.ends_with(['.', '?']) { line } else { format!("{line}.") }
}
