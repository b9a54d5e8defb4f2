//! States of schedules, in SQL.

use super::db::failure::Failure;
use crate::StorageError;
use a2a_hub_clock::schedule::State;
use rusqlite::Connection;

fn corrupt(name: &str, why: &serde_json::Error) -> StorageError {
    let what = format!("the state of the schedule `{name}`");
    StorageError::Corrupt { what, why: why.to_string() }
}

pub(super) fn list(db: &Connection) -> Result<Vec<(String, State)>, Failure> {
    let mut found = db.prepare_cached("SELECT name, state FROM schedules ORDER BY name")?;
    let mut rows = found.query([])?;
    let mut states = Vec::new();
    while let Some(row) = rows.next()? {
        let (name, state): (String, String) = (row.get(0)?, row.get(1)?);
        let state = serde_json::from_str(&state).map_err(|why| corrupt(&name, &why))?;
        states.push((name, state));
    }
    Ok(states)
}

pub(super) fn set(db: &Connection, name: &str, state: &State) -> Result<(), Failure> {
    let state = serde_json::to_string(state).map_err(|why| corrupt(name, &why))?;
    let sql = "INSERT OR REPLACE INTO schedules (name, state) VALUES (?1, ?2)";
    db.prepare_cached(sql)?.execute([name, &state])?;
    Ok(())
}

pub(super) fn forget(db: &Connection, name: &str) -> Result<(), Failure> {
    db.prepare_cached("DELETE FROM schedules WHERE name = ?1")?.execute([name])?;
    Ok(())
}
