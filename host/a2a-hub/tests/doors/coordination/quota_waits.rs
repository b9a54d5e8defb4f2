//! Tasks that wait for a used-up quota: their group, their notice, and another try by a person.

use a2a_hub::{
    Ended, Hub, Native, Principal, Reply, Stage, completed,
    config::Config,
    local::card,
    protocol::{
        id::{AgentId, TaskId},
        message::{Message, Role},
        operation::{
            Answer, HandOver, NoticeAnswer, NoticeKind, NoticeQuery, NoticeRequest, Operation,
            Page, SendMessage, TaskQuery,
        },
        task::{Task, TaskState},
    },
};
use anyhow::{Result, bail, ensure};
use serde_json::{Map, Value, json};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::time::{sleep, timeout};

/// A hub with the agents `a`, `b` and `c` of the group `coders`; the quota of `a` is used up.
struct Coders {
    hub: Hub,
    heard: Arc<Mutex<Vec<String>>>,
}

fn id(name: &str) -> AgentId {
    AgentId::parse(name).expect("a good name")
}

/// Failure for lack of quota, which resets after `seconds` if they are known.
fn used_up(seconds: Option<u64>) -> Ended {
    let now = jiff::Timestamp::now().as_second().unsigned_abs();
    let resets_at = seconds.map(|seconds| now + seconds);
    let message = Some(Message::text(Role::Agent, "You've hit your limit."));
    let facts = json!({ "reason": "rate_limited", "quotaResetsAt": resets_at });
    let metadata = facts.as_object().cloned();
    Ended::Status { state: TaskState::Failed, message, metadata }
}

impl Coders {
    /// Starts the hub; the first run of `a` is refused.
    async fn start(config: &str, resets_in: Option<u64>) -> Result<Self> {
        let text = format!("aliases.coders = ['a', 'b', 'c']\n{config}");
        let mut config: Config = toml::from_str(&text)?;
        (config.http.enabled, config.socket.enabled) = (false, false);
        let heard: Arc<Mutex<Vec<String>>> = Arc::default();
        let mut builder = Hub::in_memory().config(config);
        for name in ["a", "b", "c"] {
            let hears = Arc::clone(&heard);
            let agent = Native::new(move |stage: Stage| {
                let mut heard = hears.lock().expect("no panic");
                heard.push(name.to_owned());
                let is_refused = name == "a" && heard.len() == 1;
                async move { if is_refused { used_up(resets_in) } else { completed(&stage.text()) } }
            });
            let card = card(name, "Codes", &["code"]);
            builder = builder.agent(id(name), card, agent.keeping_sessions());
        }
        Ok(Self { hub: builder.start().await?, heard })
    }

    async fn perform(&self, operation: Operation) -> Result<Answer> {
        let answer = self.hub.handle(&Principal::Operator, operation);
        match timeout(Duration::from_secs(20), answer).await?? {
            Reply::One(answer) => Ok(answer),
            Reply::Stream(_) => bail!("a stream"),
        }
    }

    /// Sends a message and waits for the end, after all handoffs.
    async fn send(&self, to: &str) -> Result<Task> {
        let sent = self.perform(Operation::SendMessage(message(to))).await?;
        let Answer::Task(task) = sent else { bail!("no task came of it") };
        Ok(*task)
    }

    /// Tasks of the hub, oldest first.
    async fn tasks(&self) -> Result<Vec<Task>> {
        let query = TaskQuery::all(Page { limit: 100, offset: 0 });
        let listed = self.perform(Operation::ListTasks(query)).await?;
        let Answer::Tasks { tasks, .. } = listed else { bail!("no list") };
        Ok(tasks.into_iter().rev().map(|it| it.task).collect())
    }

    /// Begins a task of `a`, and returns it with its stream once it waits.
    async fn waiting(&self) -> Result<(TaskId, Reply)> {
        let send = Operation::StreamMessage(message("a"));
        let stream = self.hub.handle(&Principal::Operator, send).await?;
        for _ in 0..500 {
            if let Some(task) = self.tasks().await?.first()
                && fact(task, "waitsUntil").is_string()
            {
                ensure!(task.status.state == TaskState::Working, "{task:?}");
                return Ok((task.id.clone(), stream));
            }
            sleep(Duration::from_millis(20)).await;
        }
        bail!("it does not wait")
    }

    fn names(&self) -> Vec<String> {
        self.heard.lock().expect("no panic").clone()
    }
}

fn message(to: &str) -> Box<SendMessage> {
    let facts = Map::from_iter([("targetAgent".to_owned(), json!(to))]);
    let message = Message { metadata: Some(facts), ..Message::text(Role::User, "Fix the parser") };
    Box::new(SendMessage::new(message, None).expect("good facts"))
}

