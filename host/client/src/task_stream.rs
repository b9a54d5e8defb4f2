//! Events of a remote agent's task, up to the task's end or its question, across broken
//! connections.

use crate::{
    answer::{QUICK, buffer_response},
    binding::{AnswerReader, StreamDecoder},
    client::A2aClient,
    error::ClientError,
    outbound::{Incoming, OutboundError},
    streaming::StreamingOperation,
};
use a2a_hub_protocol::{
    event::StreamResponse,
    id::TaskId,
    operation::{Operation, SendMessage, Wait},
    task::{Task, TaskState},
};
use http_body_util::BodyExt as _;
use std::{collections::VecDeque, time::Duration};
use tokio::time::{sleep, timeout};

/// Timeout for the beginning of a stream: some servers send nothing before the first event, which
/// may be the last one too.
const FIRST: Duration = Duration::from_secs(300);

/// Timeout between server-sent events, comments included. Servers send one every few seconds, some
/// every half minute. gRPC has no comments; its connections are pinged instead.
const SILENCE: Duration = Duration::from_secs(120);

/// Pauses in seconds between attempts to reach an agent: two minutes in total, enough for a restart
/// of its server.
pub const PAUSES: [u64; 7] = [1, 1, 3, 9, 27, 40, 40];

/// Polling interval for the task of an agent that does not stream.
const POLL_INTERVAL: Duration = Duration::from_secs(2);

/// Events of one task.
#[derive(Debug)]
pub struct RemoteTaskStream {
    agent: A2aClient,
    source: AnswerSource,
    /// Events that were read and not yet returned.
    ready: VecDeque<Result<StreamResponse, ClientError>>,
    task: Option<TaskId>,
    /// Streaming request whose first event has not arrived.
    pending: Option<OpenRequest>,
    /// Attempts to resume since the last event.
    tries: usize,
    /// Defect of the latest event that was skipped.
    skipped: Option<String>,
    over: bool,
}

#[derive(Debug)]
enum AnswerSource {
    Stream {
        body: Incoming,
        decoder: StreamDecoder,
        reader: AnswerReader,
    },
    /// The response was read to its end.
    Read,
    /// The agent does not stream: its task is polled. Holds the last state.
    Looks(Option<Box<Task>>),
}

/// Streaming request that the agent has not answered with an event. If the agent refuses it as
/// unsupported, an operation that does not stream takes its place.
#[derive(Debug)]
enum OpenRequest {
    /// Message that is sent again, without streaming.
    Message(Box<SendMessage>),
    Subscription,
}

impl A2aClient {
    /// Sends a message, and returns the events of its task as they happen, or polled if the agent
    /// does not stream, or refuses to stream the answer to this message.
    pub async fn stream(&self, send: SendMessage) -> Result<RemoteTaskStream, ClientError> {
        RemoteTaskStream::of_work(self.clone(), send).await
    }

    /// Returns the current state of a task, and its events from now on. The first call of
    /// [`next`](RemoteTaskStream::next) sends the request.
    pub fn subscribe(&self, id: TaskId) -> RemoteTaskStream {
        RemoteTaskStream::again(self.clone(), id)
    }
}

impl RemoteTaskStream {
    /// Sends a message to the agent.
    async fn of_work(agent: A2aClient, send: SendMessage) -> Result<Self, ClientError> {
        if !agent.streaming.offers(streaming_operation(&send)) {
            let mut stream = Self::new(agent, None, AnswerSource::Looks(None));
            stream.send_unstreamed(send).await?;
            return Ok(stream);
        }
        let mut stream = Self::new(agent, None, AnswerSource::Read);
        stream.pending = Some(OpenRequest::Message(Box::new(send.clone())));
        match stream.begin(&Operation::StreamMessage(Box::new(send))).await {
            Err(why) if why.is_unsupported() => stream.do_without_streaming(why).await?,
            begun => begun?,
        }
        Ok(stream)
    }

    /// Subscribes to an existing task, as after a broken stream.
    fn again(agent: A2aClient, task: TaskId) -> Self {
        let streams = agent.streaming.offers(StreamingOperation::Subscription);
        let source = if streams { AnswerSource::Read } else { AnswerSource::Looks(None) };
        Self::new(agent, Some(task), source)
    }

    fn new(agent: A2aClient, task: Option<TaskId>, source: AnswerSource) -> Self {
        let (ready, pending) = (VecDeque::new(), None);
        Self { agent, source, ready, task, pending, tries: 0, skipped: None, over: false }
    }

