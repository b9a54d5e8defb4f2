//! Files of older hubs.

use super::*;

/// File of a hub before any additions to its tables.
fn from_before(file: &Path) -> Connection {
    let old = Connection::open(file).unwrap();
    for migration in &db::migrations::MIGRATIONS[..5] {
        old.execute_batch(migration).unwrap();
    }
    old.pragma_update(None, "application_id", 0x6132_6168).unwrap();
    old.pragma_update(None, "user_version", 5).unwrap();
    old
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn older_file_passes_contract_suite() {
    keeps_the_contract_in(|dir| {
        fs::create_dir(dir).unwrap();
        drop(from_before(&dir.join(db::schema::FILE)));
    })
    .await;
}

#[tokio::test]
async fn older_store_is_migrated() {
    let dir = tempdir().unwrap();
    let file = dir.path().join("hub.db");
    let old = from_before(&file);
    let head = "INSERT INTO tasks (id, context, agent, state, seq, created, updated)
        VALUES (?1, ?2, 'echo', ?3, 1, '2026', '2026')";
    for (id, context, state) in
        [("1", "a", "working"), ("2", "a", "completed"), ("3", "b", "failed")]
    {
        old.execute(head, [id, context, state]).unwrap();
    }
    let here = json!({ "created": { "task": { "history": [{ "metadata": { "workingDirectory": "/src" } }] } } });
    let odd = json!({ "created": { "task": { "history": [{ "metadata": { "workingDirectory": 7 } }] } } });
    for (task, event) in [("1", here.to_string()), ("2", odd.to_string()), ("3", "{".to_owned())] {
        let sql = "INSERT INTO events (task, seq, event) VALUES (?1, 1, ?2)";
        old.execute(sql, [task, &event]).unwrap();
    }
    drop(old);
    let storage = open(&dir);
    let here = HeadFilter { directory: Some("/src".to_owned()), ..HeadFilter::default() };
    let found = storage.heads(here).await.unwrap();
    assert_eq!(found.iter().map(|head| head.task.as_str()).collect::<Vec<_>>(), ["1"]);
    assert_counted(&db::schema::open_to_read(&file).unwrap());
    assert_eq!(storage.counts().await, Ok(TaskCounts { live: 1, total: 3 }));
    let contexts = storage.contexts(ContextFilter::default()).await.unwrap();
    assert_eq!(contexts.iter().map(|info| info.id.as_str()).collect::<Vec<_>>(), ["b", "a"]);

    // Older tasks can continue.
    let goes_on = storage.append(&TaskId::new("1"), 1, vec![chunk("x")]).await;
    assert_eq!(goes_on, Ok(2));
    assert_eq!(storage.askers(&TaskId::new("1")).await, Ok(Vec::new()));

    // The older hub could not read the file, and sees that by its version.
    let then = Connection::open(&file).unwrap();
    let version = then.query_row("PRAGMA user_version", [], |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!(version, 6);
    // Tasks are counted, whatever statement inserts them.
    then.execute(head, ["4", "c", "working"]).unwrap();
    then.execute("INSERT INTO events (task, seq, event) VALUES ('4', 1, '{}')", []).unwrap();
    assert_counted(&then);
    assert_eq!(storage.counts().await, Ok(TaskCounts { live: 2, total: 4 }));
    assert_eq!(storage.askers(&TaskId::new("4")).await, Ok(Vec::new()));
}

#[tokio::test]
async fn older_memories_get_their_holders() {
    let dir = tempdir().unwrap();
    let file = dir.path().join("hub.db");
    let old = from_before(&file);
    // A file of the hub right before the holders.
    for addition in &db::migrations::ADDITIONS[..16] {
        old.execute_batch(addition).unwrap();
    }
    old.execute_batch(
        "CREATE TABLE additions (number INTEGER PRIMARY KEY) STRICT;
        WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 16)
            INSERT INTO additions SELECT n FROM numbers;
        INSERT INTO memories VALUES ('a', 'k', x'01020304'), ('a', char(31) || 'acme' || char(31) || 'k', x'01'),
            ('a', char(31) || char(31) || 'odd', x'01'), ('a', char(31) || 'odd', x'01');
        INSERT INTO tasks (id, context, agent, state, seq, created, updated)
            VALUES ('1', 'acme' || char(31) || 'c', 'a', 'completed', 1, '2026', '2026');
        INSERT INTO context_memories (context, owner, working, items, words, bytes)
            VALUES ('acme' || char(31) || 'c', 'a', '{}', 2, 2, 300);
        INSERT INTO context_memories (context, owner, working, items, words, bytes, gone)
            VALUES ('d', 'a', '{}', 2, 2, 300, 1);",
    )
    .unwrap();
    drop(old);
    let storage = open(&dir);
    let holders = || {
        let db = db::schema::open_to_read(&file).unwrap();
        let mut found =
            db.prepare("SELECT holder, bytes, items FROM memory_holders ORDER BY 1").unwrap();
        let rows = found.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)));
        rows.unwrap().collect::<Result<Vec<(String, i64, i64)>, _>>().unwrap()
    };
    let acme = || ("acme\u{1f}".to_owned(), 308, 2);
    assert_eq!(holders(), [(String::new(), 5 + 6 + 5, 0), acme()]);

    // An older hub replaces and deletes values without holders.
    let then = Connection::open(&file).unwrap();
    let replace = "INSERT OR REPLACE INTO memories (agent, key, value) VALUES ('a', 'k', ?1)";
    for value in ["longer", "", "four"] {
        then.execute(replace, [value.as_bytes()]).unwrap();
        let bytes = 1 + i64::try_from(value.len()).unwrap() + 6 + 5;
        assert_eq!(holders(), [(String::new(), bytes, 0), acme()]);
    }
    then.execute("DELETE FROM memories WHERE agent = 'a' AND key LIKE '%odd'", []).unwrap();
    then.execute("UPDATE context_memories SET bytes = 100, items = 1 WHERE gone = 0", []).unwrap();
    assert_eq!(holders(), [(String::new(), 5, 0), ("acme\u{1f}".to_owned(), 108, 1)]);
    storage.forget(&owner("a"), "k").await.unwrap();
    storage.forget_context_memories(&owner("a")).await.unwrap();
    assert_eq!(holders(), [("acme\u{1f}".to_owned(), 8, 0)]);
}
