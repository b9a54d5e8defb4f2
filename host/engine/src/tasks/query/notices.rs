//! Notices of all tasks: lists them, and marks them as read.

use crate::{
    error::HubError,
    tasks::{
        Tasks,
        query::visible::{CHUNK, VisibleTasks},
    },
};
use a2a_hub_clock::quota_reset::quota_reset;
use a2a_hub_core::access_control::Caller;
use a2a_hub_protocol::{
    id::TenantId,
    operation::{
        Notice, NoticeAnswer, NoticeKind, NoticeList, NoticeQuery, NoticeRequest, NoticesRead,
    },
};
use a2a_hub_store::{MAX_NOTICES, NoticeFilter, NoticePage, StorageError, StoredNotice};
use futures::FutureExt as _;
use jiff::tz::TimeZone;

/// Notices of all tasks of a hub, or of those that a person sees.
pub(crate) struct Notices<'a>(pub(crate) &'a Tasks, pub(crate) Option<VisibleTasks>);

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
                let page = match &self.1 {
                    Some(visible) => self.visible_page(filter, visible).await?,
                    None => storage.notices(filter).await?,
                };
                NoticeAnswer::List(listed(page, limit))
            }
            NoticeRequest::MarkRead(which) => {
                let by = &caller.principal;
                let marked = storage.mark_notices_read(&caller.tenant, which, by).await?;
                NoticeAnswer::Marked(NoticesRead { marked })
            }
        })
    }

    /// Page of the notices of tasks that the person sees, and the number of their unread ones.
    async fn visible_page(
        &self,
        filter: NoticeFilter,
        visible: &VisibleTasks,
    ) -> Result<NoticePage, StorageError> {
        let (kinds, before) = (Vec::new(), None);
        let all = NoticeFilter { includes_read: false, kinds, before, ..filter.clone() };
        let unread = self.visible_notices(all, usize::MAX, visible).await?.len() as u64;
        let limit = filter.limit;
        let notices = self.visible_notices(filter, limit, visible).await?;
        Ok(NoticePage { notices, unread })
    }

    async fn visible_notices(
        &self,
        filter: NoticeFilter,
        limit: usize,
        visible: &VisibleTasks,
    ) -> Result<Vec<StoredNotice>, StorageError> {
        let first = filter.before;
        let read = |before| {
            let chunk = NoticeFilter { before, limit: CHUNK, ..filter.clone() };
            async move { Ok(self.0.storage.notices(chunk).await?.notices) }.boxed()
        };
        visible.newest(limit, first, read, |notice| (&notice.task, notice.number)).await
    }
}

impl Notices<'_> {
    /// Unread notices of a tenant, the newest first.
    pub(crate) async fn all_unread(&self, tenant: &TenantId) -> Result<Vec<Notice>, HubError> {
        let tenant = tenant.clone();
        let filter = NoticeFilter { tenant, limit: MAX_NOTICES, ..NoticeFilter::default() };
        let page = self.0.storage.notices(filter).await?;
        Ok(page.notices.into_iter().map(notice).collect())
    }
}

fn listed(page: NoticePage, limit: usize) -> NoticeList {
    let NoticePage { notices, unread } = page;
    let next = notices.last().filter(|_| notices.len() == limit).map(|last| last.number);
    let with_reset = |stored| {
        let notice = notice(stored);
        Notice { resets_at: resets_at(&notice), ..notice }
    };
    NoticeList { notices: notices.into_iter().map(with_reset).collect(), unread, next }
}

/// Time at which a used-up quota resets, as the notice's error says; none if it says none.
fn resets_at(notice: &Notice) -> Option<String> {
    if notice.kind != NoticeKind::Quota {
        return None;
    }
    let time = quota_reset(&notice.text, notice.at.parse().ok()?, &TimeZone::system())?;
    Some(format!("{time:.3}"))
}

/// Notice without the time at which a quota resets: notifiers look often and do not need it.
fn notice(stored: StoredNotice) -> Notice {
    let StoredNotice { number, kind, task, agent, context, title, text, at, read_at, read_by } =
        stored;
    Notice {
        resets_at: None,
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
