//! Topics, their messages and cursors, in SQL.
//!
//! Positions and numbers only grow, also after a topic was deleted: a cursor stays valid.

use super::db::{failure::SqliteFailure, schema::integer};
use crate::{
    StorageError,
    topics::{self, CursorUse, NewTopicMessage, TopicQuery},
};
use a2a_hub_clock as clock;
use a2a_hub_core::scheduling::{
    resources::SharedResource,
    shares::{Holder, UsedUnits},
};
use a2a_hub_protocol::topics::{
    CursorInfo, CursorName, PublishedMessage, RetentionLimit, TopicBody, TopicGap, TopicInfo,
    TopicList, TopicMessage, TopicName, TopicPage, TopicRules, TopicSource, TopicStart,
};
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use serde::{Deserialize, Serialize};

/// Most messages that one write deletes.
const DELETED_AT_ONCE: i64 = 500;

/// Stored part of a message.
#[derive(Deserialize, Serialize)]
struct StoredMessage {
    #[serde(flatten)]
    source: TopicSource,
    #[serde(flatten)]
    body: TopicBody,
}

struct TenantRow {
    id: i64,
    position: u64,
    forgotten: u64,
}

struct TopicRow {
    id: i64,
    name: String,
    owner: String,
    sequence: u64,
    latest_ms: u64,
    messages: u64,
    bytes: u64,
    dropped: u64,
    dropped_at: u64,
}

fn number(row: &Row<'_>, column: &str) -> rusqlite::Result<u64> {
    row.get::<_, i64>(column).map(i64::unsigned_abs)
}

impl TopicRow {
    fn from_row(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            id: row.get("id")?,
            name: row.get("name")?,
            owner: row.get("owner")?,
            sequence: number(row, "sequence")?,
            latest_ms: number(row, "latest_ms")?,
            messages: number(row, "messages")?,
            bytes: number(row, "bytes")?,
            dropped: number(row, "dropped")?,
            dropped_at: number(row, "dropped_at")?,
        })
    }

    fn name(&self) -> Result<TopicName, SqliteFailure> {
        TopicName::parse(&self.name).map_err(|why| corrupt("the name of a topic", &why))
    }
}

fn corrupt(subject: &str, why: &dyn std::fmt::Display) -> SqliteFailure {
    StorageError::Corrupt { subject: subject.to_owned(), why: why.to_string() }.into()
}

fn tenant_row(db: &Connection, name: &str) -> Result<Option<TenantRow>, SqliteFailure> {
    let sql = "SELECT id, position, forgotten FROM topic_tenants WHERE name = ?1";
    let row = |row: &Row<'_>| {
        let (position, forgotten) = (number(row, "position")?, number(row, "forgotten")?);
        Ok(TenantRow { id: row.get("id")?, position, forgotten })
    };
    Ok(db.prepare_cached(sql)?.query_row([name], row).optional()?)
}

fn tenant_or_new(db: &Connection, name: &str) -> Result<TenantRow, SqliteFailure> {
    if let Some(known) = tenant_row(db, name)? {
        return Ok(known);
    }
    db.prepare_cached("INSERT INTO topic_tenants (name) VALUES (?1)")?.execute([name])?;
    Ok(TenantRow { id: db.last_insert_rowid(), position: 0, forgotten: 0 })
}

fn topic_row(db: &Connection, tenant: i64, name: &str) -> Result<Option<TopicRow>, SqliteFailure> {
    let sql = "SELECT * FROM topics WHERE tenant = ?1 AND name = ?2";
    let mut found = db.prepare_cached(sql)?;
    Ok(found.query_row(params![tenant, name], TopicRow::from_row).optional()?)
}

pub(super) fn position(db: &Connection, tenant: &str) -> Result<u64, SqliteFailure> {
    Ok(tenant_row(db, tenant)?.map_or(0, |tenant| tenant.position))
}

/// Form in which a message is stored.
pub(super) fn written(message: &NewTopicMessage) -> Result<String, StorageError> {
    let (source, body) = (message.source.clone(), message.body.clone());
    serde_json::to_string(&StoredMessage { source, body }).map_err(|why| StorageError::Corrupt {
        subject: format!("a message to the topic `{}`", message.topic),
        why: why.to_string(),
    })
}

