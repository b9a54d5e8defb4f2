//! What an agent elsewhere tells of a task, to the task's end or to its question, also when the connection breaks.

use super::{QUICK, RemoteAgent, RemoteError, body, result, sse::Decoder};
use crate::outbound::{Incoming, OutboundError};
use a2a_hub_protocol::{
    error::ErrorKind, event::Told, id::TaskId, operation::Operation, task::TaskState,
};
use http::{Response, header::CONTENT_TYPE};
use http_body_util::BodyExt as _;
use std::{collections::VecDeque, time::Duration};
use tokio::time::{sleep, timeout};

/// How long a stream may begin: an agent elsewhere may have to be started first.
const FIRST: Duration = Duration::from_secs(60);

/// How long nothing at all may come, not even a comment. Servers send one every few seconds, some every half minute.
const SILENCE: Duration = Duration::from_secs(120);

/// The pauses before it is asked again what became of the task: two minutes, in which a server is restarted.
const PAUSES: [u64; 7] = [0, 1, 3, 9, 27, 40, 40];

/// What is told of one task.
#[derive(Debug)]
pub struct Telling {
    agent: RemoteAgent,
    source: Source,
    /// What was read and not yet taken.
    ready: VecDeque<Told>,
    task: Option<TaskId>,
    over: bool,
}

#[derive(Debug)]
enum Source {
    Stream {
        body: Incoming,
        decoder: Decoder,
    },
    /// All there is was read.
    Read,
}

impl Telling {
    pub(super) async fn of(agent: RemoteAgent, asks: &Operation) -> Result<Self, RemoteError> {
        let task =
            if let Operation::Resubscribe { id, .. } = asks { Some(id.clone()) } else { None };
        let answer = agent.ask(asks, "text/event-stream", FIRST).await?;
        let mut telling =
            Self { agent, source: Source::Read, ready: VecDeque::new(), task, over: false };
        telling.begin(answer).await?;
        Ok(telling)
    }

    /// Of a task that was told of before: as of one whose stream has just broken.
    pub(super) fn again(agent: RemoteAgent, task: TaskId) -> Self {
        let (source, ready) = (Source::Read, VecDeque::new());
        Self { agent, source, ready, task: Some(task), over: false }
    }

    /// The task that is told of, once that is known.
    pub fn task(&self) -> Option<&TaskId> {
        self.task.as_ref()
    }

    /// What is told next; nothing after the task's end or its question. When the connection breaks, the task is looked
    /// for again, and then told as it stands.
    pub async fn next(&mut self) -> Option<Result<Told, RemoteError>> {
        while !self.over {
            if let Some(told) = self.ready.pop_front() {
                self.note(&told);
                return Some(Ok(told));
            }
            let broken = match self.read().await {
                Ok(()) => continue,
                Err(why) => why,
            };
            if let Err(why) = self.come_back(broken).await {
                self.over = true;
                return Some(Err(why));
            }
        }
        None
    }

    async fn begin(&mut self, answer: Response<Incoming>) -> Result<(), RemoteError> {
        let kind = answer.headers().get(CONTENT_TYPE).map(|kind| kind.as_bytes().to_vec());
        if kind.is_some_and(|kind| kind.starts_with(b"text/event-stream")) {
            self.source = Source::Stream { body: answer.into_body(), decoder: Decoder::default() };
            return Ok(());
        }
        // One answer: a refusal, or all there is from a server that does not stream.
        let status = answer.status();
        let told = self.agent.told(result(status, &body(answer, QUICK).await?)?)?;
        self.source = Source::Read;
        self.ready.push_back(told);
        Ok(())
    }

    /// Reads on; an error once there is nothing more.
    async fn read(&mut self) -> Result<(), RemoteError> {
        let Source::Stream { body, decoder } = &mut self.source else {
            return Err(RemoteError::Broken("it ended before the task did".to_owned()));
        };
        let frame = timeout(SILENCE, body.frame()).await;
        let frame = frame.map_err(|_| RemoteError::Lost(OutboundError::Late(SILENCE)))?;
        let Some(frame) = frame else {
            self.source = Source::Read;
            return Ok(());
        };
        let frame = frame.map_err(|why| RemoteError::Broken(why.to_string()))?;
        let Some(piece) = frame.data_ref() else { return Ok(()) };
        let events = decoder.take(piece).map_err(|why| RemoteError::Broken(why.to_string()))?;
        for event in events {
            self.ready.push_back(self.agent.told(result(http::StatusCode::OK, &event)?)?);
        }
        Ok(())
    }

    /// Finds the task again after the connection broke.
    async fn come_back(&mut self, broken: RemoteError) -> Result<(), RemoteError> {
        let Some(task) = self.task.clone().filter(|_| broken.is_passing()) else {
            return Err(broken);
        };
        let mut last = broken;
        for pause in PAUSES {
            sleep(Duration::from_secs(pause)).await;
            let asks = Operation::Resubscribe { id: task.clone(), after: None };
            let found = match self.agent.ask(&asks, "text/event-stream", FIRST).await {
                Ok(answer) => self.begin(answer).await,
                Err(why) => Err(why),
            };
            match found {
                Ok(()) => return Ok(()),
                // A task that is over has no stream any more, and some servers have none at all.
                Err(RemoteError::Refused(why)) if why.kind != ErrorKind::TaskNotFound => {
                    let now = self.agent.get(task).await?;
                    if !now.status.state.is_final() && !now.status.state.is_interrupted() {
                        return Err(RemoteError::Refused(why));
                    }
                    self.ready.push_back(Told::Task(Box::new(now)));
                    return Ok(());
                }
                Err(why) if why.is_passing() => last = why,
                Err(why) => return Err(why),
            }
        }
        Err(last)
    }

    fn note(&mut self, told: &Told) {
        let rests = |state: TaskState| state.is_final() || state.is_interrupted();
        match told {
            Told::Task(task) => {
                self.task = Some(task.id.clone());
                self.over = rests(task.status.state);
            }
            Told::Message(_) => self.over = true,
            Told::Status { task, update, .. } => {
                self.task = Some(task.clone());
                self.over = rests(update.status.state);
            }
            Told::Artifact { task, .. } => self.task = Some(task.clone()),
        }
    }
}
