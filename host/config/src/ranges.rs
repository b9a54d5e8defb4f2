//! Ranges of numeric settings: useless or mistyped values are refused before a hub starts with
//! them.

use crate::{agent::AgentConfig, error::ConfigError, settings::Config};
use a2a_hub_core::grant::resource_limits::{MAX_WAIT_MS, OutOfRange};
use a2a_hub_protocol::id::AgentId;

/// Upper bound of the hub's intervals, in milliseconds.
const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// Upper bound of the memory for compiling a component, in MiB: no machine has more.
const MAX_COMPILE_MB: u64 = 1 << 20;

/// Upper bound of a price, in dollars per million tokens.
const MAX_PRICE: f64 = 1e6;

impl Config {
    pub(crate) fn check_numbers(&self) -> Result<(), ConfigError> {
        let max_tasks = self.max_tasks.map_or(1, u64::from);
        let max_streams = u64::try_from(self.max_streams()).unwrap_or(u64::MAX);
        for (name, value, max) in [
            ("clients.timeout_ms", self.clients.timeout_ms, DAY_MS),
            ("health.interval_ms", self.health.interval_ms, DAY_MS),
            ("breaker.failures", self.breaker.failures.into(), u32::MAX.into()),
            ("breaker.pause_ms", self.breaker.pause_ms, DAY_MS),
            ("breaker.max_pause_ms", self.breaker.max_pause_ms, DAY_MS),
            ("push.give_up_ms", self.push.give_up_ms, 30 * DAY_MS),
            ("plugins.compile_cpu_ms", self.plugins.compile_cpu_ms, DAY_MS),
            ("plugins.compile_memory_mb", self.plugins.compile_memory_mb, MAX_COMPILE_MB),
            ("max_tasks", max_tasks, u64::MAX),
            ("max_streams", max_streams, u64::MAX),
        ] {
            within(name, value, 1, max)?;
        }
        within("stop.drain_ms", self.stop.drain_ms, 0, DAY_MS)?;
        within(
            "idempotency_window_ms",
            self.idempotency_window_ms.unwrap_or_default(),
            0,
            MAX_WAIT_MS,
        )?;
        for (model, price) in &self.prices {
            for (name, dollars) in price.numbers() {
                if !(0.0..=MAX_PRICE).contains(&dollars) {
                    let (name, max) = (format!("prices.{model}.{name}"), MAX_PRICE);
                    return Err(ConfigError::Price { name, dollars, max });
                }
            }
        }
        self.agents.iter().try_for_each(|(agent, config)| config.check_numbers(agent))
    }
}

impl AgentConfig {
    fn check_numbers(&self, agent: &AgentId) -> Result<(), ConfigError> {
        if self.max_running == Some(0) {
            return Err(ConfigError::Idle(agent.clone()));
        }
        for (name, value) in [
            ("timeout_ms", self.timeout_ms),
            ("answer_timeout_ms", self.answer_timeout_ms),
            ("approval_timeout_ms", self.approval_timeout_ms),
            ("quota_wait_ms", self.quota_wait_ms),
        ] {
            within(format!("agents.{agent}.{name}"), value, 1, MAX_WAIT_MS)?;
        }
        let granted = self.grant.iter().flat_map(|grant| &grant.limits);
        let granted = granted.map(|(name, number)| ("grant.limits", *name, *number));
        let configured = self.limits.configured().map(|(name, number)| ("limits", name, number));
        for (section, name, value) in configured.chain(granted) {
            name.check(value).map_err(|why| ConfigError::Range {
                name: format!("agents.{agent}.{section}.{name}"),
                value,
                why,
            })?;
        }
        Ok(())
    }
}

fn within(name: impl Into<String>, value: u64, min: u64, max: u64) -> Result<(), ConfigError> {
    OutOfRange::check(value, min, max).map_err(|why| ConfigError::Range {
        name: name.into(),
        value,
        why,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn out_of_range_numbers_are_refused() {
        let read = |text: &str| toml::from_str::<Config>(text).unwrap().check();
        for (wrong, why) in [
            ("max_streams = 0", "set `max_streams` to 0: it must be 1 or more"),
            ("max_tasks = 0", "set `max_tasks` to 0: it must be 1 or more"),
            (
                "agents.x.timeout_ms = 0",
                "set `agents.x.timeout_ms` to 0: it must be from 1 to 31622400000",
            ),
            (
                "agents.x.limits.memory_mb = 0",
                "set `agents.x.limits.memory_mb` to 0: it must be from 1 to 1024",
            ),
            (
                "agents.x.limits.memory_mb = 2000",
                "set `agents.x.limits.memory_mb` to 2000: it must be from 1 to 1024",
            ),
            (
                "agents.x.grant.limits.cpu_ms = 0",
                "set `agents.x.grant.limits.cpu_ms` to 0: it must be from 1 to 31622400000",
            ),
            (
                "prices.'gpt-5' = { input = -1, output = 1 }",
                "set `prices.gpt-5.input` to -1: it must be from 0 to 1000000 dollars per million tokens",
            ),
            (
                "prices.m = { input = 1, output = 1, cached = nan }",
                "set `prices.m.cached` to NaN: it must be from 0 to 1000000 dollars per million tokens",
            ),
            (
                "agents.x.max_running = 0",
                "run no task of `x`: set its `max_running` to 1 or more, or its `enabled` to false",
            ),
        ] {
            assert_eq!(read(wrong).unwrap_err().to_string(), why);
        }
        for good in [
            "idempotency_window_ms = 0",
            "stop.drain_ms = 0",
            "agents.x.limits = { http_requests = 0, log_bytes = 0, kept_programs = 0, kept_idle_ms = 0 }",
        ] {
            assert!(read(good).is_ok(), "{good}");
        }
    }
}
