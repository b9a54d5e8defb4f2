//! Turns of interactions: tasks of their agents, and what came of them.

use serde_json::{Map, Value};

use super::schema;

/// Task of one agent in an interaction.
#[derive(Clone, Debug)]
pub(super) struct Turn {
    pub(super) agent: String,
    pub(super) kind: TurnKind,
    /// Text behind the prompt.
    pub(super) request: String,
}

#[derive(Clone, Debug)]
pub(super) enum TurnKind {
    /// An answer by this JSON schema. The agent only reads.
    Answer(Value),
    /// The work of the prompt.
    Work,
}

impl Turn {
    pub(super) fn answer<'m>(
        agent: String,
        members: impl IntoIterator<Item = (&'m str, Value)>,
        request: String,
    ) -> Self {
        let members = members.into_iter().map(|(name, schema)| (name.to_owned(), schema));
        let members: Map<_, _> = members.collect();
        Self { agent, kind: TurnKind::Answer(schema::object(members)), request }
    }

    pub(super) fn work(agent: String, request: String) -> Self {
        Self { agent, kind: TurnKind::Work, request }
    }

    /// Drops the request of a turn that is over.
    pub(super) fn close(&mut self) {
        self.request = String::new();
    }

    /// JSON schema of the answer; none for work.
    pub(super) fn schema(&self) -> Option<&Value> {
        match &self.kind {
            TurnKind::Answer(schema) => Some(schema),
            TurnKind::Work => None,
        }
    }
}

/// Time limits of one batch of turns.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TurnLimits {
    /// Time for the answers.
    pub(super) answer_ms: Option<u64>,
    /// Time for the work of a leader.
    pub(super) work_ms: Option<u64>,
}

/// Change of a blackboard by an agent at work.
#[derive(Clone, Debug)]
pub(super) struct MidTurnChange {
    /// Index of the agent's turn.
    pub(super) turn: usize,
    /// Id of the change.
    pub(super) id: String,
    pub(super) contribution: Value,
}

/// End of an interaction.
#[derive(Clone, Debug)]
pub(super) struct Verdict {
    /// Failure reason; none if the step completes.
    pub(super) failure: Option<&'static str>,
    pub(super) text: String,
    pub(super) output: Value,
}
