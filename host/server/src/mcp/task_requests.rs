//! Requests about tasks, in both forms: `tasks/get`, `/cancel`, `/update`, `/result` and `/list`,
//! and a call that asks for a task.

use super::{
    call::{FormOutcome, McpCall, McpStreamEnd},
    failure::error,
    question,
    tasks::{self, RELATED, TaskForm, UNREAD},
    tools::{self, Called, Miscalled},
};
use crate::mcp::model::resources;
use a2a_hub_core::text::plain_text;
use a2a_hub_engine::Reply;
use a2a_hub_protocol::{
    error::{A2aError, ErrorKind},
    id::TaskId,
    operation::{Answer, Operation, TaskPageQuery, Wait},
    task::Task,
    v1::{read_token, write_token},
};
use a2a_hub_rpc::{begun_tasks::unexpected, message_builder, question_view};
use rmcp::model::{
    CallToolRequestParams, CallToolResult, ClientCapabilities, ElicitRequestParams, ErrorCode,
    ErrorData, GetTaskResult, InputResponses, RequestMetaObject, TaskAckResult,
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Maximum length of an unknown method in an error, in characters.
const MAX_NAME: usize = 80;

/// Number of tasks on a page.
const PAGE: usize = 50;

/// Pause between two looks at a task that waits for an answer by another client.
const POLL: Duration = Duration::from_secs(1);

/// Time after which a wait for the end of a task begins anew.
const DAY: Duration = Duration::from_secs(86_400);

/// A request about tasks that the SDK has not read.
#[derive(Debug)]
pub(super) struct TaskRequest {
    form: TaskForm,
    method: TaskMethod,
}

#[derive(Debug)]
enum TaskMethod {
    Get(OfTask),
    Cancel(OfTask),
    Update(UpdateParameters),
    Result(OfTask),
    List(Value),
    Begin(Box<CallToolRequestParams>),
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct OfTask {
    task_id: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct UpdateParameters {
    task_id: String,
    input_responses: InputResponses,
}

impl TaskRequest {
    /// Reads a request of a client with this form of tasks.
    pub(super) fn read(
        form: Option<TaskForm>,
        method: &str,
        params: Value,
    ) -> Result<Self, ErrorData> {
        let method = method.strip_prefix(UNREAD).unwrap_or(method);
        let task_method = match (form, method) {
            (Some(_), "tasks/get") => TaskMethod::Get(params_of(method, params)?),
            (Some(_), "tasks/cancel") => TaskMethod::Cancel(params_of(method, params)?),
            (Some(TaskForm::Extension), "tasks/update") => {
                TaskMethod::Update(params_of(method, params)?)
            }
            (Some(TaskForm::Core), "tasks/result") => {
                TaskMethod::Result(params_of(method, params)?)
            }
            (Some(TaskForm::Core), "tasks/list") => TaskMethod::List(params),
            (Some(TaskForm::Core), "tools/call") => {
                TaskMethod::Begin(Box::new(params_of(method, params)?))
            }
            _ => {
                let name = plain_text::line(method, MAX_NAME);
                let why = format!(
                    "no method is called `{name}`, or it is not agreed on at `initialize`; `tools/list` lists the tools"
                );
                return Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, why, None));
            }
        };
        Ok(Self { form: form.unwrap_or(TaskForm::Core), method: task_method })
    }
}

fn no_tool() -> ErrorData {
    ErrorData::invalid_params("no tool has this name; `tools/list` lists them", None)
}

pub(super) fn params_of<T: DeserializeOwned>(method: &str, params: Value) -> Result<T, ErrorData> {
    serde_json::from_value(params)
        .map_err(|why| ErrorData::invalid_params(format!("call `{method}`: `params`: {why}"), None))
}

impl McpCall<'_> {
    /// Serves a request about tasks.
    pub(super) async fn serve_task(
        &self,
        request: TaskRequest,
        directory: Option<&str>,
    ) -> Result<Value, ErrorData> {
        let is_declared =
            self.context.client_capabilities().is_some_and(|client| client.supports_tasks());
        if request.form == TaskForm::Extension && !is_declared {
            let needed = ClientCapabilities::builder().enable_tasks().build();
            return Err(ErrorData::missing_required_client_capability(needed));
        }
        match (request.form, request.method) {
            (TaskForm::Core, TaskMethod::Get(of)) => self.core_task(&of.task_id).await,
            (TaskForm::Extension, TaskMethod::Get(of)) => {
                Ok(json!(self.extension_task(&of.task_id).await?))
            }
            (form @ TaskForm::Core, TaskMethod::Cancel(of)) => {
                Ok(tasks::core(&self.cancel_task(form, &of.task_id).await?))
            }
            (form @ TaskForm::Extension, TaskMethod::Cancel(of)) => {
                self.cancel_task(form, &of.task_id).await?;
                Ok(json!(TaskAckResult::new()))
            }
            (_, TaskMethod::Update(update)) => {
                self.update_task(&update.task_id, &update.input_responses).await?;
                Ok(json!(TaskAckResult::new()))
            }
            (_, TaskMethod::Result(of)) => Ok(json!(self.task_result(&of.task_id).await?)),
            (_, TaskMethod::List(params)) => self.list_tasks(&params).await,
            (_, TaskMethod::Begin(request)) => self.begin_task(*request, directory).await,
        }
    }

    /// Returns a task as the core form has it.
    async fn core_task(&self, id: &str) -> Result<Value, ErrorData> {
        Ok(tasks::core(&self.found(id).await?))
    }

    /// Returns a task as the extension has it.
    pub(super) async fn extension_task(&self, id: &str) -> Result<GetTaskResult, ErrorData> {
        let task = self.found(id).await?;
        Ok(GetTaskResult::new(tasks::detailed(&task, self.shows_forms())))
    }

    /// Cancels a task; in the core form, one that has ended is refused.
    pub(super) async fn cancel_task(&self, form: TaskForm, id: &str) -> Result<Task, ErrorData> {
        let task = self.found(id).await?;
        match self.end(&task.id).await {
            Ok(task) => Ok(task),
            // The extension acknowledges the wish, whatever comes of it.
            Err(why)
                if form == TaskForm::Extension
                    && matches!(why.kind, ErrorKind::TaskNotCancelable | ErrorKind::Timeout) =>
            {
                Ok(task)
            }
            Err(why) => Err(error(&why)),
        }
    }

    /// Takes the answers of the client's user. What answers no open question is ignored.
    pub(super) async fn update_task(
        &self,
        id: &str,
        responses: &InputResponses,
    ) -> Result<(), ErrorData> {
        let task = self.found(id).await?;
        if !task.status.state.is_interrupted() {
            return Ok(());
        }
        let response = responses.get(&tasks::question_key(&task));
        let filled = response.and_then(|value| serde_json::from_value(value.clone()).ok());
        let Some(answer) = filled.and_then(|filled| question::answer(&task, &filled)) else {
            return Ok(());
        };
        self.send_answer(&task, &answer).await.map_err(|why| error(&why))
    }

    /// Begins a task for a call that asks for one, and returns it as the core form has it.
    async fn begin_task(
        &self,
        request: CallToolRequestParams,
        directory: Option<&str>,
    ) -> Result<Value, ErrorData> {
        let name = request.name.clone();
        let (agent, ask) = match tools::read(&name, request.arguments) {
            Ok(Called::Agent(agent, ask)) => (agent, ask),
            Ok(Called::Skill(agent, input)) => match self.input_of_skill(&name, input).await {
                Ok(ask) => (agent, ask.map_err(|why| error(&why))?),
                Err(_) => return Err(no_tool()),
            },
            Ok(
                Called::ListAgents
                | Called::Check(..)
                | Called::Cancel(_)
                | Called::Answer(_)
                | Called::Topic(_)
                | Called::Board(_)
                | Called::Question(_),
            ) => {
                let why = format!("`{name}` is answered at once; call it without `task`");
                return Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, why, None));
            }
            Err(Miscalled::NoTool) => return Err(no_tool()),
            Err(Miscalled::Arguments(why)) => return Err(ErrorData::invalid_params(why, None)),
        };
        let begun = async {
            let operation = self.beginning(&agent, &ask, directory)?;
            let Operation::StreamMessage(mut send) = operation else { return Err(unexpected()) };
            send.wait = Wait::No;
            self.one(Operation::SendMessage(send)).await
        };
        Ok(tasks::core_created(&begun.await.map_err(|why| error(&why))?))
    }

    /// Returns a page of the caller's tasks as the core form has them.
    async fn list_tasks(&self, params: &Value) -> Result<Value, ErrorData> {
        let cursor = &params["cursor"];
        let after = match (cursor.as_str().map(read_token), cursor.is_null()) {
            (Some(Some(after)), _) => Some(after),
            (None, true) => None,
            (Some(None), _) | (None, false) => {
                let why = "`cursor` must be the `nextCursor` of the page before";
                return Err(ErrorData::invalid_params(why, None));
            }
        };
        let Operation::PageTasks(query) = resources::list(after) else {
            return Err(error(&unexpected()));
        };
        let page =
            Operation::PageTasks(TaskPageQuery { size: PAGE, include_artifacts: false, ..query });
        let (reply, _) =
            self.dispatcher.ask(&self.caller, page).await.map_err(|why| error(&why))?;
        let Reply::One(Answer::TaskPage { tasks, next, .. }) = reply else {
            return Err(error(&unexpected()));
        };
        let tasks: Vec<_> = tasks.iter().map(|listed| tasks::core(&listed.task)).collect();
        let mut result = json!({ "tasks": tasks });
        if let Some(next) = &next {
            result["nextCursor"] = json!(write_token(next));
        }
        Ok(result)
    }

    /// Waits for the end of a task, and returns its result as the core form has it. Its questions
    /// are put to the client's user meanwhile. A client that leaves does not cancel the task.
    async fn task_result(&self, id: &str) -> Result<CallToolResult, ErrorData> {
        let _permit = self.dispatcher.admit(&self.caller).map_err(|refused| error(&refused.why))?;
        let mut unanswered = None;
        loop {
            let task = self.found(id).await?;
            if task.status.state.is_final() {
                return Ok(tasks::core_result(&task));
            }
            if self.stop.is_cancelled() || self.context.ct.is_cancelled() {
                let why = "the wait for the task has ended, the task has not; ask again";
                return Err(ErrorData::internal_error(why, None));
            }
            if !task.status.state.is_interrupted() {
                self.follow(&task.id).await?;
                continue;
            }
            let question = Some(tasks::question_key(&task));
            if unanswered == question || !self.ask_user(&task).await? {
                unanswered = question;
                tokio::select! {
                    () = sleep(POLL) => {}
                    () = self.context.ct.cancelled() => {}
                }
            }
        }
    }

    /// Waits until the task changes to a state in which it waits or has ended.
    async fn follow(&self, id: &TaskId) -> Result<(), ErrorData> {
        let listening = Operation::Resubscribe { id: id.clone(), after: None };
        // The wait has a permit already.
        let listened = self.dispatcher.hub().handle(&self.caller, None, listening).await;
        if let Ok(Reply::Stream(mut events)) = listened {
            let end = self.follow_events(&mut events, Instant::now() + DAY).await;
            match end.map_err(|why| error(&why))? {
                McpStreamEnd::Task
                | McpStreamEnd::Message(_)
                | McpStreamEnd::Late
                | McpStreamEnd::Cancelled => {}
            }
        } else {
            // The task may have ended in the meantime.
            sleep(POLL).await;
        }
        Ok(())
    }

    /// Puts the task's question to the client's user, and returns true if they answered it.
    async fn ask_user(&self, task: &Task) -> Result<bool, ErrorData> {
        let Some(form) = question::form(task, None).filter(|_| self.shows_forms()) else {
            return Ok(false);
        };
        match self.fill(task, related(form, &task.id)).await {
            FormOutcome::Answered(answer) => {
                self.send_answer(task, &answer).await.map_err(|why| error(&why))?;
                Ok(true)
            }
            FormOutcome::Unanswered | FormOutcome::Cancelled => Ok(false),
        }
    }

    /// Answers the task's question, and does not wait for what comes of it.
    async fn send_answer(&self, task: &Task, text: &str) -> Result<(), A2aError> {
        let question = question_view::id(task);
        let parts = message_builder::text(text);
        let operation = message_builder::answer(&task.id, parts, question.as_deref())?;
        self.dispatcher.ask(&self.caller, operation).await.map(drop)
    }

    async fn found(&self, id: &str) -> Result<Task, ErrorData> {
        self.task(&TaskId::new(id)).await.map_err(|why| error(&why))
    }
}

/// The form as a message of this task.
fn related(form: ElicitRequestParams, task: &TaskId) -> ElicitRequestParams {
    let ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } = form else {
        return form;
    };
    let mut meta = RequestMetaObject::default();
    meta.insert(RELATED.to_owned(), json!({ "taskId": task }));
    ElicitRequestParams::FormElicitationParams { meta: Some(meta), message, requested_schema }
}
