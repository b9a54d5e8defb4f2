//! Turns of interactions: batches of agents that answer or work, one after the other. Also the time
//! limits of answers, and of a leader's work.

use serde_json::{Value, json};

use super::{
    super::{
        event::{BoardChange, ChildEnd, FlowAction, Id, Role},
        kinds::{Work, interaction::Course},
        row::{ItemEnd, Row, StepCall},
        turn::{MidTurnChange, Turn, TurnKind, TurnLimits},
    },
    FlowState,
};
use crate::blackboard::share_of_agent;

/// Most changes by tools in one turn, with those that were refused.
const MAX_CHANGES_IN_TURN: usize = 32;

/// Most changes by tools in one step: each of them is replayed. One of several agents makes half.
const MAX_CHANGES: usize = 1_000;

impl FlowState {
    /// Turns with which a step begins; none for steps without any.
    pub(super) fn first_turns(&mut self, step: usize, actions: &mut Vec<FlowAction>) {
        if let Work::Interaction(interaction) = &self.definition.steps[step].work {
            let Course { turns, board, .. } = interaction.course(&[], &[], &self.flow_id);
            let limits = interaction.limits;
            self.report_board(step, board);
            self.rows[step].items.clear();
            self.rows[step].changes.clear();
            self.add_turns(step, turns, limits, actions);
        }
    }

    fn report_board(&mut self, step: usize, board: Option<Value>) {
        let step = self.definition.steps[step].id.clone();
        self.boards.changed.extend(board.map(|board| (step, board)));
    }

    /// Takes the blackboards that changed, for people who look at them: the id of the step, and its
    /// `round`, the most `rounds`, the `outcome` if it ended, and `items`, of which a large board
    /// has shortened texts.
    pub fn take_boards(&mut self) -> Vec<(String, Value)> {
        std::mem::take(&mut self.boards.changed).into_iter().collect()
    }

    /// Takes the answers to the changes of blackboards since the last call: the `id` of the change,
    /// the `step`, the `agent`, what it did (`do`), and the `item` now, or why it is `refused`.
    pub fn take_board_answers(&mut self) -> Vec<Value> {
        std::mem::take(&mut self.boards.answers)
    }

    /// True if the child has a turn at a blackboard.
    pub fn shares_board(&self, id: Id) -> bool {
        let work = self.definition.steps.get(id.step).map(|step| &step.work);
        let has_board = matches!(work, Some(Work::Interaction(it)) if it.has_board());
        id.role == Role::Work && has_board
    }

    /// Changes the blackboard of a child's step in the name of the agent whose turn the child has.
    pub(super) fn change_board(&mut self, id: Id, change: BoardChange) {
        // A child whose events are read again from the first one repeats its changes.
        let is_known = |row: &Row| row.changes.iter().any(|known| known.id == change.id);
        if self.rows.get(id.step).is_some_and(is_known) {
            return;
        }
        let step = self.definition.steps.get(id.step).map(|step| step.id.clone());
        let mut answer = self.changed(id, &change).unwrap_or_else(|why| json!({ "refused": why }));
        if let Value::Object(members) = &mut answer {
            members.insert("id".to_owned(), change.id.into());
            members.insert("step".to_owned(), step.into());
        }
        self.boards.answers.push(answer);
    }

    /// Answer to a change.
    ///
    /// # Errors
    ///
    /// If the child has no turn at a blackboard, or made too many changes.
    fn changed(&mut self, id: Id, change: &BoardChange) -> Result<Value, String> {
        let of_step = self.definition.steps.get(id.step).map(|step| (&step.id, &step.work));
        let Some((step, Work::Interaction(interaction))) = of_step else {
            let step = of_step.map(|(step, _)| step.as_str()).unwrap_or_default();
            return Err(format!("the step `{step}`, in which you work, has no blackboard"));
        };
        if id.role != Role::Work || !self.open.contains_key(&id) {
            return Err("your turn at the blackboard is over".to_owned());
        }
        let Some(row) = self.rows.get_mut(id.step) else { return Ok(Value::Null) };
        let in_turn = row.changes.iter().filter(|change| change.turn == id.item).count();
        let agent_of = |turn: usize| Some(&row.items.get(turn)?.turn.as_ref()?.agent);
        let agent = agent_of(id.item);
        let of_agent = row.changes.iter().filter(|change| agent_of(change.turn) == agent).count();
        let max_of_agent = match interaction.agents.len() {
            0 | 1 => MAX_CHANGES,
            _ => share_of_agent(MAX_CHANGES),
        };
        let is_at_limit = row.changes.len() >= MAX_CHANGES || of_agent >= max_of_agent;
        if in_turn >= MAX_CHANGES_IN_TURN || is_at_limit {
            return Err(format!(
                "at most {MAX_CHANGES_IN_TURN} changes by tools are made in a turn, and {MAX_CHANGES} in a step, of which one \
                 agent makes {max_of_agent}; give further ones in your answer"
            ));
        }
        let BoardChange { id: name, contribution } = change.clone();
        row.changes.push(MidTurnChange { turn: id.item, id: name, contribution });
        // The results of the present round count once all are in.
        let over = row.items.iter().take_while(|item| item.done.is_some()).count();
        let Some((answer, board)) = interaction.changed(&row.items[..over], &row.changes) else {
            row.changes.pop();
            return Err(format!("the step `{step}`, in which you work, has no blackboard"));
        };
        self.boards.changed.insert(step.clone(), board);
        Ok(answer)
    }

