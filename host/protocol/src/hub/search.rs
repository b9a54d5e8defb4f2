//! Method that finds tasks by their words.

use crate::{
    hub::{
        method::{HubMethod, PLAIN},
        params::{MAX_LISTED, context_id, task_state, within},
    },
    model::{
        error::A2aError,
        id::AgentId,
        operation::{Operation, SearchQuery, SearchResults},
    },
    v03::params::read,
};
use schemars::{JsonSchema, SchemaGenerator};
use serde::Deserialize;
use serde_json::Value;

/// Default number of results.
const DEFAULT_RESULTS: usize = 20;

/// `hub/search`.
pub(super) const SEARCH: HubMethod = HubMethod {
    name: "hub/search",
    summary: "Find tasks by the words in their messages and answers, the newest first",
    example: r#"{"query": "\"flaky test\" pars*", "agentId": "claude-code", "limit": 5}"#,
    params: SearchParams::json_schema,
    result: SchemaGenerator::subschema_for::<SearchResults>,
    read: search,
    ..PLAIN
};

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SearchParams {
    /// Words, `"phrases"` in quotation marks, and word beginnings with a trailing `*`: a task must
    /// contain all of them. At most 500 characters and 16 terms.
    query: String,
    /// Only tasks of this agent.
    agent_id: Option<AgentId>,
    /// Only tasks of this conversation.
    context_id: Option<String>,
    /// Only tasks in this state, such as `completed`.
    state: Option<String>,
    /// Only tasks whose status changed at this time or later: RFC 3339 in UTC.
    since: Option<String>,
    /// Only tasks whose tree this principal began, such as `person:ada`, `ada` or `operator`.
    person: Option<String>,
    /// Value of `next` of the page before.
    cursor: Option<String>,
    /// Maximum number of tasks: 20 by default, 1,000 at most.
    limit: Option<usize>,
}

/// Reads the parameters of `hub/search`.
fn search(params: Value) -> Result<Operation, A2aError> {
    let params: SearchParams = read(params)?;
    let SearchParams { query, agent_id: agent, state, since, person, limit, .. } = params;
    let number = |cursor: String| {
        let why = "must be the `next` of an earlier page";
        cursor.parse().map_err(|_| A2aError::invalid("cursor", why))
    };
    Ok(Operation::Search(SearchQuery {
        query,
        agent,
        context: params.context_id.map(context_id).transpose()?,
        tenant: None,
        state: state.as_deref().map(task_state).transpose()?,
        since,
        person,
        after: params.cursor.map(number).transpose()?,
        limit: within("limit", limit.unwrap_or(DEFAULT_RESULTS), 1, MAX_LISTED)?,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn search_filters_are_read() {
        let read = search(json!({ "query": "a b", "state": "failed", "cursor": "7" })).unwrap();
        let Operation::Search(query) = read else { panic!("{read:?}") };
        assert_eq!((query.query.as_str(), query.after, query.limit), ("a b", Some(7), 20));
        for wrong in [
            json!({}),
            json!({ "query": 1 }),
            json!({ "query": "a", "state": "lost" }),
            json!({ "query": "a", "limit": 0 }),
            json!({ "query": "a", "cursor": "-1" }),
            json!({ "query": "a", "cursor": "99999999999999999999" }),
            json!({ "query": "a", "agentId": "no agent" }),
        ] {
            assert!(search(wrong.clone()).is_err(), "{wrong}");
        }
    }
}
