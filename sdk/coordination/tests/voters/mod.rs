//! Run of a flow whose agents decide: its open calls and timers, by the names of the agents.

use a2a_hub_coordination::flow::{
    ChildEnd, Definition, Finish, FlowAction, FlowEvent, FlowState, Id,
};
use serde_json::Value;

/// Run of a flow, with the calls and timers that are open.
pub(crate) struct Run {
    pub(crate) state: FlowState,
    /// Id, agent, text and permissions of each call.
    pub(crate) calls: Vec<(Id, String, String, Option<String>)>,
    /// Id and milliseconds of each timer.
    pub(crate) timers: Vec<(Id, u64)>,
    pub(crate) finish: Option<Finish>,
}

impl Run {
    /// Begins a flow with this input.
    pub(crate) fn begin(text: &str, input: Value) -> Self {
        let definition = Definition::parse(text).unwrap_or_else(|why| panic!("{why:#?}"));
        let state = FlowState::new(definition, input, "task-1");
        let mut run = Self { state, calls: Vec::new(), timers: Vec::new(), finish: None };
        run.step(FlowEvent::Begun);
        run
    }

    pub(crate) fn step(&mut self, event: FlowEvent) {
        for action in self.state.step(event) {
            match action {
                FlowAction::Call { id, agent, text, permissions, .. } => {
                    self.calls.push((id, agent, text, permissions));
                }
                FlowAction::Wait { id, ms } => self.timers.push((id, ms)),
                FlowAction::Cancel(id) => {
                    self.calls.retain(|(other, ..)| *other != id);
                    self.timers.retain(|(other, _)| *other != id);
                }
                FlowAction::Finish(finish) => self.finish = Some(finish),
                FlowAction::Ask { .. } => panic!("no step asks"),
                FlowAction::Say(_) | FlowAction::Send { .. } => {}
            }
        }
    }

    /// Ends the open call of this agent.
    pub(crate) fn end(&mut self, agent: &str, end: ChildEnd) {
        let at = self.calls.iter().position(|(_, name, ..)| name == agent);
        let (id, ..) = self.calls.remove(at.unwrap_or_else(|| panic!("{agent} is not called")));
        self.step(FlowEvent::Ended(id, end));
    }

    /// Text of the open call of this agent.
    pub(crate) fn text_of(&self, agent: &str) -> &str {
        let call = self.calls.iter().find(|(_, name, ..)| name == agent);
        &call.unwrap_or_else(|| panic!("{agent} is not called")).2
    }
}