pub(super) fn publish(
    db: &Connection,
    tenant: &str,
    message: &NewTopicMessage,
    written: &str,
    rules: &TopicRules,
) -> Result<PublishedMessage, SqliteFailure> {
    expire(db, rules.expired_before(message.at_ms))?;
    let tenant = tenant_or_new(db, tenant)?;
    let topic = match topic_row(db, tenant.id, message.topic.as_str())? {
        Some(topic) => topic,
        None => add_topic(db, &tenant, message, rules)?,
    };
    let (position, sequence) = (tenant.position + 1, topic.sequence + 1);
    let (at_ms, bytes) = (integer(message.at_ms), integer(message.body.bytes() as u64));
    db.prepare_cached("UPDATE topic_tenants SET position = ?2 WHERE id = ?1")?
        .execute([tenant.id, integer(position)])?;
    let sql = "INSERT INTO topic_messages (topic, position, sequence, at_ms, bytes, message, owner)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    let (owner, number) = (&message.source.publisher, integer(sequence));
    let row = params![topic.id, integer(position), number, at_ms, bytes, written, owner];
    db.prepare_cached(sql)?.execute(row)?;
    let sql = "UPDATE topics SET sequence = ?2, position = ?3, latest_ms = ?4,
        messages = messages + 1, bytes = bytes + ?5 WHERE id = ?1";
    db.prepare_cached(sql)?.execute(params![
        topic.id,
        integer(sequence),
        integer(position),
        at_ms,
        bytes
    ])?;
    let (mut messages, mut size) = (topic.messages + 1, topic.bytes + message.body.bytes() as u64);
    for _ in 0..TopicRules::MAX_DROPPED {
        if !rules.exceeds(messages, size) {
            break;
        }
        let dropped = next_dropped(db, topic.id, position, rules.shared_by(messages))?;
        let Some(oldest) = dropped else { break };
        oldest.drop_from(db)?;
        (messages, size) = (messages - 1, size.saturating_sub(oldest.bytes.unsigned_abs()));
    }
    Ok(PublishedMessage { topic: message.topic.clone(), sequence, position })
}

/// Message of a full topic that makes room: the oldest one of the publisher with more than a share,
/// or else the oldest of all. The message at `latest` stays.
fn next_dropped(
    db: &Connection,
    topic: i64,
    latest: u64,
    limit: RetentionLimit,
) -> Result<Option<MessageRow>, SqliteFailure> {
    let sql = "SELECT owner, messages, bytes FROM topic_publishers WHERE topic = ?1";
    let mut found = db.prepare_cached(sql)?;
    let rows = found.query_map([topic], |row| {
        let owner: String = row.get("owner")?;
        Ok((owner, number(row, "messages")?, number(row, "bytes")?))
    })?;
    let publishers = rows.collect::<Result<Vec<_>, _>>()?;
    let columns = "number, topic, position, sequence, at_ms, bytes";
    if let Some(beyond) = topics::publisher_beyond(limit, &publishers) {
        let sql = format!(
            "SELECT {columns} FROM topic_messages
                WHERE topic = ?1 AND owner = ?2 AND position < ?3 ORDER BY position LIMIT 1"
        );
        let of_owner = params![topic, beyond, integer(latest)];
        let oldest =
            db.prepare_cached(&sql)?.query_row(of_owner, MessageRow::from_row).optional()?;
        if oldest.is_some() {
            return Ok(oldest);
        }
    }
    let sql =
        format!("SELECT {columns} FROM topic_messages WHERE topic = ?1 ORDER BY position LIMIT 1");
    Ok(db.prepare_cached(&sql)?.query_row([topic], MessageRow::from_row).optional()?)
}

/// Number of rows of each owner in a table of a tenant.
fn count_units(
    db: &Connection,
    sql: &str,
    tenant: i64,
    holder: &Holder,
) -> Result<UsedUnits, SqliteFailure> {
    let mut found = db.prepare_cached(sql)?;
    let rows = found.query_map([tenant], |row| Ok((row.get(0)?, number(row, "units")?)))?;
    let owners = rows.collect::<Result<Vec<(String, u64)>, _>>()?;
    Ok(UsedUnits::sum(holder, owners.iter().map(|(owner, units)| (owner.as_str(), *units))))
}

