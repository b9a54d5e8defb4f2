//! Items that may need a person: the open questions and the unread notices of a tenant.

use crate::{
    error::HubError,
    tasks::{Notices, Questions, Tasks},
};
use a2a_hub_core::notify::plan::AttentionItem;
use a2a_hub_protocol::id::TenantId;
use jiff::Timestamp;

/// All items of a tenant.
pub(super) async fn open_items(
    tasks: &Tasks,
    tenant: &TenantId,
) -> Result<Vec<AttentionItem>, HubError> {
    let questions = Questions(tasks, None).all_open(tenant).await?.into_iter();
    // The oldest comes first, as in a message.
    let notices = Notices(tasks, None).all_unread(tenant).await?.into_iter().rev();
    let questions = questions.map(|question| {
        let at_ms = ms(&question.opened_at);
        AttentionItem::of_question(question, at_ms)
    });
    let notices = notices.map(|notice| {
        let at_ms = ms(&notice.at);
        AttentionItem::of_notice(notice, at_ms)
    });
    Ok(questions.chain(notices).collect())
}

/// Milliseconds since 1970 of a time of the log; 0 for an invalid one, which is long ago.
fn ms(time: &str) -> i64 {
    time.parse::<Timestamp>().map(Timestamp::as_millisecond).unwrap_or_default()
}
