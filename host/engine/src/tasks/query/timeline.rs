//! Reads the timeline of a task, a page of its log at a time.

use super::search::TaskHistory;
use crate::error::HubError;
use a2a_hub_core::timeline::Timeline;
use a2a_hub_protocol::{
    error::A2aError,
    operation::{TimelinePage, TimelineQuery},
};
use a2a_hub_store::HeadFilter;

/// Events that are read together: each may be as long as a message.
const READ_AT_ONCE: usize = 64;

/// Most children of a task that its timeline shows, the newest ones.
const MAX_CHILDREN: usize = 1_000;

impl TaskHistory<'_> {
    /// Page of a task's timeline. It reads the events of the page only.
    pub(crate) async fn timeline(&self, query: &TimelineQuery) -> Result<TimelinePage, HubError> {
        let TimelineQuery { id, after, limit } = query;
        let storage = &self.0.storage;
        let head = storage.head(id).await?.ok_or_else(|| A2aError::no_task(id))?;
        let mut timeline = Timeline::after(after.clone().unwrap_or_default());
        let mut remaining = *limit;
        while remaining > 0 {
            let at_once = remaining.min(READ_AT_ONCE);
            let events = storage.events(id, timeline.seq(), at_once).await?;
            let (Some(first), Some(last)) = (events.first(), events.last()) else { break };
            let principals = storage.askers_within(id, first.seq..=last.seq).await?;
            remaining -= events.len();
            for event in &events {
                let by = principals.iter().find(|(seq, _)| *seq == event.seq).map(|(_, by)| by);
                timeline.add(event, by);
            }
        }
        let is_end = timeline.seq() >= head.seq;
        let of_task =
            HeadFilter { parent: Some(id.clone()), limit: MAX_CHILDREN, ..HeadFilter::default() };
        let children = storage.heads(of_task).await?;
        let children = children.iter().rev();
        let children = children.map(|child| (child.created.as_str(), &child.task, &child.agent));
        Ok(timeline.finish(children, is_end))
    }
}
