//! Items of a step: the elements of a list, the agents, or the tasks in whose worktrees it is done.

use serde_json::Value;

use super::{
    super::{
        definition::Items,
        event::FlowAction,
        kinds::Work,
        limits::MAX_ITEMS,
        row::{StepPhase, of_item},
        text::one_line,
    },
    FlowState,
};

impl FlowState {
    /// Items of a step that starts; none for a step that is done once.
    ///
    /// # Errors
    ///
    /// If the list of `for_each` cannot be used: a text for the client.
    pub(super) fn items(&self, step: usize) -> Result<Vec<Value>, String> {
        let Some(each) = &self.definition.steps[step].each else { return Ok(Vec::new()) };
        match &each.items {
            Items::Agents(agents) => Ok(agents.iter().map(|it| it.as_str().into()).collect()),
            // Nothing is there if a `join` went on without the step.
            Items::Worktrees(from) if self.rows[*from].phase == StepPhase::Done => {
                Ok(self.rows[*from].items.iter().map(of_item).collect())
            }
            Items::Worktrees(_) => Ok(Vec::new()),
            Items::List(list) => {
                let value = list.value(&self.context(step, None, &[]))?;
                let list = serde_json::to_value(&value).map_err(|why| why.to_string())?;
                let Value::Array(list) = list else {
                    let actual = one_line(&list.to_string());
                    return Err(format!("`for_each` needs a list, and has {actual}"));
                };
                match list.len() {
                    0..=MAX_ITEMS => Ok(list),
                    count => Err(format!("{count} items, and at most {MAX_ITEMS} are done")),
                }
            }
        }
    }

    /// Starts items up to the step's concurrency; ends the step if all are over.
    pub(super) fn start_items(&mut self, step: usize, actions: &mut Vec<FlowAction>) {
        let definition = &self.definition.steps[step];
        // All turns that are due are taken at the same time.
        let takes_turns = matches!(definition.work, Work::Interaction(_));
        let at_once = if takes_turns { usize::MAX } else { definition.work.kind().items().max(1) };
        let max_active = definition.each.as_ref().map_or(at_once, |each| each.concurrency);
        loop {
            let row = &self.rows[step];
            if row.phase != StepPhase::Running || self.ending.is_some() {
                return;
            }
            let active = row.items.iter().filter(|it| it.attempt > 0 && it.done.is_none()).count();
            let next = row.items.iter().position(|it| it.attempt == 0 && it.done.is_none());
            match next {
                Some(item) if active < max_active => self.call(step, item, actions),
                Some(_) => return,
                None if active > 0 => return,
                None if self.next_turns(step, actions) => {}
                None => return self.step_done(step, actions),
            }
        }
    }
}
