//! Settings of schedules, which send messages at planned times.

use super::{RunSettings, Section, duration};
use crate::error::ConfigError;
use a2a_hub_clock::schedule::{Missed, Overlap, SchedulePlan, Times};
use a2a_hub_core::{grant::permissions::Permissions, identity::PersonName};
use a2a_hub_protocol::{
    budget::Budget,
    id::AgentId,
    scheduled::{AnswerRule, RestartRule},
};
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};
use std::{path::PathBuf, time::Duration};

/// Upper bound of `jitter`: planned times of a day stay on their day, more or less.
const MAX_JITTER: Duration = Duration::from_hours(24);

/// `[schedule.<id>]`: a message that the hub sends at planned times.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Schedule {
    /// Planned times as a cron expression of five fields.
    pub cron: Option<String>,
    /// Time zone of the expression by its IANA name; by default that of the system.
    pub zone: Option<String>,
    /// Person as whom the runs begin tasks, in the person's tenant; the operator by default.
    pub owner: Option<PersonName>,
    /// Agent, flow or group that gets the message.
    pub agent: Option<AgentId>,
    /// Text of the message.
    pub message: Option<String>,
    /// Data of the message, in place of a text: the inputs of a flow.
    pub input: Option<toml::Table>,
    /// Most that the agent's programs may do without asking; `full` is refused.
    pub permissions: Option<Permissions>,
    /// Limits of the task's descendants.
    pub budget: Option<Budget>,
    /// Rule for a planned time at which the previous run is still at work.
    pub overlap: Overlap,
    /// Rule for planned times at which the hub did not run.
    pub missed: Missed,
    /// Upper bound of the delay after a planned time, such as `5m`; none by default.
    pub jitter: Option<String>,
    /// Rule for questions of the task.
    pub answers: AnswerRule,
    /// Rule for a run that the end of the hub interrupts: `again` starts it again once.
    pub on_restart: RestartRule,
    /// Working directory of the task.
    pub working_directory: Option<PathBuf>,
}

impl Schedule {
    /// Plan of the schedule; the error is the reason and the way out.
    pub fn plan(&self, name: &str) -> Result<SchedulePlan, ConfigError> {
        let section = Section { kind: "schedule", name };
        let Some(cron) = &self.cron else {
            let why = "say when it runs, such as \"0 3 * * *\" for each day at 3:00";
            return Err(section.missing("cron", why));
        };
        let zone = match &self.zone {
            None => TimeZone::system(),
            Some(zone) => TimeZone::get(zone).map_err(|_| {
                let why = format!(
                    "no time zone of this system is called `{zone}`; take an IANA name, such as \"Europe/Berlin\", or leave it out for the system's"
                );
                section.refuse("zone", why)
            })?,
        };
        let times = Times::parse(cron, zone);
        let times =
            times.map_err(|why| section.refuse("cron", format!("`{cron}` is no plan: {why}")))?;
        section.check_run(&RunSettings {
            agent: self.agent.as_ref(),
            message: self.message.as_deref(),
            input: self.input.as_ref(),
            permissions: self.permissions,
            budget: self.budget,
        })?;
        let jitter = match &self.jitter {
            None => Duration::ZERO,
            Some(text) => duration(text, MAX_JITTER).ok_or_else(|| {
                let why = format!(
                    "`{text}` is no delay; write one from 0s to 24h, such as \"5m\" or \"90s\""
                );
                section.refuse("jitter", why)
            })?,
        };
        Ok(SchedulePlan { times, overlap: self.overlap, missed: self.missed, jitter })
    }

    pub(crate) fn check(&self, name: &str) -> Result<(), ConfigError> {
        Section { kind: "schedule", name }.check_name()?;
        self.plan(name).map(drop)
    }

    /// Expression and zone as one text, which changes with the planned times.
    pub fn rule(&self) -> String {
        [&self.cron, &self.zone].map(|it| it.as_deref().unwrap_or_default()).join(" in ")
    }
}

#[cfg(test)]
mod tests {
    use super::RestartRule;
    use crate::{Config, settings::read_checked as read};

    const NIGHTLY: &str = r#"
        [schedule.nightly]
        cron = "0 3 * * *"
        agent = "review"
        message = "Review yesterday's changes"
        permissions = "read-only"
        budget = { tasks = 5 }
    "#;

