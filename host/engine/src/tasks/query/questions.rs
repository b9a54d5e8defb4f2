//! Questions of all tasks: lists the open ones, answers them by their ids, and reads earlier ones.

use crate::{
    error::HubError,
    tasks::{
        PermissionOperations, Tasks, VisibleTasks,
        command::{ActorCommand, OpenedQuestion, QuestionState},
        query::visible::CHUNK,
    },
};
use a2a_hub_agents::Agent;
use a2a_hub_clock as clock;
use a2a_hub_core::{
    access_control::{Caller, Principal},
    identity::{KeyScope, PersonRights, RightsDenied, TaskFacts},
    task::open_questions,
};
use a2a_hub_protocol::{
    client::ClientCapabilities,
    error::{A2aError, ErrorKind},
    event::TaskEvent,
    id::{AgentId, QuestionId, TaskId, TenantId},
    message::{Message, Role},
    operation::{
        AlwaysAnswer, OpenQuestion, OpenQuestions, PastQuestion, QuestionAnswer, QuestionHistory,
        QuestionQuery, QuestionRequest, QuestionResult,
    },
    question::QuestionKind,
    task::TaskState,
};
use a2a_hub_store::{
    ClosedQuestion, ClosedQuestionFilter, Head, HeadFilter, StorageError, StoredTask,
};
use futures::{FutureExt as _, StreamExt as _, TryStreamExt as _, stream};
use std::{
    collections::{BTreeMap, HashMap, btree_map::Entry},
    sync::Arc,
    time::Duration,
};
use tokio::{sync::oneshot, time::timeout};

/// Time for a task's actor to report its questions: a busy one is listed without a deadline.
const REPORT_WAIT: Duration = Duration::from_secs(1);

/// Limit of tasks whose questions are read at the same time.
const AT_ONCE: usize = 32;

/// Most levels of a tree of tasks above a question.
const MAX_LEVELS: usize = 100;

/// An open question, with all tasks that ask it: the one of the agent, and those that relay it.
struct FoundQuestion {
    question: OpenQuestion,
    /// True if the task asks it itself.
    is_original: bool,
    tasks: Vec<TaskId>,
}

/// Questions of all tasks of a hub, with the rights of the caller if that is a person.
pub(crate) struct Questions<'a>(pub(crate) &'a Tasks, pub(crate) Option<PersonRights>);

