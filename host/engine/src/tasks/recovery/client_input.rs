//! Client's input to an unfinished task, read again from the task's log.

use crate::conversations::pending_messages::PendingMessages;
use crate::tasks::command::{PendingInputs, RunInput};
use a2a_hub_core::task::metadata;
use a2a_hub_protocol::{
    client::ClientCapabilities,
    event::TaskEvent,
    message::{Message, Role},
    task::Task,
};
use a2a_hub_store::{StorageError, TaskStore};

/// Number of events of a log that are read at once.
const PAGE: usize = 1_000;

/// Client's input to an unfinished task.
#[derive(Default)]
pub(super) struct ClientInput {
    /// Time limit of the client, in milliseconds.
    pub(super) timeout_ms: Option<u64>,
    /// Capabilities of the client.
    pub(super) client: ClientCapabilities,
    /// Index, in the task's history, of the message for a run that begins now.
    pub(super) due: Option<usize>,
    /// Index of the message that the latest run began with.
    pub(super) begun_with: Option<usize>,
    /// Inputs of later runs.
    pub(super) pending_inputs: PendingInputs,
    /// Messages that the latest run has read at work.
    pub(super) read: PendingInputs,
}

impl ClientInput {
    /// Reads the client's input to the task from its log.
    pub(super) async fn read_log(
        storage: &dyn TaskStore,
        task: &Task,
    ) -> Result<Self, StorageError> {
        let mut input = Self::default();
        let mut pending_messages = PendingMessages::default();
        // The first event contains everything, unless more messages followed; a log may be long.
        let of_client = task.history.iter().filter(|sent| sent.role == Role::User);
        let page = if of_client.count() > 1 { PAGE } else { 1 };
        let mut seq = 0;
        loop {
            let events = storage.events(&task.id, seq, page).await?;
            let is_last = page == 1 || events.len() < page;
            for event in events {
                seq = event.seq;
                pending_messages.follow(&event.event);
                if let TaskEvent::Created(created) = event.event {
                    (input.timeout_ms, input.client) = (created.timeout_ms, created.client);
                }
            }
            if is_last {
                break;
            }
        }
        let (due, pending_indexes) = pending_messages.places(task);
        let inputs = |places: Vec<usize>| {
            let known =
                places.into_iter().filter_map(|at| Some((at, task.history.get(at)?.clone())));
            known.map(|message| start(task, input.client.clone(), message)).collect()
        };
        let (pending_inputs, read) = (inputs(pending_indexes), inputs(pending_messages.read(task)));
        let begun_with = pending_messages.begun_with(task);
        Ok(Self { due, begun_with, pending_inputs, read, ..input })
    }
}

/// Input of the agent, from a message of a recovered task and its index in the history.
pub(super) fn start(
    task: &Task,
    client: ClientCapabilities,
    (at, message): (usize, Message),
) -> Box<RunInput> {
    let directory = metadata::working_directory(task);
    Box::new(RunInput { message, client, directory, live: true, goes_on: true, at, by: None })
}
