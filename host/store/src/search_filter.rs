//! Filters of a search, as all stores apply them, and its results.

use crate::{Head, SearchHit};
use a2a_hub_protocol::operation::SearchQuery;

/// True if a found task matches the filters. `person` is the identity of the principal that began
/// its tree.
pub(super) fn admits(query: &SearchQuery, head: &Head, person: &str) -> bool {
    let SearchQuery { agent, context, tenant, state, since, person: by, .. } = query;
    agent.as_ref().is_none_or(|agent| *agent == head.agent)
        && context.as_ref().is_none_or(|context| *context == head.context)
        && tenant.as_ref().is_none_or(|tenant| tenant == head.context.tenant())
        && state.is_none_or(|state| state == head.state)
        && since.as_ref().is_none_or(|since| head.updated >= *since)
        && by.as_ref().is_none_or(|by| is_person(by, person))
}

fn is_person(wanted: &str, person: &str) -> bool {
    wanted == person || person.strip_prefix("person:").is_some_and(|name| name == wanted)
}

/// Result of a search, with a marked excerpt.
pub(super) fn hit(head: Head, excerpt: String) -> SearchHit {
    let Head { task, context, agent, state, created, updated, .. } = head;
    SearchHit { task, context, agent, state, created, updated, excerpt }
}
