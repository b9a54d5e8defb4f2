//! Failures of items and steps: another attempt, another agent, or the end of the step.

use super::{
    super::{
        event::{ChildEnd, FlowAction, Id, Role},
        row::{CallFailure, ItemEnd, StepPhase},
        text::one_line,
    },
    FlowState,
};

impl FlowState {
    /// Retries a failed item, gives it to the next agent, or ends it.
    pub(super) fn item_failed(
        &mut self,
        id: Id,
        failed: CallFailure,
        actions: &mut Vec<FlowAction>,
    ) {
        let step = self.definition.steps[id.step].clone();
        let retry = &step.retry;
        let is_retried = retry.on.is_empty() || retry.on.contains(&failed.reason);
        let (at, n) = (id.step, id.item);
        let item = &mut self.rows[at].items[n];
        if is_retried && item.retries < retry.times {
            item.retries += 1;
            let text = format!("{}: tried again after: {}", step.id, one_line(&failed.text));
            actions.push(FlowAction::Say(text));
            return match retry.backoff_ms {
                0 => self.call(id.step, id.item, actions),
                ms => {
                    // Doubled for each further attempt.
                    let ms = ms.saturating_mul(1 << (item.retries - 1).min(16));
                    self.wait(Id { role: Role::Backoff, ..id }, ms, actions);
                }
            };
        }
        if item.agent < step.fallback.len() {
            (item.agent, item.retries) = (item.agent + 1, 0);
            let (agent, why) = (&step.fallback[item.agent - 1], one_line(&failed.text));
            actions.push(FlowAction::Say(format!("{}: given to {agent} after: {why}", step.id)));
            return self.call(id.step, id.item, actions);
        }
        self.item_failed_for_good(id, failed, actions);
    }

    pub(super) fn item_failed_for_good(
        &mut self,
        id: Id,
        failed: CallFailure,
        actions: &mut Vec<FlowAction>,
    ) {
        let agent = self.agent_of(id);
        let step = &self.definition.steps[id.step];
        let allowed = step.each.as_ref().map(|each| each.allow_failures);
        let CallFailure { reason, text } = failed;
        let by = if agent.is_empty() { String::new() } else { format!("{agent}: ") };
        let item_label = allowed.map(|_| format!("[{}]", id.item)).unwrap_or_default();
        // A decision goes on without the agents that fail.
        let decides = step.work.kind().decides();
        let allowed = allowed.or(decides.then_some(usize::MAX));
        let message = format!("{}{item_label}: {by}{text}", step.id);
        let end = ChildEnd { text, reason: reason.clone(), ..ChildEnd::default() };
        let (at, n) = (id.step, id.item);
        let (completed, output, exit) = (false, None, None);
        self.rows[at].items[n].done = Some(ItemEnd { completed, end, output, agent, exit });
        let items = self.rows[id.step].items.iter();
        let failures = items.filter(|it| it.done.as_ref().is_some_and(ItemEnd::is_failed)).count();
        match allowed {
            Some(allowed) if failures <= allowed => {
                actions.push(FlowAction::Say(message));
            }
            Some(_) | None => self.step_failed(id.step, &reason, message, actions),
        }
    }

    /// Records that a step failed, and fails the flow if a step can no longer run.
    pub(super) fn step_failed(
        &mut self,
        step: usize,
        reason: &str,
        text: String,
        actions: &mut Vec<FlowAction>,
    ) {
        let is_read = self.is_read(step);
        self.tell_readers(step, (reason, &text), actions);
        self.close(step, actions);
        self.rows[step].phase = StepPhase::Failed;
        let dependents = self.definition.dependents(step);
        let blocks = |&dependent: &usize| {
            let definition = &self.definition.steps[dependent];
            let can = |need: &&usize| {
                !matches!(self.rows[**need].phase, StepPhase::Failed | StepPhase::Dropped)
            };
            let possible = definition.needs.iter().filter(can).count();
            self.rows[dependent].phase == StepPhase::Waiting && possible < definition.at_least
        };
        if dependents.is_empty() || is_read || dependents.iter().any(blocks) {
            self.fail(reason, text, actions);
        } else {
            actions.push(FlowAction::Say(text));
        }
    }
}
