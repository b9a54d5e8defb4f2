//! Usage of a task's runs: each reports only its own, and they add up.

use super::*;
use a2a_hub_core::task::prices::{Price, Prices};
use a2a_hub_protocol::operation::TreeQuery;

#[tokio::test(start_paused = true)]
async fn usage_of_runs_adds_up() {
    let (stand, _agents) = usual();
    for (tokens, ended) in [([50, 40], "failed!"), ([50, 9], "done")] {
        let mut config = config();
        config.limits.tree.tokens = Some(60);
        let narrow = Fake::new(follow_script).calling_others().agent_among("a", config, &NAMES);
        let run = |tokens: u64| json!({"tokens": tokens, "work": 5_000, "end": "done"});
        let script = json!({"calls": [{"agent": "b", "do": run(tokens[0])}]});
        let root = stand.submit(&narrow, &script.to_string()).await;
        let child = stand.only_child(&root).await.id;
        stand.until(&child, TaskState::Working).await;
        stand.answer(&child, &run(tokens[1]).to_string()).await.unwrap();
        let done = stand.until(&root, TaskState::Completed).await;
        assert_eq!(said(&done), ended, "{tokens:?}");
        let query = TreeQuery { id: root, depth: 1, limit: 2 };
        let told = stand.tasks.tree(&query).await.unwrap().tasks;
        let told: Vec<_> = told.iter().map(|task| task.tokens).collect();
        assert_eq!(told, [0, tokens.iter().sum::<u64>()]);
        let child = stand.tasks.get(&child).await.unwrap().task;
        assert_eq!(fact(&child, "usage")["input_tokens"], json!(tokens[1]), "of its run alone");
    }
}

fn prices() -> Prices {
    let price = Price { input: 1_000.0, output: 1_000.0, cached: None };
    Prices([("m".to_owned(), price)].into())
}

#[tokio::test(start_paused = true)]
async fn priced_tokens_exhaust_cost_budget() {
    for (list, ended) in [(Prices::default(), "done"), (prices(), "failed!")] {
        let (stand, _agents) = usual();
        stand.tasks.set_prices(list);
        let mut config = config();
        config.limits.tree.cost_usd = Some(0.05);
        let narrow = Fake::new(follow_script).calling_others().agent_among("a", config, &NAMES);
        let run = json!({"tokens": 100, "model": "m", "work": 5_000, "end": "done"});
        let script = json!({"calls": [{"agent": "b", "do": run}]});
        let root = stand.submit(&narrow, &script.to_string()).await;
        let done = stand.until(&root, TaskState::Completed).await;
        assert_eq!(said(&done), ended);
        let child = stand.only_child(&root).await.id;
        let child = stand.tasks.get(&child).await.unwrap().task;
        let dollars = (ended == "failed!").then_some(0.1);
        assert_eq!(fact(&child, "cost_usd").as_f64(), dollars);
    }
}

#[tokio::test(start_paused = true)]
async fn task_says_that_cost_budget_counts_nothing() {
    for (list, limit, is_told) in [
        (Prices::default(), Some(1.0), true),
        (Prices::default(), None, false),
        (prices(), Some(1.0), false),
    ] {
        let (stand, _agents) = usual();
        stand.tasks.set_prices(list);
        let mut config = config();
        config.limits.tree.cost_usd = limit;
        let agent = Fake::new(follow_script).reporting_tokens().agent(config);
        let task = stand.submit(&agent, &json!({"work": 5_000, "end": "done"}).to_string()).await;
        let task = stand.until(&task, TaskState::Completed).await;
        let why = task.metadata.as_ref().and_then(|facts| facts.get("costUncounted")?.as_str());
        assert_eq!(why.is_some_and(|why| why.contains("[prices.MODEL]")), is_told, "{limit:?}");
    }
}
