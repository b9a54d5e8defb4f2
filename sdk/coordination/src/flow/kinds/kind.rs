//! The interface of a kind of steps: how its keys are read, and what the rest of a flow asks of
//! its work.

use std::fmt::Debug;

use serde_json::{Map, Value};

use crate::flow::{
    position::{Problems, Table},
    program::StepProgram,
    row::{CallFailure, Row},
    scope::{TextScope, Texts},
    text::one_line,
    turn::Turn,
};

/// Key of a step that says its kind.
pub(in crate::flow) struct KindKey<W: 'static> {
    pub(in crate::flow) name: &'static str,
    /// Keys beside it, which steps of other kinds may not have.
    pub(in crate::flow) with: &'static [&'static str],
    /// Reads the keys; none if one has an error.
    pub(in crate::flow) parse: fn(&mut StepReader<'_, '_, '_, '_>) -> Option<W>,
}

/// A step whose keys are read.
pub(in crate::flow) struct StepReader<'r, 'a, 't, 'p> {
    /// Key that says the kind.
    pub(in crate::flow) key: &'static str,
    pub(in crate::flow) table: &'r Table<'a, 't>,
    /// Variables of its texts.
    pub(in crate::flow) scope: TextScope,
    /// Texts that were read, with their variables.
    pub(in crate::flow) texts: &'r mut Texts,
    pub(in crate::flow) problems: &'r mut Problems<'p>,
}

/// Work of a step. The defaults are those of a step that calls nobody.
pub(in crate::flow) trait StepKind: Debug {
    /// Agents and flows that it calls.
    fn agents(&self) -> &[String] {
        &[]
    }

    /// Agent or flow that does an item at first; empty if it calls none, or each turn names one.
    fn agent(&self, item: usize) -> &str {
        let _ = item;
        ""
    }

    /// Number of items of a step without `for_each`, all of which are done at the same time.
    fn items(&self) -> usize {
        1
    }

    /// Permissions of the agents that do the work.
    fn permissions(&self) -> Option<&str> {
        None
    }

    /// Program that it runs.
    fn program(&self) -> Option<&StepProgram> {
        None
    }

    /// True if each attempt is a task, which the budget of the flow counts.
    fn calls(&self) -> bool {
        true
    }

    /// True if it calls an agent or a flow for its own answer. Such a step has a memory.
    fn is_delegated(&self) -> bool {
        false
    }

    /// True if several agents decide, and those that fail or are late do not count.
    fn decides(&self) -> bool {
        false
    }

    /// Short text about the work.
    fn label(&self) -> String;

    /// Short text for the progress of a step that starts.
    fn progress(&self) -> String {
        one_line(&self.label())
    }

    /// Brackets of its node in a chart of Mermaid.
    fn brackets(&self) -> (&'static str, &'static str);

    /// Record for templates, if it is another than that of its items.
    fn record(&self, row: &Row, items: &[Value]) -> Option<Value> {
        let _ = (row, items);
        None
    }

    /// Content of the next attempt of an item.
    ///
    /// # Errors
    ///
    /// If a text cannot be rendered, or a program gets too much.
    fn attempt(&self, values: &AttemptValues<'_>) -> Result<Attempt, CallFailure>;
}

/// Values of a flow for one attempt of an item. Those that cost something are made on demand.
pub(in crate::flow) struct AttemptValues<'a> {
    /// Variables of texts.
    pub(in crate::flow) variables: &'a dyn Fn() -> minijinja::Value,
    /// Variables of a program's environment.
    pub(in crate::flow) environment: &'a dyn Fn() -> Result<Map<String, Value>, String>,
    /// JSON schema of the answer.
    pub(in crate::flow) output: Option<&'a Value>,
    /// Reason why the last answer does not fit the schema.
    pub(in crate::flow) correction: Option<&'a String>,
    /// Turn of an interaction.
    pub(in crate::flow) turn: Option<&'a Turn>,
}

/// Content of an attempt.
pub(in crate::flow) enum Attempt {
    /// A task of the item's agent.
    Call { text: String, data: Option<Value>, rights: CallRights },
    /// A program with its environment.
    Run { data: Value },
    /// A question to the client.
    Ask { text: String },
    /// A pause.
    Wait { ms: u64 },
    /// A choice among the candidates of another step, which are in the state of the flow.
    Pick,
}

/// Permissions of a task.
pub(in crate::flow) enum CallRights {
    /// Those of the step. Without any, the task asks if another step of the flow does not.
    OfStep(Option<String>),
    /// The task only reads.
    ReadOnly,
}

/// Failure of an attempt whose text cannot be rendered.
pub(super) fn template_failure(text: String) -> CallFailure {
    CallFailure { reason: "template".to_owned(), text }
}
