//! Method that returns the timeline of a task.

use crate::{
    hub::{
        method::{HubMethod, PLAIN},
        params::{MAX_LISTED, within},
    },
    model::{
        error::A2aError,
        operation::{Operation, TimelineCursor, TimelinePage, TimelineQuery},
    },
    v03::params::{read, task_id},
};
use schemars::{JsonSchema, SchemaGenerator};
use serde::Deserialize;
use serde_json::Value;

/// Default number of events of a page.
const DEFAULT_EVENTS: usize = 100;

/// `hub/tasks/timeline`.
pub(super) const TIMELINE: HubMethod = HubMethod {
    name: "hub/tasks/timeline",
    summary: "Return what happened in a task, an entry for each event of its log, in pages: \
              states, messages, tools, artifacts, questions with their answers, usage and child \
              tasks",
    example: r#"{"id": "task-456", "limit": 50}"#,
    params: TimelineParams::json_schema,
    result: SchemaGenerator::subschema_for::<TimelinePage>,
    read: timeline,
    ..PLAIN
};

#[derive(Deserialize, JsonSchema)]
pub(crate) struct TimelineParams {
    /// Id of the task.
    id: String,
    /// Value of `next` of the page before.
    cursor: Option<String>,
    /// Maximum number of events that the page covers: 100 by default, 1,000 at most.
    limit: Option<usize>,
}

/// Reads the parameters of `hub/tasks/timeline`.
fn timeline(params: Value) -> Result<Operation, A2aError> {
    let TimelineParams { id, cursor, limit } = read(params)?;
    let after = |cursor: String| {
        let why = "must be the `next` of an earlier page";
        TimelineCursor::parse(&cursor).ok_or_else(|| A2aError::invalid("cursor", why))
    };
    Ok(Operation::GetTimeline(TimelineQuery {
        id: task_id("id", id)?,
        after: cursor.map(after).transpose()?,
        limit: within("limit", limit.unwrap_or(DEFAULT_EVENTS), 1, MAX_LISTED)?,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn wrong_parameters_are_refused() {
        let read = timeline(json!({ "id": "t", "cursor": "7@2026" })).unwrap();
        let Operation::GetTimeline(query) = read else { panic!("{read:?}") };
        assert_eq!((query.after.unwrap().seq, query.limit), (7, DEFAULT_EVENTS));
        for wrong in [
            json!({}),
            json!({ "id": 7 }),
            json!({ "id": "t", "limit": 0 }),
            json!({ "id": "t", "limit": 1_001 }),
            json!({ "id": "t", "cursor": "x" }),
            json!({ "id": "t", "cursor": 7 }),
        ] {
            assert!(timeline(wrong.clone()).is_err(), "{wrong}");
        }
    }
}