    /// Goes on with a step whose turns are all over. True if it has further ones, or failed.
    pub(super) fn next_turns(&mut self, step: usize, actions: &mut Vec<FlowAction>) -> bool {
        let Work::Interaction(interaction) = &self.definition.steps[step].work else {
            return false;
        };
        let (limits, id) = (interaction.limits, self.definition.steps[step].id.clone());
        let row = &self.rows[step];
        let mut course = interaction.course(&row.items, &row.changes, &self.flow_id);
        self.report_board(step, course.board.take());
        self.end_answers(step, actions);
        if let Some(verdict) = course.verdict {
            if let Some(reason) = verdict.failure {
                let text = format!("{id}: {}", verdict.text);
                self.step_failed(step, reason, text, actions);
                return true;
            }
            self.rows[step].verdict = Some(verdict);
            return false;
        }
        let turns = course.turns;
        let has_more = !turns.is_empty();
        self.add_turns(step, turns, limits, actions);
        has_more
    }

    fn add_turns(
        &mut self,
        step: usize,
        turns: Vec<Turn>,
        limits: TurnLimits,
        actions: &mut Vec<FlowAction>,
    ) {
        let row = &mut self.rows[step];
        let (first, round) = (row.items.len(), row.round);
        let has_answers = turns.iter().any(|turn| turn.schema().is_some());
        row.items.iter_mut().filter_map(|item| item.turn.as_mut()).for_each(Turn::close);
        row.items.extend(
            turns.into_iter().map(|turn| StepCall { turn: Some(turn), ..StepCall::default() }),
        );
        let limit = if has_answers { limits.answer_ms } else { limits.work_ms };
        if let Some(ms) = limit.filter(|_| row.items.len() > first) {
            let id = Id { step, round, item: first, attempt: 1, role: Role::Answers };
            self.wait(id, ms, actions);
        }
    }

    /// Stops the timer of answers that are in.
    fn end_answers(&mut self, step: usize, actions: &mut Vec<FlowAction>) {
        let timers = self.open.keys().filter(|id| id.step == step && id.role == Role::Answers);
        for id in timers.copied().collect::<Vec<_>>() {
            self.open.remove(&id);
            actions.push(FlowAction::Cancel(id));
        }
    }

    /// Ends the voters or the turns of a step that did not answer in time. The others decide.
    pub(super) fn answers_timed_out(&mut self, step: usize, actions: &mut Vec<FlowAction>) {
        let late = |id: &&Id| id.step == step && id.role != Role::Timeout;
        for id in self.open.keys().filter(late).copied().collect::<Vec<_>>() {
            self.open.remove(&id);
            actions.push(FlowAction::Cancel(id));
        }
        let (round, attempt, role) = (self.rows[step].round, 1, Role::Work);
        for item in 0..self.rows[step].items.len() {
            let agent = self.agent_of(Id { step, round, item, attempt, role });
            let turn = self.rows[step].items[item].turn.as_ref();
            let text = match turn.map(|turn| &turn.kind) {
                Some(TurnKind::Work) => "the work took longer than `work_timeout`",
                Some(TurnKind::Answer(_)) | None => "no answer in time",
            };
            let (text, reason) = (text.to_owned(), "timeout".to_owned());
            let end = ChildEnd { text, reason, ..ChildEnd::default() };
            let (completed, output, exit) = (false, None, None);
            self.rows[step].items[item].done.get_or_insert(ItemEnd {
                completed,
                end,
                output,
                agent,
                exit,
            });
        }
    }
}
