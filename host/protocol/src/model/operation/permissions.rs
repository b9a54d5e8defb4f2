//! Standing permissions: the requests for them, and their answers.

use crate::model::{
    id::AgentId,
    permission::{Action, ActionPattern, PermissionRequest, PermissionRule, RuleEffect},
};
use schemars::JsonSchema;
use serde::Serialize;

/// Request for the standing permissions of a tenant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuleRequest {
    /// Lists the rules, the latest first.
    List,
    /// Adds a rule.
    Add(Box<NewRule>),
    /// Removes rules.
    Remove {
        /// Ids of the rules.
        ids: Vec<String>,
    },
    /// Tests which rules would answer a request.
    Test(Box<TestedRequest>),
    /// Suggests rules by the latest answers of people.
    Suggest,
}

/// Rule to add.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewRule {
    /// Effect.
    pub effect: RuleEffect,
    /// Actions that it matches.
    pub pattern: ActionPattern,
    /// Text for the agent, of a rule that denies.
    pub text: Option<String>,
    /// Agent whose program asks.
    pub agent: Option<AgentId>,
    /// Agents above the asking one, from the root on.
    pub through: Vec<AgentId>,
    /// Program that asks; that of the agent if absent.
    pub vendor: Option<String>,
    /// True if it also matches requests to act outside of the program's own sandbox.
    pub outside_sandbox: bool,
    /// A directory of the repository.
    pub directory: Option<String>,
    /// Principal that began the tree of tasks; the one that adds the rule if absent.
    pub principal: Option<String>,
    /// True if its maker accepts that the program may run code from the repository.
    pub trusts_workspace: bool,
    /// Time until it expires, in milliseconds; 0 for never.
    pub for_ms: u64,
}

/// Request of a program to test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestedRequest {
    /// Agent whose program would ask.
    pub agent: AgentId,
    /// Agents above it, from the root on.
    pub through: Vec<AgentId>,
    /// Program that would ask; that of the agent if absent.
    pub vendor: Option<String>,
    /// Directory of the task.
    pub directory: String,
    /// Action.
    pub action: TestedAction,
}

/// Action to test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TestedAction {
    /// Text for a shell.
    Run(String),
    /// Change of a file.
    Edit(String),
    /// Reading of a file.
    Read(String),
}

impl RuleRequest {
    /// Name of the operation, for metrics.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::List => "list_permissions",
            Self::Add(_) => "add_permission",
            Self::Remove { .. } => "remove_permissions",
            Self::Test(_) => "test_permission",
            Self::Suggest => "suggest_permissions",
        }
    }
}

/// Answer to a [`RuleRequest`].
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum RuleReport {
    /// Rules.
    List(RuleList),
    /// Rule that was added.
    Added(Box<ListedRule>),
    /// Rules that were removed.
    Removed(RemovedRules),
    /// Result of a test.
    Tested(Box<RuleTest>),
    /// Suggested rules.
    Suggested(SuggestedRules),
}

/// Standing permissions: the answer to `hub/permissions/list`.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RuleList {
    /// The rules, the latest first.
    pub rules: Vec<ListedRule>,
}

/// Rule with its use.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListedRule {
    /// The rule.
    #[serde(flatten)]
    pub rule: PermissionRule,
    /// Number of requests in stored tasks that it has answered.
    pub uses: u64,
    /// Time of the latest one: RFC 3339 in UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_used_at: Option<String>,
    /// Warning about what it allows, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
}

/// Rules that were removed: the answer to `hub/permissions/remove`.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RemovedRules {
    /// Ids of the rules that existed.
    pub removed: Vec<String>,
}

/// Suggested rules: the answer to `hub/permissions/suggest`.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SuggestedRules {
    /// The rules, the most useful first.
    pub rules: Vec<SuggestedRule>,
    /// Number of the latest requests that people have answered.
    pub requests: usize,
    /// Number of these that the rules would have answered, as people did.
    pub answered: usize,
}

/// Suggested rule that allows.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SuggestedRule {
    /// Actions that it matches.
    pub pattern: ActionPattern,
    /// Agent whose program asks.
    pub agent: Option<AgentId>,
    /// Agents above the asking one, from the root on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub through: Vec<AgentId>,
    /// Program that asks.
    pub vendor: Option<String>,
    /// True if it also matches requests to act outside of the program's own sandbox.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub outside_sandbox: bool,
    /// Repository of the requests.
    pub repository: Option<String>,
    /// Principal that began the trees of tasks.
    pub principal: Option<String>,
    /// True if the program may run code from the repository, which its maker has to accept.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub trusts_workspace: bool,
    /// Number of allowed requests that it would have answered.
    pub answers: usize,
    /// Warning about what it allows, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
}

/// Result of a test: the answer to `hub/permissions/test`.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RuleTest {
    /// Request, as the hub reads it.
    pub request: PermissionRequest,
    /// Answer: `allow`, `deny`, `never`, or `ask` if no rule answers, so that a person is asked.
    pub verdict: String,
    /// Ids of the rules that answer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<String>,
    /// Patterns of the rules that would allow exactly this request.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub patterns: Vec<ActionPattern>,
    /// Reason why no rule can allow it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Warning about what a rule for it would allow, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
}

impl RuleTest {
    /// Test of a request that nothing answers.
    pub fn unanswered(request: PermissionRequest) -> Self {
        let (rules, patterns, reason, warning) = Default::default();
        Self { request, verdict: "ask".to_owned(), rules, patterns, reason, warning }
    }

    /// True if the hub reads the action exactly.
    pub fn is_exact(&self) -> bool {
        !matches!(self.request.action, Action::Other { .. })
    }
}
