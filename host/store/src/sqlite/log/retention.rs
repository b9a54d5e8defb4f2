//! Deletion of finished tasks, in SQL. A task with an unfinished ancestor is kept: the ancestor
//! counts its descendants, and its agent may ask for its children by their keys, also after a
//! restart.

use super::events::{LIVE, corrupt};
use crate::{
    LogSize,
    sqlite::{
        db::{failure::SqliteFailure, schema::integer},
        search::usage_totals::{self, LastUsage},
    },
};
use a2a_hub_protocol::id::{TaskId, TenantId};
use rusqlite::{Connection, params};
use std::collections::HashMap;

/// Query for the deletable tasks, oldest first. The tasks in use are searched from the unfinished
/// ones down, which are few: once for each query, not for each task.
fn oldest() -> String {
    format!(
        "WITH RECURSIVE in_use (id) AS (
            SELECT id FROM tasks WHERE {LIVE}
            UNION SELECT below.id FROM in_use CROSS JOIN tasks AS below ON below.parent = in_use.id
        )
        SELECT id FROM tasks
        WHERE NOT {LIVE} AND (?1 IS NULL OR updated < ?1) AND id NOT IN (SELECT id FROM in_use)
            AND (?3 IS NULL OR tenant = ?3)
        ORDER BY id LIMIT ?2"
    )
}

/// Statement that deletes a task if it is deletable. It reads one row for each ancestor, and trees
/// are not deep.
fn deletion() -> String {
    format!(
        "DELETE FROM tasks WHERE id = ?1 AND NOT {LIVE} AND NOT EXISTS (
            WITH RECURSIVE above (id) AS (
                SELECT parent FROM tasks WHERE id = ?1 AND parent IS NOT NULL
                UNION SELECT next.parent FROM above CROSS JOIN tasks AS next ON next.id = above.id
                    WHERE next.parent IS NOT NULL
            )
            SELECT 1 FROM above CROSS JOIN tasks ON tasks.id = above.id WHERE {LIVE}
        )"
    )
}

pub(in crate::sqlite) fn finished(
    db: &Connection,
    before: Option<&str>,
    tenant: Option<&TenantId>,
    limit: usize,
) -> Result<Vec<TaskId>, SqliteFailure> {
    let mut found = db.prepare_cached(&oldest())?;
    let values = params![before, integer(limit as u64), tenant.map(TenantId::as_str)];
    let rows = found.query_map(values, |row| row.get::<_, String>(0))?;
    Ok(rows.map(|id| id.map(TaskId::new)).collect::<Result<_, _>>()?)
}

/// Sizes of all logs by tenant. Reads each task, and only for a store that is too large.
pub(in crate::sqlite) fn sizes(db: &Connection) -> Result<Vec<LogSize>, SqliteFailure> {
    let sql = "SELECT tenant, count(*), sum(bytes), sum(bytes = 0) FROM tasks GROUP BY tenant";
    let mut found = db.prepare_cached(sql)?;
    let mut rows = found.query([])?;
    let (mut sizes, mut uncounted) = (Vec::new(), Vec::new());
    while let Some(row) = rows.next()? {
        let tenant = TenantId::try_from(row.get::<_, String>(0)?);
        let tenant = tenant.map_err(|why| corrupt("the tenants of tasks".to_owned(), why))?;
        let (tasks, bytes): (i64, i64) = (row.get(1)?, row.get(2)?);
        let (tasks, bytes) = (tasks.unsigned_abs(), bytes.unsigned_abs());
        uncounted.push(row.get::<_, i64>(3)?.unsigned_abs());
        sizes.push(LogSize { tenant, tasks, bytes });
    }
    // Logs of older hubs were not counted. With the average size of the others, new tasks of one
    // tenant are not taken for most of all that is stored.
    let (tasks, bytes) =
        sizes.iter().fold((0, 0), |(tasks, bytes), size| (tasks + size.tasks, bytes + size.bytes));
    let counted = tasks - uncounted.iter().sum::<u64>();
    let average = bytes.checked_div(counted).unwrap_or_default();
    for (size, uncounted) in sizes.iter_mut().zip(uncounted) {
        size.bytes = size.bytes.saturating_add(average.saturating_mul(uncounted));
    }
    Ok(sizes)
}

/// Deletes the deletable ones of these tasks, and returns the number of those that it knew. Their
/// usage, which `usage` has as of an earlier moment, is added to the totals.
pub(in crate::sqlite) fn forget(
    db: &Connection,
    tasks: &[TaskId],
    mut usage: HashMap<TaskId, LastUsage>,
) -> Result<usize, SqliteFailure> {
    let mut task = db.prepare_cached(&deletion())?;
    let mut events = db.prepare_cached("DELETE FROM events WHERE task = ?1")?;
    let mut fold = db.prepare_cached("DELETE FROM folds WHERE task = ?1")?;
    let mut pushes = db.prepare_cached("DELETE FROM pushes WHERE task = ?1")?;
    let mut forgotten = 0;
    for id in tasks {
        let usage = usage_totals::latest(db, id, usage.remove(id))?;
        if task.execute([id.as_str()])? > 0 {
            if let Some(usage) = usage {
                usage_totals::add(db, &usage)?;
            }
            events.execute([id.as_str()])?;
            fold.execute([id.as_str()])?;
            pushes.execute([id.as_str()])?;
            forgotten += 1;
        }
    }
    Ok(forgotten)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::db::schema;

    /// With a million tasks, a slow deletion would delay all others unnoticed.
    #[test]
    fn deletion_queries_use_indexes() {
        let dir = tempfile::tempdir().unwrap();
        let db = schema::open(&dir.path().join("hub.db")).unwrap().0;
        let plan = |sql: &str, values: &[&dyn rusqlite::ToSql]| -> String {
            let mut plan = db.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
            let steps = plan.query_map(values, |row| row.get::<_, String>("detail")).unwrap();
            steps.collect::<Result<Vec<_>, _>>().unwrap().join("; ")
        };
        let found = plan(&oldest(), &[&"2026", &64, &"acme"]);
        for step in ["INDEX live_tasks", "tasks_of_parent (parent=?)"] {
            assert!(found.contains(step), "{found}");
        }
        assert!(!found.contains("TEMP B-TREE"), "in the order in which they lie: {found}");
        let deleted = plan(&deletion(), &[&"t"]);
        assert!(!deleted.contains("SCAN tasks"), "{deleted}");
        assert_eq!(deleted.matches("PRIMARY KEY (id=?)").count(), 4, "{deleted}");
    }
}
