//! Files of a data directory: the lock, the database, and the migrations of its tables.

use super::{
    dirty_bit, error,
    failure::SqliteFailure,
    files::private,
    losses::{self, Loss},
};
use crate::StorageError;
use rusqlite::{Connection, OpenFlags, config::DbConfig};
use std::{
    fs::{DirBuilder, File, TryLockError},
    io::{self, Read as _, Seek as _, Write as _},
    os::unix::fs::DirBuilderExt as _,
    path::Path,
    thread,
    time::Duration,
};

/// Application id in the file's header: "a2ah".
const APPLICATION_ID: i32 = 0x6132_6168;

/// Migrations from each format to the next. The first creates the tables. A migration never changes
/// once it is released.
pub(in crate::sqlite) const MIGRATIONS: [&str; 6] = ["
    CREATE TABLE tasks (
        id      TEXT PRIMARY KEY,
        context TEXT NOT NULL,
        agent   TEXT NOT NULL,
        state   TEXT NOT NULL,
        seq     INTEGER NOT NULL,
        created TEXT NOT NULL,
        updated TEXT NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX tasks_of_context ON tasks (context, id);
    CREATE INDEX live_tasks ON tasks (id)
        WHERE state = 'submitted' OR state = 'working'
        OR state = 'input-required' OR state = 'auth-required';

    -- The truth. Everything about a task can be made anew from here.
    CREATE TABLE events (
        task  TEXT NOT NULL,
        seq   INTEGER NOT NULL,
        event TEXT NOT NULL,
        PRIMARY KEY (task, seq)
    ) STRICT, WITHOUT ROWID;

    -- What a task's events up to a number come to, for tasks whose log is long.
    CREATE TABLE folds (
        task TEXT PRIMARY KEY,
        seq  INTEGER NOT NULL,
        fold TEXT NOT NULL
    ) STRICT;

    CREATE TABLE memories (
        agent TEXT NOT NULL,
        key   TEXT NOT NULL,
        value BLOB NOT NULL,
        PRIMARY KEY (agent, key)
    ) STRICT, WITHOUT ROWID;
    -- Summing a memory up at each write would let a guest with many small keys hold up every task.
    CREATE TABLE memory_sizes (
        agent TEXT PRIMARY KEY,
        bytes INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
", "
    -- Where notifications are sent. What is still to be sent is in `events`, beyond number `sent`.
    CREATE TABLE pushes (
        number      INTEGER PRIMARY KEY,
        task        TEXT NOT NULL,
        id          TEXT NOT NULL,
        url         TEXT NOT NULL,
        token       TEXT,
        scheme      TEXT,
        credentials TEXT,
        form        TEXT NOT NULL,
        sent        INTEGER NOT NULL,
        attempts    INTEGER NOT NULL DEFAULT 0,
        since       TEXT,
        error       TEXT,
        dead        INTEGER NOT NULL DEFAULT 0,
        UNIQUE (task, id)
    ) STRICT;
", "
    -- For those who page through the tasks by when their status changed.
    CREATE INDEX tasks_by_status ON tasks (updated, id);
", "
    -- The same for those who may see the tasks of one agent only.
    CREATE INDEX tasks_of_agent ON tasks (agent, updated, id);
", "
    -- When what failed is tried again: a receiver that asked for rest has it from the next hub, too.
    ALTER TABLE pushes ADD COLUMN again TEXT;
", "
    -- From here on a row of `events` may hold several, a line each (`rows.rs`), which no hub before could read.
"];

/// Compatible additions: columns with a default, indexes, and tables that triggers maintain. An
/// older hub that does not know them may go on using the file. An addition never changes once it is
/// released.
pub(in crate::sqlite) const ADDITIONS: [&str; 14] = ["
    -- How many tasks there are, and which conversations: a hub with a million tasks tells so without reading them.
    CREATE TABLE task_counts (
        agent TEXT NOT NULL,
        state TEXT NOT NULL,
        tasks INTEGER NOT NULL,
        PRIMARY KEY (agent, state)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE contexts (
        id     TEXT PRIMARY KEY,
        newest TEXT NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX contexts_by_newest ON contexts (newest);
    CREATE TABLE context_agents (
        context TEXT NOT NULL,
        agent   TEXT NOT NULL,
        tasks   INTEGER NOT NULL,
        PRIMARY KEY (context, agent)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX tasks_of_context_by_status ON tasks (context, updated);

    INSERT INTO task_counts SELECT agent, state, count(*) FROM tasks GROUP BY agent, state;
    INSERT INTO contexts SELECT context, max(id) FROM tasks GROUP BY context;
    INSERT INTO context_agents SELECT context, agent, count(*) FROM tasks GROUP BY context, agent;

    CREATE TRIGGER task_created AFTER INSERT ON tasks BEGIN
        INSERT INTO task_counts VALUES (new.agent, new.state, 1)
            ON CONFLICT (agent, state) DO UPDATE SET tasks = tasks + 1;
        INSERT INTO contexts VALUES (new.context, new.id)
            ON CONFLICT (id) DO UPDATE SET newest = max(newest, excluded.newest);
        INSERT INTO context_agents VALUES (new.context, new.agent, 1)
            ON CONFLICT (context, agent) DO UPDATE SET tasks = tasks + 1;
    END;
    CREATE TRIGGER task_moved AFTER UPDATE OF state ON tasks WHEN old.state <> new.state BEGIN
        UPDATE task_counts SET tasks = tasks - 1 WHERE agent = old.agent AND state = old.state;
        INSERT INTO task_counts VALUES (new.agent, new.state, 1)
            ON CONFLICT (agent, state) DO UPDATE SET tasks = tasks + 1;
    END;
    CREATE TRIGGER task_forgotten AFTER DELETE ON tasks BEGIN
        UPDATE task_counts SET tasks = tasks - 1 WHERE agent = old.agent AND state = old.state;
        UPDATE context_agents SET tasks = tasks - 1 WHERE context = old.context AND agent = old.agent;
        DELETE FROM context_agents
            WHERE context = old.context AND agent = old.agent AND tasks = 0;
        UPDATE contexts
            SET newest = coalesce((SELECT max(id) FROM tasks WHERE context = old.context), '')
            WHERE id = old.context AND newest = old.id;
        DELETE FROM contexts WHERE id = old.context AND newest = '';
    END;
", "
    -- Who asked for the event; nobody did for what an agent, a clock or the hub brought about.
    ALTER TABLE events ADD COLUMN asker TEXT;
", "
    -- 1 while a hub has the file open: then its log belongs to it.
    CREATE TABLE dirty (bit INTEGER NOT NULL) STRICT;
    INSERT INTO dirty VALUES (0);
", "
    -- Where a task is to be done: the latest conversation of a directory is found without reading others. Of older tasks, those
    -- are told that somebody may still go on with.
    ALTER TABLE tasks ADD COLUMN directory TEXT;
    CREATE INDEX tasks_in_directory ON tasks (directory, agent, id) WHERE directory IS NOT NULL;
    UPDATE tasks SET directory = (
        SELECT event ->> '$.created.task.history[0].metadata.workingDirectory' FROM events
            WHERE task = tasks.id AND seq = 1 AND json_valid(event)
            AND json_type(event, '$.created.task.history[0].metadata.workingDirectory') = 'text'
    ) WHERE id IN (SELECT id FROM tasks ORDER BY id DESC LIMIT 1000);
", "
    -- The trees of tasks that agents gave one another. Tasks of hubs before this one have no parents.
    ALTER TABLE tasks ADD COLUMN parent TEXT;
    ALTER TABLE tasks ADD COLUMN workflow TEXT;
    CREATE INDEX tasks_of_parent ON tasks (parent, id) WHERE parent IS NOT NULL;
    CREATE INDEX tasks_of_workflow ON tasks (workflow, id) WHERE workflow IS NOT NULL;
", "
    -- What agents were answered whose runs are replayed, while their tasks are not over.
    CREATE TABLE journals (
        task   TEXT NOT NULL,
        number INTEGER NOT NULL,
        entry  TEXT NOT NULL,
        PRIMARY KEY (task, number)
    ) STRICT;
    CREATE TRIGGER journal_over AFTER UPDATE OF state ON tasks
        WHEN new.state IN ('completed', 'failed', 'canceled', 'rejected')
    BEGIN
        DELETE FROM journals WHERE task = new.id;
    END;
    CREATE TRIGGER journal_forgotten AFTER DELETE ON tasks BEGIN
        DELETE FROM journals WHERE task = old.id;
    END;
", "
    -- Whose tasks they are: nobody's name for those who name no tenant.
    ALTER TABLE tasks ADD COLUMN tenant TEXT NOT NULL DEFAULT '';
    CREATE INDEX tasks_of_tenant ON tasks (tenant, id) WHERE tenant <> '';
    CREATE INDEX tasks_of_tenant_by_status ON tasks (tenant, updated, id) WHERE tenant <> '';
", "
    -- What agents have in mind in their conversations. One that is gone is swept away a little at a time, and nobody finds it.
    CREATE TABLE context_memories (
        number  INTEGER PRIMARY KEY,
        context TEXT NOT NULL,
        owner   TEXT NOT NULL,
        working TEXT NOT NULL,
        items   INTEGER NOT NULL,
        words   INTEGER NOT NULL,
        bytes   INTEGER NOT NULL,
        gone    INTEGER NOT NULL DEFAULT 0
    ) STRICT;
    CREATE UNIQUE INDEX context_memory_of ON context_memories (context, owner) WHERE gone = 0;
    CREATE INDEX context_memories_gone ON context_memories (number) WHERE gone = 1;
    -- Summing them up at each write would let an agent with many conversations hold up every task.
    CREATE TABLE context_memory_sizes (
        owner TEXT PRIMARY KEY,
        bytes INTEGER NOT NULL,
        items INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    -- The number of an item is that of its last writing: the newest has the greatest.
    CREATE TABLE recollections (
        number   INTEGER PRIMARY KEY AUTOINCREMENT,
        memory   INTEGER NOT NULL,
        id       TEXT NOT NULL,
        kind     TEXT NOT NULL,
        data     TEXT NOT NULL,
        metadata TEXT,
        words    INTEGER NOT NULL,
        bytes    INTEGER NOT NULL
    ) STRICT;
    CREATE UNIQUE INDEX recollection_named ON recollections (memory, id);
    CREATE INDEX recollections_by_age ON recollections (memory, number);
    CREATE TABLE recollection_words (
        memory INTEGER NOT NULL,
        word   TEXT NOT NULL,
        items  INTEGER NOT NULL,
        PRIMARY KEY (memory, word)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE recollection_postings (
        memory INTEGER NOT NULL,
        word   TEXT NOT NULL,
        item   INTEGER NOT NULL,
        times  INTEGER NOT NULL,
        length INTEGER NOT NULL,
        PRIMARY KEY (memory, word, item)
    ) STRICT, WITHOUT ROWID;
    -- Both ways round.
    CREATE TABLE associations (
        one   INTEGER NOT NULL,
        other INTEGER NOT NULL,
        uses  INTEGER NOT NULL,
        PRIMARY KEY (one, other)
    ) STRICT, WITHOUT ROWID;
    CREATE TRIGGER context_memory_gone AFTER UPDATE OF gone ON context_memories
        WHEN old.gone = 0 AND new.gone = 1
    BEGIN
        UPDATE context_memory_sizes SET bytes = bytes - old.bytes, items = items - old.items
            WHERE owner = old.owner;
    END;
    CREATE TRIGGER context_forgotten AFTER DELETE ON contexts BEGIN
        UPDATE context_memories SET gone = 1 WHERE context = old.id AND gone = 0;
    END;
", "
    -- Tasks that are over as the text that clients are sent, once somebody has asked for them.
    CREATE TABLE documents (
        task     TEXT PRIMARY KEY,
        document TEXT NOT NULL
    ) STRICT;
    CREATE TRIGGER document_forgotten AFTER DELETE ON tasks BEGIN
        DELETE FROM documents WHERE task = old.id;
    END;
", "
    -- The same in words with which SQLite keeps no copy of each page that it changes, to take back one statement (a statement journal):
    -- neither functions nor `DO UPDATE`, which might abort. `logs.rs` says the rest.
    DROP TRIGGER task_created;
    CREATE TRIGGER task_created AFTER INSERT ON tasks BEGIN
        UPDATE task_counts SET tasks = tasks + 1 WHERE agent = new.agent AND state = new.state;
        INSERT INTO task_counts VALUES (new.agent, new.state, 1) ON CONFLICT DO NOTHING;
        UPDATE contexts SET newest = new.id WHERE id = new.context AND newest < new.id;
        INSERT INTO contexts VALUES (new.context, new.id) ON CONFLICT DO NOTHING;
        UPDATE context_agents SET tasks = tasks + 1
            WHERE context = new.context AND agent = new.agent;
        INSERT INTO context_agents VALUES (new.context, new.agent, 1) ON CONFLICT DO NOTHING;
    END;
    DROP TRIGGER task_moved;
    CREATE TRIGGER task_moved AFTER UPDATE OF state ON tasks WHEN old.state <> new.state BEGIN
        UPDATE task_counts SET tasks = tasks - 1 WHERE agent = old.agent AND state = old.state;
        UPDATE task_counts SET tasks = tasks + 1 WHERE agent = new.agent AND state = new.state;
        INSERT INTO task_counts VALUES (new.agent, new.state, 1) ON CONFLICT DO NOTHING;
    END;
", "
    -- Up to which time each schedule of the configuration has done its work, and whether it is paused, as JSON.
    CREATE TABLE schedules (
        name  TEXT PRIMARY KEY,
        state TEXT NOT NULL
    ) STRICT, WITHOUT ROWID;
", "
    -- What each trigger of the configuration has seen, the events that wait for a run, and whether it is paused, as JSON.
    CREATE TABLE triggers (
        name  TEXT PRIMARY KEY,
        state TEXT NOT NULL
    ) STRICT, WITHOUT ROWID;
", "
    -- Numbers of topics are never used again, since messages of a deleted topic may outlive it for a moment.
    CREATE TABLE topic_tenants (
        id        INTEGER PRIMARY KEY,
        name      TEXT NOT NULL UNIQUE,
        position  INTEGER NOT NULL DEFAULT 0,
        -- Greatest position of a message of a topic that does not exist any more.
        forgotten INTEGER NOT NULL DEFAULT 0
    ) STRICT;
    CREATE TABLE topics (
        id         INTEGER PRIMARY KEY AUTOINCREMENT,
        tenant     INTEGER NOT NULL,
        name       TEXT NOT NULL,
        sequence   INTEGER NOT NULL DEFAULT 0,
        position   INTEGER NOT NULL DEFAULT 0,
        latest_ms  INTEGER NOT NULL DEFAULT 0,
        messages   INTEGER NOT NULL DEFAULT 0,
        bytes      INTEGER NOT NULL DEFAULT 0,
        -- Number and position of the latest message that retention dropped.
        dropped    INTEGER NOT NULL DEFAULT 0,
        dropped_at INTEGER NOT NULL DEFAULT 0,
        UNIQUE (tenant, name)
    ) STRICT;
    CREATE TABLE topic_messages (
        number   INTEGER PRIMARY KEY,
        topic    INTEGER NOT NULL,
        position INTEGER NOT NULL,
        sequence INTEGER NOT NULL,
        at_ms    INTEGER NOT NULL,
        bytes    INTEGER NOT NULL,
        message  TEXT NOT NULL
    ) STRICT;
    CREATE UNIQUE INDEX topic_messages_of ON topic_messages (topic, position);
    CREATE TABLE topic_cursors (
        tenant   INTEGER NOT NULL,
        name     TEXT NOT NULL,
        owner    TEXT NOT NULL,
        pattern  TEXT NOT NULL,
        position INTEGER NOT NULL,
        used_ms  INTEGER NOT NULL,
        PRIMARY KEY (tenant, name, owner)
    ) STRICT, WITHOUT ROWID;
", "
    -- Owners of topics and messages, as for cursors. What older hubs write has none, and is the operator's.
    ALTER TABLE topics ADD COLUMN owner TEXT NOT NULL DEFAULT '';
    ALTER TABLE topic_messages ADD COLUMN owner TEXT NOT NULL DEFAULT '';
    CREATE INDEX topic_messages_of_owner ON topic_messages (topic, owner, position);
    -- Counting the messages of a full topic at each publication would hold up every task.
    CREATE TABLE topic_publishers (
        topic    INTEGER NOT NULL,
        owner    TEXT NOT NULL,
        messages INTEGER NOT NULL,
        bytes    INTEGER NOT NULL,
        PRIMARY KEY (topic, owner)
    ) STRICT, WITHOUT ROWID;
    INSERT INTO topic_publishers
        SELECT topic, owner, count(*), sum(bytes) FROM topic_messages GROUP BY topic, owner;
    CREATE TRIGGER topic_message_stored AFTER INSERT ON topic_messages BEGIN
        UPDATE topic_publishers SET messages = messages + 1, bytes = bytes + new.bytes
            WHERE topic = new.topic AND owner = new.owner;
        INSERT INTO topic_publishers VALUES (new.topic, new.owner, 1, new.bytes)
            ON CONFLICT DO NOTHING;
    END;
    CREATE TRIGGER topic_message_dropped AFTER DELETE ON topic_messages BEGIN
        UPDATE topic_publishers SET messages = messages - 1, bytes = bytes - old.bytes
            WHERE topic = old.topic AND owner = old.owner;
        DELETE FROM topic_publishers
            WHERE topic = old.topic AND owner = old.owner AND messages <= 0;
    END;
"];

/// Table of events for new files, in place of the one that [`MIGRATIONS`] create: the same columns,
/// but in a rowid table, whose rows may be as long as a page. In a table without rowids, a row of
/// more than a quarter of a page takes an overflow page (SQLite's documentation, "Database File
/// Format", section 1.6), so that an event of one kilobyte takes five kilobytes. Older files stay
/// as they are: rewriting a million tasks would delay a start by minutes.
const EVENTS_IN_ROWS: &str = "
    DROP TABLE events;
    CREATE TABLE events (
        task  TEXT NOT NULL,
        seq   INTEGER NOT NULL,
        event TEXT NOT NULL,
        asker TEXT,
        PRIMARY KEY (task, seq)
    ) STRICT;
";

/// Name of the database file in the data directory.
pub(in crate::sqlite) const FILE: &str = "hub.db";

/// Name of the lock file in the data directory, which contains the process id of the hub that holds
/// it.
pub const LOCK_FILE: &str = "hub.lock";

/// Value of `auto_vacuum` for releasing free pages on request.
const INCREMENTAL: i64 = 2;

/// Time to wait while another program locks the file.
const BUSY: Duration = Duration::from_secs(5);

/// Number of tries to take the lock, within a second: a program that was being started when its hub
/// was killed shares the lock until it runs.
const LOCK_TRIES: u32 = 50;

const LOCK_POLL: Duration = Duration::from_millis(20);

/// Length of the write-ahead log, in pages, from which the writer itself copies what the
/// checkpointer has left; the last writer waits for it. It is 49 MB. A task that is answered at
/// once writes some 17 pages when it is alone: with SQLite's default of 1,000, more than one task
/// in a hundred would wait. A killed hub reads its log at the next start, so it must not be much
/// longer.
pub(in crate::sqlite) const CHECKPOINT_PAGES: i64 = 12_000;

/// Capacity of the statement cache: some fifty statements exist, and none should be parsed twice.
const STATEMENTS: usize = 64;

/// True if a hub uses the data directory now.
pub(in crate::sqlite) fn is_in_use(dir: &Path) -> bool {
    let lock = File::open(dir.join(LOCK_FILE));
    lock.is_ok_and(|lock| matches!(lock.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

/// Locks the data directory, creating it if needed, until the returned file is dropped.
pub(in crate::sqlite) fn lock(dir: &Path) -> Result<File, StorageError> {
    let path = dir.join(LOCK_FILE);
    let failed = |why: io::Error| error::no_file(&format!("lock {}", path.display()), &why);
    DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(failed)?;
    let mut file = private().read(true).open(&path).map_err(failed)?;
    match lock_patiently(&file) {
        Ok(()) => {}
        Err(TryLockError::Error(why)) => return Err(failed(why)),
        Err(TryLockError::WouldBlock) => {
            let mut pid = String::new();
            // The process id is only a hint for the reader; the refusal is the same without it.
            let pid = file.read_to_string(&mut pid).ok().and_then(|_| pid.trim().parse().ok());
            return Err(StorageError::Locked { path, pid });
        }
    }
    let sign = |file: &mut File| {
        file.set_len(0)?;
        file.rewind()?;
        writeln!(file, "{}", std::process::id())
    };
    sign(&mut file).map_err(failed)?;
    Ok(file)
}

/// Takes the lock, waiting for the processes of a hub that was just killed.
#[expect(clippy::disallowed_methods, reason = "a hub does nothing else until it has its store")]
fn lock_patiently(file: &File) -> Result<(), TryLockError> {
    for _ in 1..LOCK_TRIES {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => thread::sleep(LOCK_POLL),
            locked => return locked,
        }
    }
    file.try_lock()
}

/// Opens the database for writing, and updates its tables. Returns the losses it found as well.
pub(in crate::sqlite) fn open(file: &Path) -> Result<(Connection, Vec<Loss>), StorageError> {
    let had_log = dirty_bit::has_log(file);
    let mut losses = losses::before_opening(file)?;
    // SQLite gives its other files the same permissions.
    let opened = private().open(file);
    opened.map_err(|why| error::no_file(&format!("open {}", file.display()), &why))?;
    let mut db = connect_to_write(file).map_err(|why| unopened(file, &why))?;
    let known = check(&db, file)?;
    if dirty_bit::lacks_log(&db, had_log) {
        losses.push(Loss::LogMissing);
    }
    prepare(&mut db, known).map_err(|why| unopened(file, &why))?;
    if let Err(why) = dirty_bit::set(&db) {
        tracing::warn!(%why, "cannot mark the store as open, a missing write-ahead log would not be detected");
    }
    Ok((db, losses))
}

/// Error of opening a database: unreachable, or damaged.
pub(in crate::sqlite) fn unopened(file: &Path, why: &rusqlite::Error) -> StorageError {
    let subject = file.display().to_string();
    if error::is_damage(why) {
        StorageError::Corrupt { subject, why: why.to_string() }
    } else {
        StorageError::Unavailable(format!("open {subject}: {why}; {}", error::way_out(why)))
    }
}

/// Makes a write that changes nothing: one page, as durable as any other write.
pub(in crate::sqlite) fn touch(db: &Connection) -> Result<(), SqliteFailure> {
    Ok(db.pragma_update(None, "user_version", integer(MIGRATIONS.len() as u64))?)
}

/// Opens a database for writing, without changing its tables.
pub(in crate::sqlite) fn connect_to_write(file: &Path) -> rusqlite::Result<Connection> {
    connect(file, OpenFlags::SQLITE_OPEN_READ_WRITE)
}

/// Opens the database for checkpoints, which are as durable as writes.
pub(in crate::sqlite) fn open_for_checkpoints(file: &Path) -> Result<Connection, StorageError> {
    let db = connect_to_write(file).map_err(|why| unopened(file, &why))?;
    db.pragma_update(None, "synchronous", "FULL").map_err(|why| unopened(file, &why))?;
    Ok(db)
}

/// Opens the database for reading, while the writer has it open.
pub(in crate::sqlite) fn open_to_read(file: &Path) -> rusqlite::Result<Connection> {
    connect(file, OpenFlags::SQLITE_OPEN_READ_ONLY)
}

/// Opens a database that nobody has open, without creating files beside it.
pub(in crate::sqlite) fn open_at_rest(file: &Path) -> rusqlite::Result<Connection> {
    let path = file.to_string_lossy().replace('%', "%25").replace('?', "%3f").replace('#', "%23");
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
    connect(Path::new(&format!("file:{path}?immutable=1")), flags)
}

fn connect(file: &Path, flags: OpenFlags) -> rusqlite::Result<Connection> {
    // Each connection is used by one thread at a time, so SQLite's own locks are not needed.
    let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = Connection::open_with_flags(file, flags)?;
    db.busy_timeout(BUSY)?;
    // Without this, SQLite plans a statement again for every value that might change its plan.
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    db.set_prepared_statement_cache_capacity(STATEMENTS);
    Ok(db)
}

/// Number of migrations that the file has had, if it is a hub's and not newer than this hub. Writes
/// nothing.
pub(in crate::sqlite) fn check(db: &Connection, file: &Path) -> Result<usize, StorageError> {
    let ask = |sql| db.query_row(sql, [], |row| row.get::<_, i64>(0));
    let ask = |sql| ask(sql).map_err(|why| unopened(file, &why));
    let corrupt = |why: String| StorageError::Corrupt { subject: file.display().to_string(), why };
    let is_empty = ask("SELECT count(*) FROM sqlite_schema")? == 0;
    let owner = ask("PRAGMA application_id")?;
    let format = ask("PRAGMA user_version")?;
    if is_empty {
        return Ok(0);
    }
    let (Ok(applied), true) = (usize::try_from(format), owner == i64::from(APPLICATION_ID)) else {
        return Err(corrupt("it is not the database of a hub".into()));
    };
    if applied > MIGRATIONS.len() {
        let [found, known] = [applied, MIGRATIONS.len()].map(|n| n.try_into().unwrap_or(u32::MAX));
        return Err(StorageError::Newer { path: file.to_owned(), found, known });
    }
    Ok(applied)
}

fn prepare(db: &mut Connection, known: usize) -> rusqlite::Result<()> {
    give_back_pages(db)?;
    // In WAL mode with FULL, a commit is one append and one fsync, and readers never wait.
    db.pragma_update(None, "journal_mode", "WAL")?;
    db.pragma_update(None, "synchronous", "FULL")?;
    // A statement journal holds some pages; in a temporary file it would cost more than the log
    // itself.
    db.pragma_update(None, "temp_store", "MEMORY")?;
    for (version, migration) in (1..).zip(MIGRATIONS).skip(known) {
        let change = db.transaction()?;
        change.execute_batch(migration)?;
        change.pragma_update(None, "application_id", APPLICATION_ID)?;
        change.pragma_update(None, "user_version", version)?;
        change.commit()?;
    }
    add(db)?;
    if known == 0 {
        let change = db.transaction()?;
        change.execute_batch(EVENTS_IN_ROWS)?;
        change.commit()?;
    }
    Ok(())
}

/// Applies missing additions. A file with additions of a later hub is accepted.
fn add(db: &mut Connection) -> rusqlite::Result<()> {
    db.execute_batch("CREATE TABLE IF NOT EXISTS additions (number INTEGER PRIMARY KEY) STRICT")?;
    let known: i64 = db.query_row("SELECT count(*) FROM additions", [], |row| row.get(0))?;
    let known = usize::try_from(known).unwrap_or(usize::MAX);
    for (number, addition) in (1_i64..).zip(ADDITIONS).skip(known) {
        let change = db.transaction()?;
        change.execute_batch(addition)?;
        change.execute("INSERT INTO additions (number) VALUES (?1)", [number])?;
        change.commit()?;
    }
    Ok(())
}

/// Makes the file track its free pages, so that they can be released a few at a time.
fn give_back_pages(db: &Connection) -> rusqlite::Result<()> {
    let mode: i64 = db.query_row("PRAGMA auto_vacuum", [], |row| row.get(0))?;
    if mode == INCREMENTAL {
        return Ok(());
    }
    db.pragma_update(None, "auto_vacuum", INCREMENTAL)?;
    // An empty file is complete now; a file from before this setting is rewritten once.
    if let Err(why) = db.execute_batch("VACUUM") {
        tracing::warn!(%why, "cannot enable incremental vacuum, the database file will not shrink; free some disk space");
    }
    Ok(())
}

/// Converts a number for SQLite. None comes near the limit.
pub(in crate::sqlite) fn integer(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}
