//! Cost of searching for agents among many: the index of their cards, and each query, in this
//! process.

use a2a_hub_core::discovery::search::{Description, Index};
use a2a_hub_protocol::operation::AgentQuery;
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Numbers of cards.
const SIZES: [usize; 3] = [10, 100, 1_000];

/// Number of repetitions of each query.
const TIMES: usize = 200;

/// Queries with common, rare, misspelt and unknown words, and one with all criteria.
fn questions() -> [(&'static str, AgentQuery); 4] {
    let text = |text: &str| Some(text.to_owned());
    let words = AgentQuery {
        text: text("review my changes to the billing database before release"),
        ..AgentQuery::default()
    };
    let slips = AgentQuery {
        text: text("reveiw teh migratoin of postrges clusters somewhere"),
        ..AgentQuery::default()
    };
    let criteria = AgentQuery {
        skill: text("*"),
        tags: vec!["finance".to_owned()],
        version: text(">=1.2"),
        ..words.clone()
    };
    let name = AgentQuery { name: text("agnet-77"), ..AgentQuery::default() };
    [("words", words), ("slips", slips), ("all criteria", criteria), ("nearest name", name)]
}

/// Card of realistic length; the same number gives the same words.
fn card(n: usize) -> Value {
    const WORDS: [&str; 40] = [
        "review",
        "billing",
        "database",
        "translate",
        "contract",
        "schedule",
        "cluster",
        "postgres",
        "migration",
        "forecast",
        "invoice",
        "security",
        "python",
        "summary",
        "meeting",
        "customer",
        "image",
        "speech",
        "travel",
        "recipe",
        "training",
        "terraform",
        "incident",
        "metrics",
        "tutorial",
        "algebra",
        "candidate",
        "ticket",
        "release",
        "compiler",
        "network",
        "archive",
        "budget",
        "courier",
        "festival",
        "genome",
        "harbour",
        "insurance",
        "journal",
        "kernel",
    ];
    let word = |at: usize| WORDS[(n * 7 + at * (n % 11 + 3)) % WORDS.len()];
    let text =
        |count: usize, from: usize| (from..from + count).map(word).collect::<Vec<_>>().join(" ");
    let skill = |at: usize| {
        json!({
            "id": format!("{}-{}", word(at), word(at + 1)), "name": text(2, at), "description": text(14, at), "tags": [word(at), word(at + 2), if n.is_multiple_of(3) { "finance" } else { "other" }],
            "examples": [text(9, at + 1), text(7, at + 5)],
        })
    };
    json!({ "name": format!("Agent {n}"), "description": text(16, 0), "version": format!("1.{}.0", n % 5), "skills": [skill(3), skill(9)] })
}

/// Prints the cost of each query.
#[expect(clippy::disallowed_methods, reason = "a benchmark measures time")]
pub(crate) fn measure() -> Result<()> {
    println!("\nfinding agents, in microseconds: the index once, and a question (median)");
    for size in SIZES {
        let described = (0..size).map(|n| {
            let card = serde_json::from_value(card(n)).context("no card")?;
            Ok(Description::new(&format!("agent-{n}"), Vec::new(), &card))
        });
        let described = described.collect::<Result<Vec<_>>>()?;
        let begun = Instant::now();
        let index = Index::new(described);
        let made = begun.elapsed();
        let mut told = Vec::new();
        for (what, query) in questions() {
            let mut taken = Vec::with_capacity(TIMES);
            for _ in 0..TIMES {
                let begun = Instant::now();
                let found = index.find(&query, None)?;
                taken.push(begun.elapsed());
                ensure!(size < 100 || !found.hits.is_empty(), "{what}: nobody is found");
            }
            taken.sort();
            let median: Duration = taken[TIMES / 2];
            told.push(format!("{what} {}", median.as_micros()));
        }
        println!("{size:>6} cards: index {}, {}", made.as_micros(), told.join(", "));
    }
    Ok(())
}
