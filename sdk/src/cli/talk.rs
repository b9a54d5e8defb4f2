//! Event loop of one run: relays the program's output, has its questions decided, and waits for the
//! client's answer at the same time.
//!
//! ```text
//!               ┌─ a line, a complaint, the exit ◄─ the program ─┐ with a question open,
//! next: Heard ◄─┤                                                ├─ the first of both
//!               └─ a decision ◄── the permissions, or the client ┘
//! ```
//! Each question is posed as soon as the program asks it: the hub shows one at a time to the client
//! of the task, and lists all in the inbox. A status would hide a question from the client, so
//! statuses are queued until none is open.

use std::collections::{BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use serde_json::{Map, Value};

use super::commands::ReportedCommands;
use super::interrupt::interrupt;
use super::program_record::ProgramRecord;
use super::sessions::Sessions;
use super::tool_calls::ReportedCalls;
use super::{
    Action, Decision, Driver, End, FailureReason, FileChange, Job, Kind, Question, Session,
};
use super::{activity, reuse};
use crate::artifact::now;
use crate::{
    Artifact, Child, Context, Exit, Failure, Level, Line, Message, Need, OpenQuestion, Permission,
    TaskState, TaskStatus, TextStream,
};

/// Metadata member with the id of the program's session, by which a user continues it by hand.
const SESSION: &str = "vendorSession";

/// Longest delay of streamed text for a client that reads along.
const FLUSH_AFTER: Duration = Duration::from_millis(40);

/// Timeout for the first output of a started program, which needs seconds even on a busy machine.
const FIRST_WORD: Duration = Duration::from_secs(60);

/// Timeout for the first output of a parked program, which runs already and acknowledges at once.
const FIRST_WORD_OF_REUSED: Duration = Duration::from_secs(5);

/// Timeout for later output. The programs' own tools give up after ten minutes, so a longer silence
/// means that the program hangs.
const SILENCE: Duration = Duration::from_secs(15 * 60);

/// Time for a program to save its session and exit: well under a second, but Vibe takes two on a
/// busy machine.
const EXIT_GRACE: Duration = Duration::from_secs(4);

/// Default time for which a program may retry a failed request (setting `retry_timeout`). After
/// that, people wonder whether anything happens.
const RETRY: Duration = Duration::from_secs(60);

/// Limit of statuses queued during a question; of more, only the latest are kept.
const MAX_UNSAID: usize = 32;

/// Limit of open questions; others wait. The hub takes 32.
const MAX_OPEN: usize = 16;

/// State of a run.
pub(super) struct Talk<'a> {
    pub(super) ctx: &'a Context,
    sessions: &'a Sessions<'a>,
    pub(super) job: &'a Job,
    name: &'a str,
    pub(super) child: Child,
    stream: TextStream<'a>,
    /// Session to be stored.
    unkept: Option<Session>,
    /// Id of the session that the program can resume.
    session_id: Option<String>,
    /// True if the program ran before its turn, so that another can take over work that it did not
    /// begin.
    was_there: bool,
    /// True if the program had any visible effect.
    has_acted: bool,
    /// True if something was allowed for as long as the program runs, which must not outlive the
    /// task.
    is_allowed_more: bool,
    /// Files that have an artifact already.
    changed: BTreeSet<String>,
    /// Questions that are not posed yet, the oldest first.
    pending_questions: VecDeque<Question>,
    /// Questions that the client was asked, the oldest first.
    open: Vec<(Question, OpenQuestion)>,
    /// Statuses to send once no question is open.
    unsaid: VecDeque<TaskStatus>,
    /// True if a status had facts, which the end of the run removes from the task.
    has_reported: bool,
    /// Longest silence allowed to the program.
    timeout: Duration,
    /// Deadline for retries of the program, and the end of the run after it.
    retrying: Option<(Instant, End)>,
    /// Silence of the program that the driver waits for.
    quiet: Option<QuietWait>,
    /// Tool calls that were reported.
    calls: ReportedCalls,
    commands: ReportedCommands,
}

/// Wait for the silence of a program.
#[derive(Clone, Copy)]
struct QuietWait {
    silence: Duration,
    /// Time at which the program has been silent for long enough.
    quiet_at: Instant,
    /// Time at which the wait ends in any case.
    until: Instant,
}

/// Next event of a run.
pub(super) enum DriverEvent {
    /// Line of standard output.
    Line(String),
    /// Line of standard error.
    Complaint(String),
    /// Decision about a question of the program.
    Decided(Box<Question>, Decision),
    /// Nothing happened yet.
    Nothing,
    /// The program was silent for as long as the driver waits for.
    Quiet,
    /// The program was silent or retried for too long: the run ends this way.
    TimedOut(End),
    /// Exit of the program.
    Ended(Exit),
}

