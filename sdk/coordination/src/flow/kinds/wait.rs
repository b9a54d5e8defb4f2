//! Steps with `wait`: a pause.

use super::kind::{Attempt, AttemptValues, KindKey, StepKind, StepReader};
use crate::flow::{row::CallFailure, text::duration};

pub(super) const KEYS: &[KindKey<WaitStep>] = &[KindKey { name: "wait", with: &[], parse }];

/// Pause.
#[derive(Clone, Debug)]
pub(in crate::flow) struct WaitStep {
    ms: u64,
}

impl StepKind for WaitStep {
    fn calls(&self) -> bool {
        false
    }

    fn label(&self) -> String {
        format!("waits {}", duration(self.ms))
    }

    fn progress(&self) -> String {
        "waits".to_owned()
    }

    fn brackets(&self) -> (&'static str, &'static str) {
        ("([", "])")
    }

    fn attempt(&self, _values: &AttemptValues<'_>) -> Result<Attempt, CallFailure> {
        Ok(Attempt::Wait { ms: self.ms })
    }
}

fn parse(step: &mut StepReader<'_, '_, '_, '_>) -> Option<WaitStep> {
    let StepReader { key, table, problems, .. } = step;
    Some(WaitStep { ms: table.duration(key, problems)? })
}
