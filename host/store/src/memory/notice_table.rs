//! Table of notices, in memory.

use crate::{
    Head,
    notices::{MAX_NOTICES, NoticeFilter, NoticePage, StoredNotice},
};
use a2a_hub_clock as clock;
use a2a_hub_core::{
    access_control::Principal,
    task::notices::{NewNotice, title},
};
use a2a_hub_protocol::{
    event::TaskEvent,
    id::{TaskId, TenantId},
    operation::ReadNotices,
};
use std::sync::Arc;

/// Notices of all tenants, the oldest first.
#[derive(Debug, Default)]
pub(super) struct NoticeTable {
    /// Number of the latest notice.
    last: u64,
    rows: Vec<StoredNotice>,
}

impl NoticeTable {
    /// Adds the notices of a log's events after number `after`; `begun_by` requested the first
    /// event. Returns true if it added any.
    pub(super) fn add(
        &mut self,
        head: &Head,
        events: &[Arc<TaskEvent>],
        begun_by: Option<&Principal>,
        after: u64,
    ) -> bool {
        let created = match events.first().map(Arc::as_ref) {
            Some(TaskEvent::Created(created)) => Some(created.as_ref()),
            Some(_) | None => None,
        };
        let after = usize::try_from(after).unwrap_or(usize::MAX);
        let is_root = head.parent.is_none();
        let new = events.iter().skip(after);
        let new = new.filter_map(|event| NewNotice::of_event(event, is_root, || begun_by.cloned()));
        let mut has_new = false;
        for NewNotice { kind, text, at } in new.filter(|notice| notice.fits(created)) {
            let same = |row: &StoredNotice| row.task == head.task && row.kind == kind;
            self.rows.retain(|row| !same(row) || row.text == text);
            if self.rows.iter().any(same) {
                continue;
            }
            self.last += 1;
            self.rows.push(StoredNotice {
                number: self.last,
                kind,
                task: head.task.clone(),
                agent: head.agent.clone(),
                context: head.context.clone(),
                title: title(created),
                text,
                at: at.unwrap_or_else(clock::now),
                read_at: None,
                read_by: None,
            });
            self.drop_oldest(head.context.tenant());
            has_new = true;
        }
        has_new
    }

    fn drop_oldest(&mut self, tenant: &TenantId) {
        let of_tenant = |row: &StoredNotice| row.context.tenant() == tenant;
        let surplus = self.rows.iter().filter(|row| of_tenant(row)).count();
        let mut surplus = surplus.saturating_sub(MAX_NOTICES);
        self.rows.retain(|row| {
            let goes = surplus > 0 && of_tenant(row);
            surplus -= usize::from(goes);
            !goes
        });
    }

    /// Deletes the notices of all tasks but those that `is_there` accepts.
    pub(super) fn retain_tasks(&mut self, is_there: impl Fn(&TaskId) -> bool) {
        self.rows.retain(|row| is_there(&row.task));
    }

    pub(super) fn page(&self, filter: &NoticeFilter) -> NoticePage {
        let of_tenant = || self.rows.iter().filter(|row| *row.context.tenant() == filter.tenant);
        let matches = |row: &&StoredNotice| {
            filter.admits(row.kind)
                && (filter.includes_read || row.read_at.is_none())
                && filter.before.is_none_or(|before| row.number < before)
        };
        let notices = of_tenant().rev().filter(matches).take(filter.limit).cloned().collect();
        let unread = of_tenant().filter(|row| row.read_at.is_none()).count() as u64;
        NoticePage { notices, unread }
    }

    pub(super) fn mark_read(
        &mut self,
        tenant: &TenantId,
        which: &ReadNotices,
        by: &Principal,
    ) -> u64 {
        let is_meant = |number: u64| match which {
            ReadNotices::Ids(ids) => ids.contains(&number),
            ReadNotices::All { until } => until.is_none_or(|until| number <= until),
        };
        let mut marked = 0;
        for row in &mut self.rows {
            let is_new = row.context.tenant() == tenant && row.read_at.is_none();
            if is_new && is_meant(row.number) {
                row.read_at = Some(clock::now());
                row.read_by = Some(by.clone());
                marked += 1;
            }
        }
        marked
    }
}