impl Questions<'_> {
    /// Carries out a request for the questions of the caller's tenant.
    pub(crate) async fn perform(
        &self,
        caller: &Caller,
        request: QuestionRequest,
    ) -> Result<QuestionAnswer, HubError> {
        let tenant = &caller.tenant;
        Ok(match request {
            QuestionRequest::List(query) => {
                let found = self.open_questions(tenant).await?;
                QuestionAnswer::List(page(found, &query))
            }
            QuestionRequest::History { limit, before } => {
                let filter =
                    ClosedQuestionFilter { tenant: tenant.clone(), id: None, before, limit };
                QuestionAnswer::History(self.question_history(filter).await?)
            }
            QuestionRequest::Answer { ids, answer, always } => {
                let found = self.open_questions(tenant).await?;
                let mut results: Vec<QuestionResult> = Vec::with_capacity(ids.len());
                for id in ids {
                    let by_rule = |done: &&QuestionResult| done.also_allowed.contains(&id);
                    if let Some(first) = results.iter().find(by_rule) {
                        let rules = first.rules.clone();
                        results.push(QuestionResult { rules, ..answered(id) });
                        continue;
                    }
                    let open = found.iter().find(|found| found.question.id == id);
                    if let Some(why) = self.refusal(open).await? {
                        results.push(not_counted(id, why.to_string()));
                        continue;
                    }
                    results.push(match always.zip(open) {
                        Some((terms, open)) => {
                            self.allow_always(caller, (id, open), &found, terms).await?
                        }
                        None => {
                            let by = &caller.principal;
                            self.answer_question(tenant, id, open, &answer, by).await?
                        }
                    });
                }
                QuestionAnswer::Answered(results)
            }
            QuestionRequest::Postpone { id, for_ms } => {
                let postponed = self.postpone(tenant, id, Duration::from_millis(for_ms)).await?;
                QuestionAnswer::Postponed(Box::new(postponed))
            }
        })
    }

    /// All open questions of a tenant, in no order.
    pub(crate) async fn all_open(&self, tenant: &TenantId) -> Result<Vec<OpenQuestion>, HubError> {
        let found = self.open_questions(tenant).await?;
        Ok(found.into_iter().map(|found| found.question).collect())
    }

    /// Reason why a person may not answer an open question: it is one of somebody else's task, or
    /// the key lacks the scope for it. None for other callers.
    async fn refusal(
        &self,
        open: Option<&FoundQuestion>,
    ) -> Result<Option<RightsDenied>, HubError> {
        let (Some(rights), Some(open)) = (&self.1, open) else { return Ok(None) };
        let facts = self.facts(rights, open).await?;
        let scope = match open.question.kind == QuestionKind::Permission {
            true => KeyScope::Approve,
            false => KeyScope::Answer,
        };
        let may = rights.require(scope).and_then(|()| rights.may_change(&facts));
        Ok(may.and_then(|()| rights.require_for(scope, &facts)).err())
    }

    /// Facts about the task that asks a question; one of another hub counts as the one that relays.
    async fn facts(
        &self,
        rights: &PersonRights,
        open: &FoundQuestion,
    ) -> Result<TaskFacts, StorageError> {
        let PersonRights { name, scopes, .. } = rights;
        let task = match self.0.storage.head(&open.question.task_id).await? {
            Some(_) => &open.question.task_id,
            None => open.tasks.last().unwrap_or(&open.question.task_id),
        };
        self.0.facts(task, name, scopes.name_skills()).await
    }

    /// Tasks that the caller sees, if these are not all of the tenant.
    fn visible(&self) -> Option<VisibleTasks> {
        VisibleTasks::of(self.0, self.1.clone())
    }

    /// Open questions of a tenant's tasks, each once.
    async fn open_questions(&self, tenant: &TenantId) -> Result<Vec<FoundQuestion>, HubError> {
        let mut found = BTreeMap::new();
        for state in [TaskState::InputRequired, TaskState::AuthRequired] {
            let filter = HeadFilter {
                tenant: Some(tenant.clone()),
                state: Some(state),
                live_only: true,
                ..HeadFilter::default()
            };
            let heads = stream::iter(self.0.storage.heads(filter).await?);
            let questions = heads.map(|head| self.questions_of(head)).buffer_unordered(AT_ONCE);
            for entry in questions.try_collect::<Vec<_>>().await?.into_iter().flatten() {
                add(&mut found, entry);
            }
        }
        let mut found: Vec<_> = found.into_values().collect();
        let mut heads = HashMap::new();
        for entry in &mut found {
            self.add_path(entry, &mut heads).await?;
        }
        let Some(rights) = self.1.as_ref().filter(|rights| !rights.sees_all()) else {
            return Ok(found);
        };
        let mut visible = Vec::new();
        for entry in found {
            if rights.sees(&self.facts(rights, &entry).await?) {
                visible.push(entry);
            }
        }
        Ok(visible)
    }

    /// Open question of a task, and its queued ones; none if it was answered or deleted meanwhile.
    async fn questions_of(&self, head: Head) -> Result<Vec<FoundQuestion>, StorageError> {
        let state = match self.question_state(&head.task).await {
            Some(state) => state,
            None => match self.0.storage.task(&head.task).await? {
                Some(stored) => QuestionState::of_record(&stored.task),
                None => return Ok(Vec::new()),
            },
        };
        let QuestionState { request, open, expires_in, expiring, set_aside, queued } = state;
        let describe = |opened: OpenedQuestion, is_queued: bool| {
            let OpenedQuestion { question, prompt, opened_at } = opened;
            let (tool, choices) = open_questions::tool_and_choices(&prompt);
            let is_original = question.task.is_none();
            let question = OpenQuestion {
                set_aside: set_aside.contains(&question.id),
                id: question.id,
                kind: question.kind,
                task_id: question.task.unwrap_or_else(|| head.task.clone()),
                root_task_id: head.task.clone(),
                agent_id: question.agent.unwrap_or_else(|| head.agent.clone()),
                path: Vec::new(),
                context_id: head.context.clone(),
                request: request.clone(),
                text: open_questions::text(&prompt),
                permission: question.request,
                tool,
                choices,
                directory: head.directory.clone(),
                interrupted: question.replaces.is_some(),
                queued: is_queued,
                opened_at,
                expires_at: expires_in.filter(|_| !is_queued).map(clock::after),
                expiring: expiring && !is_queued,
            };
            FoundQuestion { question, is_original, tasks: vec![head.task.clone()] }
        };
        let open = open.map(|opened| describe(opened, false));
        let queued = queued.into_iter().map(|opened| describe(opened, true));
        Ok(open.into_iter().chain(queued).collect())
    }

    /// State of the task's questions from its actor; none if the task does not run here, or its
    /// actor is busy.
    async fn question_state(&self, task: &TaskId) -> Option<QuestionState> {
        let running = self.0.find(task)?;
        let (reply_tx, reply) = oneshot::channel();
        let ask = async {
            running.commands.send(ActorCommand::ReportQuestions(reply_tx)).await.ok()?;
            reply.await.ok()
        };
        timeout(REPORT_WAIT, ask).await.ok().flatten()
    }

    /// Adds the agents above the asking task, and the root of its tree.
    async fn add_path(
        &self,
        entry: &mut FoundQuestion,
        heads: &mut HashMap<TaskId, Option<Head>>,
    ) -> Result<(), StorageError> {
        let mut path: Vec<AgentId> = Vec::new();
        let mut at = Some(entry.question.task_id.clone());
        while let Some(task) = at.take().filter(|_| path.len() < MAX_LEVELS) {
            let head = match heads.get(&task) {
                Some(known) => known.clone(),
                None => {
                    let head = self.0.storage.head(&task).await?;
                    heads.insert(task, head.clone());
                    head
                }
            };
            let Some(head) = head else { break };
            path.push(head.agent);
            entry.question.root_task_id = head.task;
            at = head.parent;
        }
        path.reverse();
        if path.is_empty() {
            path.push(entry.question.agent_id.clone());
        }
        entry.question.path = path;
        Ok(())
    }

    async fn answer_question(
        &self,
        tenant: &TenantId,
        id: QuestionId,
        open: Option<&FoundQuestion>,
        answer: &str,
        by: &Principal,
    ) -> Result<QuestionResult, HubError> {
        let refused = match open {
            None => None,
            Some(open) => {
                let mut message = Message::text(Role::User, answer);
                message.metadata = Some(open_questions::answer_metadata(&id));
                // The task that asks; one of another hub is reached through the one that relays.
                let task = match self.0.storage.head(&open.question.task_id).await? {
                    Some(_) => &open.question.task_id,
                    None => open.tasks.last().unwrap_or(&open.question.task_id),
                };
                let client = ClientCapabilities::default();
                match self.0.answer(task, message, client, None, by.clone()).await {
                    Ok(_) => {
                        return Ok(answered(id));
                    }
                    Err(why) => Some(A2aError::from(why)),
                }
            }
        };
        let filter = ClosedQuestionFilter {
            tenant: tenant.clone(),
            id: Some(id.clone()),
            before: None,
            limit: 1,
        };
        // Without the history, the refusal alone is the reason.
        let history = self.question_history(filter).await;
        let earlier = history.ok().and_then(|mut history| history.questions.pop());
        let error = match (&earlier, refused) {
            (Some(earlier), _) => closed_before(earlier),
            (None, Some(refused)) => refused.to_string(),
            (None, None) => unknown(&id).to_string(),
        };
        Ok(QuestionResult { earlier: earlier.map(Box::new), ..not_counted(id, error) })
    }

    /// Allows a permission, and makes the rules that answer it from now on. The rules are stored
    /// first: nothing is allowed by the way of a rule that is not there.
    async fn allow_always(
        &self,
        caller: &Caller,
        (id, open): (QuestionId, &FoundQuestion),
        found: &[FoundQuestion],
        terms: AlwaysAnswer,
    ) -> Result<QuestionResult, HubError> {
        let Some(request) = &open.question.permission else {
            let why = "the agent does not say what its program would do, so no standing permission \
                       can be made of it; allow it this time (`a2a-hub allow ID`)";
            return Ok(not_counted(id, why.to_owned()));
        };
        let Some((stored, agent)) = self.asking(open).await? else {
            let why = "the agent that asks is in another hub, or was removed; make the standing \
                       permission there, or allow it this time (`a2a-hub allow ID`)";
            return Ok(not_counted(id, why.to_owned()));
        };
        let operations = PermissionOperations(self.0);
        let (of, about) = ((&stored.task, &*agent), (&id, request));
        let rules = match operations.allow_always(caller, of, about, terms).await {
            Ok(rules) => rules,
            Err(why) => return Ok(not_counted(id, A2aError::from(why).to_string())),
        };
        let (tenant, by) = (&caller.tenant, &caller.principal);
        let result = match self.answer_question(tenant, id, Some(open), "allow", by).await {
            Ok(result) if result.answered => result,
            refused => {
                operations.take_back(tenant, &rules).await;
                return refused;
            }
        };
        let mut also_allowed = Vec::new();
        // The rules are for this agent alone.
        let is_other = |other: &&FoundQuestion| {
            other.question.id != result.id && other.question.agent_id == open.question.agent_id
        };
        for other in found.iter().filter(is_other) {
            match self.allow_like(tenant, other, &rules, by).await {
                Ok(true) => also_allowed.push(other.question.id.clone()),
                Ok(false) => {}
                // The question stays open; the answer above counts.
                Err(why) => {
                    let why = A2aError::from(why);
                    tracing::warn!(question = %other.question.id, %why, "cannot answer an open question by a new rule");
                }
            }
        }
        Ok(QuestionResult { rules, also_allowed, ..result })
    }

    /// Allows an open question, if these rules alone do; returns true if the answer counts.
    async fn allow_like(
        &self,
        tenant: &TenantId,
        open: &FoundQuestion,
        rules: &[String],
        by: &Principal,
    ) -> Result<bool, HubError> {
        if !self.is_allowed(open, rules).await? {
            return Ok(false);
        }
        if self.refusal(Some(open)).await?.is_some() {
            return Ok(false);
        }
        let id = open.question.id.clone();
        Ok(self.answer_question(tenant, id, Some(open), "allow", by).await?.answered)
    }

    /// True if these rules allow the request of an open question.
    async fn is_allowed(&self, open: &FoundQuestion, rules: &[String]) -> Result<bool, HubError> {
        let Some(request) = &open.question.permission else { return Ok(false) };
        let Some((stored, agent)) = self.asking(open).await? else { return Ok(false) };
        let operations = PermissionOperations(self.0);
        Ok(operations.is_allowed((&stored.task, &*agent), request, rules).await?)
    }

    /// Task that asks a question, and its agent; none if one of them is unknown here.
    async fn asking(
        &self,
        open: &FoundQuestion,
    ) -> Result<Option<(StoredTask, Arc<Agent>)>, StorageError> {
        let stored = self.0.stored(&open.question.task_id).await?;
        Ok(stored.zip(self.0.directory.agent(&open.question.agent_id)))
    }

    async fn postpone(
        &self,
        tenant: &TenantId,
        id: QuestionId,
        time: Duration,
    ) -> Result<OpenQuestion, HubError> {
        let found = self.open_questions(tenant).await?;
        let Some(entry) = found.into_iter().find(|found| found.question.id == id) else {
            return Err(unknown(&id).into());
        };
        if let Some(why) = self.refusal(Some(&entry)).await? {
            return Err(why.into());
        }
        let mut is_postponed = false;
        let mut tasks = entry.tasks;
        // Each task that relays the question has a deadline itself. The one that asks stores the
        // time, so it comes first: if that fails, nothing has changed.
        tasks.sort_by_key(|task| *task != entry.question.task_id);
        for task in &tasks {
            let Some(running) = self.0.find(task) else { continue };
            let (reply_tx, reply) = oneshot::channel();
            let command = ActorCommand::Postpone(id.clone(), time, reply_tx);
            if running.commands.send(command).await.is_ok() {
                // An actor that ends answers nothing.
                is_postponed |= reply.await.unwrap_or(Ok(false))?;
            }
        }
        if !is_postponed {
            return Err(unknown(&id).into());
        }
        let found = self.open_questions(tenant).await?;
        let postponed = found.into_iter().find(|found| found.question.id == id);
        Ok(postponed.map_or(entry.question, |found| found.question))
    }

    async fn question_history(
        &self,
        filter: ClosedQuestionFilter,
    ) -> Result<QuestionHistory, HubError> {
        let limit = filter.limit;
        let closed = match self.visible() {
            Some(visible) => self.visible_history(filter, &visible).await?,
            None => self.0.storage.closed_questions(filter).await?,
        };
        let next = closed.last().filter(|_| closed.len() == limit).map(|last| last.number);
        let mut questions = Vec::with_capacity(closed.len());
        for question in closed {
            questions.push(self.past_question(question).await?);
        }
        Ok(QuestionHistory { questions, next })
    }

    /// Closed questions of tasks that the caller sees.
    async fn visible_history(
        &self,
        filter: ClosedQuestionFilter,
        visible: &VisibleTasks,
    ) -> Result<Vec<ClosedQuestion>, StorageError> {
        let (limit, first) = (filter.limit, filter.before);
        let read = |before| {
            let chunk = ClosedQuestionFilter { before, limit: CHUNK, ..filter.clone() };
            self.0.storage.closed_questions(chunk).boxed()
        };
        visible.newest(limit, first, read, |closed| (&closed.task, closed.number)).await
    }

    async fn past_question(&self, closed: ClosedQuestion) -> Result<PastQuestion, StorageError> {
        let ClosedQuestion { number, id, kind, task, agent, .. } = closed;
        let entry = self.event(&task, closed.opened).await?;
        let text = match entry {
            Some(TaskEvent::Status(update)) => update.status.message,
            _ => None,
        };
        let answer = match closed.answered {
            Some(seq) => self.event(&task, seq).await?,
            None => None,
        };
        let answer = match answer {
            Some(TaskEvent::Input(message)) => Some(open_questions::text(&message)),
            _ => None,
        };
        Ok(PastQuestion {
            number,
            id,
            kind,
            task_id: task,
            agent_id: agent,
            text: text.map(|prompt| open_questions::text(&prompt)).unwrap_or_default(),
            opened_at: closed.opened_at,
            answer,
            answered_by: closed.by.map(|by| by.to_log()),
            closed_at: closed.closed_at,
            outcome: closed.outcome,
            rule: closed.rule,
        })
    }

    async fn event(&self, task: &TaskId, seq: u64) -> Result<Option<TaskEvent>, StorageError> {
        let found = self.0.storage.events(task, seq.saturating_sub(1), 1).await?;
        Ok(found.into_iter().next().map(|event| event.event))
    }
}

