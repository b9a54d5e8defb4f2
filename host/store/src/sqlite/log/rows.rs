//! Encoding of a task's log as rows of `events`: events that are stored together share a row, one
//! line each, as far as they fit into a page. Every row costs an entry in the index and in the
//! write-ahead log, whatever its size; so a task that is answered at once takes one row, and a
//! stream a few.

use crate::{
    StorageError,
    sqlite::db::{error::unavailable, failure::SqliteFailure, schema::integer},
};
use a2a_hub_protocol::{event::TaskEvent, id::TaskId};
use rusqlite::{Connection, params};
use std::{fmt::Display, mem, sync::Arc};

/// Limit of a row's events in bytes: with the row's id and its principal, they fit into a page of
/// 4,096.
const MAX_ROW_BYTES: usize = 3_800;

/// Separator between two events of a row. Single-line JSON contains none (RFC 8259, section 7).
const BETWEEN: u8 = b'\n';

/// Initial capacity for a row's events: about the size of a task that is answered at once.
const USUAL: usize = 1_280;

/// Events that are stored together.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::sqlite) struct Row {
    /// Number of the first event in its task's log.
    pub(in crate::sqlite) first: u64,
    /// JSON of the events, one line each.
    pub(in crate::sqlite) events: String,
}

impl Row {
    fn new(first: u64, events: Vec<u8>) -> Result<Self, StorageError> {
        let events = String::from_utf8(events).map_err(|why| unwritten(&why))?;
        Ok(Self { first, events })
    }
}

fn unwritten(why: &dyn Display) -> StorageError {
    unavailable(format!("write an event as JSON: {why}"))
}

/// Rows for new events after event number `after`.
pub(in crate::sqlite) fn from_events(
    after: u64,
    events: &[Arc<TaskEvent>],
) -> Result<Vec<Row>, StorageError> {
    let (mut rows, mut first) = (Vec::new(), after.saturating_add(1));
    let mut text = Vec::with_capacity(USUAL);
    for (number, event) in (1..).zip(events) {
        let end = text.len();
        if end > 0 {
            text.push(BETWEEN);
        }
        serde_json::to_writer(&mut text, event.as_ref()).map_err(|why| unwritten(&why))?;
        if end > 0 && text.len() > MAX_ROW_BYTES {
            let event = text.split_off(end + 1);
            text.truncate(end);
            rows.push(Row::new(first, mem::replace(&mut text, event))?);
            first = after.saturating_add(number);
        }
    }
    if !text.is_empty() {
        rows.push(Row::new(first, text)?);
    }
    Ok(rows)
}

/// Number of events in a row.
pub(in crate::sqlite) fn count(events: &str) -> usize {
    events.split(char::from(BETWEEN)).count()
}

/// Query for the rows that hold the events after event `?2`, and perhaps one more row.
pub(in crate::sqlite) const ROWS: &str = "SELECT seq, event FROM events WHERE task = ?1
    AND seq >= coalesce((SELECT max(seq) FROM events WHERE task = ?1 AND seq <= ?2), 0)
    ORDER BY seq LIMIT ?3";

