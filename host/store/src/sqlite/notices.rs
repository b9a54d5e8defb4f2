//! Table of notices. Each append to a log that ends a task, or reports a conflict of its changes,
//! adds to it in the same transaction.

use super::{
    context_memory::key,
    db::{failure::SqliteFailure, schema::integer},
    log::rows::each_event,
};
use crate::{
    Head, StorageError,
    notices::{MAX_NOTICES, NoticeFilter, NoticePage, StoredNotice},
};
use a2a_hub_clock as clock;
use a2a_hub_core::{
    access_control::Principal,
    task::notices::{NewNotice, title},
};
use a2a_hub_protocol::{
    event::{Created, TaskEvent},
    id::{AgentId, TaskId},
    operation::{NoticeKind, ReadNotices},
};
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use std::{borrow::Cow, sync::Arc};

/// Adds the notices of new events, which `by` requested. Returns true if it added any; most
/// appends have none, and cost nothing.
pub(in crate::sqlite) fn add(
    db: &Connection,
    head: &Head,
    events: &[Arc<TaskEvent>],
    by: Option<&str>,
) -> Result<bool, SqliteFailure> {
    let mut has_new = false;
    let is_root = head.parent.is_none();
    // The beginning is at hand if the task begins and ends in one append. An unreadable one must
    // not keep the task from ending.
    let begun = match events.first().map(Arc::as_ref) {
        Some(TaskEvent::Created(created)) => Some(created.as_ref()),
        Some(_) | None => None,
    };
    let begun_by = || match begun {
        Some(_) => by.and_then(Principal::from_log),
        None => begun_by(db, &head.task).unwrap_or_default(),
    };
    for notice in events.iter().filter_map(|event| NewNotice::of_event(event, is_root, begun_by)) {
        let created = match begun {
            Some(created) => Some(Cow::Borrowed(created)),
            None => beginning(db, &head.task).unwrap_or_default().map(Cow::Owned),
        };
        if notice.fits(created.as_deref()) {
            has_new |= insert(db, head, &notice, &title(created.as_deref()))?;
        }
    }
    Ok(has_new)
}

/// Principal that began the task.
fn begun_by(db: &Connection, task: &TaskId) -> Result<Option<Principal>, SqliteFailure> {
    let mut found = db.prepare_cached("SELECT asker FROM events WHERE task = ?1 AND seq = 1")?;
    let by: Option<Option<String>> =
        found.query_row([task.as_str()], |row| row.get(0)).optional()?;
    Ok(by.flatten().and_then(|by| Principal::from_log(&by)))
}

/// First event of the task; none if it is unreadable, since the task must end nevertheless.
fn beginning(db: &Connection, task: &TaskId) -> Result<Option<Created>, SqliteFailure> {
    let mut created = None;
    each_event(db, task, 0, 1, |_, event| {
        if let Ok(TaskEvent::Created(first)) = serde_json::from_str(event) {
            created = Some(*first);
        }
        Ok(())
    })?;
    Ok(created)
}

/// Inserts a notice, in place of another one of the same kind of the task; false if the same is
/// there already.
fn insert(
    db: &Connection,
    head: &Head,
    notice: &NewNotice,
    title: &str,
) -> Result<bool, SqliteFailure> {
    let NewNotice { kind, text, at } = notice;
    let (task, tenant) = (head.task.as_str(), head.context.tenant().as_str());
    let sql = "DELETE FROM notices WHERE task = ?1 AND kind = ?2 AND text <> ?3";
    db.prepare_cached(sql)?.execute(params![task, kind.name(), text])?;
    let sql = "INSERT INTO notices (task, tenant, kind, at, title, text)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT DO NOTHING";
    let at = at.clone().unwrap_or_else(clock::now);
    let values = params![task, tenant, kind.name(), at, title, text];
    let is_new = db.prepare_cached(sql)?.execute(values)? > 0;
    if is_new {
        let sql = "DELETE FROM notices WHERE tenant = ?1 AND number <= (SELECT number FROM notices
            WHERE tenant = ?1 ORDER BY number DESC LIMIT 1 OFFSET ?2)";
        db.prepare_cached(sql)?.execute(params![tenant, integer(MAX_NOTICES as u64)])?;
    }
    Ok(is_new)
}

pub(super) fn list(db: &Connection, filter: &NoticeFilter) -> Result<NoticePage, SqliteFailure> {
    let sql = "SELECT n.number, n.kind, n.task, t.agent, t.context, n.title, n.text, n.at,
            n.read_at, n.read_by
        FROM notices n JOIN tasks t ON t.id = n.task
        WHERE n.tenant = ?1 AND n.number < ?2 AND (?3 OR n.read_at IS NULL)
        ORDER BY n.number DESC";
    let tenant = filter.tenant.as_str();
    let before = filter.before.map_or(i64::MAX, integer);
    let mut found = db.prepare_cached(sql)?;
    let mut rows = found.query(params![tenant, before, filter.includes_read])?;
    let mut notices = Vec::new();
    // A tenant has few rows, and most filters admit all kinds.
    while notices.len() < filter.limit
        && let Some(row) = rows.next()?
    {
        notices.extend(notice(row)?.filter(|notice| filter.admits(notice.kind)));
    }
    let sql = "SELECT count(*) FROM notices WHERE tenant = ?1 AND read_at IS NULL";
    let unread: i64 = db.prepare_cached(sql)?.query_row([tenant], |row| row.get(0))?;
    Ok(NoticePage { notices, unread: unread.unsigned_abs() })
}

/// Notice of a row; none for a kind of a later version.
fn notice(row: &Row<'_>) -> Result<Option<StoredNotice>, SqliteFailure> {
    let text = |at: usize| row.get::<_, String>(at);
    let Some(kind) = NoticeKind::named(&text(1)?) else { return Ok(None) };
    let agent = AgentId::parse(text(3)?).map_err(|why| StorageError::Corrupt {
        subject: "a notice".to_owned(),
        why: why.to_string(),
    })?;
    Ok(Some(StoredNotice {
        number: row.get::<_, i64>(0)?.unsigned_abs(),
        kind,
        task: TaskId::new(text(2)?),
        agent,
        context: key::read(text(4)?),
        title: text(5)?,
        text: text(6)?,
        at: text(7)?,
        read_at: row.get(8)?,
        read_by: row.get::<_, Option<String>>(9)?.and_then(|by| Principal::from_log(&by)),
    }))
}

/// Marks notices of a tenant as read, and returns their number.
pub(super) fn mark_read(
    db: &Connection,
    tenant: &str,
    which: &ReadNotices,
    by: &str,
) -> Result<u64, SqliteFailure> {
    let now = clock::now();
    let marked = match which {
        ReadNotices::Ids(ids) => {
            let sql = "UPDATE notices SET read_at = ?3, read_by = ?4
                WHERE number = ?2 AND tenant = ?1 AND read_at IS NULL";
            let mut mark = db.prepare_cached(sql)?;
            let mut marked = 0;
            for id in ids {
                marked += mark.execute(params![tenant, integer(*id), now, by])?;
            }
            marked
        }
        ReadNotices::All { until } => {
            let sql = "UPDATE notices SET read_at = ?3, read_by = ?4
                WHERE tenant = ?1 AND number <= ?2 AND read_at IS NULL";
            let until = until.map_or(i64::MAX, integer);
            db.prepare_cached(sql)?.execute(params![tenant, until, now, by])?
        }
    };
    Ok(marked as u64)
}
