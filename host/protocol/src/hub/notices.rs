//! Methods for the notices of all tasks.

use crate::{
    hub::{
        method::{HubMethod, PLAIN},
        notice_params,
    },
    model::operation::{NoticeList, NoticesRead},
};
use schemars::{JsonSchema as _, SchemaGenerator};

/// `hub/notices/list`.
pub(super) const LIST: HubMethod = HubMethod {
    name: "hub/notices/list",
    summary: "List what happened and needs no answer, such as failed tasks, the newest first",
    example: r#"{"kinds": ["failed", "quota"], "limit": 20}"#,
    params: notice_params::ListNotices::json_schema,
    result: SchemaGenerator::subschema_for::<NoticeList>,
    read: notice_params::list,
    ..PLAIN
};

/// `hub/notices/read`.
pub(super) const READ: HubMethod = HubMethod {
    name: "hub/notices/read",
    summary: "Mark notices as read: some by their ids, or all until one of them",
    example: r#"{"all": true, "until": 41}"#,
    params: notice_params::MarkReadParams::json_schema,
    result: SchemaGenerator::subschema_for::<NoticesRead>,
    read: notice_params::mark_read,
    ..PLAIN
};
