//! Reviews in SQL: one JSON text each. A trigger deletes them with their tasks.

use super::{
    SqliteStorage,
    db::{failure::SqliteFailure, write_queue::Length},
};
use crate::{ReviewStore, StorageError};
use a2a_hub_core::review::Review;
use a2a_hub_protocol::id::TaskId;
use rusqlite::{Connection, params};

/// Reviews of a task by this owner, oldest first: ids are in the order of creation.
fn reviews(db: &Connection, task: &TaskId, owner: &str) -> Result<Vec<Review>, SqliteFailure> {
    let sql = "SELECT id, review FROM reviews WHERE task = ?1 AND owner = ?2 ORDER BY id";
    let mut found = db.prepare_cached(sql)?;
    let mut rows = found.query(params![task.as_str(), owner])?;
    let mut reviews = Vec::new();
    while let Some(row) = rows.next()? {
        let (id, review): (String, String) = (row.get(0)?, row.get(1)?);
        reviews.push(serde_json::from_str(&review).map_err(|why| corrupt(&id, &why))?);
    }
    Ok(reviews)
}

fn corrupt(id: &str, why: &serde_json::Error) -> StorageError {
    StorageError::Corrupt { subject: format!("the review `{id}`"), why: why.to_string() }
}

#[async_trait::async_trait]
impl ReviewStore for SqliteStorage {
    async fn reviews(&self, task: &TaskId, owner: &str) -> Result<Vec<Review>, StorageError> {
        let (task, owner) = (task.clone(), owner.to_owned());
        self.readers.read(move |db| reviews(db, &task, &owner)).await
    }

    async fn set_review(&self, review: &Review) -> Result<(), StorageError> {
        let text = serde_json::to_string(review).map_err(|why| corrupt(&review.id, &why))?;
        let Review { id, task, owner, .. } = review.clone();
        let length = Length::from_size(1, text.len());
        let sql = "INSERT OR REPLACE INTO reviews (id, task, owner, review)
            SELECT ?1, ?2, ?3, ?4 WHERE EXISTS (SELECT 1 FROM tasks WHERE id = ?2)";
        let set = move |db: &Connection| -> Result<(), SqliteFailure> {
            db.prepare_cached(sql)?.execute(params![id, task.as_str(), owner, text])?;
            Ok(())
        };
        self.writer.write_of(length, set).await
    }

    async fn forget_review(&self, review: &Review) -> Result<(), StorageError> {
        let (task, owner, id) = (review.task.clone(), review.owner.clone(), review.id.clone());
        let sql = "DELETE FROM reviews WHERE task = ?1 AND owner = ?2 AND id = ?3";
        let forget = move |db: &Connection| -> Result<(), SqliteFailure> {
            db.prepare_cached(sql)?.execute(params![task.as_str(), owner, id])?;
            Ok(())
        };
        self.writer.write(forget).await
    }
}
