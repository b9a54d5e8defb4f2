//! What the settings of one agent may say, and what it is told of them: text, under a name.

use super::{AgentConfig, ConfigError};
use a2a_hub_protocol::id::AgentId;
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, path::Path};

/// What the program behind an agent may do without asking.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Permissions {
    /// Nothing that changes anything: it asks the client each time.
    #[default]
    Ask,
    /// Reading; the rest is refused without asking.
    ReadOnly,
    /// Reading, and changing files in the working directory; it asks for the rest.
    Edit,
    /// Everything that the hub's user may.
    Full,
}

impl Permissions {
    /// As it is written in the configuration, and told to the agent.
    pub fn word(self) -> &'static str {
        match self {
            Self::Ask => "ask",
            Self::ReadOnly => "read-only",
            Self::Edit => "edit",
            Self::Full => "full",
        }
    }
}

/// A setting that only the agent understands. Numbers and booleans are told as text.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(from = "Said")]
pub struct SettingText(String);

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected text, a number or a boolean")]
enum Said {
    Text(String),
    Flag(bool),
    Whole(i64),
    Fraction(f64),
}

impl From<Said> for SettingText {
    fn from(said: Said) -> Self {
        Self(match said {
            Said::Text(text) => text,
            Said::Flag(flag) => flag.to_string(),
            Said::Whole(number) => number.to_string(),
            Said::Fraction(number) => number.to_string(),
        })
    }
}

/// The longest name of a setting.
const MAX_NAME: usize = 64;

/// Names that tell of settings of the hub's own, and what those are called.
const OWN: &[(&str, &str)] = &[
    ("permissions", "permissions"),
    ("approval_timeout", "approval_timeout_ms"),
    ("workspace", "workspaces"),
];

impl AgentConfig {
    /// What the agent is told when it asks, by name; `workspace` is where its programs start if nobody says otherwise.
    pub fn told(&self, workspace: &Path) -> BTreeMap<String, String> {
        let own =
            self.settings.iter().map(|(name, SettingText(text))| (name.clone(), text.clone()));
        let mut told: BTreeMap<_, _> = own.collect();
        told.insert("permissions".to_owned(), self.permissions.word().to_owned());
        told.insert("approval_timeout".to_owned(), self.approval_timeout_ms.to_string());
        told.insert("workspace".to_owned(), workspace.display().to_string());
        told
    }

    /// Whether its programs can be found, and what they are passed.
    pub(super) fn check_programs(&self, agent: &AgentId) -> Result<(), ConfigError> {
        let ours = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
        let names_some = |word: &str| {
            let name = word.strip_suffix('*').unwrap_or(word);
            !name.is_empty() && name.bytes().all(ours)
        };
        let agent = || agent.clone();
        if let Some(word) = self.env.iter().find(|word| !names_some(word)) {
            return Err(ConfigError::Variable { agent: agent(), word: word.clone() });
        }
        let relative = self.programs.iter().find(|(_, path)| !Path::new(path).is_absolute());
        relative.map_or(Ok(()), |(name, path)| {
            Err(ConfigError::Relative { agent: agent(), name: name.clone(), path: path.clone() })
        })
    }

    pub(super) fn check_settings(&self, agent: &AgentId) -> Result<(), ConfigError> {
        let fits = |name: &str| {
            let ours = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"_-".contains(&b);
            (1..=MAX_NAME).contains(&name.len()) && name.bytes().all(ours)
        };
        for name in self.settings.keys() {
            let way_out = if let Some((_, key)) = OWN.iter().find(|(own, _)| own == name) {
                format!("say `agents.{agent}.{key}`")
            } else if !fits(name) {
                format!("choose a name of 1 to {MAX_NAME} characters of a-z, 0-9, `_` and `-`")
            } else {
                continue;
            };
            return Err(ConfigError::Setting { agent: agent.clone(), name: name.clone(), way_out });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    fn read(agent: &str) -> Result<AgentConfig, String> {
        let text = format!("[agents.any]\n{agent}");
        let config: Config = toml::from_str(&text).map_err(|why| why.message().to_owned())?;
        config.check().map_err(|why| why.to_string())?;
        Ok(config.agent(&AgentId::parse("any").unwrap()))
    }

    fn told(agent: &str) -> String {
        read(agent).map_or_else(|why| why, |config| format!("{:?}", config.told(Path::new("/w"))))
    }

    #[test]
    fn an_agent_is_told_its_settings_as_text() {
        insta::assert_snapshot!(told(""), @r#"{"approval_timeout": "3600000", "permissions": "ask", "workspace": "/w"}"#);
        let all = "permissions = 'read-only'\napproval_timeout_ms = 1\nsettings = { model = 'x', turns = 3, deep = true, heat = 0.5 }";
        insta::assert_snapshot!(told(all), @r#"{"approval_timeout": "1", "deep": "true", "heat": "0.5", "model": "x", "permissions": "read-only", "turns": "3", "workspace": "/w"}"#);
        let unnamed = Config::default().agent(&AgentId::parse("other").unwrap());
        assert_eq!(unnamed.told(Path::new("/w"))["permissions"], "ask");
    }

    #[test]
    fn each_word_is_told_as_it_is_written() {
        for word in ["ask", "read-only", "edit", "full"] {
            let config = read(&format!("permissions = '{word}'")).unwrap();
            assert_eq!(config.told(Path::new("/w"))["permissions"], word);
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        insta::assert_snapshot!(told("permissions = 'yolo'"), @"unknown variant `yolo`, expected one of `ask`, `read-only`, `edit`, `full`");
        insta::assert_snapshot!(told("settings.permissions = 'full'"), @"set `agents.any.settings.permissions`: say `agents.any.permissions`");
        insta::assert_snapshot!(told("settings.approval_timeout = 1"), @"set `agents.any.settings.approval_timeout`: say `agents.any.approval_timeout_ms`");
        insta::assert_snapshot!(told("settings.workspace = '/'"), @"set `agents.any.settings.workspace`: say `agents.any.workspaces`");
        insta::assert_snapshot!(told("settings.Model = 'x'"), @"set `agents.any.settings.Model`: choose a name of 1 to 64 characters of a-z, 0-9, `_` and `-`");
        insta::assert_snapshot!(told("programs.vibe-acp = 'vibe'"), @"run `vibe` as `agents.any.programs.vibe-acp` says: give it an absolute path");
        insta::assert_snapshot!(told("env = ['*']"), @"pass on `*` as `agents.any.env` says: name a variable, or several by how they begin, such as `VIBE_*`");
        insta::assert_snapshot!(told("settings.tools = ['a']"), @"expected text, a number or a boolean");
    }
}
