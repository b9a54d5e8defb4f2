//! Capabilities that an agent's tasks requested in vain, for the report of a failed task.

use a2a_hub_core::task::metadata::RefusedCapabilities;
use a2a_hub_protocol::{
    id::{AgentId, TaskId},
    operation::NotGranted,
};
use a2a_hub_runtime::port::RefusalPort;
use parking_lot::Mutex;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// Maximum number of capabilities that are remembered for a task.
const MAX_REFUSED: usize = 8;

/// Maximum length, in bytes, of a capability's name, which may contain the agent's words.
const MAX_NAME: usize = 100;

/// Refused capabilities by task, until the task is over.
#[derive(Clone, Default)]
pub(super) struct RefusalsByTask(Arc<Mutex<BTreeMap<String, BTreeSet<String>>>>);

impl RefusalsByTask {
    /// Port that records the refusals of a task.
    pub(super) fn port(&self, task: &str) -> Arc<RefusalPort> {
        let (all, task) = (Arc::clone(&self.0), task.to_owned());
        Arc::new(move |capability: &str| {
            let mut all = all.lock();
            let refused = all.entry(task.clone()).or_default();
            if refused.len() < MAX_REFUSED && capability.len() <= MAX_NAME {
                refused.insert(capability.to_owned());
            }
        })
    }

    fn refused(&self, task: &TaskId) -> BTreeSet<String> {
        self.0.lock().get(task.as_str()).cloned().unwrap_or_default()
    }

    /// Drops the refusals of a task.
    pub(super) fn forget(&self, task: &TaskId) {
        self.0.lock().remove(task.as_str());
    }

    /// Capabilities that a task of `agent` requested in vain, with the command that grants those
    /// which `not_granted` lists; `None` if it requested none in vain.
    pub(super) fn refused_in(
        &self,
        task: &TaskId,
        agent: &AgentId,
        not_granted: impl FnOnce() -> Vec<NotGranted>,
    ) -> Option<RefusedCapabilities> {
        let refused = self.refused(task);
        if refused.is_empty() {
            return None;
        }
        let is_part = |prefix: &str, part: &str| {
            part.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        let concerns = |capability: &str| {
            refused.iter().any(|it| is_part(it, capability) || is_part(capability, it))
        };
        let command = format!("a2a-hub plugin grant {agent}");
        let lacks = not_granted().into_iter().filter(|lack| concerns(&lack.capability));
        let fixes = lacks.filter_map(|lack| Some(lack.command?.strip_prefix(&command)?.to_owned()));
        let fixes: String = fixes.collect();
        let fix = (!fixes.is_empty()).then(|| command + &fixes);
        Some(RefusedCapabilities { capabilities: refused, fix })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_bounded_and_forgotten() {
        let (refusals, task) = (RefusalsByTask::default(), TaskId::new("t"));
        let port = refusals.port("t");
        port("memory");
        port(&"x".repeat(MAX_NAME + 1));
        assert_eq!(refusals.refused(&task), BTreeSet::from(["memory".to_owned()]));
        (0..100).for_each(|n| port(&format!("process.{n}")));
        assert_eq!(refusals.refused(&task).len(), MAX_REFUSED);
        refusals.forget(&task);
        assert!(refusals.refused(&task).is_empty());
    }

    #[test]
    fn only_refused_capabilities_are_named() {
        let (refusals, task) = (RefusalsByTask::default(), TaskId::new("t"));
        let notes = AgentId::parse("notes").unwrap();
        let lack = |capability: &str, argument: &str| NotGranted {
            capability: capability.to_owned(),
            what: String::new(),
            reason: None,
            setting: String::new(),
            command: Some(format!("a2a-hub plugin grant notes {argument}")),
        };
        let all = || {
            vec![
                lack("memory", "--memory=1"),
                lack("delegate.echo", "--delegate echo"),
                lack("files", "--files=1"),
            ]
        };
        assert_eq!(refusals.refused_in(&task, &notes, all), None);
        let port = refusals.port("t");
        port("memory");
        port("delegate");
        let refused = refusals.refused_in(&task, &notes, all).unwrap();
        let fix = "a2a-hub plugin grant notes --memory=1 --delegate echo";
        assert_eq!(refused.fix.as_deref(), Some(fix));
        assert_eq!(refused.capabilities, ["delegate", "memory"].map(str::to_owned).into());
    }
}
