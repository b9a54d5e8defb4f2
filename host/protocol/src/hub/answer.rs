//! JSON results of the Local Hub's methods.

use crate::{
    member,
    model::{
        id::AgentId,
        operation::{AgentInfo, Answer, CardOf, ListedTask, TaskSummary},
    },
    v03::{json, push},
};
use serde_json::{Value, json};

/// Path of the agents' endpoints below the hub's URL; the agent's id follows.
pub const AGENTS: &str = "/agents/";

/// Writes an answer; `url` is the URL of the hub.
pub fn write(answer: Answer, url: &str) -> Value {
    let reached = |info: &mut AgentInfo| {
        member::set(&mut info.card, "url", url_of(Some(&info.id), url));
    };
    match answer {
        Answer::Task(task) => json::write_task(&task),
        Answer::Message(message) => json::write_message(&message),
        Answer::Tasks { tasks, artifacts } => {
            tasks.iter().map(|task| write_listed(task, artifacts)).collect()
        }
        Answer::Searched(results) => json!(results),
        Answer::Usage(report) => json!(report),
        Answer::Tree(tree) => json!(tree),
        Answer::Timeline(timeline) => json!(timeline),
        Answer::PushConfig(config) => push::write(&config),
        Answer::PushConfigs(configs) => configs.iter().map(push::write).collect(),
        Answer::Deliveries(deliveries) => json!(deliveries),
        Answer::PushKeys(keys) => json!({ "keys": keys }),
        Answer::PushConfigDeleted => Value::Null,
        Answer::Contexts(contexts) => json!(contexts),
        Answer::Context(info, messages) => {
            let mut context = json!(info);
            let messages: Value = messages.iter().map(json::write_message).collect();
            member::set(&mut context, "messages", messages);
            context
        }
        Answer::Forgotten { context, tasks } => json!({ "id": context, "deletedTasks": tasks }),
        Answer::Worktree(answer) => json!(answer),
        Answer::Review(answer) => json!(answer),
        Answer::Pong(pong) => json!(pong),
        Answer::Status(status) => json!(status),
        Answer::Metrics(text) => json!(text),
        Answer::Reloaded(reloaded) => json!(reloaded),
        Answer::Schedules(schedules) => json!(schedules),
        Answer::Schedule(schedule) => json!(schedule),
        Answer::Trigger(answer) => json!(answer),
        Answer::Notifier(answer) => json!(answer),
        Answer::Question(answer) => json!(answer),
        Answer::Notice(answer) => json!(answer),
        Answer::Permission(report) => json!(report),
        Answer::Device(report) => json!(report),
        Answer::People(report) => json!(report),
        Answer::Topic(answer) => json!(answer),
        Answer::Board(answer) => answer,
        Answer::Plugins(plugins) => json!(plugins),
        Answer::PluginsRefreshed(refreshed) => json!(refreshed),
        Answer::PluginChanged(changed) => json!(changed),
        Answer::BackedUp(copied) => json!(copied),
        Answer::Agents(mut agents) => {
            agents.iter_mut().for_each(reached);
            json!(agents)
        }
        Answer::Found(mut found) => {
            for agent in &mut found.agents {
                member::set(&mut agent.card, "url", url_of(Some(&agent.id), url));
            }
            json!(found)
        }
        Answer::Agent(mut agent) => {
            reached(&mut agent);
            json!(agent)
        }
        Answer::Health(health) => json!(health),
        Answer::Deregistered(agent) => json!(agent),
        Answer::Discovery(document) => document,
        Answer::Card(of) => published(&of, url),
        Answer::Cards(all) => all.iter().map(|of| published(of, url)).collect(),
        Answer::TaskPage { tasks, .. } => {
            tasks.iter().map(|listed| json::write_task(&listed.task)).collect()
        }
    }
}

/// Writes a card in the form of the Local Hub specification.
fn published(of: &CardOf, url: &str) -> Value {
    let mut card = of.card.published(of.agent.as_ref());
    let reached = url_of(of.agent.as_ref(), url);
    if reached.starts_with("http") {
        of.card.add_five_steps(&mut card, reached.trim_end_matches('/'));
    }
    member::set(&mut card, "url", reached);
    card
}

/// URL of an agent, given the hub's `url`. A Unix socket has no paths, so its clients name the
/// agent in each message.
fn url_of(agent: Option<&AgentId>, url: &str) -> String {
    match agent {
        Some(agent) if url.starts_with("http") => {
            format!("{}{AGENTS}{agent}", url.trim_end_matches('/'))
        }
        Some(_) | None => url.to_owned(),
    }
}

