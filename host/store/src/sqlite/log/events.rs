//! Task logs and queries over them, in SQL.

use super::rows::{self, Row as EventRow, each_event};
use crate::{
    BegunRequest, Head, HeadFilter, StorageError, StoredTask, Tally,
    log::{self, Conversation},
    questions,
    sqlite::{
        changes,
        context_memory::key,
        db::{failure::SqliteFailure, schema::integer},
        notices as notice_table, questions as question_table,
    },
};
use a2a_hub_core::access_control::Principal;
use a2a_hub_protocol::{
    event::{SequencedEvent, TaskEvent},
    id::{AgentId, ContextId, TaskId, TenantId},
    message::Message,
    task::{Task, TaskState},
};
use rusqlite::{Connection, Row, params, params_from_iter, types::Value};
use serde::de::DeserializeOwned;
use std::{fmt::Display, ops::RangeInclusive, sync::Arc};

/// Condition of the index `live_tasks`, word for word: SQLite uses the index for no other. With
/// `IN (…)`, SQLite would build a temporary table at every write.
pub(in crate::sqlite) const LIVE: &str = "(state = 'submitted' OR state = 'working'
    OR state = 'input-required' OR state = 'auth-required')";

/// Query for rows that [`head_of`] reads.
macro_rules! heads_where {
    ($condition:literal) => {
        concat!(
            "SELECT id, context, agent, state, seq, created, updated, directory, parent, workflow FROM tasks WHERE ",
            $condition
        )
    };
}

pub(in crate::sqlite) use heads_where;

/// Number of events from which a fold is worth storing. A shorter log is read as fast as its fold.
const LONG: u64 = 16;

/// Number of free pages to keep for reuse: 1 MiB.
const SPARE_PAGES: i64 = 256;

/// Pages released in one transaction. Each costs as much as a write of one.
const PAGES_AT_ONCE: i64 = 1024;

/// Result of an append.
pub(in crate::sqlite) struct Appended {
    /// Number of the log's last event.
    pub(in crate::sqlite) seq: u64,
    /// Tenant of the task, if it has a new notice.
    pub(in crate::sqlite) noticed: Option<TenantId>,
}

/// Events to append to a log, with their rows prepared before the writer thread runs.
pub(in crate::sqlite) struct Addition {
    task: TaskId,
    expected: u64,
    events: Vec<Arc<TaskEvent>>,
    rows: Vec<EventRow>,
    by: Option<String>,
}

impl Addition {
    pub(in crate::sqlite) fn new(
        task: TaskId,
        expected: u64,
        events: Vec<Arc<TaskEvent>>,
        by: Option<&Principal>,
    ) -> Result<Self, StorageError> {
        let rows = rows::from_events(expected, &events)?;
        Ok(Self { task, expected, events, rows, by: by.map(Principal::to_log) })
    }

    /// Size of the write in bytes.
    pub(in crate::sqlite) fn bytes(&self) -> usize {
        self.rows.iter().map(|row| row.events.len()).sum()
    }

    /// Number of events.
    pub(in crate::sqlite) fn events(&self) -> usize {
        self.events.len()
    }

    pub(in crate::sqlite) fn append(&self, db: &Connection) -> Result<Appended, SqliteFailure> {
        let known = head(db, &self.task)?;
        let is_new = known.is_none();
        let has_question = known.as_ref().is_some_and(|head| head.state.is_interrupted());
        let before = known.as_ref().map(|head| head.state);
        let head = log::extend(known, &self.task, self.expected, &self.events)?;
        let sql = "INSERT INTO events (task, seq, event, asker) VALUES (?1, ?2, ?3, ?4)";
        let mut insert = db.prepare_cached(sql)?;
        for EventRow { first, events } in &self.rows {
            let by = self.by.as_ref().filter(|_| self.expected > 0 || *first == 1);
            insert.execute(params![self.task.as_str(), integer(*first), events, by])?;
        }
        if is_new {
            insert_head(db, &head, self.bytes())?;
        } else {
            update_head(db, &head, self.bytes())?;
        }
        changes::add(db, &head, before, &self.events)?;
        // Most tasks ask nothing, and have no changes.
        if has_question || self.events.iter().any(|event| questions::asks(event)) {
            let changes = questions::changes(self.expected, &self.events);
            question_table::change(db, &head, &changes, self.by.as_deref())?;
        }
        let has_notice = notice_table::add(db, &head, &self.events, self.by.as_deref())?;
        let noticed = has_notice.then(|| head.context.tenant().clone());
        Ok(Appended { seq: head.seq, noticed })
    }
}

