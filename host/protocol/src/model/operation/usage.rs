//! Usage of tasks: the request, and its answer.

use crate::model::id::TenantId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Key by which usage is summed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum UsageKey {
    /// Day, in UTC.
    Day,
    /// Agent.
    Agent,
    /// Model, as the agent names it.
    Model,
    /// Tenant; covers all tenants.
    Tenant,
    /// Principal that began the tree of tasks.
    Person,
    /// Agent at the root of the tree of tasks, such as a flow.
    Flow,
    /// Task; all deleted ones together.
    Task,
}

impl UsageKey {
    /// All keys.
    pub const ALL: [Self; 7] =
        [Self::Day, Self::Agent, Self::Model, Self::Tenant, Self::Person, Self::Flow, Self::Task];

    /// Name of the key, as in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Agent => "agent",
            Self::Model => "model",
            Self::Tenant => "tenant",
            Self::Person => "person",
            Self::Flow => "flow",
            Self::Task => "task",
        }
    }
}

/// Request for the usage of tasks, including those that were deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageQuery {
    /// Key of the groups.
    pub by: UsageKey,
    /// Only the usage of this time (RFC 3339) and later, from the beginning of its day in UTC.
    pub since: Option<String>,
    /// Only tasks of this tenant; all tenants, if `None`.
    pub tenant: Option<TenantId>,
    /// Maximum number of groups.
    pub limit: usize,
}

/// Usage of tasks: the answer to `hub/usage`.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UsageReport {
    /// Key of the groups.
    #[schemars(with = "String")]
    pub by: UsageKey,
    /// Groups: days with the latest first, others with the greatest cost first.
    pub groups: Vec<UsageGroup>,
    /// Number of groups beyond the limit.
    pub omitted: u64,
    /// Sum of all groups.
    pub total: UsageFigures,
    /// Number of tasks that are not counted yet, because the index of the tasks is behind.
    pub uncounted: u64,
}

/// Usage of the tasks with one key.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UsageGroup {
    /// Key; empty for the default tenant, for deleted tasks, and for what is unknown.
    pub key: String,
    /// Agent of the task, in groups by task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// Figures.
    #[serde(flatten)]
    pub figures: UsageFigures,
}

/// Figures as agents report them. A figure that no task has is absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UsageFigures {
    /// Number of tasks that began.
    pub tasks: u64,
    /// Input tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// Output tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// Tokens from the vendor's cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached_tokens: Option<u64>,
    /// Cost in dollars, as vendors report it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Cost in dollars by the operator's price list, of agents that report no cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priced_usd: Option<f64>,
    /// Time in which the tasks worked, in milliseconds.
    pub work_ms: u64,
    /// Number of questions that the tasks asked.
    pub questions: u64,
    /// Number of requests for permission that a rule answered.
    pub answered_by_rule: u64,
    /// Number of tasks whose agents reported no tokens.
    pub without_tokens: u64,
    /// Number of tasks without a cost.
    pub without_cost: u64,
}
