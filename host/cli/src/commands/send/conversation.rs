//! A conversation at the terminal: the message, its answer, and the questions of its task until
//! the end.

#[cfg(not(feature = "hub"))]
use super::super::remote_only::joins_late;
use super::super::{
    follow::{follow, follow_handoff},
    leave::OnLeave,
    reconnect::{MAX_RECONNECTS, is_lost, reconnect},
    task::{
        output::TaskOutput,
        question::{self, QuestionOutcome, answer_with},
    },
};
use super::{
    aftermath::{say_cost, say_worktree},
    conclude::conclude,
    options::Send,
    request::params,
    step::SendStep,
};
use crate::{
    Exit, Format, Global,
    client::{hub_client::Client, signals::LeaveSignals, task_snapshot::TaskStateSnapshot},
    ui::failure::CommandError,
};
#[cfg(feature = "hub")]
use crate::{automation::decision, commands::flow::joined::joins_late};
use serde_json::{Map, Value, json};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Reason of a refusal: the agent is being compiled.
const COMPILING: &str = "compiling";

/// Time between two attempts to reach an agent that is being compiled.
const COMPILE_RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// A message with its answers, until nothing is left to do.
pub(super) struct SendConversation<'g> {
    global: &'g Global,
    client: Client,
    send: Send,
    /// Description of the agent, for its output.
    agent: Value,
    begun: Instant,
    step: SendStep,
    /// Output of the step before.
    earlier: Option<TaskOutput>,
    has_waited: bool,
    says_compiling: bool,
    reconnects: usize,
}

/// Continuation after a step.
enum StepEnd {
    /// The next step.
    Next,
    /// The command is over.
    Over(Exit),
}

impl<'g> SendConversation<'g> {
    pub(super) async fn new(global: &'g Global, mut client: Client, send: Send) -> Self {
        let agent = described(global, &mut client, &send.agent).await;
        let (step, earlier, begun) = (SendStep::Send, None, Instant::now());
        let (has_waited, says_compiling, reconnects) = (false, false, 0);
        Self {
            global,
            client,
            send,
            agent,
            begun,
            step,
            earlier,
            has_waited,
            says_compiling,
            reconnects,
        }
    }

    /// Carries out one step after the other.
    pub(super) async fn run(mut self) -> anyhow::Result<Exit> {
        loop {
            let mut shown = TaskOutput::new(self.global, self.send.stream)
                .written_by(&self.agent)
                .after(self.earlier.take());
            let end = match self.carry_out(&mut shown).await {
                Ok(exit) => self.after(shown, exit).await?,
                Err(why) => self.failed(shown, why).await?,
            };
            if let StepEnd::Over(exit) = end {
                return Ok(exit);
            }
        }
    }

    /// Carries out the present step, and prints what it brings.
    async fn carry_out(&mut self, shown: &mut TaskOutput) -> anyhow::Result<Exit> {
        let (method, request) = match &self.step {
            SendStep::Send | SendStep::Answer(_) => ("message/stream", params(&self.send)?),
            SendStep::Watch(task) => ("tasks/resubscribe", json!({ "id": task })),
            SendStep::Show(task) => {
                shown.event(task)?;
                return shown.exit();
            }
        };
        let mut progress = self.global.progress(&self.send.agent, true);
        let id = self.client.ask(method, request).await?;
        follow(&mut self.client, id, shown, &mut progress, OnLeave::Cancel).await
    }

    /// Finds a way on after an error of the present step.
    async fn failed(&mut self, shown: TaskOutput, why: anyhow::Error) -> anyhow::Result<StepEnd> {
        match &self.step {
            // Another client may have been faster than the user.
            SendStep::Answer(task) if shown.snapshot.task.is_none() => {
                let task = task.clone();
                self.answer_failed(&task, shown, why).await
            }
            SendStep::Send if CommandError::from_error(&why).is(COMPILING) => {
                self.wait_for_compilation(why).await
            }
            // Its flow may have been saved a moment ago, or be held back.
            SendStep::Send
                if !self.has_waited
                    && joins_late(self.global, &mut self.client, &self.send.agent, &why)
                        .await? =>
            {
                self.has_waited = true;
                Ok(StepEnd::Next)
            }
            SendStep::Send | SendStep::Answer(_) | SendStep::Watch(_) | SendStep::Show(_) => {
                self.follow_again(shown, why).await
            }
        }
    }

    /// Goes on after an answer that the hub did not take: the question is closed, or the
    /// connection was lost.
    async fn answer_failed(
        &mut self,
        task: &str,
        shown: TaskOutput,
        why: anyhow::Error,
    ) -> anyhow::Result<StepEnd> {
        let was_lost = is_lost(&why);
        if was_lost {
            match reconnect(self.global, &why, Some(task)).await {
                Some(again) => self.client = again,
                None => return Err(why),
            }
        }
        let task = task_now(&mut self.client, task).await?;
        if question::is_open(&task, self.send.question.as_deref()) {
            return if was_lost { Ok(StepEnd::Next) } else { Err(why) };
        }
        self.global.console().note(question::closed_text(&task));
        (self.step, self.earlier) = (SendStep::after(task), Some(shown));
        Ok(StepEnd::Next)
    }

