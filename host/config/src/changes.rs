//! Differences between two configurations, and the part that a running hub can apply.

use crate::{
    plugins::Plugins,
    settings::{Config, Logging, Tls},
};
use a2a_hub_protocol::id::AgentId;
use std::{collections::BTreeSet, fmt};
use toml::{Table, Value};

/// Configuration that a running hub applies.
#[derive(Debug)]
pub struct Followed {
    /// Effective configuration from now on.
    pub config: Config,
    /// Settings that changed.
    pub changed: Vec<Setting>,
    /// Settings that changed in the file, but take effect only after a restart.
    pub needs_restart: Vec<Setting>,
}

/// Path of a setting, or of an added or removed section, such as `agents.echo.timeout_ms`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Setting(Vec<String>);

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("."))
    }
}

impl Followed {
    /// True if one of these sections, or a setting in it, changed.
    pub fn concerns(&self, sections: &[&str]) -> bool {
        self.changed.iter().any(|Setting(path)| {
            path.first().is_some_and(|first| sections.contains(&first.as_str()))
        })
    }

    /// Names below a section such as `agents` that were added, removed or changed.
    pub fn named(&self, section: &str) -> BTreeSet<AgentId> {
        let its = self
            .changed
            .iter()
            .filter(|Setting(path)| path.first().is_some_and(|it| it == section));
        its.filter_map(|Setting(path)| AgentId::parse(path.get(1)?.as_str()).ok()).collect()
    }
}

impl Config {
    /// Merges `new` into this configuration as far as a running hub can apply it. Settings for
    /// listening sockets, for components built at start, or already published stay until a restart.
    pub fn follow(&self, new: &Self) -> Result<Followed, toml::ser::Error> {
        let old = self.clone();
        let config = Self {
            data_dir: old.data_dir,
            socket: old.socket,
            http: old.http,
            // The denied certificates are read anew for each handshake.
            tls: Tls { denied: new.tls.denied.clone(), ..old.tls },
            clients: old.clients,
            tenants: old.tenants,
            public_url: old.public_url,
            root_agent: old.root_agent,
            max_tasks: old.max_tasks,
            max_streams: old.max_streams,
            idempotency_window_ms: old.idempotency_window_ms,
            push: old.push,
            telemetry: old.telemetry,
            extensions: old.extensions,
            logging: Logging { level: new.logging.level, ..old.logging },
            // Listed field by field, so that the author of a new setting must decide.
            workspaces: new.workspaces.clone(),
            agents: new.agents.clone(),
            remote: new.remote.clone(),
            aliases: new.aliases.clone(),
            routing: new.routing.clone(),
            default_agent: new.default_agent.clone(),
            health: new.health,
            breaker: new.breaker,
            contexts: new.contexts,
            finding: new.finding.clone(),
            registry: new.registry.clone(),
            retention: new.retention,
            stop: new.stop,
            prices: new.prices.clone(),
            schedule: new.schedule.clone(),
            trigger: new.trigger.clone(),
            login: new.login.clone(),
            notify: new.notify.clone(),
            worktrees: new.worktrees.clone(),
            topics: new.topics.clone(),
            // The compiler was started under these limits.
            plugins: Plugins {
                compile_cpu_ms: old.plugins.compile_cpu_ms,
                compile_memory_mb: old.plugins.compile_memory_mb,
                ..new.plugins.clone()
            },
        };
        let (changed, needs_restart) = (differences(self, &config)?, differences(&config, new)?);
        Ok(Followed { config, changed, needs_restart })
    }
}

/// Settings whose values differ.
fn differences(old: &Config, new: &Config) -> Result<Vec<Setting>, toml::ser::Error> {
    let (mut old, mut new) = (old.clone(), new.clone());
    // An agent that is missing in one of them has the defaults.
    let ids: BTreeSet<_> = old.agents.keys().chain(new.agents.keys()).cloned().collect();
    for id in ids {
        old.agents.entry(id.clone()).or_default();
        new.agents.entry(id).or_default();
    }
    let mut found = Vec::new();
    compare(&[], &Table::try_from(&old)?, &Table::try_from(&new)?, &mut found);
    Ok(found)
}

fn compare(path: &[String], old: &Table, new: &Table, found: &mut Vec<Setting>) {
    let names: BTreeSet<_> = old.keys().chain(new.keys()).collect();
    for name in names {
        let path = [path, std::slice::from_ref(name)].concat();
        match (old.get(name), new.get(name)) {
            (Some(Value::Table(old)), Some(Value::Table(new))) => compare(&path, old, new, found),
            (old, new) if old != new => found.push(Setting(path)),
            (_, _) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Config {
        toml::from_str(text).unwrap()
    }

    fn told(old: &str, new: &str) -> String {
        let followed = read(old).follow(&read(new)).unwrap();
        let list =
            |all: &[Setting]| all.iter().map(Setting::to_string).collect::<Vec<_>>().join(", ");
        format!("{}; restart: {}", list(&followed.changed), list(&followed.needs_restart))
    }

    #[test]
    fn changes_are_split_by_need_of_restart() {
        let all = "workspaces = ['/a']\nmax_tasks = 5\n[http]\nport = 1\nnames = ['https://hub.example']\n[logging]\nlevel = 'debug'\npretty = true\n[stop]\ndrain_ms = 1\n[push]\nsign = false";
        insta::assert_snapshot!(told("", all), @"logging.level, stop.drain_ms, workspaces; restart: http.names, http.port, logging.pretty, max_tasks, push.sign");
        insta::assert_snapshot!(told(all, all), @"; restart:");
        let followed = read("").follow(&read(all)).unwrap().config;
        assert_eq!(followed.http.port, 8080, "it is as it was");
        assert_eq!(followed.workspaces, ["/a"].map(std::path::PathBuf::from));
    }

    #[test]
    fn changed_agents_are_named() {
        let old = "[agents.a]\ntimeout_ms = 5\n[agents.b.grant.process.git]\n[remote.r]\nurl = 'http://r'";
        let new = "[agents.a]\ntimeout_ms = 6\n[agents.c]\nenabled = false\n[agents.d]\n[remote.s]\nurl = 'http://s'";
        insta::assert_snapshot!(told(old, new), @"agents.a.timeout_ms, agents.b.grant, agents.c.enabled, remote.r, remote.s; restart:");
        let followed = read(old).follow(&read(new)).unwrap();
        let ids = |section| {
            followed.named(section).iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
        };
        assert_eq!((ids("agents"), ids("remote")), ("a b c".to_owned(), "r s".to_owned()));
        assert!(followed.concerns(&["health", "remote"]) && !followed.concerns(&["workspaces"]));
    }

    #[test]
    fn added_program_grant_is_a_change() {
        let (git, sh) = ("[agents.a.grant.process.git]", "[agents.a.grant.process.sh]");
        insta::assert_snapshot!(told(git, &format!("{git}\n{sh}")), @"agents.a.grant.process.sh; restart:");
        insta::assert_snapshot!(told(&format!("{git}\n{sh}"), git), @"agents.a.grant.process.sh; restart:");
    }
}
