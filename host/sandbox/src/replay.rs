//! A guest whose run is recorded, so that it can be run again: what it is answered comes from its journal or goes there.

use crate::run_clock::RunClock;
use a2a_hub_core::{
    facts,
    replay::{Asked, Replay},
};
use a2a_hub_protocol::message::{Message, Part, joined_text};
use a2a_hub_runtime::port::{
    journal::{Heard, Journal, JournalPort},
    tasks::Emitted,
};
use std::{collections::BTreeMap, sync::Arc};

/// The guest does something else than its journal says. A trap: nobody goes on from there.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct ReplayDiverged(pub(crate) String);

/// A run that is recorded.
pub(crate) struct Replaying {
    pub(crate) run: Replay<Heard, Emitted>,
    pub(crate) port: Arc<dyn JournalPort>,
    pub(crate) clock: Arc<RunClock>,
    /// What the operator had set when the run began.
    settings: BTreeMap<String, String>,
    /// By what it is known from the other runs on its task; none for the first.
    of_run: Option<u64>,
    /// How many agents it has called.
    calls: u64,
}

impl Replaying {
    pub(crate) fn new(journal: Journal, port: Arc<dyn JournalPort>) -> Self {
        let Journal { began_ms, run: of_run, heard, told, settings, .. } = journal;
        let run = Replay::new(began_ms, heard, told);
        Self { run, port, clock: Arc::new(RunClock::at(began_ms)), settings, of_run, calls: 0 }
    }

    /// What the operator had set when the run began.
    pub(crate) fn setting(&self, name: &str) -> Option<String> {
        self.settings.get(name).cloned()
    }

    /// The id of what it says to a child now.
    pub(crate) fn next_message(&self, child: &str) -> String {
        format!("{child}-{}", self.run.entries())
    }

    /// The name of the next call, by which it is known when the agent runs again. Children of other runs on the task have others.
    pub(crate) fn next_call(&mut self) -> String {
        self.calls += 1;
        match self.of_run {
            Some(run) => format!("#{run}.{}", self.calls),
            None => format!("#{}", self.calls),
        }
    }

    /// What the guest was answered when it asked this in an earlier run, if it did.
    pub(crate) fn recall(&mut self, asked: &Asked) -> Result<Option<Heard>, ReplayDiverged> {
        let heard = self.run.recall(asked).map_err(|why| ReplayDiverged(why.to_string()))?;
        self.clock.follow(&self.run);
        Ok(heard)
    }

    /// What of these events is new: the others the task's log has, from an earlier run.
    pub(crate) fn untold(&mut self, events: Vec<Emitted>) -> Result<Vec<Emitted>, ReplayDiverged> {
        let mut untold = Vec::new();
        for event in events {
            if is_bare(&event) {
                // The hub says the same of its own accord.
                untold.extend(self.run.is_live().then_some(event));
                continue;
            }
            match self.run.tell() {
                None => untold.push(event),
                Some(known) if is_same(&known, &event) => {}
                Some(known) => {
                    return Err(ReplayDiverged(format!(
                        "the agent does not do again what it did before the hub was restarted: then it told {}, and now {}; what an agent does \
                         must follow from what it is answered alone, and everything else stands in a step",
                        name(&known),
                        name(&event)
                    )));
                }
            }
        }
        Ok(untold)
    }
}

/// The journal holds another kind of answer than this question has: somebody wrote into the store.
pub(crate) fn mixed_up() -> wasmtime::Error {
    ReplayDiverged("the journal of this run makes no sense".to_owned()).into()
}

/// Whether it says no more than that the agent is at work.
fn is_bare(event: &Emitted) -> bool {
    match event {
        Emitted::Working { message, metadata } => {
            message.is_none() && metadata.clone().and_then(facts::of_agent).is_none()
        }
        Emitted::Artifact { .. } => false,
    }
}

/// Whether the log has the same, but for what the hub makes up: ids and places.
fn is_same(known: &Emitted, event: &Emitted) -> bool {
    let parts = |message: &Option<Message>| message.as_ref().map(|it| it.parts.clone());
    match (known, event) {
        (
            Emitted::Working { message: known, metadata: facts_known },
            Emitted::Working { message, metadata },
        ) => {
            let metadata = metadata.clone().and_then(facts::of_agent);
            parts(known) == parts(message) && *facts_known == metadata
        }
        (Emitted::Artifact { artifact: known, .. }, Emitted::Artifact { artifact, .. }) => {
            known.artifact_id == artifact.artifact_id && known.parts == artifact.parts
        }
        (Emitted::Working { .. }, Emitted::Artifact { .. })
        | (Emitted::Artifact { .. }, Emitted::Working { .. }) => false,
    }
}

/// What people are told of an event.
fn name(event: &Emitted) -> String {
    let text = |parts: &[Part]| joined_text(parts).chars().take(80).collect::<String>();
    match event {
        Emitted::Working { message, .. } => {
            format!("the status “{}”", text(message.as_ref().map_or(&[], |it| &it.parts)))
        }
        Emitted::Artifact { artifact, .. } => {
            format!("“{}” in the artifact `{}`", text(&artifact.parts), artifact.artifact_id)
        }
    }
}
