//! Steps: side effects and external reads of an agent whose runs are replayed.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::host::{Host, StepHandle};
use crate::{Context, Failure, StepMode};

/// Maximum size of a step's stored result, in bytes.
const MAX_RESULT_BYTES: usize = 1 << 20;

/// Result of a step, as the hub stores it.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum StoredResult<T> {
    Done(T),
    Invalid(String),
    Unsupported(String),
    Denied(String),
    Timeout,
    Unavailable(String),
    Exhausted(String),
    Internal(String),
}

impl<T> StoredResult<T> {
    /// Converts a result. A step that ended because the task was cancelled has none to store.
    fn from_result(result: Result<T, Failure>) -> Option<Self> {
        Some(match result {
            Ok(done) => Self::Done(done),
            Err(Failure::Invalid(why)) => Self::Invalid(why),
            Err(Failure::Unsupported(why)) => Self::Unsupported(why),
            Err(Failure::Denied(why)) => Self::Denied(why),
            Err(Failure::Timeout) => Self::Timeout,
            Err(Failure::Unavailable(why)) => Self::Unavailable(why),
            Err(Failure::Exhausted(why)) => Self::Exhausted(why),
            Err(Failure::Internal(why)) => Self::Internal(why),
            Err(Failure::Cancelled) => return None,
        })
    }

    fn into_result(self) -> Result<T, Failure> {
        match self {
            Self::Done(done) => Ok(done),
            Self::Invalid(why) => Err(Failure::Invalid(why)),
            Self::Unsupported(why) => Err(Failure::Unsupported(why)),
            Self::Denied(why) => Err(Failure::Denied(why)),
            Self::Timeout => Err(Failure::Timeout),
            Self::Unavailable(why) => Err(Failure::Unavailable(why)),
            Self::Exhausted(why) => Err(Failure::Exhausted(why)),
            Self::Internal(why) => Err(Failure::Internal(why)),
        }
    }
}

impl Context {
    /// Performs a side effect or external read in an agent whose manifest says `resume = "replay"`.
    /// Only in here may such an agent use programs, requests, memory, files and the list of agents.
    /// After a restart of the hub the agent runs again from its start; for a step that was done,
    /// this returns the stored result, also a failure, without doing the work again.
    ///
    /// `key` names the step within the task. In other agents this only does the work.
    pub fn step<T: Serialize + DeserializeOwned>(
        &self,
        key: &str,
        work: impl FnOnce() -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        self.step_with(key, StepMode::Recorded, work)
    }

    /// Performs a step with a given treatment of an interrupted one: [`StepMode::Ask`] asks the
    /// client before the work is done once more. [`StepMode::Again`] stores nothing and does the
    /// work in every run.
    pub fn step_with<T: Serialize + DeserializeOwned>(
        &self,
        key: &str,
        mode: StepMode,
        work: impl FnOnce() -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let no_json = |why| Failure::Internal(format!("the step `{key}`: {why}"));
        let step = self.hub.begin_step(key, mode)?;
        if let Some(stored) = StepHandle::stored_result(&step) {
            let stored: StoredResult<T> = serde_json::from_str(&stored).map_err(no_json)?;
            return stored.into_result();
        }
        let Some(stored) = StoredResult::from_result(work()) else {
            // Dropping the step would record it as done.
            std::mem::forget(step);
            return Err(Failure::Cancelled);
        };
        let json = match mode {
            StepMode::Again => String::new(),
            StepMode::Recorded | StepMode::Ask => {
                serde_json::to_string(&stored).map_err(no_json)?
            }
        };
        if json.len() > MAX_RESULT_BYTES {
            // The step ends as failed, so that the agent can go on.
            let why = format!(
                "keep what the step `{key}` came to: it is {} bytes long, and {MAX_RESULT_BYTES} are kept; keep less of it, or read it again with \
                 `StepMode::Again`",
                json.len()
            );
            let failed = StoredResult::<()>::Exhausted(why.clone());
            step.end(&serde_json::to_string(&failed).map_err(no_json)?)?;
            return Err(Failure::Exhausted(why));
        }
        step.end(&json)?;
        stored.into_result()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::testing::ScriptedHost;

    #[test]
    fn finished_step_returns_stored_result() {
        let host = ScriptedHost::new();
        let (ctx, done) = (host.context(), Cell::new(0));
        let work = || {
            done.set(done.get() + 1);
            Ok(done.get())
        };
        assert_eq!(ctx.step("count", work), Ok(1));
        let fails = || Err::<u32, _>(Failure::Denied("no".to_owned()));
        assert_eq!(ctx.step("fail", fails), Err(Failure::Denied("no".to_owned())));
        assert_eq!(ctx.step_with("read", StepMode::Again, work), Ok(2));

        // As after a restart of the hub.
        let ctx = host.context();
        assert_eq!(ctx.step("count", work), Ok(1));
        assert_eq!(ctx.step("fail", || Ok(7)), Err(Failure::Denied("no".to_owned())));
        assert_eq!(ctx.step_with("read", StepMode::Again, work), Ok(3));
        let steps = [("count", true), ("fail", true), ("read", false)];
        for (key, is_kept) in steps {
            assert_eq!(host.step_came_to(key).is_some(), is_kept, "{key}");
        }
    }

    #[test]
    fn too_large_step_result_is_stored_failure() {
        let host = ScriptedHost::new();
        let ctx = host.context();
        let long = || Ok("x".repeat(MAX_RESULT_BYTES));
        let Err(Failure::Exhausted(why)) = ctx.step("long", long) else { panic!("it is kept") };
        assert!(why.contains("1048576 are kept"), "{why}");
        // As after a restart of the hub.
        let again = ctx.step("long", || Ok(String::new()));
        assert_eq!(again, Err(Failure::Exhausted(why)));
    }

    #[test]
    fn cancelled_step_stores_no_result() {
        let host = ScriptedHost::new();
        let ctx = host.context();
        assert_eq!(ctx.step("stop", || Err::<(), _>(Failure::Cancelled)), Err(Failure::Cancelled));
        assert_eq!(host.step_came_to("stop"), None);
    }
}
