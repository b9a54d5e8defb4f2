//! Rows of the index.

use super::facets::{self, PrefixWords};
use crate::{
    Head, StorageError,
    sqlite::db::{error, failure::SqliteFailure},
    usage::TaskOrigin,
};
use a2a_hub_core::{
    search::{HIT_BEGINS, HIT_ENDS, IndexedText, SearchTerms, order_of},
    usage::{UsageAmounts, UsageEntry},
};
use a2a_hub_protocol::id::TaskId;
use rusqlite::{Connection, OptionalExtension as _, Row, Rows, params};
use std::collections::HashMap;

/// Words of an excerpt.
const EXCERPT_WORDS: i64 = 20;

/// Task that matches a full-text query.
pub(in crate::sqlite) struct MatchedTask {
    /// Number in the index.
    pub(in crate::sqlite) number: i64,
    /// Task.
    pub(in crate::sqlite) task: TaskId,
    /// Origin.
    pub(in crate::sqlite) origin: TaskOrigin,
}

/// Usage of a task, as of event `seq`.
pub(in crate::sqlite) struct TaskUsage {
    /// Number of the last counted event.
    pub(in crate::sqlite) seq: i64,
    /// Origin.
    pub(in crate::sqlite) origin: TaskOrigin,
    /// Usage by day and model.
    pub(in crate::sqlite) entries: Vec<UsageEntry>,
}

/// Contents of a task for the index.
pub(in crate::sqlite) struct TaskEntry {
    /// Texts.
    pub(in crate::sqlite) text: IndexedText,
    /// Usage.
    pub(in crate::sqlite) usage: TaskUsage,
}

/// Columns of [`UsageAmounts`], in its order.
pub(in crate::sqlite) const AMOUNTS: &str =
    "tasks, without_tokens, without_cost, input_tokens, output_tokens,
    cached_tokens, cost_micros, priced_micros, work_ms, questions, ruled";

/// Reads [`AMOUNTS`] from the column `first` on.
pub(in crate::sqlite) fn amounts(row: &Row<'_>, first: usize) -> rusqlite::Result<UsageAmounts> {
    let mut amounts = [0; UsageAmounts::COUNT];
    for (column, amount) in (first..).zip(&mut amounts) {
        *amount = row.get(column)?;
    }
    Ok(UsageAmounts::from_array(amounts))
}

/// Result of a read of the index; damage is reported as [`StorageError::Corrupt`].
pub(in crate::sqlite) fn judged<T>(read: rusqlite::Result<T>) -> Result<T, SqliteFailure> {
    read.map_err(|why| {
        if error::is_damage(&why) {
            let subject = "the index for searches".to_owned();
            return StorageError::Corrupt { subject, why: why.to_string() }.into();
        }
        why.into()
    })
}

/// Stores a task in place of its earlier entry.
pub(in crate::sqlite) fn put(
    db: &Connection,
    head: &Head,
    entry: &TaskEntry,
) -> rusqlite::Result<()> {
    let task = head.task.as_str();
    let number = match number_of(db, task)? {
        Some(number) => {
            forget_number(db, number)?;
            number
        }
        None => free_number(db, task)?,
    };
    let TaskEntry { text, usage: TaskUsage { seq, origin, entries } } = entry;
    let sql = "INSERT INTO tasks (number, task, seq, person, flow) VALUES (?1, ?2, ?3, ?4, ?5)";
    db.prepare_cached(sql)?.execute(params![number, task, seq, origin.person, origin.flow])?;
    let sql = "INSERT INTO texts (rowid, facets, requests, answers) VALUES (?1, ?2, ?3, ?4)";
    let facets = facets::of_task(&head.agent, &head.context);
    db.prepare_cached(sql)?.execute(params![number, facets, text.requests, text.answers])?;
    let sql = format!(
        "INSERT INTO usage (number, day, model, {AMOUNTS})
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)"
    );
    let mut insert = db.prepare_cached(&sql)?;
    for UsageEntry { day, model, amounts } in entries {
        let [a, b, c, d, e, f, g, h, i, j, k] = amounts.to_array();
        insert.execute(params![number, day, model, a, b, c, d, e, f, g, h, i, j, k])?;
    }
    Ok(())
}

/// Deletes a task from the index; true if it was there.
pub(in crate::sqlite) fn forget(db: &Connection, task: &TaskId) -> rusqlite::Result<bool> {
    let Some(number) = number_of(db, task.as_str())? else { return Ok(false) };
    forget_number(db, number)?;
    Ok(true)
}

