//! Pages of tasks, latest status first, in SQL.

use crate::{
    HeadPage,
    sqlite::{
        context_memory::key,
        db::{failure::SqliteFailure, schema::integer},
        log::events::{LIVE, has_tenants, head_of, heads_where, of_tenant},
    },
};
use a2a_hub_protocol::{id::TenantId, operation::TaskPageQuery};
use rusqlite::{Connection, params_from_iter, types::Value};

pub(in crate::sqlite) fn page(
    db: &Connection,
    query: &TaskPageQuery,
) -> Result<HeadPage, SqliteFailure> {
    let tenant = query.tenant.as_ref();
    // A condition on the tenant reads each task; it is left out if all tasks are the default
    // tenant's.
    let needs_tenant = tenant.is_some_and(|it| !it.is_default()) || has_tenants(db)?;
    let (condition, mut values) = condition(query, tenant.filter(|_| needs_tenant));
    let total = match counted(query, needs_tenant) {
        Some((count, values)) => {
            db.prepare_cached(&count)?.query_row(params_from_iter(values), |row| row.get(0))?
        }
        None => {
            let count = format!("SELECT count(*) FROM tasks WHERE {condition}");
            let mut all = db.prepare_cached(&count)?;
            all.query_row(params_from_iter(&values), |row| row.get::<_, i64>(0))?
        }
    };
    let mut sql = heads_where!("").to_owned() + &condition;
    if let Some(after) = &query.after {
        sql += " AND (updated, id) < (?, ?)";
        values.extend([&after.updated[..], after.id.as_str()].map(|it| Value::from(it.to_owned())));
    }
    sql += " ORDER BY updated DESC, id DESC LIMIT ?";
    values.push(Value::from(integer(query.size as u64)));
    let mut found = db.prepare_cached(&sql)?;
    let mut rows = found.query(params_from_iter(values))?;
    let mut heads = Vec::new();
    while let Some(row) = rows.next()? {
        heads.push(head_of(row)?);
    }
    Ok(HeadPage { heads, total: total.unsigned_abs() })
}

/// Query for the total number on all pages, if counters have it without reading each task: by agent
/// and state, or by conversation and agent. A conversation belongs to one tenant.
fn counted(query: &TaskPageQuery, needs_tenant: bool) -> Option<(String, Vec<Value>)> {
    let agent = query.agent.as_ref().map(|agent| agent.as_str().to_owned());
    let state = query.state.map(|state| state.name().to_owned());
    let (table, column, wanted) = match (&query.context, state) {
        (None, state) if !needs_tenant => ("task_counts", " AND state = ?", state),
        (Some(context), None) => {
            let context = key::key(context).into_owned();
            ("context_agents", " AND context = ?", Some(context))
        }
        (None | Some(_), _) => return None,
    };
    if query.since.is_some() {
        return None;
    }
    let mut sql = format!("SELECT coalesce(sum(tasks), 0) FROM {table} WHERE true");
    let mut values = Vec::new();
    for (column, wanted) in [(column, wanted), (" AND agent = ?", agent)] {
        if let Some(wanted) = wanted {
            sql += column;
            values.push(Value::from(wanted));
        }
    }
    Some((sql, values))
}