/// Adds a question to those found. The task that asks it itself describes it.
fn add(found: &mut BTreeMap<String, FoundQuestion>, entry: FoundQuestion) {
    match found.entry(entry.question.id.as_str().to_owned()) {
        Entry::Vacant(new) => {
            new.insert(entry);
        }
        Entry::Occupied(mut known) => {
            let known = known.get_mut();
            let tasks = entry.tasks.clone();
            if entry.is_original && !known.is_original {
                let tasks = std::mem::take(&mut known.tasks);
                let set_aside = known.question.set_aside;
                *known = FoundQuestion { tasks, ..entry };
                known.question.set_aside |= set_aside;
            }
            known.tasks.extend(tasks);
        }
    }
}

fn page(found: Vec<FoundQuestion>, query: &QuestionQuery) -> OpenQuestions {
    let matches = |question: &OpenQuestion| {
        query.kind.is_none_or(|kind| question.kind == kind)
            && query.agent.as_ref().is_none_or(|agent| question.agent_id == *agent)
    };
    let all = found.into_iter().map(|found| found.question);
    let mut questions: Vec<_> = all.filter(matches).collect();
    let ms_until = |time: &str| u64::try_from(clock::until(time).as_millis()).unwrap_or(u64::MAX);
    open_questions::sort(&mut questions, ms_until);
    let total = questions.len();
    let page = questions.into_iter().skip(query.offset).take(query.limit);
    OpenQuestions { questions: page.collect(), total }
}

/// Result of an answer that counts.
fn answered(id: QuestionId) -> QuestionResult {
    let (rules, also_allowed, error, earlier) = Default::default();
    QuestionResult { id, answered: true, rules, also_allowed, error, earlier }
}

/// Result of an answer that does not count, for this reason.
fn not_counted(id: QuestionId, why: String) -> QuestionResult {
    QuestionResult { answered: false, error: Some(why), ..answered(id) }
}

fn unknown(id: &QuestionId) -> A2aError {
    let why = format!(
        "no task asks the question `{id}` now; `hub/questions/list` shows the open ones, and `hub/questions/history` the others"
    );
    A2aError::new(ErrorKind::UnsupportedOperation, why)
}

/// Reason why an answer to a closed question does not count.
fn closed_before(earlier: &PastQuestion) -> String {
    match (&earlier.answer, &earlier.answered_by) {
        (Some(answer), Some(by)) => {
            format!("{by} answered it before with “{answer}”; this answer changes nothing")
        }
        (Some(answer), None) => {
            format!("it was answered before with “{answer}”; this answer changes nothing")
        }
        (None, _) => format!("it is closed: {}; this answer changes nothing", earlier.outcome),
    }
}