fn forget_number(db: &Connection, number: i64) -> rusqlite::Result<()> {
    for sql in [
        "DELETE FROM texts WHERE rowid = ?1",
        "DELETE FROM usage WHERE number = ?1",
        "DELETE FROM tasks WHERE number = ?1",
    ] {
        db.prepare_cached(sql)?.execute([number])?;
    }
    Ok(())
}

fn number_of(db: &Connection, task: &str) -> rusqlite::Result<Option<i64>> {
    let sql = "SELECT number FROM tasks WHERE task = ?1";
    db.prepare_cached(sql)?.query_row([task], |row| row.get(0)).optional()
}

/// Number for a new task. Two tasks of one millisecond seldom have the same.
fn free_number(db: &Connection, task: &str) -> rusqlite::Result<i64> {
    let mut taken = db.prepare_cached("SELECT 1 FROM tasks WHERE number = ?1")?;
    let mut number = order_of(task).max(1);
    while taken.exists([number])? {
        number += 1;
    }
    Ok(number)
}

/// Tasks that match, with lower numbers than `before`, the newest first.
pub(in crate::sqlite) fn candidates(
    db: &Connection,
    matching: &str,
    before: i64,
    limit: usize,
) -> rusqlite::Result<Vec<MatchedTask>> {
    let sql = "SELECT rowid FROM texts WHERE texts MATCH ?1 AND rowid < ?2
        ORDER BY rowid DESC LIMIT ?3";
    // One moment for both statements.
    let moment = db.unchecked_transaction()?;
    let mut found = moment.prepare_cached(sql)?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut rows = found.query(params![matching, before, limit])?;
    let mut by_number =
        moment.prepare_cached("SELECT task, person, flow FROM tasks WHERE number = ?1")?;
    let mut candidates = Vec::new();
    while let Some(row) = rows.next()? {
        let number: i64 = row.get(0)?;
        let candidate = |row: &Row<'_>| {
            let origin = TaskOrigin { person: row.get(1)?, flow: row.get(2)? };
            Ok(MatchedTask { number, task: TaskId::new(row.get::<_, String>(0)?), origin })
        };
        candidates.push(by_number.query_row([number], candidate)?);
    }
    Ok(candidates)
}

/// Most words in place of a prefix.
const MAX_WORDS: usize = 32;

/// Words of the index in place of the prefixes of a search, those that have few.
pub(in crate::sqlite) fn prefix_words(
    db: &Connection,
    terms: &SearchTerms,
) -> rusqlite::Result<PrefixWords> {
    let mut words = PrefixWords::new();
    let prefixes: Vec<_> = terms.terms().iter().filter_map(facets::plain_prefix).collect();
    if prefixes.is_empty() {
        return Ok(words);
    }
    // A table of this connection, without any rows of its own.
    db.execute_batch(
        "CREATE VIRTUAL TABLE IF NOT EXISTS temp.words USING fts5vocab(main, texts, row)",
    )?;
    let sql = "SELECT term FROM temp.words WHERE term >= ?1 AND term < ?2 LIMIT ?3";
    let mut found = db.prepare_cached(sql)?;
    for prefix in prefixes {
        let end = format!("{prefix}{}", char::MAX);
        let limit = i64::try_from(MAX_WORDS + 1).unwrap_or(i64::MAX);
        let of_prefix = found.query_map(params![prefix, end, limit], |row| row.get(0))?;
        let of_prefix = of_prefix.collect::<Result<Vec<String>, _>>()?;
        if of_prefix.len() <= MAX_WORDS {
            words.insert(prefix, of_prefix);
        }
    }
    Ok(words)
}

