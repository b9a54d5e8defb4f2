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
