//! The `a2a-hub` program: a command line that starts and stops the hub and is one of its clients,
//! or a helper process of a hub, such as the minder of one program's process tree.

mod automation;
#[cfg(feature = "hub")]
mod bundle;
mod client;
mod command_line;
mod commands;
mod events;
mod inbox;
#[cfg(feature = "hub")]
mod log_files;
mod people;
mod permissions;
mod remote_commands;
mod search;
mod since;
#[cfg(feature = "hub")]
#[cfg(test)]
mod surface;
mod ui;
mod usage;
#[cfg(feature = "hub")]
mod web;

#[cfg(feature = "hub")]
use crate::automation::{blackboard, notify, record};
use crate::automation::{schedule, topic, trigger};
use crate::{
    client::{
        global::{Format, Global},
        hub_client::ask,
        runtime::block_on,
    },
    ui::{
        console::{Console, Wish},
        exit::Exit,
    },
};
#[cfg(feature = "hub")]
use a2a_hub_config::Config;
use a2a_hub_config::is_colourless;
#[cfg(feature = "hub")]
use anyhow::Context as _;
#[cfg(feature = "hub")]
use clap::Parser as _;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use command_line::{Command, CommandLine};
use std::{ffi::OsString, process::ExitCode};

#[cfg(not(feature = "hub"))]
fn main() -> ExitCode {
    follow_the_command_line()
}

#[cfg(feature = "hub")]
fn main() -> ExitCode {
    a2a_hub::minded().unwrap_or_else(follow_the_command_line)
}

/// Parses the command line and executes the command.
fn follow_the_command_line() -> ExitCode {
    match commands::manual::complete() {
        Ok(true) => return ExitCode::SUCCESS,
        Ok(false) => {}
        Err(why) => return not_understood(&why),
    }
    let CommandLine { global, command } = match CommandLine::of_process() {
        Ok(parsed) => parsed,
        Err(why) => return not_understood(&why),
    };
    let ends_task = matches!(command, Some(Command::Send(_) | Command::Task(_)));
    let carried_out = carry_out(&global, command).map(|exit| global.exit.status(exit, ends_task));
    let status = carried_out.unwrap_or_else(|why| {
        // The reader of the output has enough of it, as `head` does.
        if ui::failure::is_broken_pipe(&why) {
            return Exit::Done as u8;
        }
        match global.format {
            Format::Pretty => global.console().note(ui::failure::to_text(&why)),
            // A failed write to standard output cannot be reported anywhere.
            Format::Json => {
                drop(global.console().print_json(&ui::failure::to_json(&why, Exit::Fault)));
            }
        }
        ui::failure::status(&why, global.exit)
    });
    ExitCode::from(status)
}

/// Reports a command-line error, or prints the requested help.
fn not_understood(why: &clap::Error) -> ExitCode {
    if !why.use_stderr() {
        return match why.print() {
            Ok(()) => ExitCode::SUCCESS,
            // The reader of the output has enough of it, as `head` does.
            Err(unwritten) if unwritten.kind() == std::io::ErrorKind::BrokenPipe => {
                ExitCode::SUCCESS
            }
            Err(_) => ExitCode::from(Exit::Fault as u8),
        };
    }
    let console = Console::new(Wish { raw: false, plain: is_colourless() });
    if wants_json(std::env::args_os().skip(1)) {
        let _ = console.print_json(&ui::failure::usage(why));
    } else {
        console.note(why.render().to_string().trim_end());
        let typed = std::env::args_os().skip(1).map(|arg| arg.to_string_lossy().into_owned());
        if let Some(help) = quoting_help(why, typed) {
            console.note(help);
        }
        if cfg!(not(feature = "hub")) && why.kind() == ErrorKind::InvalidSubcommand {
            console.note(ONLY_CLIENT);
        }
    }
    ExitCode::from(Exit::Fault as u8)
}

/// Help for a command that only the program with the hub has.
const ONLY_CLIENT: &str = "help: this program is a client of remote hubs; the other commands are in \
                           the program with the hub, for Linux";

/// Commands that take a text.
const WITH_TEXT: [&str; 5] = ["send", "ask", "run", "best", "answer"];

/// Help for a text whose quotes were forgotten; none for other errors.
fn quoting_help(why: &clap::Error, args: impl Iterator<Item = String>) -> Option<String> {
    let (ErrorKind::UnknownArgument, ContextValue::String(surplus)) =
        (why.kind(), why.get(ContextKind::InvalidArg)?)
    else {
        return None;
    };
    let args: Vec<_> = args.take_while(|arg| arg != "--").collect();
    let takes_text = args.iter().any(|arg| WITH_TEXT.contains(&arg.as_str()));
    let at = args.iter().position(|arg| arg == surplus)?;
    let is_word = |arg: &String| !arg.starts_with('-');
    let before = args.get(at.checked_sub(1)?).filter(|before| is_word(before) && takes_text)?;
    let more = if args.get(at + 1).is_some_and(is_word) { " ..." } else { "" };
    is_word(surplus).then(|| format!("help: quote the message: \"{before} {surplus}{more}\""))
}

/// True if arguments that could not be parsed request JSON.
fn wants_json(args: impl Iterator<Item = OsString>) -> bool {
    let args: Vec<_> = args.take_while(|arg| arg != "--").collect();
    let apart = args.windows(2).any(|pair| pair[0] == "--format" && pair[1] == "json");
    apart || args.iter().any(|arg| arg == "--format=json")
}

