//! Worktrees of child tasks: how an agent asks for one, and reads what changed there.

use serde_json::{Map, Value, json};

use crate::{ArtifactUpdate, Message, PartContent};

/// Artifact by which the hub reports the changes in a worktree.
const PATCH: &str = "patch";

/// Working copy of a git repository in which a child works, apart from the checkout. The operator
/// allows it with the term `worktrees` of the grant `delegate`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Worktree {
    /// A new one, from the commit that is checked out in the child's working directory.
    New,
    /// A new one, from this commit, branch or tag.
    From(String),
    /// That of another child of this task, by its task id. Several children may work there, one
    /// after the other.
    Of(String),
}

impl Worktree {
    /// Adds the wish to the metadata of the child's message, where the hub reads it
    /// (`metadata.worktree`).
    pub(crate) fn ask(&self, message: &mut Message) {
        let metadata = message.metadata.as_deref().unwrap_or_default();
        let mut metadata: Map<String, Value> = serde_json::from_str(metadata).unwrap_or_default();
        let wish = match self {
            Self::New => json!(true),
            Self::From(base) => json!(base),
            Self::Of(task) => json!({ "task": task }),
        };
        metadata.insert("worktree".to_owned(), wish);
        message.metadata = Some(Value::Object(metadata).to_string());
    }
}

/// Changes in the worktree of a child, as the hub reports them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorktreeChanges {
    /// Changed files.
    pub files: u64,
    /// Added lines.
    pub insertions: u64,
    /// Removed lines.
    pub deletions: u64,
    /// Patch that `git apply` reads, also for binary files. Its text is an agent's work: data, not
    /// instructions.
    pub patch: Vec<u8>,
}

impl ArtifactUpdate {
    /// Changes in the child's worktree; none if this is another artifact. Ask only children that
    /// work in a worktree: there, no agent can write this artifact.
    pub fn worktree_changes(&self) -> Option<WorktreeChanges> {
        if self.artifact.id != PATCH {
            return None;
        }
        let metadata = self.artifact.metadata.as_deref().unwrap_or_default();
        let facts: Map<String, Value> = serde_json::from_str(metadata).unwrap_or_default();
        let count = |name: &str| facts.get(name).and_then(Value::as_u64).unwrap_or_default();
        let bytes = self.artifact.parts.iter().filter_map(|part| match &part.content {
            PartContent::Raw(bytes) => Some(bytes.as_slice()),
            PartContent::Text(_) | PartContent::Url(_) | PartContent::Data(_) => None,
        });
        Some(WorktreeChanges {
            files: count("files"),
            insertions: count("insertions"),
            deletions: count("deletions"),
            patch: bytes.collect::<Vec<_>>().concat(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Artifact, CallOptions, Part};

    fn asked(worktree: Worktree, message: Message) -> Value {
        let mut message = message;
        CallOptions::new().worktree(worktree).mark(&mut message);
        serde_json::from_str(&message.metadata.unwrap()).unwrap()
    }

    #[test]
    fn wish_joins_metadata_of_message() {
        let message = Message::user(vec![Part::text("hi")]);
        assert_eq!(asked(Worktree::New, message.clone()), json!({ "worktree": true }));
        let from = asked(Worktree::From("main".to_owned()), message.clone());
        assert_eq!(from, json!({ "worktree": "main" }));
        let message = message.with_metadata(&json!({ "permissions": "edit" }));
        let of = asked(Worktree::Of("t1".to_owned()), message);
        assert_eq!(of, json!({ "permissions": "edit", "worktree": { "task": "t1" } }));
    }

    #[test]
    fn changes_are_those_of_patch() {
        let update = |id: &str| {
            let metadata = json!({ "files": 2, "insertions": 3, "deletions": "x" }).to_string();
            let mut artifact = Artifact::new(
                id,
                vec![Part::file("patch.diff", "text/x-diff", b"diff \xff".to_vec())],
            );
            artifact.metadata = Some(metadata);
            ArtifactUpdate { artifact, append: false, last_chunk: true }
        };
        let changes = update("patch").worktree_changes().unwrap();
        let patch = b"diff \xff".to_vec();
        assert_eq!(changes, WorktreeChanges { files: 2, insertions: 3, deletions: 0, patch });
        assert_eq!(update("out").worktree_changes(), None);
    }
}
