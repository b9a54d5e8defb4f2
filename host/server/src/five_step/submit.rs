//! Submission of a task: to the agent of the path, or at the root to an agent that has the skill.

use super::{
    refusals::{named, refused},
    schemas::InputSchemas,
};
use crate::five_step::model::{
    self as five_step, Submission,
    skill_holder::{NoHolder, SkillCandidate, find_skill, holder},
};
use crate::http::{
    body::read_body,
    context::{hub_url, trace},
    origin_guard,
};
use a2a_hub_core::access_control::Principal;
use a2a_hub_engine::Reply;
use a2a_hub_protocol::{
    card::AgentCard,
    error::A2aError,
    five_step::UPDATES,
    hub::answer::AGENTS,
    id::AgentId,
    operation::{Answer, CardOf, Operation},
    task::Task,
};
use a2a_hub_rpc::{begun_tasks::unexpected, dispatcher::Dispatcher};
use axum::{
    Extension, Json,
    extract::{Path, Request, State},
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse as _, Response},
};
use serde_json::json;

/// Selected agent with its card and its id of the skill.
struct SelectedAgent {
    agent: AgentId,
    card: AgentCard,
    skill: String,
    /// True if several agents have the skill, so that the hub balances the tasks.
    is_one_of_several: bool,
}

pub(super) async fn at_root(
    State(dispatcher): State<Dispatcher>,
    Extension(schemas): Extension<InputSchemas>,
    request: Request,
) -> Response {
    // The root endpoint belongs to the agent whose card is at the root.
    let agent = dispatcher.public_endpoints().root_agent.clone();
    submit(&dispatcher, &schemas, agent, "", request).await
}

pub(super) async fn of_agent(
    State(dispatcher): State<Dispatcher>,
    Path(id): Path<String>,
    Extension(schemas): Extension<InputSchemas>,
    request: Request,
) -> Response {
    match named(&dispatcher, &id) {
        Ok(agent) => {
            let path = format!("{AGENTS}{agent}");
            submit(&dispatcher, &schemas, Some(agent), &path, request).await
        }
        Err(why) => refused(&why),
    }
}

/// Accepts a task; the endpoint for its updates is below `path`.
async fn submit(
    dispatcher: &Dispatcher,
    schemas: &InputSchemas,
    agent: Option<AgentId>,
    path: &str,
    request: Request,
) -> Response {
    let (caller, headers) = (origin_guard::principal(&request), request.headers().clone());
    let body = match read_body(dispatcher, request).await {
        Ok(body) => body,
        Err(unread) => return unread.answer(refused(&unread.why)),
    };
    match begin(dispatcher, schemas, &caller, agent, &headers, &body).await {
        Ok(task) => {
            let root = hub_url(dispatcher, &headers);
            let url = format!("{}{path}/{UPDATES}/{}", root.trim_end_matches('/'), task.id);
            accepted(&task, &url)
        }
        Err(why) => refused(&why),
    }
}

async fn begin(
    dispatcher: &Dispatcher,
    schemas: &InputSchemas,
    caller: &Principal,
    agent: Option<AgentId>,
    headers: &HeaderMap,
    body: &[u8],
) -> Result<Task, A2aError> {
    let submission = Submission::read(body)?;
    let chosen = choose(dispatcher, caller, agent, &submission.skill).await?;
    let SelectedAgent { agent, card, skill, is_one_of_several } = &chosen;
    if let Some(schema) = card.find_skill(skill).and_then(|skill| skill.input_schema()) {
        let of = (agent, skill.as_str());
        let violations = schemas.violations(of, schema, &submission.input).await?;
        if !violations.is_empty() {
            return Err(five_step::unfit(skill, &violations));
        }
    }
    let target = (!is_one_of_several).then_some(agent);
    let mut operation = Operation::SendMessage(Box::new(submission.message(target, card, skill)?));
    operation.in_trace(&trace(headers));
    match dispatcher.ask(caller, operation).await?.0 {
        Reply::One(Answer::Task(task)) => Ok(*task),
        Reply::One(_) | Reply::Stream(_) => Err(unexpected()),
    }
}

/// Selects the agent of the endpoint, or an agent with the skill among those visible to the caller.
async fn choose(
    dispatcher: &Dispatcher,
    caller: &Principal,
    agent: Option<AgentId>,
    skill: &str,
) -> Result<SelectedAgent, A2aError> {
    let cards = match &agent {
        Some(agent) => Operation::GetCard { agent: Some(agent.clone()) },
        None => Operation::ListCards,
    };
    let cards = match dispatcher.ask(caller, cards).await?.0 {
        Reply::One(Answer::Card(card)) => vec![*card],
        Reply::One(Answer::Cards(cards)) => cards,
        Reply::One(_) | Reply::Stream(_) => return Err(unexpected()),
    };
    let candidates: Vec<_> = cards.iter().filter_map(candidate).collect();
    let chosen = match agent {
        Some(agent) => {
            let of = candidates.iter().find(|(id, _)| **id == agent).ok_or_else(unexpected)?;
            find_skill(&agent, of.1, skill).map(|skill| (agent, skill))
        }
        None => holder(skill, &candidates, dispatcher.hub().default_agent().as_ref()),
    };
    let (agent, skill, is_one_of_several) = match chosen {
        Ok((agent, skill)) => (agent, skill, false),
        Err(NoHolder::Several { skill, agents }) => {
            // Agents without a grant are chosen only if no other agent has the skill, because a
            // card may claim any skill.
            let able = dispatcher.hub().with_skill(&skill);
            let first = agents.iter().find(|agent| able.contains(agent)).or(agents.first());
            (first.ok_or_else(unexpected)?.clone(), skill, true)
        }
        Err(why @ (NoHolder::Nobody { .. } | NoHolder::NotThis { .. })) => {
            return Err(no_holder(&why));
        }
    };
    let card = candidates.iter().find(|(id, _)| **id == agent).ok_or_else(unexpected)?.1.clone();
    Ok(SelectedAgent { agent, card, skill, is_one_of_several })
}

fn candidate(of: &CardOf) -> Option<SkillCandidate<'_>> {
    Some((of.agent.as_ref()?, &of.card))
}

fn no_holder(why: &NoHolder) -> A2aError {
    let details = match why {
        NoHolder::Nobody { there, .. } | NoHolder::NotThis { there, .. } => {
            json!({ "skills": there })
        }
        NoHolder::Several { agents, .. } => json!({ "agents": agents }),
    };
    five_step::no_skill(&why.to_string(), details)
}

/// Response 202 with the URL of the updates.
fn accepted(task: &Task, url: &str) -> Response {
    let text = task.status.message.as_ref().map(|message| message.joined_text());
    let text = text.filter(|said| !said.is_empty());
    let body = json!({
        "task_id": task.id,
        "status": task.status.state.name(),
        "status_message": text.as_deref().unwrap_or(five_step::of_state(task.status.state)),
        "updates_url": url,
    });
    (StatusCode::ACCEPTED, [(header::LOCATION, url)], Json(body)).into_response()
}
