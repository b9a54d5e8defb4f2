//! Settings of notifiers, which send a message when an open question or a notice needs a person.

use crate::{
    automation::{Section, duration},
    data_dir::secret_name::{SECRET_NAME_RULE, is_secret_name},
    error::ConfigError,
};
use a2a_hub_clock::quiet_hours::QuietHours;
use a2a_hub_core::notify::plan::{NotifyKind, NotifyRules};
use a2a_hub_protocol::id::AgentId;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Default of `after`: a person at the keyboard answers within it.
const AFTER: Duration = Duration::from_secs(30);

/// Upper bound of `after`: questions wait for a day by default.
const MAX_AFTER: Duration = Duration::from_hours(24);

/// Longest URL, in bytes.
const MAX_URL: usize = 2_000;

/// `[notify.<id>]`: a program or server that gets a message when something needs a person.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Notifier {
    /// Kinds of questions and notices; all by default.
    pub on: Option<Vec<NotifyKind>>,
    /// Time for which a question must be open, or a notice unread, such as `5m`; `30s` by default.
    pub after: Option<String>,
    /// Agents whose questions and notices count; all by default.
    pub agents: Vec<AgentId>,
    /// Hours of each day, in the local time zone, without messages, such as `22:00-07:00`.
    pub quiet: Option<String>,
    /// True to send the texts of questions and notices, and not only requests and agents.
    pub content: bool,
    /// Program, with its arguments, that gets each message as JSON on its standard input.
    pub command: Option<Vec<String>>,
    /// URL that gets each message as JSON in a signed POST request.
    pub webhook: Option<String>,
    /// URL of a topic of an ntfy server.
    pub ntfy: Option<String>,
    /// Name of the secret that is the access token of the server.
    pub token: Option<String>,
}

/// Checked settings of a notifier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotifierPlan {
    /// Rules for the items of messages.
    pub rules: NotifyRules,
    /// Hours without messages.
    pub quiet: Option<QuietHours>,
    /// Receiver.
    pub target: NotifyTarget,
    /// True to send the texts of questions and notices.
    pub content: bool,
}

/// Receiver of a notifier's messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotifyTarget {
    /// A program: an absolute path or a name on the hub's `PATH`, and its arguments.
    Command {
        /// Program.
        program: String,
        /// Arguments.
        args: Vec<String>,
    },
    /// A server.
    Server {
        /// URL.
        url: String,
        /// Name of the secret that is the access token.
        token: Option<String>,
        /// True for a topic of an ntfy server, false for a webhook.
        is_ntfy: bool,
    },
}

impl NotifyTarget {
    /// Name of the setting.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Command { .. } => "command",
            Self::Server { is_ntfy: false, .. } => "webhook",
            Self::Server { is_ntfy: true, .. } => "ntfy",
        }
    }

    /// True if a message may be sent again under the same id: a server can tell, and a program that
    /// was started cannot be called back.
    pub fn is_repeatable(&self) -> bool {
        matches!(self, Self::Server { .. })
    }
}

impl Notifier {
    /// Checks the settings.
    ///
    /// # Errors
    ///
    /// A setting is missing or invalid; the error says how to write it.
    pub fn plan(&self, name: &str) -> Result<NotifierPlan, ConfigError> {
        let section = Section { kind: "notify", name };
        let kinds = match &self.on {
            None => NotifyKind::ALL.into(),
            Some(kinds) if kinds.is_empty() => {
                let why = "it is empty; name kinds, such as [\"permission\", \"failed\"], or leave it out for all";
                return Err(section.refuse("on", why));
            }
            Some(kinds) => kinds.iter().copied().collect(),
        };
        let after = match &self.after {
            None => AFTER,
            Some(text) => duration(text, MAX_AFTER).ok_or_else(|| {
                let why = format!(
                    "`{text}` is no time; write one from 0s to 24h, such as \"30s\" or \"5m\""
                );
                section.refuse("after", why)
            })?,
        };
        let quiet = self.quiet.as_ref().map(|text| {
            QuietHours::parse(text).ok_or_else(|| {
                let why = format!(
                    "`{text}` is no part of a day; write two times of the day, such as \"22:00-07:00\""
                );
                section.refuse("quiet", why)
            })
        });
        let agents = self.agents.iter().cloned().collect();
        let after_ms = i64::try_from(after.as_millis()).unwrap_or(i64::MAX);
        Ok(NotifierPlan {
            rules: NotifyRules { kinds, agents, after_ms },
            quiet: quiet.transpose()?,
            target: self.target(section)?,
            content: self.content,
        })
    }

