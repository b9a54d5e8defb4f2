//! Working time of a flow, for `minutes` of its budget: the time in which a child works. A run has
//! no clock, so a timer counts a sixtieth of the budget, and runs only while a child works. Parts
//! that were counted stay counted after a restart of the hub.

use super::{
    super::event::{FlowAction, Id, Role},
    FLOW_INDEX, FlowState,
};

/// Parts in which the budget is counted.
const PARTS: u32 = 60;

impl FlowState {
    /// Starts the timer once a child works, and stops it once none does.
    pub(super) fn count_minutes(&mut self, actions: &mut Vec<FlowAction>) {
        let Some(minutes) = self.definition.minutes else { return };
        let called = actions.iter().filter_map(|action| match action {
            FlowAction::Call { id, .. } => Some(*id),
            FlowAction::Send { .. }
            | FlowAction::Ask { .. }
            | FlowAction::Wait { .. }
            | FlowAction::Cancel(_)
            | FlowAction::Say(_)
            | FlowAction::Finish(_) => None,
        });
        self.working.extend(called.map(|id| (id, true)));
        self.working.retain(|id, _| self.open.contains_key(id));
        let is_working = self.ending.is_none() && self.working.values().any(|works| *works);
        let attempt = self.parts + 1;
        let id = Id { step: FLOW_INDEX, round: 1, item: 0, attempt, role: Role::Minutes };
        match (is_working, self.open.contains_key(&id)) {
            (true, false) => self.wait(id, u64::from(minutes) * 60_000 / u64::from(PARTS), actions),
            (false, true) => {
                self.open.remove(&id);
                actions.push(FlowAction::Cancel(id));
            }
            (true, true) | (false, false) => {}
        }
    }

    /// Notes that a child waits for a person, or that it works again.
    pub(super) fn set_working(&mut self, id: Id, works: bool) {
        self.set_asking(id, !works);
        if let Some(state) = self.working.get_mut(&id) {
            *state = works;
        }
    }

    /// Counts a part of the budget, and fails the flow after the last one.
    pub(super) fn part_worked(&mut self, actions: &mut Vec<FlowAction>) {
        self.parts += 1;
        if self.parts >= PARTS {
            let minutes = self.definition.minutes.unwrap_or_default();
            let text = format!("the flow's budget of {minutes} minutes of work is used up");
            self.fail("limit_exceeded", text, actions);
        }
    }
}
