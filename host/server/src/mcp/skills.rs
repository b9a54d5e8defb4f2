//! Calls of skills' tools, prompts of agents, and completion of arguments.

use super::{
    call::McpCall,
    failure::error,
    tools::{self, Ask, Miscalled},
};
use crate::five_step::InputSchemas;
use crate::mcp::model::{
    prompts::{self, AgentPrompt, matching},
    resources,
    skill_tools::{self, SkillTool},
};
use a2a_hub_core::text::plain_text;
use a2a_hub_engine::Reply;
use a2a_hub_process::run_blocking;
use a2a_hub_protocol::{
    card::Violation,
    error::A2aError,
    id::TaskId,
    operation::{AgentInfo, Answer, Operation, TaskPageQuery},
};
use a2a_hub_rpc::begun_tasks::unexpected;
use rmcp::{
    ErrorData,
    model::{
        CompleteRequestParams, CompleteResult, CompletionInfo, GetPromptRequestParams,
        GetPromptResult, JsonObject, ListPromptsResult, Reference, Tool,
    },
};

/// Maximum length of an unknown prompt's name in an error, in characters.
const MAX_NAME: usize = 80;

/// Number of tasks whose ids are proposed.
const PROPOSED_TASKS: usize = 100;

/// Reads cards on a blocking thread, because they are untrusted, and their schemas are compiled.
async fn read_cards<T: Send + 'static>(
    agents: Vec<AgentInfo>,
    read: impl FnOnce(&[AgentInfo]) -> T + Send + 'static,
) -> Result<T, A2aError> {
    run_blocking(move || read(&agents)).await.map_err(|why| {
        tracing::error!(%why, "cannot read the cards of agents");
        unexpected()
    })
}

/// All tools for these agents.
pub(super) async fn tools_of(agents: Vec<AgentInfo>) -> Result<Vec<Tool>, A2aError> {
    read_cards(agents, tools::all).await
}