pub(in crate::sqlite) fn head(
    db: &Connection,
    task: &TaskId,
) -> Result<Option<Head>, SqliteFailure> {
    let mut found = db.prepare_cached(heads_where!("id = ?1"))?;
    let mut rows = found.query([task.as_str()])?;
    rows.next()?.map(head_of).transpose()
}

/// Like [`UPDATE_HEAD`], phrased so that SQLite needs no statement journal (its documentation,
/// "Temporary Files Used By SQLite", section 2.5): `OR FAIL`, since any failure rolls back the
/// whole transaction, and neither functions nor `DO UPDATE`, here or in the triggers of
/// `migrations.rs`.
const INSERT_HEAD: &str = "INSERT OR FAIL INTO tasks
    (id, context, agent, state, seq, created, updated, directory, parent, workflow, tenant, bytes)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)";

const UPDATE_HEAD: &str = "UPDATE OR FAIL tasks
    SET state = ?2, seq = ?3, updated = ?4, directory = ?5, bytes = bytes + ?6 WHERE id = ?1";

fn insert_head(db: &Connection, head: &Head, bytes: usize) -> Result<(), SqliteFailure> {
    db.prepare_cached(INSERT_HEAD)?.execute(params![
        head.task.as_str(),
        key::key(&head.context),
        head.agent.as_str(),
        head.state.name(),
        integer(head.seq),
        head.created,
        head.updated,
        head.directory,
        head.parent.as_ref().map(TaskId::as_str),
        head.workflow,
        head.context.tenant().as_str(),
        integer(bytes as u64)
    ])?;
    Ok(())
}

fn update_head(db: &Connection, head: &Head, bytes: usize) -> Result<(), SqliteFailure> {
    db.prepare_cached(UPDATE_HEAD)?.execute(params![
        head.task.as_str(),
        head.state.name(),
        integer(head.seq),
        head.updated,
        head.directory,
        integer(bytes as u64)
    ])?;
    Ok(())
}

pub(in crate::sqlite) fn events(
    db: &Connection,
    task: &TaskId,
    after: u64,
    limit: usize,
) -> Result<Vec<SequencedEvent>, SqliteFailure> {
    let Some(head) = head(db, task)? else { return Ok(Vec::new()) };
    let mut events = Vec::new();
    each_event(db, task, after, limit, |seq, event| {
        let mut event = parse_text(event, || format!("event {seq} of task {task}"))?;
        if let TaskEvent::Created(created) = &mut event {
            created.task.context_id.clone_from(&head.context);
        }
        let (task, context) = (task.clone(), head.context.clone());
        events.push(SequencedEvent { task, context, seq, event });
        Ok(())
    })?;
    Ok(events)
}

/// Principals that requested the events with numbers in `range`.
pub(in crate::sqlite) fn askers(
    db: &Connection,
    task: &TaskId,
    range: RangeInclusive<u64>,
) -> Result<Vec<(u64, Principal)>, SqliteFailure> {
    let sql = "SELECT seq, asker, event FROM events WHERE task = ?1 AND asker IS NOT NULL
        AND seq >= coalesce((SELECT max(seq) FROM events WHERE task = ?1 AND seq <= ?2), 0)
        AND seq <= ?3 ORDER BY seq";
    let mut found = db.prepare_cached(sql)?;
    let [start, end] = [*range.start(), *range.end()].map(integer);
    let mut rows = found.query(params![task.as_str(), start, end])?;
    let mut askers = Vec::new();
    while let Some(row) = rows.next()? {
        let (first, asker) = (row.get::<_, i64>(0)?.unsigned_abs(), row.get::<_, String>(1)?);
        let events = row.get_ref(2)?.as_str().map_err(rusqlite::Error::from)?;
        // Events stored together with a task's creation resulted from it; no principal requested
        // them.
        let requested = if first == 1 { 1 } else { rows::count(events) };
        // A later version of the hub may know other principals.
        let Some(asker) = Principal::from_log(&asker) else { continue };
        let numbers = (first..).take(requested).filter(|seq| range.contains(seq));
        askers.extend(numbers.map(|seq| (seq, asker.clone())));
    }
    Ok(askers)
}

