//! Parameters of the methods for the notices of all tasks.

use crate::{
    hub::params::{MAX_LISTED, within},
    model::{
        error::A2aError,
        operation::{NoticeKind, NoticeQuery, NoticeRequest, Operation, ReadNotices},
    },
    v03::params::read,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

/// Default number of listed notices.
const DEFAULT_LISTED: usize = 100;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ListNotices {
    /// Only notices of these kinds: `failed`, `quota`, `finished` or `conflict`.
    #[schemars(with = "Option<Vec<String>>")]
    kinds: Option<Vec<NoticeKind>>,
    /// True to list the notices that were read, too; false by default.
    #[serde(default)]
    include_read: bool,
    /// Only notices older than the one with this id, for the next page.
    before: Option<u64>,
    /// Maximum number of notices, up to 1,000; 100 by default.
    limit: Option<usize>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MarkReadParams {
    /// Ids of the notices, at most 1,000; either these or `all`.
    ids: Option<Vec<u64>>,
    /// True to mark all notices; either this or `ids`.
    #[serde(default)]
    all: bool,
    /// With `all`: id of the newest notice to mark, so that none is marked that came later.
    until: Option<u64>,
}

/// Reads the parameters of `hub/notices/list`.
pub(crate) fn list(params: Value) -> Result<Operation, A2aError> {
    let ListNotices { kinds, include_read, before, limit } = read(params)?;
    let limit = within("limit", limit.unwrap_or(DEFAULT_LISTED), 1, MAX_LISTED)?;
    let kinds = kinds.unwrap_or_default();
    let query = NoticeQuery { kinds, includes_read: include_read, before, limit };
    Ok(Operation::Notice(NoticeRequest::List(query)))
}

/// Reads the parameters of `hub/notices/read`.
pub(crate) fn mark_read(params: Value) -> Result<Operation, A2aError> {
    let MarkReadParams { ids, all, until } = read(params)?;
    let which = match ids {
        None if all => ReadNotices::All { until },
        Some(_) if all => {
            return Err(A2aError::invalid("ids", "give either `ids` or `\"all\": true`"));
        }
        None => {
            let why = "name the notices, as `hub/notices/list` shows them, or give `\"all\": true`";
            return Err(A2aError::invalid("ids", why));
        }
        Some(_) if until.is_some() => {
            return Err(A2aError::invalid("until", "goes with `\"all\": true` only"));
        }
        Some(ids) if ids.is_empty() || ids.len() > MAX_LISTED => {
            let why = format!("must name between 1 and {MAX_LISTED} notices");
            return Err(A2aError::invalid("ids", why));
        }
        Some(ids) => ReadNotices::Ids(ids),
    };
    Ok(Operation::Notice(NoticeRequest::MarkRead(which)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn notice_filters_are_read() {
        let read = list(json!({ "kinds": ["quota"], "includeRead": true, "before": 7 })).unwrap();
        let query = NoticeQuery {
            kinds: vec![NoticeKind::Quota],
            includes_read: true,
            before: Some(7),
            limit: 100,
        };
        assert_eq!(read, Operation::Notice(NoticeRequest::List(query)));
        assert!(list(json!({})).is_ok() && list(json!({ "kinds": [], "limit": 1_000 })).is_ok());
        for wrong in [
            json!({ "limit": 0 }),
            json!({ "limit": 1_001 }),
            json!({ "kinds": ["x"] }),
            json!({ "kinds": "failed" }),
            json!({ "before": -1 }),
            json!({ "before": 1e30 }),
        ] {
            assert!(list(wrong.clone()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn notices_to_mark_are_named_or_all() {
        let parsed = |params: Value| match mark_read(params) {
            Ok(Operation::Notice(NoticeRequest::MarkRead(which))) => Some(which),
            Ok(_) | Err(_) => None,
        };
        assert_eq!(parsed(json!({ "ids": [3, 1] })), Some(ReadNotices::Ids(vec![3, 1])));
        let all = |until| Some(ReadNotices::All { until });
        assert_eq!(parsed(json!({ "all": true })), all(None));
        assert_eq!(parsed(json!({ "all": true, "until": 9 })), all(Some(9)));
        for wrong in [
            json!({}),
            json!({ "all": false }),
            json!({ "ids": [] }),
            json!({ "ids": vec![1; MAX_LISTED + 1] }),
            json!({ "ids": [1], "all": true }),
            json!({ "ids": [1], "until": 9 }),
            json!({ "ids": [-1] }),
            json!({ "ids": ["1"] }),
            json!({ "all": "yes" }),
        ] {
            assert_eq!(parsed(wrong.clone()), None, "{wrong}");
        }
    }
}