/// Marked excerpts of tasks that match, whose numbers fall. Empty for one that has changed since.
///
/// One query for all: what FTS5 does at its beginning may take longer than all the rest.
pub(in crate::sqlite) fn excerpts(
    db: &Connection,
    matching: &str,
    numbers: &[i64],
) -> rusqlite::Result<Vec<String>> {
    let (Some(newest), Some(oldest)) = (numbers.first(), numbers.last()) else {
        return Ok(Vec::new());
    };
    let [begins, ends] = [HIT_BEGINS, HIT_ENDS].map(String::from);
    // Other tasks in between match, too, and get no excerpt.
    let sql = "SELECT rowid, CASE WHEN instr(?7, ' ' || rowid || ' ') > 0
            THEN snippet(texts, 2, ?4, ?5, '…', ?6) END,
        CASE WHEN instr(?7, ' ' || rowid || ' ') > 0 THEN snippet(texts, 1, ?4, ?5, '…', ?6) END
        FROM texts WHERE texts MATCH ?1 AND rowid BETWEEN ?2 AND ?3 ORDER BY rowid DESC";
    let mut found = db.prepare_cached(sql)?;
    let listed: String = numbers.iter().map(|number| format!(" {number} ")).collect();
    let values = params![matching, oldest, newest, begins, ends, EXCERPT_WORDS, listed];
    let mut rows = found.query(values)?;
    let hits = |text: &String| text.matches(HIT_BEGINS).count();
    let mut excerpts = HashMap::new();
    while let Some(row) = rows.next()? {
        let (answers, requests): (Option<String>, Option<String>) = (row.get(1)?, row.get(2)?);
        let (Some(answers), Some(requests)) = (answers, requests) else { continue };
        // The agent's text, unless the client's has more of the words.
        let best = if hits(&requests) > hits(&answers) { requests } else { answers };
        excerpts.insert(row.get::<_, i64>(0)?, best);
    }
    Ok(numbers.iter().map(|number| excerpts.remove(number).unwrap_or_default()).collect())
}

/// Event numbers of the tasks between two ids, as the index knows them.
pub(in crate::sqlite) fn seqs(
    db: &Connection,
    from: &str,
    before: &str,
) -> rusqlite::Result<HashMap<String, i64>> {
    let sql = "SELECT task, seq FROM tasks WHERE task >= ?1 AND task < ?2";
    let mut found = db.prepare_cached(sql)?;
    let rows = found.query_map([from, before], |row| Ok((row.get(0)?, row.get(1)?)))?;
    rows.collect()
}

/// Number of tasks in the index.
pub(in crate::sqlite) fn count(db: &Connection) -> rusqlite::Result<u64> {
    let count: i64 = db.query_row("SELECT count(*) FROM tasks", [], |row| row.get(0))?;
    Ok(count.unsigned_abs())
}

/// Origins of tasks, as far as the index knows them.
pub(in crate::sqlite) fn origins(
    db: &Connection,
    tasks: &[TaskId],
) -> rusqlite::Result<HashMap<TaskId, TaskOrigin>> {
    let mut found = db.prepare_cached("SELECT person, flow FROM tasks WHERE task = ?1")?;
    let mut origins = HashMap::new();
    for task in tasks {
        let origin = |row: &Row<'_>| Ok(TaskOrigin { person: row.get(0)?, flow: row.get(1)? });
        let origin = found.query_row([task.as_str()], origin).optional()?;
        origins.extend(origin.map(|origin| (task.clone(), origin)));
    }
    Ok(origins)
}

/// Usage of these tasks, or of all, by their ids, without the days before `since`.
pub(in crate::sqlite) fn usage(
    db: &Connection,
    since: Option<&str>,
    tasks: Option<&[String]>,
) -> rusqlite::Result<HashMap<String, TaskUsage>> {
    let mut sql = format!(
        "SELECT t.task, t.seq, t.person, t.flow, u.day, u.model, {AMOUNTS}
        FROM tasks t LEFT JOIN usage u ON u.number = t.number AND u.day >= ?1"
    );
    let (since, mut usage) = (since.unwrap_or_default(), HashMap::new());
    let Some(tasks) = tasks else {
        add_usage(db.prepare_cached(&sql)?.query([since])?, &mut usage)?;
        return Ok(usage);
    };
    sql += " WHERE t.task = ?2";
    let mut found = db.prepare_cached(&sql)?;
    for task in tasks {
        add_usage(found.query([since, task.as_str()])?, &mut usage)?;
    }
    Ok(usage)
}

/// Adds rows of usage to the usage of their tasks.
fn add_usage(mut rows: Rows<'_>, usage: &mut HashMap<String, TaskUsage>) -> rusqlite::Result<()> {
    while let Some(row) = rows.next()? {
        let task: String = row.get(0)?;
        let origin = TaskOrigin { person: row.get(2)?, flow: row.get(3)? };
        let of = TaskUsage { seq: row.get(1)?, origin, entries: Vec::new() };
        let known = usage.entry(task).or_insert(of);
        if let Some(day) = row.get::<_, Option<String>>(4)? {
            let (model, amounts) = (row.get(5)?, amounts(row, 6)?);
            known.entries.push(UsageEntry { day, model, amounts });
        }
    }
    Ok(())
}
