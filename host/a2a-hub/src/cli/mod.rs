//! The command line: starts and stops the hub, and talks to it as any other client does.

mod agent;
mod backup;
mod cancelling;
mod chosen;
mod client;
mod completing;
mod console;
mod contexts;
mod deliveries;
mod doctor;
mod elsewhere;
mod failure;
mod files;
mod fit;
mod follow;
mod ids;
mod log_line;
mod logs;
mod manual;
mod markdown;
mod question;
mod render;
mod restart;
mod run;
mod saving;
mod send;
mod settings;
mod show;
mod shown;
mod signals;
mod start;
mod stop;
mod table;
mod task;
mod tasks;
mod terminal;
mod text;
mod told;
mod trial;

use a2a_hub_config::{ConfigError, Flag, Settings};
use clap::{Args, Parser, Subcommand, ValueEnum};
use client::Client;
use console::{Console, Wish};
use serde_json::Value;
use std::{ffi::OsString, path::PathBuf, process::ExitCode};
use text::Text;

/// What `--help` and the manual end with.
const EXIT_CODES: &str = "\
Exit status:
  0    it was done
  1    the task failed, or was rejected or cancelled by somebody else
  2    the command, the configuration or the hub is at fault, or a stream ended before its task did
  3    the task waits for an answer or a login
  130  Ctrl-C, or nobody reads the answer any more: the task was cancelled";

/// What a command begins with that says why it failed.
const BLAMES: &str = "a2a-hub: ";

/// What the program returns: documented in the README, and in [`EXIT_CODES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Exit {
    /// It was done.
    Done = 0,
    /// The task failed, or was rejected or cancelled by somebody else.
    TaskFailed = 1,
    /// The command, the configuration or the hub is at fault, or a stream ended before its task did.
    Fault = 2,
    /// The task waits for an answer or a login.
    NeedsInput = 3,
    /// Ctrl-C, or nobody reads the answer any more: the task was cancelled.
    Interrupted = 130,
}

/// Hosts A2A agents as sandboxed WebAssembly components.
#[derive(Debug, Parser)]
#[command(name = "a2a-hub", version, max_term_width = 100, after_long_help = EXIT_CODES)]
struct CommandLine {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Command,
}

#[derive(Clone, Debug, Args)]
struct Global {
    /// Unix socket of the hub [default: the configuration's, or /tmp/a2a-hub.sock]
    #[arg(long, global = true, value_name = "PATH")]
    socket: Option<String>,
    /// Configuration file [default: config.toml in the data directory]
    #[arg(long, global = true, value_name = "PATH")]
    config: Option<PathBuf>,
    /// Where the hub keeps its data [default: ~/.a2a-hub]
    #[arg(long, global = true, value_name = "PATH")]
    data_dir: Option<String>,
    /// Output for people, or for programs
    #[arg(long, global = true, value_enum, default_value_t = Format::Pretty)]
    format: Format,
    /// Show a terminal every byte that agents say, also what it obeys
    #[arg(long, global = true)]
    raw: bool,
    /// No colours, and Markdown as it was written
    #[arg(long, global = true)]
    plain: bool,
    /// Log at level debug
    #[arg(long, global = true)]
    verbose: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people
    Pretty,
    /// One JSON value a line
    Json,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Start the hub
    Start(start::Start),
    /// Stop the hub: tasks at work get some time, and no new ones are taken
    Stop(stop::Stop),
    /// Stop the hub in the background and start it again as it was started, under the configuration as it is now
    Restart(restart::Restart),
    /// Have the hub read its configuration again, without a restart where that is possible
    Reload,
    /// Copy the store of the hub to a file, also while the hub runs
    Backup(backup::Backup),
    /// Put a copy in the place of the store, while no hub runs; what was there is kept
    Restore(backup::Restore),
    /// Show whether the hub is up, its tasks and its agents
    Status,
    /// List the agents
    Agents {
        /// Ask each for its health first
        #[arg(long)]
        health: bool,
    },
    /// Show, add, remove or reload an agent
    #[command(subcommand)]
    Agent(agent::Agent),
    /// Send a message to an agent and print the answer
    Send(Box<send::Send>),
    /// List the tasks
    Tasks(tasks::Tasks),
    /// Show, cancel or watch one task, or save its files
    #[command(subcommand)]
    Task(task::Task),
    /// List the conversations, show one, or forget one
    Contexts(contexts::Contexts),
    /// List push notifications that are on their way, and retry those that were given up
    Deliveries(deliveries::Deliveries),
    /// Print what the hub in the background logged
    Logs(logs::Logs),
    /// Print the effective settings and where each comes from, or check them
    #[command(subcommand)]
    Config(settings::Command),
    /// Find out what is wrong and how to fix it
    Doctor(doctor::Doctor),
    /// Print a completion script for your shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page: `a2a-hub man | man -l -`
    Man {
        /// Of this command only
        command: Option<String>,
    },
}