    fn target(&self, section: Section<'_>) -> Result<NotifyTarget, ConfigError> {
        if let Some(token) = &self.token
            && !is_secret_name(token)
        {
            return Err(section.refuse("token", SECRET_NAME_RULE));
        }
        match (&self.command, &self.webhook, &self.ntfy) {
            (Some(command), None, None) => {
                if self.token.is_some() {
                    let why = "it is for `webhook` and `ntfy`; leave it out";
                    return Err(section.refuse("token", why));
                }
                command_of(section, command)
            }
            (None, Some(url), None) => {
                let url = url_of(section, "webhook", url)?;
                Ok(NotifyTarget::Server { url, token: self.token.clone(), is_ntfy: false })
            }
            (None, None, Some(url)) => {
                let url = url_of(section, "ntfy", url)?;
                let path = url.split_once("://").and_then(|(_, rest)| rest.split_once('/'));
                let has_topic = path.is_some_and(|(_, topic)| {
                    !topic.is_empty() && !topic.contains(['?', '#']) && !topic.ends_with('/')
                });
                if !has_topic {
                    let why = "it ends with the topic, such as \"https://ntfy.sh/my-topic-8f3a\"";
                    return Err(section.refuse("ntfy", why));
                }
                Ok(NotifyTarget::Server { url, token: self.token.clone(), is_ntfy: true })
            }
            (None, None, None) => {
                let why =
                    "set one of `command`, `webhook` and `ntfy`, which says where messages go";
                Err(section.missing("command", why))
            }
            (command, _, _) => {
                let (key, other) = match command {
                    Some(_) if self.webhook.is_some() => ("webhook", "command"),
                    Some(_) => ("ntfy", "command"),
                    None => ("ntfy", "webhook"),
                };
                let why = format!(
                    "it is beside `{other}`; a notifier has one receiver, so make a second notifier"
                );
                Err(section.refuse(key, why))
            }
        }
    }

    pub(crate) fn check(&self, name: &str) -> Result<(), ConfigError> {
        Section { kind: "notifier", name }.check_name()?;
        self.plan(name).map(drop)
    }
}

fn command_of(section: Section<'_>, command: &[String]) -> Result<NotifyTarget, ConfigError> {
    let Some((program, args)) = command.split_first().filter(|(program, _)| !program.is_empty())
    else {
        let why =
            "name a program with its arguments, such as [\"notify-send\", \"An agent needs you\"]";
        return Err(section.refuse("command", why));
    };
    if command.iter().any(|word| word.contains('\0')) {
        return Err(section.refuse("command", "it has a NUL character, which no argument may have"));
    }
    if program.contains('/') && !program.starts_with('/') {
        let why = format!(
            "`{program}` depends on a directory; write an absolute path, or the name of a program on the hub's PATH"
        );
        return Err(section.refuse("command", why));
    }
    Ok(NotifyTarget::Command { program: program.clone(), args: args.to_vec() })
}