impl<'a> Talk<'a> {
    pub(super) fn new(
        ctx: &'a Context,
        sessions: &'a Sessions<'a>,
        job: &'a Job,
        name: &'a str,
        child: Child,
    ) -> Self {
        Self {
            ctx,
            sessions,
            job,
            name,
            child,
            stream: ctx.text_stream("answer"),
            unkept: None,
            session_id: None,
            was_there: false,
            has_acted: false,
            is_allowed_more: false,
            changed: BTreeSet::new(),
            pending_questions: VecDeque::new(),
            open: Vec::new(),
            unsaid: VecDeque::new(),
            has_reported: false,
            timeout: FIRST_WORD,
            retrying: None,
            quiet: None,
            calls: ReportedCalls::default(),
            commands: ReportedCommands::default(),
        }
    }

    /// Marks the program as started ahead.
    pub(super) fn started_ahead(self) -> Self {
        Self { was_there: true, ..self }
    }

    /// Marks the program as one that has answered before.
    pub(super) fn reused(self) -> Self {
        Self { was_there: true, timeout: FIRST_WORD_OF_REUSED, ..self }
    }

    /// True if another program may take over the job: this one ran before its turn and had no
    /// effect. It has exited, or does not know its session or its login, which may have been
    /// renewed since its start.
    pub(super) fn may_be_replaced(&self, end: &End, has_exited: bool) -> bool {
        let is_out_of_date = matches!(end, End::SessionLost | End::LoginNeeded(_));
        let is_answer = matches!(end, End::Completed { .. });
        self.was_there && !self.has_acted && !is_answer && (has_exited || is_out_of_date)
    }

    /// Carries out actions up to an end.
    pub(super) fn perform(&mut self, actions: Vec<Action>) -> Result<Option<End>, Failure> {
        for action in actions {
            self.has_acted |= action.is_effect();
            if action.ends_retries() {
                self.retrying = None;
            }
            match action {
                // A program that exits before it reads writes the reason to its output, which is
                // read next.
                Action::Send(line) => {
                    if self.child.write_line(&line) == Err(Failure::Cancelled) {
                        return Err(Failure::Cancelled);
                    }
                }
                Action::EndInput => self.child.close_stdin(),
                Action::Settled => self.child.settled(),
                Action::Remember(session) => {
                    self.session_id = Some(session.id.clone());
                    self.unkept = Some(session);
                }
                Action::Restart => self.stream.restart(),
                Action::Delta(text) => self.stream.push(&text)?,
                Action::Say(text) => self.send_status_text(text)?,
                Action::Report { text, facts } => self.report(text, facts)?,
                Action::Commands(list) => self.commands.note(list),
                Action::Retrying { status, end } => {
                    self.send_status_text(status)?;
                    self.retries(end);
                }
                Action::Changed(change) => self.emit_change(&change)?,
                Action::Attach(artifact) => self.attach(*artifact)?,
                Action::AwaitQuiet { silence, limit } => {
                    let now = now();
                    let (quiet_at, until) = (now + silence, now + limit);
                    self.quiet = Some(QuietWait { silence, quiet_at, until });
                }
                Action::Log(text) => self.ctx.log(Level::Warn, format!("{}: {text}", self.name)),
                Action::Ask(question) => self.pending_questions.push_back(*question),
                Action::Withdrawn(id) => self.withdraw(&id)?,
                Action::End(end) => return Ok(Some(end)),
            }
        }
        if self.open.is_empty() {
            self.say_rest()?;
        }
        if let Some(session) = self.unkept.take() {
            self.sessions.store(&session, None)?;
        }
        if !self.open.is_empty() {
            // The next event may take long.
            self.stream.flush()?;
        }
        Ok(None)
    }

    /// Waits for the next event.
    pub(super) fn next(&mut self) -> Result<DriverEvent, Failure> {
        let event = self.receive()?;
        if let DriverEvent::Decided(_, Decision::AllowForSession | Decision::Chosen(_)) = &event {
            self.is_allowed_more = true;
        }
        Ok(event)
    }

