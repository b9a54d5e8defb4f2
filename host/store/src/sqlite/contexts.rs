//! Conversations, in SQL: what their tasks come to.

use super::{
    ContextFilter, Failure, integer,
    logs::{LIVE, beyond, head_of},
};
use crate::log;
use a2a_hub_protocol::operation::ContextInfo;
use rusqlite::{Connection, params};

pub(super) fn list(db: &Connection, filter: &ContextFilter) -> Result<Vec<ContextInfo>, Failure> {
    let mut found = db.prepare_cached(&select(filter))?;
    let context = filter.context.as_ref().map(|context| context.as_str());
    let [limit, offset] = [filter.limit, filter.offset].map(|n| integer(n as u64));
    let (prefix, beyond) = (&filter.id_prefix, filter.id_prefix.as_deref().map(beyond));
    let values = params![context, filter.idle_since, prefix, beyond, limit, offset];
    let mut rows = found.query(values)?;
    let mut infos = Vec::new();
    while let Some(row) = rows.next()? {
        infos.extend(info(db, row.get_ref(0)?.as_str().map_err(rusqlite::Error::from)?)?);
    }
    Ok(infos)
}

/// The names alone, which the index `tasks_of_context` tells by itself unless it is asked for a time.
fn select(filter: &ContextFilter) -> String {
    let mut sql = "SELECT context FROM tasks".to_owned();
    if filter.context.is_some() {
        sql += " WHERE context = ?1";
    } else if filter.id_prefix.is_some() {
        sql += " WHERE context >= ?3 AND context < ?4";
    }
    sql += " GROUP BY context";
    if filter.idle_since.is_some() {
        sql = sql + " HAVING max(updated) < ?2 AND NOT max" + LIVE;
    }
    sql + " ORDER BY max(id) DESC LIMIT ?5 OFFSET ?6"
}

/// What the tasks of a conversation come to; none if it has none.
fn info(db: &Connection, context: &str) -> Result<Option<ContextInfo>, Failure> {
    let sql = "SELECT id, context, agent, state, seq, created, updated FROM tasks WHERE context = ?1 ORDER BY id";
    let mut found = db.prepare_cached(sql)?;
    let mut rows = found.query([context])?;
    let mut known: Option<ContextInfo> = None;
    while let Some(row) = rows.next()? {
        let head = head_of(row)?;
        match &mut known {
            Some(info) => log::join(info, &head),
            None => known = Some(log::context_of(&head)),
        }
    }
    Ok(known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_of_names_comes_from_the_index_alone() {
        let dir = tempfile::tempdir().unwrap();
        let db = crate::sqlite::schema::open(&dir.path().join("hub.db")).unwrap();
        let sql = format!("EXPLAIN QUERY PLAN {}", select(&ContextFilter::default()));
        let mut plan = db.prepare(&sql).unwrap();
        let none = None::<String>;
        let values = params![none, none, none, none, 20, 0];
        let first: String = plan.query_row(values, |row| row.get("detail")).unwrap();
        assert_eq!(first, "SCAN tasks USING COVERING INDEX tasks_of_context");
    }
}