fn fact<'t>(task: &'t Task, name: &str) -> &'t Value {
    task.metadata.as_ref().and_then(|facts| facts.get(name)).unwrap_or(&Value::Null)
}

const WAITS: &str = "routing.coders.on_quota = 'handoff'\nagents.a.on_quota = 'wait'\n";

/// A member that waits keeps the task; without a time, its group hands the task over.
#[tokio::test]
async fn waiting_member_keeps_task_of_group() -> Result<()> {
    let coders = Coders::start(WAITS, Some(2)).await?;
    let task = coders.send("coders").await?;
    assert_eq!(
        (task.status.state, coders.names()),
        (TaskState::Completed, vec!["a".to_owned(); 2])
    );
    assert_eq!((fact(&task, "waitsUntil"), fact(&task, "quotaWaits")), (&Value::Null, &json!(1)));
    coders.hub.shutdown().await;

    let timeless = Coders::start(WAITS, None).await?;
    let task = timeless.send("coders").await?;
    assert_eq!(
        (task.status.state, timeless.names()),
        (TaskState::Completed, vec!["a".to_owned(), "b".to_owned()])
    );
    timeless.hub.shutdown().await;
    Ok(())
}

/// The agent's own setting counts, and not that of its group.
#[tokio::test]
async fn agent_setting_overrides_group() -> Result<()> {
    for (config, expected) in [
        ("agents.a.on_quota = 'handoff'", TaskState::Completed),
        ("routing.coders.on_quota = 'handoff'\nagents.a.on_quota = 'fail'", TaskState::Failed),
    ] {
        let coders = Coders::start(config, Some(2)).await?;
        assert_eq!(coders.send("coders").await?.status.state, expected, "{config}");
        coders.hub.shutdown().await;
    }
    Ok(())
}

/// A waiting task has a notice, and may be handed over.
#[tokio::test]
async fn waiting_task_is_noticed_and_handed_over() -> Result<()> {
    let coders = Coders::start(WAITS, Some(3_000)).await?;
    let (old, _stream) = coders.waiting().await?;
    let query = NoticeQuery { kinds: Vec::new(), includes_read: false, before: None, limit: 10 };
    let listed = coders.perform(Operation::Notice(NoticeRequest::List(query))).await?;
    let Answer::Notice(NoticeAnswer::List(listed)) = listed else { bail!("no notices") };
    let [notice] = &listed.notices[..] else { bail!("{listed:?}") };
    assert_eq!((notice.kind, &notice.task_id), (NoticeKind::Quota, &old));
    let hand_over = HandOver { task: old.clone(), agent: id("b"), note: None };
    let Answer::Task(next) = coders.perform(Operation::HandOver(hand_over)).await? else {
        bail!("no task")
    };
    let old = timeout(Duration::from_secs(10), async {
        loop {
            let all = coders.tasks().await?;
            if all.iter().all(|task| task.status.state.is_final()) {
                return anyhow::Ok(all.into_iter().find(|task| task.id == old));
            }
            sleep(Duration::from_millis(20)).await;
        }
    })
    .await??;
    let Some(old) = old else { bail!("the old task is gone") };
    assert_eq!(old.status.state, TaskState::Canceled);
    assert_eq!(
        (&fact(&old, "handoff")["task"], fact(&old, "waitsUntil")),
        (&json!(next.id), &Value::Null)
    );
    assert_eq!(coders.names(), ["a", "b"]);
    coders.hub.shutdown().await;
    Ok(())
}

#[tokio::test]
async fn operator_retries_waiting_task_now() -> Result<()> {
    let coders = Coders::start(WAITS, Some(3_000)).await?;
    let (task, _stream) = coders.waiting().await?;
    let retry = || Operation::RetryNow { task: task.clone() };
    let client = Principal::Client("ci".to_owned());
    let refused = coders.hub.handle(&client, retry()).await;
    ensure!(refused.is_err(), "only the operator may");
    let other = coders.send("coders").await?;
    assert_eq!((other.status.state, coders.names().len()), (TaskState::Completed, 2));
    ensure!(coders.names()[1] != "a", "the group prefers an agent with quota");
    coders.perform(retry()).await?;
    let over = timeout(Duration::from_secs(10), async {
        loop {
            let all = coders.tasks().await?;
            let is_over = |it: &Task| it.id == task && it.status.state.is_final();
            if let Some(task) = all.into_iter().find(is_over) {
                return anyhow::Ok(task);
            }
            sleep(Duration::from_millis(20)).await;
        }
    })
    .await??;
    assert_eq!((over.status.state, coders.names().len()), (TaskState::Completed, 3));
    let Err(why) = coders.perform(retry()).await else { bail!("it is over") };
    ensure!(why.to_string().contains("completed"), "{why}");
    coders.hub.shutdown().await;
    Ok(())
}
