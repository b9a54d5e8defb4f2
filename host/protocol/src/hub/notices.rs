//! Methods for the notices of all tasks.

use crate::{
    hub::{
        method::{HubMethod, PLAIN},
        notice_params,
    },
    model::operation::{NoticeList, NoticesSeen},
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

/// `hub/notices/see`.
pub(super) const SEE: HubMethod = HubMethod {
    name: "hub/notices/see",
    summary: "Mark notices as seen: some by their ids, or all until one of them",
    example: r#"{"all": true, "until": 41}"#,
    params: notice_params::SeeNotices::json_schema,
    result: SchemaGenerator::subschema_for::<NoticesSeen>,
    read: notice_params::see,
    ..PLAIN
};
