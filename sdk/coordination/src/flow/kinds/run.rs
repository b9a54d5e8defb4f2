//! Steps with `run`: one program.

use super::kind::{Attempt, AttemptValues, KindKey, StepKind};
use crate::flow::{
    program::{self, StepProgram},
    row::CallFailure,
    text::one_line,
};

pub(super) const KEYS: &[KindKey<StepProgram>] = &[KindKey {
    name: "run",
    with: &["on_exit", "on_restart", "for_each", "retry"],
    parse: |step| program::parse(step.table, step.problems),
}];

impl StepKind for StepProgram {
    fn program(&self) -> Option<&StepProgram> {
        Some(self)
    }

    fn label(&self) -> String {
        format!("runs {}", self.command.join(" "))
    }

    fn progress(&self) -> String {
        format!("runs {}", one_line(&self.command.join(" ")))
    }

    fn brackets(&self) -> (&'static str, &'static str) {
        ("[/", "/]")
    }

    fn attempt(&self, values: &AttemptValues<'_>) -> Result<Attempt, CallFailure> {
        let failed = |text| CallFailure { reason: "invalid_input".to_owned(), text };
        let environment = (values.environment)().map_err(failed)?;
        Ok(Attempt::Run { data: self.request(&environment) })
    }
}
