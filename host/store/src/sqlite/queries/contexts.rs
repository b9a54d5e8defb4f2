//! Conversations, in SQL: summaries of their tasks.

use crate::{
    ContextFilter, Head,
    sqlite::{
        context_memory::key,
        db::{failure::SqliteFailure, schema::integer},
        log::events::{LIVE, beyond, corrupt, head_of, heads_where},
    },
};
use a2a_hub_protocol::{
    id::{AgentId, TaskId, TenantId},
    operation::ContextInfo,
};
use rusqlite::{Connection, params};

/// First task of a conversation.
const OLDEST: &str = heads_where!("context = ?1 ORDER BY id LIMIT 1");

/// Last task of a conversation.
const NEWEST: &str = heads_where!("context = ?1 ORDER BY id DESC LIMIT 1");

/// Time of the latest status in a conversation.
const UPDATED: &str = "SELECT max(updated) FROM tasks WHERE context = ?1";

/// Agents of a conversation, with their numbers of tasks: counters that triggers maintain.
const AGENTS: &str = "SELECT agent, tasks FROM context_agents WHERE context = ?1 ORDER BY agent";

pub(in crate::sqlite) fn list(
    db: &Connection,
    filter: &ContextFilter,
) -> Result<Vec<ContextInfo>, SqliteFailure> {
    let mut found = db.prepare_cached(&select(filter))?;
    let context = filter.context.as_ref().map(key::key);
    let tenant = filter.tenant.clone().unwrap_or_default();
    let [limit, offset] = [filter.limit, filter.offset].map(|n| integer(n as u64));
    let prefix = key::prefix_of(&tenant, filter.id_prefix.as_deref().unwrap_or_default());
    let beyond = beyond(&prefix);
    let after = filter.after.as_ref().map(TaskId::as_str);
    let (since, directory) = (&filter.idle_since, &filter.directory);
    let values = params![context, since, prefix, beyond, directory, after, limit, offset];
    let mut rows = found.query(values)?;
    let mut infos = Vec::new();
    while let Some(row) = rows.next()? {
        infos.extend(info(db, row.get_ref(0)?.as_str().map_err(rusqlite::Error::from)?)?);
    }
    Ok(infos)
}

/// Query for the ids only, in the order of their newest tasks.
fn select(filter: &ContextFilter) -> String {
    let mut sql = "SELECT id FROM contexts WHERE true".to_owned();
    let is_named = filter.tenant.as_ref().is_some_and(|tenant| !tenant.is_default());
    if filter.context.is_some() {
        sql += " AND id = ?1";
    } else if filter.id_prefix.is_some() || is_named {
        sql += " AND id >= ?3 AND id < ?4";
    }
    if filter.tenant.as_ref().is_some_and(TenantId::is_default) {
        // The separator follows the name of a tenant; it comes first only if the id of a
        // conversation contains one.
        sql += " AND instr(id, char(31)) < 2";
    }
    if filter.idle_since.is_some() {
        sql +=
            " AND NOT EXISTS (SELECT 1 FROM tasks WHERE context = contexts.id AND updated >= ?2)";
        sql = sql + " AND id NOT IN (SELECT context FROM tasks WHERE " + LIVE + ")";
    }
    if filter.directory.is_some() {
        sql += " AND (SELECT directory FROM tasks WHERE id = contexts.newest) = ?5";
    }
    if filter.after.is_some() {
        sql += " AND newest < ?6";
    }
    sql + " ORDER BY newest DESC LIMIT ?7 OFFSET ?8"
}

