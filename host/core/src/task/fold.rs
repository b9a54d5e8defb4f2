//! Fold of a task's events, with an index of the artifacts: the cost of an event does not depend on
//! the number of artifacts.

use crate::task::state::{self, IllegalEvent};
use a2a_hub_protocol::{
    event::TaskEvent,
    id::ArtifactId,
    task::{Artifact, Task, TaskStatus},
};
use std::collections::HashMap;

/// Number of artifacts up to which a search costs less than an index: most tasks have one or two,
/// and need no memory for more.
const FEW: usize = 16;

/// A task with all events so far, to which further ones are applied.
#[derive(Clone, Debug)]
pub struct TaskFold {
    task: Task,
    index: ArtifactIndex,
}

/// Positions of a task's artifacts by their ids; empty for up to [`FEW`] artifacts. The hash is
/// keyed at random, because agents choose the ids (CWE-407).
#[derive(Clone, Debug, Default)]
struct ArtifactIndex {
    positions: HashMap<ArtifactId, usize>,
    /// Number of ids that were compared in a search.
    #[cfg(test)]
    compared: std::cell::Cell<usize>,
}

impl TaskFold {
    /// Creates a fold that begins with this task, such as a stored one.
    pub fn new(task: Task) -> Self {
        let mut index = ArtifactIndex::default();
        index.extend(&task.artifacts);
        Self { task, index }
    }

    /// The task with all applied events.
    pub fn task(&self) -> &Task {
        &self.task
    }

    /// Status of the task, to change it without an event.
    pub fn status_mut(&mut self) -> &mut TaskStatus {
        &mut self.task.status
    }

    /// Ends the fold.
    pub fn into_task(self) -> Task {
        self.task
    }

    /// Artifact of the task with this id.
    pub fn artifact(&self, id: &ArtifactId) -> Option<&Artifact> {
        self.task.artifacts.get(self.position(id)?)
    }

    /// Clears `append` on the first chunk of an artifact: some clients drop a chunk that appends to
    /// an unknown artifact.
    pub fn begin_artifact(&self, event: &mut TaskEvent) {
        if let TaskEvent::Artifact(update) = event {
            update.append &= self.position(&update.artifact.artifact_id).is_some();
        }
    }

    /// Applies the next event.
    ///
    /// # Errors
    ///
    /// If the state of the task does not allow the event; the task is unchanged.
    pub fn apply(&mut self, event: &TaskEvent) -> Result<(), IllegalEvent> {
        let known = match event {
            TaskEvent::Artifact(update) => self.position(&update.artifact.artifact_id),
            TaskEvent::Created(_)
            | TaskEvent::Status(_)
            | TaskEvent::Input(_)
            | TaskEvent::Reply(_) => None,
        };
        state::apply_at(&mut self.task, known, event)?;
        self.index.extend(&self.task.artifacts);
        Ok(())
    }

    fn position(&self, id: &ArtifactId) -> Option<usize> {
        self.index.position(&self.task.artifacts, id)
    }
}

impl ArtifactIndex {
    fn position(&self, artifacts: &[Artifact], id: &ArtifactId) -> Option<usize> {
        if artifacts.len() > FEW {
            return self.positions.get(id).copied();
        }
        artifacts.iter().position(|known| {
            #[cfg(test)]
            self.compared.update(|compared| compared + 1);
            known.artifact_id == *id
        })
    }

    /// Adds the artifacts at the end of the list that the index lacks.
    fn extend(&mut self, artifacts: &[Artifact]) {
        if artifacts.len() <= FEW {
            return;
        }
        // An id is unique in its task, so the size of the index is the number of indexed artifacts.
        for (position, artifact) in artifacts.iter().enumerate().skip(self.positions.len()) {
            self.positions.entry(artifact.artifact_id.clone()).or_insert(position);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_hub_protocol::{
        event::ArtifactUpdate,
        id::{ContextId, TaskId},
        message::Part,
        task::TaskState,
    };
    use proptest::prelude::*;

    fn fold() -> TaskFold {
        let (message, timestamp) = (None, String::new());
        TaskFold::new(Task {
            id: TaskId::new("t"),
            context_id: ContextId::new("c"),
            status: TaskStatus { state: TaskState::Working, message, timestamp },
            artifacts: Vec::new(),
            history: Vec::new(),
            metadata: None,
        })
    }

    fn chunk(id: usize, text: &str, append: bool) -> TaskEvent {
        let id = ArtifactId::new(format!("artifact {id}"));
        let artifact = Artifact::new(id, vec![Part::text(text)]);
        TaskEvent::Artifact(ArtifactUpdate { artifact, append, last_chunk: false })
    }

    /// With a search through all artifacts, this takes minutes: 20 thousand million comparisons.
    #[test]
    fn many_artifacts_are_not_searched() {
        const MANY: usize = 100_000;
        let mut fold = fold();
        for text in ["a", "b"] {
            for id in 0..MANY {
                let mut event = chunk(id, text, true);
                fold.begin_artifact(&mut event);
                fold.apply(&event).unwrap();
            }
        }
        assert!(fold.index.compared.get() <= 2 * FEW * FEW, "{:?}", fold.index.compared);
        assert_eq!(fold.index.positions.len(), MANY);
        let wrong = fold.task.artifacts.iter().find(|it| it.parts != [Part::text("ab")]);
        assert_eq!(wrong, None);
    }

    #[test]
    fn few_artifacts_have_no_index() {
        let mut fold = fold();
        (0..FEW).for_each(|id| fold.apply(&chunk(id, "a", false)).unwrap());
        assert_eq!(fold.index.positions.capacity(), 0);
    }

    #[test]
    fn first_chunk_begins_its_artifact() {
        let mut fold = fold();
        let appends = [true, true, false, true].map(|append| {
            let mut event = chunk(1, "a", append);
            fold.begin_artifact(&mut event);
            fold.apply(&event).unwrap();
            matches!(event, TaskEvent::Artifact(ArtifactUpdate { append: true, .. }))
        });
        assert_eq!(appends, [false, true, false, true]);
    }

    proptest! {
        /// The fold finds what the search finds, whatever the number of artifacts, and after a
        /// restart from a stored task.
        #[test]
        fn index_agrees_with_search(
            events in proptest::collection::vec((0_usize..40, any::<bool>()), 0..200),
            stored_at in 0_usize..200,
        ) {
            let (mut indexed, mut searched) = (fold(), fold().into_task());
            for (at, (id, append)) in events.into_iter().enumerate() {
                if at == stored_at {
                    indexed = TaskFold::new(indexed.into_task());
                }
                let event = chunk(id, "x", append);
                indexed.apply(&event).unwrap();
                state::apply(&mut searched, &event).unwrap();
                let id = ArtifactId::new(format!("artifact {id}"));
                prop_assert_eq!(indexed.artifact(&id).map(|it| &it.artifact_id), Some(&id));
            }
            prop_assert_eq!(indexed.into_task(), searched);
        }
    }
}
