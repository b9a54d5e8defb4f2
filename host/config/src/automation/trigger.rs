//! Settings of triggers, which send messages when something happens.

use super::{RunSettings, Section, duration};
use crate::{
    data_dir::secret_name::{SECRET_NAME_RULE, is_secret_name},
    error::ConfigError,
};
use a2a_hub_clock::schedule::Overlap;
use a2a_hub_core::{grant::permissions::Permissions, identity::PersonName};
use a2a_hub_protocol::topics::TopicPattern;
use a2a_hub_protocol::{
    budget::Budget,
    id::AgentId,
    scheduled::{AnswerRule, RestartRule},
    task::TaskState,
};
use a2a_hub_triggers::{
    glob::Globs, plan::TriggerPlan, trigger_event::WebhookEvent, webhook::WebhookScheme,
};
use serde::{Deserialize, Serialize};
use std::{
    path::{Path, PathBuf},
    time::Duration,
};

/// Default of `debounce`.
const DEBOUNCE: Duration = Duration::from_secs(2);

/// Upper bound of `debounce`.
const MAX_DEBOUNCE: Duration = Duration::from_hours(1);

/// Default of `limit`: a trigger that fires for its own effects does so at most this often.
const RUNS_AN_HOUR: u32 = 10;

/// Upper bound of `limit`.
const MAX_RUNS_AN_HOUR: u32 = 1_000;

/// Kind of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TriggerOn {
    /// A branch of a git repository has another commit.
    Commit,
    /// A file changed.
    File,
    /// A task ended.
    Task,
    /// Somebody sent a webhook.
    Webhook,
    /// Somebody published to a topic.
    Topic,
}

impl TriggerOn {
    /// Name in the configuration.
    pub fn word(self) -> &'static str {
        match self {
            Self::Commit => "commit",
            Self::File => "file",
            Self::Task => "task",
            Self::Webhook => "webhook",
            Self::Topic => "topic",
        }
    }
}

/// State in which a task ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum EndState {
    /// The agent completed it.
    Completed,
    /// It failed.
    Failed,
    /// Somebody cancelled it.
    Canceled,
    /// The agent rejected it.
    Rejected,
}

impl EndState {
    /// The state in A2A's model.
    pub fn task_state(self) -> TaskState {
        match self {
            Self::Completed => TaskState::Completed,
            Self::Failed => TaskState::Failed,
            Self::Canceled => TaskState::Canceled,
            Self::Rejected => TaskState::Rejected,
        }
    }
}

/// `[trigger.<id>]`: a message that the hub sends when something happens.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Trigger {
    /// Kind of events.
    pub on: Option<TriggerOn>,
    /// Repository of the branches, or directory of the files.
    pub directory: Option<PathBuf>,
    /// Patterns of branches; all branches by default.
    pub branches: Vec<String>,
    /// Patterns of files, as paths below the directory.
    pub paths: Vec<String>,
    /// Agent whose tasks count.
    pub agent_is: Option<AgentId>,
    /// State of the ended task.
    pub state: Option<EndState>,
    /// Name of the secret that the sender of webhooks knows: a file in `secrets/` of the data
    /// directory, or a variable of the hub's environment.
    pub secret: Option<String>,
    /// Scheme of the webhooks' signatures.
    pub signature: Option<WebhookScheme>,
    /// Types of the webhooks that count; all by default.
    pub events: Vec<String>,
    /// Pattern of the topics whose messages count.
    pub topic: Option<String>,
    /// Person as whom the runs begin tasks, in the person's tenant; the operator by default.
    pub owner: Option<PersonName>,
    /// Agent, flow or group that gets the message.
    pub agent: Option<AgentId>,
    /// Text of the message. What happened follows as data.
    pub message: Option<String>,
    /// Data of the message, in place of a text: the inputs of a flow.
    pub input: Option<toml::Table>,
    /// Most that the agent's programs may do without asking; `full` is refused.
    pub permissions: Option<Permissions>,
    /// Limits of the task's descendants.
    pub budget: Option<Budget>,
    /// Rule for events during the previous run.
    pub overlap: Overlap,
    /// Pause without events that a run waits for, such as `10s`; `2s` by default.
    pub debounce: Option<String>,
    /// Most runs an hour; one more event stops the trigger.
    pub limit: Option<u32>,
    /// Rule for questions of the task.
    pub answers: AnswerRule,
    /// Rule for a run that the end of the hub interrupts: `again` starts it again once.
    pub on_restart: RestartRule,
    /// Working directory of the task; the directory of the trigger by default.
    pub working_directory: Option<PathBuf>,
}

