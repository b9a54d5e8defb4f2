//! A trigger of the configuration: its section, its rules, and a poll of its source.

use a2a_hub_config::{SecretStore, Trigger, TriggerRules, TriggerSource, WebhookSource};
use a2a_hub_protocol::id::AgentId;
use a2a_hub_triggers::{files::WatchedFiles, heads::Heads, refs};

/// A trigger of the configuration, with its rules.
pub struct KnownTrigger {
    /// Section of the configuration.
    pub config: Trigger,
    /// Its checked rules.
    pub rules: TriggerRules,
    secrets: SecretStore,
}

/// Result of a poll of the source of a trigger.
pub enum Sight {
    /// Branches with their commits.
    Heads(Heads),
    /// Files that match.
    Files(WatchedFiles),
    /// Nothing: the events are reported.
    Reported,
}

impl KnownTrigger {
    /// Creates a trigger whose rules are those of its section.
    pub fn new(config: Trigger, rules: TriggerRules, secrets: SecretStore) -> Self {
        Self { config, rules, secrets }
    }

    /// Polls the source; the error is for the operator. Blocks while it reads the disk.
    pub fn poll(&self) -> Result<Sight, String> {
        match &self.rules.source {
            TriggerSource::Commits(directory, globs) => {
                refs::read(directory, globs).map(Sight::Heads).map_err(|why| why.to_string())
            }
            TriggerSource::Files(directory, globs) => WatchedFiles::read(directory, globs)
                .map(Sight::Files)
                .map_err(|why| why.to_string()),
            TriggerSource::Tasks(..) | TriggerSource::Topics(_) => Ok(Sight::Reported),
            TriggerSource::Webhooks(source) => self.secret(source).map(|_| Sight::Reported),
        }
    }

    /// Secret of a sender. Blocks while it reads the disk.
    pub(crate) fn secret(&self, source: &WebhookSource) -> Result<String, String> {
        let name = source.secret.as_str();
        match self.secrets.all([name]) {
            Ok(mut found) => Ok(found.remove(name).unwrap_or_default()),
            Err((name, why)) => Err(format!("the secret `{name}` is not usable: {why}")),
        }
    }

    /// Directory, path or topics of the events, or agent of the tasks.
    pub fn watches(&self, name: &str) -> String {
        match &self.rules.source {
            TriggerSource::Commits(directory, _) | TriggerSource::Files(directory, _) => {
                directory.display().to_string()
            }
            TriggerSource::Tasks(agent, _) => agent.to_string(),
            TriggerSource::Webhooks(_) => format!("/hooks/{name}"),
            TriggerSource::Topics(pattern) => pattern.to_string(),
        }
    }

    /// Agent whose tasks count, if any do.
    pub fn of_agent(&self) -> Option<&AgentId> {
        match &self.rules.source {
            TriggerSource::Tasks(agent, _) => Some(agent),
            TriggerSource::Commits(..)
            | TriggerSource::Files(..)
            | TriggerSource::Webhooks(_)
            | TriggerSource::Topics(_) => None,
        }
    }
}
