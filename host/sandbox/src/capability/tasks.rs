//! Capability for a guest's own task: it emits statuses and chunks of artifacts, asks the client
//! questions, and reads what the client accepts. Events are counted and keep their order, and a
//! guest that emits too fast has to wait.

use super::delegate::lending;
use crate::store::{
    bindings::a2a::hub::{
        tasks::{self, Host, HostQuestion},
        types,
    },
    convert::{
        bytes_of_events, bytes_of_message, event_from_guest, failure_to_guest, message_from_guest,
        message_to_guest,
    },
    redaction::Hide as _,
    replay::mixed_up,
    resources::PendingQuestion,
    state::GuestState,
    usage::{json_bytes, pace, wait},
};
use a2a_hub_core::task::replay::CallIdentity;
use a2a_hub_protocol::{
    message::{Content, Message, Metadata, Part},
    permission::PermissionRequest,
};
use a2a_hub_runtime::{
    Failure,
    port::{
        journal::JournalAnswer,
        tasks::{ClientAnswer, Emitted, Need, RuleReply, WaitsFor},
    },
};
use futures::FutureExt as _;
use serde::Serialize;
use serde_json::Value;
use std::{sync::Arc, time::Duration};
use tokio_util::sync::CancellationToken;
use wasmtime::component::Resource;

/// Maximum size in bytes of a final message or a question: the client's answer contains it whole,
/// and so does every later read of the task. A longer text belongs in an artifact, which is emitted
/// in chunks.
pub(super) const MAX_MESSAGE: usize = 1 << 20;

/// Cost of an event in addition to its contents, in bytes: its entry in the log, and its time.
const FRAME: u64 = 64;

/// Maximum number of open questions in a run. Each is a message, a waiting task, and an entry in
/// two queues: some kB of the hub's memory.
const MAX_QUESTIONS: usize = 32;

/// Number of events that a question counts as, for the limit on events per second.
const QUESTION_PACE: u64 = 10;

/// Memory of a part in addition to its contents, in bytes.
const PART: u64 = 128;

/// Memory of a JSON value in addition to its text, in bytes.
const VALUE: u64 = 32;

impl GuestState {
    async fn emit_events(
        &mut self,
        events: Vec<types::Event>,
    ) -> wasmtime::Result<Result<(), Failure>> {
        let events = match self.admit(events).await {
            Ok(events) => self.untold(events)?,
            Err(why) => return Ok(Err(why)),
        };
        if events.is_empty() {
            return Ok(Ok(()));
        }
        Ok(self.send_events(events).await)
    }

    /// Checks, counts and redacts the guest's events for the task's log.
    async fn admit(&mut self, events: Vec<types::Event>) -> Result<Vec<Emitted>, Failure> {
        if self.ports.tasks.is_none() {
            return Err(Failure::Unsupported("emit: there is no task in this call".to_owned()));
        }
        if self.cancel.is_cancelled() {
            return Err(Failure::Cancelled);
        }
        self.account.before(bytes_of_events(&events)).await;
        let mut events = events.into_iter().map(event_from_guest).collect::<Result<Vec<_>, _>>()?;
        for event in &events {
            self.output.charge(1, weight(event, values_of(event)))?;
        }
        events.iter_mut().for_each(|event| self.redaction.emitted(event));
        Ok(events)
    }

    async fn send_events(&mut self, events: Vec<Emitted>) -> Result<(), Failure> {
        let Some(port) = self.ports.tasks.clone() else { return Ok(()) };
        let bytes: u64 = events.iter().map(|event| weight(event, values_of(event))).sum();
        let is_status = |event: &Emitted| matches!(event, Emitted::Working { .. });
        let extra_bytes = if events.iter().any(is_status) { port.extra_status_bytes() } else { 0 };
        let more = u64::from(extra_bytes > 0);
        self.output.charge(more, extra_bytes)?;
        self.until_its_pace(events.len() as u64 + more, bytes + extra_bytes).await?;
        tokio::select! {
            emitted = port.emit(events) => emitted,
            () = self.cancel.cancelled() => Err(Failure::Cancelled),
        }
    }
}

impl GuestState {
    /// Waits until these events and bytes fit the rate limits, and charges the account for them.
    pub(super) async fn until_its_pace(&mut self, events: u64, bytes: u64) -> Result<(), Failure> {
        self.account.tells(events);
        let paces = &mut self.paces;
        let time = pace(&mut paces.events, events).max(pace(&mut paces.output_bytes, bytes));
        wait(time, &self.cancel).await
    }

