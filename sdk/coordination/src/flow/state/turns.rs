//! Turns of interactions: batches of agents that answer or work, one after the other. Also the time
//! limits of answers, and of a leader's work.

use serde_json::Value;

use super::{
    super::{
        definition::Work,
        event::{Action, End, Id, Role},
        interaction::{Course, Interaction, Limits, Turn, TurnKind},
        row::{Item, ItemEnd},
    },
    State,
};

impl State {
    /// Turns with which a step begins; none for steps without any.
    pub(super) fn first_turns(&mut self, step: usize, actions: &mut Vec<Action>) {
        if let Work::Interaction(interaction) = &self.definition.steps[step].work {
            let Course { turns, board, .. } = interaction.course(&[], &self.flow_id);
            let limits = interaction.limits;
            self.report_board(step, board);
            self.rows[step].items.clear();
            self.add_turns(step, turns, limits, actions);
        }
    }

    /// Takes the blackboards that changed, for people who look at them: the id of the step, and its
    /// `round`, the most `rounds`, the `outcome` if it ended, and `items` with shortened texts.
    pub fn take_boards(&mut self) -> Vec<(String, Value)> {
        std::mem::take(&mut self.boards)
    }

    fn report_board(&mut self, step: usize, board: Option<Value>) {
        let step = self.definition.steps[step].id.clone();
        self.boards.extend(board.map(|board| (step, board)));
    }

    /// Goes on with a step whose turns are all over. True if it has further ones, or failed.
    pub(super) fn next_turns(&mut self, step: usize, actions: &mut Vec<Action>) -> bool {
        let Work::Interaction(interaction) = &self.definition.steps[step].work else {
            return false;
        };
        let (limits, id) = (interaction.limits, self.definition.steps[step].id.clone());
        let mut course = interaction.course(&self.rows[step].items, &self.flow_id);
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
        limits: Limits,
        actions: &mut Vec<Action>,
    ) {
        let row = &mut self.rows[step];
        let (first, round) = (row.items.len(), row.round);
        let has_answers = turns.iter().any(|turn| turn.schema().is_some());
        row.items.iter_mut().filter_map(|item| item.turn.as_mut()).for_each(Turn::close);
        row.items
            .extend(turns.into_iter().map(|turn| Item { turn: Some(turn), ..Item::default() }));
        let limit = if has_answers { limits.answer_ms } else { limits.work_ms };
        if let Some(ms) = limit.filter(|_| row.items.len() > first) {
            let id = Id { step, round, item: first, attempt: 1, role: Role::Answers };
            self.wait(id, ms, actions);
        }
    }

    /// Stops the timer of answers that are in.
    fn end_answers(&mut self, step: usize, actions: &mut Vec<Action>) {
        let timers = self.open.keys().filter(|id| id.step == step && id.role == Role::Answers);
        for id in timers.copied().collect::<Vec<_>>() {
            self.open.remove(&id);
            actions.push(Action::Cancel(id));
        }
    }

    /// Ends the voters or the turns of a step that did not answer in time. The others decide.
    pub(super) fn answers_timed_out(&mut self, step: usize, actions: &mut Vec<Action>) {
        let late = |id: &&Id| id.step == step && id.role != Role::Timeout;
        for id in self.open.keys().filter(late).copied().collect::<Vec<_>>() {
            self.open.remove(&id);
            actions.push(Action::Cancel(id));
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
            let end = End { text, reason, ..End::default() };
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

    /// Call of a turn.
    ///
    /// # Errors
    ///
    /// If the prompt cannot be rendered: a text for the client.
    pub(super) fn turn_call(
        &self,
        id: Id,
        interaction: &Interaction,
        context: &minijinja::Value,
    ) -> Result<Action, String> {
        let item = &self.rows[id.step].items[id.item];
        let turn = item.turn.as_ref().ok_or("a turn is missing")?;
        let text = interaction.text(turn, context, item.correction.as_ref())?;
        let work = self.permitted(interaction.permissions.as_ref());
        let permissions = Interaction::permissions(turn, work);
        let (agent, data, inherit, worktree) = (turn.agent.clone(), None, None, None);
        Ok(Action::Call { id, agent, text, data, permissions, inherit, worktree, stream: None })
    }
}
