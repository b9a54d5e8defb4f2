//! Recorded run of a guest, which can be replayed: answers come from its journal or are added to
//! it.

use crate::store::replay_clock::RunClock;
use a2a_hub_core::task::{
    metadata,
    replay::{CallIdentity, Replay},
};
use a2a_hub_protocol::message::{Message, Part, joined_text};
use a2a_hub_runtime::port::{
    journal::{Journal, JournalAnswer, JournalPort},
    tasks::Emitted,
};
use std::{collections::BTreeMap, sync::Arc};

/// The guest deviates from its journal. This is a trap: the run cannot continue.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct ReplayDiverged(pub(crate) String);

/// A recorded run.
pub(crate) struct Replaying {
    pub(crate) run: Replay<JournalAnswer, Emitted>,
    pub(crate) port: Arc<dyn JournalPort>,
    pub(crate) clock: Arc<RunClock>,
    /// The operator's settings at the start of the run.
    settings: BTreeMap<String, String>,
    /// Number of this run among those of its task; none for the first.
    of_run: Option<u64>,
    /// Number of agents called so far.
    calls: u64,
}

impl Replaying {
    pub(crate) fn new(journal: Journal, port: Arc<dyn JournalPort>) -> Self {
        let Journal { began_ms, run: of_run, answers, emitted: events, settings, .. } = journal;
        let run = Replay::new(began_ms, answers, events);
        Self { run, port, clock: Arc::new(RunClock::at(began_ms)), settings, of_run, calls: 0 }
    }

    /// The operator's setting at the start of the run.
    pub(crate) fn setting(&self, name: &str) -> Option<String> {
        self.settings.get(name).cloned()
    }

    /// Id of the next message to a child.
    pub(crate) fn next_message(&self, child: &str) -> String {
        format!("{child}-{}", self.run.entries())
    }

    /// Key of the next call, stable across replays. Children of other runs of the task have other
    /// keys.
    pub(crate) fn next_call(&mut self) -> String {
        self.calls += 1;
        match self.of_run {
            Some(run) => format!("#{run}.{}", self.calls),
            None => format!("#{}", self.calls),
        }
    }

    /// Recorded answer to this request, if any.
    pub(crate) fn recall(
        &mut self,
        identity: &CallIdentity,
    ) -> Result<Option<JournalAnswer>, ReplayDiverged> {
        let recorded = self.run.recall(identity).map_err(|why| ReplayDiverged(why.to_string()))?;
        self.clock.follow(&self.run);
        Ok(recorded)
    }

    /// The new ones among these events; the others are in the task's log from an earlier run.
    pub(crate) fn untold(&mut self, events: Vec<Emitted>) -> Result<Vec<Emitted>, ReplayDiverged> {
        let mut untold = Vec::new();
        for event in events {
            if is_bare(&event) {
                // The hub sends the same event itself.
                untold.extend(self.run.is_live().then_some(event));
                continue;
            }
            match self.run.replay_event() {
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

/// The journal has another kind of answer than this request: the store was changed by somebody.
pub(crate) fn mixed_up() -> wasmtime::Error {
    ReplayDiverged("the journal of this run makes no sense".to_owned()).into()
}

/// True for a status without message and facts.
fn is_bare(event: &Emitted) -> bool {
    match event {
        Emitted::Working { message, metadata } => {
            message.is_none() && metadata.clone().and_then(metadata::of_agent).is_none()
        }
        Emitted::Artifact { .. } => false,
    }
}

/// True if both events are equal except for ids and positions that the hub assigns.
fn is_same(known: &Emitted, event: &Emitted) -> bool {
    let parts = |message: &Option<Message>| message.as_ref().map(|it| it.parts.clone());
    match (known, event) {
        (
            Emitted::Working { message: known, metadata: facts_known },
            Emitted::Working { message, metadata },
        ) => {
            let metadata = metadata.clone().and_then(metadata::of_agent);
            parts(known) == parts(message) && *facts_known == metadata
        }
        (Emitted::Artifact { artifact: known, .. }, Emitted::Artifact { artifact, .. }) => {
            known.artifact_id == artifact.artifact_id && known.parts == artifact.parts
        }
        (Emitted::Working { .. }, Emitted::Artifact { .. })
        | (Emitted::Artifact { .. }, Emitted::Working { .. }) => false,
    }
}

/// Description of an event for people.
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