/// A folded task, as of event `seq`.
pub(in crate::sqlite) struct Fold {
    task: TaskId,
    seq: u64,
    json: String,
}

/// Reads a task, and its fold if that is worth storing for the next reader.
pub(in crate::sqlite) fn task(
    db: &Connection,
    id: &TaskId,
) -> Result<Option<(StoredTask, Option<Fold>)>, SqliteFailure> {
    let Some(head) = head(db, id)? else { return Ok(None) };
    if head.state.is_final()
        && let Some(task) = document(db, id)?
    {
        let task = Task { context_id: head.context, ..task };
        return Ok(Some((StoredTask { agent: head.agent, seq: head.seq, task }, None)));
    }
    let subject = || format!("the fold of task {id}");
    let mut found = db.prepare_cached("SELECT seq, fold FROM folds WHERE task = ?1")?;
    let mut rows = found.query([id.as_str()])?;
    let (from, known) = match rows.next()? {
        Some(row) => (row.get::<_, i64>(0)?.unsigned_abs(), Some(parse::<Task>(row, 1, subject)?)),
        None => (0, None),
    };
    // The fold may be newer than the head, which was read first; either is complete.
    let seq = head.seq.max(from);
    let mut task = match known {
        Some(task) if from == seq => task,
        known => replay(db, id, known, from, seq)?,
    };
    // The event contains the context's id without its tenant.
    task.context_id = head.context;
    let rests = task.status.state.is_final() || task.status.state.is_interrupted();
    let fold = if rests && seq - from >= LONG {
        let json = serde_json::to_string(&task).map_err(|why| corrupt(subject(), why))?;
        Some(Fold { task: id.clone(), seq, json })
    } else {
        None
    };
    Ok(Some((StoredTask { agent: head.agent, seq, task }, fold)))
}

/// Task from its stored text, if one is stored.
fn document(db: &Connection, id: &TaskId) -> Result<Option<Task>, SqliteFailure> {
    let mut found = db.prepare_cached("SELECT document FROM documents WHERE task = ?1")?;
    let mut rows = found.query([id.as_str()])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    Ok(Some(parse(row, 0, || format!("the document of task {id}"))?))
}

/// Folds the events after `from` up to `to` into the task.
fn replay(
    db: &Connection,
    id: &TaskId,
    known: Option<Task>,
    from: u64,
    to: u64,
) -> Result<Task, SqliteFailure> {
    let mut events = Vec::<TaskEvent>::new();
    let all = usize::try_from(to - from).unwrap_or(usize::MAX);
    each_event(db, id, from, all, |_, event| {
        events.push(parse_text(event, || format!("the log of task {id}"))?);
        Ok(())
    })?;
    Ok(log::fold(id, known, events)?)
}

/// Stores folds, unless newer ones exist.
pub(in crate::sqlite) fn store_folds(db: &Connection, folds: &[Fold]) -> Result<(), SqliteFailure> {
    // The task may have been deleted since it was read.
    let sql = "INSERT INTO folds (task, seq, fold) SELECT ?1, ?2, ?3
        WHERE EXISTS (SELECT 1 FROM tasks WHERE id = ?1)
        ON CONFLICT (task) DO UPDATE SET seq = ?2, fold = ?3 WHERE seq < ?2";
    let mut insert = db.prepare_cached(sql)?;
    for Fold { task, seq, json } in folds {
        insert.execute(params![task.as_str(), integer(*seq), json])?;
    }
    Ok(())
}

/// True if a task of a tenant other than the default exists.
pub(in crate::sqlite) fn has_tenants(db: &Connection) -> Result<bool, SqliteFailure> {
    let sql = "SELECT EXISTS (SELECT 1 FROM tasks WHERE tenant <> '')";
    Ok(db.prepare_cached(sql)?.query_row([], |row| row.get(0))?)
}

pub(in crate::sqlite) fn heads(
    db: &Connection,
    filter: &HeadFilter,
) -> Result<Vec<Head>, SqliteFailure> {
    let (sql, values) = select(filter);
    let mut found = db.prepare_cached(&sql)?;
    let mut rows = found.query(params_from_iter(values))?;
    let mut heads = Vec::new();
    while let Some(row) = rows.next()? {
        heads.push(head_of(row)?);
    }
    Ok(heads)
}

