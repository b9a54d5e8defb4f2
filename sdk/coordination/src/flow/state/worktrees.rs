//! Worktrees of steps: where a child works, and which candidate is picked.

use super::{
    super::{
        definition::StepWorktree,
        event::{ChildEnd, ChildWorktree, FlowAction, Id, Role},
        kinds::{
            Work,
            pick::{self, CandidateRanking, Pick},
        },
        row::{CallFailure, ItemEnd, SKIPPED, StepPhase},
    },
    FlowState,
};

impl FlowState {
    /// Worktree of the next child of an item.
    pub(super) fn child_worktree(&self, step: usize, item: usize) -> Option<ChildWorktree> {
        match self.definition.steps[step].worktree? {
            StepWorktree::New => Some(ChildWorktree::New),
            StepWorktree::Of(from) => self.child(from, item).map(ChildWorktree::Of),
        }
    }

    /// Worktree in which a step is undone: that of its only task.
    pub(super) fn undo_worktree(&self, step: usize) -> Option<ChildWorktree> {
        let definition = &self.definition.steps[step];
        if definition.each.is_some() {
            return None;
        }
        let of = match definition.worktree? {
            StepWorktree::New => step,
            StepWorktree::Of(from) => from,
        };
        self.child(of, 0).map(ChildWorktree::Of)
    }

    /// Last child of an item of a step. A step without several items has one.
    fn child(&self, step: usize, item: usize) -> Option<Id> {
        let row = &self.rows[step];
        let item = if self.definition.steps[step].each.is_some() { item } else { 0 };
        let attempt = row.items.get(item)?.attempt;
        Some(Id { step, round: row.round, item, attempt, role: Role::Work })
    }

    /// True if an item works in the worktree of a task that did not complete.
    pub(super) fn is_without_worktree(&self, step: usize, item: usize) -> bool {
        let Some(StepWorktree::Of(from)) = self.definition.steps[step].worktree else {
            return false;
        };
        let item = if self.definition.steps[from].each.is_some() { item } else { 0 };
        let done = self.rows[from].items.get(item).and_then(|item| item.done.as_ref());
        !done.is_some_and(|done| done.completed)
    }

    /// Ends an item that has nothing to work on.
    pub(super) fn skip(&mut self, step: usize, item: usize) {
        let (text, reason) =
            ("not done: its worktree has no result".to_owned(), SKIPPED.to_owned());
        let end = ChildEnd { text, reason, ..ChildEnd::default() };
        let (completed, output, exit, agent) = (false, None, None, String::new());
        self.rows[step].items[item].done = Some(ItemEnd { completed, end, output, agent, exit });
    }

    /// Picks a candidate at once, or returns the question which of several is chosen.
    pub(super) fn picked(&mut self, id: Id, actions: &mut Vec<FlowAction>) -> Option<FlowAction> {
        let Work::Pick(pick) = &self.definition.steps[id.step].work else { return None };
        let (pick, ranking) = (pick.clone(), self.rank(pick));
        match ranking.best.as_slice() {
            [] => {
                let why = pick::others(&self.rows, pick.from, &ranking, None);
                let text = format!("no candidate passed:\n\n{why}");
                let failed = CallFailure { reason: "no_candidate".to_owned(), text };
                self.item_failed_for_good(id, failed, actions);
                None
            }
            [_, _, ..] if ranking.needs_choice => {
                let named = ranking.best.iter().map(|&it| pick::label(&self.rows, pick.from, it));
                let named: Vec<_> = named.collect();
                let text = format!(
                    "Which candidate is taken? Answer with its number. `a2a-hub task tree` lists their tasks, and \
                     `a2a-hub task diff ID` shows the changes of one.\n({})",
                    named.join(" / ")
                );
                Some(FlowAction::Ask { id, text })
            }
            [chosen, ..] => {
                self.pick_candidate(id, &pick, *chosen, &ranking);
                None
            }
        }
    }

    /// Compares the candidates of a pick.
    pub(super) fn rank(&self, pick: &Pick) -> CandidateRanking {
        pick.rank(|step| &self.definition.steps[step].id, &self.rows)
    }

    /// Takes the candidate that an answer names, by its number or its name; false if it names no
    /// best one.
    pub(super) fn take_named(&mut self, id: Id, pick: &Pick, answer: &str) -> bool {
        let ranking = self.rank(pick);
        let answer = answer.to_lowercase();
        let is_named = |&index: &usize| {
            let name = pick::name(&self.rows, pick.from, index).to_lowercase();
            answer == name || answer == (index + 1).to_string()
        };
        let Some(chosen) = ranking.best.iter().copied().find(is_named) else { return false };
        self.pick_candidate(id, pick, chosen, &ranking);
        true
    }

    fn pick_candidate(&mut self, id: Id, pick: &Pick, chosen: usize, ranking: &CandidateRanking) {
        let label = pick::label(&self.rows, pick.from, chosen);
        let output = pick::output(&self.rows, pick.from, chosen, ranking);
        let others = pick::others(&self.rows, pick.from, ranking, Some(chosen));
        let done = self.rows[pick.from].items.get(chosen).and_then(|it| it.done.clone());
        let Some(ItemEnd { mut end, agent, .. }) = done else { return };
        let tied = match ranking.best.len() {
            tied @ 2.. if !ranking.needs_choice => {
                format!(", the first of {tied} that passed with the same size")
            }
            _ => String::new(),
        };
        let others = if others.is_empty() { others } else { format!("\n\n{others}") };
        end.text = format!("Picked: {label}{tied}{others}\n\n{}", end.text);
        let (at, n) = (id.step, id.item);
        let item = &mut self.rows[at].items[n];
        let (completed, exit) = (true, None);
        item.done = Some(ItemEnd { completed, end, output: Some(output), agent, exit });
    }

    /// Child whose worktree has the result of the flow: the candidate of its last pick or, without
    /// one, the only task of its only step with a worktree. None if the flow has its own worktree.
    pub(super) fn result_worktree(&self) -> Option<Id> {
        if self.definition.worktree.is_some() {
            return None;
        }
        let done = |step: &usize| self.rows[*step].phase == StepPhase::Done;
        let order = || self.definition.order.iter().copied().filter(done);
        let picked = order().rev().find_map(|step| {
            let Work::Pick(pick) = &self.definition.steps[step].work else { return None };
            Some((step, pick.from))
        });
        if let Some((step, from)) = picked {
            let end = self.rows[step].items.first()?.done.as_ref()?;
            let chosen = end.output.as_ref()?["index"].as_u64()?;
            return self.child(from, usize::try_from(chosen).ok()?);
        }
        let has_worktree =
            |step: &usize| self.definition.steps[*step].worktree == Some(StepWorktree::New);
        let steps: Vec<_> = order().filter(has_worktree).collect();
        match steps.as_slice() {
            [step] if self.definition.steps[*step].each.is_none() => self.child(*step, 0),
            _ => None,
        }
    }
}
