//! Times until which questions are set aside: a column of the table of questions.

use super::{SqliteStorage, db::failure::SqliteFailure};
use crate::{QuestionPostponements, StorageError};
use a2a_hub_protocol::id::{QuestionId, TaskId};
use rusqlite::{Connection, OptionalExtension as _, params};

/// Sets the open question of a task aside; false if the task does not ask it.
fn postpone(
    db: &Connection,
    task: &TaskId,
    id: &QuestionId,
    until: &str,
) -> Result<bool, SqliteFailure> {
    let sql = "UPDATE questions SET postponed_until = ?3
        WHERE task = ?1 AND id = ?2 AND closed_at IS NULL";
    let changed = db.prepare_cached(sql)?.execute(params![task.as_str(), id.as_str(), until])?;
    Ok(changed > 0)
}

/// Time until which the open question of a task is set aside.
fn postponed(
    db: &Connection,
    task: &TaskId,
    id: &QuestionId,
) -> Result<Option<String>, SqliteFailure> {
    let sql = "SELECT postponed_until FROM questions
        WHERE task = ?1 AND id = ?2 AND closed_at IS NULL";
    let mut found = db.prepare_cached(sql)?;
    let values = params![task.as_str(), id.as_str()];
    Ok(found.query_row(values, |row| row.get(0)).optional()?.flatten())
}

#[async_trait::async_trait]
impl QuestionPostponements for SqliteStorage {
    async fn postpone_question(
        &self,
        task: &TaskId,
        id: &QuestionId,
        until: &str,
    ) -> Result<bool, StorageError> {
        let (task, id, until) = (task.clone(), id.clone(), until.to_owned());
        self.writer.write(move |db| postpone(db, &task, &id, &until)).await
    }

    async fn postponed_until(
        &self,
        task: &TaskId,
        id: &QuestionId,
    ) -> Result<Option<String>, StorageError> {
        let (task, id) = (task.clone(), id.clone());
        self.readers.read(move |db| postponed(db, &task, &id)).await
    }
}