/// Adds a topic; those without messages make place for it.
fn add_topic(
    db: &Connection,
    tenant: &TenantRow,
    message: &NewTopicMessage,
    rules: &TopicRules,
) -> Result<TopicRow, SqliteFailure> {
    let (name, owner) = (&message.topic, &message.source.publisher);
    let holder = Holder::of_identity(owner);
    let limit = || {
        let sql = "SELECT owner, count(*) AS units FROM topics WHERE tenant = ?1 GROUP BY owner";
        let usage = count_units(db, sql, tenant.id, &holder)?;
        let (resource, max_units) = (SharedResource::Topics, rules.max_topics);
        Ok::<_, SqliteFailure>(resource.require_share(max_units, &holder, usage))
    };
    if limit()?.is_err() {
        let sql = "UPDATE topic_tenants SET forgotten = max(forgotten, coalesce(
            (SELECT max(dropped_at) FROM topics WHERE tenant = ?1 AND messages = 0), 0)) WHERE id = ?1";
        db.prepare_cached(sql)?.execute([tenant.id])?;
        let sql = "DELETE FROM topics WHERE tenant = ?1 AND messages = 0";
        db.prepare_cached(sql)?.execute([tenant.id])?;
        limit()?.map_err(StorageError::from)?;
    }
    let sql = "INSERT INTO topics (tenant, name, owner) VALUES (?1, ?2, ?3)";
    db.prepare_cached(sql)?.execute(params![tenant.id, name.as_str(), owner])?;
    let mut added = db.prepare_cached("SELECT * FROM topics WHERE id = ?1")?;
    Ok(added.query_row([db.last_insert_rowid()], TopicRow::from_row)?)
}

/// Row of a message, without its content.
struct MessageRow {
    number: i64,
    topic: i64,
    position: i64,
    sequence: i64,
    at_ms: i64,
    bytes: i64,
}

impl MessageRow {
    fn from_row(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            number: row.get("number")?,
            topic: row.get("topic")?,
            position: row.get("position")?,
            sequence: row.get("sequence")?,
            at_ms: row.get("at_ms")?,
            bytes: row.get("bytes")?,
        })
    }

    /// Deletes the message, and records in its topic that it was dropped.
    fn drop_from(&self, db: &Connection) -> Result<(), SqliteFailure> {
        let sql = "DELETE FROM topic_messages WHERE number = ?1";
        db.prepare_cached(sql)?.execute([self.number])?;
        let sql = "UPDATE topics SET messages = messages - 1, bytes = bytes - ?2,
            dropped = max(dropped, ?3), dropped_at = max(dropped_at, ?4) WHERE id = ?1";
        let row = params![self.topic, self.bytes, self.sequence, self.position];
        db.prepare_cached(sql)?.execute(row)?;
        Ok(())
    }
}

/// Drops messages that are too old, oldest first.
pub(super) fn expire(db: &Connection, before_ms: u64) -> Result<(), SqliteFailure> {
    let sql = "SELECT number, topic, position, sequence, at_ms, bytes FROM topic_messages
        ORDER BY number LIMIT 1";
    for _ in 0..TopicRules::MAX_DROPPED {
        let oldest = db.prepare_cached(sql)?.query_row([], MessageRow::from_row).optional()?;
        match oldest {
            Some(oldest) if oldest.at_ms < integer(before_ms) => oldest.drop_from(db)?,
            Some(_) | None => break,
        }
    }
    Ok(())
}