    /// Waits a moment for an agent that is being compiled.
    async fn wait_for_compilation(&mut self, why: anyhow::Error) -> anyhow::Result<StepEnd> {
        if self.begun.elapsed() >= self.send.compile_timeout() {
            return Err(why);
        }
        if !std::mem::replace(&mut self.says_compiling, true) {
            self.global.console().note(why.to_string());
        }
        let mut progress = self.global.progress(&self.send.agent, true);
        let mut signals = LeaveSignals::new()?;
        let wait = async {
            tokio::select! {
                () = sleep(COMPILE_RETRY_INTERVAL) => false,
                _ = signals.next() => true,
            }
        };
        Ok(match progress.during("compiling the agent", wait).await {
            true => StepEnd::Over(Exit::Interrupted),
            false => StepEnd::Next,
        })
    }

    /// Connects again after a lost connection, and follows the task.
    async fn follow_again(
        &mut self,
        mut shown: TaskOutput,
        why: anyhow::Error,
    ) -> anyhow::Result<StepEnd> {
        let task = shown.snapshot.task.clone();
        self.reconnects += 1;
        if self.reconnects > MAX_RECONNECTS || !is_lost(&why) {
            return Err(shown.broken_off(&why, ""));
        }
        shown.end_piece()?;
        match (reconnect(self.global, &why, task.as_deref()).await, task) {
            (Some(again), Some(task)) => {
                (self.client, self.step) = (again, SendStep::Watch(task));
                self.earlier = Some(shown);
                Ok(StepEnd::Next)
            }
            _ => Err(shown.broken_off(&why, "")),
        }
    }

    /// Goes on after an answer: with the agent that took the task over, or with the question of
    /// the task.
    async fn after(&mut self, mut shown: TaskOutput, exit: Exit) -> anyhow::Result<StepEnd> {
        if shown.is_detached() {
            shown.finish(exit, Map::new())?;
            shown.note_detached("");
            return Ok(StepEnd::Over(exit));
        }
        if let Some((agent, task)) = follow_handoff(self.global, &mut shown)? {
            (self.send.agent, self.step) = (agent, SendStep::Watch(task));
            return Ok(StepEnd::Next);
        }
        #[cfg(feature = "hub")]
        if let (Some(rule), Exit::Done | Exit::TaskFailed) = (self.send.decides, exit) {
            let (global, client) = (self.global, &mut self.client);
            let exit = decision::print(global, client, rule, &shown.snapshot, exit).await?;
            say_worktree(global, client, &shown.snapshot).await;
            return Ok(StepEnd::Over(exit));
        }
        conclude(&self.send, &mut shown, exit)?;
        let took = self.begun.elapsed();
        say_cost(self.global, &mut self.client, &shown.snapshot, exit, took).await;
        self.ask(shown, exit).await
    }

    /// Asks the user the question of the task, if it has one.
    async fn ask(&mut self, shown: TaskOutput, exit: Exit) -> anyhow::Result<StepEnd> {
        let closed = closed(&mut self.client, &shown.snapshot);
        match question::question(self.global, &shown, exit, &self.send.agent, closed).await? {
            QuestionOutcome::Nothing => {
                say_worktree(self.global, &mut self.client, &shown.snapshot).await;
                return Ok(StepEnd::Over(exit));
            }
            QuestionOutcome::Answered(task, answer) => {
                self.step = SendStep::Answer(task.clone());
                self.send.become_answer(task, answer, &shown);
            }
            QuestionOutcome::Closed(task) => self.step = SendStep::after(task),
            QuestionOutcome::Lost(task, why) => {
                let Some(again) = reconnect(self.global, &why, Some(&task)).await else {
                    let question = shown.snapshot.question();
                    let command = self.global.command();
                    let way = answer_with(&command, &self.send.agent, &task, question);
                    self.global.console().note(way);
                    return Err(why);
                };
                // The task asks again.
                (self.client, self.step) = (again, SendStep::Watch(task));
            }
            QuestionOutcome::Interrupted(task) => {
                self.client.call("tasks/cancel", json!({ "id": task })).await?;
                return Ok(StepEnd::Over(Exit::Interrupted));
            }
        }
        self.earlier = Some(shown);
        Ok(StepEnd::Next)
    }
}

/// Returns the hub's description of the agent, for a user at a terminal.
async fn described(global: &Global, client: &mut Client, agent: &str) -> Value {
    if global.format == Format::Json || global.console().stderr_columns().is_none() {
        return Value::Null;
    }
    // If the agent does not exist, sending the message reports it.
    let agent = client.call("hub/agents/get", json!({ "agentId": agent })).await;
    agent.unwrap_or_default()
}

/// Reads the task until the question of `snapshot` is closed, and returns the task then.
async fn closed(client: &mut Client, snapshot: &TaskStateSnapshot) -> anyhow::Result<Value> {
    let task = snapshot.task.as_deref().unwrap_or_default();
    loop {
        sleep(question::POLL_INTERVAL).await;
        let task = task_now(client, task).await?;
        if !question::is_open(&task, snapshot.question()) {
            return Ok(task);
        }
    }
}

async fn task_now(client: &mut Client, task: &str) -> anyhow::Result<Value> {
    client.call("tasks/get", json!({ "id": task, "historyLength": 0 })).await
}