    fn receive(&mut self) -> Result<DriverEvent, Failure> {
        if self.open.len() < MAX_OPEN
            && let Some(question) = self.pending_questions.pop_front()
        {
            return self.ask(question);
        }
        if self.open.is_empty() {
            return match self.quiet {
                Some(wait) => self.await_quiet(wait),
                None => self.listen(),
            };
        }
        let open: Vec<_> = self.open.iter().map(|(_, open)| open).collect();
        match self.ctx.first_answer(&open, &self.child)? {
            Some(index) => self.answered(index),
            None => self.read(Duration::ZERO),
        }
    }

    /// Publishes the answer and releases the program: parks it for the next turn as `program`, or
    /// lets it exit by itself, since it saves its session meanwhile. The protocol has ended the
    /// run, so nothing waits for the exit.
    pub(super) fn close(
        mut self,
        mut end: End,
        program: Option<ProgramRecord>,
    ) -> Result<End, Failure> {
        if let (End::Completed { metadata, .. } | End::Failed { metadata, .. }, Some(id)) =
            (&mut end, self.session_id.take())
        {
            metadata.insert(SESSION.to_owned(), id.into());
        }
        if let End::Completed { metadata, .. } | End::Failed { metadata, .. } = &mut end
            && self.has_reported
        {
            // A `null` removes the member from the task.
            metadata.extend(activity::OF_STATUSES.map(|name| (name.to_owned(), Value::Null)));
        }
        let is_idle =
            self.open.is_empty() && self.pending_questions.is_empty() && !self.is_allowed_more;
        self.open.clear();
        let is_answer = matches!(end, End::Completed { .. });
        let program = program.filter(|_| is_idle && is_answer);
        let program = program.map(|it| self.commands.record(self.ctx, it)).transpose()?;
        self.say_rest()?;
        self.end_calls(!is_answer)?;
        match &end {
            End::Completed { text, .. } if !text.is_empty() => self.stream.finish(text)?,
            // A partial answer may be worth more than none.
            End::Failed { .. } => self.stream.flush()?,
            End::Completed { .. } | End::SessionLost | End::LoginNeeded(_) => {}
        }
        let session = self.unkept.take();
        if session.is_some() || program.is_some() {
            self.sessions.store(&session.unwrap_or_default(), program.as_ref())?;
        }
        match &end {
            End::Completed { .. } if program.is_some() => {
                reuse::park(self.ctx, self.child, &self.sessions.park_key());
            }
            End::Completed { .. } | End::Failed { .. } => self.child.retire(EXIT_GRACE),
            // Another run follows, and the session of this one is useless.
            End::SessionLost | End::LoginNeeded(_) => self.child.kill(),
        }
        Ok(end)
    }

    /// Waits for the program's silence. Its exit counts as such: the driver hears of it next.
    fn await_quiet(&mut self, wait: QuietWait) -> Result<DriverEvent, Failure> {
        let remaining = wait.quiet_at.min(wait.until).saturating_duration_since(now());
        let event = if remaining.is_zero() { DriverEvent::Nothing } else { self.read(remaining)? };
        match event {
            DriverEvent::Nothing | DriverEvent::Ended(_) => {
                self.quiet = None;
                self.stream.flush()?;
                return Ok(DriverEvent::Quiet);
            }
            DriverEvent::Line(_) => {
                self.quiet = Some(QuietWait { quiet_at: now() + wait.silence, ..wait });
            }
            DriverEvent::Complaint(_)
            | DriverEvent::Decided(..)
            | DriverEvent::Quiet
            | DriverEvent::TimedOut(_) => {}
        }
        Ok(event)
    }

    /// Ends the run of a cancelled task: interrupts the program and parks it as the program that
    /// `idle_program` makes of its driver. A program that cannot be reused is killed.
    pub(super) fn interrupt<D: Driver>(
        mut self,
        driver: &mut D,
        idle_program: impl Fn(&D) -> Option<ProgramRecord>,
    ) {
        // The hub serves programs of a cancelled run once the agent has noticed.
        if self.is_allowed_more || !self.ctx.cancelled() {
            return;
        }
        let Some(session) = interrupt(&mut self.child, driver) else { return };
        let Some(program) = idle_program(driver) else { return };
        let Ok(program) = self.commands.record(self.ctx, program) else { return };
        match self.sessions.store(&session, Some(&program)) {
            Ok(()) => reuse::park(self.ctx, self.child, &self.sessions.park_key()),
            Err(why) => self
                .ctx
                .log(Level::Debug, format!("cannot store the interrupted session: {}", why.text())),
        }
    }

