//! The budget of a call applies for the life of the child, also after a restart.

use super::*;
use a2a_hub_core::task::tree_budget::TreeLimits;
use a2a_hub_protocol::budget::Budget;

/// Agents that, on the message `narrow`, call another one with this budget, and with the other
/// budget in the message. The called agent asks a question at once.
fn narrowing(budget: Budget, of_message: Option<Value>) -> Fake {
    let fake = Fake::new(move |stage: Stage| {
        let of_message = of_message.clone();
        async move {
            if stage.text() != "narrow" {
                return follow_script(stage).await;
            }
            let mut message = Message::text(Role::User, json!({"ask": "Which?"}).to_string());
            message.metadata =
                of_message.map(|said| Metadata::from_iter([("budget".to_owned(), said)]));
            let call = ChildRequest { budget, ..ChildRequest::new("b", message) };
            match stage.outcome_of(call).await {
                Ok(ended) => completed(&told(&ended)),
                Err(why) => Ended::Failed(why),
            }
        }
    });
    fake.holding(Resumability::Session)
}

/// Kills the hub once the child of such an agent asks, and starts the next one. Returns the child
/// as well.
async fn next_hub(fake: &Fake, before: impl Fn(&Stand, &TaskId)) -> (Stand, AgentIds, TaskId) {
    let (stand, agents) = stand_of(&config(), fake);
    let root = stand.submit(agents.named("a"), "narrow").await;
    stand.until(&root, TaskState::InputRequired).await;
    let child = stand.only_child(&root).await.id;
    before(&stand, &child);
    let next = stand.next_hub();
    let agents = agents_of(&next, &config(), fake);
    next.tasks.recover().await.unwrap();
    (next, agents, child)
}

/// Reason why no task may be added below this one; empty if one may.
fn refusal(stand: &Stand, task: &TaskId) -> String {
    let mut trees = stand.tasks.trees().clone();
    let grown = trees.add_child(task, TaskId::fresh(), TreeLimits::default());
    grown.err().map(|why| why.to_string()).unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn call_budget_survives_restart() {
    let none = Budget::default();
    for (budget, of_message, told) in [
        (Budget { depth: Some(0), ..none }, None, "the depth of 0"),
        (Budget { tasks: Some(0), ..none }, None, "the budget of 0 tasks"),
        (Budget { tokens: Some(0), ..none }, None, "the budget of 0 tokens"),
        (Budget { cost_usd: Some(0.0), ..none }, None, "the budget of 0 dollars"),
        // The narrower of both applies.
        (Budget { depth: Some(3), ..none }, Some(json!({"depth": 0})), "the depth of 0"),
        (Budget { depth: Some(0), ..none }, Some(json!({"depth": 3})), "the depth of 0"),
        (none, None, ""),
    ] {
        let fake = narrowing(budget, of_message);
        let is_refused = |stand: &Stand, child: &TaskId| {
            let why = refusal(stand, child);
            let is_told = why.contains(told) && why.is_empty() == told.is_empty();
            assert!(is_told, "{why:?} is not {told:?}");
        };
        let (next, _agents, child) = next_hub(&fake, is_refused).await;
        is_refused(&next, &child);
    }
}

#[tokio::test(start_paused = true)]
async fn recovered_child_respects_depth_budget() {
    let fake = narrowing(Budget { depth: Some(0), ..Budget::default() }, None);
    let (next, _agents, child) = next_hub(&fake, |_, _| {}).await;
    let call = json!({"calls": [{"agent": "c", "do": {"end": "too deep"}}]});
    next.answer(&child, &call.to_string()).await.unwrap();
    let failed = next.until(&child, TaskState::Failed).await;
    let told = format!("the depth of 0 of task `{child}` is used up");
    assert!(said(&failed).contains(&told), "{}", said(&failed));
    assert_eq!(next.below(&child).await, []);
}

#[tokio::test(start_paused = true)]
async fn invalid_message_budget_is_refused() {
    let (stand, agents) =
        stand_of(&config(), &narrowing(Budget::default(), Some(json!({"task": 1}))));
    let root = stand.submit(agents.named("a"), "narrow").await;
    let failed = stand.until(&root, TaskState::Failed).await;
    assert!(said(&failed).contains("metadata.budget"), "{}", said(&failed));
    assert_eq!(stand.below(&root).await, []);
}