    /// Prepares a question for the client. The returned future sends it and waits for the answer.
    async fn asking(
        &mut self,
        need: tasks::Need,
        prompt: types::Message,
        timeout_ms: Option<u64>,
        form: QuestionForm,
    ) -> Result<impl Future<Output = Result<ClientAnswer, Failure>> + Send + use<>, Failure> {
        let Some(port) = self.ports.tasks.clone() else {
            return Err(Failure::Unsupported("ask: there is no task in this call".to_owned()));
        };
        if self.cancel.is_cancelled() {
            return Err(Failure::Cancelled);
        }
        let need = match need {
            tasks::Need::Input => Need::Input,
            tasks::Need::Auth => Need::Auth,
        };
        let bytes = bytes_of_message(&prompt);
        require_short_message("ask", bytes)?;
        self.account.before(bytes).await;
        let mut prompt = message_from_guest(prompt)?;
        // Counts as two events: the task waits, and, with or without an answer, the task goes on.
        // Each is stored separately, and moves the task's run permit.
        let values = values_of_parts(&prompt.parts, prompt.metadata.as_ref());
        let of_request = match &form {
            QuestionForm::Request(request) => json_bytes(request),
            QuestionForm::Blocking | QuestionForm::Posed => 0,
        };
        let weight = weight(&prompt, values) + FRAME + of_request;
        self.output.charge(2, weight)?;
        prompt.hide(&self.redaction.secrets);
        self.until_its_pace(QUESTION_PACE, weight).await?;
        let timeout = timeout_ms.map(Duration::from_millis);
        Ok(async move {
            match form {
                QuestionForm::Blocking => port.ask(need, prompt, timeout).await,
                QuestionForm::Posed => port.pose(need, prompt, timeout).await,
                QuestionForm::Request(request) => port.pose_request(request, prompt, timeout).await,
            }
        })
    }

    async fn ask_client(
        &mut self,
        need: tasks::Need,
        prompt: types::Message,
        timeout_ms: Option<u64>,
    ) -> Result<ClientAnswer, Failure> {
        let cancel = self.cancel.clone();
        let asking = self.asking(need, prompt, timeout_ms, QuestionForm::Blocking).await?;
        tokio::select! {
            answer = asking => answer,
            () = cancel.cancelled() => Err(Failure::Cancelled),
        }
    }

    pub(super) async fn pose_question(
        &mut self,
        need: tasks::Need,
        prompt: types::Message,
        timeout_ms: Option<u64>,
        form: QuestionForm,
    ) -> Result<Resource<PendingQuestion>, Failure> {
        self.require_outside_step("ask the client")?;
        if self.open_questions >= MAX_QUESTIONS {
            let why = "ask: too many questions are open; wait for the answer to one, or drop one";
            return Err(Failure::Exhausted(why.to_owned()));
        }
        let asking = self.asking(need, prompt, timeout_ms, form).await?;
        let mut question = PendingQuestion::default();
        if self.is_replayed() {
            // An earlier run may have received the answer.
            question.later = Some(asking.boxed());
        } else {
            question.asking.spawn(asking);
        }
        let handle = self.table.push(question).map_err(|_| {
            Failure::Exhausted("ask: too many handles are open; drop some".to_owned())
        })?;
        self.open_questions += 1;
        Ok(handle)
    }

    /// Converts an answer for the guest, and applies the capabilities of the client that sent it.
    fn answer_to_guest(&mut self, answer: ClientAnswer) -> types::Message {
        self.client = answer.client;
        message_to_guest(&answer.message)
    }

    /// Emits the rest of the artifacts that the redaction has held back.
    pub(crate) async fn tell_rest(&mut self) {
        let rest = self.redaction.flush();
        if let Some(port) = self.ports.tasks.clone().filter(|_| !rest.is_empty()) {
            // A finished task does not take the rest.
            let _ = port.emit(rest).await;
        }
    }
}

/// Form in which a question reaches the client.
pub(super) enum QuestionForm {
    /// The agent does nothing until it has the answer.
    Blocking,
    /// The agent works on.
    Posed,
    /// The agent works on, and its program requests permission for this.
    Request(PermissionRequest),
}

