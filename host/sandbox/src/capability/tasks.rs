//! What an agent tells about its task: statuses, pieces of artifacts, questions. Counted, in order, and waiting while
//! too many are on their way. And what it is told of its client.

use crate::{
    bindings::a2a::hub::{
        tasks::{self, Host},
        types,
    },
    convert::{event_from_guest, failure_to_guest, message_from_guest, message_to_guest},
    redaction::Hide as _,
    state::State,
};
use a2a_hub_runtime::{Failure, port::tasks::Need};
use serde::Serialize;
use std::{io, time::Duration};

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
        let answer = async {
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
            let answer = tokio::select! {
                answer = port.ask(need, prompt, timeout_ms.map(Duration::from_millis)) => answer?,
                () = self.cancel.cancelled() => return Err(Failure::Cancelled),
            };
            self.client = answer.client;
            Ok(message_to_guest(&answer.message))
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