    /// Waits for the program only.
    fn listen(&mut self) -> Result<DriverEvent, Failure> {
        if self.stream.is_waiting() {
            let event = self.read(FLUSH_AFTER)?;
            if matches!(event, DriverEvent::Nothing) || self.stream.is_due() {
                self.stream.flush()?;
            }
            return Ok(event);
        }
        let remaining =
            self.retrying.as_ref().map(|(until, _)| until.saturating_duration_since(now()));
        // Computed before the wait, since waits have a precision of a millisecond.
        let is_last_try = remaining.is_some_and(|remaining| remaining <= self.timeout);
        let longest = remaining.unwrap_or(self.timeout).min(self.timeout);
        let event = self.read(longest)?;
        if !matches!(event, DriverEvent::Nothing) {
            return Ok(event);
        }
        self.child.kill();
        Ok(DriverEvent::TimedOut(match self.retrying.take() {
            Some((_, end)) if is_last_try => end.after(|text| {
                let tried =
                    format!("{} tried again for as long as it may (`retry_timeout`)", self.name);
                format!("{text} ({tried})")
            }),
            Some(_) | None => {
                let text = format!("{} was silent for {} s", self.name, self.timeout.as_secs());
                End::failed(FailureReason::BrokenStream, text)
            }
        }))
    }

    fn read(&mut self, within: Duration) -> Result<DriverEvent, Failure> {
        match self.child.next_of_any(Some(within)) {
            Ok(Some(Line::Output(line))) => {
                self.timeout = SILENCE;
                Ok(DriverEvent::Line(line))
            }
            Ok(Some(Line::Complaint(line))) => Ok(DriverEvent::Complaint(line)),
            Ok(None) => Ok(self.child.exit().map_or(DriverEvent::Nothing, DriverEvent::Ended)),
            Err(Failure::Timeout) => Ok(DriverEvent::Nothing),
            Err(failure) => Err(failure),
        }
    }

    /// Has a question decided: by the operator's permissions, or by the client, who may take long.
    fn ask(&mut self, question: Question) -> Result<DriverEvent, Failure> {
        self.stream.flush()?;
        let ours = question.kind == Kind::Read
            && self.job.files.iter().any(|file| question.is_about(file))
            || self.job.choices.is_for_board(question.kind, &question.tool);
        let allowed = || self.job.choices.allow(question.kind, &question.tool);
        let decision = match self.job.permissions.decide(question.kind) {
            _ if ours => Some(Decision::Allow),
            None if allowed() => Some(Decision::Allow),
            decided => decided,
        };
        if let Some(decision) = decision {
            let denial = match (&decision, &question.facts) {
                (Decision::Allow, Some(facts)) => self.ctx.permission_denial(facts)?,
                _ => None,
            };
            let decision = denial.map_or(decision, Decision::Deny);
            if let Decision::Deny(why) = &decision {
                self.send_status_text(format!("denied {}: {why}", question.tool))?;
            }
            return Ok(DriverEvent::Decided(Box::new(question), decision));
        }
        let mut question = question;
        if let Some(call) = &mut question.tool_call {
            let id = self.calls.id(call["id"].as_str().unwrap_or_default());
            if let Some(members) = call.as_object_mut() {
                members.insert("id".to_owned(), id.into());
            }
        }
        let millis = self.ctx.setting("approval_timeout").and_then(|text| text.parse().ok());
        let within = millis.map(Duration::from_millis);
        let prompt = question.prompt(self.name);
        let permission = match &question.facts {
            Some(facts) => self.ctx.request_permission(facts, prompt, within),
            None => self.ctx.pose(Need::Input, prompt, within).map(Permission::Pending),
        };
        match permission {
            Ok(Permission::Allowed(_)) => {
                Ok(DriverEvent::Decided(Box::new(question), Decision::Allow))
            }
            Ok(Permission::Denied(why)) => {
                Ok(DriverEvent::Decided(Box::new(question), Decision::Deny(why)))
            }
            Ok(Permission::Pending(open)) => {
                self.open.push((question, open));
                Ok(DriverEvent::Nothing)
            }
            Err(failure) => {
                self.report_unanswered(&question, &failure)?;
                decided(question, Err(failure))
            }
        }
    }

    /// Reports that a question counts as denied because nobody answered it in time.
    fn report_unanswered(&mut self, question: &Question, failure: &Failure) -> Result<(), Failure> {
        if *failure != Failure::Timeout {
            return Ok(());
        }
        self.send_status_text(format!("nobody answered in time, which denies {}", question.tool))
    }

