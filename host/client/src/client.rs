//! Client of one remote agent: found by its card, in A2A 1.0 or 0.3, over the binding that the card
//! prefers.

use crate::{
    answer::{MAX_QUOTE, QUICK, buffer_response, check_head},
    binding::AnswerReader,
    card,
    error::ClientError,
    interface::{SelectedInterface, Trust},
    outbound::{Incoming, Outbound},
    request::{signed, traced},
    retry,
    streaming::Streaming,
};
use a2a_hub_core::text::plain_text;
use a2a_hub_protocol::{
    card::{AgentCard, ForeignCard, read_interfaces},
    dialect::Tolerant,
    error::A2aError,
    event::StreamResponse,
    id::TaskId,
    operation::{Operation, SendMessage},
    push::Secret,
    task::Task,
};
use http::{Response, StatusCode};
use http_body_util::Full;
use serde_json::Value;
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};
use tokio::time::sleep;
use url::{Origin, Url};

/// Client of a remote agent. Cheap to clone.
#[derive(Clone, Debug)]
pub struct A2aClient {
    outbound: Outbound,
    interface: SelectedInterface,
    token: Option<Secret>,
    card: AgentCard,
    /// Streaming operations that the agent offers, shared by all clones.
    pub(crate) streaming: Arc<Streaming>,
    /// Number of warnings about unreadable parts of answers.
    warnings: Arc<AtomicUsize>,
}

/// Most warnings about the answers of one agent: it may send any number of unreadable parts.
const MAX_WARNINGS: usize = 20;

impl A2aClient {
    /// Finds the agent at `url` by its card, for a user who named that URL. The card may direct
    /// clients with their token to `origins` as well, such as `https://example.com:50051`, and
    /// clients without a token to other ports of the host.
    pub async fn find(
        outbound: Outbound,
        url: &str,
        token: Option<Secret>,
        origins: &[String],
    ) -> Result<Self, ClientError> {
        let base = card::base(url)?;
        let card = card::fetch(&outbound, &base, token.as_ref()).await?;
        let trust = Trust { origins: self::origins(origins)?, other_ports: token.is_none() };
        Self::trusting(outbound, &base, token, &trust, &card)
    }

    /// Creates a client for an agent with this card, found at `base`. The card may direct clients
    /// to `origins` as well.
    pub fn of_card(
        outbound: Outbound,
        base: &Url,
        token: Option<Secret>,
        origins: &[String],
        card: &Value,
    ) -> Result<Self, ClientError> {
        let trust = Trust { origins: self::origins(origins)?, other_ports: false };
        Self::trusting(outbound, base, token, &trust, card)
    }

    fn trusting(
        outbound: Outbound,
        base: &Url,
        token: Option<Secret>,
        trust: &Trust,
        card: &Value,
    ) -> Result<Self, ClientError> {
        let ForeignCard { card, skipped } = ForeignCard::read(card);
        for skipped in &skipped {
            tracing::warn!(url = %base, skipped, "a part of a remote agent's card is skipped");
        }
        let agent = AgentCard::parse(&card.to_string());
        // Kept as text: a caller that prints the chain of causes would print it twice.
        let agent = agent.map_err(|why| ClientError::InvalidCard(why.to_string()))?;
        let interfaces = read_interfaces(&card).map_err(ClientError::Refused)?;
        let interface = SelectedInterface::choose(&agent.name, &interfaces, base, trust)?;
        let streaming = Arc::new(Streaming::new(card["capabilities"]["streaming"] == true));
        let warnings = Arc::default();
        Ok(Self { outbound, interface, token, card: agent, streaming, warnings })
    }

    /// Card of the agent, parsed and validated.
    pub fn card(&self) -> &AgentCard {
        &self.card
    }

    /// URL of the agent's interface.
    pub(crate) fn url(&self) -> &Url {
        &self.interface.url
    }

    /// Sends a message and waits for the end of its task, or for the timeout.
    pub async fn send(
        &self,
        send: SendMessage,
        timeout: Duration,
    ) -> Result<StreamResponse, ClientError> {
        let result = self.call(&Operation::SendMessage(Box::new(send)), timeout).await?;
        self.read_response(result)
    }

    /// Reads a task's current state.
    pub async fn get(&self, id: TaskId) -> Result<Task, ClientError> {
        let task = self.call(&Operation::GetTask { id, history_length: None }, QUICK).await?;
        self.task(task)
    }

    /// Cancels a task, and returns its state after that.
    pub async fn cancel(&self, id: TaskId) -> Result<Task, ClientError> {
        let task = self.call(&Operation::CancelTask { id }, QUICK).await?;
        self.task(task)
    }

    fn task(&self, task: Value) -> Result<Task, ClientError> {
        self.readable(self.interface.wire.read_task(task))
    }

    pub(crate) fn read_response(&self, value: Value) -> Result<StreamResponse, ClientError> {
        self.readable(self.interface.wire.read_stream_response(value))
    }

    /// Logs what was skipped in an answer, and returns the rest.
    fn readable<T>(&self, read: Result<Tolerant<T>, A2aError>) -> Result<T, ClientError> {
        let read = read.map_err(|why| ClientError::senseless(StatusCode::OK, &why))?;
        for skipped in &read.skipped {
            self.log_skipped(skipped);
        }
        Ok(read.value)
    }

    /// Logs a part of an answer that cannot be read; at most [`MAX_WARNINGS`] for one client.
    pub(crate) fn log_skipped(&self, why: &str) {
        let (url, why) = (&self.interface.url, plain_text::line(why, MAX_QUOTE));
        if self.warnings.fetch_add(1, Relaxed) < MAX_WARNINGS {
            tracing::warn!(%url, why, "a part of a remote agent's answer is skipped");
        } else {
            tracing::debug!(%url, why, "a part of a remote agent's answer is skipped");
        }
    }

    async fn call(&self, operation: &Operation, timeout: Duration) -> Result<Value, ClientError> {
        let (answer, reader) = self.ask(operation, timeout).await?;
        reader.read(&buffer_response(answer, timeout).await?)
    }

    /// Sends a request, and returns the head of the response with its reader.
    pub(crate) async fn ask(
        &self,
        operation: &Operation,
        timeout: Duration,
    ) -> Result<(Response<Incoming>, AnswerReader), ClientError> {
        let (request, body, reader) = self.interface.ask(operation)?;
        let request = traced(request, operation);
        let signed_request = signed(request, self.token.as_ref())?.body(Full::new(body))?;
        let mut retries = 0;
        let answer = loop {
            let answer = self.outbound.ask(signed_request.clone(), timeout).await?;
            match retry::pause(answer.status(), answer.headers()) {
                Some(pause) if retries < retry::MAX_RETRIES => {
                    retries += 1;
                    let (url, status) = (&self.interface.url, answer.status().as_u16());
                    tracing::info!(%url, status, ?pause, "a remote agent is busy, trying again");
                    sleep(pause).await;
                }
                _ => break answer,
            }
        };
        match answer.status() {
            status @ (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => {
                Err(ClientError::Unknown(status))
            }
            _ => {
                check_head(&answer)?;
                Ok((answer, reader))
            }
        }
    }
}

fn origins(urls: &[String]) -> Result<Vec<Origin>, ClientError> {
    urls.iter().map(|url| Ok(card::base(url)?.origin())).collect()
}
