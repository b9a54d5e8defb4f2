//! Snapshot of the command line as scripts use it: commands, arguments, values and exit codes. A
//! change breaks scripts. The texts of the help are not part of it.

use crate::{command_line::CommandLine, ui::exit::Exit};
use clap::{Arg, Command, CommandFactory as _};
use std::fmt::Write as _;

#[test]
fn command_line_is_as_scripts_know_it() {
    let mut out = String::new();
    describe(&CommandLine::command(), "a2a-hub", &mut out);
    for (name, exit) in [
        ("done", Exit::Done),
        ("task failed", Exit::TaskFailed),
        ("fault", Exit::Fault),
        ("needs input", Exit::NeedsInput),
        ("interrupted", Exit::Interrupted),
    ] {
        writeln!(out, "exit {} {name}", exit as u8).unwrap();
    }
    insta::assert_snapshot!("command_line", out);
}

fn describe(command: &Command, path: &str, out: &mut String) {
    writeln!(out, "{path}{}", if command.is_hide_set() { " (hidden)" } else { "" }).unwrap();
    let mut arguments: Vec<_> = command.get_arguments().map(argument).collect();
    arguments.sort();
    for argument in arguments {
        writeln!(out, "    {argument}").unwrap();
    }
    let mut subcommands: Vec<_> = command.get_subcommands().collect();
    subcommands.sort_by_key(|command| command.get_name());
    for command in subcommands {
        describe(command, &format!("{path} {}", command.get_name()), out);
    }
}

fn argument(arg: &Arg) -> String {
    let mut line = match (arg.get_long(), arg.get_short()) {
        (Some(long), Some(short)) => format!("--{long} -{short}"),
        (Some(long), None) => format!("--{long}"),
        (None, Some(short)) => format!("-{short}"),
        (None, None) => format!("<{}>", arg.get_id()),
    };
    let values: Vec<_> =
        arg.get_value_names().into_iter().flatten().map(ToString::to_string).collect();
    if arg.get_action().takes_values() && !values.is_empty() {
        write!(line, " {}", values.join(" ")).unwrap();
    }
    let possible = arg.get_possible_values();
    if arg.get_action().takes_values() && !possible.is_empty() {
        let names: Vec<_> = possible.iter().map(|value| value.get_name().to_owned()).collect();
        write!(line, " {{{}}}", names.join("|")).unwrap();
    }
    if let Some(number) = arg.get_num_args() {
        write!(line, " x{number}").unwrap();
    }
    let defaults = arg.get_default_values();
    if !defaults.is_empty() {
        write!(line, " ={}", defaults.join(std::ffi::OsStr::new(",")).to_string_lossy()).unwrap();
    }
    for (mark, is_set) in [
        ("required", arg.is_required_set()),
        ("global", arg.is_global_set()),
        ("hidden", arg.is_hide_set()),
    ] {
        if is_set {
            write!(line, " {mark}").unwrap();
        }
    }
    line
}
