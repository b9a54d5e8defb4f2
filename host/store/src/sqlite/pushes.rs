//! Push configs and their progress, in SQL.

use super::{
    db::{failure::SqliteFailure, schema::integer},
    log::events::{LIVE, corrupt},
};
use crate::{DeliveryFailure, Progress, PushFilter, StoredPush};
use a2a_hub_protocol::{
    id::{PushConfigId, TaskId, TenantId},
    push::{PushAuthentication, PushConfig, PushForm, Secret},
};
use rusqlite::{Connection, Row, params};

pub(super) fn set(db: &Connection, config: &PushConfig, sent: u64) -> Result<bool, SqliteFailure> {
    let sql = "INSERT INTO pushes (task, id, url, token, scheme, credentials, form, sent)
        SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8 WHERE EXISTS (SELECT 1 FROM tasks WHERE id = ?1)
        ON CONFLICT (task, id) DO UPDATE SET url = ?3, token = ?4, scheme = ?5, credentials = ?6, form = ?7,
        attempts = 0, since = NULL, error = NULL, again = NULL, dead = 0";
    let secret = |secret: Option<&Secret>| secret.map(|secret| secret.expose().to_owned());
    let authentication = config.authentication.as_ref();
    let written = db.prepare_cached(sql)?.execute(params![
        config.task.as_str(),
        config.id.as_str(),
        config.url,
        secret(config.token.as_ref()),
        authentication.map(|it| &it.scheme),
        secret(authentication.and_then(|it| it.credentials.as_ref())),
        config.form.version(),
        integer(sent),
    ])?;
    Ok(written > 0)
}

pub(super) fn list(db: &Connection, filter: &PushFilter) -> Result<Vec<StoredPush>, SqliteFailure> {
    let mut sql = "SELECT pushes.id, task, url, token, scheme, credentials, form, sent, attempts, since, error, dead,
        again, tasks.seq FROM pushes JOIN tasks ON tasks.id = task WHERE (?3 IS NULL OR tasks.tenant = ?3)"
        .to_owned();
    if filter.task.is_some() {
        sql += " AND task = ?1";
    }
    if filter.open_only {
        sql = sql + " AND (sent < tasks.seq OR " + LIVE + ")";
    }
    if filter.dead_only {
        sql += " AND dead = 1";
    }
    sql += " ORDER BY task, number LIMIT ?2";
    let mut found = db.prepare_cached(&sql)?;
    let task = filter.task.as_ref().map(|task| task.as_str());
    let tenant = filter.tenant.as_ref().map(TenantId::as_str);
    let mut rows = found.query(params![task, integer(filter.limit as u64), tenant])?;
    let mut pushes = Vec::new();
    while let Some(row) = rows.next()? {
        pushes.push(push_of(row)?);
    }
    Ok(pushes)
}

fn push_of(row: &Row<'_>) -> Result<StoredPush, SqliteFailure> {
    let id = PushConfigId::new(row.get::<_, String>(0)?);
    let form: String = row.get(6)?;
    let form =
        PushForm::ALL.into_iter().find(|known| known.version() == form).ok_or_else(|| {
            corrupt(format!("the push config {id}"), format!("there is no form {form}"))
        })?;
    let secret =
        |column| Ok::<_, SqliteFailure>(row.get::<_, Option<String>>(column)?.map(Secret::new));
    let credentials = secret(5)?;
    let authentication =
        row.get::<_, Option<String>>(4)?.map(|scheme| PushAuthentication { scheme, credentials });
    let config = PushConfig {
        id,
        task: TaskId::new(row.get::<_, String>(1)?),
        url: row.get(2)?,
        token: secret(3)?,
        authentication,
        form,
    };
    let (since, error) = (row.get::<_, Option<String>>(9)?, row.get::<_, Option<String>>(10)?);
    let (attempts, dead, again) = (row.get(8)?, row.get(11)?, row.get(12)?);
    let error = error.unwrap_or_default();
    let failure = since.map(|since| DeliveryFailure { attempts, since, error, again, dead });
    let progress = Progress { sent: row.get::<_, i64>(7)?.unsigned_abs(), failure };
    Ok(StoredPush { config, progress, last: row.get::<_, i64>(13)?.unsigned_abs() })
}

pub(super) fn went(
    db: &Connection,
    task: &TaskId,
    id: &PushConfigId,
    progress: &Progress,
) -> Result<(), SqliteFailure> {
    let sql =
        "UPDATE pushes SET sent = max(sent, ?3), attempts = ?4, since = ?5, error = ?6, dead = ?7,
        again = ?8 WHERE task = ?1 AND id = ?2";
    let Progress { sent, failure } = progress;
    db.prepare_cached(sql)?.execute(params![
        task.as_str(),
        id.as_str(),
        integer(*sent),
        failure.as_ref().map_or(0, |it| it.attempts),
        failure.as_ref().map(|it| &it.since),
        failure.as_ref().map(|it| &it.error),
        progress.is_dead(),
        failure.as_ref().and_then(|it| it.again.as_ref()),
    ])?;
    Ok(())
}

pub(super) fn delete(
    db: &Connection,
    task: &TaskId,
    id: &PushConfigId,
) -> Result<(), SqliteFailure> {
    let mut delete = db.prepare_cached("DELETE FROM pushes WHERE task = ?1 AND id = ?2")?;
    delete.execute([task.as_str(), id.as_str()])?;
    Ok(())
}
