//! Notices of all tasks: lists them, and marks them as read.

use crate::{error::HubError, tasks::Tasks};
use a2a_hub_core::access_control::Caller;
use a2a_hub_protocol::operation::{
    Notice, NoticeAnswer, NoticeList, NoticeQuery, NoticeRequest, NoticesRead,
};
use a2a_hub_store::{NoticeFilter, NoticePage, StoredNotice};

/// Notices of all tasks of a hub.
pub(crate) struct Notices<'a>(pub(crate) &'a Tasks);

impl Notices<'_> {
    /// Carries out a request for the notices of the caller's tenant.
    pub(crate) async fn perform(
        &self,
        caller: &Caller,
        request: NoticeRequest,
    ) -> Result<NoticeAnswer, HubError> {
        let storage = &self.0.storage;
        Ok(match request {
            NoticeRequest::List(NoticeQuery { kinds, includes_read, before, limit }) => {
                let tenant = caller.tenant.clone();
                let filter = NoticeFilter { tenant, kinds, includes_read, before, limit };
                NoticeAnswer::List(listed(storage.notices(filter).await?, limit))
            }
            NoticeRequest::MarkRead(which) => {
                let by = &caller.principal;
                let marked = storage.mark_notices_read(&caller.tenant, which, by).await?;
                NoticeAnswer::Marked(NoticesRead { marked })
            }
        })
    }
}

fn listed(page: NoticePage, limit: usize) -> NoticeList {
    let NoticePage { notices, unread } = page;
    let next = notices.last().filter(|_| notices.len() == limit).map(|last| last.number);
    NoticeList { notices: notices.into_iter().map(notice).collect(), unread, next }
}

fn notice(stored: StoredNotice) -> Notice {
    let StoredNotice { number, kind, task, agent, context, title, text, at, read_at, read_by } =
        stored;
    Notice {
        id: number,
        kind,
        task_id: task,
        agent_id: agent,
        context_id: context,
        title,
        text,
        at,
        read: read_at.is_some(),
        read_at,
        read_by: read_by.map(|by| by.to_log()),
    }
}