/// Source of a trigger's events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TriggerSource {
    /// Branches of the repository in this directory.
    Commits(PathBuf, Globs),
    /// Files below this directory.
    Files(PathBuf, Globs),
    /// Tasks of this agent that end in this state.
    Tasks(AgentId, TaskState),
    /// Webhooks that a sender signs.
    Webhooks(WebhookSource),
    /// Messages of topics.
    Topics(TopicPattern),
}

/// Sender of webhooks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookSource {
    /// Scheme of the signatures.
    pub scheme: WebhookScheme,
    /// Name of the secret.
    pub secret: String,
    /// Types of the events that count; all if empty.
    pub events: Vec<String>,
}

impl WebhookSource {
    /// True if the event counts. The event with which GitHub tries a new address counts only by
    /// its name.
    pub fn counts(&self, event: &WebhookEvent) -> bool {
        let is_named = event.event.as_ref().is_some_and(|it| self.events.contains(it));
        let is_trial =
            self.scheme == WebhookScheme::Github && event.event.as_deref() == Some("ping");
        is_named || (self.events.is_empty() && !is_trial)
    }
}

/// Checked settings of a trigger.
#[derive(Clone, Debug)]
pub struct TriggerRules {
    /// Source of the events.
    pub source: TriggerSource,
    /// Rules for runs.
    pub plan: TriggerPlan,
}

impl Trigger {
    /// Rules of the trigger; the error is the reason and the way out.
    pub fn rules(&self, name: &str) -> Result<TriggerRules, ConfigError> {
        let section = Section { kind: "trigger", name };
        let Some(on) = self.on else {
            let why =
                "say what starts a run: \"commit\", \"file\", \"task\", \"topic\" or \"webhook\"";
            return Err(section.missing("on", why));
        };
        self.check_keys(section, on)?;
        let source = match on {
            TriggerOn::Commit => {
                let all = ["**".to_owned()];
                let named = if self.branches.is_empty() { &all[..] } else { &self.branches };
                let globs = Globs::parse(named);
                let globs = globs.map_err(|why| section.refuse("branches", why.to_string()))?;
                TriggerSource::Commits(self.directory(section)?, globs)
            }
            TriggerOn::File => {
                if self.paths.is_empty() {
                    let why =
                        "say which files count, such as [\"src/**/*.rs\", \"!src/generated/**\"]";
                    return Err(section.missing("paths", why));
                }
                let globs = Globs::parse(&self.paths);
                let globs = globs.map_err(|why| section.refuse("paths", why.to_string()))?;
                TriggerSource::Files(self.directory(section)?, globs)
            }
            TriggerOn::Task => {
                let Some(agent) = self.agent_is.clone() else {
                    let advice = "name the agent whose tasks count; `a2a-hub agents` lists them";
                    return Err(section.missing("agent_is", advice));
                };
                let Some(state) = self.state else {
                    let why = "say how a task must have ended: \"failed\", \"completed\", \"canceled\" or \"rejected\"";
                    return Err(section.missing("state", why));
                };
                TriggerSource::Tasks(agent, state.task_state())
            }
            TriggerOn::Webhook => TriggerSource::Webhooks(self.webhooks(section)?),
            TriggerOn::Topic => TriggerSource::Topics(self.topics(section)?),
        };
        section.check_run(&RunSettings {
            agent: self.agent.as_ref(),
            message: self.message.as_deref(),
            input: self.input.as_ref(),
            permissions: self.permissions,
            budget: self.budget,
        })?;
        let debounce = match &self.debounce {
            None => DEBOUNCE,
            Some(text) => duration(text, MAX_DEBOUNCE).ok_or_else(|| {
                let why = format!("`{text}` is no pause; write one from 0s to 1h, such as \"10s\"");
                section.refuse("debounce", why)
            })?,
        };
        let limit = self.limit.unwrap_or(RUNS_AN_HOUR);
        if limit == 0 || limit > MAX_RUNS_AN_HOUR {
            let why =
                format!("{limit} runs an hour are not possible; take 1 to {MAX_RUNS_AN_HOUR}");
            return Err(section.refuse("limit", why));
        }
        let overlap = match (self.overlap, on) {
            // The hub knows which messages a run led to, so that others can wait for its end.
            (Overlap::Skip, TriggerOn::Topic) => Overlap::Queue,
            (overlap, _) => overlap,
        };
        Ok(TriggerRules { source, plan: TriggerPlan { overlap, debounce, limit } })
    }

