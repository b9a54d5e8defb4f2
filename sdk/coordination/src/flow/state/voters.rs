//! Voters of a step with `vote`: their time limit.

use super::{
    super::{
        event::{Action, End},
        row::ItemEnd,
    },
    State,
};

impl State {
    /// Ends the tasks of the voters that did not answer in time. The others decide.
    pub(super) fn vote_timed_out(&mut self, step: usize, actions: &mut Vec<Action>) {
        self.close(step, actions);
        let agents = self.definition.steps[step].work.voters().to_vec();
        for (agent, item) in agents.into_iter().zip(&mut self.rows[step].items) {
            let (text, reason) = ("no answer in time".to_owned(), "timeout".to_owned());
            let end = End { text, reason, ..End::default() };
            let (completed, output, exit) = (false, None, None);
            item.done.get_or_insert(ItemEnd { completed, end, output, agent, exit });
        }
    }
}