pub(super) fn read(
    db: &Connection,
    tenant: &str,
    query: &TopicQuery,
) -> Result<TopicPage, SqliteFailure> {
    // One snapshot: a message that is dropped between two statements would be neither returned nor
    // reported.
    let db = &*db.unchecked_transaction()?;
    let Some(tenant) = tenant_row(db, tenant)? else { return Ok(TopicPage::default()) };
    let after = query.after.min(tenant.position);
    let topics: Vec<_> = match query.pattern.only() {
        Some(name) => topic_row(db, tenant.id, name.as_str())?.into_iter().collect(),
        None => {
            let sql = "SELECT * FROM topics WHERE tenant = ?1 AND position > ?2";
            let mut found = db.prepare_cached(sql)?;
            let rows = found.query_map([tenant.id, integer(after)], TopicRow::from_row)?;
            rows.collect::<Result<_, _>>()?
        }
    };
    let mut matching = Vec::new();
    for topic in topics {
        let name = topic.name()?;
        if query.pattern.matches(&name) {
            matching.push((name, topic));
        }
    }
    let numbers = earliest(db, &matching, after, query.limit)?;
    let is_full = numbers.len() >= query.limit;
    let mut page = TopicPage { next: tenant.position, ..TopicPage::default() };
    let (mut bytes, mut is_cut) = (0, is_full);
    for (_, number, topic) in numbers {
        let sql = "SELECT position, sequence, at_ms, bytes, message FROM topic_messages
            WHERE number = ?1";
        let mut found = db.prepare_cached(sql)?;
        let (message, size) = found.query_row([number], |row| {
            Ok((message_of(row, &matching[topic].0)?, number_of_bytes(row)?))
        })?;
        if !page.messages.is_empty() && bytes + size > query.max_bytes {
            is_cut = true;
            break;
        }
        bytes += size;
        page.messages.push(message.map_err(|why| corrupt("a message of a topic", &why))?);
    }
    if let (true, Some(last)) = (is_cut, page.messages.last()) {
        page.next = last.position;
    }
    let is_news = |position: u64| position > after && position <= page.next;
    for (name, topic) in matching {
        if is_news(topic.dropped_at) {
            page.gaps.push(TopicGap { topic: Some(name), through: Some(topic.dropped) });
        }
    }
    if is_news(tenant.forgotten) {
        page.gaps.push(TopicGap { topic: None, through: None });
    }
    Ok(page)
}

fn number_of_bytes(row: &Row<'_>) -> rusqlite::Result<usize> {
    Ok(usize::try_from(row.get::<_, i64>("bytes")?).unwrap_or(usize::MAX))
}

/// Positions and numbers of the earliest messages of these topics, with the topics' indexes.
fn earliest(
    db: &Connection,
    topics: &[(TopicName, TopicRow)],
    after: u64,
    limit: usize,
) -> Result<Vec<(i64, i64, usize)>, SqliteFailure> {
    let sql = "SELECT position, number FROM topic_messages
        WHERE topic = ?1 AND position > ?2 AND position < ?3 ORDER BY position LIMIT ?4";
    let mut found = db.prepare_cached(sql)?;
    let (mut all, mut bound) = (Vec::new(), i64::MAX);
    for (at, (_, topic)) in topics.iter().enumerate() {
        let values = [topic.id, integer(after), bound, integer(limit as u64)];
        let rows = found.query_map(values, |row| Ok((row.get(0)?, row.get(1)?, at)))?;
        for row in rows {
            all.push(row?);
        }
        all.sort_unstable();
        all.truncate(limit);
        // Later messages than these cannot be among the earliest.
        if let (true, Some((last, ..))) = (all.len() == limit, all.last()) {
            bound = *last;
        }
    }
    Ok(all)
}

fn message_of(
    row: &Row<'_>,
    topic: &TopicName,
) -> rusqlite::Result<Result<TopicMessage, serde_json::Error>> {
    let text: String = row.get("message")?;
    let (position, sequence) = (number(row, "position")?, number(row, "sequence")?);
    let time = clock::at_ms(number(row, "at_ms")?).unwrap_or_default();
    Ok(serde_json::from_str(&text).map(|StoredMessage { source, body }| TopicMessage {
        topic: topic.clone(),
        sequence,
        position,
        time,
        source,
        body,
    }))
}

pub(super) fn list(db: &Connection, tenant: &str) -> Result<TopicList, SqliteFailure> {
    let db = &*db.unchecked_transaction()?;
    let Some(tenant) = tenant_row(db, tenant)? else { return Ok(TopicList::default()) };
    let mut list = TopicList::default();
    let mut found = db.prepare_cached("SELECT * FROM topics WHERE tenant = ?1 ORDER BY name")?;
    for row in found.query_map([tenant.id], TopicRow::from_row)? {
        let row = row?;
        list.topics.push(TopicInfo {
            topic: row.name()?,
            owner: topics::shown_owner(&row.owner),
            messages: row.messages,
            bytes: row.bytes,
            sequence: row.sequence,
            dropped: row.dropped,
            latest: clock::at_ms(row.latest_ms).unwrap_or_default(),
        });
    }
    let sql = "SELECT * FROM topic_cursors WHERE tenant = ?1 ORDER BY name, owner";
    let mut found = db.prepare_cached(sql)?;
    let mut rows = found.query([tenant.id])?;
    while let Some(row) = rows.next()? {
        let name: String = row.get("name")?;
        let position = number(row, "position")?;
        list.cursors.push(CursorInfo {
            cursor: CursorName::try_from(name)
                .map_err(|why| corrupt("the name of a cursor", &why))?,
            owner: row.get("owner")?,
            pattern: row.get("pattern")?,
            position,
            behind: tenant.position.saturating_sub(position),
            used: clock::at_ms(number(row, "used_ms")?).unwrap_or_default(),
        });
    }
    Ok(list)
}