    #[test]
    fn whole_schedule_is_read() {
        let all = format!(
            "{NIGHTLY}\nzone = 'UTC'\noverlap = 'queue'\nmissed = 'skip'\njitter = '5m'\nanswers = 'inbox'\non_restart = 'fail'\nworking_directory = '/src'\nowner = 'ada'"
        );
        let config = read(&all).unwrap();
        let plan = config.schedule["nightly"].plan("nightly").unwrap();
        assert_eq!(plan.jitter.as_secs(), 300);
        assert_eq!(config.schedule["nightly"].on_restart, RestartRule::Fail);
        assert_eq!(config.schedule["nightly"].owner.as_ref().unwrap().as_str(), "ada");
        let usual = read(NIGHTLY).unwrap().schedule["nightly"].on_restart;
        assert_eq!(usual, RestartRule::Again);
        let again: Config = toml::from_str(&toml::to_string(&config).unwrap()).unwrap();
        assert_eq!(again.schedule, config.schedule);
        let flow = NIGHTLY.replace(
            "message = \"Review yesterday's changes\"",
            "input = { task = 'x', deep = 2 }",
        );
        assert!(read(&flow).is_ok());
    }

    #[test]
    fn invalid_schedule_names_rule_and_way_out() {
        let without = |key: &str| -> String {
            NIGHTLY
                .lines()
                .filter(|line| !line.trim().starts_with(key))
                .map(|line| format!("{line}\n"))
                .collect()
        };
        let with = |from: &str, to: &str| NIGHTLY.replace(from, to);
        for (text, why) in [
            (
                without("cron"),
                "set `schedule.nightly.cron`: it is missing; say when it runs, such as \"0 3 * * *\"",
            ),
            (
                without("agent"),
                "set `schedule.nightly.agent`: it is missing; name an agent or a flow; `a2a-hub agents` lists them",
            ),
            (
                without("message"),
                "set `schedule.nightly.message`: it is missing; say what the agent is to do",
            ),
            (
                without("permissions"),
                "set `schedule.nightly.permissions`: it is missing; nobody watches a run, so say what it may do",
            ),
            (
                without("budget"),
                "set `schedule.nightly.budget`: it is missing; nobody watches a run",
            ),
            (
                format!("{NIGHTLY}\nowner = 'Ada L'"),
                "a person's name has 1 to 63 lower-case letters",
            ),
            (with("{ tasks = 5 }", "{}"), "set `schedule.nightly.budget`: it is missing"),
            (
                with("{ tasks = 5 }", "{ costUsd = -1 }"),
                "set `schedule.nightly.budget.costUsd`: it must be a number",
            ),
            (with("{ tasks = 5 }", "{ dollars = 1 }"), "unknown field `dollars`"),
            (
                with("\"read-only\"", "\"full\""),
                "set `schedule.nightly.permissions`: `full` allows everything",
            ),
            (with("\"read-only\"", "\"approve\""), "unknown variant `approve`"),
            (
                with("0 3 * * *", "0 3 * *"),
                "set `schedule.nightly.cron`: `0 3 * *` is no plan: it has 4 fields and needs five",
            ),
            (
                format!("{NIGHTLY}\nzone = 'Europe/Berlim'"),
                "set `schedule.nightly.zone`: no time zone of this system is called `Europe/Berlim`",
            ),
            (
                format!("{NIGHTLY}\njitter = 'soon'"),
                "set `schedule.nightly.jitter`: `soon` is no delay",
            ),
            (format!("{NIGHTLY}\njitter = '2d'"), "is no delay; write one from 0s to 24h"),
            (
                format!("{NIGHTLY}\ninput = {{ task = 'x' }}"),
                "set `schedule.nightly.input`: it is beside `message`",
            ),
            (format!("{NIGHTLY}\noverlap = 'stack'"), "unknown variant `stack`"),
            (format!("{NIGHTLY}\nevery = '1d'"), "unknown field `every`"),
            (
                format!("{NIGHTLY}\non_restart = 'retry'"),
                "unknown variant `retry`, expected `again` or `fail`",
            ),
            (
                with("schedule.nightly", "schedule.'Every night'"),
                "call a schedule `Every night`: a name has 1 to 64 of a-z, 0-9, `-` and `_`",
            ),
        ] {
            let refused = read(&text).unwrap_err();
            assert!(refused.contains(why), "{text}: {refused}");
        }
    }
}