    fn answered(&mut self, index: usize) -> Result<DriverEvent, Failure> {
        let (question, open) = self.open.remove(index);
        let answer = open.answer();
        if let Err(failure) = &answer {
            self.report_unanswered(&question, failure)?;
        }
        let event = decided(question, answer)?;
        if self.open.is_empty() {
            self.say_rest()?;
        }
        Ok(event)
    }

    /// Withdraws a question that the program took back.
    fn withdraw(&mut self, id: &Value) -> Result<(), Failure> {
        self.pending_questions.retain(|question| question.id != *id);
        let before = self.open.len();
        self.open.retain(|(question, _)| question.id != *id);
        if self.open.is_empty() {
            self.say_rest()?;
        }
        if self.open.len() < before {
            self.send_status_text(format!("{} took its question back", self.name))?;
        }
        Ok(())
    }

    fn send_status_text(&mut self, text: String) -> Result<(), Failure> {
        self.send_status(TaskStatus::new(TaskState::Working, text))
    }

    fn report(&mut self, text: String, facts: Map<String, Value>) -> Result<(), Failure> {
        self.has_reported = true;
        let mut facts = facts;
        self.calls.note(&mut facts);
        let status = match text.is_empty() {
            true => TaskStatus::bare(TaskState::Working),
            false => TaskStatus::new(TaskState::Working, text),
        };
        self.send_status(status.with_metadata(&facts))
    }

    /// Reports the end of the tool calls that the program left open.
    fn end_calls(&mut self, is_failed: bool) -> Result<(), Failure> {
        for facts in self.calls.end(is_failed) {
            let status = TaskStatus::bare(TaskState::Working).with_metadata(&facts);
            self.send_status(status)?;
        }
        Ok(())
    }

    fn send_status(&mut self, status: TaskStatus) -> Result<(), Failure> {
        self.stream.flush()?;
        if self.open.is_empty() {
            return self.ctx.emit([status]);
        }
        if self.unsaid.len() == MAX_UNSAID {
            self.unsaid.pop_front();
        }
        self.unsaid.push_back(status);
        Ok(())
    }

    fn say_rest(&mut self) -> Result<(), Failure> {
        let unsaid = std::mem::take(&mut self.unsaid);
        let mut rest = self.commands.take_unsent().into_iter().chain(unsaid);
        rest.try_for_each(|status| self.ctx.emit([status]))
    }

    /// Starts the timeout at the first of several retries.
    fn retries(&mut self, end: End) {
        let until = match self.retrying.take() {
            Some((until, _)) => until,
            None => now() + retry_timeout(self.ctx).unwrap_or(RETRY),
        };
        self.retrying = Some((until, end));
    }

    /// Emits an artifact beside the answer. One that the hub does not take is left out: the answer
    /// matters more.
    fn attach(&mut self, artifact: Artifact) -> Result<(), Failure> {
        self.stream.flush()?;
        let name = artifact.name.clone().unwrap_or_else(|| artifact.id.clone());
        match self.ctx.artifact(artifact) {
            Err(Failure::Exhausted(why) | Failure::Invalid(why)) => {
                let text = format!("{}: artifact `{name}` dropped: {why}", self.name);
                self.ctx.log(Level::Warn, text);
                Ok(())
            }
            emitted => emitted,
        }
    }

    /// Emits a change as a part of the file's artifact.
    fn emit_change(&mut self, change: &FileChange) -> Result<(), Failure> {
        self.stream.flush()?;
        let again = !self.changed.insert(change.path.clone());
        let artifact = change.artifact();
        if again { self.ctx.append(artifact, true) } else { self.ctx.artifact(artifact) }
    }
}

/// Time for which a program may retry a request that its vendor refused: the operator's
/// `retry_timeout`, in seconds.
pub fn retry_timeout(ctx: &Context) -> Option<Duration> {
    let seconds = ctx.setting("retry_timeout").and_then(|text| text.parse().ok());
    seconds.map(Duration::from_secs)
}

/// Decision that an answer, or its absence, expresses.
fn decided(question: Question, answer: Result<Message, Failure>) -> Result<DriverEvent, Failure> {
    let decision = match answer {
        Ok(answer) => question.decision(answer),
        Err(Failure::Cancelled) => return Err(Failure::Cancelled),
        Err(Failure::Timeout) => Decision::Deny("nobody answered in time".into()),
        Err(failure) => Decision::Deny(format!("nobody can be asked: {}", failure.text())),
    };
    Ok(DriverEvent::Decided(Box::new(question), decision))
}

