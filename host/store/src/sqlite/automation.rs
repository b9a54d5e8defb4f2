//! States of schedules, triggers and notifiers, standing permissions, and people, in SQL: one table
//! for each, with a JSON text by name.

use super::db::failure::SqliteFailure;
use crate::StorageError;
use rusqlite::Connection;
use serde::{Serialize, de::DeserializeOwned};

/// Statements for one of the tables.
pub(super) struct StateTable {
    kind: &'static str,
    list: &'static str,
    set: &'static str,
    forget: &'static str,
}

/// States of schedules.
pub(super) const SCHEDULES: StateTable = StateTable {
    kind: "schedule",
    list: "SELECT name, state FROM schedules ORDER BY name",
    set: "INSERT OR REPLACE INTO schedules (name, state) VALUES (?1, ?2)",
    forget: "DELETE FROM schedules WHERE name = ?1",
};

/// States of triggers.
pub(super) const TRIGGERS: StateTable = StateTable {
    kind: "trigger",
    list: "SELECT name, state FROM triggers ORDER BY name",
    set: "INSERT OR REPLACE INTO triggers (name, state) VALUES (?1, ?2)",
    forget: "DELETE FROM triggers WHERE name = ?1",
};

/// States of notifiers.
pub(super) const NOTIFIERS: StateTable = StateTable {
    kind: "notifier",
    list: "SELECT name, state FROM notifiers ORDER BY name",
    set: "INSERT OR REPLACE INTO notifiers (name, state) VALUES (?1, ?2)",
    forget: "DELETE FROM notifiers WHERE name = ?1",
};

/// Standing permissions, by their ids.
pub(super) const PERMISSION_RULES: StateTable = StateTable {
    kind: "permission rule",
    list: "SELECT id, rule FROM permission_rules ORDER BY id",
    set: "INSERT OR REPLACE INTO permission_rules (id, rule) VALUES (?1, ?2)",
    forget: "DELETE FROM permission_rules WHERE id = ?1",
};

/// People, by their names.
pub(super) const PEOPLE: StateTable = StateTable {
    kind: "person",
    list: "SELECT name, person FROM people ORDER BY name",
    set: "INSERT OR REPLACE INTO people (name, person) VALUES (?1, ?2)",
    forget: "DELETE FROM people WHERE name = ?1",
};

impl StateTable {
    fn corrupt(&self, name: &str, why: &serde_json::Error) -> StorageError {
        let subject = format!("the state of the {} `{name}`", self.kind);
        StorageError::Corrupt { subject, why: why.to_string() }
    }

    pub(super) fn list<S: DeserializeOwned>(
        &self,
        db: &Connection,
    ) -> Result<Vec<(String, S)>, SqliteFailure> {
        let mut found = db.prepare_cached(self.list)?;
        let mut rows = found.query([])?;
        let mut states = Vec::new();
        while let Some(row) = rows.next()? {
            let (name, state): (String, String) = (row.get(0)?, row.get(1)?);
            let state = serde_json::from_str(&state).map_err(|why| self.corrupt(&name, &why))?;
            states.push((name, state));
        }
        Ok(states)
    }

    pub(super) fn set<S: Serialize>(
        &self,
        db: &Connection,
        name: &str,
        state: &S,
    ) -> Result<(), SqliteFailure> {
        let state = serde_json::to_string(state).map_err(|why| self.corrupt(name, &why))?;
        db.prepare_cached(self.set)?.execute([name, &state])?;
        Ok(())
    }

    pub(super) fn forget(&self, db: &Connection, name: &str) -> Result<(), SqliteFailure> {
        db.prepare_cached(self.forget)?.execute([name])?;
        Ok(())
    }
}
