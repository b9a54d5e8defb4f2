//! Usage of deleted tasks, which outlives their logs.

use super::{
    stored::{AMOUNTS, amounts},
    task_reader,
};
use crate::{Head, sqlite::db::failure::SqliteFailure, usage::TaskOrigin};
use a2a_hub_core::usage::{OTHER_MODELS, UsageEntry, UsageGroups, UsageOrigin};
use a2a_hub_protocol::id::{TaskId, TenantId};
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use std::collections::HashMap;

/// Most models of an agent's day. Agents write their names, and the totals are never deleted.
/// Further ones count as [`OTHER_MODELS`].
const MAX_MODELS: i64 = 64;

/// Usage of a task that is to be deleted, as of an event of its log.
#[derive(Debug)]
pub(in crate::sqlite) struct LastUsage {
    head: Head,
    origin: TaskOrigin,
    entries: Vec<UsageEntry>,
}

/// Usage of these tasks by their logs. `known` has origins of tasks whose ancestors were deleted
/// before.
pub(in crate::sqlite) fn of_tasks(
    db: &Connection,
    tasks: &[TaskId],
    mut known: HashMap<TaskId, TaskOrigin>,
) -> Result<HashMap<TaskId, LastUsage>, SqliteFailure> {
    let mut usage = HashMap::new();
    for task in tasks {
        let head = task_reader::readable_head(db, task)?;
        if let Some(head) = head.filter(|head| head.state.is_final()) {
            usage.insert(task.clone(), of_task(db, head, known.remove(task))?);
        }
    }
    Ok(usage)
}

/// Usage of a task at its deletion: as it was read before, unless the task has changed since.
pub(in crate::sqlite) fn latest(
    db: &Connection,
    task: &TaskId,
    before: Option<LastUsage>,
) -> Result<Option<LastUsage>, SqliteFailure> {
    let Some(head) = task_reader::readable_head(db, task)? else { return Ok(None) };
    match before {
        Some(before) if before.head.seq == head.seq => Ok(Some(before)),
        before if head.state.is_final() => {
            of_task(db, head, before.map(|before| before.origin)).map(Some)
        }
        Some(_) | None => Ok(None),
    }
}

fn of_task(
    db: &Connection,
    head: Head,
    known: Option<TaskOrigin>,
) -> Result<LastUsage, SqliteFailure> {
    let usage = task_reader::usage(db, &head, known)?;
    Ok(LastUsage { head, origin: usage.origin, entries: usage.entries })
}

/// Adds the usage of a deleted task to the totals.
pub(in crate::sqlite) fn add(db: &Connection, last: &LastUsage) -> Result<(), SqliteFailure> {
    let LastUsage { head, origin, entries } = last;
    let (agent, tenant) = (head.agent.as_str(), head.context.tenant().as_str());
    for entry in entries {
        let model = model_of(db, &entry.day, agent, &entry.model)?;
        let key = params![entry.day, agent, model, tenant, origin.person, origin.flow];
        let sql = format!(
            "SELECT {AMOUNTS} FROM usage_totals WHERE day = ?1 AND agent = ?2 AND model = ?3
            AND tenant = ?4 AND person = ?5 AND flow = ?6"
        );
        let mut known = db.prepare_cached(&sql)?;
        let known = known.query_row(key, |row| amounts(row, 0)).optional()?;
        // In SQL, a sum might overflow.
        let mut sum = known.unwrap_or_default();
        sum.add(entry.amounts);
        let sql = format!(
            "INSERT OR REPLACE INTO usage_totals
            (day, agent, model, tenant, person, flow, {AMOUNTS})
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)"
        );
        let [a, b, c, d, e, f, g, h, i, j, k] = sum.to_array();
        let TaskOrigin { person, flow } = origin;
        db.prepare_cached(&sql)?.execute(params![
            entry.day, agent, model, tenant, person, flow, a, b, c, d, e, f, g, h, i, j, k
        ])?;
    }
    Ok(())
}

/// Model under which a total counts.
fn model_of<'a>(
    db: &Connection,
    day: &str,
    agent: &str,
    model: &'a str,
) -> Result<&'a str, SqliteFailure> {
    let sql = "SELECT count(DISTINCT model), count(*) FILTER (WHERE model = ?3)
        FROM usage_totals WHERE day = ?1 AND agent = ?2";
    let counts = |row: &Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?));
    let (models, same) = db.prepare_cached(sql)?.query_row([day, agent, model], counts)?;
    Ok(if models < MAX_MODELS || same > 0 { model } else { OTHER_MODELS })
}

/// Adds the totals to sums.
pub(super) fn add_all(
    db: &Connection,
    tenant: Option<&TenantId>,
    since: Option<&str>,
    groups: &mut UsageGroups,
) -> Result<(), SqliteFailure> {
    let sql = format!(
        "SELECT day, agent, model, tenant, person, flow, {AMOUNTS} FROM usage_totals
        WHERE day >= ?1 AND (?2 IS NULL OR tenant = ?2)"
    );
    let mut found = db.prepare_cached(&sql)?;
    let tenant = tenant.map(TenantId::as_str);
    let mut rows = found.query(params![since.unwrap_or_default(), tenant])?;
    while let Some(row) = rows.next()? {
        let text = |column: usize| row.get::<_, String>(column);
        let [agent, tenant, person, flow] = [text(1)?, text(3)?, text(4)?, text(5)?];
        let entry = UsageEntry { day: text(0)?, model: text(2)?, amounts: amounts(row, 6)? };
        let origin = UsageOrigin {
            task: None,
            agent: &agent,
            tenant: &tenant,
            person: &person,
            flow: &flow,
        };
        groups.add(origin, &entry);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        TaskLog as _,
        contract::{created, status},
        sqlite::SqliteStorage,
    };
    use a2a_hub_protocol::task::TaskState;
    use std::slice;

    /// Only the index knew the origin of a task whose parent was deleted before it.
    #[tokio::test]
    async fn known_origin_survives_late_change() {
        let dir = tempfile::tempdir().unwrap();
        let storage = SqliteStorage::open(dir.path()).unwrap();
        let task = TaskId::fresh();
        let log = vec![created(&task, "c"), status(TaskState::Canceled, 1, None)];
        storage.append(&task, 0, log).await.unwrap();
        let origin = TaskOrigin { person: "client:ci".to_owned(), flow: "review".to_owned() };
        let known = HashMap::from([(task.clone(), origin.clone())]);
        let change = move |db: &Connection| {
            db.execute("UPDATE tasks SET parent = 'deleted' WHERE id = ?1", [task.as_str()])?;
            let before = of_tasks(db, slice::from_ref(&task), known)?.remove(&task);
            db.execute("UPDATE tasks SET seq = seq + 1 WHERE id = ?1", [task.as_str()])?;
            latest(db, &task, before)
        };
        let latest = storage.writer.write(change).await.unwrap();
        assert_eq!(latest.map(|latest| latest.origin), Some(origin));
    }
}
