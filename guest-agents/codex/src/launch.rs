//! Safe command line of the CLI, with the prompt on standard input, and its health check.

use std::time::Duration;

use a2a_hub_sdk::cli::{Check, Cli, Job, program_version};
use a2a_hub_sdk::{Command, Context, Failure, foreign};

use crate::Codex;
use crate::driver::CodexDriver;
use crate::end::MISSING_VARIABLE;

/// Settings of a run, passed by `-c`: a later version that does not know a setting ignores it with
/// a warning.
const CONFIG: [&str; 5] = [
    "analytics.enabled=false",
    "check_for_update_on_startup=false",
    // Otherwise every start fetches the catalogue of plug-ins from the network.
    "features.plugins=false",
    // Without a network Codex would retry for ever.
    "features.unbounded_connection_retries=false",
    // Programs that the model runs see no keys.
    "shell_environment_policy.inherit=\"core\"",
];

impl Cli for Codex {
    type Driver = CodexDriver;

    const NAME: &'static str = "Codex";
    const PROGRAM: &'static str = "codex";
    const TESTED: &'static str = "0.171.0";
    const INSTALL: &'static str = "npm install -g @openai/codex";
    const LOGIN: &'static str = "codex login";
    /// `codex doctor` also contacts the provider.
    const CHECK_EVERY: Duration = Duration::from_secs(10 * 60);
    const MAX_PROMPT_CHARS: usize = 1_048_576;
    const TAKES_INSTRUCTIONS: bool = true;
    const TAKES_DIRECTORIES: bool = true;

    fn command(_: &Context, _: &Job) -> Result<Command, Failure> {
        let config = CONFIG.into_iter().flat_map(|setting| ["-c", setting]);
        Ok(Command::new("codex").arg("app-server").args(config).env("NO_COLOR", "1"))
    }

    fn login_steps(why: &str) -> Option<String> {
        let variable = missing_variable(why)?;
        Some(format!(
            "set `{variable}`, write `env = [\"{variable}\"]` below `[agents.codex]` in the hub's configuration and run \
             `a2a-hub restart`"
        ))
    }

    fn driver(_: &Context, job: &Job) -> Result<CodexDriver, Failure> {
        Ok(CodexDriver::new(job))
    }

    fn check(ctx: &Context) -> Result<Check, Failure> {
        let version = program_version(ctx, Command::new("codex").arg("--version"))?;
        let mut report = String::new();
        // It exits with 1 for many unrelated reasons, such as an unreachable provider.
        ctx.run_lines(Command::new("codex").args(["doctor", "--json"]), |line| {
            report.push_str(line);
            Ok(())
        })?;
        Ok(Check { version, login_missing: login_missing(&report) })
    }
}

/// Variable with the key of the user's own provider that is not set, as Codex reports it.
fn missing_variable(why: &str) -> Option<&str> {
    let (_, rest) = why.split_once(MISSING_VARIABLE)?;
    let (_, rest) = rest.split_once('`')?;
    let (variable, _) = rest.split_once('`')?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    (!variable.is_empty() && variable.chars().all(is_name)).then_some(variable)
}

/// Reason why the login is missing, from the report of `codex doctor --json`.
fn login_missing(report: &str) -> Option<String> {
    let report = match foreign::read(report) {
        Ok(report) => report,
        Err(error) => return Some(format!("codex does not tell whether it is logged in: {error}")),
    };
    let check = &report["checks"]["auth.credentials"];
    let details = &check["details"];
    // A provider of the user's own configuration; a login at the vendor would not help.
    if let Some(variable) = details["provider auth env var"].as_str()
        && let Some(variable) = variable.strip_suffix(" (missing)")
    {
        return Some(format!("{MISSING_VARIABLE}: `{variable}`."));
    }
    if check["status"] == "fail" {
        let why = check["summary"].as_str().unwrap_or("no login");
        return Some(format!("codex is not logged in: {why}"));
    }
    // `codex exec` reads a key from there; `codex app-server` does not. A provider of the user's
    // own configuration may.
    let variables = details["auth env vars present"].as_str()?;
    if details["model provider requires OpenAI auth"] == "false" {
        return None;
    }
    Some(format!(
        "codex is not logged in: a key in {variables} counts once it was stored with `codex login --with-api-key`"
    ))
}