    /// Refuses settings of another kind of events, which would have no effect.
    fn check_keys(&self, section: Section<'_>, on: TriggerOn) -> Result<(), ConfigError> {
        use TriggerOn::{Commit, File, Task, Topic, Webhook};
        let all = [Commit, File, Task, Webhook, Topic];
        let keys: [(&str, bool, &[TriggerOn]); 9] = [
            ("directory", self.directory.is_some(), &all[..2]),
            ("branches", !self.branches.is_empty(), &all[..1]),
            ("paths", !self.paths.is_empty(), &all[1..2]),
            ("agent_is", self.agent_is.is_some(), &all[2..3]),
            ("state", self.state.is_some(), &all[2..3]),
            ("secret", self.secret.is_some(), &all[3..4]),
            ("signature", self.signature.is_some(), &all[3..4]),
            ("events", !self.events.is_empty(), &all[3..4]),
            ("topic", self.topic.is_some(), &all[4..]),
        ];
        let other = keys.iter().find(|(_, is_set, of)| *is_set && !of.contains(&on));
        other.map_or(Ok(()), |(key, _, of)| {
            let of: Vec<_> = of.iter().map(|on| format!("\"{}\"", on.word())).collect();
            let (of, on) = (of.join(" or "), on.word());
            let why =
                format!("it is for `on = {of}`, and this trigger is on \"{on}\"; leave it out");
            Err(section.refuse(key, why))
        })
    }

    fn webhooks(&self, section: Section<'_>) -> Result<WebhookSource, ConfigError> {
        let Some(scheme) = self.signature else {
            let why = "say how the sender signs: \"github\", or \"standard\" for Standard Webhooks";
            return Err(section.missing("signature", why));
        };
        let Some(secret) = &self.secret else {
            let why = "name the secret that the sender knows, too, and put it into `secrets/` of the data directory";
            return Err(section.missing("secret", why));
        };
        if !is_secret_name(secret) {
            return Err(section.refuse("secret", SECRET_NAME_RULE));
        }
        Ok(WebhookSource { scheme, secret: secret.clone(), events: self.events.clone() })
    }

    fn topics(&self, section: Section<'_>) -> Result<TopicPattern, ConfigError> {
        let Some(topic) = &self.topic else {
            let why =
                "name the topics whose messages count, such as \"builds/+/failed\" or \"builds/#\"";
            return Err(section.missing("topic", why));
        };
        TopicPattern::parse(topic).map_err(|why| section.refuse("topic", why.to_string()))
    }

    fn directory(&self, section: Section<'_>) -> Result<PathBuf, ConfigError> {
        match &self.directory {
            None => {
                Err(section
                    .missing("directory", "name it by its whole path, such as \"/src/shop\""))
            }
            Some(directory) if directory.is_absolute() => Ok(directory.clone()),
            Some(directory) => {
                let shown = directory.display();
                let why = format!("`{shown}` is not a whole path; write one from `/` on");
                Err(section.refuse("directory", why))
            }
        }
    }

    pub(crate) fn check(&self, name: &str) -> Result<(), ConfigError> {
        Section { kind: "trigger", name }.check_name()?;
        self.rules(name).map(drop)
    }

    /// Working directory of a run.
    pub fn run_directory(&self) -> Option<&Path> {
        self.working_directory.as_deref().or(self.directory.as_deref())
    }

