//! Tables of the database: migrations from each format to the next, and compatible additions.

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
pub(in crate::sqlite) const ADDITIONS: [&str; 25] = ["
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
", "
    -- Questions that tasks posed, with their ends. Logs of hubs before this one have no rows.
    CREATE TABLE questions (
        number    INTEGER PRIMARY KEY AUTOINCREMENT,
        task      TEXT NOT NULL,
        id        TEXT NOT NULL,
        kind      TEXT NOT NULL,
        tenant    TEXT NOT NULL,
        opened    INTEGER NOT NULL,
        opened_at  TEXT NOT NULL,
        answered  INTEGER,
        asker     TEXT,
        closed_at TEXT,
        outcome   TEXT,
        UNIQUE (task, id)
    ) STRICT;
    CREATE INDEX questions_by_id ON questions (id);
    CREATE INDEX questions_of_tenant ON questions (tenant, number);
    CREATE TRIGGER questions_forgotten AFTER DELETE ON tasks BEGIN
        DELETE FROM questions WHERE task = old.id;
    END;
", "
    -- Standing permissions, and the requests that they have answered.
    CREATE TABLE permission_rules (
        id   TEXT PRIMARY KEY,
        rule TEXT NOT NULL
    ) STRICT, WITHOUT ROWID;
    ALTER TABLE questions ADD COLUMN rule TEXT;
    CREATE INDEX questions_of_rule ON questions (tenant, rule) WHERE rule IS NOT NULL;
", "
    -- People whom the operator let in, with the digests of their keys.
    CREATE TABLE people (
        name   TEXT PRIMARY KEY,
        person TEXT NOT NULL
    ) STRICT, WITHOUT ROWID;
", "
    -- What happened and needs no answer. A task has one notice of a kind, and tasks that ended before have none.
    CREATE TABLE notices (
        number  INTEGER PRIMARY KEY AUTOINCREMENT,
        task    TEXT NOT NULL,
        tenant  TEXT NOT NULL,
        kind    TEXT NOT NULL,
        at      TEXT NOT NULL,
        title   TEXT NOT NULL,
        text    TEXT NOT NULL,
        read_at TEXT,
        read_by TEXT,
        UNIQUE (task, kind)
    ) STRICT;
    CREATE INDEX notices_of_tenant ON notices (tenant, number);
    CREATE TRIGGER notices_forgotten AFTER DELETE ON tasks BEGIN
        DELETE FROM notices WHERE task = old.id;
    END;
", "
    -- Holders of memories: the tenant and the identity of the caller, with a unit separator between them. What older hubs write
    -- has none, and is the operator's; what they wrote for a tenant is the tenant's.
    ALTER TABLE memories ADD COLUMN holder TEXT NOT NULL DEFAULT '';
    ALTER TABLE context_memories ADD COLUMN holder TEXT NOT NULL DEFAULT '';
    UPDATE memories SET holder = substr(key, 2, instr(substr(key, 2), char(31)))
        WHERE substr(key, 1, 1) = char(31) AND instr(substr(key, 2), char(31)) > 1;
    UPDATE context_memories SET holder = substr(context, 1, instr(context, char(31)))
        WHERE gone = 0 AND instr(context, char(31)) > 1;
    -- Summing them up at each write would let an agent with many conversations hold up every task.
    CREATE TABLE memory_holders (
        owner  TEXT NOT NULL,
        holder TEXT NOT NULL,
        bytes  INTEGER NOT NULL,
        items  INTEGER NOT NULL,
        PRIMARY KEY (owner, holder)
    ) STRICT, WITHOUT ROWID;
    INSERT INTO memory_holders SELECT owner, holder, sum(bytes), sum(items) FROM (
        SELECT agent AS owner, holder, octet_length(key) + octet_length(value) AS bytes, 0 AS items
            FROM memories
        UNION ALL SELECT owner, holder, bytes, items FROM context_memories WHERE gone = 0
    ) GROUP BY owner, holder;
    -- `INSERT OR REPLACE` replaces a value without deleting it as far as triggers see, and its `OR REPLACE` holds for each
    -- statement in them.
    CREATE TRIGGER memory_replaced BEFORE INSERT ON memories BEGIN
        UPDATE memory_holders SET bytes = bytes - (
            SELECT octet_length(key) + octet_length(value) FROM memories
                WHERE agent = new.agent AND key = new.key
        ) WHERE owner = new.agent AND holder = (
            SELECT holder FROM memories WHERE agent = new.agent AND key = new.key
        );
    END;
    CREATE TRIGGER memory_stored AFTER INSERT ON memories BEGIN
        INSERT INTO memory_holders SELECT new.agent, new.holder, 0, 0 WHERE NOT EXISTS (
            SELECT 1 FROM memory_holders WHERE owner = new.agent AND holder = new.holder
        );
        UPDATE memory_holders
            SET bytes = bytes + octet_length(new.key) + octet_length(new.value)
            WHERE owner = new.agent AND holder = new.holder;
        DELETE FROM memory_holders WHERE owner = new.agent AND bytes <= 0 AND items <= 0;
    END;
    CREATE TRIGGER memory_deleted AFTER DELETE ON memories BEGIN
        UPDATE memory_holders
            SET bytes = bytes - octet_length(old.key) - octet_length(old.value)
            WHERE owner = old.agent AND holder = old.holder;
        DELETE FROM memory_holders WHERE owner = old.agent AND bytes <= 0 AND items <= 0;
    END;
    CREATE TRIGGER context_memory_held AFTER INSERT ON context_memories WHEN new.gone = 0 BEGIN
        INSERT INTO memory_holders SELECT new.owner, new.holder, 0, 0 WHERE NOT EXISTS (
            SELECT 1 FROM memory_holders WHERE owner = new.owner AND holder = new.holder
        );
        UPDATE memory_holders SET bytes = bytes + new.bytes, items = items + new.items
            WHERE owner = new.owner AND holder = new.holder;
    END;
    CREATE TRIGGER context_memory_resized AFTER UPDATE OF bytes, items, holder, gone
        ON context_memories WHEN old.gone = 0
    BEGIN
        UPDATE memory_holders SET bytes = bytes - old.bytes, items = items - old.items
            WHERE owner = old.owner AND holder = old.holder;
        INSERT INTO memory_holders SELECT new.owner, new.holder, 0, 0 WHERE new.gone = 0
            AND NOT EXISTS (
                SELECT 1 FROM memory_holders WHERE owner = new.owner AND holder = new.holder
            );
        UPDATE memory_holders SET bytes = bytes + new.bytes, items = items + new.items
            WHERE owner = new.owner AND holder = new.holder AND new.gone = 0;
        DELETE FROM memory_holders WHERE owner = old.owner AND bytes <= 0 AND items <= 0;
    END;
", "
    -- Size of a task's log. What older hubs write is not counted: reading all logs would delay a start by minutes.
    ALTER TABLE tasks ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;
", "
    -- Time until which a person set a question aside (RFC 3339).
    ALTER TABLE questions ADD COLUMN postponed_until TEXT;
", "
    -- Usage of deleted tasks. That of stored ones is derived from their logs.
    CREATE TABLE usage_totals (
        day             TEXT NOT NULL,
        agent           TEXT NOT NULL,
        model           TEXT NOT NULL,
        tenant          TEXT NOT NULL,
        person          TEXT NOT NULL,
        flow            TEXT NOT NULL,
        tasks           INTEGER NOT NULL,
        without_tokens  INTEGER NOT NULL,
        without_cost    INTEGER NOT NULL,
        input_tokens    INTEGER NOT NULL,
        output_tokens   INTEGER NOT NULL,
        cached_tokens   INTEGER NOT NULL,
        cost_micros     INTEGER NOT NULL,
        priced_micros   INTEGER NOT NULL,
        work_ms         INTEGER NOT NULL,
        questions       INTEGER NOT NULL,
        ruled           INTEGER NOT NULL,
        PRIMARY KEY (day, agent, model, tenant, person, flow)
    ) STRICT, WITHOUT ROWID;
", "
    -- Items that each notifier of the configuration has reported, and its message to be delivered, as JSON.
    CREATE TABLE notifiers (
        name  TEXT PRIMARY KEY,
        state TEXT NOT NULL
    ) STRICT, WITHOUT ROWID;
", "
    -- Appends to all logs in one order: the task, its last event then, and the states it came to. Those of older hubs are missing.
    CREATE TABLE changes (
        number INTEGER PRIMARY KEY,
        task   TEXT NOT NULL,
        seq    INTEGER NOT NULL,
        at_ms  INTEGER NOT NULL,
        moves  TEXT
    ) STRICT;
    -- Openings of the store, each with the number of the change before it.
    CREATE TABLE change_histories (
        number INTEGER PRIMARY KEY,
        id     TEXT NOT NULL,
        after  INTEGER NOT NULL
    ) STRICT;
", "
    -- Reviews of the changes of tasks by their owners, as JSON.
    CREATE TABLE reviews (
        task   TEXT NOT NULL,
        owner  TEXT NOT NULL,
        id     TEXT NOT NULL,
        review TEXT NOT NULL,
        PRIMARY KEY (task, owner, id)
    ) STRICT, WITHOUT ROWID;
    CREATE TRIGGER reviews_forgotten AFTER DELETE ON tasks BEGIN
        DELETE FROM reviews WHERE task = old.id;
    END;
"];

/// Table of events for new files, in place of the one that [`MIGRATIONS`] create: the same columns,
/// but in a rowid table, whose rows may be as long as a page. In a table without rowids, a row of
/// more than a quarter of a page takes an overflow page (SQLite's documentation, "Database File
/// Format", section 1.6), so that an event of one kilobyte takes five kilobytes. Older files stay
/// as they are: rewriting a million tasks would delay a start by minutes.
pub(in crate::sqlite) const EVENTS_IN_ROWS: &str = "
    DROP TABLE events;
    CREATE TABLE events (
        task  TEXT NOT NULL,
        seq   INTEGER NOT NULL,
        event TEXT NOT NULL,
        asker TEXT,
        PRIMARY KEY (task, seq)
    ) STRICT;
";