    /// Id of the task, once it is known.
    pub fn task(&self) -> Option<&TaskId> {
        self.task.as_ref()
    }

    /// Next event; `None` after the task's end or its question. If the connection breaks, the task
    /// is found again, and its current state is returned.
    pub async fn next(&mut self) -> Option<Result<StreamResponse, ClientError>> {
        while !self.over {
            let broken = match self.ready.pop_front() {
                Some(Ok(mut event)) => {
                    self.note(&mut event);
                    return Some(Ok(event));
                }
                Some(Err(why)) => why,
                None => match self.read().await {
                    Ok(()) => continue,
                    Err(why) => why,
                },
            };
            if let Err(why) = self.reconnect(broken).await {
                self.over = true;
                return Some(Err(why));
            }
        }
        None
    }

    async fn begin(&mut self, asks: &Operation) -> Result<(), ClientError> {
        let (answer, reader) = self.agent.ask(asks, FIRST).await?;
        if let Some(decoder) = reader.decoder(answer.headers()) {
            self.source = AnswerSource::Stream { body: answer.into_body(), decoder, reader };
            return Ok(());
        }
        // A single response: a refusal, or the whole result of a server that does not stream.
        let event =
            self.agent.read_response(reader.read(&buffer_response(answer, QUICK).await?)?)?;
        match (&mut self.source, &event) {
            (AnswerSource::Looks(before), StreamResponse::Task(task)) => {
                *before = Some(task.clone());
            }
            (AnswerSource::Looks(_), _) => {}
            (source, _) => *source = AnswerSource::Read,
        }
        self.ready.push_back(Ok(event));
        Ok(())
    }

    /// Sends a message without streaming; its task is polled.
    async fn send_unstreamed(&mut self, send: SendMessage) -> Result<(), ClientError> {
        let is_follow_up = send.message.task_id.is_some();
        self.source = AnswerSource::Looks(None);
        self.ready.clear();
        let send = SendMessage { wait: Wait::No, ..send };
        self.begin(&Operation::SendMessage(Box::new(send))).await?;
        // A server that answers before its agent has begun returns the task as it was before the
        // message: still asking. The next look decides.
        if is_follow_up
            && let Some(Ok(StreamResponse::Task(task))) = self.ready.front()
            && task.status.state.is_interrupted()
            && !task.id.as_str().is_empty()
        {
            self.task = Some(task.id.clone());
            self.source = AnswerSource::Looks(None);
            self.ready.clear();
        }
        Ok(())
    }

    /// Replaces a streaming request that the agent refused with this error by one that does not
    /// stream. If that is accepted, later requests of this kind do not stream either.
    async fn do_without_streaming(&mut self, refusal: ClientError) -> Result<(), ClientError> {
        let operation = match (self.pending.take(), self.task.clone()) {
            (Some(OpenRequest::Message(send)), _) => {
                let operation = streaming_operation(&send);
                self.send_unstreamed(*send).await?;
                operation
            }
            // No task at rest has a stream, also where streams are supported.
            (Some(OpenRequest::Subscription), Some(task)) => {
                if self.rests(&task).await? {
                    return Ok(());
                }
                self.source = AnswerSource::Looks(None);
                StreamingOperation::Subscription
            }
            (Some(OpenRequest::Subscription), None) | (None, _) => return Err(refusal),
        };
        let (url, why) = (self.agent.url(), refusal.to_string());
        tracing::info!(%url, ?operation, why, "a remote agent refuses to stream; its tasks are polled");
        self.agent.streaming.refuse(operation);
        Ok(())
    }

