//! One place where every operation is allowed and carried out.

use crate::{
    agents::{Agent, Agents},
    error::from_storage,
    tasks::{NewTask, Subscription, Tasks},
};
use a2a_hub_protocol::{
    error::{A2aError, ErrorKind},
    event::TaskEvent,
    id::AgentId,
    message::Role,
    operation::{AgentBrief, Answer, HealthStatus, HubStatus, Operation, SendMessage},
    task::{Task, TaskState},
};
use serde_json::json;
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::time::Instant;

/// How old an agent's last word on its health may be when somebody asks for it.
const HEALTH_AGE: Duration = Duration::from_secs(5);

/// The hub: what every transport hands its operations to. Cheap to clone.
#[derive(Clone)]
pub struct Hub {
    agents: Agents,
    tasks: Tasks,
    started: Instant,
    closed: Arc<AtomicBool>,
}

/// What an operation comes to.
pub enum Reply {
    /// One answer.
    One(Answer),
    /// What happens to a task, as it happens.
    Stream(Subscription),
}

impl Hub {
    /// A hub of these agents and tasks.
    pub fn new(agents: Agents, tasks: Tasks) -> Self {
        Self { agents, tasks, started: Instant::now(), closed: Arc::default() }
    }

    /// Takes no new tasks from now on. Those there are can still be asked for, answered and cancelled.
    pub fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
    }

    /// Carries out an operation.
    pub async fn handle(&self, operation: Operation) -> Result<Reply, A2aError> {
        Ok(Reply::One(match operation {
            Operation::SendMessage(send) => self.send(send).await?,
            Operation::StreamMessage(send) => {
                return Ok(Reply::Stream(self.start(send, true).await?));
            }
            Operation::GetTask { id, history_length } => {
                Answer::Task(Box::new(latest(self.tasks.get(&id).await?.task, history_length)))
            }
            Operation::CancelTask { id } => Answer::Task(Box::new(self.tasks.cancel(&id).await?)),
            Operation::Status => Answer::Status(self.status().await?),
            Operation::ListAgents { include_health } => self.list(include_health).await,
        }))
    }

    /// Waits until the task is over, or waits for its client.
    async fn send(&self, send: SendMessage) -> Result<Answer, A2aError> {
        let history_length = send.history_length;
        let mut heard = self.start(send, false).await?;
        while let Some(event) = heard.next().await {
            if let TaskEvent::Reply(message) = &event.map_err(|why| from_storage(&why))?.event {
                return Ok(Answer::Message(message.clone()));
            }
        }
        let task = self.tasks.get(heard.task()).await?.task;
        if task.status.state == TaskState::Submitted || task.status.state == TaskState::Working {
            let why = "the hub stopped before the task ended; `tasks/get` tells what became of it";
            return Err(A2aError::new(ErrorKind::Internal, why).with(json!({ "taskId": task.id })));
        }
        Ok(Answer::Task(Box::new(latest(task, history_length))))
    }

    async fn start(&self, send: SendMessage, live: bool) -> Result<Subscription, A2aError> {
        let SendMessage { message, agent, working_directory, history_length: _, timeout_ms } = send;
        if message.role != Role::User {
            return Err(A2aError::invalid("message.role", "a client speaks as `user`"));
        }
        if let Some(task) = message.task_id.clone() {
            return self.tasks.answer(&task, message).await;
        }
        if self.closed.load(Ordering::Relaxed) {
            let why = "the hub is stopping and takes no new tasks; `a2a-hub start` starts it again";
            return Err(A2aError::new(ErrorKind::AgentUnavailable, why)
                .with(json!({ "reason": "stopping" })));
        }
        let agent = self.agent(agent)?;
        let timeout = agent.config.timeout();
        let patience = timeout_ms.map_or(timeout, |ms| Duration::from_millis(ms).min(timeout));
        let new = NewTask { agent, message, working_directory, patience, live };
        self.tasks.submit(new).await.map_err(|why| from_storage(&why))
    }

    fn agent(&self, id: Option<AgentId>) -> Result<Arc<Agent>, A2aError> {
        let there =
            || self.agents.all().iter().map(|agent| agent.id.to_string()).collect::<Vec<_>>();
        let Some(id) = id else {
            let why = "name the agent that is to hear the message";
            return Err(A2aError::invalid("message.metadata.targetAgent", why)
                .with(json!({ "field": "message.metadata.targetAgent", "agents": there() })));
        };
        self.agents.find(&id).ok_or_else(|| {
            let there = there();
            let why = format!("no agent is called `{id}`; there are {}", there.join(", "));
            A2aError::new(ErrorKind::AgentNotFound, why).with(json!({ "agents": there }))
        })
    }

    async fn status(&self) -> Result<HubStatus, A2aError> {
        let counts = self.tasks.counts().await.map_err(|why| from_storage(&why))?;
        let brief = |agent: &Arc<Agent>| AgentBrief {
            id: agent.id.clone(),
            name: agent.card.name.clone(),
            status: agent.health().status,
        };
        let agents: Vec<_> = self.agents.all().iter().map(brief).collect();
        let count = |status| agents.iter().filter(|agent| agent.status == status).count();
        Ok(HubStatus {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            uptime: u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX),
            active_tasks: counts.live,
            total_tasks: counts.total,
            total: agents.len(),
            healthy: count(HealthStatus::Healthy),
            degraded: count(HealthStatus::Degraded),
            unhealthy: count(HealthStatus::Unhealthy),
            unknown: count(HealthStatus::Unknown),
            rejected_plugins: self.agents.rejected(),
            agents,
        })
    }

    async fn list(&self, include_health: bool) -> Answer {
        Answer::Agents(if include_health {
            let checked = self.agents.check(HEALTH_AGE).await.into_iter();
            checked.map(|(agent, health)| agent.info(Some(health))).collect()
        } else {
            self.agents.all().iter().map(|agent| agent.info(None)).collect()
        })
    }
}

/// The task with its latest `length` messages only.
fn latest(mut task: Task, length: Option<usize>) -> Task {
    if let Some(length) = length {
        task.history.drain(..task.history.len().saturating_sub(length));
    }
    task
}
