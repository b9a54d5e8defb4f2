//! Schedules and triggers, and the rules that both share: names, messages, and what a run without a
//! person may do.

pub(crate) mod schedule;
pub(crate) mod trigger;

use crate::error::ConfigError;
use a2a_hub_core::grant::permissions::Permissions;
use a2a_hub_protocol::{budget::Budget, id::AgentId};
use jiff::SignedDuration;
use std::time::Duration;

/// Maximum length of a name.
const MAX_NAME: usize = 64;

/// Section of the configuration that starts runs, for its errors.
#[derive(Clone, Copy)]
pub(crate) struct Section<'a> {
    /// `schedule` or `trigger`.
    pub(crate) kind: &'static str,
    /// Name after the dot.
    pub(crate) name: &'a str,
}

/// Settings of a run.
pub(crate) struct RunSettings<'a> {
    pub(crate) agent: Option<&'a AgentId>,
    pub(crate) message: Option<&'a str>,
    pub(crate) input: Option<&'a toml::Table>,
    pub(crate) permissions: Option<Permissions>,
    pub(crate) budget: Option<Budget>,
}

impl Section<'_> {
    /// Error of the setting `key`.
    pub(crate) fn refuse(self, key: &str, why: impl Into<String>) -> ConfigError {
        let Self { kind, name } = self;
        let (name, key) = (name.to_owned(), key.to_owned());
        ConfigError::Automation { kind, name, key, why: why.into() }
    }

    /// Error of the missing setting `key`.
    pub(crate) fn missing(self, key: &str, why: &str) -> ConfigError {
        self.refuse(key, format!("it is missing; {why}"))
    }

    /// Checks the name, which tasks carry.
    pub(crate) fn check_name(self) -> Result<(), ConfigError> {
        let Self { kind, name } = self;
        let is_word =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte);
        if name.is_empty() || name.len() > MAX_NAME || !name.bytes().all(is_word) {
            return Err(ConfigError::AutomationName {
                kind,
                name: name.to_owned(),
                max_length: MAX_NAME,
            });
        }
        Ok(())
    }

    /// Checks agent, message, permissions and budget.
    pub(crate) fn check_run(self, run: &RunSettings<'_>) -> Result<(), ConfigError> {
        if run.agent.is_none() {
            let why = "name an agent or a flow; `a2a-hub agents` lists them";
            return Err(self.missing("agent", why));
        }
        match (run.message, run.input) {
            (None, None) => {
                let why = "say what the agent is to do, or give a flow its `input`";
                return Err(self.missing("message", why));
            }
            (Some(_), Some(_)) => {
                let why = "it is beside `message`; a message has a text or inputs, so leave one of them out";
                return Err(self.refuse("input", why));
            }
            (Some(_), None) | (None, Some(_)) => {}
        }
        match run.permissions {
            None => {
                let why = "nobody watches a run, so say what it may do: \"read-only\", \"ask\" or \"edit\"";
                return Err(self.missing("permissions", why));
            }
            Some(Permissions::Full) => {
                let why = "`full` allows everything, and nobody watches a run; set it to \"read-only\", \"ask\" or \"edit\"";
                return Err(self.refuse("permissions", why));
            }
            Some(Permissions::ReadOnly | Permissions::Ask | Permissions::Edit) => {}
        }
        let budget = run.budget.unwrap_or_default();
        if budget.is_empty() {
            let why = "nobody watches a run, so say what it may use, such as { tasks = 5 }; the limits are `depth`, `tasks`, `tokens` and `costUsd`";
            return Err(self.missing("budget", why));
        }
        if budget.cost_usd.is_some_and(|dollars| !dollars.is_finite() || dollars < 0.0) {
            let why = "it must be a number of dollars from 0 on, such as 2.5";
            return Err(self.refuse("budget.costUsd", why));
        }
        Ok(())
    }
}

/// Parses a duration of at most `max`.
pub(crate) fn duration(text: &str, max: Duration) -> Option<Duration> {
    let parsed = text.parse::<SignedDuration>().ok()?;
    Duration::try_from(parsed).ok().filter(|delay| *delay <= max)
}
