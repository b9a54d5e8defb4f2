//! Settings of topics: how many messages are kept, and for how long.

use super::worktrees::duration;
use crate::error::ConfigError;
use a2a_hub_core::scheduling::resources::SharedResource;
use a2a_hub_protocol::topics::TopicRules;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Longest time for which messages are kept.
const MAX_TIME: Duration = Duration::from_hours(366 * 24);

/// Most messages of a topic.
const MAX_MESSAGES: u64 = 1_000_000;

/// Largest size of a topic, in MiB.
const MAX_MB: u64 = 1 << 10;

/// Most topics of a tenant.
const MAX_TOPICS: u64 = 10_000;

/// `[topics]`: retention of messages. What is dropped before a subscriber has read it, is reported
/// to that subscriber.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct TopicSettings {
    /// Age from which on a message is dropped, such as `7d`.
    pub keep: String,
    /// Most messages that a topic keeps.
    pub keep_messages: u64,
    /// Most MiB that a topic keeps.
    pub keep_mb: u64,
    /// Most topics of a tenant.
    pub max_topics: u64,
}

impl Default for TopicSettings {
    /// A week, 10,000 messages and 4 MiB a topic, 500 topics: 2 GiB of a tenant at most.
    fn default() -> Self {
        Self {
            keep: "7d".to_owned(),
            keep_messages: SharedResource::TopicMessages.default_total(),
            keep_mb: SharedResource::TopicBytes.default_total() >> 20,
            max_topics: SharedResource::Topics.default_total(),
        }
    }
}

impl TopicSettings {
    /// The limits, which were checked.
    pub fn rules(&self) -> TopicRules {
        let keep = duration(&self.keep).unwrap_or(MAX_TIME).min(MAX_TIME);
        TopicRules {
            keep_messages: self.keep_messages,
            keep_bytes: self.keep_mb.saturating_mul(1 << 20),
            keep_ms: u64::try_from(keep.as_millis()).unwrap_or(u64::MAX),
            max_topics: self.max_topics,
        }
    }

    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let refuse = |key, why| Err(ConfigError::Topics { key, why });
        if !duration(&self.keep).is_some_and(|time| !time.is_zero() && time <= MAX_TIME) {
            let why =
                format!("`{}` is no time; write one from 1s to 366d, such as \"7d\"", self.keep);
            return refuse("keep", why);
        }
        for (key, value, max) in [
            ("keep_messages", self.keep_messages, MAX_MESSAGES),
            ("keep_mb", self.keep_mb, MAX_MB),
            ("max_topics", self.max_topics, MAX_TOPICS),
        ] {
            if !(1..=max).contains(&value) {
                return refuse(key, format!("it must be from 1 to {max}"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::settings::read_checked;

    #[test]
    fn wrong_limits_name_rule_and_way_out() {
        for (text, why) in [
            ("keep = 'soon'", "set `topics.keep`: `soon` is no time; write one from 1s to 366d"),
            ("keep = '0s'", "from 1s to 366d"),
            ("keep = '367d'", "from 1s to 366d"),
            ("keep_messages = 0", "set `topics.keep_messages`: it must be from 1 to 1000000"),
            ("keep_mb = 1025", "set `topics.keep_mb`: it must be from 1 to 1024"),
            ("max_topics = 10001", "set `topics.max_topics`: it must be from 1 to 10000"),
            ("keep_bytes = 1", "unknown field `keep_bytes`"),
        ] {
            let refused = read_checked(&format!("[topics]\n{text}")).unwrap_err();
            assert!(refused.contains(why), "{text}: {refused}");
        }
        let rules = read_checked("[topics]\nkeep = '2d'\nkeep_mb = 3").unwrap().topics.rules();
        assert_eq!((rules.keep_ms, rules.keep_bytes), (172_800_000, 3 << 20));
        assert_eq!((rules.keep_messages, rules.max_topics), (10_000, 500));
    }
}
