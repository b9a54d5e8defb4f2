//! Usage of all tasks: of stored ones by the index or their logs, and of deleted ones by their
//! totals.

use super::{stored::TaskUsage, task_reader, usage_totals};
use crate::{
    sqlite::{db::failure::SqliteFailure, log::events::of_tenant},
    usage,
};
use a2a_hub_core::usage::{UsageGroups, UsageOrigin};
use a2a_hub_protocol::{
    id::TaskId,
    operation::{UsageQuery, UsageReport},
};
use rusqlite::{Connection, params_from_iter};
use std::collections::HashMap;

/// Most tasks whose logs are read because the index is behind: some hundred milliseconds.
const MAX_READ: usize = 500;

/// Condition on the tasks that a query concerns, with its values.
fn concerned(query: &UsageQuery, since: Option<String>) -> (String, Vec<String>) {
    let (mut sql, mut values) = ("updated >= ?".to_owned(), vec![since.unwrap_or_default()]);
    if let Some(tenant) = &query.tenant {
        sql += of_tenant(Some(tenant));
        values.push(tenant.as_str().to_owned());
    }
    (sql, values)
}

/// Ids of the tasks that a query concerns; none if it has no filter, and concerns all.
pub(in crate::sqlite) fn filtered(
    db: &Connection,
    query: &UsageQuery,
) -> Result<Option<Vec<String>>, SqliteFailure> {
    let since = usage::since_day(query);
    if since.is_none() && query.tenant.is_none() {
        return Ok(None);
    }
    let (condition, values) = concerned(query, since);
    let mut found = db.prepare_cached(&format!("SELECT id FROM tasks WHERE {condition}"))?;
    let rows = found.query_map(params_from_iter(values), |row| row.get(0))?;
    Ok(Some(rows.collect::<Result<_, _>>()?))
}

/// Sums the usage by `known`, the usage of tasks in the index.
pub(in crate::sqlite) fn report(
    db: &Connection,
    query: &UsageQuery,
    mut known: HashMap<String, TaskUsage>,
) -> Result<UsageReport, SqliteFailure> {
    let since = usage::since_day(query);
    let mut groups = UsageGroups::new(query.by, since.clone());
    // One moment for both, so that a task that is deleted meanwhile counts once.
    let moment = db.unchecked_transaction()?;
    usage_totals::add_all(&moment, query.tenant.as_ref(), since.as_deref(), &mut groups)?;
    let (condition, values) = concerned(query, since);
    let sql = format!("SELECT id, seq, agent, tenant FROM tasks WHERE {condition}");
    let mut found = moment.prepare_cached(&sql)?;
    let mut rows = found.query(params_from_iter(values))?;
    let (mut read, mut uncounted) = (0, 0);
    while let Some(row) = rows.next()? {
        let (task, seq): (String, i64) = (row.get(0)?, row.get(1)?);
        let (agent, tenant): (String, String) = (row.get(2)?, row.get(3)?);
        let mut of_task = known.remove(&task);
        if of_task.as_ref().is_none_or(|known| known.seq != seq) {
            if read < MAX_READ {
                read += 1;
                let id = TaskId::new(task.clone());
                let origin = of_task.map(|known| known.origin);
                of_task = match task_reader::readable_head(&moment, &id)? {
                    Some(head) => Some(task_reader::usage(&moment, &head, origin)?),
                    None => None,
                };
            } else if of_task.is_none() {
                uncounted += 1;
            }
        }
        let Some(TaskUsage { origin, entries, .. }) = of_task else { continue };
        let origin = UsageOrigin {
            task: Some(&task),
            agent: &agent,
            tenant: &tenant,
            person: &origin.person,
            flow: &origin.flow,
        };
        entries.iter().for_each(|entry| groups.add(origin, entry));
    }
    Ok(groups.report(query.limit, uncounted))
}