/// Summary of a conversation; none if it has no tasks. Reads only its first and its last task,
/// however many it has.
fn info(db: &Connection, context: &str) -> Result<Option<ContextInfo>, SqliteFailure> {
    let end = |sql| -> Result<Option<Head>, SqliteFailure> {
        let mut found = db.prepare_cached(sql)?;
        let mut rows = found.query([context])?;
        rows.next()?.map(head_of).transpose()
    };
    let (Some(oldest), Some(newest)) = (end(OLDEST)?, end(NEWEST)?) else { return Ok(None) };
    let mut found = db.prepare_cached(UPDATED)?;
    let updated = found.query_row([context], |row| row.get::<_, Option<String>>(0))?;
    let mut found = db.prepare_cached(AGENTS)?;
    let mut rows = found.query([context])?;
    let (mut agents, mut tasks) = (Vec::new(), 0);
    while let Some(row) = rows.next()? {
        let subject = || format!("the agents of conversation {context}");
        let agent = AgentId::parse(row.get::<_, String>(0)?);
        agents.push(agent.map_err(|why| corrupt(subject(), why))?);
        tasks += row.get::<_, i64>(1)?.unsigned_abs();
    }
    Ok(Some(ContextInfo {
        id: oldest.context,
        task_count: tasks,
        agents,
        created_at: oldest.created,
        updated_at: updated.unwrap_or(newest.updated),
        last_state: newest.state,
        last_task_id: newest.task,
        working_directory: newest.directory,
        parent_task_id: newest.parent,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        TaskCounts,
        sqlite::{db::schema, log::events},
    };
    use rusqlite::StatementStatus;
    use std::time::Duration;
    use tokio::time::Instant;

    /// Creates tasks of two agents: half of them in one conversation, the others in conversations
    /// of ten.
    const FILL: &str = "
        WITH RECURSIVE numbers(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n + 1 < ?1)
        INSERT INTO tasks (id, context, agent, state, seq, created, updated)
            SELECT printf('%09d', n), iif(n % 2, 'large', 'c' || (n / 20)),
            iif(n % 3, 'echo', 'codex'), iif(n % 1000, 'completed', 'working'), 1,
            '2026', printf('2026-%09d', n) FROM numbers";

    fn filled(tasks: u32) -> (tempfile::TempDir, Connection) {
        let dir = tempfile::tempdir().unwrap();
        let db = schema::open(&dir.path().join("hub.db")).unwrap().0;
        db.execute(FILL, [tasks]).unwrap();
        (dir, db)
    }

    fn page() -> ContextFilter {
        ContextFilter { limit: 20, ..ContextFilter::default() }
    }

    /// Counted in steps of SQLite's virtual machine, since time depends on the machine.
    #[test]
    fn context_page_cost_is_independent_of_tasks() {
        let (_dir, db) = filled(50_000);
        let counts = TaskCounts::from_tallies(&events::tally(&db).unwrap());
        assert_eq!((counts.live, counts.total), (50, 50_000));
        let infos = list(&db, &page()).unwrap();
        let large = infos.iter().find(|info| info.id.as_str() == "large").unwrap();
        assert_eq!((infos.len(), large.task_count), (20, 25_000));
        assert_eq!(large.agents.iter().map(AgentId::as_str).collect::<Vec<_>>(), ["codex", "echo"]);
        assert_eq!(large.updated_at, "2026-000049999");
        let sql = [events::TALLY, &select(&page()), OLDEST, NEWEST, UPDATED, AGENTS];
        let steps = sql.map(|sql| {
            let asked = db.prepare_cached(sql).unwrap();
            asked.get_status(StatementStatus::VmStep)
        });
        assert!(steps.iter().all(|steps| (1..1_000).contains(steps)), "{steps:?}");
    }

    #[test]
    #[ignore = "a measure, of a million tasks: `cargo nextest run -p a2a-hub-store --run-ignored only`"]
    fn million_tasks_are_counted_within_5_ms() {
        let (_dir, db) = filled(1_000_000);
        let best = |ask: &dyn Fn()| {
            let took = || {
                let begun = Instant::now();
                ask();
                begun.elapsed()
            };
            (0..5).map(|_| took()).min().unwrap()
        };
        let counts = best(&|| {
            assert_eq!(TaskCounts::from_tallies(&events::tally(&db).unwrap()).total, 1_000_000);
        });
        let contexts = best(&|| assert_eq!(list(&db, &page()).unwrap().len(), 20));
        assert!(counts.max(contexts) < Duration::from_millis(5), "{counts:?}, {contexts:?}");
    }

    #[test]
    fn context_page_uses_covering_index() {
        let (_dir, db) = filled(0);
        let plan = |filter: &ContextFilter| {
            let mut plan = db.prepare(&format!("EXPLAIN QUERY PLAN {}", select(filter))).unwrap();
            let none = None::<String>;
            let rows = plan
                .query_map(params![none, none, none, none, none, none, 20, 0], |row| row.get(3));
            rows.unwrap().collect::<Result<Vec<String>, _>>().unwrap()
        };
        let all = ContextFilter::default();
        assert_eq!(plan(&all), ["SCAN contexts USING COVERING INDEX contexts_by_newest"]);
        let idle = ContextFilter { idle_since: Some("2026".to_owned()), ..all };
        let by = "SEARCH tasks USING COVERING INDEX tasks_of_context_by_status (context=? AND updated>?)";
        assert!(plan(&idle).iter().any(|step| step == by), "{:?}", plan(&idle));
        assert!(plan(&idle).iter().all(|step| step != "SCAN tasks"), "{:?}", plan(&idle));
    }
}
