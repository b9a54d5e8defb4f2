//! Notices in SQL, as the store offers them.

use super::{SqliteStorage, notices};
use crate::{
    StorageError,
    notices::{NoticeFilter, NoticeListener, NoticePage, NoticeStore},
};
use a2a_hub_core::access_control::Principal;
use a2a_hub_protocol::{id::TenantId, operation::ReadNotices};

#[async_trait::async_trait]
impl NoticeStore for SqliteStorage {
    async fn notices(&self, filter: NoticeFilter) -> Result<NoticePage, StorageError> {
        self.readers.read(move |db| notices::list(db, &filter)).await
    }

    async fn mark_notices_read(
        &self,
        tenant: &TenantId,
        which: ReadNotices,
        by: &Principal,
    ) -> Result<u64, StorageError> {
        let (of, by) = (tenant.clone(), by.to_log());
        let marked =
            self.writer.write(move |db| notices::mark_read(db, of.as_str(), &which, &by)).await?;
        if marked > 0 {
            self.notice_signal.notify(tenant);
        }
        Ok(marked)
    }

    fn set_notice_listener(&self, listener: NoticeListener) {
        self.notice_signal.set(listener);
    }
}