/// Condition of the query, with only the query's own terms, so that the matching index is used.
fn condition(query: &TaskPageQuery, tenant: Option<&TenantId>) -> (String, Vec<Value>) {
    let (mut sql, mut values) = ("true".to_owned(), Vec::new());
    if query.state.is_some_and(|state| !state.is_final()) {
        sql = sql + " AND " + LIVE;
    }
    let agent = query.agent.as_ref();
    let context = query.context.as_ref().map(key::key);
    for (column, wanted) in [
        (" AND agent = ?", agent.map(|agent| agent.as_str())),
        (" AND context = ?", context.as_deref()),
        (of_tenant(tenant), tenant.map(TenantId::as_str)),
        (" AND state = ?", query.state.map(|state| state.name())),
        (" AND updated >= ?", query.since.as_deref()),
    ] {
        if let Some(wanted) = wanted {
            sql += column;
            values.push(Value::from(wanted.to_owned()));
        }
    }
    (sql, values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_hub_protocol::{
        id::{AgentId, ContextId, TaskId},
        operation::TaskCursor,
        task::TaskState,
    };

    /// The counters agree with counting, and are used instead of reading every task.
    #[test]
    fn page_total_comes_from_counters() {
        let dir = tempfile::tempdir().unwrap();
        let db = crate::sqlite::db::schema::open(&dir.path().join("hub.db")).unwrap().0;
        let fill = "INSERT INTO tasks (id, context, agent, state, seq, created, updated)
            VALUES (?1, ?2, ?3, ?4, 1, '2026', '2026')";
        for n in 0..60_u32 {
            let context = ["a", "b"][n as usize % 2];
            let agent = ["echo", "codex"][n as usize / 2 % 2];
            let state = ["completed", "failed", "working"][n as usize % 3];
            let id = format!("{n:03}");
            db.execute(fill, [id.as_str(), context, agent, state]).unwrap();
        }
        db.execute("UPDATE tasks SET state = 'canceled' WHERE id < '010'", []).unwrap();
        db.execute("DELETE FROM tasks WHERE id < '005'", []).unwrap();
        let mut by_counter = 0;
        for context in [None, Some("a"), Some("none")] {
            for agent in [None, Some("echo"), Some("vibe")] {
                for state in [None, Some(TaskState::Completed), Some(TaskState::Submitted)] {
                    for since in [None, Some("2026"), Some("2027")] {
                        let query = TaskPageQuery {
                            agent: agent.map(|agent| AgentId::parse(agent).unwrap()),
                            context: context.map(ContextId::new),
                            tenant: None,
                            state,
                            since: since.map(str::to_owned),
                            after: None,
                            size: 3,
                            history_length: None,
                            include_artifacts: false,
                        };
                        by_counter += usize::from(counted(&query, false).is_some());
                        let (condition, values) = condition(&query, None);
                        let count = format!("SELECT count(*) FROM tasks WHERE {condition}");
                        let counted: i64 = db
                            .query_row(&count, params_from_iter(values), |row| row.get(0))
                            .unwrap();
                        let total = page(&db, &query).unwrap().total;
                        assert_eq!(total, counted.unsigned_abs(), "{count}");
                    }
                }
            }
        }
        // Without `since`: three agents by three states, and by two conversations without a state.
        assert_eq!(by_counter, 9 + 6);
    }

    /// A query that sorts every task would become slow unnoticed.
    #[test]
    fn page_query_sorts_by_index() {
        let dir = tempfile::tempdir().unwrap();
        let db = crate::sqlite::db::schema::open(&dir.path().join("hub.db")).unwrap().0;
        let after = TaskCursor { updated: "2026".to_owned(), id: TaskId::new("t") };
        let of = |agent: Option<&str>| TaskPageQuery {
            agent: agent.map(|agent| AgentId::parse(agent).unwrap()),
            context: None,
            tenant: None,
            state: None,
            since: Some("2025".to_owned()),
            after: Some(after.clone()),
            size: 3,
            history_length: None,
            include_artifacts: false,
        };
        for (agent, index) in [(None, "tasks_by_status"), (Some("echo"), "tasks_of_agent")] {
            let (condition, values) = condition(&of(agent), None);
            let sql = format!(
                "EXPLAIN QUERY PLAN SELECT id FROM tasks WHERE {condition} AND (updated, id) < ('x', 'y')
                 ORDER BY updated DESC, id DESC LIMIT 3"
            );
            let mut plan = db.prepare(&sql).unwrap();
            let mut rows = plan.query(params_from_iter(values)).unwrap();
            let detail: String = rows.next().unwrap().unwrap().get("detail").unwrap();
            assert!(detail.contains(&format!("INDEX {index}")), "{detail}");
            assert!(rows.next().unwrap().is_none(), "there is nothing to sort");
        }
    }
}