/// Upper bound for texts that begin with `prefix`, for a range on an index.
pub(in crate::sqlite) fn beyond(prefix: &str) -> String {
    format!("{prefix}{}", char::MAX)
}

/// Condition on the tenant, phrased so that SQLite may use the partial indexes of tenants, which
/// exclude the default tenant. The planner does not know the value of a parameter.
pub(in crate::sqlite) fn of_tenant(tenant: Option<&TenantId>) -> &'static str {
    if tenant.is_some_and(TenantId::is_default) {
        " AND tenant = ?"
    } else {
        " AND tenant = ? AND tenant <> ''"
    }
}

/// Query with only the filter's conditions, so that it can use the matching index.
fn select(filter: &HeadFilter) -> (String, Vec<Value>) {
    let mut sql = heads_where!("true").to_owned();
    let mut values = Vec::new();
    if let Some(prefix) = &filter.id_prefix {
        sql += " AND id >= ? AND id < ?";
        values.extend([prefix.clone(), beyond(prefix)].map(Value::from));
    }
    let agent = filter.agent.as_ref();
    let context = filter.context.as_ref().map(key::key);
    for (condition, wanted) in [
        (" AND agent = ?", agent.map(|agent| agent.as_str())),
        (" AND context = ?", context.as_deref()),
        (of_tenant(filter.tenant.as_ref()), filter.tenant.as_ref().map(TenantId::as_str)),
        (" AND directory = ?", filter.directory.as_deref()),
        (" AND parent = ?", filter.parent.as_ref().map(TaskId::as_str)),
        (" AND updated >= ?", filter.since.as_deref()),
    ] {
        if let Some(wanted) = wanted {
            sql += condition;
            values.push(Value::from(wanted.to_owned()));
        }
    }
    if let Some(workflow) = &filter.workflow {
        // Two queries, since each has its own index.
        sql += " AND id IN (SELECT id FROM tasks WHERE workflow = ? UNION ALL SELECT ?)";
        values.extend([workflow.clone(), workflow.clone()].map(Value::from));
    }
    if filter.live_only || filter.state.is_some_and(|state| !state.is_final()) {
        sql = sql + " AND " + LIVE;
    }
    if let Some(state) = filter.state {
        sql += " AND state = ?";
        values.push(Value::from(state.name().to_owned()));
    }
    sql += " ORDER BY id DESC LIMIT ? OFFSET ?";
    values.extend([filter.limit, filter.offset].map(|n| Value::from(integer(n as u64))));
    (sql, values)
}

/// One query, since the hub's start waits for it.
pub(in crate::sqlite) fn requests(
    db: &Connection,
    since: &str,
    limit: usize,
) -> Result<Vec<BegunRequest>, SqliteFailure> {
    // Of events stored together, the first is the creation.
    let sql = "SELECT creation ->> '$.created.request' AS request, id, created, asker
        FROM (
            SELECT iif(instr(event, char(10)), substr(event, 1, instr(event, char(10)) - 1), event)
                AS creation, id, created, asker
            FROM (SELECT id, created FROM tasks WHERE updated >= ?1 ORDER BY id DESC LIMIT ?2)
            JOIN events ON task = id AND seq = 1 WHERE created >= ?1
        )
        WHERE json_valid(creation) AND request IS NOT NULL ORDER BY id";
    let mut found = db.prepare_cached(sql)?;
    let request = |row: &Row<'_>| {
        let (fingerprint, task) = (row.get(0)?, TaskId::new(row.get::<_, String>(1)?));
        let by: Option<String> = row.get(3)?;
        let by = by.and_then(|by| Principal::from_log(&by));
        Ok(BegunRequest { fingerprint, task, by, created: row.get(2)? })
    };
    let rows = found.query_map(params![since, integer(limit as u64)], request)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Returns some free pages to the file system, in a short transaction; false once few are left.
pub(in crate::sqlite) fn shrink(db: &Connection) -> Result<bool, SqliteFailure> {
    let free: i64 = db.query_row("PRAGMA freelist_count", [], |row| row.get(0))?;
    if free <= SPARE_PAGES {
        return Ok(false);
    }
    db.execute_batch(&format!("PRAGMA incremental_vacuum({PAGES_AT_ONCE})"))?;
    let remaining: i64 = db.query_row("PRAGMA freelist_count", [], |row| row.get(0))?;
    Ok(remaining > SPARE_PAGES && remaining < free)
}