/// Actions that the driver derives from an event; an error is the end of the run.
pub(super) fn actions(driver: &mut impl Driver, event: DriverEvent) -> Result<Vec<Action>, End> {
    Ok(match event {
        DriverEvent::Line(line) => driver.line(&line),
        DriverEvent::Complaint(line) => driver.complaint(&line),
        DriverEvent::Decided(question, decision) => driver.decided(&question, &decision),
        DriverEvent::Nothing => Vec::new(),
        DriverEvent::Quiet => driver.quiet(),
        DriverEvent::TimedOut(end) => return Err(end),
        DriverEvent::Ended(exit) => return Err(driver.ended(&exit)),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{Check, Cli, CommandList, card, run};
    use super::*;
    use crate::testing::{Program, ScriptedHost, task};
    use crate::{Command, Event, Outcome, Run, Task};

    /// Clients can render the answers as the Markdown that they are.
    #[test]
    fn card_declares_markdown_output() {
        let card = card::<Fake>("Drives a program.", "1").to_json();
        let card: Value = serde_json::from_str(&card).unwrap();
        let modes = ["text/plain", "text/markdown", "text/x-diff"];
        assert_eq!(card["defaultOutputModes"], json!(modes));
    }

    /// Program whose dialect has one word per line.
    struct Fake;

    struct Words;

    impl Cli for Fake {
        type Driver = Words;
        const NAME: &'static str = "Fake";
        const PROGRAM: &'static str = "fake";
        const TESTED: &'static str = "1";
        const INSTALL: &'static str = "get fake";
        const LOGIN: &'static str = "fake login";
        const MAX_PROMPT_CHARS: usize = 10;

        fn command(_: &Context, _: &Job) -> Result<Command, Failure> {
            Ok(Command::new("fake"))
        }

        fn driver(_: &Context, _: &Job) -> Result<Words, Failure> {
            Ok(Words)
        }

        fn check(_: &Context) -> Result<Check, Failure> {
            Ok(Check { version: "1".into(), login_missing: None })
        }
    }

    impl Driver for Words {
        fn begin(&mut self) -> Vec<Action> {
            Vec::new()
        }

        fn line(&mut self, line: &str) -> Vec<Action> {
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            let failed = || End::failed(FailureReason::Overloaded, rest);
            vec![match word {
                "ask" => Action::Ask(Box::new(Question {
                    facts: Some(json!({ "vendor": "fake", "request": rest })),
                    id: rest.into(),
                    kind: Kind::Run,
                    tool: rest.into(),
                    input: json!({}),
                    description: None,
                    changes: Vec::new(),
                    directory: None,
                    for_session: false,
                    vendor_options: Vec::new(),
                    tool_call: None,
                })),
                "gone" => Action::Withdrawn(rest.into()),
                "text" => Action::Delta(rest.into()),
                "say" => Action::Say(rest.into()),
                "tool" => {
                    let facts = activity::tool_ended(rest, false);
                    Action::Report { text: String::new(), facts }
                }
                "call" => {
                    let call = activity::ToolFacts { id: rest, ..Default::default() };
                    Action::Report { text: String::new(), facts: call.begun() }
                }
                "commands" => {
                    let names = rest.split(' ').collect::<Vec<_>>();
                    Action::Commands(CommandList::parse(&json!(names)).unwrap())
                }
                "rest" => Action::AwaitQuiet {
                    silence: Duration::from_millis(50),
                    limit: Duration::from_secs(5),
                },
                "retry" => Action::Retrying { status: rest.into(), end: failed() },
                _ => {
                    Action::End(End::Completed { text: rest.into(), metadata: Default::default() })
                }
            }]
        }

        fn quiet(&mut self) -> Vec<Action> {
            vec![Action::End(End::Completed { text: "quiet".into(), metadata: Default::default() })]
        }

        fn decided(&mut self, question: &Question, decision: &Decision) -> Vec<Action> {
            vec![Action::Send(format!("{} {decision:?}", question.tool))]
        }

        fn ended(&self, exit: &Exit) -> End {
            End::failed(FailureReason::BrokenStream, format!("{:?}", exit.status))
        }
    }

    fn fake(host: &ScriptedHost, says: &str) -> Program {
        host.program("fake").stdout(says)
    }

    fn done(host: &ScriptedHost, task: &Task) -> Outcome {
        run::<Fake>(&host.context(), task).unwrap()
    }

    fn run_fake(host: &ScriptedHost) -> Outcome {
        done(host, &task("go"))
    }

    #[test]
    fn program_exit_withdraws_question() {
        let host = ScriptedHost::new();
        fake(&host, "ask rm\n").exit(137);
        let outcome = run_fake(&host);
        assert_eq!(outcome.state(), Some(TaskState::Failed));
        assert_eq!(outcome.text(), "ExitStatus::Code(137)");
        assert_eq!((host.asked().len(), host.withdrawn()), (1, 1));
    }

    #[test]
    fn withdrawn_question_lets_program_continue() {
        let host = ScriptedHost::new();
        // The second question waits behind the first when it is withdrawn; the third belongs to
        // another program.
        fake(&host, "ask rm\nask mv\nsay busy\ntext half\ngone mv\ngone cp\ngone rm\ndone whole\n");
        let outcome = run_fake(&host);
        assert_eq!(
            (outcome.text().as_str(), outcome.state()),
            ("whole", Some(TaskState::Completed))
        );
        assert_eq!((host.asked().len(), host.withdrawn()), (2, 2));
        assert_eq!(
            host.said(),
            ["busy", "Fake took its question back", "Fake took its question back"],
            "a status hides no question"
        );
    }

    #[test]
    fn questions_are_asked_one_at_a_time() {
        let host = ScriptedHost::new();
        host.answer("yes");
        host.answer("no");
        let program = fake(&host, "ask rm\nask mv\n").reads().reads().stdout("done both\n");
        assert_eq!(run_fake(&host).text(), "both");
        let told = program.stdin();
        assert!(told.starts_with("rm Allow\nmv Deny("), "{told}");
        assert_eq!(host.withdrawn(), 0);
    }

    #[test]
    fn rules_answer_before_client() {
        let host = ScriptedHost::new();
        host.allow_by_rule("ls");
        host.deny_by_rule("npm", "use pnpm");
        host.answer("yes");
        let program = fake(&host, "ask ls\nask npm\nask rm\n").reads().reads().reads();
        let program = program.stdout("done all\n");
        assert_eq!(run_fake(&host).text(), "all");
        assert_eq!(program.stdin(), "ls Allow\nnpm Deny(\"use pnpm\")\nrm Allow\n");
        assert_eq!(host.asked().len(), 1, "nobody is asked what a rule answers");
    }

    #[test]
    fn denying_rule_precedes_permissions() {
        let host = ScriptedHost::new();
        host.setting("permissions", "full");
        host.deny_by_rule("npm", "use pnpm");
        let program = fake(&host, "ask npm\nask rm\n").reads().reads().stdout("done both\n");
        assert_eq!(run_fake(&host).text(), "both");
        assert_eq!(program.stdin(), "npm Deny(\"use pnpm\")\nrm Allow\n");
        assert_eq!(host.said(), ["denied npm: use pnpm"]);
    }

    #[test]
    fn unanswered_question_is_denied() {
        for failure in [Failure::Timeout, Failure::Unavailable("no client".into())] {
            let host = ScriptedHost::new();
            let is_late = failure == Failure::Timeout;
            host.fail_answer(failure);
            let program = fake(&host, "ask rm\n").reads().stdout("done without\n");
            assert_eq!(run_fake(&host).text(), "without");
            let said = host.said().contains(&"nobody answered in time, which denies rm".to_owned());
            assert_eq!(said, is_late, "{:?}", host.said());
            assert!(program.stdin().starts_with("rm Deny("), "{}", program.stdin());
        }
        let host = ScriptedHost::new();
        host.fail_answer(Failure::Cancelled);
        fake(&host, "ask rm\n").reads();
        let cancelled: Run = run::<Fake>(&host.context(), &task("go"));
        assert_eq!(cancelled, Err(Failure::Cancelled));
    }

    #[test]
    fn retries_end_after_timeout() {
        let host = ScriptedHost::new();
        host.setting("retry_timeout", "0");
        fake(&host, "retry no room\n").pauses().stdout("done late\n");
        let outcome = run_fake(&host);
        assert_eq!(outcome.metadata()["reason"], "overloaded");
        assert_eq!(
            outcome.text(),
            "no room (Fake tried again for as long as it may (`retry_timeout`))"
        );
        assert_eq!(host.said(), ["no room"]);

        // Output after that counts as no further retry.
        fake(&host, "retry no room\nsay on\n").pauses();
        assert_eq!(run_fake(&host).text(), "Fake was silent for 900 s");
    }

    #[test]
    fn reported_facts_end_with_run() {
        let host = ScriptedHost::new();
        fake(&host, "tool 7\ndone whole\n");
        let metadata = run_fake(&host).metadata();
        let members = metadata.as_object().unwrap();
        assert!(members.contains_key("tool") && members["tool"].is_null(), "{metadata}");
        let Some(Event::Status(status)) = host.events().into_iter().next() else { panic!() };
        assert_eq!(status.message, None);
        assert!(status.metadata.unwrap().contains(r#""id":"7""#));

        fake(&host, "done whole\n");
        assert!(!run_fake(&host).metadata().as_object().unwrap().contains_key("tool"));
    }

    /// Names of the commands in each status that lists any.
    fn listed(host: &ScriptedHost) -> Vec<String> {
        let mut listed = Vec::new();
        for event in host.events() {
            let Event::Status(TaskStatus { metadata: Some(metadata), .. }) = event else {
                continue;
            };
            let facts: Value = serde_json::from_str(&metadata).unwrap();
            if let Some(commands) = facts["commands"].as_array() {
                let names: Vec<_> = commands.iter().filter_map(|it| it["name"].as_str()).collect();
                listed.push(names.join(" "));
            }
        }
        listed
    }

    #[test]
    fn commands_are_reported_after_each_change() {
        let host = ScriptedHost::new();
        fake(
            &host,
            "commands a b
commands a b
say on
commands a
commands a
done whole
",
        );
        let metadata = run_fake(&host).metadata();
        assert_eq!(listed(&host), ["a b", "a"]);
        assert_eq!(metadata.get("commands"), None, "they stay in the task's metadata");
        assert_eq!(metadata.get("tool"), None, "nothing has to be removed");
    }

    #[test]
    fn commands_hide_no_question_and_end_no_retry() {
        let host = ScriptedHost::new();
        let flood = "say busy\n".repeat(MAX_UNSAID + 1);
        fake(&host, &format!("ask rm\ncommands a\n{flood}gone rm\ndone whole\n"));
        assert_eq!(run_fake(&host).text(), "whole");
        assert_eq!(listed(&host), ["a"], "an overflow of statuses drops others only");
        assert!(host.events().len() > MAX_UNSAID);

        let host = ScriptedHost::new();
        host.setting("retry_timeout", "0");
        fake(&host, "retry no room\ncommands a\n").pauses().stdout("done late\n");
        assert_eq!(run_fake(&host).metadata()["reason"], "overloaded");
    }

    /// Ids and statuses of the reported tool calls.
    fn calls(host: &ScriptedHost) -> Vec<(Value, Value)> {
        let mut calls = Vec::new();
        for event in host.events() {
            let Event::Status(TaskStatus { metadata: Some(metadata), .. }) = event else {
                continue;
            };
            let mut facts: Value = serde_json::from_str(&metadata).unwrap();
            calls.push((facts["tool"]["id"].take(), facts["tool"]["status"].take()));
        }
        calls
    }

    #[test]
    fn open_tool_calls_end_with_run() {
        for (end, status) in [("done", "completed"), ("", "failed")] {
            let host = ScriptedHost::new();
            fake(&host, &format!("call 7\ntool 7\ncall 7\ncall 8\n{end}"));
            run_fake(&host);
            let wanted = [
                ("7", "in_progress"),
                ("7", "completed"),
                ("7#2", "in_progress"),
                ("8", "in_progress"),
                ("7#2", status),
                ("8", status),
            ];
            assert_eq!(calls(&host), wanted.map(|(id, status)| (json!(id), json!(status))));
        }
    }

    #[test]
    fn silence_or_exit_ends_quiet_wait() {
        let host = ScriptedHost::new();
        let program = fake(&host, "rest\nsay late\n").pauses().stdout("say too late\n");
        assert_eq!(run_fake(&host).text(), "quiet");
        assert_eq!(host.said(), ["late"]);
        assert!(program.stdin_closed());
        fake(&host, "rest\n").stderr("noise\n").exit(1);
        assert_eq!(run_fake(&host).text(), "quiet");
    }

    #[test]
    fn output_after_end_is_ignored() {
        let host = ScriptedHost::new();
        let program = fake(&host, "done at once\nsay more\n").pauses().stdout("say more\n");
        assert_eq!(run_fake(&host).text(), "at once");
        assert!(program.stdin_closed());
        assert_eq!(host.said(), Vec::<String>::new());
    }

    #[test]
    fn too_long_prompt_is_refused_with_limit() {
        let host = ScriptedHost::new();
        let refused = run::<Fake>(&host.context(), &task("eleven char")).unwrap_err();
        let Failure::Invalid(why) = refused else { panic!("{refused:?}") };
        assert!(why.contains("11 characters, and Fake takes 10"), "{why}");
        assert_eq!(host.spawned(), []);
    }
}