    /// Reads on; an error once the response has ended.
    async fn read(&mut self) -> Result<(), ClientError> {
        let (body, decoder, reader) = match &mut self.source {
            AnswerSource::Stream { body, decoder, reader } => (body, decoder, reader),
            AnswerSource::Read => {
                let skipped = self.skipped.take();
                let skipped = skipped.map(|why| format!("; an event of it was skipped: {why}"));
                let why = format!("it ended before the task did{}", skipped.unwrap_or_default());
                return Err(ClientError::Broken(why));
            }
            AnswerSource::Looks(_) => {
                sleep(POLL_INTERVAL).await;
                return self.poll().await;
            }
        };
        let frame = match decoder {
            StreamDecoder::Events(_) => timeout(SILENCE, body.frame())
                .await
                .map_err(|_| ClientError::Lost(OutboundError::Late(SILENCE)))?,
            StreamDecoder::Messages(_) => body.frame().await,
        };
        let Some(frame) = frame else {
            self.source = AnswerSource::Read;
            return Ok(());
        };
        let frame = frame.map_err(|why| ClientError::Broken(why.to_string()))?;
        if let Some(trailers) = frame.trailers_ref() {
            return reader.end(trailers);
        }
        let Some(piece) = frame.data_ref() else { return Ok(()) };
        for item in decoder.decode(piece)? {
            match reader.item(&item).and_then(|item| self.agent.read_response(item)) {
                // The agent goes on after an event that this version of the hub does not know.
                Err(ClientError::Senseless { why, .. }) => {
                    self.agent.log_skipped(&why);
                    self.skipped = Some(why);
                }
                result => self.ready.push_back(result),
            }
        }
        Ok(())
    }

    /// Resumes after the connection broke.
    async fn reconnect(&mut self, broken: ClientError) -> Result<(), ClientError> {
        if broken.is_unsupported() && self.pending.is_some() {
            return self.do_without_streaming(broken).await;
        }
        let Some(task) = self.task.clone().filter(|_| broken.is_passing()) else {
            return Err(broken);
        };
        let mut last = broken;
        while let Some(pause) = PAUSES.get(self.tries) {
            self.tries += 1;
            sleep(Duration::from_secs(*pause)).await;
            match self.find(&task).await {
                Ok(()) => return Ok(()),
                Err(why) if why.is_passing() => last = why,
                Err(why) => return Err(why),
            }
        }
        Err(last)
    }

    /// Subscribes again. A finished task has no stream: some servers refuse the subscription,
    /// others end the stream at once.
    async fn find(&mut self, task: &TaskId) -> Result<(), ClientError> {
        if let AnswerSource::Looks(_) = self.source {
            return self.poll().await;
        }
        if self.tries > 1 && self.rests(task).await? {
            return Ok(());
        }
        self.pending = Some(OpenRequest::Subscription);
        match self.begin(&Operation::Resubscribe { id: task.clone(), after: None }).await {
            Err(why) if why.is_unsupported() => self.do_without_streaming(why).await,
            Err(ClientError::Refused(_)) if self.rests(task).await? => Ok(()),
            begun => begun,
        }
    }

    /// Polls the task, and queues its state if it has changed.
    async fn poll(&mut self) -> Result<(), ClientError> {
        let Some(task) = self.task.clone() else {
            return Err(ClientError::Broken("it did not say which task it is".to_owned()));
        };
        let now = Box::new(self.agent.get(task).await?);
        self.tries = 0;
        if let AnswerSource::Looks(before) = &mut self.source
            && before.as_ref() != Some(&now)
        {
            *before = Some(now.clone());
            self.ready.push_back(Ok(StreamResponse::Task(now)));
        }
        Ok(())
    }

    /// True if the task has ended or waits for its client; its state is then queued.
    async fn rests(&mut self, task: &TaskId) -> Result<bool, ClientError> {
        let now = self.agent.get(task.clone()).await?;
        let rests = rests(now.status.state);
        if rests {
            self.ready.push_back(Ok(StreamResponse::Task(Box::new(now))));
        }
        Ok(rests)
    }

    /// Follows the state of the task. An event without the task's id belongs to the known task.
    fn note(&mut self, event: &mut StreamResponse) {
        (self.tries, self.pending) = (0, None);
        let known = self.task.clone();
        let named = |id: &mut TaskId| {
            if let (true, Some(known)) = (id.as_str().is_empty(), known) {
                *id = known;
            }
            Some(id.clone()).filter(|id| !id.as_str().is_empty())
        };
        match event {
            StreamResponse::Task(task) => {
                self.task = named(&mut task.id);
                self.over = rests(task.status.state);
            }
            StreamResponse::Message(_) => self.over = true,
            StreamResponse::Status { task, update, .. } => {
                self.task = named(task);
                self.over = rests(update.status.state);
            }
            StreamResponse::Artifact { task, .. } => self.task = named(task),
        }
    }
}

fn streaming_operation(send: &SendMessage) -> StreamingOperation {
    match send.message.task_id {
        Some(_) => StreamingOperation::FollowUp,
        None => StreamingOperation::NewTask,
    }
}

fn rests(state: TaskState) -> bool {
    state.is_final() || state.is_interrupted()
}
