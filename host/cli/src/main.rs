//! The `a2a-hub` program: a command line that starts and stops the hub and is one of its clients,
//! or a helper process of a hub, such as the minder of one program's process tree.

mod agent;
mod agents;
mod backup;
mod bridge;
mod cancelling;
mod carrying;
mod chosen;
mod client;
mod command_line;
mod completing;
mod console;
mod contexts;
mod deliveries;
mod doctor;
mod elsewhere;
mod exit;
mod failure;
mod files;
mod finding;
mod fit;
mod follow;
mod global;
mod grants_finding;
mod hub_log;
mod ids;
mod inheriting;
mod log_line;
mod logs;
mod manual;
mod markdown;
mod one_task;
mod owner;
mod plugin;
mod question;
mod remote_task;
mod render;
mod restart;
mod run;
mod running_hub;
mod saving;
mod send;
mod settings;
mod show;
mod shown;
mod signals;
mod start;
mod stop;
#[cfg(test)]
mod surface;
mod table;
mod task;
mod tasks;
mod terminal;
mod text;
mod told;
mod tree;
mod trial;
mod waiting;

use a2a_hub_config::Config;
use anyhow::Context as _;
use clap::Parser as _;
use client::ask;
use command_line::{Command, CommandLine};
use console::{Console, Wish};
use exit::Exit;
use failure::BLAMES;
use global::{Format, Global};
use std::{ffi::OsString, process::ExitCode};
use waiting::block_on;

fn main() -> ExitCode {
    a2a_hub::minded().unwrap_or_else(follow_the_command_line)
}

/// Parses the command line and executes the command.
fn follow_the_command_line() -> ExitCode {
    match manual::complete() {
        Ok(true) => return ExitCode::SUCCESS,
        Ok(false) => {}
        Err(why) => return not_understood(&why),
    }
    let CommandLine { global, command } = match CommandLine::try_parse() {
        Ok(parsed) => parsed,
        Err(why) => return not_understood(&why),
    };
    let exit = carry_out(&global, command).unwrap_or_else(|why| {
        // A closed pipe is no failure worth a message.
        if !failure::is_broken_pipe(&why) {
            match global.format {
                Format::Pretty => global.console().note(format!("{BLAMES}{why:#}")),
                // A failed write to standard output cannot be reported anywhere.
                Format::Json => {
                    drop(global.console().print_json(&failure::to_json(&why, Exit::Fault)));
                }
            }
        }
        Exit::Fault
    });
    ExitCode::from(exit as u8)
}

/// Reports a command-line error, or prints the requested help.
fn not_understood(why: &clap::Error) -> ExitCode {
    if !why.use_stderr() {
        // A closed pipe is no failure worth a message.
        let _ = Console::print_help(why);
        return ExitCode::SUCCESS;
    }
    let console = Console::new(Wish::default());
    if wants_json(std::env::args_os().skip(1)) {
        let _ = console.print_json(&failure::usage(why));
    } else {
        console.note(why.render().to_string().trim_end());
    }
    ExitCode::from(Exit::Fault as u8)
}

/// True if arguments that could not be parsed request JSON.
fn wants_json(args: impl Iterator<Item = OsString>) -> bool {
    let args: Vec<_> = args.take_while(|arg| arg != "--").collect();
    let apart = args.windows(2).any(|pair| pair[0] == "--format" && pair[1] == "json");
    apart || args.iter().any(|arg| arg == "--format=json")
}

fn carry_out(global: &Global, command: Command) -> anyhow::Result<Exit> {
    match command {
        Command::Start(start) => start::start(global, &start),
        Command::Stop(stop) => stop::stop(global, &stop),
        Command::Restart(restart) => restart::restart(global, &restart, started_by),
        Command::Reload => restart::reload(global),
        Command::Backup(backup) => backup::backup(global, &backup),
        Command::Restore(restore) => backup::restore(global, &restore),
        Command::Status => show::status(global),
        Command::Agents(asked) => agents::agents(global, &asked),
        Command::Agent(agent) => agent::agent(global, &agent),
        Command::Plugin(plugin) => plugin::plugin(global, &plugin),
        Command::Send(send) => {
            let send = send.with_message()?;
            if elsewhere::is_url(&send.agent) {
                remote_task::send(global, send)
            } else {
                send::send(global, send)
            }
        }
        Command::Acp(asked) => bridge::acp(global, &asked),
        Command::Mcp(asked) => bridge::mcp(global, &asked),
        Command::Tasks(tasks) => tasks::tasks(global, &tasks),
        Command::Task(task) => task::task(global, &task),
        Command::Contexts(contexts) => contexts::contexts(global, &contexts),
        Command::Deliveries(asked) => deliveries::deliveries(global, &asked),
        Command::Logs(logs) => logs::logs(global, &logs),
        Command::Config(command) => settings::config(global, &command),
        Command::Doctor(doctor) => doctor::doctor(global, &doctor),
        Command::Completions { shell } => manual::completions(global, shell),
        Command::Carry { to } => carrying::carry_to(&to),
        Command::Man { command } => manual::man(global, command.as_deref()),
    }
}

/// Returns the configuration of the hub that these arguments start; `None` for a command that
/// starts no hub.
fn started_by(arguments: &[OsString]) -> anyhow::Result<Option<Config>> {
    let program = OsString::from("a2a-hub");
    let line = CommandLine::try_parse_from(std::iter::once(&program).chain(arguments));
    let CommandLine { global, command } = line.context("read how it was started")?;
    let Command::Start(start) = command else { return Ok(None) };
    Ok(Some(start::settings(&global, &start)?.config))
}