    /// Source of the events as one text, which changes with it.
    pub fn rule(&self) -> String {
        let on = self.on.map(TriggerOn::word).unwrap_or_default();
        let directory = self.directory.as_deref().map(|it| it.display().to_string());
        let agent = self.agent_is.as_ref().map(ToString::to_string);
        let state = self.state.map(|state| state.task_state().name().to_owned());
        let patterns = self.branches.iter().chain(&self.paths).chain(&self.events).cloned();
        let parts =
            [directory, agent, state, self.topic.clone()].into_iter().flatten().chain(patterns);
        parts.fold(on.to_owned(), |all, part| format!("{all}\n{part}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Config, settings::read_checked as read};

    const COMMITS: &str = r#"
        [trigger.review]
        on = "commit"
        directory = "/src/shop"
        agent = "claude-code"
        message = "Review these commits"
        permissions = "read-only"
        budget = { tasks = 5 }
    "#;

    #[test]
    fn whole_trigger_is_read() {
        let all = format!(
            "{COMMITS}\nbranches = ['main', 'release/*']\noverlap = 'queue'\ndebounce = '10s'\nlimit = 3\nanswers = 'inbox'\non_restart = 'fail'"
        );
        let config = read(&all).unwrap();
        let trigger = &config.trigger["review"];
        let rules = trigger.rules("review").unwrap();
        assert_eq!((rules.plan.debounce.as_secs(), rules.plan.limit), (10, 3));
        assert_eq!(trigger.on_restart, RestartRule::Fail);
        assert_eq!(trigger.run_directory(), trigger.directory.as_deref());
        assert_eq!(trigger.rule(), "commit\n/src/shop\nmain\nrelease/*");
        let again: Config = toml::from_str(&toml::to_string(&config).unwrap()).unwrap();
        assert_eq!(again.trigger, config.trigger);
        let all_branches = read(COMMITS).unwrap().trigger["review"].rules("review").unwrap().source;
        let TriggerSource::Commits(_, globs) = all_branches else { panic!("{all_branches:?}") };
        assert!(globs.matches("any/branch"));
    }

    #[test]
    fn invalid_trigger_names_rule_and_way_out() {
        let with = |from: &str, to: &str| COMMITS.replace(from, to);
        let files = with("\"commit\"", "\"file\"");
        let kind = |on: &str| with("on = \"commit\"\n        directory = \"/src/shop\"", on);
        let (tasks, hooks) = (kind("on = \"task\""), kind("on = \"webhook\""));
        let topics = kind("on = \"topic\"");
        for (text, why) in [
            (
                with("on = \"commit\"", ""),
                "set `trigger.review.on`: it is missing; say what starts a run",
            ),
            (with("\"commit\"", "\"push\""), "unknown variant `push`"),
            (
                with("directory = \"/src/shop\"", ""),
                "set `trigger.review.directory`: it is missing",
            ),
            (with("/src/shop", "shop"), "`shop` is not a whole path; write one from `/` on"),
            (
                with("\"read-only\"", "\"full\""),
                "set `trigger.review.permissions`: `full` allows everything",
            ),
            (
                with("permissions = \"read-only\"", ""),
                "set `trigger.review.permissions`: it is missing",
            ),
            (with("{ tasks = 5 }", "{}"), "set `trigger.review.budget`: it is missing"),
            (with("agent = \"claude-code\"", ""), "set `trigger.review.agent`: it is missing"),
            (
                with("message = \"Review these commits\"", ""),
                "set `trigger.review.message`: it is missing",
            ),
            (
                format!("{COMMITS}\npaths = ['a']"),
                "set `trigger.review.paths`: it is for `on = \"file\"`, and this trigger is on \"commit\"",
            ),
            (
                format!("{COMMITS}\nstate = 'failed'"),
                "set `trigger.review.state`: it is for `on = \"task\"`",
            ),
            (
                format!("{COMMITS}\nbranches = ['../x']"),
                "set `trigger.review.branches`: `../x` does not stay below",
            ),
            (format!("{COMMITS}\ndebounce = '2h'"), "`2h` is no pause; write one from 0s to 1h"),
            (
                format!("{COMMITS}\nlimit = 0"),
                "set `trigger.review.limit`: 0 runs an hour are not possible; take 1 to 1000",
            ),
            (format!("{COMMITS}\nevery = '1d'"), "unknown field `every`"),
            (
                format!("{COMMITS}\non_restart = 'ask'"),
                "unknown variant `ask`, expected `again` or `fail`",
            ),
            (
                format!("{COMMITS}\nsecret = 'HOOK'"),
                "set `trigger.review.secret`: it is for `on = \"webhook\"`",
            ),
            (
                hooks.clone(),
                "set `trigger.review.signature`: it is missing; say how the sender signs: \"github\"",
            ),
            (
                format!("{hooks}\nsignature = 'github'"),
                "set `trigger.review.secret`: it is missing; name the secret",
            ),
            (
                format!("{hooks}\nsignature = 'github'\nsecret = '../x'"),
                "set `trigger.review.secret`: name a secret by letters",
            ),
            (format!("{hooks}\nsignature = 'sha1'\nsecret = 'X'"), "unknown variant `sha1`"),
            (files.clone(), "set `trigger.review.paths`: it is missing; say which files count"),
            (
                format!("{files}\npaths = ['!a']"),
                "set `trigger.review.paths`: no pattern includes anything",
            ),
            (
                topics.clone(),
                "set `trigger.review.topic`: it is missing; name the topics whose messages count",
            ),
            (
                format!("{topics}\ntopic = 'a/#/b'"),
                "set `trigger.review.topic`: `#` stands for all levels below, so it must be the last one",
            ),
            (
                format!("{COMMITS}\ntopic = 'a'"),
                "set `trigger.review.topic`: it is for `on = \"topic\"`",
            ),
            (
                format!("{topics}\nsecret = 'X'"),
                "set `trigger.review.secret`: it is for `on = \"webhook\"`",
            ),
            (tasks.clone(), "set `trigger.review.agent_is`: it is missing"),
            (format!("{tasks}\nagent_is = 'codex'"), "set `trigger.review.state`: it is missing"),
            (
                format!("{tasks}\nagent_is = 'codex'\nstate = 'working'"),
                "unknown variant `working`",
            ),
            (
                with("trigger.review", "trigger.'a b'"),
                "call a trigger `a b`: a name has 1 to 64 of a-z",
            ),
            (
                format!(
                    "{COMMITS}\n[schedule.review]\ncron = '0 3 * * *'\nagent = 'a'\nmessage = 'm'\npermissions = 'ask'\nbudget = {{ tasks = 1 }}"
                ),
                "call a trigger `review`: a schedule has that name; take another one",
            ),
        ] {
            let refused = read(&text).unwrap_err();
            assert!(refused.contains(why), "{text}: {refused}");
        }
        assert!(read(&format!("{tasks}\nagent_is = 'codex'\nstate = 'failed'")).is_ok());
        assert!(read(&format!("{files}\npaths = ['src/**']")).is_ok());
        let topic = read(&format!("{topics}\ntopic = 'a/+'")).unwrap().trigger["review"].clone();
        assert_eq!(topic.rules("review").unwrap().plan.overlap, Overlap::Queue, "none is skipped");
        assert_eq!(topic.rule(), "topic\na/+");
        assert!(read(&format!("{hooks}\nsignature = 'standard'\nsecret = 'X'")).is_ok());
    }

    #[test]
    fn webhooks_count_by_type() {
        let counts = |scheme, events: &[&str], event: Option<&str>| {
            let events = events.iter().map(|it| (*it).to_owned()).collect();
            let source = WebhookSource { scheme, secret: "X".to_owned(), events };
            let (delivery, event) = ("1".to_owned(), event.map(str::to_owned));
            source.counts(&WebhookEvent { delivery, event, payload: serde_json::Value::Null })
        };
        let github = WebhookScheme::Github;
        assert!(counts(github, &[], Some("push")) && !counts(github, &[], Some("ping")));
        assert!(counts(github, &["push", "ping"], Some("ping")));
        assert!(!counts(github, &["push"], Some("issues")));
        let standard = WebhookScheme::Standard;
        assert!(counts(standard, &[], None) && counts(standard, &[], Some("ping")));
        assert!(!counts(standard, &["paid"], None) && counts(standard, &["paid"], Some("paid")));
    }
}
