//! Table of the questions that tasks asked. Each append to a log changes it in the same
//! transaction.

use super::db::{failure::SqliteFailure, schema::integer};
use crate::{
    ClosedQuestion, ClosedQuestionFilter, Head, RuleUse, StorageError,
    questions::{ANSWERED, QuestionChange, REPLACED},
};
use a2a_hub_clock as clock;
use a2a_hub_core::access_control::Principal;
use a2a_hub_protocol::{
    id::{AgentId, QuestionId, TaskId, TenantId},
    question::QuestionKind,
};
use rusqlite::{Connection, OptionalExtension as _, Row, params};

/// Carries out the changes by new events of a task; `by` requested them.
pub(in crate::sqlite) fn change(
    db: &Connection,
    head: &Head,
    changes: &[QuestionChange],
    by: Option<&str>,
) -> Result<(), SqliteFailure> {
    let (task, tenant) = (head.task.as_str(), head.context.tenant().as_str());
    for change in changes {
        match change {
            QuestionChange::Opened { seq, id, kind, at, replaces } => {
                let postponed = if *replaces { postponed_before(db, task, id)? } else { None };
                close(db, task, Some(id), at, REPLACED)?;
                let sql = "UPDATE questions SET closed_at = NULL, outcome = NULL
                    WHERE task = ?1 AND id = ?2 AND answered IS NULL";
                db.prepare_cached(sql)?.execute(params![task, id.as_str()])?;
                let sql = "INSERT INTO questions
                    (task, id, kind, tenant, opened, opened_at, postponed_until)
                    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT DO NOTHING";
                let (id, kind) = (id.as_str(), kind.name());
                let values = params![task, id, kind, tenant, integer(*seq), at, postponed];
                db.prepare_cached(sql)?.execute(values)?;
            }
            QuestionChange::Answered { seq } => {
                let sql =
                    "UPDATE questions SET answered = ?2, asker = ?3, closed_at = ?4, outcome = ?5
                    WHERE task = ?1 AND closed_at IS NULL";
                let values = params![task, integer(*seq), by, clock::now(), ANSWERED];
                db.prepare_cached(sql)?.execute(values)?;
            }
            QuestionChange::Ruled { seq, answer, at } => {
                let sql = "INSERT INTO questions
                    (task, id, kind, tenant, opened, opened_at, closed_at, outcome, rule)
                    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6, ?7, ?8) ON CONFLICT DO NOTHING";
                let kind = QuestionKind::Permission.name();
                let (id, outcome) = (answer.id.as_str(), answer.effect.outcome());
                let values =
                    params![task, id, kind, tenant, integer(*seq), at, outcome, answer.rule];
                db.prepare_cached(sql)?.execute(values)?;
            }
            QuestionChange::Closed { at, outcome } => {
                close(db, task, None, at.as_deref().unwrap_or(&clock::now()), outcome)?;
            }
        }
    }
    Ok(())
}

/// Closes the open question of a task, unless it is `but`.
fn close(
    db: &Connection,
    task: &str,
    but: Option<&QuestionId>,
    at: &str,
    outcome: &str,
) -> Result<(), SqliteFailure> {
    let sql = "UPDATE questions SET closed_at = ?3, outcome = ?4
        WHERE task = ?1 AND closed_at IS NULL AND id IS NOT ?2";
    db.prepare_cached(sql)?.execute(params![task, but.map(QuestionId::as_str), at, outcome])?;
    Ok(())
}

/// Time until which the question before `id` is set aside: the open one, or else the latest, which
/// a status between the two has closed. None if it was answered.
fn postponed_before(
    db: &Connection,
    task: &str,
    id: &QuestionId,
) -> Result<Option<String>, SqliteFailure> {
    let sql = "SELECT iif(answered IS NULL, postponed_until, NULL) FROM questions
        WHERE task = ?1 AND id <> ?2 AND rule IS NULL
        ORDER BY closed_at IS NOT NULL, number DESC LIMIT 1";
    let mut found = db.prepare_cached(sql)?;
    Ok(found.query_row(params![task, id.as_str()], |row| row.get(0)).optional()?.flatten())
}

fn corrupt(why: &dyn std::fmt::Display) -> StorageError {
    StorageError::Corrupt { subject: "a question".to_owned(), why: why.to_string() }
}

/// Query for closed questions, the latest first. The parameter of the id is in both forms.
macro_rules! closed_where {
    ($condition:literal) => {
        concat!(
            "SELECT q.number, q.id, q.kind, q.task, t.agent, q.opened, q.opened_at, q.answered, q.asker, q.closed_at, q.outcome, q.rule
            FROM questions q JOIN tasks t ON t.id = q.task
            WHERE q.tenant = ?1 AND q.number < ?2 AND q.closed_at IS NOT NULL AND ",
            $condition,
            " ORDER BY q.number DESC LIMIT ?3"
        )
    };
}

pub(in crate::sqlite) fn closed(
    db: &Connection,
    filter: &ClosedQuestionFilter,
) -> Result<Vec<ClosedQuestion>, SqliteFailure> {
    let sql = match filter.id {
        Some(_) => closed_where!("q.id = ?4"),
        None => closed_where!("?4 IS NULL"),
    };
    let mut found = db.prepare_cached(sql)?;
    let before = filter.before.map_or(i64::MAX, integer);
    let id = filter.id.as_ref().map(QuestionId::as_str);
    let values = params![filter.tenant.as_str(), before, integer(filter.limit as u64), id];
    let mut rows = found.query(values)?;
    let mut questions = Vec::new();
    while let Some(row) = rows.next()? {
        questions.push(question(row)?);
    }
    Ok(questions)
}

/// Number of requests that each rule has answered, in stored tasks of a tenant.
pub(in crate::sqlite) fn rule_uses(
    db: &Connection,
    tenant: &TenantId,
) -> Result<Vec<RuleUse>, SqliteFailure> {
    let sql = "SELECT rule, count(*), max(closed_at) FROM questions
        WHERE tenant = ?1 AND rule IS NOT NULL GROUP BY rule ORDER BY rule";
    let mut found = db.prepare_cached(sql)?;
    let rows = found.query_map([tenant.as_str()], |row| {
        let uses = row.get::<_, i64>(1)?.unsigned_abs();
        Ok(RuleUse { rule: row.get(0)?, uses, last_used_at: row.get(2)? })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn question(row: &Row<'_>) -> Result<ClosedQuestion, SqliteFailure> {
    let text = |at: usize| row.get::<_, String>(at);
    let number = |at: usize| row.get::<_, i64>(at).map(i64::unsigned_abs);
    let kind = serde_json::from_value(text(2)?.into()).map_err(|why| corrupt(&why))?;
    let agent = AgentId::parse(text(4)?).map_err(|why| corrupt(&why))?;
    Ok(ClosedQuestion {
        number: number(0)?,
        id: QuestionId::new(text(1)?),
        kind,
        task: TaskId::new(text(3)?),
        agent,
        opened: number(5)?,
        opened_at: text(6)?,
        answered: row.get::<_, Option<i64>>(7)?.map(i64::unsigned_abs),
        by: row.get::<_, Option<String>>(8)?.and_then(|by| Principal::from_log(&by)),
        closed_at: text(9)?,
        outcome: text(10)?,
        rule: row.get(11)?,
    })
}
