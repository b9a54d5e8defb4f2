//! Cost of context memory and of its transfer: in the hub's store, with many remembered items.

use a2a_hub_core::{
    context_memory::{
        encoding::encoded_bytes,
        inherit::{Inherit, Scope},
        model::{Change, Decision, Item, MemoryCapacity, MemoryKey, Thought},
        transfer::{Giver, transfer},
    },
    plugin::installation::InstallationId,
};
use a2a_hub_protocol::id::{AgentId, ContextId, TaskId};
use a2a_hub_store::{ContextMemory as _, Search, sqlite::SqliteStorage};
use anyhow::Result;
use serde_json::json;
use std::time::{Duration, Instant};

/// Numbers of remembered items.
const SIZES: [usize; 3] = [10, 1_000, 100_000];

/// Number of items stored together at the beginning.
const AT_ONCE: usize = 500;

/// Number of repetitions of each operation.
const TIMES: usize = 200;

/// Size of the vocabulary of items; the first words are the most frequent.
const WORDS: usize = 5_000;

const ROOM: MemoryCapacity = MemoryCapacity { max_bytes: 1 << 40, max_items: 1 << 40 };

/// Target times for a typical working memory.
const GOALS: [(&str, Duration); 2] =
    [("serialisation", Duration::from_millis(1)), ("transfer", Duration::from_millis(2))];

/// Prints the time of each operation in microseconds.
pub(crate) async fn measure() -> Result<()> {
    println!("\nwhat an agent has in mind: medians and p99 of {TIMES}, in us");
    println!(
        "{:>8} {:>15} {:>15} {:>15} {:>15}",
        "items", "serialisation", "remember", "recall", "transfer"
    );
    for size in SIZES {
        let dir = tempfile::tempdir()?;
        let storage = SqliteStorage::open(dir.path())?;
        let here = place("planner", "here")?;
        let mut chance = 1_u64;
        for from in (0..size).step_by(AT_ONCE) {
            let some =
                (from..size.min(from + AT_ONCE)).map(|n| Change::Remember(item(n, &mut chance)));
            storage.change(&here, some.collect(), ROOM).await?;
        }
        storage.change(&here, typical(), ROOM).await?;
        let mut spent = [const { Vec::new() }; 4];
        for round in 0..TIMES {
            let working = storage.working(&here).await?;
            let begun = now();
            let bytes = encoded_bytes(&working);
            let written = serde_json::to_string(&working)?;
            spent[0].push(begun.elapsed());
            anyhow::ensure!(written.len() == bytes, "what is written is what is counted");

            let again = Change::Remember(item(round % size, &mut chance));
            let begun = now();
            storage.change(&here, vec![again], ROOM).await?;
            spent[1].push(begun.elapsed());

            let query = text(&mut chance, 5);
            let begun = now();
            search(&storage, &here, &query).await?;
            spent[2].push(begun.elapsed());

            let there = place("coder", &round.to_string())?;
            let begun = now();
            hand_over(&storage, &here, &there, &query).await?;
            spent[3].push(begun.elapsed());
        }
        let cells = spent.each_mut().map(|spent| {
            spent.sort();
            let at = |share: usize| spent[(spent.len() - 1) * share / 100].as_micros();
            format!("{} / {}", at(50), at(99))
        });
        let [serialisation, remember, recall, transfer] = cells;
        println!("{size:>8} {serialisation:>15} {remember:>15} {recall:>15} {transfer:>15}");
        for ((what, goal), spent) in GOALS.iter().zip([&spent[0], &spent[3]]) {
            let median = spent[spent.len() / 2];
            let word = if median <= *goal { "within" } else { "above" };
            println!("         {what}: {word} the goal of {} us", goal.as_micros());
        }
    }
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "a benchmark looks at the clock")]
fn now() -> Instant {
    Instant::now()
}

fn place(agent: &str, context: &str) -> Result<MemoryKey> {
    let owner = InstallationId::from(&AgentId::parse(agent)?);
    Ok(MemoryKey { context: ContextId::new(context), owner })
}

/// Typical working memory: a goal, twenty thoughts, ten decisions and ten variables.
fn typical() -> Vec<Change> {
    let mut changes = vec![Change::Goal(Some("Ship the parser by the end of the week".to_owned()))];
    for n in 0..20 {
        let content =
            format!("thought {n}: the grammar has {n} conflicts, of which most are harmless");
        changes.push(Change::Thought(Thought { content, at: None, private: n % 10 == 0 }));
    }
    for n in 0..10 {
        let (key, value) = (format!("decision-{n}"), json!({ "take": n, "of": [1, 2, 3] }));
        let reason = Some("it is the simplest that works".to_owned());
        changes.push(Change::Decide(Decision { key, value, reason, ..Decision::default() }));
        let (name, value) =
            (format!("variable-{n}"), Some(json!({ "path": "/src/parser", "line": n })));
        changes.push(Change::Variable { name, value, private: false });
    }
    changes
}

fn item(n: usize, chance: &mut u64) -> Item {
    let (id, kind) = (format!("fact-{n}"), "semantic".to_owned());
    Item { id, kind, data: json!({ "info": text(chance, 20) }), metadata: None }
}

/// Text of `words` words, distributed as unevenly as in a natural language.
fn text(chance: &mut u64, words: usize) -> String {
    let mut next = || {
        // Numerical Recipes' linear congruential generator, for the same figures in each run.
        *chance =
            chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*chance >> 33) as usize
    };
    let words = (0..words).map(|_| format!("word{}", next() % (1 + next() % WORDS)));
    words.collect::<Vec<_>>().join(" ")
}

async fn search(storage: &SqliteStorage, place: &MemoryKey, query: &str) -> Result<Vec<Item>> {
    let search = Search { query: query.to_owned(), limit: 20, is_use: false };
    Ok(storage.search(place, search).await?)
}

/// Transfer as a hub does it for a delegation: reads, decides, writes durably.
async fn hand_over(
    storage: &SqliteStorage,
    here: &MemoryKey,
    there: &MemoryKey,
    query: &str,
) -> Result<()> {
    let (working, items) = (storage.working(here).await?, search(storage, here, query).await?);
    let from = Giver { agent: AgentId::parse("planner")?, task: TaskId::new("t") };
    let asked =
        Inherit { working_memory: true, memory: true, scope: Scope::Full, ..Inherit::default() };
    let made = transfer(from, working, items, &asked, query);
    storage.change(there, made.changes(), ROOM).await?;
    Ok(())
}