/// Refuses a message that is too long for `end` or `ask`.
pub(super) fn require_short_message(action: &str, bytes: usize) -> Result<(), Failure> {
    if bytes <= MAX_MESSAGE {
        return Ok(());
    }
    Err(Failure::Exhausted(format!(
        "{action}: the message is {bytes} bytes long, and {MAX_MESSAGE} are taken; emit what is longer as an artifact, in pieces (`append`)"
    )))
}

/// Joins the text parts of a message.
fn text_of(message: &types::Message) -> String {
    let text = message.parts.iter().filter_map(|part| match &part.content {
        types::PartContent::Text(text) => Some(text.as_str()),
        types::PartContent::Raw(_) | types::PartContent::Url(_) | types::PartContent::Data(_) => {
            None
        }
    });
    text.collect::<Vec<_>>().join(" ")
}

/// Weight of an event in bytes: its size in the log, its frame, and the memory of its values.
pub(super) fn weight(value: &impl Serialize, values: u64) -> u64 {
    FRAME + values + json_bytes(value)
}

/// Memory of the parts and JSON values of an event in bytes, independent of the length of their
/// texts.
fn values_of(event: &Emitted) -> u64 {
    match event {
        Emitted::Working { message, metadata } => {
            let message = message.as_ref();
            let of = |message: &Message| values_of_parts(&message.parts, message.metadata.as_ref());
            message.map_or(0, of) + values_of_parts(&[], metadata.as_ref())
        }
        Emitted::Artifact { artifact, .. } => {
            values_of_parts(&artifact.parts, artifact.metadata.as_ref())
        }
    }
}

pub(super) fn values_of_parts(parts: &[Part], metadata: Option<&Metadata>) -> u64 {
    let of_metadata = |members: &Metadata| members.values().map(values_of_json).sum::<u64>();
    let of_part = |part: &Part| {
        let data = match &part.content {
            Content::Data(data) => values_of_json(data),
            Content::Text(_) | Content::Raw(_) | Content::Url(_) => 0,
        };
        PART + data + part.metadata.as_ref().map_or(0, of_metadata)
    };
    parts.iter().map(of_part).sum::<u64>() + metadata.map_or(0, of_metadata)
}

/// Recursion is bounded, because the depth of a guest's JSON is limited.
pub(super) fn values_of_json(value: &Value) -> u64 {
    VALUE
        + match value {
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
            Value::Array(items) => items.iter().map(values_of_json).sum(),
            Value::Object(members) => members.values().map(values_of_json).sum(),
        }
}

impl HostQuestion for GuestState {
    async fn pose(
        &mut self,
        need: tasks::Need,
        prompt: types::Message,
        timeout_ms: Option<u64>,
    ) -> wasmtime::Result<Result<Resource<PendingQuestion>, types::Failure>> {
        let question = self.pose_question(need, prompt, timeout_ms, QuestionForm::Posed).await;
        Ok(question.map_err(failure_to_guest))
    }

    async fn answer(
        &mut self,
        question: Resource<PendingQuestion>,
    ) -> wasmtime::Result<Result<types::Message, types::Failure>> {
        let identity = CallIdentity::new("question.answer", "");
        let mut question = self.table.delete(question)?;
        self.open_questions -= 1;
        if let Some(recorded) = self.recall(&identity)? {
            let JournalAnswer::Reply(answer) = recorded else { return Err(mixed_up()) };
            return Ok(answer.map(|answer| self.answer_to_guest(answer)).map_err(failure_to_guest));
        }
        let cancel = self.cancel.clone();
        let answer = async {
            tokio::select! {
                answer = question.answered() => answer.clone(),
                () = cancel.cancelled() => Err(Failure::Cancelled),
            }
        };
        let answer = lending(self.ports.tasks.clone(), WaitsFor::Client, answer).await;
        self.record_answer(identity, JournalAnswer::Reply(answer.clone())).await?;
        Ok(answer.map(|answer| self.answer_to_guest(answer)).map_err(failure_to_guest))
    }

    async fn drop(&mut self, question: Resource<PendingQuestion>) -> wasmtime::Result<()> {
        // Withdrawn before the guest's next call.
        let mut question = self.table.delete(question)?;
        self.open_questions -= 1;
        question.asking.shutdown().await;
        Ok(())
    }
}

