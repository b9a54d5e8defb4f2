//! Reads of earlier tasks: full-text search and usage.

use super::{Hub, timestamp::moment};
use crate::error::HubError;
use a2a_hub_protocol::operation::{Answer, SearchQuery, UsageQuery};

impl Hub {
    /// Finds tasks by the words in their messages and answers.
    pub(super) async fn search_tasks(&self, mut query: SearchQuery) -> Result<Answer, HubError> {
        query.since = moment("since", query.since)?;
        Ok(Answer::Searched(self.tasks.search(&query).await?))
    }

    /// Sums the usage of tasks.
    pub(super) async fn usage(&self, mut query: UsageQuery) -> Result<Answer, HubError> {
        query.since = moment("since", query.since)?;
        Ok(Answer::Usage(self.tasks.usage(&query).await?))
    }
}
