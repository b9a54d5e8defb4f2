//! The command line: starts and stops the hub, and talks to it as any other client does.

mod client;
mod run;
mod send;
mod show;
mod start;

use crate::config::{Config, DEFAULT_SOCKET};
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::{
    io::{self, Write as _},
    path::PathBuf,
    process::ExitCode,
};

/// What the program returns: documented in the README.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Exit {
    /// It was done.
    Done = 0,
    /// The task failed, or was rejected or cancelled by somebody else.
    TaskFailed = 1,
    /// The command, the configuration or the hub is at fault.
    Fault = 2,
    /// The task waits for an answer or a login.
    NeedsInput = 3,
    /// Ctrl-C: the task was cancelled.
    Interrupted = 130,
}

/// Hosts A2A agents as sandboxed WebAssembly components.
#[derive(Debug, Parser)]
#[command(name = "a2a-hub", version, max_term_width = 100)]
struct CommandLine {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Command,
}

#[derive(Clone, Debug, Args)]
struct Global {
    /// Unix socket of the hub [default: the configuration's, or /tmp/a2a-hub.sock]
    #[arg(long, global = true, env = "A2A_HUB_SOCKET", value_name = "PATH")]
    socket: Option<PathBuf>,
    /// Configuration file [default: config.toml in the data directory]
    #[arg(long, global = true, env = "A2A_HUB_CONFIG", value_name = "PATH")]
    config: Option<PathBuf>,
    /// Where the hub keeps its data [default: ~/.a2a-hub]
    #[arg(long, global = true, env = "A2A_HUB_DATA_DIR", value_name = "PATH")]
    data_dir: Option<PathBuf>,
    /// How to print
    #[arg(long, global = true, value_enum, default_value_t = Format::Pretty)]
    format: Format,
    /// Log everything
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
    /// Stop the hub
    Stop,
    /// Tell how the hub is
    Status,
    /// List the agents
    Agents {
        /// Ask each how it is
        #[arg(long)]
        health: bool,
    },
    /// Send a message to an agent and print the answer
    Send(send::Send),
}

/// Reads the command line and does what it says.
pub fn run() -> ExitCode {
    let CommandLine { global, command } = CommandLine::parse();
    match carry_out(&global, command) {
        Ok(exit) => ExitCode::from(exit as u8),
        Err(why) => {
            let broken_pipe = |cause: &(dyn std::error::Error + 'static)| {
                let io = cause.downcast_ref::<io::Error>();
                io.is_some_and(|io| io.kind() == io::ErrorKind::BrokenPipe)
            };
            // Whoever reads our output has heard enough.
            if !why.chain().any(broken_pipe) {
                note(&format!("a2a-hub: {why:#}"));
            }
            ExitCode::from(Exit::Fault as u8)
        }
    }
}

fn carry_out(global: &Global, command: Command) -> anyhow::Result<Exit> {
    match command {
        Command::Start(start) => start::start(global, &start),
        Command::Stop => start::stop(global),
        Command::Status => show::status(global),
        Command::Agents { health } => show::agents(global, health),
        Command::Send(send) => send::send(global, send),
    }
}

impl Global {
    fn read_config(&self) -> Result<Config, crate::config::ConfigError> {
        let mut config = Config::read(self.config.as_deref(), self.data_dir.as_deref())?;
        if let Some(socket) = &self.socket {
            config.socket.path.clone_from(socket);
        }
        Ok(config)
    }

    /// Where the hub listens. A client needs no configuration to find it at its default.
    fn socket_path(&self) -> anyhow::Result<PathBuf> {
        if let Some(socket) = &self.socket {
            return Ok(socket.clone());
        }
        match self.read_config() {
            Ok(config) => Ok(config.socket.path),
            Err(crate::config::ConfigError::Homeless) => Ok(DEFAULT_SOCKET.into()),
            Err(why) => Err(why.into()),
        }
    }
}

/// Runs what waits, on this thread.
fn block_on<T>(future: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(future)
}

/// Prints a result: standard output holds nothing else.
fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Says something beside the result.
fn note(text: &str) {
    // There is nowhere left to say that standard error is gone.
    let _ = writeln!(io::stderr(), "{text}");
}