// The types interface of the contract has no functions.
impl types::Host for GuestState {}

impl Host for GuestState {
    async fn emit(&mut self, event: types::Event) -> wasmtime::Result<Result<(), types::Failure>> {
        Ok(self.emit_events(vec![event]).await?.map_err(failure_to_guest))
    }

    async fn emit_all(
        &mut self,
        events: Vec<types::Event>,
    ) -> wasmtime::Result<Result<(), types::Failure>> {
        Ok(self.emit_events(events).await?.map_err(failure_to_guest))
    }

    async fn ask(
        &mut self,
        need: tasks::Need,
        prompt: types::Message,
        timeout_ms: Option<u64>,
    ) -> wasmtime::Result<Result<types::Message, types::Failure>> {
        let identity = CallIdentity::new("ask", &text_of(&prompt));
        if let Err(why) = self.require_outside_step("ask the client") {
            return Ok(Err(failure_to_guest(why)));
        }
        let answer = match self.recall(&identity)? {
            Some(JournalAnswer::Reply(answer)) => answer,
            Some(_) => return Err(mixed_up()),
            None => {
                let answer = self.ask_client(need, prompt, timeout_ms).await;
                self.record_answer(identity, JournalAnswer::Reply(answer.clone())).await?;
                answer
            }
        };
        Ok(answer.map(|answer| self.answer_to_guest(answer)).map_err(failure_to_guest))
    }

    async fn request_permission(
        &mut self,
        facts: types::Json,
        prompt: types::Message,
        timeout_ms: Option<u64>,
    ) -> wasmtime::Result<Result<tasks::Permission, types::Failure>> {
        let permission = self.decide_permission(&facts, prompt, timeout_ms).await;
        Ok(permission.map_err(failure_to_guest))
    }

    async fn permission_denial(
        &mut self,
        facts: types::Json,
    ) -> wasmtime::Result<Result<Option<String>, types::Failure>> {
        let reason = match self.read_request(&facts).await {
            Ok(request) => self.apply_rules(&request, true).await,
            Err(why) => Err(why),
        };
        let reason = reason.map(|reply| match reply {
            Some(RuleReply::Denied(reason)) => Some(reason),
            Some(RuleReply::Allowed(_)) | None => None,
        });
        Ok(reason.map_err(failure_to_guest))
    }

    async fn next_message(
        &mut self,
        timeout_ms: Option<u32>,
    ) -> wasmtime::Result<Result<types::Message, types::Failure>> {
        let identity = CallIdentity::new("next-message", "");
        let action = "read a message";
        let port = match (self.require_outside_step(action), self.ports.tasks.clone()) {
            (Ok(()), Some(port)) => port,
            (Err(why), _) => return Ok(Err(failure_to_guest(why))),
            (Ok(()), None) => {
                let why = format!("{action}: there is no task in this call");
                return Ok(Err(failure_to_guest(Failure::Unsupported(why))));
            }
        };
        let message = match self.recall(&identity)? {
            Some(JournalAnswer::Message(message)) => message,
            Some(_) => return Err(mixed_up()),
            None => {
                let (cancel, reads) = (self.cancel.clone(), Arc::clone(&port));
                let timeout = timeout_ms.map(|ms| Duration::from_millis(ms.into()));
                let message = async {
                    tokio::select! {
                        biased;
                        () = cancel.cancelled() => Err(Failure::Cancelled),
                        message = reads.next_message(timeout) => message,
                    }
                };
                // Whoever writes the message may need the run permit.
                let message = lending(Some(port), WaitsFor::Agents, message).await;
                self.record_answer(identity, JournalAnswer::Message(message.clone())).await?;
                message
            }
        };
        Ok(message.map(|message| self.answer_to_guest(message)).map_err(failure_to_guest))
    }

    fn cancelled(&mut self) -> wasmtime::Result<bool> {
        let is_cancelled = self.cancel.is_cancelled();
        if is_cancelled {
            // From now on the guest may end its turn with a program, within the grace period.
            self.program_cancel = CancellationToken::new();
        }
        Ok(is_cancelled)
    }

    fn extensions(&mut self) -> wasmtime::Result<Vec<String>> {
        Ok(self.client.extensions.clone())
    }

    fn accepted_output_modes(&mut self) -> wasmtime::Result<Vec<String>> {
        Ok(self.client.output_modes.clone())
    }
}
