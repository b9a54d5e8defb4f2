//! Steps of a scripted hub.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use crate::host::StepHandle;
use crate::{Failure, StepMode};

/// Results of steps, by key.
pub(super) type StepResults = Rc<RefCell<BTreeMap<String, String>>>;

/// Step of a run on a scripted hub.
pub(crate) struct ScriptedStep {
    steps: StepResults,
    key: String,
    mode: StepMode,
    kept: Option<String>,
}

impl ScriptedStep {
    pub(super) fn begin(steps: &StepResults, key: &str, mode: StepMode) -> Self {
        let kept = steps.borrow().get(key).cloned().filter(|_| mode != StepMode::Again);
        Self { steps: Rc::clone(steps), key: key.to_owned(), mode, kept }
    }
}

impl StepHandle for ScriptedStep {
    fn stored_result(&self) -> Option<String> {
        self.kept.clone()
    }

    fn end(self, kept: &str) -> Result<(), Failure> {
        if self.mode != StepMode::Again {
            self.steps.borrow_mut().insert(self.key, kept.to_owned());
        }
        Ok(())
    }
}