fn carry_out(global: &Global, command: Option<Command>) -> anyhow::Result<Exit> {
    global.require_config()?;
    #[cfg(not(feature = "hub"))]
    let global = &remote_commands::with_joined_hub(global);
    let Some(command) = command else { return commands::status::overview(global) };
    #[cfg(feature = "hub")]
    remote_commands::require_remote_support(global, &command)?;
    match command {
        #[cfg(feature = "hub")]
        Command::Start(start) => commands::start::start(global, &start),
        #[cfg(feature = "hub")]
        Command::Stop(stop) => commands::stop::stop(global, &stop),
        #[cfg(feature = "hub")]
        Command::Restart(restart) => commands::restart::restart(global, &restart, started_by),
        #[cfg(feature = "hub")]
        Command::Reload => commands::restart::reload(global),
        #[cfg(feature = "hub")]
        Command::Backup(backup) => commands::backup::backup(global, &backup),
        #[cfg(feature = "hub")]
        Command::Restore(restore) => commands::backup::restore(global, &restore),
        Command::Status => commands::status::status(global),
        Command::Agents(args) => commands::agents::agents(global, &args),
        Command::Agent(agent) => commands::agent::agent(global, &agent),
        #[cfg(feature = "hub")]
        Command::Flow(flow) => commands::flow::flow(global, &flow),
        Command::Trigger(trigger) => trigger::trigger(global, &trigger),
        #[cfg(feature = "hub")]
        Command::Notify(command) => notify::notify(global, &command),
        Command::Schedule(schedule) => schedule::schedule(global, &schedule),
        Command::Publish(publish) => topic::publish(global, &publish),
        Command::Topic(topic) => topic::topic(global, &topic),
        #[cfg(feature = "hub")]
        Command::Plugin(plugin) => commands::plugin::plugin(global, &plugin),
        #[cfg(feature = "hub")]
        Command::Run(run) => commands::flow::run::run(global, *run),
        #[cfg(feature = "hub")]
        Command::Best(best) => commands::flow::best::best(global, *best),
        #[cfg(feature = "hub")]
        Command::Decide(decide) => commands::flow::decide::decide(global, *decide),
        #[cfg(feature = "hub")]
        Command::Record(command) => record::record(global, &command),
        #[cfg(feature = "hub")]
        Command::Blackboard(args) => blackboard::blackboard(global, &args),
        Command::Send(send) => {
            let Some(mut send) = send.with_message(global)? else { return Ok(Exit::Interrupted) };
            send.is_remote = global.hub.is_some();
            if client::remote::is_url(&send.agent) {
                return client::remote_task::send(global, send);
            }
            #[cfg(not(feature = "hub"))]
            commands::remote_only::require_one_receiver(&send)?;
            #[cfg(feature = "hub")]
            let send = match commands::flow::broadcast::receivers(&send)? {
                Some(agents) => commands::flow::broadcast::to_all(global, send, &agents)?,
                None => send,
            };
            commands::send::send(global, send)
        }
        #[cfg(feature = "hub")]
        Command::Acp(args) => commands::bridge::acp(global, &args),
        #[cfg(feature = "hub")]
        Command::Mcp(args) => commands::bridge::mcp(global, &args),
        Command::Tasks(tasks) => commands::tasks::tasks(global, &tasks),
        Command::Usage(args) => usage::usage(global, &args),
        Command::Events(args) => events::events(global, &args),
        Command::Task(task) => commands::task::task(global, task),
        Command::Inbox(args) => inbox::inbox(global, &args),
        Command::Allow(args) => inbox::allow(global, &args),
        Command::Deny(args) => inbox::deny(global, &args),
        Command::Later(args) => inbox::later(global, &args),
        Command::Permissions(command) => permissions::permissions(global, &command),
        Command::Person(command) => people::person(global, &command),
        Command::Key(command) => people::key(global, &command),
        Command::Join(args) => people::join(global, args),
        #[cfg(feature = "hub")]
        Command::Web(args) => web::web(global, &args),
        Command::Diff(args) => commands::task::worktrees::diff(global, &args),
        Command::Apply(args) => commands::task::worktrees::apply(global, &args),
        Command::Discard(args) => commands::task::worktrees::discard(global, &args),
        Command::Contexts(contexts) => commands::contexts::contexts(global, &contexts),
        Command::Deliveries(args) => commands::deliveries::deliveries(global, &args),
        #[cfg(feature = "hub")]
        Command::Logs(logs) => commands::logs::logs(global, &logs),
        #[cfg(feature = "hub")]
        Command::Config(command) => commands::config::config(global, &command),
        #[cfg(feature = "hub")]
        Command::Workspace(command) => commands::workspace::workspace(global, &command),
        #[cfg(feature = "hub")]
        Command::Worktrees(args) => commands::task::worktrees::worktrees(global, &args),
        #[cfg(feature = "hub")]
        Command::Doctor(doctor) => commands::doctor::doctor(global, &doctor),
        Command::Completions { shell } => commands::manual::completions(global, shell),
        #[cfg(feature = "hub")]
        Command::Carry { to } => bundle::carry_to(&to),
        Command::Version => commands::status::version(global),
        Command::Man { command } => commands::manual::man(global, command.as_deref()),
    }
}

/// Returns the configuration of the hub that these arguments start; `None` for a command that
/// starts no hub.
#[cfg(feature = "hub")]
fn started_by(arguments: &[OsString]) -> anyhow::Result<Option<Config>> {
    let program = OsString::from("a2a-hub");
    let line = CommandLine::try_parse_from(std::iter::once(&program).chain(arguments));
    let CommandLine { global, command } = line.context("read how it was started")?;
    let Some(Command::Start(start)) = command else { return Ok(None) };
    Ok(Some(commands::start::settings(&global, &start)?.config))
}
