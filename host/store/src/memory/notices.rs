//! Notices, in memory.

use super::MemoryStorage;
use crate::{
    StorageError,
    notices::{NoticeFilter, NoticeListener, NoticePage, NoticeStore},
};
use a2a_hub_core::access_control::Principal;
use a2a_hub_protocol::{id::TenantId, operation::ReadNotices};

#[async_trait::async_trait]
impl NoticeStore for MemoryStorage {
    async fn notices(&self, filter: NoticeFilter) -> Result<NoticePage, StorageError> {
        Ok(self.lock().notices.page(&filter))
    }

    async fn mark_notices_read(
        &self,
        tenant: &TenantId,
        which: ReadNotices,
        by: &Principal,
    ) -> Result<u64, StorageError> {
        let marked = self.to_write()?.notices.mark_read(tenant, &which, by);
        if marked > 0 {
            self.notice_signal.notify(tenant);
        }
        Ok(marked)
    }

    fn set_notice_listener(&self, listener: NoticeListener) {
        self.notice_signal.set(listener);
    }
}
