//! Any program that speaks the Agent Client Protocol as an agent: one process per conversation,
//! reused while it is parked. The hub makes an agent of this component for each section of its
//! configuration that has the key `acp`; the setting of the same name says which program it drives.

mod mode;
mod program;
mod refusal;

use std::time::Duration;

use a2a_hub_sdk::cli::acp::{self, Acp, Offered, Refusal, Speaker};
use a2a_hub_sdk::cli::{self, Check, Cli, End, Job, Profile};
use a2a_hub_sdk::prelude::*;
use a2a_hub_sdk::serde_json::Value;

use program::{AcpProgram, Introduction};

/// Agent that drives the program that the configuration names.
pub struct AnyAcp;

impl Agent for AnyAcp {
    /// Card of an agent whose program was never started; the hub adds what the program says of
    /// itself.
    fn card() -> Card {
        cli::card::<Self>(
            "Drives a program that speaks the Agent Client Protocol",
            env!("CARGO_PKG_VERSION"),
        )
    }

    fn run(ctx: &Context, task: &Task) -> Run {
        AcpProgram::from_settings(ctx)?;
        cli::run::<Self>(ctx, task)
    }

    fn health(ctx: &Context) -> Health {
        match AcpProgram::from_settings(ctx) {
            Ok(_) => cli::health::<Self>(ctx),
            Err(why) => Health::unhealthy(why.text()),
        }
    }
}
export!(AnyAcp, manifest = "../manifest.toml");

impl Cli for AnyAcp {
    type Driver = Acp<Configured>;

    const NAME: &'static str = "ACP agent";
    const PROGRAM: &'static str = "program";
    const TESTED: &'static str = "";
    const INSTALL: &'static str = "";
    const LOGIN: &'static str = "";
    // A check starts the program, which may take seconds.
    const CHECK_EVERY: Duration = Duration::from_secs(30 * 60);
    const TAKES_MODE: bool = true;
    const TAKES_DIRECTORIES: bool = true;

    fn profile(ctx: &Context) -> Profile {
        AcpProgram::from_settings(ctx).unwrap_or_default().profile()
    }

    fn command(ctx: &Context, _: &Job) -> Result<Command, Failure> {
        Ok(AcpProgram::from_settings(ctx)?.command())
    }

    fn driver(ctx: &Context, job: &Job) -> Result<Self::Driver, Failure> {
        let directory = acp::directory(job)?;
        Ok(Acp::new(Configured::from_settings(ctx)?, job.clone(), directory))
    }

    fn check(ctx: &Context) -> Result<Check, Failure> {
        let (program, directory) = (AcpProgram::from_settings(ctx)?, ctx.setting("workspace"));
        let directory = directory.as_deref().unwrap_or("/");
        let mut driver = Acp::new(Configured::from_settings(ctx)?, Job::default(), directory);
        let check = acp::check(ctx, &mut driver, program.command())?;
        driver.speaker().introduction.store(ctx);
        Ok(check)
    }
}

/// Program of one agent, as the driver knows it.
pub struct Configured {
    program: AcpProgram,
    /// Method of logging in that the operator chose.
    login_method: Option<String>,
    /// Facts that the program states about itself.
    introduction: Introduction,
}

impl Configured {
    /// Reads the settings of the agent.
    pub fn from_settings(ctx: &Context) -> Result<Self, Failure> {
        let program = AcpProgram::from_settings(ctx)?;
        let login_method = ctx.setting("login_method").or_else(|| program.login_method.clone());
        Ok(Self { program, login_method, introduction: Introduction::default() })
    }

    /// Text of a missing login, with the ways that the program names.
    fn with_ways(&self, text: &str) -> String {
        self.introduction.with_ways(text, &self.program)
    }
}

impl Speaker for Configured {
    const LOADS: bool = true;
    const SHOWS_CHOICES: bool = true;
    const NAMES_TERMINAL_LOGINS: bool = true;

    fn vendor(&self) -> &str {
        &self.program.program
    }

    fn asks_before_report(&self) -> bool {
        self.program.program == "opencode"
    }

    fn name(&self) -> &str {
        &self.program.name
    }

    fn greeted(&mut self, result: &Value) {
        self.introduction = Introduction::parse(result);
    }

    fn login_method(&self) -> Option<&str> {
        self.login_method.as_deref()
    }

    fn sums_up(&self) -> bool {
        self.program.usage_is_of_session
    }

    fn mode(&mut self, job: &Job, offered: &Offered) -> Result<Option<String>, String> {
        self.introduction.offers(offered);
        mode::select(&self.program, job, offered)
    }

    fn end(&self, refusal: &Refusal) -> End {
        match refusal::end(refusal) {
            End::LoginNeeded(text) => End::LoginNeeded(self.with_ways(&text)),
            end @ (End::Completed { .. } | End::Failed { .. } | End::SessionLost) => end,
        }
    }

    fn login_failed(&self, refusal: &Refusal) -> End {
        let method = self.login_method.as_deref().unwrap_or_default();
        let text = format!("the login by `{method}` failed: {}", refusal.text);
        End::LoginNeeded(self.with_ways(&text))
    }
}