/// Calls `take` with the JSON of each event after that number, for at most `limit` events.
pub(in crate::sqlite) fn each_event(
    db: &Connection,
    task: &TaskId,
    after: u64,
    limit: usize,
    mut take: impl FnMut(u64, &str) -> Result<(), SqliteFailure>,
) -> Result<(), SqliteFailure> {
    let mut found = db.prepare_cached(ROWS)?;
    // The first row may contain only earlier events.
    let rows = integer((limit as u64).saturating_add(1));
    let mut rows = found.query(params![task.as_str(), integer(after), rows])?;
    let mut remaining = limit;
    while remaining > 0
        && let Some(row) = rows.next()?
    {
        let first = row.get::<_, i64>(0)?.unsigned_abs();
        let events = row.get_ref(1)?.as_str().map_err(rusqlite::Error::from)?;
        let wanted =
            (first..).zip(events.split(char::from(BETWEEN))).filter(|(seq, _)| *seq > after);
        for (seq, event) in wanted.take(remaining) {
            take(seq, event)?;
            remaining -= 1;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        contract::{chunk, created, status},
        sqlite::{
            db::schema,
            log::events::{Addition, askers, events},
        },
    };
    use a2a_hub_core::access_control::Principal;
    use a2a_hub_protocol::task::TaskState;

    fn json(event: &Arc<TaskEvent>) -> String {
        serde_json::to_string(event.as_ref()).unwrap()
    }

    #[test]
    fn events_of_one_append_share_rows() {
        let id = TaskId::fresh();
        let (begins, works) = (created(&id, "c"), status(TaskState::Working, 1, None));
        let (line, long) = (chunk("two\nlines"), chunk(&"x".repeat(MAX_ROW_BYTES)));
        let rows = from_events(0, &[begins.clone(), works.clone(), line.clone()]).unwrap();
        let all = [json(&begins), json(&works), json(&line)].join("\n");
        assert_eq!(rows, [Row { first: 1, events: all }]);
        assert_eq!(count(&rows[0].events), 3);

        let rows =
            from_events(6, &[line.clone(), long.clone(), line.clone(), line.clone()]).unwrap();
        let numbers: Vec<_> = rows.iter().map(|row| (row.first, count(&row.events))).collect();
        assert_eq!(numbers, [(7, 1), (8, 1), (9, 2)]);

        let many = from_events(0, &vec![line; 200]).unwrap();
        assert!(many.iter().all(|row| row.events.len() < MAX_ROW_BYTES), "{}", many.len());
        assert_eq!(many.iter().map(|row| count(&row.events)).sum::<usize>(), 200);
    }

    #[test]
    fn log_is_readable_from_any_event() {
        let dir = tempfile::tempdir().unwrap();
        let db = schema::open(&dir.path().join("hub.db")).unwrap().0;
        let id = TaskId::fresh();
        let (mut all, mut stored) = (Vec::new(), 0);
        for together in [3, 1, 40, 1, 2] {
            let mut events = Vec::new();
            for seq in stored + 1..=stored + together {
                events.push(match seq {
                    1 => created(&id, "c"),
                    2 => status(TaskState::Working, 1, None),
                    _ => chunk(&format!("{seq} {}", "x".repeat(200))),
                });
            }
            all.extend(events.iter().map(json));
            let addition = Addition::new(id.clone(), stored, events, None).unwrap();
            stored = addition.append(&db).unwrap().seq;
        }
        let rows: i64 = db.query_row("SELECT count(*) FROM events", [], |row| row.get(0)).unwrap();
        assert!((6..12).contains(&rows), "{rows}");
        for after in 0..=all.len() + 1 {
            for limit in [0, 1, 2, 5, all.len(), usize::MAX] {
                let mut read = Vec::new();
                each_event(&db, &id, after as u64, limit, |seq, event| {
                    read.push((seq, event.to_owned()));
                    Ok(())
                })
                .unwrap();
                let wanted: Vec<_> =
                    (1..).zip(all.iter().cloned()).skip(after).take(limit).collect();
                assert_eq!(read, wanted, "after {after}, {limit}");
            }
        }
    }

    /// The other rows of the log cannot even be read.
    #[test]
    fn page_of_long_log_reads_its_rows_only() {
        let dir = tempfile::tempdir().unwrap();
        let db = schema::open(&dir.path().join("hub.db")).unwrap().0;
        let id = TaskId::fresh();
        let mut log = vec![created(&id, "c")];
        log.extend((2..=3_000).map(|seq| chunk(&format!("{seq} {}", "x".repeat(200)))));
        let by = Principal::Operator;
        Addition::new(id.clone(), 0, log, Some(&by)).unwrap().append(&db).unwrap();
        let more = vec![chunk("more"); 40];
        Addition::new(id.clone(), 3_000, more, Some(&by)).unwrap().append(&db).unwrap();
        let spoil = "UPDATE events SET event = '{', asker = 'nobody'
            WHERE seq + 30 < ?1 OR seq > ?2";
        db.execute(spoil, [3_000, 3_039]).unwrap();
        let page = events(&db, &id, 2_990, 45).unwrap();
        assert!(page.iter().map(|event| event.seq).eq(2_991..=3_035));
        let askers = askers(&db, &id, 3_001..=3_035).unwrap();
        assert!(askers.iter().map(|(seq, _)| *seq).eq(3_001..=3_035));
        assert!(events(&db, &id, 1_000, 45).is_err(), "that part is spoiled");
        let sql = "EXPLAIN QUERY PLAN SELECT seq FROM events WHERE task = ?1 AND asker IS NOT NULL
            AND seq >= ?2 AND seq <= ?3 ORDER BY seq";
        let plan: String = db.query_row(sql, params!["t", 1, 2], |row| row.get("detail")).unwrap();
        assert!(plan.contains("(task=? AND seq>? AND seq<?)"), "{plan}");
    }
}
