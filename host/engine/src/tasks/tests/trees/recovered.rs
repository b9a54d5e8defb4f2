//! Trees after a kill: the agent that asked is gone, the tasks above ask again in the child's
//! place, and the answer reaches the child's fresh run.

use super::*;
use crate::tests::scripted_agent::Journals;
use Resume::{Nothing as No, Replay, Session};
use a2a_hub_core::grant::Resume;
use a2a_hub_protocol::question::QuestionKind;
use parking_lot::Mutex;

/// Inputs of the agents' runs, in order.
type Runs = Arc<Mutex<Vec<String>>>;

/// A hub with three agents, of which `a` calls `b`, and `b` calls `c`.
struct RecoveredTree {
    stand: Stand,
    agents: AgentIds,
    runs: Runs,
}

/// Calls the next agent, asks, works, or echoes its input, as the message says. In the first hub,
/// which is killed, work never ends.
async fn perform(stage: &Stage, is_first: bool) -> Result<Ended, Failure> {
    let text = stage.text();
    Ok(match text.split_once(' ') {
        Some(("ask", prompt)) => {
            let mut prompt = Message::text(Role::Agent, prompt);
            let kind = json!({ "kind": "permission" });
            prompt.metadata = Some(Metadata::from_iter([("question".to_owned(), kind)]));
            let answer = stage.port.ask(Need::Input, prompt, None).await?;
            completed(&answer.message.joined_text())
        }
        Some(("work", _)) if is_first => std::future::pending().await,
        Some(("work", secs)) => {
            tokio::time::sleep(Duration::from_secs(secs.parse().unwrap())).await;
            completed("worked")
        }
        Some((called @ ("b" | "c"), rest)) => {
            let key = Some("below".to_owned());
            let message = Message::text(Role::User, rest);
            let request = ChildRequest { key, ..ChildRequest::new(called, message) };
            stage.outcome_of(request).await?
        }
        Some(_) | None => completed(&format!("heard {text}")),
    })
}

impl RecoveredTree {
    /// Creates a hub whose agents resume in these ways.
    fn new(stand: Stand, resume: [Resume; 3], is_first: bool) -> Self {
        let runs = Runs::default();
        let fake = |resume| {
            let runs = Arc::clone(&runs);
            let fake = Fake::new(move |stage: Stage| {
                runs.lock().push(stage.text());
                async move { perform(&stage, is_first).await.unwrap_or_else(Ended::Failed) }
            });
            match resume {
                Replay => fake.replayed(Journals::default()),
                Session => fake.resuming(resume).holding(Resumability::Session),
                No => fake,
            }
        };
        let named = NAMES.iter().zip(resume).map(|(name, resume)| {
            let config = AgentConfig { max_running: Some(1), timeout_ms: 10_000_000, ..config() };
            let agent = fake(resume).calling_others().agent_among(name, config, &NAMES);
            (agent.id.clone(), agent)
        });
        let agents: HashMap<_, _> = named.collect();
        let known = agents.clone();
        stand.know(move |id| known.get(id).cloned());
        Self { stand, agents: AgentIds(agents), runs }
    }

    /// Creates a tree whose deepest task asks for permission.
    async fn asking(resume: [Resume; 3]) -> (Self, TaskId) {
        let tree = Self::new(Stand::new(), resume, true);
        let root = tree.stand.submit(tree.agents.named("a"), "b c ask May I?").await;
        tree.stand.until(&root, TaskState::InputRequired).await;
        (tree, root)
    }

    /// The next process after recovery, before any agent has continued.
    async fn next(&self, resume: [Resume; 3]) -> Self {
        let next = Self::new(self.stand.next_hub(), resume, false);
        next.stand.tasks.recover().await.unwrap();
        next
    }

    async fn now(&self, task: &TaskId) -> Task {
        self.stand.tasks.get(task).await.unwrap().task
    }

