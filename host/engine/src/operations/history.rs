//! Reads of earlier tasks: full-text search and usage.

use super::timestamp::moment;
use crate::{
    error::HubError,
    tasks::{TaskHistory, Tasks},
};
use a2a_hub_protocol::operation::{Answer, SearchQuery, UsageQuery};

/// Finds tasks by the words in their messages and answers.
pub(super) async fn search(tasks: &Tasks, mut query: SearchQuery) -> Result<Answer, HubError> {
    query.since = moment("since", query.since)?;
    Ok(Answer::Searched(TaskHistory(tasks).search(&query).await?))
}

/// Sums the usage of tasks.
pub(super) async fn usage(tasks: &Tasks, mut query: UsageQuery) -> Result<Answer, HubError> {
    query.since = moment("since", query.since)?;
    Ok(Answer::Usage(TaskHistory(tasks).usage(&query).await?))
}