/// Size of the used pages in bytes.
pub(in crate::sqlite) fn size(db: &Connection) -> Result<u64, SqliteFailure> {
    let ask = |sql| db.query_row(sql, [], |row| row.get::<_, i64>(0));
    let pages = ask("PRAGMA page_count")? - ask("PRAGMA freelist_count")?;
    Ok((pages * ask("PRAGMA page_size")?).unsigned_abs())
}

/// Reads the counters that triggers maintain; no task is counted.
pub(in crate::sqlite) const TALLY: &str =
    "SELECT agent, state, tasks FROM task_counts WHERE tasks > 0 ORDER BY agent, state";

pub(in crate::sqlite) fn tally(db: &Connection) -> Result<Vec<Tally>, SqliteFailure> {
    let mut found = db.prepare_cached(TALLY)?;
    let mut rows = found.query([])?;
    let mut tallies = Vec::new();
    while let Some(row) = rows.next()? {
        let subject = || "the number of tasks".to_owned();
        let agent =
            AgentId::parse(row.get::<_, String>(0)?).map_err(|why| corrupt(subject(), why))?;
        let state = state_of(row, 1, subject)?;
        tallies.push(Tally { agent, state, tasks: row.get::<_, i64>(2)?.unsigned_abs() });
    }
    Ok(tallies)
}

/// Messages of a conversation, and the folds of its tasks that are worth storing.
pub(in crate::sqlite) fn conversation(
    db: &Connection,
    context: &ContextId,
    limit: usize,
) -> Result<(Vec<Message>, Vec<Fold>), SqliteFailure> {
    let sql = format!("SELECT id FROM tasks WHERE context = ?1 AND NOT {LIVE} ORDER BY id DESC");
    let mut found = db.prepare_cached(&sql)?;
    let mut rows = found.query([key::key(context)])?;
    let mut conversation = Conversation::new(limit);
    let mut folds = Vec::new();
    while !conversation.is_enough()
        && let Some(row) = rows.next()?
    {
        let id = TaskId::new(row.get::<_, String>(0)?);
        if let Some((stored, fold)) = task(db, &id)? {
            conversation.add(stored.task);
            folds.extend(fold);
        }
    }
    Ok((conversation.oldest_first(), folds))
}

pub(in crate::sqlite) fn head_of(row: &Row<'_>) -> Result<Head, SqliteFailure> {
    let task = TaskId::new(row.get::<_, String>(0)?);
    let subject = || format!("the head of task {task}");
    let agent = AgentId::parse(row.get::<_, String>(2)?).map_err(|why| corrupt(subject(), why))?;
    let state = state_of(row, 3, subject)?;
    Ok(Head {
        context: key::read(row.get(1)?),
        agent,
        state,
        seq: row.get::<_, i64>(4)?.unsigned_abs(),
        created: row.get(5)?,
        updated: row.get(6)?,
        directory: row.get(7)?,
        parent: row.get::<_, Option<String>>(8)?.map(TaskId::new),
        workflow: row.get(9)?,
        task,
    })
}

fn state_of(
    row: &Row<'_>,
    column: usize,
    subject: impl FnOnce() -> String,
) -> Result<TaskState, SqliteFailure> {
    let name: String = row.get(column)?;
    let unknown = || corrupt(subject(), format!("no task is ever {name}"));
    Ok(TaskState::from_name(&name).ok_or_else(unknown)?)
}

/// Parses a JSON column.
fn parse<T: DeserializeOwned>(
    row: &Row<'_>,
    column: usize,
    subject: impl FnOnce() -> String,
) -> Result<T, SqliteFailure> {
    parse_text(row.get_ref(column)?.as_str().map_err(rusqlite::Error::from)?, subject)
}

fn parse_text<T: DeserializeOwned>(
    json: &str,
    subject: impl FnOnce() -> String,
) -> Result<T, SqliteFailure> {
    Ok(serde_json::from_str(json).map_err(|why| corrupt(subject(), why))?)
}