    /// The tasks from the root to the deepest one.
    async fn chain(&self, root: &TaskId) -> [TaskId; 3] {
        let between = self.stand.only_child(root).await.id;
        let leaf = self.stand.only_child(&between).await.id;
        [root.clone(), between, leaf]
    }

    /// Waits until the task asks how to continue, and the root relays that; then the client
    /// answers.
    async fn send_on(&self, root: &TaskId, task: &TaskId) {
        let is_asked = async {
            loop {
                let (now, asks) = (self.now(task).await, self.now(root).await);
                let stranded = said(&now).contains("send any message to go on");
                let asked = Question::from_metadata(now.metadata.as_ref()).filter(|_| stranded);
                if asked.is_some_and(|it| it.task.is_none() && it.id == question(&asks).id) {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), is_asked).await.unwrap();
        self.stand.answer(root, "go on").await.unwrap();
    }
}

fn question(task: &Task) -> Question {
    Question::from_metadata(task.metadata.as_ref())
        .unwrap_or_else(|| panic!("it asks nothing: {task:?}"))
}

const ABOVE: [[Resume; 3]; 4] = [
    [Session, Session, No],
    [Session, Replay, No],
    [Replay, Session, No],
    [Replay, Replay, Session],
];

#[tokio::test(start_paused = true)]
async fn recovered_root_asks_its_leafs_question_again() {
    for resume in ABOVE {
        let (killed, root) = RecoveredTree::asking(resume).await;
        let lost = question(&killed.now(&root).await);
        let next = killed.next(resume).await;
        let [_, between, leaf] = &next.chain(&root).await;
        // At once, without waiting for an agent to ask again.
        for (task, path) in [(&root, vec!["b", "c"]), (between, vec!["c"]), (leaf, vec![])] {
            let now = next.now(task).await;
            let asked = question(&now);
            assert_eq!(asked.id, question(&next.now(leaf).await).id, "{resume:?}");
            assert_eq!(asked.replaces, Some(QuestionKind::Permission));
            assert_eq!(asked.path.iter().map(AgentId::as_str).collect::<Vec<_>>(), path);
            assert!(said(&now).contains("The hub was restarted while Fake asked: “May I?”"));
        }
        let asks = next.now(&root).await;
        assert!(said(&asks).starts_with("b > c asks:\n"), "{}", said(&asks));
        assert!(next.stand.answer_to(&asks, &lost.id, "yes").await.is_err(), "it is gone");
        next.stand.answer_to(&asks, &question(&asks).id, "yes").await.unwrap();
        let done = next.stand.until(leaf, TaskState::Completed).await;
        let heard = "nothing was allowed. The user now says:]\nyes";
        assert!(said(&done).ends_with(heard), "{resume:?}: {}", said(&done));
        // An agent that is not replayed waits for the client's go, the deepest first.
        let sent = [(between, resume[1]), (&root, resume[0])];
        for (task, _) in sent.iter().filter(|(_, resume)| *resume == Session) {
            next.send_on(&root, task).await;
        }
        let done = said(&next.stand.until(&root, TaskState::Completed).await);
        let wanted = if resume.starts_with(&[Replay, Replay]) { heard } else { "heard go on" };
        assert!(done.ends_with(wanted), "{resume:?}: {done}");
        let asked_again = next.runs.lock().iter().filter(|it| it.starts_with("ask")).count();
        assert_eq!(asked_again, 0, "{resume:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn repeated_restarts_replace_question_once() {
    for resume in ABOVE {
        let (killed, root) = RecoveredTree::asking(resume).await;
        let second = killed.next(resume).await;
        let asked = question(&second.now(&root).await);
        tokio::time::sleep(Duration::from_secs(1)).await;
        let asks = second.now(&root).await;
        assert_eq!(question(&asks), asked, "{resume:?}: agents have come to it again");
        let third = second.next(resume).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        let still = third.now(&root).await;
        assert_eq!((question(&still), said(&still)), (asked, said(&asks)), "{resume:?}");
        let history: Vec<_> = still.history.iter().map(Message::joined_text).collect();
        let told = history.iter().filter(|it| it.contains("The hub was restarted")).count();
        assert_eq!(told, 0, "{resume:?}: it is told once: {history:?}");
    }
}

/// A fresh run receives the answer, as for a task without children.
#[tokio::test(start_paused = true)]
async fn stored_answer_reaches_child_after_kill() {
    for resume in ABOVE {
        let (killed, root) = RecoveredTree::asking(resume).await;
        // It holds the run permit that the answered task needs.
        killed.stand.submit(killed.agents.named("a"), "work 1").await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        killed.stand.answer(&root, "yes").await.unwrap();
        let [_, _, leaf] = &killed.chain(&root).await;
        assert_eq!(killed.now(leaf).await.status.state, TaskState::InputRequired, "{resume:?}");
        let next = killed.next(resume).await;
        let done = next.stand.until(leaf, TaskState::Completed).await;
        let heard = "nothing was allowed. The user now says:]\nyes";
        assert!(said(&done).ends_with(heard), "{resume:?}: {}", said(&done));
        let answers = done.history.iter().filter(|it| it.joined_text() == "yes").count();
        assert_eq!(answers, 1, "{resume:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn children_survive_orderly_shutdown() {
    for resume in ABOVE {
        let (stopped, root) = RecoveredTree::asking(resume).await;
        stopped.stand.tasks.shutdown().await;
        let next = stopped.next(resume).await;
        let asks = next.now(&root).await;
        assert!(said(&asks).starts_with("b > c asks:\nThe hub was restarted"), "{}", said(&asks));
        next.stand.answer_to(&asks, &question(&asks).id, "yes").await.unwrap();
        let [_, _, leaf] = &next.chain(&root).await;
        next.stand.until(leaf, TaskState::Completed).await;
    }
}

/// A fresh run receives the client's message; it begins once the child is over.
#[tokio::test(start_paused = true)]
async fn parent_restarts_after_its_working_child_ends() {
    for says_before in [true, false] {
        let resume = [Session, Replay, No];
        let killed = RecoveredTree::new(Stand::new(), resume, true);
        let root = killed.stand.submit(killed.agents.named("a"), "b work 100").await;
        killed.stand.only_child(&root).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        let next = killed.next(resume).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(next.now(&root).await.status.state, TaskState::Working);
        let child = next.stand.only_child(&root).await;
        if says_before {
            next.stand.answer(&root, "go on").await.unwrap();
        }
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert_eq!(next.runs.lock().join(", "), "work 100", "it is not started beside its child");
        assert_eq!(said(&next.stand.until(&child.id, TaskState::Completed).await), "worked");
        if !says_before {
            next.send_on(&root, &root).await;
        }
        let done = next.stand.until(&root, TaskState::Completed).await;
        assert_eq!(said(&done), "heard go on");
    }
}

#[tokio::test(start_paused = true)]
async fn unrecoverable_root_fails_its_tree() {
    let resume = [No, Session, Session];
    let (killed, root) = RecoveredTree::asking(resume).await;
    let next = killed.next(resume).await;
    for task in next.chain(&root).await {
        assert_eq!(next.now(&task).await.status.state, TaskState::Failed);
    }
    assert!(next.stand.tasks.trees().is_empty());
}

/// The agents that a tree may reach are stored with its tasks, and not with the key.
#[tokio::test(start_paused = true)]
async fn killed_hub_remembers_reach_of_tree() {
    let resume = [Session, Session, No];
    let killed = RecoveredTree::new(Stand::new(), resume, true);
    let facts = reach::limited_to(&["a", "b", "c"]);
    let root = killed.stand.submit_run(killed.agents.named("a"), "b c ask May I?", facts).await;
    killed.stand.until(&root, TaskState::InputRequired).await;
    let next = killed.next(resume).await;
    for task in next.chain(&root).await {
        assert_eq!(fact(&next.now(&task).await, "reachableAgents"), &json!(["a", "b", "c"]));
    }
}
