//! What an agent tells about its task: statuses, pieces of artifacts, questions. Counted, in order, and waiting while
//! too many are on their way. And what it is told of its client.

use crate::{
    bindings::a2a::hub::{
        tasks::{self, Host, HostQuestion},
        types,
    },
    convert::{event_from_guest, failure_to_guest, message_from_guest, message_to_guest},
    redaction::Hide as _,
    resources::Question,
    state::State,
};
use a2a_hub_runtime::{
    Failure,
    port::tasks::{Answer, Need},
};
use serde::Serialize;
use std::{io, time::Duration};
use wasmtime::component::Resource;

/// What an event costs besides its contents, in bytes: its place in the log, and the time.
const FRAME: u64 = 64;

impl State {
    async fn emit_events(&mut self, events: Vec<types::Event>) -> Result<(), Failure> {
        let Some(port) = self.ports.tasks.clone() else {
            return Err(Failure::Unsupported("emit: there is no task in this call".to_owned()));
        };
        if self.cancel.is_cancelled() {
            return Err(Failure::Cancelled);
        }
        let mut events = events.into_iter().map(event_from_guest).collect::<Result<Vec<_>, _>>()?;
        for event in &events {
            self.output.take(1, weight(event))?;
        }
        events.iter_mut().for_each(|event| self.redaction.emitted(event));
        tokio::select! {
            emitted = port.emit(events) => emitted,
            () = self.cancel.cancelled() => Err(Failure::Cancelled),
        }
    }
}

impl State {
    /// Waits for the client's answer to a question of the guest's, once it is polled.
    fn asking(
        &mut self,
        need: tasks::Need,
        prompt: types::Message,
        timeout_ms: Option<u64>,
    ) -> Result<impl Future<Output = Result<Answer, Failure>> + Send + use<>, Failure> {
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
        let mut prompt = message_from_guest(prompt)?;
        // Two events: that the task waits, and, answered or not, that it goes on.
        self.output.take(2, weight(&prompt) + FRAME)?;
        prompt.hide(&self.redaction.secrets);
        let timeout = timeout_ms.map(Duration::from_millis);
        Ok(async move { port.ask(need, prompt, timeout).await })
    }

    fn pose_question(
        &mut self,
        need: tasks::Need,
        prompt: types::Message,
        timeout_ms: Option<u64>,
    ) -> Result<Resource<Question>, Failure> {
        let asking = self.asking(need, prompt, timeout_ms)?;
        let mut question = Question::default();
        question.asking.spawn(asking);
        self.table
            .push(question)
            .map_err(|_| Failure::Exhausted("ask: too many handles are open; drop some".to_owned()))
    }

    /// What the guest hears of an answer: the message, and what its client can do with what comes next.
    fn heard(&mut self, answer: Answer) -> types::Message {
        self.client = answer.client;
        message_to_guest(&answer.message)
    }

    /// Tells what of its artifacts was held back so far.
    pub(crate) async fn tell_rest(&mut self) {
        let rest = self.redaction.rest();
        if let Some(port) = self.ports.tasks.clone().filter(|_| !rest.is_empty()) {
            // A task that is over needs none of it.
            let _ = port.emit(rest).await;
        }
    }
}

/// What something told weighs, in bytes: all that the log will hold of it, and its frame.
fn weight(told: &impl Serialize) -> u64 {
    let mut bytes = Counted(FRAME);
    // It could fail by its writer, or by a key that is no text: there is neither.
    let _ = serde_json::to_writer(&mut bytes, told);
    bytes.0
}

/// Counts what is written.
struct Counted(u64);

impl io::Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl HostQuestion for State {
    async fn pose(
        &mut self,
        need: tasks::Need,
        prompt: types::Message,
        timeout_ms: Option<u64>,
    ) -> wasmtime::Result<Result<Resource<Question>, types::Failure>> {
        Ok(self.pose_question(need, prompt, timeout_ms).map_err(failure_to_guest))
    }

    async fn answer(
        &mut self,
        question: Resource<Question>,
    ) -> wasmtime::Result<Result<types::Message, types::Failure>> {
        let cancel = self.cancel.clone();
        let mut question = self.table.delete(question)?;
        let answer = tokio::select! {
            answer = question.answered() => answer.clone(),
            () = cancel.cancelled() => Err(Failure::Cancelled),
        };
        Ok(answer.map(|answer| self.heard(answer)).map_err(failure_to_guest))
    }

    async fn drop(&mut self, question: Resource<Question>) -> wasmtime::Result<()> {
        // Withdrawn before the guest says anything more.
        self.table.delete(question)?.asking.shutdown().await;
        Ok(())
    }
}

// The nouns of the contract have no functions.
impl types::Host for State {}

impl Host for State {
    async fn emit(&mut self, event: types::Event) -> wasmtime::Result<Result<(), types::Failure>> {
        Ok(self.emit_events(vec![event]).await.map_err(failure_to_guest))
    }

    async fn emit_all(
        &mut self,
        events: Vec<types::Event>,
    ) -> wasmtime::Result<Result<(), types::Failure>> {
        Ok(self.emit_events(events).await.map_err(failure_to_guest))
    }

    async fn ask(
        &mut self,
        need: tasks::Need,
        prompt: types::Message,
        timeout_ms: Option<u64>,
    ) -> wasmtime::Result<Result<types::Message, types::Failure>> {
        let cancel = self.cancel.clone();
        let answer = async {
            let asking = self.asking(need, prompt, timeout_ms)?;
            let answer = tokio::select! {
                answer = asking => answer?,
                () = cancel.cancelled() => return Err(Failure::Cancelled),
            };
            Ok(self.heard(answer))
        };
        Ok(answer.await.map_err(failure_to_guest))
    }

    fn cancelled(&mut self) -> wasmtime::Result<bool> {
        Ok(self.cancel.is_cancelled())
    }

    fn extensions(&mut self) -> wasmtime::Result<Vec<String>> {
        Ok(self.client.extensions.clone())
    }

    fn accepted_output_modes(&mut self) -> wasmtime::Result<Vec<String>> {
        Ok(self.client.output_modes.clone())
    }
}
