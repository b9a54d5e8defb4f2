//! Parameters of the hub's own methods. `rpc.discover` publishes their JSON schemas.

use crate::{
    model::{
        error::A2aError,
        id::{AgentId, ContextId, MAX_ID},
        message::base64_bytes,
        operation::{
            AgentQuery, ComponentSource, ContextQuery, DEFAULT_FOUND, MAX_FOUND, Operation, Page,
            TaskQuery, TreeQuery,
        },
        task::TaskState,
    },
    v03::params::{read, task_id},
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use std::path::PathBuf;

/// Default number of listed tasks or conversations.
const DEFAULT_LISTED: usize = 20;

/// Default number of messages of a conversation.
const DEFAULT_MESSAGES: usize = 100;

/// Maximum number of listed items; more would delay the client's next answer.
pub(super) const MAX_LISTED: usize = 1_000;

/// Maximum number of tags or media types in a search.
const MAX_CRITERIA: usize = 32;

/// Maximum number of returned tree levels, far more than a tree has.
const MAX_LEVELS: usize = 64;

#[derive(JsonSchema)]
pub(crate) struct NoParams {}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ListAgents {
    /// True to include the health of each agent, from a recent check or a new one; false by
    /// default.
    #[serde(default)]
    include_health: bool,
}

/// Parameters of `hub/agents/find`.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct FindAgents {
    /// Id, alias or card name of the agent; an unknown name finds the agent with the most similar
    /// name.
    #[serde(alias = "agentId")]
    name: Option<String>,
    /// Id of a skill that the agent must have; `*` matches any skill.
    skill: Option<String>,
    /// Tags that the agent's skills must have, all of them; 32 at most.
    tags: Vec<String>,
    /// Description of the work in free text; the best matches come first.
    #[serde(alias = "q")]
    query: Option<String>,
    /// Version requirement, such as `2`, `>=1.4`, `^2.1` or `1.*`.
    version: Option<String>,
    /// Media types that the agent must accept; 32 at most.
    input_modes: Vec<String>,
    /// Media types that the agent must produce; 32 at most.
    output_modes: Vec<String>,
    /// Maximum number of agents: 10 by default, 1,000 at most.
    limit: Option<usize>,
    /// True to accept older versions if no version matches; false by default.
    allow_older: bool,
    /// True to leave out the registries that the operator configured; false by default.
    local_only: bool,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OneAgent {
    /// Id of the agent on this hub.
    agent_id: AgentId,
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct OneSchedule {
    /// Name of the schedule in the configuration.
    name: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ReloadAgent {
    /// Id of the agent on this hub.
    agent_id: AgentId,
    /// SHA-256 digest, in hex, of a remote agent's new card, which this call approves.
    accept: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RegisterAgent {
    /// Id of the new agent, which no other agent has.
    agent_id: AgentId,
    /// Absolute path of the component on the hub's machine; required unless `component` is given.
    path: Option<PathBuf>,
    /// Component in base64, in place of `path`.
    component: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ListTasks {
    /// Only tasks whose id begins with this text.
    id_prefix: Option<String>,
    /// Only tasks of this agent.
    agent_id: Option<AgentId>,
    /// Only tasks whose status changed at this time or later: RFC 3339 in UTC, such as
    /// `2026-01-31T12:00:00.000Z`.
    since: Option<String>,
    /// Only tasks of this conversation.
    context_id: Option<String>,
    /// Only tasks for this directory: the `metadata.workingDirectory` of their latest message that
    /// has one.
    working_directory: Option<String>,
    /// Only tasks of this workflow: the `metadata.x-workflow-id` of a client, or the id of the task
    /// at the root of a task tree.
    workflow: Option<String>,
    /// Only tasks in this state, such as `completed`.
    state: Option<String>,
    /// Maximum number of tasks: 20 by default, 1,000 at most.
    limit: Option<usize>,
    /// Number of newest tasks to skip: 0 by default.
    offset: Option<usize>,
    /// Number of latest messages to include for each task; all by default.
    history_length: Option<usize>,
    /// True to include the artifacts; false by default.
    #[serde(default)]
    include_artifacts: bool,
    /// True for a table: each task has its `request` in one line, at most 200 characters of its
    /// status message, no history and no artifacts; false by default.
    #[serde(default)]
    summary: bool,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct GetTree {
    /// Id of the task at the root of the returned tree; it may be a child of another task.
    id: String,
    /// Maximum number of levels below the root: 64 by default and at most.
    depth: Option<usize>,
    /// Maximum number of tasks: 1,000 by default and at most.
    limit: Option<usize>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ListContexts {
    /// Only conversations whose id begins with this text.
    id_prefix: Option<String>,
    /// Maximum number of conversations: 20 by default, 1,000 at most.
    limit: Option<usize>,
    /// Number of latest conversations to skip: 0 by default.
    offset: Option<usize>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct GetContext {
    /// Id of the conversation.
    context_id: String,
    /// Number of latest messages to include: 100 by default, 1,000 at most.
    history_length: Option<usize>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DeleteContext {
    /// Id of the conversation.
    context_id: String,
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct ListDeliveries {
    /// True to list only deliveries that were given up; false by default.
    #[serde(default)]
    dead: bool,
    /// Maximum number of deliveries: 20 by default, 1,000 at most.
    limit: Option<usize>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RetryDeliveries {
    /// Id of the task.
    task_id: String,
}

/// Reads the parameters of `hub/agents/list`.
pub(crate) fn list_agents(params: Value) -> Result<Operation, A2aError> {
    let ListAgents { include_health } = read(params)?;
    Ok(Operation::ListAgents { include_health })
}

/// Reads the parameters of `hub/agents/find`.
pub(crate) fn find_agents(params: Value) -> Result<Operation, A2aError> {
    agent_query(params).map(Operation::FindAgents)
}

/// Reads an agent query from the parameters of `hub/agents/find`, which components use as well.
pub fn agent_query(params: Value) -> Result<AgentQuery, A2aError> {
    let request: FindAgents = read(params)?;
    let limit = within("limit", request.limit.unwrap_or(DEFAULT_FOUND), 1, MAX_FOUND)?;
    let FindAgents { name, skill, tags, query: text, version, .. } = request;
    let FindAgents { input_modes, output_modes, allow_older, local_only, .. } = request;
    for (field, values) in
        [("tags", &tags), ("inputModes", &input_modes), ("outputModes", &output_modes)]
    {
        within(field, values.len(), 0, MAX_CRITERIA)?;
    }
    let words = |text: Option<String>| text.filter(|text| !text.trim().is_empty());
    Ok(AgentQuery {
        name: words(name),
        skill: words(skill),
        tags,
        text: words(text),
        version: words(version),
        input_modes,
        output_modes,
        limit,
        allow_older,
        local_only,
    })
}

/// Reads the parameters of a method that takes only an agent's id.
pub(crate) fn one_agent(params: Value) -> Result<AgentId, A2aError> {
    read(params).map(|OneAgent { agent_id }| agent_id)
}

/// Reads the parameters of the methods of one schedule.
pub(crate) fn one_schedule(params: Value) -> Result<String, A2aError> {
    read(params).map(|OneSchedule { name }| name)
}

/// Reads the parameters of `hub/agents/register`.
pub(crate) fn register_agent(params: Value) -> Result<Operation, A2aError> {
    let RegisterAgent { agent_id: id, path, component: bytes } = read(params)?;
    Ok(Operation::RegisterAgent { id, component: component(path, bytes)? })
}

/// Reads a component, which the client names by its path or sends in base64.
pub(super) fn component(
    path: Option<PathBuf>,
    bytes: Option<String>,
) -> Result<ComponentSource, A2aError> {
    match (path, bytes) {
        (Some(path), None) if path.is_absolute() => Ok(ComponentSource::File(path)),
        (Some(_), None) => {
            let why = "must be absolute: the hub does not know where you are";
            Err(A2aError::invalid("path", why))
        }
        (None, Some(text)) => match base64_bytes::decode(&text) {
            Ok(bytes) => Ok(ComponentSource::Bytes(bytes)),
            Err(why) => Err(A2aError::invalid("component", format!("is not base64: {why}"))),
        },
        (Some(_), Some(_)) | (None, None) => {
            Err(A2aError::invalid("path", "give either `path` or `component`"))
        }
    }
}

/// Reads the parameters of `hub/agents/reload`.
pub(crate) fn reload_agent(params: Value) -> Result<Operation, A2aError> {
    let ReloadAgent { agent_id: id, accept } = read(params)?;
    Ok(Operation::ReloadAgent { id, accept })
}

/// Reads the parameters of `hub/tasks/list`.
pub(crate) fn list_tasks(params: Value) -> Result<Operation, A2aError> {
    let params: ListTasks = read(params)?;
    let ListTasks { id_prefix, agent_id: agent, since, context_id, state, .. } = params;
    let ListTasks { limit, offset, history_length, include_artifacts, .. } = params;
    let (directory, workflow) = (params.working_directory, params.workflow);
    let is_summary = params.summary;
    Ok(Operation::ListTasks(TaskQuery {
        id_prefix,
        agent,
        since,
        context: context_id.map(self::context_id).transpose()?,
        tenant: None,
        directory,
        workflow,
        state: state.as_deref().map(task_state).transpose()?,
        page: page(limit, offset)?,
        history_length,
        include_artifacts,
        is_summary,
    }))
}

/// Reads the name of a task's state.
pub(super) fn task_state(name: &str) -> Result<TaskState, A2aError> {
    let states = TaskState::ALL.map(TaskState::name).join(", ");
    let why = format!("no task is ever `{name}`; there are {states}");
    TaskState::from_name(name).ok_or_else(|| A2aError::invalid("state", why))
}

/// Reads the parameters of `hub/tasks/tree`.
pub(crate) fn get_tree(params: Value) -> Result<Operation, A2aError> {
    let GetTree { id, depth, limit } = read(params)?;
    let depth = within("depth", depth.unwrap_or(MAX_LEVELS), 0, MAX_LEVELS)?;
    let limit = within("limit", limit.unwrap_or(MAX_LISTED), 1, MAX_LISTED)?;
    Ok(Operation::GetTree(TreeQuery { id: task_id("id", id)?, depth, limit }))
}

/// Reads the parameters of `hub/contexts/list`.
pub(crate) fn list_contexts(params: Value) -> Result<Operation, A2aError> {
    let ListContexts { id_prefix, limit, offset } = read(params)?;
    let page = page(limit, offset)?;
    Ok(Operation::ListContexts(ContextQuery { id_prefix, ..ContextQuery::all(page) }))
}

/// Reads the parameters of `hub/contexts/get`.
pub(crate) fn get_context(params: Value) -> Result<Operation, A2aError> {
    let GetContext { context_id: id, history_length } = read(params)?;
    let shown = history_length.unwrap_or(DEFAULT_MESSAGES);
    let history_length = within("historyLength", shown, 0, MAX_LISTED)?;
    Ok(Operation::GetContext { id: context_id(id)?, history_length })
}

/// Reads the parameters of `hub/contexts/delete`.
pub(crate) fn delete_context(params: Value) -> Result<Operation, A2aError> {
    let DeleteContext { context_id: id } = read(params)?;
    Ok(Operation::DeleteContext { id: context_id(id)? })
}

/// Reads the parameters of `hub/deliveries/list`.
pub(crate) fn list_deliveries(params: Value) -> Result<Operation, A2aError> {
    let ListDeliveries { dead: dead_only, limit } = read(params)?;
    let limit = within("limit", limit.unwrap_or(DEFAULT_LISTED), 1, MAX_LISTED)?;
    Ok(Operation::ListDeliveries { dead_only, limit })
}

/// Reads the parameters of `hub/deliveries/retry`.
pub(crate) fn retry_deliveries(params: Value) -> Result<Operation, A2aError> {
    let RetryDeliveries { task_id: id } = read(params)?;
    Ok(Operation::RetryDeliveries { task: task_id("taskId", id)? })
}

fn page(limit: Option<usize>, offset: Option<usize>) -> Result<Page, A2aError> {
    let limit = within("limit", limit.unwrap_or(DEFAULT_LISTED), 1, MAX_LISTED)?;
    Ok(Page { limit, offset: offset.unwrap_or(0) })
}

pub(super) fn within(
    field: &str,
    number: usize,
    min: usize,
    max: usize,
) -> Result<usize, A2aError> {
    if (min..=max).contains(&number) {
        Ok(number)
    } else {
        Err(A2aError::invalid(field, format!("must be {min} to {max}")))
    }
}

pub(super) fn context_id(id: String) -> Result<ContextId, A2aError> {
    if id.is_empty() || id.len() > MAX_ID {
        let why = format!("must be 1 to {MAX_ID} bytes long");
        Err(A2aError::invalid("contextId", why))
    } else {
        Ok(ContextId::new(id))
    }
}