/// Writes a task of a list, with its agent, and with or without artifacts.
fn write_listed(ListedTask { agent, task, summary }: &ListedTask, artifacts: bool) -> Value {
    let mut written = json::write_task(task);
    if let Value::Object(written) = &mut written {
        written.insert("agentId".to_owned(), json!(agent));
        if let Some(TaskSummary { request, working_directory }) = summary {
            written.insert("request".to_owned(), json!(request));
            if let Some(directory) = working_directory {
                written.insert("workingDirectory".to_owned(), json!(directory));
            }
            written.remove("history");
        }
        if !artifacts {
            written.remove("artifacts");
        }
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        card::AgentCard,
        model::{
            id::{ArtifactId, ContextId, MessageId, TaskId},
            message::{Message, Part, Role},
            operation::ContextInfo,
            task::{Artifact, Task, TaskState, TaskStatus},
        },
    };

    fn listed() -> ListedTask {
        let status =
            TaskStatus { state: TaskState::Completed, message: None, timestamp: "T".to_owned() };
        let artifact = Artifact::new(ArtifactId::new("a"), vec![Part::text("made")]);
        let task = Task {
            id: TaskId::new("t"),
            context_id: ContextId::new("c"),
            status,
            artifacts: vec![artifact],
            history: Vec::new(),
            metadata: None,
        };
        ListedTask { agent: AgentId::parse("echo").unwrap(), task, summary: None }
    }

    #[test]
    fn answers_match_local_hub_wire_form() {
        let card = AgentCard::parse(r#"{"name":"n","description":"d","version":"1"}"#).unwrap();
        let info = ContextInfo {
            id: ContextId::new("c"),
            task_count: 1,
            agents: vec![AgentId::parse("echo").unwrap()],
            created_at: "T0".to_owned(),
            updated_at: "T1".to_owned(),
            last_state: TaskState::InputRequired,
            last_task_id: TaskId::new("t"),
            working_directory: Some("/w".to_owned()),
            parent_task_id: None,
        };
        let of = |agent| CardOf {
            agent,
            card: card.clone(),
            since: "T".to_owned(),
            operated: Vec::new(),
        };
        let said = Message { message_id: MessageId::new("m"), ..Message::text(Role::User, "hi") };
        let told = [
            Answer::Tasks { tasks: vec![listed()], artifacts: true },
            Answer::Tasks { tasks: vec![listed()], artifacts: false },
            Answer::Context(info, vec![said]),
            Answer::Forgotten { context: ContextId::new("c"), tasks: 2 },
            Answer::PushConfigDeleted,
            Answer::PushKeys(Vec::new()),
            Answer::Card(Box::new(of(None))),
            Answer::Card(Box::new(of(Some(AgentId::parse("n").unwrap())))),
        ]
        .map(|answer| write(answer, "http://hub").to_string());
        insta::assert_snapshot!(told.join("\n"), @r#"
        [{"agentId":"echo","artifacts":[{"artifactId":"a","name":"a","parts":[{"kind":"text","text":"made"}]}],"contextId":"c","history":[],"id":"t","kind":"task","status":{"state":"completed","timestamp":"T"}}]
        [{"agentId":"echo","contextId":"c","history":[],"id":"t","kind":"task","status":{"state":"completed","timestamp":"T"}}]
        {"agents":["echo"],"createdAt":"T0","id":"c","lastState":"input-required","lastTaskId":"t","messages":[{"kind":"message","messageId":"m","parts":[{"kind":"text","text":"hi"}],"role":"user"}],"taskCount":1,"updatedAt":"T1","workingDirectory":"/w"}
        {"deletedTasks":2,"id":"c"}
        null
        {"keys":[]}
        {"capabilities":{"pushNotifications":true,"stateTransitionHistory":true,"streaming":true},"defaultInputModes":["text/plain"],"defaultOutputModes":["text/plain"],"description":"d","endpoints":{"submit_task":"http://hub/submit_task","task_updates":"http://hub/task_updates/{task_id}"},"name":"n","protocolVersion":"0.3.0","provider":{"name":"a2a-hub","organization":"a2a-hub"},"skills":[],"url":"http://hub","version":"1"}
        {"agentId":"n","capabilities":{"pushNotifications":true,"stateTransitionHistory":true,"streaming":true},"defaultInputModes":["text/plain"],"defaultOutputModes":["text/plain"],"description":"d","endpoints":{"submit_task":"http://hub/agents/n/submit_task","task_updates":"http://hub/agents/n/task_updates/{task_id}"},"name":"n","protocolVersion":"0.3.0","provider":{"name":"a2a-hub","organization":"a2a-hub"},"skills":[],"url":"http://hub/agents/n","version":"1"}
        "#);
    }
}