impl McpCall<'_> {
    /// Answer to an operation that gives one.
    pub(super) async fn answer_of(&self, operation: Operation) -> Result<Answer, A2aError> {
        match self.dispatcher.ask(&self.caller, operation).await?.0 {
            Reply::One(answer) => Ok(answer),
            Reply::Stream(_) => Err(unexpected()),
        }
    }

    /// Agents of the caller, without their health.
    async fn agents(&self) -> Result<Vec<AgentInfo>, A2aError> {
        let list = Operation::ListAgents { include_health: false };
        let Answer::Agents(mut agents) = self.answer_of(list).await? else {
            return Err(unexpected());
        };
        agents.retain(tools::is_for_clients);
        Ok(agents)
    }

    /// Checks the input of a skill's tool.
    pub(super) async fn input_of_skill(
        &self,
        name: &str,
        input: JsonObject,
    ) -> Result<Result<Ask, A2aError>, Miscalled> {
        match self.checked(name, &input).await {
            Ok(Some(tool)) => {
                let text = tool.text(&input);
                Ok(Ok(Ask::of_skill(tool.skill.id, input.into(), text)))
            }
            Ok(None) => Err(Miscalled::NoTool),
            Err(why) => Ok(Err(why)),
        }
    }

    async fn checked(&self, name: &str, input: &JsonObject) -> Result<Option<SkillTool>, A2aError> {
        let mut agents = self.agents().await?;
        agents.retain(|agent| skill_tools::agent_in(name).as_ref() == Some(&agent.id));
        let all = read_cards(agents, skill_tools::all).await?;
        let Some(tool) = all.into_iter().find(|tool| tool.name == name) else { return Ok(None) };
        let Some(schema) = tool.skill.input_schema() else { return Ok(None) };
        let of = (&tool.agent, tool.skill.id.as_str());
        let violations = InputSchemas::default().violations(of, schema, input).await?;
        if violations.is_empty() {
            return Ok(Some(tool));
        }
        let describe = |Violation { pointer, why }: &Violation| match pointer.as_str() {
            "" => format!("the arguments: {why}"),
            pointer => format!("`{pointer}` {why}"),
        };
        let all: Vec<_> = violations.iter().map(describe).collect();
        let why = format!("{}; `tools/list` has the schema of the tool", all.join("; "));
        Err(A2aError::invalid(&format!("arguments of {name}"), why))
    }

    async fn all_prompts(&self) -> Result<Vec<AgentPrompt>, ErrorData> {
        let agents = self.agents().await.map_err(|why| error(&why))?;
        read_cards(agents, prompts::all).await.map_err(|why| error(&why))
    }

    async fn found_prompt(&self, name: &str) -> Result<AgentPrompt, ErrorData> {
        let found = self.all_prompts().await?.into_iter().find(|prompt| prompt.name() == name);
        found.ok_or_else(|| {
            let name = plain_text::line(name, MAX_NAME);
            let why = format!("no prompt is called `{name}`; `prompts/list` lists them");
            ErrorData::invalid_params(why, None)
        })
    }

    /// Lists the prompts of all agents.
    pub(super) async fn prompts(&self) -> Result<ListPromptsResult, ErrorData> {
        let listed = self.all_prompts().await?.iter().map(AgentPrompt::listed).collect();
        Ok(ListPromptsResult::with_all_items(listed))
    }

    /// Fills in a prompt.
    pub(super) async fn prompt(
        &self,
        params: GetPromptRequestParams,
    ) -> Result<GetPromptResult, ErrorData> {
        let prompt = self.found_prompt(&params.name).await?;
        let messages = prompt.messages(&params.arguments.unwrap_or_default());
        let messages = messages.map_err(|why| ErrorData::invalid_params(why, None))?;
        let description = prompt.listed().description.unwrap_or_default();
        Ok(GetPromptResult::new(messages).with_description(description))
    }

    /// Proposes values of a prompt's argument, or of a part of a resource's URI.
    pub(super) async fn completion(
        &self,
        params: CompleteRequestParams,
    ) -> Result<CompleteResult, ErrorData> {
        let (argument, typed) = (&params.argument.name, &params.argument.value);
        let values = match &params.r#ref {
            Reference::Prompt(prompt) => {
                let prompt = self.found_prompt(&prompt.name).await?;
                prompt.completions(argument, typed)
            }
            Reference::Resource(template) => {
                let known = resources::templates();
                let is_known = known.iter().any(|known| known.uri_template == template.uri);
                let named =
                    params.context.and_then(|context| context.arguments).unwrap_or_default();
                let task = named.get("task_id").map(|id| TaskId::new(id.as_str()));
                let ids = match (is_known, argument.as_str()) {
                    (true, "task_id") => Some(self.task_ids().await),
                    (true, "artifact_id") => Some(self.artifact_ids(task).await),
                    _ => None,
                };
                let ids = ids.transpose().map_err(|why| error(&why))?;
                ids.map(|ids| matching(ids, typed))
            }
            _ => None,
        };
        let values = values.ok_or_else(|| {
            let name = plain_text::line(argument, MAX_NAME);
            let why = format!(
                "nothing with an argument `{name}` is there; `prompts/list` and \
                 `resources/templates/list` list the arguments"
            );
            ErrorData::invalid_params(why, None)
        })?;
        let info = CompletionInfo::with_all_values(values);
        Ok(CompleteResult::new(info.map_err(|why| ErrorData::internal_error(why, None))?))
    }

    async fn task_ids(&self) -> Result<Vec<String>, A2aError> {
        let Operation::PageTasks(query) = resources::list(None) else { return Err(unexpected()) };
        let query = TaskPageQuery { size: PROPOSED_TASKS, include_artifacts: false, ..query };
        let page = self.answer_of(Operation::PageTasks(query)).await?;
        let Answer::TaskPage { tasks, .. } = page else { return Err(unexpected()) };
        Ok(tasks.iter().map(|listed| listed.task.id.to_string()).collect())
    }

    /// Ids of the artifacts of a task that the caller sees.
    async fn artifact_ids(&self, task: Option<TaskId>) -> Result<Vec<String>, A2aError> {
        let Some(id) = task else { return Ok(Vec::new()) };
        let Ok(task) = self.task(&id).await else { return Ok(Vec::new()) };
        Ok(task.artifacts.iter().map(|artifact| artifact.artifact_id.to_string()).collect())
    }
}