/// Reads the command line and does what it says.
pub fn run() -> ExitCode {
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
        // Whoever reads our output has heard enough.
        if !failure::is_broken_pipe(&why) {
            match global.format {
                Format::Pretty => global.console().note(format!("{BLAMES}{why:#}")),
                // There is nowhere left to say that standard output is gone.
                Format::Json => {
                    drop(global.console().print_json(&failure::to_json(&why, Exit::Fault)));
                }
            }
        }
        Exit::Fault
    });
    ExitCode::from(exit as u8)
}

/// Says what is wrong with a command line, or prints the help that it asks for.
fn not_understood(why: &clap::Error) -> ExitCode {
    if !why.use_stderr() {
        // Whoever reads the help has heard enough.
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

/// Whether arguments that could not be read ask for JSON all the same.
fn wants_json(args: impl Iterator<Item = OsString>) -> bool {
    let args: Vec<_> = args.take_while(|arg| arg != "--").collect();
    let apart = args.windows(2).any(|pair| pair[0] == "--format" && pair[1] == "json");
    apart || args.iter().any(|arg| arg == "--format=json")
}

fn carry_out(global: &Global, command: Command) -> anyhow::Result<Exit> {
    match command {
        Command::Start(start) => start::start(global, &start),
        Command::Stop(stop) => stop::stop(global, &stop),
        Command::Restart(restart) => restart::restart(global, &restart),
        Command::Reload => restart::reload(global),
        Command::Backup(backup) => backup::backup(global, &backup),
        Command::Restore(restore) => backup::restore(global, &restore),
        Command::Status => show::status(global),
        Command::Agents { health } => show::agents(global, health),
        Command::Agent(agent) => agent::agent(global, &agent),
        Command::Send(send) => send::send(global, *send),
        Command::Tasks(tasks) => tasks::tasks(global, &tasks),
        Command::Task(task) => task::task(global, &task),
        Command::Contexts(contexts) => contexts::contexts(global, &contexts),
        Command::Deliveries(asked) => deliveries::deliveries(global, &asked),
        Command::Logs(logs) => logs::logs(global, &logs),
        Command::Config(command) => settings::config(global, &command),
        Command::Doctor(doctor) => doctor::doctor(global, &doctor),
        Command::Completions { shell } => manual::completions(global, shell),
        Command::Man { command } => manual::man(global, command.as_deref()),
    }
}

impl Global {
    /// The configuration, with what the command line says on top; `flags` are the command's own.
    fn settings(&self, mut flags: Vec<Flag>) -> Result<Settings, ConfigError> {
        let mut flag = |name, key, value: Option<&str>| {
            flags.extend(value.map(|value| Flag { name, key, value: value.into() }));
        };
        flag("--socket", &["socket", "path"], self.socket.as_deref());
        flag("--data-dir", &["data_dir"], self.data_dir.as_deref());
        flag("--verbose", &["logging", "level"], self.verbose.then_some("debug"));
        Settings::load(self.config.clone(), &flags)
    }

    /// Prints an answer as it is, or as `text` has it for people.
    fn show(
        &self,
        answer: &Value,
        text: impl FnOnce() -> anyhow::Result<Text>,
    ) -> anyhow::Result<()> {
        match self.format {
            Format::Json => self.console().print_json(answer)?,
            Format::Pretty => self.console().print(&text()?)?,
        }
        Ok(())
    }

    /// Where the command prints.
    fn console(&self) -> Console {
        Console::new(Wish { raw: self.raw, plain: self.plain })
    }

    /// Where the hub keeps its data.
    fn data_dir(&self) -> Result<PathBuf, ConfigError> {
        Ok(self.settings(Vec::new())?.config.data_dir()?.to_owned())
    }

    /// Where the hub listens.
    fn socket_path(&self) -> Result<PathBuf, ConfigError> {
        Ok(self.settings(Vec::new())?.config.socket.path)
    }
}

/// Asks the hub one thing.
fn ask(global: &Global, method: &str, params: Value) -> anyhow::Result<Value> {
    block_on(async { Client::connect(global).await?.call(method, params).await })
}

/// Runs what waits, on this thread.
fn block_on<T>(future: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(future)
}
