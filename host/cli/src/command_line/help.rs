//! The program's help: commands by the job that they do. `-h` shows the usual ones only.

use clap::Command;
use std::fmt::Write as _;

/// Help of the program, in the order of `clap`, without its list of commands.
const TEMPLATE: &str =
    "{about-with-newline}\n{usage-heading} {usage}\n\n{before-help}Options:\n{options}{after-help}";

/// Commands that most people use every day.
pub(super) const USUAL: [&str; 12] = [
    "start", "status", "agents", "send", "run", "best", "inbox", "web", "tasks", "task", "diff",
    "apply",
];

/// Jobs, with their commands.
pub(super) const JOBS: [(&str, &[&str]); 9] = [
    ("Ask", &["send", "run", "best", "decide"]),
    ("Answer", &["inbox", "allow", "deny", "later", "permissions"]),
    ("Watch", &["web", "tasks", "task", "usage", "events", "conversations", "status", "logs"]),
    ("Changes", &["diff", "apply", "discard", "worktrees"]),
    ("Agents", &["agents", "agent", "flow", "plugin"]),
    ("Automate", &["schedule", "trigger", "topic", "notify"]),
    ("People", &["person", "key", "join"]),
    (
        "Hub",
        &[
            "start",
            "stop",
            "restart",
            "reload",
            "config",
            "workspace",
            "doctor",
            "backup",
            "restore",
            "version",
        ],
    ),
    (
        "Serve other programs",
        &["acp", "mcp", "deliveries", "blackboard", "record", "completions", "man"],
    ),
];

/// Width of a command's name in the list, in columns.
pub(super) const NAME_WIDTH: usize = 15;

/// Lists the commands of the program by job in its help.
pub(super) fn by_job(program: Command) -> Command {
    let usual = format!("{}All commands: a2a-hub --help", list("Commands", &USUAL, &program));
    let lists: Vec<_> = JOBS.iter().map(|(job, names)| list(job, names, &program)).collect();
    let all = lists.concat().trim_end().to_owned();
    program.help_template(TEMPLATE).before_help(usual).before_long_help(all)
}

fn list(job: &str, names: &[&str], program: &Command) -> String {
    let mut text = format!("\u{1b}[1;4m{job}:\u{1b}[0m\n");
    for command in names.iter().filter_map(|name| program.find_subcommand(name)) {
        let (name, about) = (command.get_name(), command.get_about());
        let about = about.map(ToString::to_string).unwrap_or_default();
        // Writing into a `String` never fails.
        let _ = writeln!(text, "  \u{1b}[1m{name:NAME_WIDTH$}\u{1b}[0m{about}");
    }
    text + "\n"
}
