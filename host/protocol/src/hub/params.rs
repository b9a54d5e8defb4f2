//! Parameters of the hub's own methods. `rpc.discover` publishes their JSON schemas.

use crate::{
    model::{
        error::A2aError,
        id::{AgentId, ContextId, MAX_ID},
        message::base64_bytes,
        operation::{
            AgentQuery, Component, ContextQuery, DEFAULT_FOUND, MAX_FOUND, Operation, Page,
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
const MAX_LISTED: usize = 1_000;

/// Maximum number of tags or media types in a search.
const MAX_CRITERIA: usize = 32;

/// Maximum number of returned tree levels, far more than a tree has.
const MAX_LEVELS: usize = 64;

#[derive(JsonSchema)]
pub(crate) struct NoParams {}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ListAgents {
    /// Whether to ask each how it is.
    #[serde(default)]
    include_health: bool,
}

/// What [`AgentQuery`] is on the wire.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct FindAgents {
    /// The agent's id, one of its aliases or its card's name; what nobody is called finds whoever has the nearest name.
    #[serde(alias = "agentId")]
    name: Option<String>,
    /// The id of a skill that it has; `*` is any.
    skill: Option<String>,
    /// Tags, all of which its skills have.
    tags: Vec<String>,
    /// What it is to do, in anybody's words.
    #[serde(alias = "q")]
    query: Option<String>,
    /// Which versions will do: `2`, `>=1.4`, `^2.1`, `1.*`.
    version: Option<String>,
    /// Media types that it must take.
    input_modes: Vec<String>,
    /// Media types that it must answer with.
    output_modes: Vec<String>,
    /// How many at most: 10 unless said, 1,000 at most.
    limit: Option<usize>,
    /// Whether an older version will do if there is no other.
    allow_older: bool,
    /// Whether the registries that the operator named are left out.
    local_only: bool,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OneAgent {
    /// The agent's id on this hub.
    agent_id: AgentId,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ReloadAgent {
    /// The agent's id on this hub.
    agent_id: AgentId,
    /// For an agent elsewhere: the SHA-256 digest, in hex, of its new card, which is approved by this.
    accept: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RegisterAgent {
    /// What it is to be called; no other agent may be called so.
    agent_id: AgentId,
    /// Its component's file on the hub's machine, as an absolute path.
    path: Option<PathBuf>,
    /// The component itself in base64, instead of a path.
    component: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ListTasks {
    /// Only tasks whose id begins so.
    id_prefix: Option<String>,
    /// Only tasks of this agent.
    agent_id: Option<AgentId>,
    /// Only tasks whose status changed then or later: RFC 3339 in UTC, such as `2026-01-31T12:00:00.000Z`.
    since: Option<String>,
    /// Only tasks of this conversation.
    context_id: Option<String>,
    /// Only tasks that are to be done in this directory: `metadata.workingDirectory` of their latest message that has one.
    working_directory: Option<String>,
    /// Only tasks of this workflow: what a client named it with `metadata.x-workflow-id`, or the id of the task at the root of a
    /// tree of tasks that agents gave one another.
    workflow: Option<String>,
    /// Only tasks in this state.
    state: Option<String>,
    /// How many at most: 20 unless said, 1,000 at most.
    limit: Option<usize>,
    /// Leaving out so many of the newest.
    offset: Option<usize>,
    /// How many of each task's latest messages to show; all of them if left out.
    history_length: Option<usize>,
    /// Whether to show what the agents made.
    #[serde(default)]
    include_artifacts: bool,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct GetTree {
    /// The id of the task at the root of what is told; it may stand below others.
    id: String,
    /// How many levels below that to tell: 64 unless said, which is the most.
    depth: Option<usize>,
    /// How many tasks to tell at most: 1,000 unless said, which is the most.
    limit: Option<usize>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ListContexts {
    /// Only conversations whose id begins so.
    id_prefix: Option<String>,
    /// How many at most: 20 unless said, 1,000 at most.
    limit: Option<usize>,
    /// Leaving out so many of the latest.
    offset: Option<usize>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct GetContext {
    /// The conversation's id.
    context_id: String,
    /// How many of its latest messages to show: 100 unless said, 1,000 at most.
    history_length: Option<usize>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DeleteContext {
    /// The conversation's id.
    context_id: String,
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct ListDeliveries {
    /// Only notifications that were given up.
    #[serde(default)]
    dead: bool,
    /// How many at most: 20 unless said, 1,000 at most.
    limit: Option<usize>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RetryDeliveries {
    /// The task's id.
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
    let said: FindAgents = read(params)?;
    let limit = within("limit", said.limit.unwrap_or(DEFAULT_FOUND), 1, MAX_FOUND)?;
    let FindAgents { name, skill, tags, query: text, version, .. } = said;
    let FindAgents { input_modes, output_modes, allow_older, local_only, .. } = said;
    for (field, asked) in
        [("tags", &tags), ("inputModes", &input_modes), ("outputModes", &output_modes)]
    {
        within(field, asked.len(), 0, MAX_CRITERIA)?;
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

/// Reads the parameters of `hub/agents/register`.
pub(crate) fn register_agent(params: Value) -> Result<Operation, A2aError> {
    let RegisterAgent { agent_id: id, path, component: bytes } = read(params)?;
    Ok(Operation::RegisterAgent { id, component: component(path, bytes)? })
}

/// Reads a component, which the client names by its path or sends in base64.
pub(super) fn component(
    path: Option<PathBuf>,
    bytes: Option<String>,
) -> Result<Component, A2aError> {
    match (path, bytes) {
        (Some(path), None) if path.is_absolute() => Ok(Component::File(path)),
        (Some(_), None) => {
            let why = "must be absolute: the hub does not know where you are";
            Err(A2aError::invalid("path", why))
        }
        (None, Some(text)) => match base64_bytes::decode(&text) {
            Ok(bytes) => Ok(Component::Bytes(bytes)),
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
    let known = |name: String| {
        let states = TaskState::ALL.map(TaskState::name).join(", ");
        let why = format!("no task is ever `{name}`; there are {states}");
        TaskState::from_name(&name).ok_or_else(|| A2aError::invalid("state", why))
    };
    Ok(Operation::ListTasks(TaskQuery {
        id_prefix,
        agent,
        since,
        context: context_id.map(self::context_id).transpose()?,
        tenant: None,
        directory,
        workflow,
        state: state.map(known).transpose()?,
        page: page(limit, offset)?,
        history_length,
        include_artifacts,
    }))
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
    Ok(Operation::ListContexts(ContextQuery {
        id_prefix,
        tenant: None,
        page: page(limit, offset)?,
    }))
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

fn within(field: &str, number: usize, least: usize, most: usize) -> Result<usize, A2aError> {
    if (least..=most).contains(&number) {
        Ok(number)
    } else {
        Err(A2aError::invalid(field, format!("must be {least} to {most}")))
    }
}

fn context_id(id: String) -> Result<ContextId, A2aError> {
    if id.is_empty() || id.len() > MAX_ID {
        let why = format!("must be 1 to {MAX_ID} bytes long");
        Err(A2aError::invalid("contextId", why))
    } else {
        Ok(ContextId::new(id))
    }
}