/// Removes a topic from the list; its messages are deleted by [`sweep`]. Returns its number.
pub(super) fn remove(
    db: &Connection,
    tenant: &str,
    name: &TopicName,
) -> Result<Option<i64>, SqliteFailure> {
    let Some(tenant) = tenant_row(db, tenant)? else { return Ok(None) };
    let Some(topic) = topic_row(db, tenant.id, name.as_str())? else { return Ok(None) };
    let sql = "UPDATE topic_tenants SET forgotten = max(forgotten,
        (SELECT position FROM topics WHERE id = ?2)) WHERE id = ?1";
    db.prepare_cached(sql)?.execute([tenant.id, topic.id])?;
    db.prepare_cached("DELETE FROM topics WHERE id = ?1")?.execute([topic.id])?;
    Ok(Some(topic.id))
}

/// Deletes some messages of a removed topic; returns true if it may have more.
pub(super) fn sweep(db: &Connection, topic: i64) -> Result<bool, SqliteFailure> {
    let sql = "DELETE FROM topic_messages WHERE number IN
        (SELECT number FROM topic_messages WHERE topic = ?1 LIMIT ?2)";
    Ok(db.prepare_cached(sql)?.execute([topic, DELETED_AT_ONCE])? > 0)
}

pub(super) fn use_cursor(
    db: &Connection,
    tenant: &str,
    cursor: &CursorUse,
) -> Result<u64, SqliteFailure> {
    let tenant = tenant_or_new(db, tenant)?;
    let confirmed = cursor.after.map(|after| after.min(tenant.position));
    let sql = "SELECT position FROM topic_cursors WHERE tenant = ?1 AND name = ?2 AND owner = ?3";
    let key = params![tenant.id, cursor.name.as_str(), cursor.owner];
    let known = db.prepare_cached(sql)?.query_row(key, |row| number(row, "position")).optional()?;
    let position = match (known, confirmed) {
        (Some(known), confirmed) => known.max(confirmed.unwrap_or(0)),
        (None, Some(confirmed)) => confirmed,
        (None, None) => match cursor.start {
            TopicStart::New => tenant.position,
            TopicStart::Stored => 0,
        },
    };
    if known.is_none() {
        let sql =
            "SELECT owner, count(*) AS units FROM topic_cursors WHERE tenant = ?1 GROUP BY owner";
        let holder = Holder::of_identity(&cursor.owner);
        let usage = count_units(db, sql, tenant.id, &holder)?;
        let (resource, max_units) =
            (SharedResource::Cursors, SharedResource::Cursors.default_total());
        resource.require_share(max_units, &holder, usage).map_err(StorageError::from)?;
    }
    let sql =
        "INSERT OR REPLACE INTO topic_cursors (tenant, name, owner, pattern, position, used_ms)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    db.prepare_cached(sql)?.execute(params![
        tenant.id,
        cursor.name.as_str(),
        cursor.owner,
        cursor.pattern.as_str(),
        integer(position),
        integer(cursor.at_ms),
    ])?;
    Ok(position)
}

pub(super) fn delete_cursors(
    db: &Connection,
    tenant: &str,
    name: &CursorName,
) -> Result<bool, SqliteFailure> {
    let Some(tenant) = tenant_row(db, tenant)? else { return Ok(false) };
    let sql = "DELETE FROM topic_cursors WHERE tenant = ?1 AND name = ?2";
    Ok(db.prepare_cached(sql)?.execute(params![tenant.id, name.as_str()])? > 0)
}
