//! Standing permissions: actions that an agent's program asks permission for, and the rules by
//! which the hub answers such a request in place of a person.

use crate::model::{
    id::{AgentId, QuestionId},
    message::Metadata,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Metadata member of the status that reports a request which a rule has answered.
pub const ANSWERED_BY_RULE: &str = "permission";

/// Default time until a rule that allows expires: 30 days, in milliseconds.
pub const DEFAULT_RULE_MS: u64 = 30 * 24 * 60 * 60 * 1_000;

/// Request of an agent's program for permission, as far as the hub reads it exactly.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PermissionRequest {
    /// Program that asks, as its driver names it: `claude`, `codex`, `gemini`, `vibe`, or the name
    /// of a program of the Agent Client Protocol.
    pub vendor: String,
    /// True if the program would act outside of its sandbox: a permission for that is wider
    /// than one for the same action inside.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub outside_sandbox: bool,
    /// Action.
    pub action: Action,
}

/// Action of a program. Paths are absolute and without `.` and `..`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "camelCase")]
pub enum Action {
    /// Runs programs, each if the one before has succeeded.
    Run {
        /// Programs with their arguments, without quoting.
        commands: Vec<Vec<String>>,
        /// Directory in which they run.
        directory: String,
    },
    /// Changes, creates or deletes files.
    Edit {
        /// The files.
        paths: Vec<String>,
    },
    /// Reads files.
    Read {
        /// The files.
        paths: Vec<String>,
    },
    /// Anything else. No rule answers it.
    Other {
        /// Reason why the hub cannot read it exactly.
        reason: String,
        /// True if it runs a command.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        runs: bool,
    },
}

/// Effect of a rule. For one request, `never` precedes `deny`, and `deny` precedes `allow`.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum RuleEffect {
    /// Allows the request, once each time.
    Allow,
    /// Denies the request, with a text for the agent.
    Deny,
    /// Denies the request over every other rule, the agent's permissions, and people's answers.
    Never,
}

impl RuleEffect {
    /// Name, as in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Deny => "deny",
            Self::Never => "never",
        }
    }

    /// Outcome of a question that a rule with this effect has answered.
    pub fn outcome(self) -> &'static str {
        match self {
            Self::Allow => "allowed-by-rule",
            Self::Deny | Self::Never => "denied-by-rule",
        }
    }
}

/// Answer of a rule to a request for permission: value of [`ANSWERED_BY_RULE`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RuleAnswer {
    /// Id of the request, as of a question.
    pub id: QuestionId,
    /// Id of the rule; of the first one, if a request needs several.
    pub rule: String,
    /// Effect.
    pub effect: RuleEffect,
    /// Request.
    pub request: PermissionRequest,
}

impl RuleAnswer {
    /// Reads the answer from the metadata of a status.
    pub fn from_metadata(metadata: Option<&Metadata>) -> Option<Self> {
        serde_json::from_value(metadata?.get(ANSWERED_BY_RULE)?.clone()).ok()
    }

    /// The answer as a metadata member: name and value.
    pub fn member(&self) -> (String, Value) {
        (ANSWERED_BY_RULE.to_owned(), json!(self))
    }
}

/// Actions that a rule matches, relative to the repository of the request.
///
/// In `words` and `paths`, `*` is a pattern: as a whole word, it stands for any one word; as the
/// last of several words, `**` stands for any number of words; in a path, `*` stands for any
/// characters but `/`, and `**` for any characters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "camelCase")]
pub enum ActionPattern {
    /// Runs of one program.
    Run {
        /// The program and its arguments.
        words: Vec<String>,
        /// Directory in which it runs, relative to the repository: empty for the repository itself,
        /// `**` for any directory in it.
        directory: String,
    },
    /// Changes of files.
    Edit {
        /// Path relative to the repository.
        path: String,
    },
    /// Reading of files.
    Read {
        /// Path relative to the repository, or an absolute one.
        path: String,
    },
}

/// Standing permission: a rule that answers requests for permission.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PermissionRule {
    /// Id.
    pub id: String,
    /// Effect.
    pub effect: RuleEffect,
    /// Actions that it matches.
    pub pattern: ActionPattern,
    /// Text for the agent, of a rule that denies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Agent whose program asks; any agent if absent, which only `deny` and `never` rules may have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    /// Agents above the asking one in the tree of tasks, from the root on. A rule that allows
    /// matches a request only if these are exactly the agents above.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub through: Vec<AgentId>,
    /// Program that asks; any program if absent, as for `agent`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vendor: Option<String>,
    /// True if it also matches requests to act outside of the program's own sandbox.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub outside_sandbox: bool,
    /// Repository of the request: the absolute path of the source repository, or of the task's
    /// directory if that is in no repository; any if absent, as for `agent`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository: Option<String>,
    /// Principal that began the tree of tasks, such as `operator`; any if absent, as for `agent`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
    /// True if its maker accepts that the program may run code from the repository, which the agent
    /// may change, outside of the hub's sandbox.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub trusts_workspace: bool,
    /// Time at which it was made: RFC 3339 in UTC.
    pub created_at: String,
    /// Principal that made it.
    pub created_by: String,
    /// Time from which it matches nothing: RFC 3339 in UTC. Never, if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
    /// Question whose answer made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub from_question: Option<QuestionId>,
}