/// Checks the form of a URL. Each delivery checks its host and addresses.
fn url_of(section: Section<'_>, key: &str, url: &str) -> Result<String, ConfigError> {
    let is_http = url.starts_with("https://") || url.starts_with("http://");
    let is_plain = !url.contains(|c: char| c.is_control() || c.is_whitespace());
    if !is_http || !is_plain || url.len() > MAX_URL {
        let why = format!(
            "it is no URL of up to {MAX_URL} bytes that begins with https:// and has no spaces"
        );
        return Err(section.refuse(key, why));
    }
    Ok(url.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Config, settings::read_checked as read};

    #[test]
    fn whole_notifier_is_read() {
        let all = "[notify.phone]\non = ['permission', 'login', 'expiring', 'failed']\nafter = '5m'\n\
                   agents = ['codex']\nquiet = '22:00-07:00'\ncontent = true\n\
                   ntfy = 'https://ntfy.sh/topic'\ntoken = 'NTFY_TOKEN'";
        let config = read(all).unwrap();
        let plan = config.notify["phone"].plan("phone").unwrap();
        assert_eq!((plan.rules.after_ms, plan.rules.kinds.len()), (300_000, 4));
        assert!(plan.quiet.is_some() && plan.content && plan.target.word() == "ntfy");
        let again: Config = toml::from_str(&toml::to_string(&config).unwrap()).unwrap();
        assert_eq!(again.notify, config.notify);
        let short = read("[notify.a]\ncommand = ['notify-send', 'An agent needs you']").unwrap();
        let plan = short.notify["a"].plan("a").unwrap();
        assert_eq!((plan.rules.after_ms, plan.rules.kinds.len()), (30_000, NotifyKind::ALL.len()));
        assert!(read("[notify.a]\nwebhook = 'https://hooks.example/x?y=z'").is_ok());
    }

    #[test]
    fn invalid_notifier_names_rule_and_way_out() {
        let command = "command = ['x']";
        for (settings, why) in [
            ("", "set `notify.a.command`: it is missing; set one of `command`"),
            (
                "command = ['x']\nwebhook = 'https://x.y/'",
                "set `notify.a.webhook`: it is beside `command`",
            ),
            (
                "command = ['x']\nntfy = 'https://x.y/z'",
                "set `notify.a.ntfy`: it is beside `command`",
            ),
            (
                "webhook = 'https://x.y'\nntfy = 'https://x.y/z'",
                "set `notify.a.ntfy`: it is beside `webhook`",
            ),
            ("command = []", "set `notify.a.command`: name a program"),
            ("command = ['']", "set `notify.a.command`: name a program"),
            ("command = ['bin/x']", "`bin/x` depends on a directory"),
            ("command = [\"x\", \"a\\u0000\"]", "it has a NUL character"),
            ("command = ['x']\ntoken = 'X'", "set `notify.a.token`: it is for `webhook`"),
            ("webhook = 'https://x.y'\ntoken = '../x'", "set `notify.a.token`: name a secret"),
            ("webhook = 'file:///etc/passwd'", "set `notify.a.webhook`: it is no URL"),
            ("webhook = \"https://x.y/\\n\"", "set `notify.a.webhook`: it is no URL"),
            ("ntfy = 'https://ntfy.sh'", "set `notify.a.ntfy`: it ends with the topic"),
            ("ntfy = 'https://ntfy.sh/'", "set `notify.a.ntfy`: it ends with the topic"),
            ("ntfy = 'https://ntfy.sh/a?up=1'", "set `notify.a.ntfy`: it ends with the topic"),
            (&format!("{command}\nafter = 'soon'"), "set `notify.a.after`: `soon` is no time"),
            (&format!("{command}\nafter = '-5s'"), "set `notify.a.after`"),
            (&format!("{command}\nafter = '2d'"), "set `notify.a.after`"),
            (
                &format!("{command}\nquiet = '22-7'"),
                "set `notify.a.quiet`: `22-7` is no part of a day",
            ),
            (&format!("{command}\non = []"), "set `notify.a.on`: it is empty"),
            (&format!("{command}\non = ['all']"), "unknown variant `all`"),
            (&format!("{command}\nemail = 'x'"), "unknown field `email`"),
        ] {
            let refused = read(&format!("[notify.a]\n{settings}")).unwrap_err();
            assert!(refused.contains(why), "{settings}: {refused}");
        }
        let named = read("[notify.'My phone']\ncommand = ['x']").unwrap_err();
        assert!(named.contains("call a notifier `My phone`"), "{named}");
    }
}
