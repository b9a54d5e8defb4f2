//! Method that returns the usage of tasks.

use crate::{
    hub::{
        method::{HubMethod, PLAIN},
        params::{MAX_LISTED, within},
    },
    model::{
        error::A2aError,
        operation::{Operation, UsageKey, UsageQuery, UsageReport},
    },
    v03::params::read,
};
use schemars::{JsonSchema, SchemaGenerator};
use serde::Deserialize;
use serde_json::Value;

/// Default number of groups.
const DEFAULT_GROUPS: usize = 100;

/// `hub/usage`.
pub(super) const USAGE: HubMethod = HubMethod {
    name: "hub/usage",
    summary: "Return tokens, cost, time and questions of tasks by day, agent, model, person, flow \
              or task, including deleted tasks; by tenant, for administrators",
    example: r#"{"by": "agent", "since": "2026-01-01T00:00:00Z"}"#,
    params: UsageParams::json_schema,
    result: SchemaGenerator::subschema_for::<UsageReport>,
    read: usage,
    ..PLAIN
};

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct UsageParams {
    /// Key of the groups: `day` (by default), `agent`, `model`, `tenant`, `person`, `flow` or
    /// `task`.
    #[schemars(with = "Option<String>")]
    by: Option<UsageKey>,
    /// Only usage of this time and later, from the beginning of its day: RFC 3339 in UTC.
    since: Option<String>,
    /// Maximum number of groups: 100 by default, 1,000 at most.
    limit: Option<usize>,
}

/// Reads the parameters of `hub/usage`.
fn usage(params: Value) -> Result<Operation, A2aError> {
    let UsageParams { by, since, limit } = read(params)?;
    let limit = within("limit", limit.unwrap_or(DEFAULT_GROUPS), 1, MAX_LISTED)?;
    let by = by.unwrap_or(UsageKey::Day);
    Ok(Operation::Usage(UsageQuery { by, since, tenant: None, limit }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn usage_keys_are_read_by_name() {
        for key in UsageKey::ALL {
            let read = usage(json!({ "by": key.name() })).unwrap();
            assert!(matches!(read, Operation::Usage(UsageQuery { by, .. }) if by == key));
        }
        for wrong in [json!({ "by": "week" }), json!({ "limit": 0 }), json!({ "since": 7 })] {
            assert!(usage(wrong.clone()).is_err(), "{wrong}");
        }
    }
}