pub(in crate::sqlite) fn corrupt(subject: String, why: impl Display) -> StorageError {
    StorageError::Corrupt { subject, why: why.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rusqlite::StatementStatus;

    /// A query that reads every task would become slow unnoticed.
    #[test]
    fn head_queries_use_their_indexes() {
        let dir = tempfile::tempdir().unwrap();
        let db = crate::sqlite::db::schema::open(&dir.path().join("hub.db")).unwrap().0;
        let plan = |filter: HeadFilter| -> String {
            let (sql, values) = select(&filter);
            let mut plan = db.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
            plan.query_row(params_from_iter(values), |row| row.get("detail")).unwrap()
        };
        let all = HeadFilter::default();
        let live = HeadFilter { live_only: true, ..all.clone() };
        let working = HeadFilter { state: Some(TaskState::Working), ..all.clone() };
        let context = HeadFilter { context: Some(ContextId::new("c")), ..all.clone() };
        let prefix = HeadFilter { id_prefix: Some("01a1".to_owned()), ..all.clone() };
        let (agent, directory) = (AgentId::parse("echo").ok(), Some("/src".to_owned()));
        let here = HeadFilter { agent, directory, limit: 1, ..all.clone() };
        let index = "SEARCH tasks USING INDEX tasks_in_directory (directory=? AND agent=?)";
        assert_eq!(plan(here), index);
        let below = HeadFilter { parent: Some(TaskId::new("t")), ..all.clone() };
        assert!(plan(below.clone()).contains("tasks_of_parent (parent=?)"), "{}", plan(below));
        assert!(plan(prefix.clone()).contains("(id>? AND id<?)"), "{}", plan(prefix));
        assert_eq!(plan(all), "SCAN tasks");
        assert_eq!(plan(live), "SCAN tasks USING INDEX live_tasks");
        assert_eq!(plan(working), "SCAN tasks USING INDEX live_tasks");
        assert_eq!(plan(context), "SEARCH tasks USING INDEX tasks_of_context (context=?)");
        let tenant = TenantId::try_from("acme".to_owned()).ok();
        let of_tenant = HeadFilter { tenant, ..HeadFilter::default() };
        assert_eq!(plan(of_tenant), "SEARCH tasks USING INDEX tasks_of_tenant (tenant=?)");
    }

    /// A function, or an upsert, might abort; then SQLite would save a copy of each page that a
    /// statement changes.
    #[test]
    fn head_writes_need_no_statement_journal() {
        let dir = tempfile::tempdir().unwrap();
        let db = crate::sqlite::db::schema::open(&dir.path().join("hub.db")).unwrap().0;
        for (sql, parameters) in [(INSERT_HEAD, 12), (UPDATE_HEAD, 6)] {
            let mut plan = db.prepare(&format!("EXPLAIN {sql}")).unwrap();
            let none = params_from_iter(vec![None::<String>; parameters]);
            let steps = plan.query_map(none, |row| Ok((row.get(1)?, row.get(3)?))).unwrap();
            let steps = steps.collect::<Result<Vec<(String, i64)>, _>>().unwrap();
            assert!(steps.iter().any(|(step, _)| step == "Program"), "it has triggers");
            // The second operand of a halt is the action on a constraint violation; 2 is abort.
            let aborts = |(step, then): &&(String, i64)| match step.as_str() {
                "Halt" | "HaltIfNull" => *then == 2,
                step => step.contains("Function") || step == "MustBeInt",
            };
            assert_eq!(steps.iter().find(aborts), None, "{sql}");
        }
    }

    /// Planning a query takes longer than running it.
    #[test]
    fn statement_is_planned_once_for_all_values() {
        let dir = tempfile::tempdir().unwrap();
        let db = crate::sqlite::db::schema::open(&dir.path().join("hub.db")).unwrap().0;
        for name in ["one", "two", "three"] {
            let id = TaskId::fresh();
            let created = vec![crate::contract::created(&id, name)];
            Addition::new(id.clone(), 0, created, None).unwrap().append(&db).unwrap();
            assert!(task(&db, &id).unwrap().is_some());
        }
        let asked = db.prepare_cached(rows::ROWS).unwrap();
        assert_eq!(asked.get_status(StatementStatus::Run), 3);
        assert_eq!(asked.get_status(StatementStatus::RePrepare), 0);
    }
}
