//! Usage of a task's runs: each reports only its own, and they add up.

use super::*;
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
